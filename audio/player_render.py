"""The callback's half of the player: fills one block at a time and reports what it did.

Everything here runs on the device's thread: no locks, no logging, no waiting. Commands come in and reports go out
through deques, whose append and popleft are atomic.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

import numpy as np

from audio.ports import Samples
from orchestrator.contracts.events import TimedViseme, TimedWord
from orchestrator.contracts.ids import GenerationId, IntentId

FADE_S = 0.006
"""Length of the fade on a cut and on a resume: short enough for a block, long enough not to click."""

_MAX_BLOCK = 8192
_STRETCH_GAP_S = 0.35
_REPORTS_KEPT = 60_000


class ReferenceSink(Protocol):
    """Takes what was really played, for the echo canceller. Called from the device's thread."""

    def write(self, block: Samples, at_s: float) -> object:
        """Keep a copy of `block`, whose first sample is at the loudspeaker at `at_s`."""
        ...


@dataclass(slots=True, kw_only=True, eq=False)
class Fill:
    """How far the sound of a segment has been made: frames before `ready` can be played, `end` of them there will be.

    Written by the thread that makes the sound, `end` before `ready`; `end` only ever shrinks, and stays above what
    was ready before, so that a segment never turns out to be over after its last frame was played.
    """

    ready: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Segment:
    """The sound of one intent, at the device's rate. `pause_after_s` is the silence before the next segment.

    With a `fill`, `pcm` has room for the whole sound and is still being filled.
    """

    intent_id: IntentId
    generation_id: GenerationId
    text: str
    pcm: Samples
    rate_hz: int
    words: tuple[TimedWord, ...]
    visemes: tuple[TimedViseme, ...] = ()
    interruptible: bool = True
    pause_after_s: float = 0.18
    fill: Fill | None = None

    @property
    def ready(self) -> int:
        """How many frames can be played."""
        return len(self.pcm) if self.fill is None else self.fill.ready

    @property
    def end(self) -> int:
        """How many frames there are, or will be at most."""
        return len(self.pcm) if self.fill is None else self.fill.end

    @property
    def is_complete(self) -> bool:
        """Whether nothing is still to come."""
        return self.fill is None or self.fill.ready >= self.fill.end


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """Command: append `segment` from frame `start` on."""

    segment: Segment
    start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Freeze:
    """Command: stop at the first segment that is one of `intents` and forget the playlist from there on."""

    intents: frozenset[IntentId]
    token: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Remove:
    """Command: stop and forget the segments of a generation, or one intent; the others go on."""

    generation_id: GenerationId | None
    intent_id: IntentId | None
    token: int

    def hits(self, segment: Segment) -> bool:
        """Whether `segment` is meant."""
        return segment.generation_id == self.generation_id or segment.intent_id == self.intent_id


@dataclass(frozen=True, slots=True, kw_only=True)
class SetGain:
    """Command: go to the linear gain `target` within `frames`. `token` 0 asks for no report."""

    target: float
    frames: int
    token: int = 0


Command = Play | Freeze | Remove | SetGain


class ReportKind(IntEnum):
    """What a report tells."""

    PLAYED = 0
    STOPPED = 1
    GAIN = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What the callback did. Times are at the loudspeaker.

    PLAYED: frames `first`…`end` of `segment` from `at_s` to `end_s`. STOPPED: `token` is done; `segment` (None if
    nothing sounded) stopped before frame `end`, the fade from `at_s` to `end_s`. GAIN: the ramp of `token` began.
    """

    kind: ReportKind
    at_s: float
    end_s: float
    segment: Segment | None = None
    first: int = 0
    end: int = 0
    token: int = 0


class Renderer:
    """Playlist, position, fades and gain of the device callback.

    `sounding` is the segment being played or about to be (in the pause before it), `sound_end_s` when the last
    sample handed to the device will have sounded, `stretch_since_s` when the present stretch of sound began,
    `waits` how many holes there were within a segment because its sound was not made in time.
    """

    def __init__(self, rate_hz: int, reference: ReferenceSink | None = None) -> None:
        """Render at `rate_hz`; blocks go to `reference`, too."""
        self.commands: deque[Command] = deque()
        self.reports: deque[Report] = deque(maxlen=_REPORTS_KEPT)
        self.sounding: Segment | None = None
        self.last_segment: Segment | None = None
        self.sound_end_s = 0.0
        self.stretch_since_s = 0.0
        self.blocks = 0
        self.waits = 0
        self._is_waiting = False
        self._reference = reference
        self._playlist: deque[Play] = deque()
        self._position = 0
        self._pause_left = 0
        self._silent_frames = 1 << 40
        self._stops: list[int] = []
        self._fade_at = 0
        self._fade_in_at = 1 << 30
        self._stop_at_s = 0.0
        self._gain = 1.0
        self._gain_target = 1.0
        self._gain_step = 0.0
        self._ramp_left = 0
        self._is_gain_reset_due = False
        self._index = np.arange(1, _MAX_BLOCK + 1, dtype=np.float32)
        self._scratch = np.zeros(_MAX_BLOCK, dtype=np.float32)
        self.set_rate(rate_hz)

    def set_rate(self, rate_hz: int) -> None:
        """Change the rate; only while no callback runs."""
        self.rate_hz = rate_hz
        count = max(2, round(FADE_S * rate_hz))
        phase = np.arange(1, count + 1, dtype=np.float32) / np.float32(count)
        self._fade_in: Samples = (0.5 - 0.5 * np.cos(np.pi * phase)).astype(np.float32)
        self._fade_out: Samples = (0.5 + 0.5 * np.cos(np.pi * phase)).astype(np.float32)
        self._fade_frames = count

    def render(self, out: Samples, dac_time_s: float) -> None:
        """Fill the mono block `out`, whose first sample is at the loudspeaker at `dac_time_s`."""
        self.blocks += 1
        for start in range(0, len(out), _MAX_BLOCK):
            part = out[start : start + _MAX_BLOCK]
            self._render_part(part, dac_time_s + start / self.rate_hz)

    def settle(self, now_s: float) -> None:
        """Apply the waiting commands at once, without sound; only while no callback runs."""
        self._apply_commands(now_s)
        self._end_stop(now_s)

    def evict(self) -> tuple[Segment, int] | None:
        """Forget the playlist; return what was being played and how far. Only while no callback runs."""
        current = (self.sounding, self._position) if self.sounding is not None else None
        self._playlist.clear()
        self.sounding = None
        self._pause_left = 0
        self._gain = self._gain_target
        self._ramp_left = 0
        return current

    def _render_part(self, out: Samples, dac_s: float) -> None:
        frames = len(out)
        self._apply_commands(dac_s)
        at = 0
        while at < frames:
            if self.sounding is None and not self._start_next():
                break
            if self._pause_left:
                count = min(self._pause_left, frames - at)
                out[at : at + count] = 0.0
                self._pause_left -= count
                self._silent_frames += count
                at += count
                continue
            if self.sounding is not None and self.sounding.ready <= self._position:
                if self._stops:
                    self._end_stop(dac_s + at / self.rate_hz)
                    continue
                self._wait()
                break
            at += self._copy(out, at, dac_s + at / self.rate_hz)
        if at < frames:
            out[at:] = 0.0
            self._silent_frames += frames - at
        self._apply_gain(out)
        if self._reference is not None:
            self._reference.write(out, dac_s)

    def _wait(self) -> None:
        """Be silent until more of the segment has been made, and begin softly then."""
        self.waits += 0 if self._is_waiting else 1
        self._is_waiting = True
        self._fade_in_at = 0

    def _start_next(self) -> bool:
        if not self._playlist:
            return False
        play = self._playlist.popleft()
        pause_s = self.last_segment.pause_after_s if self.last_segment is not None else 0.0
        self._pause_left = max(0, int(pause_s * self.rate_hz) - self._silent_frames)
        self._position = play.start
        self._fade_in_at = 0 if play.start else self._fade_frames
        self.sounding = play.segment
        return True

    def _copy(self, out: Samples, at: int, at_s: float) -> int:
        segment = self.sounding
        assert segment is not None
        ready = segment.ready
        count = min(ready - self._position, len(out) - at)
        is_dry = self._position + count >= ready and at + count < len(out)
        self._is_waiting = False
        if self._stops:
            count = min(count, self._fade_frames - self._fade_at)
        view = out[at : at + count]
        np.copyto(view, segment.pcm[self._position : self._position + count])
        if self._stops:
            np.multiply(view, self._fade_out[self._fade_at : self._fade_at + count], out=view)
            self._fade_at += count
        if self._fade_in_at < self._fade_frames:
            ramp = self._fade_in[self._fade_in_at : self._fade_in_at + count]
            faded = view[: len(ramp)]
            np.multiply(faded, ramp, out=faded)
            self._fade_in_at += len(ramp)
        if is_dry and ready < segment.end and not self._stops:
            tail = min(count, self._fade_frames)
            np.multiply(view[count - tail :], self._fade_out[self._fade_frames - tail :], out=view[count - tail :])
        if self._silent_frames > _STRETCH_GAP_S * self.rate_hz:
            self.stretch_since_s = at_s
        self._silent_frames = 0
        end_s = at_s + count / self.rate_hz
        self.sound_end_s = end_s
        self.last_segment = segment
        self.reports.append(
            Report(
                kind=ReportKind.PLAYED,
                at_s=at_s,
                end_s=end_s,
                segment=segment,
                first=self._position,
                end=self._position + count,
            )
        )
        self._position += count
        is_over = self._position >= segment.end
        if self._stops and (is_over or self._fade_at >= self._fade_frames):
            self._end_stop(end_s)
        elif is_over:
            self.sounding = None
        return count

    def _end_stop(self, end_s: float) -> None:
        """Report every waiting stop as done and leave the current segment."""
        if not self._stops:
            return
        segment: Segment | None = self.sounding
        for token in self._stops:
            self.reports.append(
                Report(
                    kind=ReportKind.STOPPED,
                    at_s=self._stop_at_s,
                    end_s=end_s,
                    segment=segment,
                    end=self._position,
                    token=token,
                )
            )
            segment = None
        self._stops.clear()
        self.sounding = None
        self._pause_left = 0
        self._is_gain_reset_due = True

    def _apply_commands(self, dac_s: float) -> None:
        while self.commands:
            command = self.commands.popleft()
            if isinstance(command, Play):
                self._playlist.append(command)
            elif isinstance(command, SetGain):
                self._begin_ramp(command, dac_s)
            else:
                self._begin_stop(command, dac_s)

    def _begin_stop(self, command: Freeze | Remove, dac_s: float) -> None:
        current = self.sounding
        if isinstance(command, Remove):
            is_current = current is not None and command.hits(current)
            kept = [play for play in self._playlist if not command.hits(play.segment)]
        else:
            is_current = current is not None and current.intent_id in command.intents
            kept = []
            for play in () if is_current else self._playlist:
                if play.segment.intent_id in command.intents:
                    break
                kept.append(play)
        if len(kept) != len(self._playlist):
            self._playlist.clear()
            self._playlist.extend(kept)
        if is_current and (self._stops or not self._pause_left):
            if not self._stops:
                self._fade_at = 0
                self._stop_at_s = dac_s
            self._stops.append(command.token)
            return
        if is_current:
            self.sounding = None
            self._pause_left = 0
        self.reports.append(
            Report(kind=ReportKind.STOPPED, at_s=dac_s, end_s=max(dac_s, self._still_s()), token=command.token)
        )

    def _still_s(self) -> float:
        """Return when the sound that is already in the device's buffer will be over, if nothing else plays."""
        return 0.0 if self.sounding is not None else self.sound_end_s

    def _begin_ramp(self, command: SetGain, dac_s: float) -> None:
        self._gain_target = command.target
        self._ramp_left = max(1, min(command.frames, _MAX_BLOCK))
        self._gain_step = (command.target - self._gain) / self._ramp_left
        if command.token:
            self.reports.append(Report(kind=ReportKind.GAIN, at_s=dac_s, end_s=dac_s, token=command.token))

    def _apply_gain(self, out: Samples) -> None:
        done = 0
        if self._ramp_left:
            done = min(self._ramp_left, len(out))
            ramp = self._scratch[:done]
            np.multiply(self._index[:done], self._gain_step, out=ramp)
            np.add(ramp, self._gain, out=ramp)
            view = out[:done]
            np.multiply(view, ramp, out=view)
            self._gain += self._gain_step * done
            self._ramp_left -= done
            if not self._ramp_left:
                self._gain = self._gain_target
        if done < len(out) and self._gain != 1.0:
            view = out[done:]
            np.multiply(view, self._gain, out=view)
        if self._is_gain_reset_due:
            self._is_gain_reset_due = False
            # A cut ends the ducking with the sound; what a mute set stays.
            if self._gain_target > 0.0 and (self.sounding is None or self._pause_left):
                self._gain = self._gain_target = 1.0
                self._ramp_left = 0
