"""A barge-in at every step of the shipped flows, through the real turn loop, player and store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rigs.conversation_rig import ConversationRig

from desktop.paths import flow_config
from orchestrator.dialogue.brain import FlowBrain
from orchestrator.dialogue.brain_loading import LoadedBrain, load_folders
from orchestrator.store import records

FLOWS: dict[str, list[str]] = {
    "reminder": ["set a reminder", "water the flowers", "tomorrow at seven"],
    "提醒": ["设置一个提醒", "浇花", "明天早上七点"],
    "timer": ["set a timer", "five minutes"],
}
STEPS = [(name, step) for name, texts in FLOWS.items() for step in range(len(texts))]


@pytest.fixture(scope="module")
def loaded() -> LoadedBrain:
    return load_folders([flow_config()])


class FlowRig(ConversationRig):
    """The conversation rig with the brain of the program, matching examples by their words."""

    loaded: LoadedBrain

    def make_brain(self) -> Any:
        return FlowBrain(self.loaded.config, actions=self.loaded.actions, clock=self.clock)

    def answer_words(self, after: int) -> int:
        """Number of words that were played out since record `after`."""
        return sum(not r["payload"]["cut"] for r in self.of("output:word") if r["seq"] > after)


def new_rig(tmp_path: Path, loaded: LoadedBrain) -> FlowRig:
    rig_class = type("Rig", (FlowRig,), {"loaded": loaded})
    rig: FlowRig = rig_class(tmp_path / "mynah.db")
    return rig


def hear_some(rig: FlowRig, count: int) -> None:
    """Wait until `count` words of the answer that begins now were heard, or it is over."""
    seq = rig.records[-1]["seq"]
    rig.until(lambda: rig.core.turns.active is not None, 2.0)
    rig.until(lambda: rig.answer_words(seq) >= count or rig.core.turns.active is None, 20.0)


def finish(rig: FlowRig) -> list[str]:
    """End everything; returns the reminders that are stored."""
    rig.finish_everything()
    stored = rig.database.transact_now(records.waiting_reminders)
    task = rig.brain.state.active
    rig.close()
    assert rig.problems == []
    assert task is None, "no task is left stuck"
    return [reminder.text for reminder in stored]


def expected(name: str) -> list[str]:
    return {"reminder": ["water the flowers"], "提醒": ["浇花"]}.get(name, [])


@pytest.mark.parametrize("words", [1, 3])
@pytest.mark.parametrize(("name", "step"), STEPS)
@pytest.mark.parametrize("over", ["wait", "mm-hm", "等一下"])
def test_cut_off_or_hummed_at(tmp_path: Path, loaded: LoadedBrain, name: str, step: int, words: int, over: str) -> None:
    rig = new_rig(tmp_path, loaded)
    for number, text in enumerate(FLOWS[name]):
        rig.type(text)
        if number == step:
            hear_some(rig, words)
            if rig.core.turns.active is not None:
                rig.say(over)
                assert rig.of("interrupt:confirm"), "the answer was really interrupted"
        rig.finish_everything()
    found = finish(rig)
    if name == "timer":
        assert len(found) == 1
    else:
        assert found == expected(name), "what was said is kept, and stored once"


@pytest.mark.parametrize("words", [1, 2])
@pytest.mark.parametrize(("name", "step"), [(name, step) for name, step in STEPS if step + 1 < len(FLOWS[name])])
def test_answered_before_the_question_is_over(
    tmp_path: Path, loaded: LoadedBrain, name: str, step: int, words: int
) -> None:
    rig = new_rig(tmp_path, loaded)
    texts = FLOWS[name]
    for number, text in enumerate(texts):
        if number == step + 1:
            continue
        rig.type(text)
        if number == step:
            hear_some(rig, words)
            rig.say(texts[step + 1])
        rig.finish_everything()
    found = finish(rig)
    assert len(found) == 1 if name == "timer" else found == expected(name)
