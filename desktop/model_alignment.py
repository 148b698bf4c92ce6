"""Adds the phoneme durations to the outputs of a Piper voice (the only user of `onnx` and of Piper's patch)."""

from __future__ import annotations

import hashlib
from pathlib import Path

from orchestrator.contracts.errors import PartFailed


def add_alignment(voice: Path) -> None:
    """Make the voice report the samples of each phoneme; a voice that already does stays as it is.

    Raises `PartFailed` (`voice_unpatchable`) if the file is no Piper voice.
    """
    import onnx  # noqa: PLC0415 - costs 0.3 s and is needed at set-up only
    from piper.patch_voice_with_alignment import add_alignment_output  # noqa: PLC0415

    try:
        graph = onnx.load(str(voice))
        if len(graph.graph.output) > 1:
            return
        add_alignment_output(graph)
    except Exception as error:  # onnx raises protobuf's own errors
        raise PartFailed("voice_unpatchable", f"{voice.name} is no Piper voice: {error}", part="models") from error
    new = voice.with_name(voice.name + ".new")
    onnx.save(graph, str(new))
    new.replace(voice)


def original_sha256(voice: Path) -> str | None:
    """Return the SHA-256 that a patched voice had before, or None if it is no patched voice.

    The patch only appends one output, so taking it away gives the original bytes again.
    """
    import onnx  # noqa: PLC0415

    try:
        graph = onnx.load(str(voice))
    except Exception:  # any damage makes it "no patched voice"
        return None
    if len(graph.graph.output) < 2:
        return None
    graph.graph.output.pop()
    return hashlib.sha256(graph.SerializeToString()).hexdigest()
