"""The networks of a Piper voice: in one piece, or parted so that sound is made from the front on.

A VITS voice first makes one latent vector per 256 samples of the whole sentence, with the durations, then decodes the
vectors to sound, each with a few neighbours only. Parted, the decoder runs over a short stretch at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from audio.ports import Samples

_OVERLAP = 10
"""Latent vectors on each side that a decoded stretch depends on: from 10 on, nothing changes by more than 1e-6."""


class Sounding(Protocol):
    """One sentence, whose sound can be had by parts. Frames are those of the voice (`hop` samples each)."""

    @property
    def frames(self) -> int:
        """How many frames the sentence has."""
        ...

    @property
    def durations(self) -> npt.NDArray[np.int64] | None:
        """Samples of each phoneme id; None if the voice does not tell."""
        ...

    def samples(self, start: int, end: int) -> Samples:
        """Return the sound of frames `start`…`end`, not normalised."""
        ...


class PiperModel:
    """Runs the networks: encoder and decoder if the voice was `parted` into these two files, else the whole voice."""

    def __init__(self, voice: Path, parted: tuple[Path, Path] | None, *, threads: int, hop: int) -> None:
        """Load the files; the runtime's exceptions pass."""
        self._hop = hop
        self._whole: Any = None
        if parted is not None:
            self._encoder, self._decoder = (_session(path, threads) for path in parted)
            self._latent = self._decoder.get_inputs()[0].name
        else:
            self._whole = _session(voice, threads)
        self.session: Any = self._whole or self._encoder

    @property
    def is_parted(self) -> bool:
        """Whether the first sound does not wait for the whole sentence."""
        return self._whole is None

    def sentence(
        self, ids: Sequence[int], *, length: float, noise: float, noise_w: float, speaker: int | None
    ) -> Sounding:
        """Begin the sentence of the phoneme `ids`."""
        args: dict[str, Any] = {
            "input": np.array([ids], dtype=np.int64),
            "input_lengths": np.array([len(ids)], dtype=np.int64),
            "scales": np.array([noise, length, noise_w], dtype=np.float32),
        }
        if speaker is not None:
            args["sid"] = np.array([speaker], dtype=np.int64)
        made = self.session.run(None, args)
        durations = None
        if len(made) > 1:
            durations = np.atleast_1d(np.asarray(made[1]).squeeze() * self._hop).astype(np.int64)
        if self.is_parted:
            return _Latents(self, np.asarray(made[0]), durations)
        return _Made(np.asarray(made[0], dtype=np.float32).reshape(-1), durations, self._hop)

    def decode(self, latents: npt.NDArray[np.float32], start: int, end: int) -> Samples:
        """Return the sound of the vectors `start`…`end`."""
        first, last = max(0, start - _OVERLAP), min(latents.shape[2], end + _OVERLAP)
        part = np.ascontiguousarray(latents[:, :, first:last])
        sound = np.asarray(self._decoder.run(None, {self._latent: part})[0], dtype=np.float32).reshape(-1)
        return sound[(start - first) * self._hop : (end - first) * self._hop]


class _Latents:
    def __init__(
        self, model: PiperModel, latents: npt.NDArray[np.float32], durations: npt.NDArray[np.int64] | None
    ) -> None:
        self._model = model
        self._latents = latents
        self.durations = durations
        self.frames = int(latents.shape[2])

    def samples(self, start: int, end: int) -> Samples:
        return self._model.decode(self._latents, start, end)


class _Made:
    def __init__(self, sound: Samples, durations: npt.NDArray[np.int64] | None, hop: int) -> None:
        self._sound = sound
        self._hop = hop
        self.durations = durations
        self.frames = -(-len(sound) // hop)

    def samples(self, start: int, end: int) -> Samples:
        return self._sound[start * self._hop : end * self._hop]


def _session(path: Path, threads: int) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), sess_options=options, providers=["CPUExecutionProvider"])
