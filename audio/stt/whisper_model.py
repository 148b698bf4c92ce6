"""faster-whisper's model, loaded without its tokenizer where the word list beside the model will do.

A module of its own: it imports the library, which takes a second and is waited for by nothing that recognises nothing.
"""

from __future__ import annotations

from pathlib import Path

import ctranslate2
from faster_whisper import WhisperModel
from faster_whisper.feature_extractor import FeatureExtractor
from faster_whisper.tokenizer import Tokenizer
from faster_whisper.transcribe import get_suppressed_tokens

from audio.stt.byte_pairs import BytePairs, read_tokens

__all__ = ["Tokenizer", "get_suppressed_tokens", "load_model"]

_CONTEXT_TOKENS = 448


class _ListedModel(WhisperModel):  # type: ignore[misc]  # the library has no types
    """What `encode` and `get_prompt` need; the library's own `transcribe` is not prepared."""

    def __init__(self, model_dir: Path, tokens: BytePairs, *, cpu_threads: int, compute_type: str) -> None:
        self.model = ctranslate2.models.Whisper(
            str(model_dir), device="cpu", compute_type=compute_type, intra_threads=cpu_threads, inter_threads=1
        )
        self.hf_tokenizer = tokens
        self.feature_extractor = FeatureExtractor(**self._get_feature_kwargs(str(model_dir)))
        self.max_length = _CONTEXT_TOKENS


def load_model(model_dir: Path, *, cpu_threads: int, compute_type: str) -> WhisperModel:
    """Load the model of `model_dir`; the library's exceptions pass."""
    tokens = read_tokens(model_dir)
    if tokens is not None:
        return _ListedModel(model_dir, tokens, cpu_threads=cpu_threads, compute_type=compute_type)
    return WhisperModel(
        str(model_dir), device="cpu", compute_type=compute_type, cpu_threads=cpu_threads, local_files_only=True
    )
