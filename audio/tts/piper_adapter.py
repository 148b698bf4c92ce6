"""Piper voices: sound with exact phoneme durations, so every word and mouth shape has its true time."""

from __future__ import annotations

import functools
import itertools
import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from audio.ports import Samples
from audio.tts.alignment import assign_words
from audio.tts.normalise import SpokenWord, normalise, sentence
from audio.tts.timing import estimate_words
from audio.tts.visemes import visemes_from_loudness, visemes_from_phonemes
from audio.tts.voice import Utterance
from orchestrator.contracts.errors import InputError, PartFailed
from orchestrator.contracts.events import TimedWord

log = logging.getLogger(__name__)

_SILENCE_LEVEL = 0.004
_KEEP_BEFORE_S = 0.012
_KEEP_AFTER_S = 0.06
_EDGE_FADE_S = 0.004
_CACHED_WORDS = 4096


class PiperSynthesiser:
    """One Piper voice. Loading takes about a second; afterwards a short clause takes about a tenth.

    Speech volume and speed are set once; a higher `speed` talks faster.
    """

    def __init__(
        self, voice_path: Path, *, speed: float = 1.0, volume: float = 0.7, threads: int = 1, seed: int | None = None
    ) -> None:
        """Load `voice_path` (a `.onnx` file with its `.onnx.json` beside it).

        Raises:
            InputError: a file is missing or is no Piper voice.
        """
        config_path = voice_path.with_name(voice_path.name + ".json")
        for path in (voice_path, config_path):
            if not path.is_file():
                raise InputError("voice_missing", f"voice file {path} does not exist", part="tts")
        try:
            import onnxruntime
            from piper import PiperVoice, SynthesisConfig
            from piper.config import PiperConfig

            raw = json.loads(config_path.read_text(encoding="utf-8"))
            if seed is not None:
                # The voice draws its own noise; with a seed the same texts in the same order sound the same.
                onnxruntime.set_seed(seed)
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = threads
            options.inter_op_num_threads = 1
            session = onnxruntime.InferenceSession(
                str(voice_path), sess_options=options, providers=["CPUExecutionProvider"]
            )
            self._voice: Any = PiperVoice(session=session, config=PiperConfig.from_dict(raw))
        except Exception as error:
            raise InputError(
                "voice_unusable", f"voice file {voice_path} cannot be loaded: {error}", part="tts"
            ) from error
        self._options: Any = SynthesisConfig(
            length_scale=float(raw.get("inference", {}).get("length_scale", 1.0)) / speed, volume=volume
        )
        self._name = voice_path.stem if voice_path.stem != "voice" else voice_path.parent.name
        self._language = _family(raw)
        self.rate_hz = int(self._voice.config.sample_rate)
        self._phonemes_of = functools.lru_cache(maxsize=_CACHED_WORDS)(self._phonemise_word)
        self._warm_up()

    @property
    def name(self) -> str:
        """Name of the voice."""
        return self._name

    def speaks(self, language: str) -> bool:
        """Whether this voice was made for `language`."""
        return language == self._language

    def synthesise(self, text: str, *, language: str) -> Utterance:
        """Speak `text` with exact times; a voice without durations gives estimated ones.

        Raises:
            PartFailed: the model failed, or nothing in `text` can be said.
        """
        words = normalise(text, language)
        spoken = sentence(words, language)
        try:
            chunks = list(self._voice.synthesize(spoken, self._options, include_alignments=True))
        except Exception as error:
            message = f"the voice {self._name} failed: {error}"
            raise PartFailed("tts_failed", message, part="tts", recoverable=True) from error
        if not chunks or not any(len(chunk.audio_float_array) for chunk in chunks):
            raise PartFailed("tts_empty", "the voice has no sound for this text", part="tts", recoverable=True)
        pcm = np.concatenate([chunk.audio_float_array for chunk in chunks]).astype(np.float32, copy=False)
        first, last = _sounding(pcm, self.rate_hz)
        trimmed = _faded(pcm[first:last], self.rate_hz)
        phonemes = _timeline(chunks)
        if phonemes is None:
            timed = estimate_words(text, start_s=0.0, end_s=len(trimmed) / self.rate_hz)
            shapes = visemes_from_loudness(trimmed, self.rate_hz)
            return Utterance(pcm=trimmed, rate_hz=self.rate_hz, words=timed, visemes=shapes, estimated=True)
        duration_s = len(trimmed) / self.rate_hz
        starts = [(phoneme, (start - first) / self.rate_hz) for phoneme, start, _ in phonemes]
        spans = [(phoneme, start - first, end - first) for phoneme, start, end in phonemes]
        return Utterance(
            pcm=trimmed,
            rate_hz=self.rate_hz,
            words=self._time_words(words, spans, len(trimmed)),
            visemes=visemes_from_phonemes((pair for pair in starts if pair[1] < duration_s), duration_s=duration_s),
            estimated=False,
        )

    def _time_words(
        self, words: Sequence[SpokenWord], phonemes: Sequence[tuple[str, int, int]], frames: int
    ) -> tuple[TimedWord, ...]:
        owners = assign_words([self._phonemes_of(word.spoken) for word in words], [item[0] for item in phonemes])
        starts: dict[int, int] = {}
        ends: dict[int, int] = {}
        for place, owner in enumerate(owners):
            if owner is None:
                continue
            _, start, end = phonemes[place]
            starts.setdefault(owner, start)
            # The sound of a word runs on into the gap behind it: half of a short gap is still the word.
            if place + 1 < len(owners) and owners[place + 1] is None:
                follow_start, follow_end = phonemes[place + 1][1:]
                end += min((follow_end - follow_start) // 2, self.rate_hz // 20)
            ends[owner] = end
        timed: list[TimedWord] = []
        at = 0
        for index, word in enumerate(words):
            start = min(max(starts.get(index, at), at), frames)
            end = min(max(ends.get(index, start), start), frames)
            at = end
            timed.append(
                TimedWord(
                    index=index,
                    text=word.text,
                    char_start=word.char_start,
                    char_end=word.char_end,
                    start_s=start / self.rate_hz,
                    end_s=end / self.rate_hz,
                )
            )
        return tuple(timed)

    def _phonemise_word(self, spoken: str) -> tuple[str, ...]:
        if not spoken:
            return ()
        return tuple(itertools.chain.from_iterable(self._voice.phonemize(spoken)))

    def _warm_up(self) -> None:
        """Run once, so that the first sentence of a conversation is not slower than the others."""
        for _ in self._voice.synthesize("ok.", self._options, include_alignments=True):
            pass


def _family(config: dict[str, Any]) -> str:
    family = config.get("language", {}).get("family")
    code = str(family or config.get("espeak", {}).get("voice", "en")).lower().split("-")[0]
    return "zh" if code in ("zh", "cmn", "yue") else code


def _timeline(chunks: Sequence[Any]) -> list[tuple[str, int, int]] | None:
    """Return (phoneme, first frame, end frame) over all chunks; None if the voice gives no durations."""
    timeline: list[tuple[str, int, int]] = []
    at = 0
    for chunk in chunks:
        start = at
        if not chunk.phoneme_alignments:
            return None
        for item in chunk.phoneme_alignments:
            end = at + int(item.num_samples)
            timeline.append((item.phoneme, at, end))
            at = end
        if at - start != len(chunk.audio_float_array):
            log.warning("durations do not add up: %d of %d frames", at - start, len(chunk.audio_float_array))
            return None
    return timeline


def _sounding(pcm: Samples, rate_hz: int) -> tuple[int, int]:
    """Return first and end frame of what is heard, with a little silence left at both ends."""
    loud = np.flatnonzero(np.abs(pcm) > _SILENCE_LEVEL)
    if not len(loud):
        return 0, len(pcm)
    first = max(0, int(loud[0]) - int(_KEEP_BEFORE_S * rate_hz))
    last = min(len(pcm), int(loud[-1]) + 1 + int(_KEEP_AFTER_S * rate_hz))
    return first, last


def _faded(pcm: Samples, rate_hz: int) -> Samples:
    """Return a copy whose ends start and stop at zero."""
    count = min(int(_EDGE_FADE_S * rate_hz), len(pcm) // 2)
    faded: Samples = np.array(pcm, dtype=np.float32)
    ramp = np.linspace(0.0, 1.0, count, dtype=np.float32)
    faded[:count] *= ramp
    faded[len(faded) - count :] *= ramp[::-1]
    return faded
