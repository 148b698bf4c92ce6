"""No dead air, on a virtual clock: the gesture, the cue, and that neither is part of what was said."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rigs.conversation_rig import ConversationRig, checked_rig

from desktop.brain import BrainFactory
from desktop.paths import flow_config
from desktop.settings import Settings
from orchestrator.clock import VirtualClock
from orchestrator.contracts.views import CharacterTextView, ExpressionView

CUES = {"en": "Let me think.", "zh": "我想想。"}


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[ConversationRig]:
    yield from checked_rig(tmp_path)


def gestures(rig: ConversationRig) -> list[str]:
    return [view.expression for view in rig.views.shown if isinstance(view, ExpressionView)]


def cues(rig: ConversationRig) -> list[str]:
    return [intent.text for intent in rig.intents.values() if intent.text in CUES.values()]


def give(rig: ConversationRig, cue: Callable[[str | None], str | None]) -> None:
    rig.core.conversation.thinking.cue = cue


def test_a_long_wait_shows_the_gesture_and_says_nothing(rig: ConversationRig) -> None:
    rig.type("hello")
    rig.seconds(0.9)
    assert gestures(rig) == []
    rig.seconds(0.2)
    assert gestures(rig) == ["thinking"] and rig.intents == {}
    rig.tokens("Here it is. ")
    rig.end_model()


def test_a_quick_answer_has_neither_gesture_nor_cue(rig: ConversationRig) -> None:
    give(rig, lambda language: CUES["en"])
    rig.type("hello")
    rig.seconds(0.3)
    rig.tokens("Here it is. ")
    rig.end_model()
    rig.seconds(3.0)
    assert "thinking" not in gestures(rig) and cues(rig) == []


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_cue_is_heard_once_and_never_shown_or_stored(rig: ConversationRig, language: str) -> None:
    give(rig, lambda _: CUES[language])
    rig.type("hello")
    rig.seconds(4.0)
    assert cues(rig) == [CUES[language]]
    heard = [r for r in rig.records if r["type"] == "output:first_sound"]
    assert len(heard) == 1 and rig.views.state == "thinking"
    rig.tokens("Here it is. ")
    rig.end_model()
    rig.until(rig.is_quiet)
    assert [entry.text for entry in rig.core.history.entries] == ["hello", "Here it is."]
    shown = [view.text for view in rig.views.shown if isinstance(view, CharacterTextView)]
    assert CUES[language] not in shown and shown


def test_a_stop_silences_the_cue_with_the_answer(rig: ConversationRig) -> None:
    give(rig, lambda _: CUES["en"])
    rig.type("hello")
    rig.until(lambda: bool(cues(rig)))
    rig.stop_button()
    rig.seconds(3.0)
    ends = [r["payload"]["state"] for r in rig.records if r["type"] == "intent:state"]
    assert ends[-1] == "dropped" and rig.is_quiet()
    assert [entry.role for entry in rig.core.history.entries] == ["user"]


def test_who_speaks_is_not_spoken_over(rig: ConversationRig) -> None:
    give(rig, lambda _: CUES["en"])
    rig.type("hello")
    rig.seconds(0.5)
    rig.begin_to_speak()
    rig.seconds(1.5)
    assert cues(rig) == []
    rig.finish_utterance("what is the weather")


@pytest.mark.parametrize(
    ("persona", "is_wanted", "said"),
    [
        ("", False, (None, None)),
        ("", True, (CUES["en"], CUES["zh"])),
        ("thinking_cue: {en: Hm, zh: 嗯}\n", False, ("Hm", "嗯")),
        ("thinking_cue: {en: Hm, zh: 嗯}\n", True, ("Hm", "嗯")),
    ],
)
def test_the_persona_and_the_setting_say_what_is_heard(
    tmp_path: Path, persona: str, is_wanted: bool, said: tuple[str | None, str | None]
) -> None:
    (tmp_path / "persona.yml").write_text("name: Polly\n" + persona, encoding="utf-8")
    factory = BrainFactory([flow_config(), tmp_path], Settings(), VirtualClock(), tmp_path, seed=1)
    assert tuple(factory.thinking_cue(language, is_wanted=is_wanted) for language in ("en", "zh")) == said
