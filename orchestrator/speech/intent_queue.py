"""The queue of speech intents: order, behaviours, and one end for each. Pure: takes the time and never waits."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.contracts.events import IntentStateChanged
from orchestrator.contracts.ids import GenerationId, IntentId
from orchestrator.contracts.intents import SpeechIntent
from orchestrator.contracts.lanes import Behaviour, IntentKind, IntentState

StateSink = Callable[[SpeechIntent, IntentStateChanged], None]
"""Hears of every step of every intent, in order."""

_PURGED_KEPT = 512
_KNOWN_KEPT = 4096


class Way(StrEnum):
    """How an intent gets to the user."""

    UNDECIDED = "undecided"
    SPOKEN = "spoken"
    SHOWN = "shown"


@dataclass(slots=True, kw_only=True, eq=False)
class Entry:
    """An intent on its way. `is_handed` says that the output has it; `duration_s` is known once it is ready."""

    intent: SpeechIntent
    state: IntentState = IntentState.QUEUED
    way: Way = Way.UNDECIDED
    is_handed: bool = False
    duration_s: float = 0.0

    @property
    def is_mark(self) -> bool:
        """Whether it only marks the end of its generation's speech."""
        return not self.intent.text.strip()


class IntentQueue:
    """Speech intents in strict order of arrival; `interrupt` and `replace` change it as they say.

    Overflow policy: a new intent beyond `capacity` (an interrupting one beyond twice that) is refused and dropped with
    the reason `overflow`. `dropped`
    counts by reason. Every submitted intent ends exactly once, `played` or `dropped`.
    """

    def __init__(
        self, *, on_state: StateSink, is_stale: Callable[[GenerationId], bool] | None = None, capacity: int = 64
    ) -> None:
        """Tell each step to `on_state`; ask `is_stale` before anything of a generation goes on."""
        self._on_state = on_state
        self._is_stale = is_stale or (lambda _generation_id: False)
        self._capacity = capacity
        self._entries: list[Entry] = []
        self._held: set[GenerationId] = set()
        self._purged: OrderedDict[GenerationId, str] = OrderedDict()
        self._known: OrderedDict[IntentId, None] = OrderedDict()
        self._withdrawn: list[IntentId] = []
        self.dropped: Counter[str] = Counter()
        self.played = 0

    # --- arriving -----------------------------------------------------------------------------------------

    def submit(self, intent: SpeechIntent, now_s: float) -> bool:
        """Take `intent` in by its behaviour; False if it was dropped at once.

        An id that is or was here is refused and only counted (`duplicate`): its one end stays its one end.
        """
        entry = Entry(intent=intent)
        if intent.intent_id in self._known:
            self.dropped["duplicate"] += 1
            return False
        self._known[intent.intent_id] = None
        while len(self._known) > _KNOWN_KEPT:
            self._known.popitem(last=False)
        reason = self._refusal(intent, now_s)
        if reason is not None:
            self._step(entry, IntentState.DROPPED, reason)
            return False
        if intent.behaviour is Behaviour.INTERRUPT:
            self._make_way(intent)
            place = self._first_free()
        elif intent.behaviour is Behaviour.REPLACE and intent.slot is not None:
            place = self._replace(intent)
        else:
            place = len(self._entries)
        self._entries.insert(place, entry)
        self._step(entry, IntentState.QUEUED)
        return True

    def take_withdrawn(self) -> list[IntentId]:
        """Return the intents that were dropped while the output had them: it has to stop them."""
        withdrawn, self._withdrawn = self._withdrawn, []
        return withdrawn

    # --- synthesising -------------------------------------------------------------------------------------

    def next_to_synthesise(self, now_s: float) -> Entry | None:
        """Return the first intent that has no sound yet, now `synthesising`; None if there is none.

        What is held comes after everything else.
        """
        self.drop_overdue(now_s)
        for entry in sorted(self._entries, key=self._is_kept_back):
            if entry.state is IntentState.QUEUED and entry.way is Way.UNDECIDED and not entry.is_mark:
                entry.way = Way.SPOKEN
                self._step(entry, IntentState.SYNTHESISING)
                return entry
        return None

    def synthesised(self, intent_id: IntentId, duration_s: float, now_s: float) -> bool:
        """Take note that the sound is there; False if it is not wanted any more."""
        entry = self.find(intent_id)
        if entry is None:
            return False
        if self._drop_if_stale(entry, now_s):
            return False
        entry.duration_s = duration_s
        self._step(entry, IntentState.READY)
        return True

    def failed(self, intent_id: IntentId, now_s: float) -> bool:
        """Let the text be shown instead of spoken; False if it is not wanted any more."""
        entry = self.find(intent_id)
        if entry is None or self._drop_if_stale(entry, now_s):
            return False
        entry.way = Way.SHOWN
        self._step(entry, IntentState.READY)
        return True

    def show_instead(self) -> None:
        """Let everything that waits and that the output does not have yet be shown instead of spoken."""
        for entry in self._entries:
            is_waiting = entry.state in (IntentState.QUEUED, IntentState.READY) and not entry.is_handed
            if is_waiting and not entry.is_mark:
                entry.way = Way.SHOWN

    def ahead(self) -> tuple[int, float]:
        """Return how many intents before the next one to synthesise do not play yet, and how long they last.

        What stands behind it does not count: else a newcomer in front could never be synthesised.
        """
        count, duration_s = 0, 0.0
        for entry in sorted(self._entries, key=self._is_kept_back):
            if entry.state is IntentState.QUEUED and entry.way is Way.UNDECIDED and not entry.is_mark:
                break
            if entry.way is Way.SPOKEN and entry.state in (IntentState.SYNTHESISING, IntentState.READY):
                count += 1
                duration_s += entry.duration_s
        return count, duration_s

    # --- playing ------------------------------------------------------------------------------------------

    def next_for_output(self, now_s: float) -> Entry | None:
        """Return the next intent the output may have, in strict order; it is marked as handed over.

        Spoken ones follow each other without waiting for the end of the one before; one that is shown waits until
        everything before it has ended, and blocks what follows. A held generation stands aside: others pass it. None
        while the next one is not ready.
        """
        self.drop_overdue(now_s)
        going = [entry for entry in self._entries if not self._is_kept_back(entry)]
        for entry in list(going):
            if entry.is_handed:
                if entry.way is Way.SHOWN:
                    return None
                continue
            is_head = entry is going[0]
            if entry.is_mark:
                if not is_head:
                    return None
                going.remove(entry)
                self._finish(entry)
                continue
            if entry.way is Way.SHOWN:
                if not is_head:
                    return None
            elif entry.state is not IntentState.READY:
                return None
            entry.is_handed = True
            return entry
        return None

    def playing(self, intent_id: IntentId) -> None:
        """Take note that the intent began to sound or to be shown, or goes on."""
        entry = self.find(intent_id)
        if entry is not None and entry.state is not IntentState.PLAYING:
            self._step(entry, IntentState.PLAYING)

    def played_out(self, intent_id: IntentId) -> None:
        """Take note that the intent was played or shown to its end."""
        entry = self.find(intent_id)
        if entry is not None:
            self._finish(entry)

    def show_rest(self, intent_id: IntentId) -> None:
        """Let an intent the output had be shown from now on: its loudspeaker is gone."""
        entry = self.find(intent_id)
        if entry is not None:
            entry.way = Way.SHOWN
            entry.is_handed = False

    # --- stopping -----------------------------------------------------------------------------------------

    def hold(self, generation_id: GenerationId) -> None:
        """Keep the intents of the generation back, also those that come later."""
        self._held.add(generation_id)
        for entry in self._entries:
            if entry.intent.generation_id == generation_id and entry.state is IntentState.PLAYING:
                self._step(entry, IntentState.HELD)

    def resume(self, generation_id: GenerationId) -> None:
        """Let the generation go on; what was playing says so itself when it sounds again."""
        self._held.discard(generation_id)

    def is_held(self, generation_id: GenerationId) -> bool:
        """Whether the generation is held."""
        return generation_id in self._held

    def purge(self, generation_id: GenerationId, reason: str) -> int:
        """Drop everything of the generation, also what comes later; return how many were dropped."""
        self._held.discard(generation_id)
        self._purged[generation_id] = reason
        while len(self._purged) > _PURGED_KEPT:
            self._purged.popitem(last=False)
        gone = [entry for entry in self._entries if entry.intent.generation_id == generation_id]
        for entry in gone:
            self._drop(entry, reason)
        return len(gone)

    def drop_overdue(self, now_s: float) -> None:
        """Drop what has expired before it began, and what has become stale."""
        for entry in list(self._entries):
            if not self._drop_if_stale(entry, now_s) and self._is_expired(entry.intent, now_s) and not entry.is_handed:
                self._drop(entry, "expired")

    # --- looking ------------------------------------------------------------------------------------------

    def find(self, intent_id: IntentId) -> Entry | None:
        """Return the entry of an intent that has not ended."""
        return next((entry for entry in self._entries if entry.intent.intent_id == intent_id), None)

    def __len__(self) -> int:
        return len(self._entries)

    def entries(self) -> tuple[Entry, ...]:
        """Return what has not ended, in order."""
        return tuple(self._entries)

    # --- inside -------------------------------------------------------------------------------------------

    def _refusal(self, intent: SpeechIntent, now_s: float) -> str | None:
        if intent.generation_id in self._purged:
            return self._purged[intent.generation_id]
        if self._is_stale(intent.generation_id):
            return "stale"
        if self._is_expired(intent, now_s):
            return "expired"
        if intent.behaviour is Behaviour.DROP:
            return "behaviour"
        room = self._capacity * 2 if intent.behaviour is Behaviour.INTERRUPT else self._capacity
        if len(self._entries) >= room:
            return "overflow"
        return None

    def _make_way(self, intent: SpeechIntent) -> None:
        """Stop what sounds now and drop what belongs to older generations."""
        for entry in list(self._entries):
            is_older = entry.intent.generation_order < intent.generation_order
            is_current = entry.is_handed and entry.state in (IntentState.PLAYING, IntentState.HELD)
            if is_older or is_current:
                self._drop(entry, "interrupted")
        # A hold of an older generation has nothing left to keep back.
        for generation_id in list(self._held):
            if generation_id != intent.generation_id and not self._has(generation_id):
                self._held.discard(generation_id)

    def _is_kept_back(self, entry: Entry) -> bool:
        return entry.intent.generation_id in self._held

    def _has(self, generation_id: GenerationId) -> bool:
        return any(entry.intent.generation_id == generation_id for entry in self._entries)

    def _first_free(self) -> int:
        """Return the place in front of everything; what the output has but does not play is taken back."""
        for entry in self._entries:
            if entry.is_handed:
                entry.is_handed = False
                self._withdrawn.append(entry.intent.intent_id)
        return 0

    def _replace(self, intent: SpeechIntent) -> int:
        for place, entry in enumerate(self._entries):
            if entry.intent.slot == intent.slot:
                later = self._entries[place + 1 :]
                self._drop(entry, "replaced")
                # What the output already has behind it must come after the newcomer.
                for behind in later:
                    if behind.is_handed:
                        behind.is_handed = False
                        self._withdrawn.append(behind.intent.intent_id)
                return place
        return len(self._entries)

    @staticmethod
    def _is_expired(intent: SpeechIntent, now_s: float) -> bool:
        return intent.expires_at_s is not None and now_s >= intent.expires_at_s

    def _drop_if_stale(self, entry: Entry, now_s: float) -> bool:
        if not self._is_stale(entry.intent.generation_id):
            return False
        self._drop(entry, "stale")
        return True

    def _drop(self, entry: Entry, reason: str) -> None:
        self._entries.remove(entry)
        if entry.is_handed:
            self._withdrawn.append(entry.intent.intent_id)
        self._step(entry, IntentState.DROPPED, reason)

    def _finish(self, entry: Entry) -> None:
        self._entries.remove(entry)
        self.played += 1
        self._step(entry, IntentState.PLAYED)

    def _step(self, entry: Entry, state: IntentState, reason: str | None = None) -> None:
        entry.state = state
        if state is IntentState.DROPPED:
            self.dropped[reason or "unknown"] += 1
        intent = entry.intent
        self._on_state(
            intent,
            IntentStateChanged(
                kind=IntentKind.SPEECH,
                behaviour=intent.behaviour,
                slot=intent.slot,
                text=intent.text,
                state=state,
                reason=reason,
            ),
        )
