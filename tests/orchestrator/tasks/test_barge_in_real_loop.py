"""A barge-in at every step of every shipped flow, generated, through the real turn loop, player and store.

The flows are walked first in memory: from each way to start them, with each kind of answer, and once with actions that
fail, until no new place turns up. Each turn of that walk is then done again in the real loop, from the state before it,
and cut into.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from rigs.conversation_rig import ConversationRig

from desktop.paths import flow_config
from orchestrator.clock import VirtualClock
from orchestrator.contracts.events import FlowActionRan
from orchestrator.dialogue.brain import FlowBrain
from orchestrator.dialogue.brain_loading import load_folders
from orchestrator.dialogue.understanding import open_question
from orchestrator.flows.model import ActionStep, FlowConfig
from orchestrator.flows.testing.format import TestTurn
from orchestrator.flows.testing.host import StubAction
from orchestrator.flows.testing.runner import Conversation
from orchestrator.flows.texts import language_of
from orchestrator.speech.words import word_spans
from orchestrator.tasks.actions.registry import ActionRegistry

NOW = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
ANSWERS: dict[str, dict[str, list[str]]] = {
    "en": {
        "boolean": ["yes", "no"], "integer": ["three", "eight"], "duration": ["five minutes"],
        "datetime": ["tomorrow at seven"], "text": ["water the flowers"], "page": ["example.org"],
    },
    "zh": {
        "boolean": ["是的", "不是"], "integer": ["三分", "八分"], "duration": ["五分钟"],
        "datetime": ["明天早上七点"], "text": ["给花浇水"], "page": ["example.org"],
    },
}  # fmt: skip
WORDS = {
    "stop": {"en": "wait", "zh": "等一下"},
    "hum": {"en": "mm-hm", "zh": "嗯"},
    "cancel": {"en": "cancel", "zh": "取消"},
    "question": {"en": "what is the capital of France", "zh": "法国的首都是哪里"},
}
KINDS = ("stop", "hum", "answer", "cancel", "question", "early")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """One turn of the walk, and where to cut into it: after `words` words, while it says what `places` gave."""

    flow: str
    language: str
    world: str
    before: Mapping[str, Any] = field(repr=False, hash=False)
    text: str
    words: int
    places: tuple[str, ...]
    answer: str | None

    @property
    def name(self) -> str:
        """A readable id."""
        world = "" if self.world == "plain" else f"-{self.world}"
        return f"{self.flow}-{self.language}-{self.places[-1]}{world}-{self.words}"


@lru_cache
def config() -> FlowConfig:
    loaded = load_folders([flow_config(), flow_config() / "examples"])
    assert not loaded.errors
    return loaded.config


@lru_cache
def actions(*, world: str) -> ActionRegistry:
    """Return the actions of a world: `plain`, `failing`, or `several`, where more than one reminder is meant."""
    registry = load_folders([flow_config()]).actions
    if world == "plain":
        return registry
    clock = VirtualClock(0.0, NOW)
    if world == "several":
        stub = StubAction("action_cancel_reminder", {"slots": {"reminder_choices": "tea; milk"}}, clock)
        return ActionRegistry([*(a for n in registry if (a := registry.get(n)) is not None and n != stub.name), stub])
    names = {s.action for f in config().user_flows().values() for s in f.steps.values() if isinstance(s, ActionStep)}

    broken = [StubAction(n, {"raises": "broken"}, clock) for n in sorted(names - {"action_response", "action_listen"})]
    return ActionRegistry([*(a for n in registry if (a := registry.get(n)) is not None and n not in names), *broken])


def brain_at(state: Mapping[str, Any] | None, registry: ActionRegistry, clock: Any) -> FlowBrain:
    brain = FlowBrain(config(), actions=registry, clock=clock)
    if state is not None:
        brain.load_state(json.loads(json.dumps(state)))
    return brain


def opening(flow_id: str, language: str) -> str:
    found = next((e for e in config().flows[flow_id].examples if language_of(e) == language and "{" not in e), None)
    return found or config().flows[flow_id].name_in(language)


def next_answers(brain: FlowBrain, language: str) -> list[str]:
    """What could be said to what is being asked, [] when nothing is."""
    answers = ANSWERS[language]
    if brain.state.pending is not None:
        return answers["boolean"]
    question = open_question(brain.state, brain.config)
    if question is None:
        return []
    slot = brain.config.slots[question.slot]
    return answers["page" if slot.pattern else slot.type]


async def walk(flow_id: str, language: str, registry: ActionRegistry, *, world: str) -> tuple[list[Cut], set[str]]:
    """Walk one flow; returns where it can be cut into and which steps were passed."""
    cuts: list[Cut] = []
    steps: set[str] = set()
    seen: set[Any] = set()
    queue: deque[tuple[Mapping[str, Any] | None, str]] = deque([(None, opening(flow_id, language))])
    while queue:
        state, text = queue.popleft()
        clock = VirtualClock(0.0, NOW)
        talk = Conversation(brain_at(state, registry, clock), clock)
        outcome = await talk.take(TestTurn(user=text))
        visited = [f"{f}/{s}" for f, s, _ in outcome.report.visited if not f.startswith("system_")]
        task = talk.brain.state.active
        places = tuple(dict.fromkeys([*visited, *([task.place] if task is not None else [])]))
        steps.update(places)
        if task is not None and task.root != flow_id:
            continue
        answers = next_answers(talk.brain, language)
        before = state if state is not None else FlowBrain(config()).dump_state()
        at = 0
        for message in outcome.replies:
            count = len(word_spans(message))
            cuts.append(
                Cut(
                    flow=flow_id,
                    language=language,
                    world=world,
                    before=before,
                    text=text,
                    words=at + (1 if count > 1 else 0),
                    places=places,
                    answer=answers[0] if answers else None,
                )
            )
            at += count
        after = talk.brain.dump_state()
        for answer in answers:
            values = {k: v for k, v in talk.brain.state.values().items() if not isinstance(v, bool)}
            key = (
                task.place if task else None,
                bool(talk.brain.state.pending),
                answer,
                json.dumps(values, sort_keys=True),
            )
            if key not in seen:
                seen.add(key)
                queue.append((after, answer))
    return cuts, steps


@lru_cache
def all_cuts() -> tuple[tuple[Cut, ...], frozenset[str]]:
    cuts: list[Cut] = []
    steps: set[str] = set()
    for world in ("plain", "failing", "several"):
        registry = actions(world=world)
        for flow_id, flow in config().user_flows().items():
            if world == "failing" and not any(isinstance(s, ActionStep) and s.on_error for s in flow.steps.values()):
                continue
            reads = {read.field for step in flow.steps.values() for read in step.reads()}
            if world == "several" and "reminder_choices" not in reads:
                continue
            for language in ("zh",) if flow_id == "refund_request" else ("en", "zh"):
                found, passed = asyncio.run(walk(flow_id, language, registry, world=world))
                fresh = [c for c in found if world != "failing" or any(p.endswith("/failed") for p in c.places)]
                cuts += fresh
                steps |= passed
    return tuple(cuts), frozenset(steps)


def test_the_walk_passes_every_step_of_every_shipped_flow() -> None:
    _, steps = all_cuts()
    missed = {f"{f.id}/{s}" for f in config().user_flows().values() for s in f.steps} - steps
    assert missed == set()


class FlowRig(ConversationRig):
    """The conversation rig with the brain of the program at some state."""

    cut: Cut

    def make_brain(self) -> Any:
        return brain_at(self.cut.before, actions(world=self.cut.world), self.clock)

    def answer_words(self, after: int) -> int:
        """Number of words that were played out since record `after`."""
        return sum(not r["payload"]["cut"] for r in self.of("output:word") if r["seq"] > after)


def new_rig(tmp_path: Path, cut: Cut) -> FlowRig:
    rig: FlowRig = type("Rig", (FlowRig,), {"cut": cut})(tmp_path / "mynah.db")
    return rig


def hear_some(rig: FlowRig, count: int) -> None:
    """Wait until `count` words of the answer that begins now were heard and its next one sounds."""
    seq = rig.records[-1]["seq"]
    rig.until(lambda: rig.core.turns.active is not None, 2.0)
    rig.until(lambda: rig.answer_words(seq) >= count and rig.player.audible() is not None, 20.0)


SPEAKS = ("action_response", "action_listen")


def uncut(cut: Cut, *more: str) -> dict[str, Any]:
    """Return, from memory, what comes of it when nobody cuts in."""
    clock = VirtualClock(0.0, NOW)
    talk = Conversation(brain_at(cut.before, actions(world=cut.world), clock), clock)
    for text in (cut.text, *more):
        asyncio.run(talk.take(TestTurn(user=text)))
    ran = [e.name for e in talk.host.events if isinstance(e, FlowActionRan)]
    return summary(talk.brain, ran)


def told(rig: FlowRig) -> dict[str, Any]:
    """Return what came of it in the real loop."""
    return summary(rig.brain, [payload["name"] for payload in rig.payloads("flow:action")])


def summary(brain: FlowBrain, ran: list[str]) -> dict[str, Any]:
    task = brain.state.active
    return {
        "place": task.place if task is not None else None,
        "values": {k: v.value for k, v in (task.slots if task is not None else {}).items()},
        "done": sorted(task.done) if task is not None else [],
        "effects": [name for name in ran if name not in SPEAKS],
    }


def finish(rig: FlowRig, language: str, answers: int) -> None:
    """Answer what is asked until nothing is, after so many answers with "cancel": what does not end is stuck."""
    for number in range(answers + 4):
        rig.finish_everything()
        if rig.brain.state.active is None and rig.brain.state.pending is None:
            return
        given = (next_answers(rig.brain, language) or ["go ahead then"])[-1]
        rig.type(given if number < answers else WORDS["cancel"][language])
    raise AssertionError(f"stuck: {rig.brain.state.active} {rig.brain.state.pending}")


def check_nothing_said_is_lost(rig: FlowRig, *texts: str) -> None:
    stored = " ".join(str(m["text"]) for m in rig.stored() if m["role"] == "user")
    for text in texts:
        assert text in stored, f"{text!r} is in no stored message of the user: {stored}"


def cut_in(tmp_path: Path, cut: Cut, kind: str, answers: int) -> None:
    """Do the turn of `cut` in the real loop and speak into it."""
    over = (cut.answer or WORDS["stop"][cut.language]) if kind in ("answer", "early") else WORDS[kind][cut.language]
    plain, answered = uncut(cut), uncut(cut, over)
    rig = new_rig(tmp_path, cut)
    rig.type(cut.text)
    if kind != "early":
        hear_some(rig, cut.words)
        assert rig.core.turns.active is not None
    rig.say(over)
    if kind != "early":
        assert rig.of("interrupt:confirm"), "the answer was really interrupted"
    rig.finish_everything()
    got = told(rig)
    if kind == "stop":
        assert got == plain, "what was said and done stays when the user stops the answer"
    elif kind == "hum":
        assert got in (plain, answered), "a hum changes nothing, or is the answer to what is asked"
    elif kind == "answer" and cut.answer is not None:
        assert got == answered, "an answer counts from the first sound of the question"
    elif kind == "cancel":
        assert got["place"] is None
    elif kind == "question":
        assert {k: v for k, v in plain["values"].items() if got["place"] == plain["place"]}.items() <= got[
            "values"
        ].items()
    check_nothing_said_is_lost(
        rig, cut.text, *([over] if kind in ("answer", "cancel", "question") and cut.answer else [])
    )
    finish(rig, cut.language, answers)
    rig.close()
    rig.check()


def every_step() -> Iterator[Any]:
    """Turns that together pass every step, cut in each of their sentences, with the kinds of interruption in turn.

    The game is long: here it is played by halves, one in English and one in Chinese; the long test plays it whole.
    """
    covered: set[tuple[str, str, bool]] = set()
    kept: set[int] = set()
    number = 0
    cuts = [
        c for c in all_cuts()[0] if c.flow != "twenty_questions" or (len(c.places[-1]) % 2 == 0) == (c.language == "en")
    ]
    for cut in cuts:
        language = "any" if cut.flow == "twenty_questions" else cut.language
        steps = {(place, language, cut.world) for place in cut.places}
        if id(cut.places) not in kept and steps <= covered:
            continue
        covered |= steps
        kept.add(id(cut.places))
        kind = KINDS[number % len(KINDS)]
        number += 1
        yield pytest.param(cut, kind, id=f"{cut.name}-{kind}")


@pytest.mark.parametrize(("cut", "kind"), [*every_step()])
def test_cut_into_at_every_step(tmp_path: Path, cut: Cut, kind: str) -> None:
    cut_in(tmp_path, cut, kind, answers=1)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cut", [pytest.param(cut, id=cut.name) for cut in all_cuts()[0]])
def test_cut_into_at_every_step_in_every_way(tmp_path: Path, cut: Cut, kind: str) -> None:
    cut_in(tmp_path, cut, kind, answers=20)
