"""What the inspector shows, without a window: records of the event log, put together by answer, output and slot.

Everything is bounded: the oldest goes first.
"""

from __future__ import annotations

import functools
import json
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from orchestrator.contracts.errors import InputError
from orchestrator.contracts.events import json_name, payload_classes
from orchestrator.contracts.lanes import LANE_ORDER

T = TypeVar("T")
Record = Mapping[str, Any]

FACTS = "facts"
"""The row of what is written down without travelling on the bus."""

LANES: tuple[str, ...] = (*(lane.value for lane in LANE_ORDER), FACTS)
CHATTER = frozenset({"bus:handled", "avatar:painted", "subtitle:painted", "output:word"})
"""Types that come many times a second and are hidden until asked for."""

MAX_RECORDS = 5000
_MAX_ANSWERS = 200
_MAX_OUTPUTS = 400
_MAX_UTTERANCES = 200
_MAX_SLOTS = 200
_MAX_COMMANDS = 100
_MAX_LINE = 1_000_000


class EventInbox:
    """Takes records from any thread without waiting and hands them to the one reader; a full one drops the oldest."""

    def __init__(self, capacity: int = 8192) -> None:
        """Hold at most `capacity` records."""
        self._waiting: deque[Record] = deque(maxlen=capacity)
        self.lost = 0

    def offer(self, record: Record) -> None:
        """Take a record; the event log calls this under its own lock."""
        if len(self._waiting) == self._waiting.maxlen:
            self.lost += 1
        self._waiting.append(record)

    def take(self, limit: int) -> list[Record]:
        """Return up to `limit` records, oldest first."""
        taken: list[Record] = []
        while len(taken) < limit:
            try:
                taken.append(self._waiting.popleft())
            except IndexError:
                break
        return taken


@dataclass(slots=True, kw_only=True)
class Utterance:
    """When the user ceased to speak and was understood; monotonic seconds."""

    speech_end_s: float | None = None
    transcript_s: float | None = None


@dataclass(slots=True, kw_only=True)
class Answer:
    """One generation. `states` are (second, state) in order; times are monotonic seconds, None for what never came.

    `began_early`: it was begun before the end of the user's turn was sure; `is_speculative`: it still waits for that,
    or ended without it.
    """

    id: str
    utterance_id: str = ""
    utterance: Utterance
    states: list[tuple[float, str]] = field(default_factory=list)
    reason: str = ""
    is_speculative: bool = False
    began_early: bool = False
    user_text: str = ""
    asked_s: float | None = None
    first_token_s: float | None = None
    first_sound_s: float | None = None
    end_s: float | None = None

    @property
    def state(self) -> str:
        """The newest state."""
        return self.states[-1][1] if self.states else ""

    @property
    def start_s(self) -> float | None:
        """What the waiting counts from: the end of speech, or for typed text the moment it came."""
        return self.utterance.speech_end_s if self.utterance.speech_end_s is not None else self.asked_s

    def waits(self) -> dict[str, float | None]:
        """Return seconds from the start to transcript, first token and first sound."""
        start_s = self.start_s
        ends = {
            "transcript": self.utterance.transcript_s,
            "first_token": self.first_token_s,
            "first_sound": self.first_sound_s,
        }
        return {
            name: None if at_s is None or start_s is None else max(0.0, at_s - start_s) for name, at_s in ends.items()
        }


@dataclass(slots=True, kw_only=True)
class Output:
    """One output intent and how far it came."""

    id: str
    answer_id: str
    kind: str
    text: str
    state: str
    reason: str
    at_s: float

    @property
    def is_dropped(self) -> bool:
        """Whether it, or its rest, was never played."""
        return self.state == "dropped"


@dataclass(slots=True, kw_only=True)
class SlotValue:
    """A slot's newest value and where it is from; one that was not accepted changed nothing."""

    name: str
    value: Any
    provenance: str
    is_accepted: bool
    at_s: float


@dataclass(slots=True, kw_only=True)
class FlowCommand:
    """A command to the flow engine."""

    text: str
    by: str
    is_accepted: bool
    reason: str
    at_s: float


@dataclass(slots=True, kw_only=True)
class FlowPlace:
    """Where the tasks are."""

    active_task: str = ""
    step: str = ""
    system_flow: str = ""
    paused: tuple[str, ...] = ()


class EventView:
    """Puts records together. Belongs to one thread; `revision` grows with every record taken."""

    def __init__(self, max_records: int = MAX_RECORDS) -> None:
        """Begin empty."""
        self.records: deque[Record] = deque(maxlen=max_records)
        self.answers: OrderedDict[str, Answer] = OrderedDict()
        self.outputs: OrderedDict[str, Output] = OrderedDict()
        self.slots: OrderedDict[str, SlotValue] = OrderedDict()
        self.commands: deque[FlowCommand] = deque(maxlen=_MAX_COMMANDS)
        self.flow = FlowPlace()
        self.revision = 0
        self.malformed = 0
        self._utterances: OrderedDict[str, Utterance] = OrderedDict()
        self._asked: OrderedDict[str, tuple[float, str]] = OrderedDict()

    def add(self, records: Iterable[Record]) -> None:
        """Take records; what is no record of an events file is counted in `malformed`."""
        for record in records:
            kind, at_s, payload = record.get("type"), record.get("t"), record.get("payload")
            if not isinstance(kind, str) or not isinstance(at_s, int | float) or not isinstance(payload, Mapping):
                self.malformed += 1
                continue
            self.records.append(record)
            self.revision += 1
            take = _TAKERS.get(kind)
            if take is not None:
                try:
                    take(self, record, float(at_s), payload)
                except (TypeError, ValueError, KeyError, AttributeError):
                    self.malformed += 1

    def _utterance(self, record: Record) -> Utterance | None:
        key = record.get("utteranceId")
        if not isinstance(key, str):
            return None
        return _entry(self._utterances, key, _MAX_UTTERANCES, Utterance)

    def _answer(self, record: Record) -> Answer | None:
        key = record.get("generationId")
        if not isinstance(key, str):
            return None
        utterance = self._utterance(record)

        def make() -> Answer:
            utterance_id = str(record.get("utteranceId") or "")
            made = Answer(id=key, utterance_id=utterance_id, utterance=utterance or Utterance())
            # A typed line has no utterance to tell it by: it belongs to the first answer behind it, none to a silence.
            asked = self._asked.get(utterance_id) if utterance_id else self._asked.pop("", None)
            if asked is not None:
                made.asked_s, made.user_text = asked
            return made

        return _entry(self.answers, key, _MAX_ANSWERS, make)

    def _take_speech(self, record: Record, at_s: float, payload: Record) -> None:
        utterance = self._utterance(record)
        if utterance is not None and payload["phase"] == "end":
            utterance.speech_end_s = float(payload["at_s"])

    def _take_transcript(self, record: Record, at_s: float, payload: Record) -> None:
        utterance = self._utterance(record)
        if utterance is not None and payload["final"]:
            utterance.transcript_s = at_s

    def _take_user(self, record: Record, at_s: float, payload: Record) -> None:
        key, text = str(record.get("utteranceId") or ""), str(payload["text"] or "")
        self._asked[key] = at_s, text
        for answer in self.answers.values():
            # An answer that began early was there before what it answers was final.
            if key and answer.utterance_id == key and answer.asked_s is None:
                answer.asked_s, answer.user_text = at_s, text
        while len(self._asked) > _MAX_UTTERANCES:
            self._asked.popitem(last=False)

    def _take_generation(self, record: Record, at_s: float, payload: Record) -> None:
        answer = self._answer(record)
        if answer is None:
            return
        answer.states.append((at_s, str(payload["to"])))
        del answer.states[:-40]
        answer.reason = str(payload.get("reason") or "")
        answer.is_speculative = bool(payload.get("speculative"))
        answer.began_early = answer.began_early or answer.is_speculative
        if answer.state in ("COMPLETED", "CANCELLED", "FAILED"):
            answer.end_s = at_s

    def _take_first_token(self, record: Record, at_s: float, payload: Record) -> None:
        answer = self._answer(record)
        if answer is not None and answer.first_token_s is None:
            answer.first_token_s = at_s

    def _take_first_sound(self, record: Record, at_s: float, payload: Record) -> None:
        answer = self._answer(record)
        if answer is not None and answer.first_sound_s is None:
            answer.first_sound_s = float(payload["at_s"])

    def _take_intent(self, record: Record, at_s: float, payload: Record) -> None:
        key = record.get("intentId")
        if not isinstance(key, str):
            return
        self.outputs.pop(key, None)
        self.outputs[key] = Output(
            id=key,
            answer_id=str(record.get("generationId") or ""),
            kind=str(payload["kind"]),
            text=str(payload["text"] or ""),
            state=str(payload["state"]),
            reason=str(payload.get("reason") or ""),
            at_s=at_s,
        )
        while len(self.outputs) > _MAX_OUTPUTS:
            self.outputs.popitem(last=False)

    def _take_flow(self, record: Record, at_s: float, payload: Record) -> None:
        self.flow = FlowPlace(
            active_task=str(payload.get("active_task") or ""),
            step=str(payload.get("step") or ""),
            system_flow=str(payload.get("system_flow") or ""),
            paused=tuple(str(task) for task in payload.get("paused") or ()),
        )

    def _take_slot(self, record: Record, at_s: float, payload: Record) -> None:
        name = str(payload["slot"])
        is_accepted = bool(payload["accepted"])
        self.slots.pop(name, None)
        self.slots[name] = SlotValue(
            name=name,
            value=payload["new"] if is_accepted else payload["old"],
            provenance=str(payload["provenance"]),
            is_accepted=is_accepted,
            at_s=at_s,
        )
        while len(self.slots) > _MAX_SLOTS:
            self.slots.popitem(last=False)

    def _take_command(self, record: Record, at_s: float, payload: Record) -> None:
        self.commands.append(
            FlowCommand(
                text=json.dumps(payload["command"], ensure_ascii=False),
                by=str(payload.get("by") or ""),
                is_accepted=bool(payload["accepted"]),
                reason=str(payload.get("reason") or ""),
                at_s=at_s,
            )
        )


_TAKERS = {
    "input:speech": EventView._take_speech,
    "input:transcript": EventView._take_transcript,
    "input:user": EventView._take_user,
    "generation:state": EventView._take_generation,
    "llm:first_token": EventView._take_first_token,
    "output:first_sound": EventView._take_first_sound,
    "intent:state": EventView._take_intent,
    "flow:state": EventView._take_flow,
    "flow:slot": EventView._take_slot,
    "flow:command": EventView._take_command,
}


def _entry(table: OrderedDict[str, T], key: str, most: int, make: Callable[[], T]) -> T:
    found = table.get(key)
    if found is None:
        found = table[key] = make()
        while len(table) > most:
            table.popitem(last=False)
    return found


def lane_of(record: Record) -> str:
    """Return the row of the timeline for `record`."""
    lane = record.get("lane")
    return lane if lane in LANES else FACTS


# --- files ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFile:
    """The newest records of a file; `skipped` lines were no records, `older` ones did not fit."""

    name: str
    records: tuple[Record, ...]
    skipped: int = 0
    older: int = 0


def read_events(path: Path, limit: int = MAX_RECORDS) -> EventFile:
    """Read an events file line by line, keeping the newest `limit` records. Raises `InputError` (events_unreadable)."""
    kept: deque[Record] = deque(maxlen=limit)
    skipped = older = 0
    try:
        with path.open("rb") as file:
            while line := file.readline(_MAX_LINE):
                try:
                    record = json.loads(line)
                except (ValueError, RecursionError):
                    record = None
                if not isinstance(record, dict):
                    skipped += bool(line.strip())
                    continue
                older += len(kept) == limit
                kept.append(record)
    except OSError as error:
        raise InputError("events_unreadable", f"{path.name} can't be read: {error.strerror}", part="events") from error
    if not kept:
        raise InputError("events_unreadable", f"{path.name} is no events file", part="events")
    return EventFile(name=path.name, records=tuple(kept), skipped=skipped, older=older)


def write_events(path: Path, records: Sequence[Record], *, with_text: bool) -> int:
    """Write `records` as an events file, all or nothing; returns how many. Raises `InputError` (events_unwritable)."""
    new = path.with_name(path.name + ".new")
    try:
        with new.open("w", encoding="utf-8") as file:
            for record in records:
                kept = record if with_text else without_text(record)
                file.write(json.dumps(kept, ensure_ascii=False, separators=(",", ":")) + "\n")
        new.replace(path)
    except OSError as error:
        new.unlink(missing_ok=True)
        raise InputError(
            "events_unwritable", f"{path.name} can't be written: {error.strerror}", part="events"
        ) from error
    return len(records)


@functools.cache
def _text_fields() -> Mapping[str, frozenset[str]]:
    return {
        name: frozenset(json_name(one) for one in kind.TEXT_FIELDS) for name, kind in payload_classes().items() if name
    }


_LOOSE = {"control:ack": ("result", "error"), "app:error": ("message",)}
"""Fields that may quote what was said, though they are not made of it."""


def without_text(record: Record) -> dict[str, Any]:
    """Return `record` without what people said; of a type this version does not know nothing but its name stays."""
    kind = str(record.get("type"))
    payload = record.get("payload")
    fields = _text_fields().get(kind)
    if fields is None or not isinstance(payload, Mapping):
        return {**record, "payload": {}}
    hidden = {*fields, *_LOOSE.get(kind, ())}
    kept = {
        name: ("" if isinstance(value, str) else None) if name in hidden else value for name, value in payload.items()
    }
    return {**record, "payload": kept}
