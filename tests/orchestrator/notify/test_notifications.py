"""Whether and when a notification is said, and reminders that outlive the program."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from rigs.conversation_parts import ScriptedModel
from rigs.conversation_rig import ConversationRig, checked_rig, letters

from orchestrator.contracts.commands import Notify, Stop
from orchestrator.contracts.dialogue import Reminder
from orchestrator.dialogue.interruption import InterruptionTimes
from orchestrator.policy_file import load_policy


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[ConversationRig]:
    yield from checked_rig(tmp_path)


def notify(rig: ConversationRig, name: str, text: str, *, urgent: bool = False, expires_s: float | None = None) -> None:
    rig.do(lambda: rig.core.handle(Notify(id=name, text=text, urgent=urgent, expires_s=expires_s)))


def states(rig: ConversationRig, name: str) -> list[str]:
    return [p["state"] for p in rig.payloads("notify:state") if p["id"] == name]


def test_it_is_said_at_once_when_nobody_speaks(rig: ConversationRig) -> None:
    notify(rig, "n", "the kettle boils.")
    assert rig.until(rig.is_quiet)
    assert rig.words_sounded() == "the kettle boils."
    assert states(rig, "n") == ["due", "spoken"]
    assert rig.answers()[-1]["text"] == "the kettle boils."


def test_it_waits_while_the_character_speaks(rig: ConversationRig) -> None:
    sentence = rig.sentence(8)
    rig.ask("tell me", sentence)
    notify(rig, "n", "the kettle boils.")
    assert states(rig, "n") == ["due", "held"]
    assert rig.until(rig.is_quiet)
    assert letters(rig.words_sounded()) == letters(sentence + "the kettle boils.")
    assert states(rig, "n")[-1] == "spoken"


@pytest.mark.parametrize("urgent", [False, True])
def test_it_waits_while_the_user_speaks_even_when_urgent(rig: ConversationRig, urgent: bool) -> None:
    rig.begin_to_speak()
    notify(rig, "n", "the kettle boils.", urgent=urgent)
    rig.seconds(2.0)
    assert states(rig, "n") == ["due", "held"]
    assert rig.words_sounded() == ""
    rig.finish_utterance("", rejected=True)
    assert rig.until(lambda: states(rig, "n")[-1] == "spoken", 5.0), "nothing was said, so now there is room"


def test_an_urgent_one_holds_the_answer_which_goes_on(rig: ConversationRig) -> None:
    sentences = (rig.sentence(), rig.sentence(), rig.sentence())
    rig.ask("tell me", *sentences)
    assert rig.until(lambda: len(rig.complete_words) >= 3)
    notify(rig, "n", "the house burns.", urgent=True)
    assert rig.until(rig.is_quiet)
    before, notice, after = rig.words_sounded().partition("the house burns.")
    assert notice and before and after
    assert letters(before + after) == letters("".join(sentences))
    assert len(rig.of("llm:call")) == 1
    assert rig.voice.calls == len(rig.intents)
    assert [p["text"] for p in rig.answers()] == ["the house burns.", "".join(sentences).strip()]


def test_an_urgent_one_holds_a_shown_answer_too(rig: ConversationRig) -> None:
    rig.mute(True)
    sentence = rig.sentence(8)
    rig.ask("tell me", sentence)
    rig.seconds(1.0)
    notify(rig, "n", "the house burns.", urgent=True)
    assert rig.until(rig.is_quiet)
    assert [p["text"] for p in rig.answers()] == ["the house burns.", sentence.strip()]
    rig.mute(False)


def test_words_over_an_urgent_notice_end_it_and_the_answer_behind_it(rig: ConversationRig) -> None:
    rig.ask("tell me", rig.sentence(), rig.sentence())
    assert rig.until(lambda: len(rig.complete_words) >= 3)
    notify(rig, "n", "the house burns and so does the barn behind it.", urgent=True)
    assert rig.until(lambda: "burns" in rig.words_sounded(), 5.0)
    rig.say("tell me about trains")
    rig.advance(3)
    assert rig.inputs[-1].text == "tell me about trains"
    assert [p["status"] for p in rig.answers()] == ["interrupted", "interrupted"]
    assert states(rig, "n")[-1] == "spoken", "some of it was heard"


def test_the_user_comes_before_its_first_sound_and_it_waits_again(rig: ConversationRig) -> None:
    notify(rig, "n", "the kettle boils.")
    rig.plans.append((("say", "about trains."),))
    rig.type("tell me about trains")
    assert rig.until(rig.is_quiet)
    assert rig.words_sounded().startswith("about trains.")
    assert rig.until(lambda: states(rig, "n")[-1] == "spoken", 5.0)
    assert [entry["text"] for entry in rig.stored() if entry["role"] == "user"] == ["tell me about trains"]


@pytest.mark.parametrize(("second", "text"), [("n1", "the kettle boils."), ("n2", "the kettle boils.")])
def test_twins_are_one(rig: ConversationRig, second: str, text: str) -> None:
    rig.ask("tell me", rig.sentence(8))
    notify(rig, "n1", "the kettle boils.")
    notify(rig, second, text)
    assert rig.until(rig.is_quiet)
    assert rig.words_sounded().count("the kettle boils.") == 1
    assert [p["state"] for p in rig.payloads("notify:state")].count("coalesced") == 1


@pytest.mark.parametrize("urgent", [False, True])
@pytest.mark.parametrize("when", ["at once", "while it is said", "just after"])
@pytest.mark.parametrize(
    ("second", "text", "again"),
    [
        ("n1", "the house burns.", "the house burns."),
        ("n2", "the house burns.", "The house burns!"),
        ("n2", "房子着火了。", "房子着火了"),
    ],
)
def test_the_same_words_are_not_said_again(
    rig: ConversationRig, second: str, text: str, again: str, when: str, urgent: bool
) -> None:
    notify(rig, "n1", text, urgent=urgent)
    if when == "while it is said":
        assert rig.until(lambda: bool(rig.complete_words))
    elif when == "just after":
        assert rig.until(rig.is_quiet)
        rig.seconds(3.0)
    notify(rig, second, again, urgent=urgent)
    assert rig.until(rig.is_quiet)
    rig.seconds(1.0)
    assert letters(rig.words_sounded()) == letters(text)
    assert [p["state"] for p in rig.payloads("notify:state")].count("coalesced") == 1
    rig.seconds(15.0)
    notify(rig, second, again, urgent=urgent)
    assert rig.until(rig.is_quiet)
    assert letters(rig.words_sounded()) == letters(text + again), "later it is news again"


def test_the_same_id_with_other_words_is_said_though_the_first_sounds(rig: ConversationRig) -> None:
    notify(rig, "n", "the house burns.", urgent=True)
    assert rig.until(lambda: bool(rig.complete_words))
    notify(rig, "n", "the fire is out.", urgent=True)
    assert rig.until(rig.is_quiet)
    rig.seconds(1.0)
    assert rig.until(rig.is_quiet)
    assert sorted(rig.words_sounded().split()) == sorted(["the", "house", "burns.", "the", "fire", "is", "out."])


def test_an_urgent_twin_of_one_that_waits_is_said_at_once(rig: ConversationRig) -> None:
    rig.ask("tell me", rig.sentence(8), rig.sentence(8))
    notify(rig, "n", "the house burns.", urgent=True)
    notify(rig, "n", "the house burns.", urgent=False)
    assert rig.until(lambda: states(rig, "n").count("spoken") == 1, 5.0)
    assert rig.core.turns.active is not None, "the answer goes on behind it"
    assert rig.until(rig.is_quiet)
    assert rig.words_sounded().count("the house burns.") == 1


def test_two_reminders_with_the_same_words_are_both_over_when_they_are_said(rig: ConversationRig) -> None:
    remind(rig, "water the plants.", 5.0)
    remind(rig, "water the plants.", 5.0)
    rig.seconds(10.0)
    assert rig.words_sounded() == "water the plants." and waiting(rig) == []


@pytest.mark.parametrize("urgent", [False, True])
@pytest.mark.parametrize("expires_s", [0.001, 0.02])
def test_one_that_expires_before_its_first_sound_is_not_said(
    rig: ConversationRig, expires_s: float, urgent: bool
) -> None:
    sentence = rig.sentence(8)
    rig.ask("tell me", sentence)
    notify(rig, "held", "the bus leaves.", urgent=urgent, expires_s=expires_s)
    assert rig.until(rig.is_quiet)
    assert letters(rig.words_sounded()) == letters(sentence), "the answer goes on"
    notify(rig, "alone", "the bus leaves.", urgent=urgent, expires_s=expires_s)
    rig.seconds(2.0)
    assert letters(rig.words_sounded()) == letters(sentence)
    assert states(rig, "held")[-1] == states(rig, "alone")[-1] == "expired"
    assert [p["text"] for p in rig.answers()] == [sentence.strip()]


def test_a_twin_that_lives_longer_is_not_lost_with_the_one_that_expires(rig: ConversationRig) -> None:
    notify(rig, "short", "the bus leaves.", expires_s=0.005)
    notify(rig, "long", "the bus leaves.")
    assert rig.until(lambda: states(rig, "short")[-1] == "spoken", 3.0)
    assert rig.words_sounded() == "the bus leaves." and states(rig, "long") == ["due", "coalesced"]


def test_one_that_makes_no_sense_any_more_expires(rig: ConversationRig) -> None:
    rig.type("tell me")
    rig.until(lambda: bool(rig.open_calls()))
    notify(rig, "n", "the bus leaves.", expires_s=1.0)
    rig.seconds(1.5)
    assert states(rig, "n")[-1] == "expired"
    rig.finish_everything()
    assert rig.words_sounded() == ""


def test_more_than_can_wait_the_least_important_expires(rig: ConversationRig) -> None:
    rig.type("tell me")
    rig.until(lambda: bool(rig.open_calls()))
    for number in range(32):
        notify(rig, f"n{number}", f"notice {number}.")
    notify(rig, "last", "urgent notice.", urgent=False)
    assert states(rig, "n0")[-1] == "expired"
    assert states(rig, "last")[-1] == "held"
    rig.stop_button()


def remind(rig: ConversationRig, text: str, in_s: float) -> Reminder:
    store = rig.core._reminders.store_for("test")
    due = rig.clock.wall() + timedelta(seconds=in_s)

    async def add() -> Reminder:
        return await store.add(text=text, due=due)

    reminder: Reminder = rig._run(add())
    rig.settle()
    return reminder


def waiting(rig: ConversationRig) -> list[str]:
    from orchestrator.store import records

    return [reminder.text for reminder in rig.database.transact_now(records.waiting_reminders)]


def test_a_reminder_is_said_when_it_is_due(rig: ConversationRig) -> None:
    remind(rig, "water the plants.", 20.0)
    rig.seconds(19.0)
    assert rig.words_sounded() == ""
    rig.seconds(3.0)
    assert rig.words_sounded() == "water the plants."
    assert waiting(rig) == []


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_reminder_survives_a_restart_and_fires_once(rig: ConversationRig, is_clean: bool) -> None:
    remind(rig, "water the plants.", 20.0)
    rig.seconds(5.0)
    rig.close() if is_clean else rig.kill()
    rig.open()
    assert waiting(rig) == ["water the plants."]
    rig.seconds(18.0)
    assert rig.words_sounded() == "water the plants."
    rig.kill()
    rig.open()
    rig.seconds(30.0)
    assert rig.words_sounded() == "water the plants.", "said once"


def test_one_that_fell_due_meanwhile_fires_at_start(rig: ConversationRig) -> None:
    remind(rig, "water the plants.", 20.0)
    rig.kill()
    rig.clock.advance(600.0)
    rig._begin_s = rig.clock.monotonic_s() - rig._blocks * 0.02
    rig.open()
    rig.seconds(3.0)
    assert rig.words_sounded() == "water the plants."


def test_one_that_waited_for_room_when_the_program_ended_is_due_again(rig: ConversationRig) -> None:
    rig.type("tell me")
    rig.until(lambda: bool(rig.open_calls()))
    remind(rig, "water the plants.", 1.0)
    rig.seconds(2.0)
    rig.close()
    rig.open()
    rig.seconds(3.0)
    assert "water the plants." in rig.words_sounded()


def test_a_cancelled_reminder_is_not_said(rig: ConversationRig) -> None:
    reminder = remind(rig, "water the plants.", 5.0)
    store = rig.core._reminders.store_for("test")
    assert rig._run(store.cancel(reminder.id))
    assert not rig._run(store.cancel(reminder.id))
    rig.seconds(8.0)
    assert rig.words_sounded() == ""


# --- words of a model -------------------------------------------------------------------------------------------------


@pytest.fixture
def capable(rig: ConversationRig, monkeypatch: pytest.MonkeyPatch) -> ConversationRig:
    monkeypatch.setattr(ScriptedModel, "can_plan", True)
    return rig


def model_says(rig: ConversationRig, text: str) -> None:
    assert rig.until(lambda: bool(rig.open_calls()), 3.0)
    rig.tokens(text)
    rig.end_model()


@pytest.mark.parametrize(
    ("text", "answer", "said"),
    [
        ("The bus 42 leaves at 8.", "bus 42 goes at 8 now.", "bus 42 goes at 8 now."),
        ("The bus 42 leaves at 8.", "bus 42 goes at 9 now.", "The bus 42 leaves at 8."),
        ("The bus 42 leaves at 8.", "", "The bus 42 leaves at 8."),
        ("水开了", "kettle.", "水开了"),
    ],
)
def test_a_capable_model_may_word_it_and_loses_nothing(
    capable: ConversationRig, text: str, answer: str, said: str
) -> None:
    notify(capable, "n", text)
    model_says(capable, answer)
    assert capable.until(capable.is_quiet)
    assert letters(capable.words_sounded()) == letters(said)
    assert states(capable, "n") == ["due", "spoken"]


def test_an_urgent_one_waits_for_no_model(capable: ConversationRig) -> None:
    notify(capable, "n", "the house burns.", urgent=True)
    assert capable.until(capable.is_quiet)
    assert capable.words_sounded() == "the house burns." and not capable.of("llm:call")


def test_a_model_that_takes_long_is_not_waited_for(capable: ConversationRig) -> None:
    notify(capable, "n", "the kettle boils.")
    capable.seconds(1.4)
    assert capable.words_sounded() == ""
    assert capable.until(capable.is_quiet, 5.0)
    assert capable.words_sounded() == "the kettle boils."


def test_a_model_may_put_it_off_once(capable: ConversationRig) -> None:
    notify(capable, "n", "the kettle boils.")
    model_says(capable, "LATER")
    capable.seconds(50.0)
    assert capable.words_sounded() == "" and states(capable, "n") == ["due", "held"]
    capable.seconds(10.0)
    model_says(capable, "LATER")
    assert capable.until(capable.is_quiet, 5.0)
    assert capable.words_sounded() == "the kettle boils.", "not a second time"
    assert states(capable, "n") == ["due", "held", "spoken"]
    assert [entry["text"] for entry in capable.stored()] == ["the kettle boils."]


def test_it_is_never_put_off_past_its_expiry(capable: ConversationRig) -> None:
    notify(capable, "n", "the bus leaves.", expires_s=20.0)
    model_says(capable, "LATER")
    capable.seconds(14.0)
    assert capable.words_sounded() == ""
    model_says(capable, "LATER")
    assert capable.until(capable.is_quiet, 5.0)
    assert capable.words_sounded() == "the bus leaves."
    notify(capable, "m", "the train leaves.", expires_s=4.0)
    model_says(capable, "LATER")
    assert capable.until(lambda: states(capable, "m")[-1] == "spoken", 3.5), "no time to put it off"


# --- the quiet after a stop ------------------------------------------------------------------------------------------

QUIET_S = InterruptionTimes().quiet_after_stop_s


def stop_by(rig: ConversationRig, way: str) -> None:
    """Stop the answer that sounds, or nothing."""
    if way == "button":
        rig.do(lambda: rig.core.handle(Stop()))
    elif way == "typed":
        rig.type("stop")
    else:
        rig.say("停一下" if way == "spoken_zh" else "hold on")
    rig.advance(2)


@pytest.mark.parametrize("way", ["button", "typed", "spoken", "spoken_zh"])
def test_a_stop_asks_for_quiet_and_what_can_wait_waits(rig: ConversationRig, way: str) -> None:
    rig.ask("tell me", rig.sentence(8), rig.sentence(8))
    assert rig.until(lambda: len(rig.complete_words) >= 2)
    notify(rig, "n", "the kettle boils.")
    stop_by(rig, way)
    stopped_s = rig.clock.monotonic_s()
    rig.seconds(QUIET_S - 0.5)
    assert "kettle" not in rig.words_sounded() and states(rig, "n") == ["due", "held"]
    assert rig.until(lambda: states(rig, "n")[-1] == "spoken", 5.0)
    assert "the kettle boils." in rig.words_sounded()
    assert rig.clock.monotonic_s() - stopped_s < QUIET_S + 3.0, "it is not forgotten either"


def test_in_the_quiet_an_urgent_one_is_said_at_once_and_one_that_expires_never(rig: ConversationRig) -> None:
    stop_by(rig, "button")
    notify(rig, "tea", "the kettle boils.")
    notify(rig, "bus", "the bus is here.", expires_s=2.0)
    notify(rig, "fire", "the house burns.", urgent=True)
    assert rig.until(lambda: states(rig, "fire")[-1] == "spoken", 2.0)
    assert rig.until(lambda: states(rig, "tea")[-1] == "spoken", QUIET_S + 3.0)
    assert states(rig, "bus") == ["due", "held", "expired"]
    assert letters(rig.words_sounded()) == letters("the house burns.the kettle boils.")
    assert [p["because"] for p in rig.payloads("notify:state") if p["state"] == "held"] == ["after_stop"] * 2


def test_the_next_question_ends_the_quiet(rig: ConversationRig) -> None:
    stop_by(rig, "button")
    notify(rig, "n", "the kettle boils.")
    answer = rig.sentence(2)
    rig.ask("tell me", answer)
    assert rig.until(lambda: states(rig, "n")[-1] == "spoken", QUIET_S - 1.0)
    assert letters(rig.words_sounded()) == letters(answer + "the kettle boils.")


def test_whoever_speaks_at_the_end_of_the_quiet_is_heard_out(rig: ConversationRig) -> None:
    stop_by(rig, "button")
    notify(rig, "n", "the kettle boils.")
    rig.seconds(QUIET_S - 0.5)
    rig.begin_to_speak()
    rig.seconds(2.0)
    assert states(rig, "n") == ["due", "held"]
    rig.finish_utterance("", rejected=True)
    assert rig.until(lambda: states(rig, "n")[-1] == "spoken", 5.0)


def test_a_stopped_notice_that_nobody_heard_comes_again_after_the_quiet(rig: ConversationRig) -> None:
    notify(rig, "n", "the kettle boils.")
    rig.do(lambda: rig.core.handle(Stop()))
    rig.seconds(QUIET_S - 0.5)
    assert rig.words_sounded() == ""
    assert rig.until(lambda: states(rig, "n")[-1] == "spoken", 3.0)
    assert rig.words_sounded() == "the kettle boils."


@pytest.mark.parametrize("quiet_s", [0.0, 20.0])
def test_how_long_the_quiet_lasts_is_the_users_choice(tmp_path: Path, quiet_s: float) -> None:
    (tmp_path / "policy.yml").write_text(f"interruption: {{quiet_after_stop_s: {quiet_s}}}\n", encoding="utf-8")
    rig = ConversationRig(tmp_path / "q.db", policy=load_policy([tmp_path / "policy.yml"]))
    stop_by(rig, "button")
    notify(rig, "n", "the kettle boils.")
    rig.seconds(quiet_s - 1.0 if quiet_s else 1.0)
    assert ("kettle" in rig.words_sounded()) is (quiet_s == 0.0)
    assert rig.until(lambda: states(rig, "n")[-1] == "spoken", 3.0)
    rig.close()
    rig.check()
    rig.dispose()
