"""The player: what is to sound, in order, what really sounded, and every way to stop it."""

from __future__ import annotations

import dataclasses
import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable

from audio.player_ledger import Hold, PlayedSegment, RecentText, Resumed, Segments, Stop, interpolate
from audio.player_level import VoiceLevel
from audio.player_outbox import Outbox, PlayerListener
from audio.player_render import (
    Fill,
    Freeze,
    Play,
    ReferenceSink,
    Remove,
    Renderer,
    Report,
    ReportKind,
    Segment,
)
from audio.ports import Audible, Samples
from orchestrator.clock import Clock
from orchestrator.contracts.events import (
    OutputCut,
    OutputDuck,
    OutputResume,
    OutputStateChanged,
    OutputUnduck,
)
from orchestrator.contracts.ids import GenerationId, IntentId
from orchestrator.contracts.ports import EventSink

__all__ = ["Fill", "Player", "PlayerListener", "ReferenceSink", "Segment"]

_RECENT_S = 10.0
_PURGED_KEPT = 256
_ACK_LIMIT_S = 1.0
_STARVED_AFTER_S = 0.18
_SOURCE = "player"


class Player:
    """Plays segments in order without gaps but the natural pauses, and knows to the sample what was played.

    `render` belongs to the device's thread (or the simulator); every other method may be called from any thread and
    returns at once. `poll` turns what was played into events and must be called about every 10 ms by one thread.
    A held generation stands aside: another one may play meanwhile. Bounded by its caller (the speech worker
    synthesises only a little ahead). Counters: `starved` (sound was made too late), `underflows` (the device said so),
    `refused` (segments of a purged generation).
    """

    def __init__(
        self,
        *,
        rate_hz: int,
        clock: Clock,
        events: EventSink,
        reference: ReferenceSink | None = None,
        listener: PlayerListener | None = None,
        resample: Callable[[Samples, int, int], Samples] | None = None,
    ) -> None:
        """Play at `rate_hz`. `resample(pcm, from_hz, to_hz)` is needed only if the device's rate changes."""
        self._clock = clock
        self._events = events
        self._resample = resample or interpolate
        self._renderer = Renderer(rate_hz, reference)
        self._lock = threading.Lock()
        self._outbox = Outbox(events, _SOURCE, self._lock, listener)
        self._level = VoiceLevel(self._renderer.commands)
        self._segments = Segments()
        self._held: dict[GenerationId, Hold] = {}
        self._attempts: OrderedDict[GenerationId, int] = OrderedDict()
        self._purged: OrderedDict[GenerationId, None] = OrderedDict()
        self._stops: dict[int, Stop] = {}
        self._resumed: dict[IntentId, Resumed] = {}
        self._tokens = itertools.count(1)
        self._recent = RecentText(_RECENT_S * 2)
        self._is_attached = True
        self._is_speaking = False
        self._last_end_s = -1e9
        self._last_pause_s = 0.0
        self._last_generation: GenerationId | None = None
        self._starved = 0
        self.underflows = 0
        self.refused = 0

    # --- the device's side --------------------------------------------------------------------------------

    @property
    def rate_hz(self) -> int:
        """Rate of the segments it takes and the blocks it fills."""
        return self._renderer.rate_hz

    def render(self, out: Samples, dac_time_s: float) -> None:
        """Fill the mono block `out`, whose first sample is at the loudspeaker at `dac_time_s`; never waits."""
        self._renderer.render(out, dac_time_s)

    @property
    def starved(self) -> int:
        """How often there was silence because sound had not been made in time."""
        return self._starved + self._renderer.waits

    def note_underflow(self) -> None:
        """Count a hole the device reported."""
        self.underflows += 1

    def detach(self) -> None:
        """Go on without a device: call after its stream was closed. What was playing waits for `attach`."""
        with self._lock:
            self._let_go()
        self._outbox.flush()

    def attach(self, rate_hz: int) -> None:
        """Go on with a device at `rate_hz`: call before its stream is opened."""
        with self._lock:
            if rate_hz != self._renderer.rate_hz:
                self._let_go()
                self._renderer.set_rate(rate_hz)
            self._is_attached = True
            self._push()
        self._outbox.flush()

    def set_listener(self, listener: PlayerListener) -> None:
        """Tell `listener` of the life of the segments from now on."""
        self._outbox.listener = listener

    # --- control ------------------------------------------------------------------------------------------

    def enqueue(self, segment: Segment) -> bool:
        """Append `segment`; False if its generation was purged or its rate is not the player's.

        One that is still being made may have another rate: it is converted when it is complete, and waits until then.
        """
        with self._lock:
            is_unfit = segment.rate_hz != self._renderer.rate_hz and segment.is_complete
            if segment.generation_id in self._purged or is_unfit:
                self.refused += 1
                return False
            self._segments.items.append(PlayedSegment(segment=segment))
            self._push()
            return True

    def audible(self) -> Audible | None:
        """Return what sounds or is in the device's buffer; None in silence, when held or muted."""
        now_s = self._clock.monotonic_s()
        segment = self._renderer.sounding
        if segment is None and now_s < self._renderer.sound_end_s:
            segment = self._renderer.last_segment
        if segment is None or self._level.is_muted or not self._is_attached:
            return None
        if segment.generation_id in self._held or segment.generation_id in self._purged:
            return None
        return Audible(
            generation_id=segment.generation_id,
            intent_id=segment.intent_id,
            interruptible=segment.interruptible,
            since_s=self._renderer.stretch_since_s,
            recent_text=self.recent_text(_RECENT_S),
        )

    def recent_text(self, within_s: float) -> str:
        """Return the text that sounded in the last `within_s` seconds, up to the word that sounds now."""
        now_s = self._clock.monotonic_s()
        with self._lock:
            return self._recent.text(now_s - within_s, now_s, self._segments.running())

    def duck(self, *, gain_db: float, ramp_s: float) -> None:
        """Lower the voice to `gain_db` within `ramp_s`, from the next block on."""
        with self._lock:
            self._level.duck(gain_db, ramp_s, self.rate_hz, next(self._tokens))

    def unduck(self, *, ramp_s: float) -> None:
        """Bring the voice back to full level within `ramp_s`."""
        with self._lock:
            self._level.unduck(ramp_s, self.rate_hz, next(self._tokens))

    def set_muted(self, on: bool) -> None:
        """Make the voice silent or audible again; what plays goes on unheard and its words are counted as shown."""
        with self._lock:
            self._level.mute(on, self.rate_hz)

    def cut(self) -> GenerationId | None:
        """Fade out at once and hold what is unplayed; return the held generation, None if nothing was there."""
        segment = self._renderer.sounding
        with self._lock:
            if segment is not None and segment.generation_id not in self._purged:
                generation_id = segment.generation_id
            else:
                waiting = next((item for item in self._segments.items if item.generation_id not in self._held), None)
                if waiting is None:
                    return None
                generation_id = waiting.generation_id
        self.hold(generation_id)
        return generation_id

    def hold(self, generation_id: GenerationId) -> None:
        """Fade out and keep what is unplayed of the generation, also what comes later. Holding twice is once."""
        with self._lock:
            if generation_id in self._held or generation_id in self._purged:
                return
            token = next(self._tokens)
            self._held[generation_id] = Hold(token=token, attempts=self._attempts.get(generation_id, 0))
            behind = list(itertools.dropwhile(lambda item: item.generation_id != generation_id, self._segments.items))
            for item in behind:
                item.is_sent = False
            self._level.note_cut()
            stopped = frozenset(item.segment.intent_id for item in behind)
            self._send_stop(Freeze(intents=stopped, token=token), generation_id, is_hold=True)
            self._outbox.held(generation_id)
            self._push()
        self._outbox.flush()

    def resume(self, generation_id: GenerationId) -> None:
        """Go on with a held generation from the start of the cut word (of its clause if < 1 s was left)."""
        with self._lock:
            hold = self._held.get(generation_id)
            if hold is None:
                return
            if hold.is_stopped:
                self._resume_now(generation_id)
            else:
                hold.is_resume_wanted = True
        self._outbox.flush()

    def purge(self, generation_id: GenerationId) -> None:
        """Stop and forget everything of the generation, for good; `output:state` stopped acknowledges."""
        with self._lock:
            self._purged[generation_id] = None
            while len(self._purged) > _PURGED_KEPT:
                self._purged.popitem(last=False)
            hold = self._held.pop(generation_id, None)
            self._attempts.pop(generation_id, None)
            gone = self._segments.of(generation_id)
            is_in_device = any(item.is_sent for item in gone) or (hold is not None and not hold.is_stopped)
            token = next(self._tokens)
            for item in gone:
                self._resumed.pop(item.segment.intent_id, None)
                self._segments.remove(item, token if is_in_device else None)
            if is_in_device:
                command = Remove(generation_id=generation_id, intent_id=None, token=token)
                self._send_stop(command, generation_id, is_hold=False)
            else:
                self._outbox.tell(OutputStateChanged(state="stopped", at_s=self._clock.monotonic_s()), generation_id)
            self._push()
        self._outbox.flush()

    def withdraw(self, intent_id: IntentId) -> bool:
        """Stop and forget one intent; the others go on. False if it is not here."""
        with self._lock:
            item = next((item for item in self._segments.items if item.segment.intent_id == intent_id), None)
            if item is None:
                return False
            self._resumed.pop(intent_id, None)
            token = next(self._tokens)
            self._segments.remove(item, token if item.is_sent else None)
            if item.is_sent:
                command = Remove(generation_id=None, intent_id=intent_id, token=token)
                self._send_stop(command, None, is_hold=False)
            self._push()
        self._outbox.flush()
        return True

    def take_back(self) -> list[tuple[IntentId, int]]:
        """Hand back everything unplayed as (intent, words done) and forget it; only while no stream is open."""
        with self._lock:
            self._let_go()
            taken = [(item.segment.intent_id, item.words_done) for item in self._segments.items]
            self._segments.items.clear()
            self._resumed.clear()
        self._outbox.flush()
        return taken

    def ahead_s(self) -> float:
        """Return how much sound waits or plays."""
        with self._lock:
            return sum(item.rest_s for item in self._segments.items)

    def is_idle(self) -> bool:
        """Whether nothing waits, plays, or is still to be reported."""
        with self._lock:
            return not len(self._segments) and not self._renderer.reports and not self._stops

    def holds(self, generation_id: GenerationId) -> bool:
        """Whether the generation is held."""
        return generation_id in self._held

    def poll(self, now_s: float) -> None:
        """Post what has sounded by `now_s`."""
        with self._lock:
            if not self._is_attached:
                self._renderer.settle(now_s)
            self._drain(now_s, is_everything_due=not self._is_attached)
            self._close_unanswered(now_s)
            # What was still being made at another device's rate may be complete by now.
            self._push()
        self._outbox.flush()

    # --- inside, under the lock ---------------------------------------------------------------------------

    def _let_go(self) -> None:
        """Take everything back from a callback that does not run any more."""
        if not self._is_attached:
            return
        self._is_attached = False
        now_s = self._clock.monotonic_s()
        self._renderer.settle(now_s)
        self._drain(now_s, is_everything_due=True)
        self._renderer.evict()
        for item in self._segments.items:
            if item.is_sent:
                item.is_sent = False
                if item.is_running:
                    item.rewind(held_s=float("inf"))

    def _push(self) -> None:
        """Hand the segments that are not held to the callback."""
        if not self._is_attached:
            return
        for item in self._segments.items:
            if item.generation_id not in self._held and not item.is_sent:
                if item.segment.rate_hz != self._renderer.rate_hz:
                    if not item.segment.is_complete:
                        return
                    item.convert(self._resample, self._renderer.rate_hz)
                item.is_sent = True
                self._renderer.commands.append(Play(segment=item.segment, start=item.start))

    def _send_stop(self, command: Freeze | Remove, generation_id: GenerationId | None, *, is_hold: bool) -> None:
        self._stops[command.token] = Stop(
            generation_id=generation_id, is_hold=is_hold, asked_s=self._clock.monotonic_s()
        )
        self._renderer.commands.append(command)
        if not self._is_attached:
            now_s = self._clock.monotonic_s()
            self._renderer.settle(now_s)
            self._drain(now_s, is_everything_due=True)

    def _drain(self, now_s: float, *, is_everything_due: bool) -> None:
        reports = self._renderer.reports
        while reports and (is_everything_due or reports[0].end_s <= now_s):
            report = reports.popleft()
            if report.kind is ReportKind.PLAYED:
                self._on_played(report)
            elif report.kind is ReportKind.STOPPED:
                self._on_stopped(report)
            else:
                self._on_gain(report)

    def _on_played(self, report: Report) -> None:
        segment = report.segment
        assert segment is not None
        item = self._segments.find(segment)
        if item is None:
            return
        ids = (segment.generation_id, segment.intent_id)
        item.origin_s = report.at_s - report.first / segment.rate_hz
        if not item.is_running:
            self._on_run_begun(item, report)
        item.position = report.end
        for word in item.take_finished_words():
            said = dataclasses.replace(word, estimated=True) if self._level.is_muted else word
            self._recent.add(segment, said)
            self._outbox.tell(said, *ids)
        self._last_end_s = report.end_s
        self._last_generation = segment.generation_id
        self._last_pause_s = segment.pause_after_s
        if report.end >= segment.end:
            self._forget(item)
            self._outbox.played(segment.intent_id)

    def _on_run_begun(self, item: PlayedSegment, report: Report) -> None:
        segment = item.segment
        ids = (segment.generation_id, segment.intent_id)
        item.is_running = True
        late_s = report.at_s - self._last_end_s
        if self._last_generation == segment.generation_id and segment.intent_id not in self._resumed:
            self._starved += late_s > self._last_pause_s + _STARVED_AFTER_S
        resumed = self._resumed.pop(segment.intent_id, None)
        if resumed is not None:
            self._outbox.tell(
                OutputResume(
                    at_s=report.at_s,
                    from_word=resumed.from_word,
                    repeated_words=resumed.repeated_words,
                    attempt=resumed.attempt,
                ),
                *ids,
            )
        if not self._level.is_muted:
            self._outbox.tell(item.first_sound(report.at_s), *ids)
        if not self._is_speaking:
            self._is_speaking = True
            self._outbox.tell(OutputStateChanged(state="speaking", at_s=report.at_s), segment.generation_id)
        if not item.is_removed:
            self._outbox.playing(segment.intent_id)

    def _on_stopped(self, report: Report) -> None:
        stop = self._stops.pop(report.token, None)
        item = self._segments.find(report.segment) if report.segment is not None else None
        if item is not None and item.is_running:
            self._report_cut(item, report)
        self._segments.has_left(report.token)
        if stop is None or stop.generation_id is None:
            return
        self._is_speaking = self._is_speaking and self._renderer.sounding is not None
        self._outbox.tell(OutputStateChanged(state="stopped", at_s=report.end_s), stop.generation_id)
        if not stop.is_hold:
            return
        hold = self._held.get(stop.generation_id)
        if hold is None or hold.token != report.token:
            return
        hold.is_stopped = True
        self._outbox.tell(OutputStateChanged(state="held", at_s=report.end_s), stop.generation_id)
        if hold.is_resume_wanted:
            self._resume_now(stop.generation_id)

    def _report_cut(self, item: PlayedSegment, report: Report) -> None:
        segment = item.segment
        ids = (segment.generation_id, segment.intent_id)
        item.position = report.end
        word = item.cut_word()
        said = item.cut_report(report.end_s)
        if said is not None:
            self._recent.add(segment, said)
            self._outbox.tell(said, *ids)
        if item.is_removed:
            held_s = 0.0
        else:
            held_s = sum(other.rest_s for other in self._segments.items if other.generation_id == item.generation_id)
        self._outbox.tell(
            OutputCut(
                at_s=report.at_s,
                last_sample_at_s=report.end_s,
                word=None if word is None else word.text,
                char_offset=item.cut_offset(),
                held_s=held_s,
            ),
            *ids,
        )
        item.is_running = False

    def _on_gain(self, report: Report) -> None:
        ask = self._level.begun(report.token)
        if ask is None:
            return
        gain_db, ramp_s = ask
        segment = self._renderer.sounding or self._renderer.last_segment
        generation_id = segment.generation_id if segment is not None else None
        kind = OutputDuck if gain_db < 0.0 else OutputUnduck
        self._outbox.tell(kind(at_s=report.at_s, gain_db=gain_db, ramp_s=ramp_s), generation_id)
        if self._is_speaking:
            state = "ducked" if gain_db < 0.0 else "speaking"
            self._outbox.tell(OutputStateChanged(state=state, at_s=report.at_s), generation_id)

    def _resume_now(self, generation_id: GenerationId) -> None:
        hold = self._held.pop(generation_id)
        attempt = hold.attempts + 1
        self._attempts[generation_id] = attempt
        while len(self._attempts) > _PURGED_KEPT:
            self._attempts.popitem(last=False)
        mine = self._segments.of(generation_id)
        held_s = sum(item.rest_s for item in mine)
        is_told = False
        for item in mine:
            from_word, repeated = item.rewind(held_s)
            if item.start >= item.segment.end:
                self._forget(item)
                self._outbox.played(item.segment.intent_id)
                continue
            resumed = Resumed(from_word=from_word, repeated_words=repeated, attempt=attempt)
            self._resumed[item.segment.intent_id] = resumed
            is_told = True
            break
        if not is_told:
            now_s = self._clock.monotonic_s()
            self._outbox.tell(
                OutputResume(at_s=now_s, from_word=None, repeated_words=0, attempt=attempt), generation_id
            )
        self._push()

    def _close_unanswered(self, now_s: float) -> None:
        """Acknowledge stops that a stalled callback does not answer: nothing sounds from it, and nothing may hang."""
        late = [token for token, stop in self._stops.items() if now_s - stop.asked_s > _ACK_LIMIT_S]
        for token in late:
            if any(report.token == token for report in list(self._renderer.reports)):
                continue
            self._on_stopped(Report(kind=ReportKind.STOPPED, at_s=now_s, end_s=now_s, token=token))

    def _forget(self, item: PlayedSegment) -> None:
        self._segments.forget(item)
        if not self._segments.items:
            self._is_speaking = False
