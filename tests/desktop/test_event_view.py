from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from desktop.event_view import (
    FACTS,
    LANES,
    EventInbox,
    EventView,
    lane_of,
    read_events,
    without_text,
    write_events,
)
from desktop.prompt_record import PromptRecord
from orchestrator.bus.event_log import EventLog
from orchestrator.clock import VirtualClock
from orchestrator.contracts.dialogue import ChatMessage, LlmRequest, LlmTask, LlmUnavailable
from orchestrator.contracts.errors import InputError
from orchestrator.contracts.events import (
    ControlAck,
    Event,
    FlowCommanded,
    FlowSlotChanged,
    FlowStateChanged,
    GenerationStateChanged,
    InputSpeech,
    InputTranscript,
    InputUser,
    IntentStateChanged,
    LlmFirstToken,
    OutputFirstSound,
    Payload,
    payload_classes,
)
from orchestrator.contracts.ids import CallId, GenerationId, IntentId, UtteranceId
from orchestrator.llm.no_llm import NoLlm

U, G = UtteranceId("u-1"), GenerationId("g-1")


class Told:
    """A real event log whose records reach a view by its tap."""

    def __init__(self) -> None:
        self.clock = VirtualClock(100.0)
        self.inbox = EventInbox()
        self.view = EventView()
        self._log = EventLog(self.clock, None)
        self._log.add_tap(self.inbox.offer)

    def at(
        self,
        at_s: float,
        payload: Payload,
        *,
        intent: str | None = None,
        answer: bool = True,
        utterance: UtteranceId | None = U,
        generation: GenerationId = G,
    ) -> None:
        self.clock.advance_to(at_s)
        self._log.record(
            Event(
                payload=payload,
                source="test",
                utterance_id=utterance,
                generation_id=generation if answer else None,
                intent_id=IntentId(intent) if intent else None,
            )
        )
        self.view.add(self.inbox.take(100))


def transcript(text: str) -> InputTranscript:
    return InputTranscript(
        final=True,
        text=text,
        language="en",
        audio_s=1.0,
        decode_s=0.2,
        context="short",
        retried=False,
        avg_logprob=None,
        no_speech=None,
        vad_fraction=None,
        rejected=None,
    )


def intent(state: str, reason: str | None = None) -> IntentStateChanged:
    return IntentStateChanged(kind="speech", behaviour="queue", slot=None, text="Hello", state=state, reason=reason)


@pytest.fixture
def told() -> Told:
    return Told()


def test_an_answer_is_timed_from_the_end_of_speech(told: Told) -> None:
    told.at(101.2, InputSpeech(phase="end", at_s=101.0, vad=0.9, during_output=False), answer=False)
    told.at(101.4, transcript("hi"), answer=False)
    told.at(101.4, InputUser(text="hi", via="voice"), answer=False)
    told.at(101.5, GenerationStateChanged(from_state=None, to_state="PREPARING"))
    told.at(101.7, LlmFirstToken(call_id=CallId("c")))
    told.at(101.8, GenerationStateChanged(from_state="PREPARING", to_state="STREAMING"))
    told.at(102.1, OutputFirstSound(at_s=102.0), intent="i-1")
    told.at(103.0, GenerationStateChanged(from_state="STREAMING", to_state="CANCELLED", reason="user_stop"))
    answer = told.view.answers[G]
    assert answer.user_text == "hi"
    assert [state for _, state in answer.states] == ["PREPARING", "STREAMING", "CANCELLED"]
    assert (answer.reason, answer.end_s) == ("user_stop", 103.0)
    assert answer.waits() == pytest.approx({"transcript": 0.4, "first_token": 0.7, "first_sound": 1.0})


def test_typed_text_is_timed_from_its_coming(told: Told) -> None:
    told.at(101.0, InputUser(text="hi", via="typed"), answer=False)
    told.at(101.5, GenerationStateChanged(from_state=None, to_state="PREPARING"))
    told.at(102.0, OutputFirstSound(at_s=102.0), intent="i-1")
    assert told.view.answers[G].waits() == pytest.approx({"transcript": None, "first_token": None, "first_sound": 1.0})


def test_an_answer_to_silence_is_not_shown_as_one_to_the_line_typed_before(told: Told) -> None:
    told.at(101.0, InputUser(text="tea, please", via="typed"), answer=False, utterance=None)
    for second, answer in ((102.0, G), (120.0, GenerationId("g-2"))):
        began = GenerationStateChanged(from_state=None, to_state="PREPARING")
        told.at(second, began, utterance=None, generation=answer)
    assert [answer.user_text for answer in told.view.answers.values()] == ["tea, please", ""]


def test_an_output_tells_what_became_of_it(told: Told) -> None:
    told.at(101.0, intent("queued"), intent="i-1")
    told.at(102.0, intent("dropped", "stale"), intent="i-1")
    output = told.view.outputs["i-1"]
    assert (output.state, output.reason, output.answer_id, output.is_dropped) == ("dropped", "stale", G, True)


def test_slots_keep_their_provenance_and_refused_values_change_nothing(told: Told) -> None:
    told.at(101.0, FlowSlotChanged(slot="city", old=None, new="Rome", provenance="said", accepted=True))
    told.at(102.0, FlowSlotChanged(slot="city", old="Rome", new="???", provenance="inferred", accepted=False))
    slot = told.view.slots["city"]
    assert (slot.value, slot.provenance, slot.is_accepted) == ("Rome", "inferred", False)
    told.at(103.0, FlowStateChanged(active_task="trip", step="ask", system_flow=None, paused=("mail",)))
    assert (told.view.flow.active_task, told.view.flow.step, told.view.flow.paused) == ("trip", "ask", ("mail",))
    told.at(104.0, FlowCommanded(command={"command": "cancel"}, accepted=False, reason="nothing to cancel", by="rule"))
    assert told.view.commands[-1].reason == "nothing to cancel"


def test_memory_is_bounded() -> None:
    view = EventView(max_records=50)
    for number in range(3000):
        payload = {"kind": "speech", "text": "x", "state": "queued"}
        view.add([{"t": number, "type": "intent:state", "intentId": f"i{number}", "payload": payload}])
        view.add([{"t": number, "type": "generation:state", "generationId": f"g{number}", "payload": {"to": "FAILED"}}])
    assert len(view.records) == 50
    assert len(view.outputs) <= 400
    assert len(view.answers) <= 200
    assert view.malformed == 0


def test_records_that_are_none_are_counted_and_do_no_harm() -> None:
    view = EventView()
    view.add([{}, {"t": "x", "type": "a", "payload": {}}, {"t": 1.0, "type": "intent:state", "payload": []}])
    view.add([{"t": 1.0, "type": "input:speech", "utteranceId": "u", "payload": {"phase": "end", "at_s": None}}])
    assert view.malformed == 4


def test_the_inbox_never_waits_and_drops_the_oldest() -> None:
    inbox = EventInbox(capacity=3)
    threads = [threading.Thread(target=inbox.offer, args=({"seq": n},), name=f"offer {n}") for n in range(5)]
    for thread in threads:
        thread.start()
        thread.join()
    assert [record["seq"] for record in inbox.take(10)] == [2, 3, 4]
    assert inbox.lost == 2


def test_every_record_has_a_row() -> None:
    assert lane_of({"lane": "control"}) == "control"
    assert lane_of({}) == lane_of({"lane": "unheard of"}) == FACTS
    assert FACTS in LANES


def test_a_file_survives_broken_lines_and_keeps_the_newest(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    lines = [json.dumps({"t": n, "type": "x", "payload": {}}) for n in range(10)]
    path.write_bytes(("\n".join(["{broken", "[1]", *lines]) + '\n{"t": 10, "ty').encode() + b"\xff\xfe\n")
    found = read_events(path, limit=4)
    assert [record["t"] for record in found.records] == [6, 7, 8, 9]
    assert (found.skipped, found.older) == (3, 6)


@pytest.mark.parametrize("content", [None, b"", b"no events at all\n"])
def test_what_is_no_events_file_is_said(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "x.jsonl"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError) as raised:
        read_events(path)
    assert raised.value.code == "events_unreadable"


def test_an_export_without_text_holds_nothing_of_what_was_said(told: Told, tmp_path: Path) -> None:
    secret = "my secret sentence"
    told.at(101.0, InputUser(text=secret, via="typed"))
    told.at(101.1, transcript(secret))
    told.at(101.2, FlowSlotChanged(slot="name", old=None, new={"deep": secret}, provenance="said", accepted=True))
    told.at(101.3, FlowCommanded(command={"value": secret}, accepted=True))
    told.at(101.4, ControlAck(cmd="dump", ok=True, result={"widgets": [{"text": secret}]}))
    told.view.add([{"t": 102.0, "type": "of:tomorrow", "payload": {"said": secret}}])
    path = tmp_path / "out.jsonl"
    assert write_events(path, list(told.view.records), with_text=False) == 6
    assert secret not in path.read_text(encoding="utf-8")
    assert [record["type"] for record in read_events(path).records] == [r["type"] for r in told.view.records]
    write_events(path, list(told.view.records), with_text=True)
    assert secret in path.read_text(encoding="utf-8")


def test_every_text_of_every_payload_class_is_removed() -> None:
    from orchestrator.contracts.events import json_name

    for name, kind in payload_classes().items():
        if not name:
            continue
        payload: dict[str, Any] = {json_name(field): "secret" for field in kind.TEXT_FIELDS}
        assert "secret" not in json.dumps(without_text({"type": name, "payload": payload})), name


def test_an_export_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        write_events(tmp_path / "no" / "where.jsonl", [], with_text=True)
    assert raised.value.code == "events_unwritable"
    assert list(tmp_path.iterdir()) == []


def test_the_last_prompt_is_remembered_even_if_the_call_fails() -> None:
    record = PromptRecord()
    assert record.last is None
    llm = record.wrap(NoLlm())
    request = LlmRequest(task=LlmTask.PERSONA, messages=(ChatMessage(role="user", content="hi"),))
    with pytest.raises(LlmUnavailable):
        asyncio.run(llm.complete(request))
    assert record.last is not None
    assert record.last.messages == (("user", "hi"),)
    assert llm.is_configured is False


def test_an_answer_that_began_early_shows_what_became_of_it() -> None:
    from desktop.ui.i18n.translator import Translator
    from desktop.ui.inspector.tables import answer_rows

    def row(told: Told, language: str = "en") -> str:
        return next(iter(answer_rows(told.view, Translator(language))))[1]

    used, dropped = Told(), Told()
    for told in (used, dropped):
        told.at(101.0, InputSpeech(phase="end", at_s=100.6, vad=0.9, during_output=False), answer=False)
        told.at(101.1, GenerationStateChanged(from_state=None, to_state="PREPARING", reason=None, speculative=True))
        assert row(told).endswith("(begun early, not sure yet)")
    used.at(
        101.2,
        GenerationStateChanged(from_state="PREPARING", to_state="PREPARING", reason="confirmed", speculative=False),
    )
    used.at(101.3, InputUser(text="what time is it", via="voice"), answer=False)
    used.at(101.4, GenerationStateChanged(from_state="STREAMING", to_state="COMPLETED", reason=None, speculative=False))
    (answer,) = used.view.answers.values()
    assert answer.user_text == "what time is it", "it was begun before its question was final"
    assert row(used).endswith("(begun early, used)")
    dropped.at(
        101.2,
        GenerationStateChanged(from_state="PREPARING", to_state="CANCELLED", reason="more_speech", speculative=True),
    )
    assert row(dropped, "zh_CN").endswith("(提前开始，已丢弃)") or row(dropped, "zh_CN").endswith(
        "（提前开始，已丢弃）"
    )
