"""Every cell of the policy table: changed in the file and read again, it changes what a running session does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rigs.conversation_rig import ConversationRig

from orchestrator.bus.policy import DEFAULT_ROWS
from orchestrator.contracts.commands import Reload
from orchestrator.contracts.events import (
    AppError,
    ContextUpdated,
    DeviceStateChanged,
    Event,
    ExternalEvent,
    InputContinued,
    InputInterrupt,
    InputSpeech,
    InputTranscript,
    InputTurnEnd,
    InputUser,
    IntentStateChanged,
    MemoryWrite,
    NotifyRequested,
    ObjectFocused,
    ObjectRef,
    OutputCut,
    OutputDuck,
    OutputFirstSound,
    OutputResume,
    OutputStateChanged,
    OutputUnduck,
    OutputWord,
    Payload,
    ToolResult,
    TtsFirstPcm,
)
from orchestrator.contracts.ids import GenerationId, IntentId, UtteranceId
from orchestrator.contracts.lanes import InterruptReason, Lane
from orchestrator.policy_file import _CELLS, _MEANINGFUL, check_policy

REASONS = tuple(InterruptReason)
MAKE: dict[str, Callable[[int], Payload]] = {
    "input:interrupt": lambda n: InputInterrupt(reason=REASONS[n % 6], by=f"b{n}"),
    "output:cut": lambda n: OutputCut(at_s=0, last_sample_at_s=0, word=None, char_offset=0, held_s=0),
    "output:state/acknowledgement": lambda n: OutputStateChanged(state="stopped"),
    "output:word": lambda n: OutputWord(
        index=0, text="w", char_start=0, char_end=1, at_s=0, end_s=0, cut=True, estimated=True
    ),
    "intent:state": lambda n: IntentStateChanged(
        kind="speech", behaviour="queue", slot=None, text="", state="ready"
    ),
    "output:first_sound": lambda n: OutputFirstSound(at_s=0),
    "output:resume": lambda n: OutputResume(at_s=0, from_word=None, repeated_words=0, attempt=1),
    "output:duck": lambda n: OutputDuck(at_s=0, gain_db=-20, ramp_s=0.02),
    "output:unduck": lambda n: OutputUnduck(at_s=0, gain_db=0, ramp_s=0.02),
    "input:speech": lambda n: InputSpeech(phase="end", at_s=0, vad=0, during_output=False),
    "input:continued": lambda n: InputContinued(at_s=0),
    "input:turn_end": lambda n: InputTurnEnd(at_s=0, silence_s=0, by="silence"),
    "input:transcript": lambda n: InputTranscript(
        final=False, text="", language=None, audio_s=1, decode_s=0, context="short", retried=False,
        avg_logprob=None, no_speech=None, vad_fraction=None, rejected=None,
    ),
    "input:user/speaking": lambda n: InputUser(text=f"words {n}", via="typed"),
    "input:user": lambda n: InputUser(text=f"words {n}", via="typed"),
    "notify/urgent": lambda n: NotifyRequested(id=f"n{n}", text=f"notice {n}", urgent=True),
    "notify": lambda n: NotifyRequested(id=f"n{n}", text=f"notice {n}"),
    "tool:result": lambda n: ToolResult(ok=True, disposition="used", duration_s=0),
    "external:event": lambda n: ExternalEvent(name=f"e{n}"),
    "input:object": lambda n: ObjectFocused(object=ObjectRef(type="file", id=f"f{n}")),
    "output:state": lambda n: OutputStateChanged(state="listening", at_s=float(n)),
    "device:state": lambda n: DeviceStateChanged(direction="input", device=f"d{n}", rate=1, state="opened"),
    "context:update": lambda n: ContextUpdated(origin=f"o{n}", values={"n": n}),
    "memory:write": lambda n: MemoryWrite(text=f"fact {n}"),
    "tts:first_pcm": lambda n: TtsFirstPcm(synth_s=0, frames=0),
    "app:error": lambda n: AppError(code=f"x{n}", part="x", recoverable=True, message="x"),
}  # fmt: skip
NEIGHBOUR = {
    Lane.CONTROL: "output:duck",
    Lane.DIALOGUE: "input:object",
    Lane.ACTIVE_GENERATION: "context:update",
    Lane.NOTIFICATION: "external:event",
    Lane.CONTEXT: "device:state",
    Lane.BACKGROUND: "tts:first_pcm",
}
OTHER_NEIGHBOUR = {
    "output:duck": "input:speech",
    "output:unduck": "input:speech",
    "input:object": "input:user",
    "external:event": "notify",
    "device:state": "output:state",
    "tts:first_pcm": "memory:write",
}
CELLS = [(name, cell) for name in DEFAULT_ROWS for cell in _CELLS if cell in _MEANINGFUL.get(name, {"class", "score"})]


def test_every_row_has_an_event_here() -> None:
    assert set(MAKE) == set(DEFAULT_ROWS)


class Session:
    """A running session with a policy file of its own."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "policy.yml"
        self.rig = ConversationRig(folder / "s.db")
        self._count = 0

    def set(self, rows: dict[str, dict[str, Any]]) -> None:
        """Write the file and have it read again."""
        lines = ["events:"]
        for name, cells in rows.items():
            inner = ", ".join(f"{cell}: {_yaml(value)}" for cell, value in cells.items())
            lines.append(f'  "{name}": {{{inner}}}')
        self.file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        policy, problems = check_policy([self.file])
        assert [str(problem) for problem in problems] == []
        self.rig.policy = policy
        self.rig.do(lambda: self.rig.core.handle(Reload()))

    def event(self, name: str, number: int) -> Event:
        active = self.rig.core.turns.active
        needs_answer = name in ("tool:result", "output:state/acknowledgement")
        return Event(
            payload=MAKE[name](number),
            source=f"cell:{name}",
            generation_id=GenerationId(active.generation_id if active else "g0") if needs_answer else None,
            intent_id=IntentId("i0") if name == "output:word" else None,
            utterance_id=UtteranceId("u0") if name.startswith("input:t") else None,
        )

    def post(self, *names: str, later_s: float = 0.0, settle: bool = True) -> list[dict[str, Any]]:
        """Post one event of each, before any is handled; returns the records of those handled at once."""
        begin = len(self.rig.records)

        def post_all() -> None:
            for name in names:
                self._count += 1
                self.rig.bus.post(self.event(name, self._count))
            self.rig.clock.advance(later_s)

        self.rig.do(post_all)
        return [r for r in self.rig.records[begin:] if r["source"].startswith("cell:") and "lane" in r]

    def fresh(self) -> None:
        """Bring the session to rest between two looks."""
        self.rig.finish_everything()

    def begin_answer(self, *, speaks: bool) -> None:
        """Have an answer in progress."""
        self.rig.type("tell me")
        assert self.rig.until(lambda: bool(self.rig.open_calls()), 3.0)
        if speaks:
            self.rig.tokens(self.rig.sentence(9) + self.rig.sentence(9))
            assert self.rig.until(lambda: self.rig.bus.output_is_speaking, 5.0)


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    session = Session(tmp_path)
    yield session
    session.rig.dispose()


def _yaml(value: Any) -> str:
    return (
        {True: "true", False: "false", None: "null"}.get(value, str(value))
        if not isinstance(value, int) or (isinstance(value, bool))
        else str(value)
    )


def _ready(session: Session, name: str) -> None:
    session.fresh()
    if name == "input:user/speaking":
        session.begin_answer(speaks=True)
    elif name in ("tool:result", "output:state/acknowledgement"):
        session.begin_answer(speaks=False)


def _handled(records: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [record for record in records if record["source"] == f"cell:{name}"]


def look_class(session: Session, name: str, change: Callable[[dict[str, Any]], None]) -> None:
    row = DEFAULT_ROWS[name]
    _ready(session, name)
    before = session.post(name)[0]["priorityClass"]
    other = "low" if before != "low" else "high"
    change({"class": other})
    _ready(session, name)
    record = session.post(name)[0]
    assert record["priorityClass"] == other != before
    assert record["priorityScore"] == row.score


def look_score(session: Session, name: str, change: Callable[[dict[str, Any]], None]) -> None:
    row = DEFAULT_ROWS[name]
    lane = row.lane
    neighbour = NEIGHBOUR[lane]
    if DEFAULT_ROWS[neighbour].score == row.score:
        neighbour = OTHER_NEIGHBOUR[name]
    extra = {"context:update": {"lane": "active_generation", "score": 450}} if lane is Lane.ACTIVE_GENERATION else {}
    rival = 450 if extra else DEFAULT_ROWS[neighbour].score
    session.set(extra) if extra else None

    def order() -> list[str]:
        found = []
        for names in ((name, neighbour), (neighbour, name)):
            _ready(session, name)
            found.append(next(record["source"] for record in session.post(*names)))
        assert found[0] == found[1], "the order of arrival does not matter"
        return found

    before = order()
    changed = rival - 5 if row.score > rival else rival + 5
    change({"score": changed} | {"__extra__": extra})
    after = order()
    assert before != after
    assert before[0] == f"cell:{name if row.score > rival else neighbour}"


def look_lane(session: Session, name: str, change: Callable[[dict[str, Any]], None]) -> None:
    row = DEFAULT_ROWS[name]
    _ready(session, name)
    if name == "input:user/speaking":
        session.post(name)
        assert session.rig.of("generation:state")[-1]["payload"]["to"] == "PREPARING", (
            "cancelled, and the new one begun"
        )
    first = "app:error" if row.lane is not Lane.CONTROL else "output:duck"
    _ready(session, name)
    before = session.post(name, first)
    change({"lane": "control", "score": 1000} if row.lane is not Lane.CONTROL else {"lane": "background"})
    _ready(session, name)
    after = session.post(name, first)
    assert _handled(before, name)[0]["lane"] == row.lane
    assert _handled(after, name)[0]["lane"] != row.lane
    if row.lane is not Lane.CONTROL:
        assert (before[0]["source"], after[0]["source"]) == (f"cell:{first}", f"cell:{name}")


def look_expires(session: Session, name: str, change: Callable[[dict[str, Any]], None]) -> None:
    _ready(session, name)
    assert len(_handled(session.post(name, later_s=0.5), name)) == 1
    change({"expires_after_s": 0.1})
    _ready(session, name)
    dropped = session.rig.bus.counters["dropped:expired"]
    assert _handled(session.post(name, later_s=0.5), name) == []
    assert session.rig.bus.counters["dropped:expired"] == dropped + 1


def look_coalesce_key(session: Session, name: str, change: Callable[[dict[str, Any]], None]) -> None:
    _ready(session, name)
    assert len(_handled(session.post(name, name, name), name)) == 3, "their keys differ, or they have none"
    change({"coalesce_key": "type"})
    _ready(session, name)
    handled = _handled(session.post(name, name, name), name)
    assert len(handled) == 1
    assert session.rig.bus.counters["dropped:coalesced"] >= 2


def look_window(session: Session, name: str, change: Callable[[dict[str, Any]], None]) -> None:
    change({"coalesce_key": "type"})
    _ready(session, name)
    assert len(_handled(session.post(name), name)) == 1
    change({"coalesce_key": "type", "coalesce_window_s": 0.3})
    _ready(session, name)
    assert _handled(session.post(name), name) == [], "it waits for others that may replace it"
    begin = len(session.rig.records)
    assert len(_handled(session.post("app:error"), "app:error")) == 1, "control does not wait with it"
    session.rig.seconds(0.2)
    assert _handled(session.post(name), name) == []
    session.rig.seconds(0.2)
    late = [r for r in session.rig.records[begin:] if r["source"] == f"cell:{name}" and "lane" in r]
    assert len(late) == 1, "the newest came when the window of the first was over"


def look_max_waiting(session: Session, name: str, change: Callable[[dict[str, Any]], None]) -> None:
    _ready(session, name)
    assert len(_handled(session.post(*[name] * 5), name)) == 5
    change({"max_waiting": 2})
    _ready(session, name)
    assert len(_handled(session.post(*[name] * 5), name)) == 2
    assert session.rig.bus.counters["dropped:overflow"] >= 3


def look_busy(session: Session, name: str, change: Callable[[dict[str, Any]], None]) -> None:
    session.begin_answer(speaks=False)
    assert len(_handled(session.post(name), name)) == 1
    change({"drop_when_busy": True})
    session.fresh()
    session.begin_answer(speaks=False)
    assert _handled(session.post(name), name) == []
    session.fresh()
    assert len(_handled(session.post(name), name)) == 1, "not busy any more"


LOOK: dict[str, Callable[[Session, str, Callable[[dict[str, Any]], None]], None]] = {
    "class": look_class,
    "score": look_score,
    "lane": look_lane,
    "expires_after_s": look_expires,
    "coalesce_key": look_coalesce_key,
    "coalesce_window_s": look_window,
    "max_waiting": look_max_waiting,
    "drop_when_busy": look_busy,
}


@pytest.mark.parametrize(("name", "cell"), CELLS, ids=[f"{name}-{cell}" for name, cell in CELLS])
def test_a_changed_cell_changes_what_happens(session: Session, name: str, cell: str) -> None:
    def change(cells: dict[str, Any]) -> None:
        extra = cells.pop("__extra__", {})
        session.rig.finish_everything()
        session.set({name: cells, **extra})

    LOOK[cell](session, name, change)


OTHER = {
    "lane": "background",
    "class": "low",
    "score": 1,
    "expires_after_s": 7,
    "coalesce_key": "type",
    "coalesce_window_s": 0.5,
    "max_waiting": 3,
    "drop_when_busy": "true",
}
MEANINGLESS = [
    (name, cell) for name in DEFAULT_ROWS for cell in _CELLS if cell not in _MEANINGFUL.get(name, {"class", "score"})
]


@pytest.mark.parametrize(("name", "cell"), MEANINGLESS, ids=[f"{name}-{cell}" for name, cell in MEANINGLESS])
def test_a_cell_without_meaning_is_refused_with_its_place(tmp_path: Path, name: str, cell: str) -> None:
    file = tmp_path / "policy.yml"
    other = "context" if cell == "lane" and DEFAULT_ROWS[name].lane is Lane.BACKGROUND else OTHER[cell]
    file.write_text(f'events:\n  "{name}":\n    {cell}: {other}\n', encoding="utf-8")
    _, problems = check_policy([file])
    assert [problem.code for problem in problems] == ["policy_no_meaning"]
    assert f"{file}:3:5" in str(problems[0])
    assert name in str(problems[0])
