"""The player's memory of one segment: how far it was played, and what that means in words."""

from __future__ import annotations

import bisect
import dataclasses
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from audio.player_render import Segment
from audio.ports import Samples
from orchestrator.contracts.events import OutputFirstSound, OutputWord, TimedViseme, TimedWord
from orchestrator.contracts.ids import GenerationId, IntentId
from orchestrator.speech.words import ends_clause

_SHORT_REST_S = 1.0
_EPSILON_S = 1e-4


Resample = Callable[[Samples, int, int], Samples]
"""Takes sound, its rate and the rate wanted."""


def interpolate(pcm: Samples, from_hz: int, to_hz: int) -> Samples:
    """Return `pcm` at another rate, plainly; for the rare change of a device in the middle of a sentence."""
    places = np.linspace(0, len(pcm) - 1, round(len(pcm) * to_hz / from_hz))
    return np.interp(places, np.arange(len(pcm)), pcm).astype(np.float32)


@dataclass(slots=True, kw_only=True)
class Hold:
    """A generation that is kept back; `is_stopped` once its sound has ended, `attempts` counts its resumes before."""

    token: int
    attempts: int = 0
    is_stopped: bool = False
    is_resume_wanted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """A stop that was asked for and is to be acknowledged; without a generation nobody waits for it."""

    generation_id: GenerationId | None
    is_hold: bool
    asked_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """How a run that goes on began, until it sounds."""

    from_word: str | None
    repeated_words: int
    attempt: int


@dataclass(slots=True, kw_only=True, eq=False)
class PlayedSegment:
    """A segment between its arrival and its end.

    `start` is the frame the next (or present) run begins at; `position` how far the present run came; `words_done`
    how many words have counted as heard; `origin_s` when frame 0 would have been at the loudspeaker in this run.
    """

    segment: Segment
    start: int = 0
    position: int = 0
    words_done: int = 0
    origin_s: float = 0.0
    is_sent: bool = False
    is_running: bool = False
    is_removed: bool = False

    @property
    def generation_id(self) -> GenerationId:
        """The answer it belongs to."""
        return self.segment.generation_id

    @property
    def rest_s(self) -> float:
        """Sound that has not been played."""
        return (self.segment.end - self.position) / self.segment.rate_hz

    def convert(self, resample: Resample, rate_hz: int) -> None:
        """Go on with the same sound, which has to be complete, at another rate."""
        old = self.segment
        pcm = resample(old.pcm[: old.end], old.rate_hz, rate_hz)
        self.segment = dataclasses.replace(old, pcm=pcm, rate_hz=rate_hz, fill=None)
        self.start = min(round(self.start * rate_hz / old.rate_hz), len(pcm))
        self.position = min(round(self.position * rate_hz / old.rate_hz), len(pcm))

    def first_sound(self, at_s: float) -> OutputFirstSound:
        """Describe the run that begins at `at_s`."""
        offset_s = self.start / self.segment.rate_hz
        return OutputFirstSound(
            at_s=at_s,
            start_offset_s=offset_s,
            duration_s=self.segment.end / self.segment.rate_hz - offset_s,
            words=tuple(word for word in self.segment.words if word.end_s > offset_s + _EPSILON_S),
            visemes=_visemes_from(self.segment.visemes, offset_s),
        )

    def take_finished_words(self) -> list[OutputWord]:
        """Return the words whose last frame has been played and that have not been reported."""
        done: list[OutputWord] = []
        words = self.segment.words
        is_over = self.position >= self.segment.end
        while self.words_done < len(words):
            word = words[self.words_done]
            if not is_over and round(word.end_s * self.segment.rate_hz) > self.position:
                break
            done.append(self._report(word, end_s=self.origin_s + word.end_s, is_cut=False))
            self.words_done += 1
        return done

    def cut_word(self) -> TimedWord | None:
        """Return the word the sound stopped inside, None between words."""
        place = self._place()
        if place >= len(self.segment.words):
            return None
        word = self.segment.words[place]
        return word if round(word.start_s * self.segment.rate_hz) < self.position else None

    def cut_report(self, end_s: float) -> OutputWord | None:
        """Return the report of the word the sound stopped inside; None also for a repeated word, heard before."""
        word = self.cut_word()
        if word is None or word.index < self.words_done:
            return None
        return self._report(word, end_s=end_s, is_cut=True)

    def cut_offset(self) -> int:
        """Return the character where what was heard in full ends and the next word begins."""
        words = self.segment.words
        if self.words_done < len(words):
            return words[self.words_done].char_start
        return len(self.segment.text)

    def rewind(self, held_s: float) -> tuple[str | None, int]:
        """Set the start of the next run: the word that was cut, its clause if `held_s` is short.

        Returns:
            The word the sound will begin with (None if nothing is left to say) and how many words are said again.
        """
        words = self.segment.words
        self.is_running = False
        if self.position == 0 or not words:
            self.start = self.position
            return (words[0].text if words else None), 0
        if self._place() >= len(words):
            self.start = self.segment.end
            return None, 0
        first = min(self.words_done, self._place())
        is_inside = (cut := self.cut_word()) is not None and cut.index >= self.words_done
        if held_s < _SHORT_REST_S:
            while first > 0 and not ends_clause(words[first - 1].text):
                first -= 1
        self.start = round(words[first].start_s * self.segment.rate_hz) if first else 0
        return words[first].text, max(0, self.words_done - first) + (1 if is_inside else 0)

    def _place(self) -> int:
        """Return the index of the first word that has not been played to its end in this run."""
        words = self.segment.words
        place = 0
        while place < len(words) and round(words[place].end_s * self.segment.rate_hz) <= self.position:
            place += 1
        return place

    def _report(self, word: TimedWord, *, end_s: float, is_cut: bool) -> OutputWord:
        return OutputWord(
            index=word.index,
            text=word.text,
            char_start=word.char_start,
            char_end=word.char_end,
            at_s=self.origin_s + word.start_s,
            end_s=end_s,
            cut=is_cut,
            estimated=word.estimated,
        )


def _visemes_from(visemes: tuple[TimedViseme, ...], offset_s: float) -> tuple[TimedViseme, ...]:
    if not offset_s or not visemes:
        return visemes
    place = bisect.bisect_right([viseme.start_s for viseme in visemes], offset_s) - 1
    return visemes[max(0, place) :]


class Segments:
    """What the player has: `items` in order, and what was removed while the device still fades it out."""

    def __init__(self) -> None:
        """Begin empty."""
        self.items: list[PlayedSegment] = []
        self._leaving: dict[IntentId, tuple[PlayedSegment, int]] = {}

    def __len__(self) -> int:
        return len(self.items) + len(self._leaving)

    def of(self, generation_id: GenerationId) -> list[PlayedSegment]:
        """Return those of a generation, in order."""
        return [item for item in self.items if item.generation_id == generation_id]

    def find(self, segment: Segment) -> PlayedSegment | None:
        """Return the memory of `segment`, also of one that is leaving."""
        for item in self.items:
            if item.segment is segment:
                return item
        leaving = self._leaving.get(segment.intent_id)
        return leaving[0] if leaving is not None and leaving[0].segment is segment else None

    def running(self) -> PlayedSegment | None:
        """Return the one that sounds."""
        return next((item for item in self.items if item.is_running), None)

    def remove(self, item: PlayedSegment, token: int | None) -> None:
        """Take `item` out; with the `token` of a stop, it is remembered until that is done."""
        item.is_removed = True
        self.items.remove(item)
        if token is not None:
            self._leaving[item.segment.intent_id] = (item, token)

    def has_left(self, token: int) -> None:
        """Forget what was leaving with `token`."""
        self._leaving = {key: gone for key, gone in self._leaving.items() if gone[1] != token}

    def forget(self, item: PlayedSegment) -> None:
        """Forget `item`, which was played to its end."""
        item.is_running = False
        if item in self.items:
            self.items.remove(item)
        self._leaving.pop(item.segment.intent_id, None)


class RecentText:
    """What sounded lately, word by word, for telling the character's own voice from the user's."""

    def __init__(self, kept_s: float) -> None:
        """Remember `kept_s` seconds."""
        self._kept_s = kept_s
        self._words: deque[tuple[float, Segment, int, int]] = deque()

    def add(self, segment: Segment, word: OutputWord) -> None:
        """Remember that `word` of `segment` sounded until its `end_s`."""
        self._words.append((word.end_s, segment, word.char_start, word.char_end))
        while self._words and self._words[0][0] < word.end_s - self._kept_s:
            self._words.popleft()

    def text(self, since_s: float, until_s: float, current: PlayedSegment | None) -> str:
        """Return what sounded after `since_s`, with the words of `current` that have begun before `until_s`."""
        runs: list[tuple[Segment, int, int]] = []

        def extend(segment: Segment, start: int, end: int) -> None:
            if runs and runs[-1][0] is segment and start >= runs[-1][1]:
                runs[-1] = (segment, runs[-1][1], max(end, runs[-1][2]))
            else:
                runs.append((segment, start, end))

        for end_s, segment, start, end in self._words:
            if end_s >= since_s:
                extend(segment, start, end)
        if current is not None and current.is_running:
            for word in current.segment.words[current.words_done :]:
                if current.origin_s + word.start_s > until_s:
                    break
                extend(current.segment, word.char_start, word.char_end)
        return " ".join(segment.text[start:end] for segment, start, end in runs)
