"""Mouth shapes: from phonemes (IPA as espeak writes it), or from loudness where there are none."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from audio.ports import Samples
from orchestrator.contracts.events import TimedViseme

REST = "rest"
SHAPES: tuple[str, ...] = (REST, "aa", "ae", "ee", "ih", "oh", "oo", "fv", "mbp", "l", "th", "sz", "r")
"""The closed list; an avatar pack has a picture for each (several may share one)."""

_BY_SHAPE: dict[str, str] = {
    "aa": "aɑɐʌäɒ",
    "ae": "æɛeœ",
    "ee": "ijyɨ",
    "ih": "ɪəɘɤɯɵʏkɡghxɣŋʔɦχħcɟçɲqʁ",
    "oh": "oɔøɞ",
    "oo": "uʊwʉʍɥ",
    "fv": "fvɱʋ",
    "mbp": "mbpɓβɸ",
    "l": "lɫɭʎɬɾnɳtdʈɖ",
    "th": "θð",
    "sz": "szʃʒʂʐɕʑ",
    "r": "rɹɻɚɝɜʀɽ",
}
_SHAPE_OF: dict[str, str] = {phoneme: shape for shape, phonemes in _BY_SHAPE.items() for phoneme in phonemes}
_CLOSING = frozenset(".,;:!?^$…—。，")
_LOUDNESS_STEP_S = 0.04


def shape_of(phoneme: str) -> str | None:
    """Return the mouth shape of one phoneme; None for marks (stress, length, tone, space) that do not move it."""
    if phoneme in _CLOSING:
        return REST
    return _SHAPE_OF.get(phoneme)


def visemes_from_phonemes(timed: Iterable[tuple[str, float]], *, duration_s: float) -> tuple[TimedViseme, ...]:
    """Turn (phoneme, start_s) pairs in order into mouth shapes; the first and the last are `rest`."""
    shapes: list[TimedViseme] = [TimedViseme(shape=REST, start_s=0.0)]
    for phoneme, start_s in timed:
        shape = shape_of(phoneme)
        if shape is None or shape == shapes[-1].shape:
            continue
        at_s = max(0.0, start_s)
        if at_s <= shapes[-1].start_s:
            shapes.pop()
        if not shapes or shapes[-1].shape != shape:
            shapes.append(TimedViseme(shape=shape, start_s=at_s))
    if shapes[-1].shape != REST:
        shapes.append(TimedViseme(shape=REST, start_s=duration_s))
    return tuple(shapes)


def visemes_from_loudness(pcm: Samples, rate_hz: int) -> tuple[TimedViseme, ...]:
    """Open the mouth by how loud `pcm` is: rest, ih, ae, aa in steps of 40 ms."""
    step = max(1, int(rate_hz * _LOUDNESS_STEP_S))
    shapes: list[TimedViseme] = [TimedViseme(shape=REST, start_s=0.0)]
    count = len(pcm) // step
    if count:
        frames = pcm[: count * step].reshape(count, step)
        levels = np.sqrt(np.mean(np.square(frames), axis=1))
        loud = max(float(np.percentile(levels, 90)), 1e-4)
        for index, level in enumerate(levels / loud):
            shape = REST if level < 0.12 else "ih" if level < 0.4 else "ae" if level < 0.75 else "aa"
            if shape != shapes[-1].shape:
                if shapes[-1].start_s == index * step / rate_hz:
                    shapes.pop()
                shapes.append(TimedViseme(shape=shape, start_s=index * step / rate_hz))
    if shapes[-1].shape != REST:
        shapes.append(TimedViseme(shape=REST, start_s=len(pcm) / rate_hz))
    return tuple(shapes)
