"""Whisper models in CTranslate2 form, with a short encoder context for short utterances."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audio.native_libraries import HEARING, map_libraries
from audio.ports import Samples
from audio.stt.chunking import split_at_silences
from audio.stt.guards import compression_ratio, find_flaw
from audio.stt.rejection import reject, weakness
from audio.stt.silence_cache import SilenceCache
from audio.stt.text import has_cjk, join_texts
from audio.stt.transcription import MIN_VAD_FRACTION, SAMPLE_RATE_HZ, SURE_VAD_FRACTION, Transcription, Unwanted
from orchestrator.clock import Clock
from orchestrator.contracts.errors import InputError, PartFailed

log = logging.getLogger(__name__)

_POSITIONS = 1500
_FRAMES = 2 * _POSITIONS
_HOP = 160
_TAIL_ZEROS_S = 1.0
"""Real silence behind the speech before cached states follow; with 0.5 s the decoder begins to loop."""

_CONTEXT_TOKENS = 448
_TOKENS_BASE = 20
_TOKENS_PER_S = 10
"""A limit that no true text reaches (a Chinese character takes up to two tokens) but that ends a loop early."""

_PARTIAL_TOKENS_BASE = 8
_PARTIAL_TOKENS_PER_S = 8
"""Cut-off words make the decoder loop more often, and a final has to wait for a partial that does."""

_RUNNER_UP_RATIO = 0.05
_SURE_LOGPROB = -0.3
_LANGUAGE_WEIGHT = 0.2
"""Single words such as "cancel" are taken for another language; decoding both tells them apart."""

_NARROW_ENDS = (".", "?", "!")
_WIDE_ENDS = ("。", "？", "！")
_ENDS = (*_NARROW_ENDS, *_WIDE_ENDS)

_MODEL_FILES = ("model.bin", "config.json", "tokenizer.json")


class WhisperAdapter:
    """One Whisper model. The encoder sees the speech and one second of zeros; cached states of silence fill the rest.

    So the decoder finds its 30 s of context although only the utterance was encoded. Cached states keep their
    positions. What the guards flag is decoded once more with full context, and that result stands.
    """

    def __init__(
        self,
        model_dir: Path,
        *,
        clock: Clock,
        cpu_threads: int = 2,
        compute_type: str = "int8",
        cache_dir: Path | None = None,
    ) -> None:
        """Load and warm up the model of `model_dir`; takes a second or two. `clock` measures what decoding costs.

        The states of silence cost a full encoding; with `cache_dir` they are kept there for the next start.

        Raises:
            InputError: `model_missing` if the folder or a file of it is not there, `model_broken` if it can't be used.
        """
        for name in _MODEL_FILES:
            if not (model_dir / name).is_file():
                raise InputError(
                    "model_missing",
                    f"speech model incomplete: {model_dir / name} is not there; fetch it with: mynah models get",
                    part="stt",
                )
        self._clock = clock
        self._cores = float(cpu_threads)
        try:
            self._load(model_dir, cpu_threads, compute_type, cache_dir)
        except Exception as error:
            raise InputError(
                "model_broken",
                f"speech model in {model_dir} can't be loaded ({_first_line(error)}); "
                "check it with: mynah models verify",
                part="stt",
            ) from error

    def _load(self, model_dir: Path, cpu_threads: int, compute_type: str, cache_dir: Path | None) -> None:
        # Imported here: it takes a second, which commands that recognise nothing need not wait for.
        map_libraries(HEARING)
        from audio.stt.whisper_model import Tokenizer, get_suppressed_tokens, load_model

        self._whisper: Any = load_model(model_dir, cpu_threads=cpu_threads, compute_type=compute_type)
        self.is_multilingual: bool = self._whisper.model.is_multilingual
        self._tokenizer_class: Any = Tokenizer
        self._suppressed_of: Any = get_suppressed_tokens
        self._end_tokens: list[int] | None = None
        self._tokenizers: dict[str, tuple[Any, list[int]]] = {}
        silence = np.zeros(_FRAMES * _HOP, np.float32)
        kept = SilenceCache(model_dir, cache_dir, compute_type)
        states = kept.read()
        if states is None:
            states = np.array(self._encode(silence, _FRAMES))
            kept.write(states)
        self._silence: NDArray[np.float32] = states
        self.transcribe(silence[: SAMPLE_RATE_HZ // 2], languages=("en",), final=False)

    @property
    def cores(self) -> float:
        """How many processor cores a decoding occupies."""
        return self._cores

    def transcribe(
        self,
        audio: Samples,
        *,
        languages: Sequence[str],
        hotwords: Sequence[str] = (),
        final: bool = True,
        vad_fraction: float | None = None,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> Transcription:
        """Return the text of `audio`; an English-only model ignores `languages`. See `SpeechRecogniser`."""
        began_s = self._clock.monotonic_s()
        try:
            clean = np.nan_to_num(np.ascontiguousarray(audio, dtype=np.float32), posinf=0.0, neginf=0.0)
            parts = [
                self._transcribe_part(part, languages, hotwords, final, vad_fraction, is_wanted)
                for part in split_at_silences(clean)
            ]
        except (PartFailed, Unwanted):
            raise
        except Exception as error:
            raise PartFailed(
                "stt_failed", f"speech recognition failed: {_first_line(error)}", part="stt", recoverable=True
            ) from error
        merged = _merge(parts)
        return replace(merged, decode_s=self._clock.monotonic_s() - began_s)

    def _transcribe_part(
        self,
        audio: Samples,
        languages: Sequence[str],
        hotwords: Sequence[str],
        final: bool,
        vad_fraction: float | None,
        is_wanted: Callable[[], bool],
    ) -> Transcription:
        # The voice often comes back within the tenth of a second that encoding takes; decoding takes three.
        _go_on_if(is_wanted)
        short, tail = self._encode_short(audio)
        _go_on_if(is_wanted)
        chances = self._detect(short, languages)
        _go_on_if(is_wanted)
        result = self._decode(tail, audio, chances[0][0], hotwords, context="short", is_final=final)
        if not final:
            return result
        if _is_doubtful(result, chances):
            _go_on_if(is_wanted)
            other = self._decode(tail, audio, chances[1][0], hotwords, context="short")
            is_better = other.flaw is None and _score(other, chances[1][1]) > _score(result, chances[0][1])
            # The same words in both, such as digits, say nothing of the language: the sound has told it.
            if is_better and other.text != result.text:
                result = other
        if not _needs_full(result, vad_fraction):
            return result
        _go_on_if(is_wanted)
        log.debug("decoding again with full context")
        whole = self._encode(audio, _FRAMES)
        language = result.language or chances[0][0]
        return replace(self._decode(whole, audio, language, hotwords, context="full"), retried=True)

    def _encode(self, audio: Samples, frames: int) -> Any:
        padded = np.pad(audio, (0, max(0, frames * _HOP - len(audio))))
        features = self._whisper.feature_extractor(padded, padding=0)[:, :frames]
        return self._whisper.encode(np.ascontiguousarray(features))

    def _encode_short(self, audio: Samples) -> tuple[Any, Any]:
        """Return the states of the speech alone, and those with silence behind them up to 30 s."""
        from ctranslate2 import StorageView

        frames = 2 * math.ceil((len(audio) / SAMPLE_RATE_HZ + _TAIL_ZEROS_S) * 50)
        short = self._encode(audio, min(frames, _FRAMES))
        states = np.array(short)
        states = np.concatenate([states, self._silence[:, states.shape[1] : _POSITIONS]], axis=1)
        return short, StorageView.from_array(np.ascontiguousarray(states))

    def _detect(self, short: Any, languages: Sequence[str]) -> list[tuple[str, float]]:
        """Return `languages` with their chances, the likeliest first.

        Told by the states of the speech alone: with silence behind them the model errs more often.
        """
        if not self.is_multilingual or not languages:
            return [("en", 1.0)]
        if len(languages) == 1:
            return [(languages[0], 1.0)]
        found = {token[2:-2]: chance for token, chance in self._whisper.model.detect_language(short)[0]}
        return sorted(((code, found.get(code, 0.0)) for code in languages), key=lambda item: -item[1])

    def _tokenizer(self, language: str) -> tuple[Any, list[int]]:
        if language not in self._tokenizers:
            tokenizer = self._tokenizer_class(
                self._whisper.hf_tokenizer, self.is_multilingual, task="transcribe", language=language
            )
            self._tokenizers[language] = (tokenizer, list(self._suppressed_of(tokenizer, [-1])))
        return self._tokenizers[language]

    def _decode(
        self,
        states: Any,
        audio: Samples,
        language: str,
        hotwords: Sequence[str],
        *,
        context: str,
        is_final: bool = True,
    ) -> Transcription:
        tokenizer, suppressed = self._tokenizer(language)
        audio_s = len(audio) / SAMPLE_RATE_HZ
        # A name in the other script pulls the model into that language.
        expected = [word for word in hotwords if has_cjk(word) == (language == "zh")]
        prompt = self._whisper.get_prompt(
            tokenizer, [], without_timestamps=True, hotwords=", ".join(expected) if expected else None
        )
        base, per_s = (_TOKENS_BASE, _TOKENS_PER_S) if is_final else (_PARTIAL_TOKENS_BASE, _PARTIAL_TOKENS_PER_S)
        wanted = int(base + per_s * audio_s)
        limit = min(wanted, _CONTEXT_TOKENS // 2, _CONTEXT_TOKENS - len(prompt))
        result = self._whisper.model.generate(
            states,
            [prompt],
            beam_size=1,
            # The model writes at most half of this, and at most what the prompt leaves of it.
            max_length=max(2 * limit, limit + len(prompt)),
            return_scores=True,
            return_logits_vocab=True,
            return_no_speech_prob=True,
            suppress_blank=True,
            suppress_tokens=suppressed,
        )[0]
        tokens = result.sequences_ids[0]
        text = tokenizer.decode(tokens).strip()
        # The model returns the mean over its tokens; the end token that it leaves out counts, too.
        avg_logprob = result.scores[0] * len(tokens) / (len(tokens) + 1)
        is_capped = len(tokens) >= limit
        return Transcription(
            text=text,
            language=language,
            decode_s=0.0,
            context=context,
            avg_logprob=float(avg_logprob),
            no_speech=float(result.no_speech_prob),
            compression=compression_ratio(text),
            flaw=find_flaw(text, audio_s=audio_s, is_capped=is_capped),
            end_chance=self._end_chance(result, tokenizer, text),
        )

    def _end_chance(self, result: Any, tokenizer: Any, text: str) -> float:
        """Return how likely the model found it that a sentence ends where its text does."""
        if not text.endswith(_ENDS) or text.endswith("..."):
            return 0.0
        if text.endswith(_WIDE_ENDS):
            # In Chinese it leaves the mark out when in doubt; that it wrote one says enough.
            return 1.0
        tokens, logits = result.sequences_ids[0], result.logits[0]
        if not 0 < len(tokens) <= len(logits):
            return 0.0
        step = np.array(logits[len(tokens) - 1], dtype=np.float64).reshape(-1)
        weights = np.exp(step - step.max())
        if self._end_tokens is None:
            vocabulary = self._whisper.hf_tokenizer
            self._end_tokens = [vocabulary.token_to_id(mark) for mark in _NARROW_ENDS] + [tokenizer.eot]
        return float(weights[self._end_tokens].sum() / weights.sum())


def _go_on_if(is_wanted: Callable[[], bool]) -> None:
    if not is_wanted():
        raise Unwanted


def _is_doubtful(result: Transcription, chances: Sequence[tuple[str, float]]) -> bool:
    """Whether the runner-up among the languages may be the right one: one short word often does not tell."""
    if len(chances) < 2 or (result.avg_logprob or 0.0) > _SURE_LOGPROB:
        return False
    return chances[1][1] >= _RUNNER_UP_RATIO * chances[0][1]


def _score(result: Transcription, chance: float) -> float:
    """Weigh how well a text fits against how likely its language is."""
    return (result.avg_logprob or 0.0) + _LANGUAGE_WEIGHT * math.log(max(chance, 1e-6))


def _needs_full(result: Transcription, vad_fraction: float | None) -> bool:
    """Whether a second, slower decoding may change the verdict: flawed text, or weak text where the VAD is sure."""
    if vad_fraction is not None and vad_fraction < MIN_VAD_FRACTION:
        return False
    if result.flaw is not None:
        return True
    is_sure = vad_fraction is None or vad_fraction >= SURE_VAD_FRACTION
    return is_sure and reject(result, vad_fraction=vad_fraction) is not None


def _merge(parts: list[Transcription]) -> Transcription:
    """Put the parts of long audio together, without those that are noise when others are not."""
    if len(parts) == 1:
        return parts[0]
    good = [part for part in parts if part.text and weakness(part) is None] or parts
    main = max(good, key=lambda part: len(part.text))
    text = join_texts([part.text for part in good])
    weights = [max(1, len(part.text)) for part in good]
    return replace(
        main,
        text=text,
        end_chance=parts[-1].end_chance,
        context="full" if any(part.context == "full" for part in parts) else "short",
        retried=any(part.retried for part in parts),
        avg_logprob=float(np.average([part.avg_logprob or 0.0 for part in good], weights=weights)),
        no_speech=min(part.no_speech or 0.0 for part in good),
        compression=compression_ratio(text),
        flaw=next((part.flaw for part in good if part.flaw), None),
    )


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__
