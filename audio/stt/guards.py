"""Signs that a decoder ran away: repeated text, and more words than fit into the audio. Pure."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from audio.stt.text import has_cjk, units

MAX_COMPRESSION = 2.4
"""zlib ratio above which a text repeats itself; the limit Whisper's own decoder uses."""

MAX_WORDS_PER_S = 5.5
MAX_CHARS_PER_S = 7.5
"""Faster than any recorded speaker (5.2 words, 5.5 characters a second)."""

_MIN_UNITS_FOR_RATE = 7
_MIN_PERIOD_WORDS = 3
_MIN_PERIOD_CHARS = 4
_MIN_TAIL_UNITS = 6


def compression_ratio(text: str) -> float:
    """Return how much shorter zlib makes `text`; short texts are below 1."""
    raw = text.encode()
    return len(raw) / len(zlib.compress(raw)) if raw else 0.0


def find_flaw(text: str, *, audio_s: float, is_capped: bool) -> str | None:
    """Name what is wrong with the decoded `text`: capped, compressed, repeated or too_fast; None if nothing is.

    `is_capped` says that decoding was stopped by the token limit. A speaker who really says a phrase three times is
    flagged, too: the caller decodes again and believes the second result.
    """
    if is_capped:
        return "capped"
    if compression_ratio(text) > MAX_COMPRESSION:
        return "compressed"
    found = units(text)
    is_chinese = has_cjk(text)
    if _is_periodic(found, _MIN_PERIOD_CHARS if is_chinese else _MIN_PERIOD_WORDS) or _repeats_at_end(found):
        return "repeated"
    limit = MAX_CHARS_PER_S if is_chinese else MAX_WORDS_PER_S
    if len(found) >= _MIN_UNITS_FOR_RATE and len(found) > limit * audio_s:
        return "too_fast"
    return None


def _is_periodic(found: Sequence[str], min_period: int) -> bool:
    """Whether the whole sequence is one passage of at least `min_period` units, said at least twice."""
    count = len(found)
    return any(
        all(found[i] == found[i + period] for i in range(count - period))
        for period in range(min_period, count // 2 + 1)
    )


def _repeats_at_end(found: Sequence[str]) -> bool:
    """Whether the last passage stands there three times, over at least six units."""
    for length in range(1, len(found) // 3 + 1):
        last = found[-length:]
        times = 1
        while found[-length * (times + 1) : -length * times] == last:
            times += 1
        if times >= 3 and times * length >= _MIN_TAIL_UNITS:
            return True
    return False
