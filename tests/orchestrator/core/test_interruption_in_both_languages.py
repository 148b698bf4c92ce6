"""The rows of interruption with transcripts in both languages, over the real core and the real player."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from rigs.conversation_rig import ConversationRig, checked_rig, letters

from orchestrator.contracts.lanes import GenerationState


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[ConversationRig]:
    yield from checked_rig(tmp_path)


def speak(rig: ConversationRig, *sentences: str) -> None:
    rig.ask("tell me", *(sentences or (rig.sentence(), rig.sentence(), rig.sentence())))
    assert rig.until(lambda: len(rig.complete_words) >= 2)


def verdict(rig: ConversationRig) -> tuple[str, str]:
    payload = rig.payloads("interrupt:confirm")[-1]
    return payload["verdict"], payload["because"]


@pytest.mark.parametrize("words", ["mm-hm", "uh-huh", "yeah, right", "嗯", "对，对", "好的", "原来如此"])
def test_a_backchannel_is_resumed_without_a_new_call(rig: ConversationRig, words: str) -> None:
    sentences = (rig.sentence(), rig.sentence(), rig.sentence())
    speak(rig, *sentences)
    rig.say(words)
    assert verdict(rig) == ("resume", "backchannel")
    assert rig.until(rig.is_quiet)
    assert letters(rig.words_sounded()) == letters("".join(sentences))
    assert len(rig.of("llm:call")) == 1
    assert rig.voice.calls == len(rig.intents)


@pytest.mark.parametrize(
    "words", ["stop", "no no, wait", "hold on a second", "停一下", "哎，等一下", "先别说了", "等等", "别说了"]
)
def test_a_stop_phrase_is_silence_and_no_reply(rig: ConversationRig, words: str) -> None:
    speak(rig)
    rig.say(words)
    heard = rig.words_sounded()
    assert verdict(rig) == ("stop_only", "words")
    rig.seconds(2.0)
    assert rig.words_sounded() == heard
    assert len(rig.inputs) == 1
    assert rig.answers()[-1]["status"] == "interrupted"


@pytest.mark.parametrize(
    ("words", "rest"),
    [
        ("wait, I meant tomorrow", "I meant tomorrow"),
        ("hold on, what about Rome", "what about Rome"),
        ("等一下，我说的是明天", "我说的是明天"),
        ("停，换个话题", "换个话题"),
    ],
)
def test_what_follows_a_stop_phrase_is_the_input(rig: ConversationRig, words: str, rest: str) -> None:
    speak(rig)
    rig.say(words)
    assert verdict(rig) == ("cancel", "words")
    assert (rig.inputs[-1].text, rig.inputs[-1].interrupt_hint) == (rest, "interrupted")


@pytest.mark.parametrize("words", ["not that", "that's not what I asked", "不是这个", "我问的不是这个"])
def test_an_objection_is_an_input_of_its_own(rig: ConversationRig, words: str) -> None:
    speak(rig)
    rig.say(words)
    assert verdict(rig) == ("cancel", "words")
    assert (rig.inputs[-1].text, rig.inputs[-1].interrupt_hint) == (words, "objection")


@pytest.mark.parametrize("words", ["don't stop", "等一下也行"])
def test_what_only_looks_like_a_stop_phrase_is_words(rig: ConversationRig, words: str) -> None:
    speak(rig)
    rig.say(words)
    assert verdict(rig) == ("cancel", "words")
    assert rig.inputs[-1].text == words


@pytest.mark.parametrize("words", ["stop", "停一下"])
def test_a_stop_phrase_in_a_partial_cuts_at_once(rig: ConversationRig, words: str) -> None:
    speak(rig)
    active = rig.core.turns.active
    assert active is not None
    rig.begin_to_speak()
    rig.partial(words)
    assert active.state is GenerationState.SUSPENDED
    heard = rig.words_sounded()
    rig.seconds(0.5)
    assert rig.words_sounded() == heard
    rig.finish_utterance(words)
    assert active.state is GenerationState.CANCELLED


@pytest.mark.parametrize("words", ["yeah", "对"])
def test_an_answer_to_a_question_is_no_backchannel(rig: ConversationRig, words: str) -> None:
    rig.brain.answers = frozenset({words})
    speak(rig)
    rig.say(words)
    assert verdict(rig) == ("cancel", "words")
    assert rig.inputs[-1].text == words


def test_only_our_own_words_are_an_echo(rig: ConversationRig) -> None:
    sentences = (rig.sentence(8), rig.sentence(8))
    speak(rig, *sentences)
    assert rig.until(lambda: len(rig.complete_words) >= 6)
    rig.say(" ".join(sentences[0].split()[1:6]))
    assert verdict(rig) == ("resume", "echo")
    assert rig.until(rig.is_quiet)
    assert letters(rig.words_sounded()) == letters("".join(sentences))


def test_the_time_limit_waits_for_a_user_who_began_again(rig: ConversationRig) -> None:
    speak(rig)
    rig.vad_cut()
    rig.seconds(1.5)
    rig.begin_to_speak()
    rig.seconds(2.0)
    assert not rig.of("output:resume"), "the user is speaking"
    rig.finish_utterance("tell me about trains")
    assert verdict(rig) == ("cancel", "words")


@pytest.mark.parametrize("words", ["what about Rome", "罗马怎么样"])
def test_a_protected_answer_goes_on_and_the_words_are_answered_after_it(rig: ConversationRig, words: str) -> None:
    warning = rig.sentence(8)
    rig.plans.append((("say", warning, False),))
    rig.type("delete everything")
    assert rig.until(lambda: len(rig.complete_words) >= 2)
    assert rig.vad_cut() is None, "the ears may not cut it"
    rig.say(words)
    assert rig.until(lambda: len(rig.inputs) == 2, 10.0)
    assert rig.inputs[-1].text == words
    assert rig.answers()[0] | {"text": warning.strip(), "status": "completed"} == rig.answers()[0]


def test_the_stop_button_stops_even_a_protected_answer(rig: ConversationRig) -> None:
    rig.plans.append((("say", rig.sentence(9), False),))
    rig.type("delete everything")
    assert rig.until(lambda: len(rig.complete_words) >= 2)
    rig.stop_button()
    assert rig.core.turns.active is None
    assert rig.answers() == [] or rig.answers()[-1]["status"] == "interrupted"


def test_a_noise_before_the_first_sound_releases_the_answer(rig: ConversationRig) -> None:
    rig.type("tell me")
    rig.until(lambda: bool(rig.open_calls()))
    rig.begin_to_speak()
    active = rig.core.turns.active
    assert active is not None and active.state is GenerationState.SUSPENDED
    sentence = rig.sentence()
    rig.tokens(sentence)
    rig.end_model()
    rig.seconds(1.0)
    assert not rig.complete_words, "held while the user speaks"
    rig.finish_utterance("", rejected=True)
    assert rig.until(rig.is_quiet)
    assert letters(rig.words_sounded()) == letters(sentence)
    assert len(rig.of("llm:call")) == 1


@pytest.mark.parametrize(
    ("first", "second", "joined"),
    [
        ("tell me about Rome", "in winter", "tell me about Rome in winter"),
        ("罗马怎么样", "我是说冬天", "罗马怎么样我是说冬天"),
    ],
)
def test_words_before_the_first_sound_are_joined(rig: ConversationRig, first: str, second: str, joined: str) -> None:
    rig.say(first, cut=False)
    rig.until(lambda: bool(rig.open_calls()))
    rig.say(second, cut=False)
    assert rig.inputs[-1].text == joined
    assert [entry["text"] for entry in rig.stored()] == [joined]
    assert [c.generation_id for c in rig.open_calls()] == [rig.core.turns.active.generation_id]  # type: ignore[union-attr]


def test_a_failing_voice_shows_the_text_and_it_counts(rig: ConversationRig) -> None:
    rig.voice.fail_next = 9
    sentence = rig.sentence()
    rig.ask("tell me", sentence)
    assert rig.until(rig.is_quiet)
    assert not rig.complete_words
    assert [(p["text"], p["status"]) for p in rig.answers()] == [(sentence.strip(), "completed")]
    assert [p["code"] for p in rig.payloads("app:error")] == ["tts_failed"], "said once"


def test_typed_text_cancels_and_is_answered(rig: ConversationRig) -> None:
    speak(rig)
    active = rig.core.turns.active
    rig.type("what about trains")
    assert active is not None and active.state is GenerationState.CANCELLED
    assert rig.until(lambda: len(rig.inputs) == 2, 2.0)
    assert (rig.inputs[-1].text, rig.inputs[-1].interrupt_hint) == ("what about trains", "interrupted")


def test_an_interrupt_that_has_expired_changes_nothing(rig: ConversationRig) -> None:
    from orchestrator.contracts.events import Event, InputInterrupt
    from orchestrator.contracts.lanes import InterruptReason

    speak(rig)
    active = rig.core.turns.active
    assert active is not None
    event = Event(
        payload=InputInterrupt(reason=InterruptReason.USER_STOP, by="button"),
        source="rig",
        target_generation_id=active.generation_id,
        expires_at_s=rig.clock.monotonic_s() - 1.0,
    )
    rig.do(lambda: rig.bus.post(event))
    assert active.state is GenerationState.STREAMING
    assert rig.bus.counters["dropped:expired"] == 1
