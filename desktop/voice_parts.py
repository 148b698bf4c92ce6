"""Parts a Piper voice into encoder and decoder, so that the first sound does not wait for the whole sentence."""

from __future__ import annotations

import hashlib
import logging
import os
from pathlib import Path
from typing import Any

log = logging.getLogger(__name__)

_DECODER_INPUT = "/dec/conv_pre/Conv"
_PARTS = ("encoder.onnx", "decoder.onnx")


def parted_voice(voice: Path, cache: Path) -> tuple[Path, Path] | None:
    """Return the two parts of `voice`, made once (about 1.5 s) and kept below `cache`; None where that can't be done.

    A voice of another shape, or a folder that can't be written, is no error: the voice is used whole then.
    """
    try:
        state = voice.stat()
        stamp = f"{voice.resolve()} {state.st_size} {state.st_mtime_ns}"
        folder = cache / hashlib.sha256(stamp.encode()).hexdigest()[:16]
        parts = folder / _PARTS[0], folder / _PARTS[1]
        if not all(part.is_file() for part in parts):
            folder.mkdir(parents=True, exist_ok=True)
            _part(voice, parts)
    except Exception:  # onnx raises protobuf's own errors
        log.info("the voice %s is used in one piece", voice.name, exc_info=True)
        return None
    return parts


def _part(voice: Path, parts: tuple[Path, Path]) -> None:
    import onnx  # noqa: PLC0415 - costs 0.3 s and is needed once for a voice

    model = onnx.load(str(voice))
    graph = model.graph
    latent = next(node for node in graph.node if node.name == _DECODER_INPUT).input[0]
    inputs = {value.name for value in graph.input}
    outputs = [value.name for value in graph.output]
    _save(_cut(model, inputs, [latent, *outputs[1:]]), parts[0])
    _save(_cut(model, {latent}, outputs[:1]), parts[1])


def _save(model: Any, path: Path) -> None:
    import onnx  # noqa: PLC0415

    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        onnx.save(model, str(new))
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def _cut(model: Any, inputs: set[str], outputs: list[str]) -> Any:
    """Return the part of `model` that makes `outputs` out of `inputs`.

    Raises:
        ValueError: an output depends on something else.
    """
    from onnx import TensorProto, helper  # noqa: PLC0415

    graph = model.graph
    makers = {name: index for index, node in enumerate(graph.node) for name in node.output if name}
    constants = {item.name: item for item in graph.initializer}
    needed: set[int] = set()
    used: set[str] = set()
    waiting, seen = list(outputs), set(inputs)
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        if name in constants:
            used.add(name)
            continue
        if name not in makers:
            raise ValueError(f"{name} comes from nowhere")
        needed.add(makers[name])
        waiting.extend(value for value in graph.node[makers[name]].input if value)
    declared = [value for value in graph.input if value.name in inputs]
    new = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, None, None])
        for name in inputs - {value.name for value in declared}
    ]
    part = helper.make_graph(
        [node for index, node in enumerate(graph.node) if index in needed],
        "part",
        declared + new,
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [item for name, item in constants.items() if name in used],
    )
    cut = helper.make_model(part, opset_imports=model.opset_import)
    cut.ir_version = model.ir_version
    return cut
