"""Smart Turn: how likely it is, by tone and rhythm, that a speaker has finished. The only importer of its vendor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from audio.ports import Samples
from orchestrator.contracts.errors import InputError

RATE_HZ = 16_000
_SECONDS = 8
_FRAMES = 800
_MELS = 80


class SmartTurn:
    """The model of pipecat-ai/smart-turn (BSD-2), version 3.2: the last 8 s of speech → a chance."""

    def __init__(self, model: Path) -> None:
        """Load `model`, an ONNX file; a few tenths of a second.

        Raises:
            InputError: `model_missing` or `model_broken`.
        """
        if not model.is_file():
            raise InputError("model_missing", f"turn model: {model} is not there; mynah models get", part="turn")
        try:
            import onnxruntime
            from faster_whisper.feature_extractor import FeatureExtractor

            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = 1
            options.inter_op_num_threads = 1
            self._session: Any = onnxruntime.InferenceSession(
                str(model), sess_options=options, providers=["CPUExecutionProvider"]
            )
            self._features: Any = FeatureExtractor(feature_size=_MELS, chunk_length=_SECONDS)
        except Exception as error:
            raise InputError("model_broken", f"turn model {model} can't be loaded: {error}", part="turn") from error

    def chance(self, audio: Samples) -> float:
        """Return how likely the turn is over after `audio`: float32 mono at 16 kHz, with the short silence behind it.

        About 60 ms on one core.
        """
        wanted = _SECONDS * RATE_HZ
        last = audio[-wanted:].astype(np.float32)
        whole = np.zeros(wanted, np.float32)
        whole[wanted - len(last) :] = last
        whole = (whole - whole.mean()) / np.sqrt(whole.var() + 1e-7)
        mel = self._features(whole, padding=0)[:, :_FRAMES]
        result = self._session.run(None, {"input_features": mel[np.newaxis].astype(np.float32)})
        return float(np.asarray(result[0]).reshape(-1)[0])
