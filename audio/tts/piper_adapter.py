"""Piper voices: sound with exact phoneme durations, so every word and mouth shape has its true time."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from audio.native_libraries import SPEAKING, map_libraries
from audio.tts.alignment import assign_words
from audio.tts.normalise import SpokenWord, normalise, sentence
from audio.tts.piper_model import PiperModel, Sounding
from audio.tts.piper_stream import PiperStream, Timing
from audio.tts.timing import estimated_utterance
from audio.tts.visemes import visemes_from_phonemes
from audio.tts.voice import SpeechStream, Utterance, WholeSound
from orchestrator.contracts.errors import InputError, PartFailed
from orchestrator.contracts.events import TimedWord

_CACHED_WORDS = 4096
_PIECE_S = 1.5
_USUAL_PEAK = 0.57
_PEAK_FOLLOW = 0.2
_LOWEST_PEAK, _HIGHEST_PEAK = 0.3, 0.9


class PiperSynthesiser:
    """One Piper voice. Loading takes about a second; the first sound of a text then takes about a tenth.

    Between sentences the level follows the voice slowly, so that neither a shout nor a whisper is made plain.
    """

    def __init__(
        self,
        voice_path: Path,
        *,
        parted: tuple[Path, Path] | None = None,
        speed: float = 1.0,
        volume: float = 0.7,
        threads: int = 1,
        seed: int | None = None,
    ) -> None:
        """Load `voice_path` (a `.onnx` file with its `.onnx.json` beside it), or its `parted` encoder and decoder.

        A higher `speed` talks faster.

        Raises:
            InputError: a file is missing or is no Piper voice.
        """
        config_path = voice_path.with_name(voice_path.name + ".json")
        for path in (voice_path, config_path):
            if not path.is_file():
                raise InputError("voice_missing", f"voice file {path} does not exist", part="tts")
        try:
            map_libraries(SPEAKING)
            from piper import PiperVoice
            from piper.config import PiperConfig

            raw = json.loads(config_path.read_text(encoding="utf-8"))
            if seed is not None:
                import onnxruntime

                # The voice draws its own noise; with a seed the same texts in the same order sound the same.
                onnxruntime.set_seed(seed)
            config = PiperConfig.from_dict(raw)
            self._model = PiperModel(voice_path, parted, threads=threads, hop=int(config.hop_length))
            self._voice: Any = PiperVoice(session=self._model.session, config=config)
            self.rate_hz = int(config.sample_rate)
            self._hop = int(config.hop_length)
        except Exception as error:
            raise InputError(
                "voice_unusable", f"voice file {voice_path} cannot be loaded: {error}", part="tts"
            ) from error
        self._pace = speed, volume
        self._peak = _USUAL_PEAK
        self._name = voice_path.stem if voice_path.stem != "voice" else voice_path.parent.name
        self._language = _family(raw)
        self._phonemes_of = functools.lru_cache(maxsize=_CACHED_WORDS)(self._phonemise_word)
        self._warm_up()

    @property
    def name(self) -> str:
        """Name of the voice."""
        return self._name

    @property
    def is_parted(self) -> bool:
        """Whether the first sound does not wait for the whole text."""
        return self._model.is_parted

    def speaks(self, language: str) -> bool:
        """Whether this voice was made for `language`."""
        return language == self._language

    def adjust(self, *, speed: float, volume: float) -> None:
        """Change pace and loudness from the next text on."""
        self._pace = speed, volume

    def synthesise(self, text: str, *, language: str) -> Utterance:
        """Speak `text` with exact times; a voice without durations gives estimated ones.

        Raises:
            PartFailed: the model failed, or nothing in `text` can be said.
        """
        stream = self.begin(text, language=language, first_s=_PIECE_S)
        pieces = [stream.read(_PIECE_S)]
        while not stream.is_over:
            pieces.append(stream.read(_PIECE_S))
        return Utterance(
            pcm=np.concatenate(pieces),
            rate_hz=self.rate_hz,
            words=stream.words,
            visemes=stream.visemes,
            estimated=stream.estimated,
        )

    def begin(self, text: str, *, language: str, first_s: float) -> SpeechStream:
        """Speak `text` piece by piece; see `StreamingSynthesiser`. Raises `PartFailed`."""
        words = normalise(text, language)
        speed, volume = self._pace
        gain = volume / self._peak
        try:
            sentences, timeline = self._encode(sentence(words, language), speed)
            if not sentences:
                raise PartFailed("tts_empty", "the voice has no sound for this text", part="tts", recoverable=True)
            if timeline is None:
                sound = np.concatenate([item.samples(0, item.frames) for item in sentences])
                return WholeSound(estimated_utterance(text, sound * np.float32(gain), self.rate_hz))
            return PiperStream(
                sentences,
                rate_hz=self.rate_hz,
                hop=self._hop,
                gain=gain,
                volume=volume,
                first_s=first_s,
                time_words=lambda first, frames: self._time(words, timeline, first, frames),
                on_over=self._follow_peak,
            )
        except PartFailed:
            raise
        except Exception as error:
            message = f"the voice {self._name} failed: {error}"
            raise PartFailed("tts_failed", message, part="tts", recoverable=True) from error

    def _encode(self, spoken: str, speed: float) -> tuple[list[Sounding], list[tuple[str, int, int]] | None]:
        """Return the sentences of `spoken` with (phoneme, first frame, end frame) over all of them, if known."""
        config = self._voice.config
        sentences: list[Sounding] = []
        timeline: list[tuple[str, int, int]] | None = []
        at = 0
        for phonemes in self._voice.phonemize(spoken):
            if not phonemes:
                continue
            item = self._model.sentence(
                self._voice.phonemes_to_ids(phonemes),
                length=config.length_scale / speed,
                noise=config.noise_scale,
                noise_w=config.noise_w_scale,
                speaker=config.default_speaker_id if config.num_speakers > 1 else None,
            )
            sentences.append(item)
            spans = _spans(phonemes, item, config.phoneme_id_map, self._hop)
            if timeline is not None and spans is not None:
                timeline.extend((phoneme, at + start, at + end) for phoneme, start, end in spans)
            else:
                timeline = None
            at += item.frames * self._hop
        return sentences, timeline

    def _time(
        self, words: Sequence[SpokenWord], timeline: Sequence[tuple[str, int, int]], first: int, frames: int
    ) -> Timing:
        duration_s = frames / self.rate_hz
        spans = [(phoneme, start - first, end - first) for phoneme, start, end in timeline]
        starts = [(phoneme, start / self.rate_hz) for phoneme, start, _ in spans]
        shapes = visemes_from_phonemes((pair for pair in starts if pair[1] < duration_s), duration_s=duration_s)
        return self._time_words(words, spans, frames), shapes, False

    def _follow_peak(self, peak: float) -> None:
        peak = min(max(peak, _LOWEST_PEAK), _HIGHEST_PEAK)
        self._peak += _PEAK_FOLLOW * (peak - self._peak)

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
        self.synthesise("Okay, here we are.", language=self._language)


def _family(config: dict[str, Any]) -> str:
    family = config.get("language", {}).get("family")
    code = str(family or config.get("espeak", {}).get("voice", "en")).lower().split("-")[0]
    return "zh" if code in ("zh", "cmn", "yue") else code


def _spans(
    phonemes: Sequence[str], item: Sounding, ids: dict[str, list[int]], hop: int
) -> list[tuple[str, int, int]] | None:
    """Return (phoneme, first frame, end frame) within a sentence; None if the voice gives no durations for it."""
    durations = item.durations
    pad = len(ids.get("_", ()))
    counts = [len(ids[phoneme]) + pad for phoneme in ("^", *phonemes) if phoneme in ids] + [len(ids.get("$", ()))]
    if durations is None or sum(counts) != len(durations) or int(durations.sum()) != item.frames * hop:
        return None
    ends = np.concatenate([[0], np.cumsum(durations)])
    known = [phoneme for phoneme in ("^", *phonemes) if phoneme in ids] + ["$"]
    spans: list[tuple[str, int, int]] = []
    at = 0
    for phoneme, count in zip(known, counts, strict=True):
        spans.append((phoneme, int(ends[at]), int(ends[at + count])))
        at += count
    return spans
