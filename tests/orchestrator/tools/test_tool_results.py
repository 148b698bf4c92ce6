"""Results of side effects on the real bus: used by the answer that asked, set aside when it is over, never lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rigs.conversation_rig import ConversationRig

from orchestrator.contracts.commands import Stop
from orchestrator.contracts.dialogue import TurnInput
from orchestrator.contracts.events import Event, ToolResult
from orchestrator.dialogue.turn_context import CoreTurn
from orchestrator.policy_file import Policy


def table_with(row: dict[str, Any]) -> Policy:
    policy = Policy()
    rows = dict(policy.table.rows)
    rows["tool:result"] = replace(rows["tool:result"], **row)
    return replace(policy, table=replace(policy.table, rows=rows))


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., ConversationRig]]:
    rigs: list[ConversationRig] = []

    def make(policy: Policy | None = None) -> ConversationRig:
        rigs.append(ConversationRig(tmp_path / "mynah.db", policy=policy))
        return rigs[-1]

    yield make
    for rig in rigs:
        rig.dispose()


def quarantined(rig: ConversationRig) -> list[tuple[str, str, str]]:
    def read(db: Any) -> list[tuple[str, str, str]]:
        return list(db.execute("SELECT correlation_id, generation_id, result FROM quarantine"))

    found: list[tuple[str, str, str]] = rig.database.transact_now(read)
    return found


def finish(rig: ConversationRig) -> None:
    rig.finish_everything()
    rig.close()
    rig.check()


def test_a_result_travels_in_its_lane_and_is_used_by_its_answer(start: Callable[..., ConversationRig]) -> None:
    rig = start()
    rig.plans.append((("tool", "lamp"), ("say", "The lamp is on.")))
    rig.type("lamp")
    assert rig.until(lambda: bool(rig.tools), 5)
    assert not rig.of("tool:result")
    rig.end_tool()
    assert rig.until(lambda: bool(rig.words_sounded()), 5)
    (call,), (result,) = rig.of("tool:call"), rig.of("tool:result")
    assert call["payload"]["effect"] == "write" and call["payload"]["idempotencyKey"].startswith("lamp#")
    assert result["correlationId"] == call["correlationId"]
    assert (result["lane"], result["policyReason"]) == ("active_generation", "tool:result")
    assert (result["payload"]["ok"], result["payload"]["disposition"]) == (True, "used")
    finish(rig)


def test_the_late_result_of_a_cancelled_answer_is_set_aside(start: Callable[..., ConversationRig]) -> None:
    rig = start()
    rig.plans.append((("tool", "lamp"), ("say", "The lamp is on.")))
    rig.type("lamp")
    assert rig.until(lambda: bool(rig.tools), 5)
    rig.stop_button()
    rig.plans.append((("say", "Something else."),))
    rig.type("and now?")
    rig.end_tool()
    rig.seconds(3)
    (call,), (result,) = rig.of("tool:call"), rig.of("tool:result")
    assert result["payload"]["disposition"] == "quarantined"
    assert quarantined(rig) == [(call["correlationId"], call["generationId"], '"done"')]
    (dropped,) = [r for r in rig.of("bus:dropped") if r["payload"]["droppedType"] == "tool:result"]
    assert (dropped["payload"]["reason"], dropped["correlationId"]) == ("stale", call["correlationId"])
    assert rig.words_sounded() == "Something else."
    finish(rig)


def test_a_result_overtaken_by_the_stop_on_the_bus_is_set_aside(start: Callable[..., ConversationRig]) -> None:
    rig = start()
    rig.plans.append((("say", "One moment please while I look."), ("tool", "lamp"), ("say", "The lamp is on.")))
    rig.type("lamp")
    assert rig.until(lambda: bool(rig.tools) and bool(rig.words_sounded()), 5)

    take = rig.bus.post

    def post_and_stop(event: Event) -> bool:
        is_taken = take(event)
        if isinstance(event.payload, ToolResult):
            rig.core.handle(Stop())
        return is_taken

    rig.bus.post = post_and_stop  # type: ignore[method-assign]
    rig.end_tool()
    rig.seconds(1)
    (result,) = rig.of("tool:result")
    assert result["payload"]["disposition"] == "quarantined"
    assert len(quarantined(rig)) == 1
    assert "lamp" not in rig.words_sounded()
    finish(rig)


def test_a_failed_effect_ends_as_not_ok_and_its_answer_goes_on(start: Callable[..., ConversationRig]) -> None:
    rig = start()
    rig.plans.append((("tool", "lamp"), ("say", "It did not work.")))
    rig.type("lamp")
    assert rig.until(lambda: bool(rig.tools), 5)
    rig.end_tool(ok=False)
    assert rig.until(lambda: bool(rig.words_sounded()), 5)
    (result,) = rig.of("tool:result")
    assert (result["payload"]["ok"], result["payload"]["disposition"]) == (False, "used")
    finish(rig)


def test_the_policy_table_governs_results(start: Callable[..., ConversationRig]) -> None:
    rig = start(table_with({"drop_when_busy": True, "score": 510}))
    rig.plans.append((("tool", "lamp"), ("say", "The lamp is on.")))
    rig.type("lamp")
    assert rig.until(lambda: bool(rig.tools), 5)
    rig.end_tool()
    rig.seconds(2)
    (result,) = rig.of("tool:result")
    assert result["payload"]["disposition"] == "dropped"
    assert "lamp" not in rig.words_sounded(), "the answer without its result fails with words"
    assert rig.words_sounded().startswith("sorry")
    finish(rig)


def test_the_end_of_the_program_ends_every_call(start: Callable[..., ConversationRig]) -> None:
    rig = start()
    rig.plans.append((("tool", "lamp"), ("say", "The lamp is on.")))
    rig.type("lamp")
    assert rig.until(lambda: bool(rig.tools), 5)
    rig.close()
    rig.check()
    (result,) = rig.of("tool:result")
    assert result["payload"]["disposition"] == "dropped"


def test_calls_that_differ_in_their_arguments_never_share_a_key(start: Callable[..., ConversationRig]) -> None:
    rig = start()
    done: list[Any] = []

    async def script(turn: CoreTurn) -> None:
        for args in ({"n": 1}, {"n": 2}, {"n": 1}):

            async def effect(args: dict[str, int] = args) -> int:
                done.append(args["n"])
                return args["n"]

            given = await turn.effects.run(key="same", name="tool", args=args, effect=effect, timeout_s=5.0)
            assert given == args["n"]

    rig.do(lambda: rig.core.turns.start(TurnInput(kind="event", event_type="x"), script=script))
    assert rig.until(rig.is_quiet, 5)
    assert done == [1, 2], "each call once, and the first not again"
    finish(rig)
