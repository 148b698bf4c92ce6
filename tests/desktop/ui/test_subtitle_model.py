from __future__ import annotations

from typing import Any

import pytest

from desktop.ui.subtitles.model import KEPT_BLOCKS, Block, Sentence, SubtitleModel
from orchestrator.contracts.ids import GenerationId, IntentId, UtteranceId
from orchestrator.contracts.views import (
    CharacterTextView,
    GenerationEndedView,
    SpeechStoppedView,
    UserTextView,
)

G1, I1, I2 = GenerationId("g-1"), IntentId("i-1"), IntentId("i-2")


def never(_: object) -> bool:
    return False


def user(text: str, *, final: bool, utterance: str | None = "u-1") -> UserTextView:
    return UserTextView(utterance_id=UtteranceId(utterance) if utterance else None, text=text, final=final)


def stopped(at_s: float, cut_at: int | None, *, held: bool = False, intent: IntentId = I1) -> SpeechStoppedView:
    return SpeechStoppedView(generation_id=G1, intent_id=intent, at_s=at_s, cut_at=cut_at, held=held)


def sentence(model: SubtitleModel, index: int = 0) -> Sentence:
    return model.blocks[-1].sentences[index]


@pytest.fixture
def model(spoken: Any) -> SubtitleModel:
    made = SubtitleModel()
    made.add_character_text(spoken.added())
    return made


def test_words_are_lit_when_they_sound_and_not_by_an_even_split(model: SubtitleModel, spoken: Any) -> None:
    assert sentence(model).lit_to == 0
    model.start_speech(spoken.started(10.0))
    lit = {}
    for at_s in (9.9, 10.05, 10.15, 10.25, 10.95, 11.4, 11.55, 12.5):
        model.advance(at_s, never)
        lit[at_s] = sentence(model).lit_to
    assert lit == {9.9: 0, 10.05: 0, 10.15: 2, 10.25: 13, 10.95: 13, 11.4: 13, 11.55: 17, 12.5: 17}


def test_the_word_that_sounds_is_marked_and_a_pause_marks_none(model: SubtitleModel, spoken: Any) -> None:
    model.start_speech(spoken.started(10.0))
    marked = []
    for at_s in (10.5, 11.2, 11.6, 12.5):
        model.advance(at_s, never)
        marked.append(sentence(model).current)
    assert marked == [(3, 13), None, (14, 17), None]


def test_advance_tells_whether_there_is_something_new(model: SubtitleModel, spoken: Any) -> None:
    model.start_speech(spoken.started(10.0))
    assert [model.advance(at_s, never) for at_s in (10.0, 10.3, 10.4, 11.1, 11.2)] == [False, True, False, True, False]


def test_a_cut_ends_the_light_where_it_was_heard_and_a_resume_takes_it_back(model: SubtitleModel, spoken: Any) -> None:
    model.start_speech(spoken.started(10.0))
    model.advance(10.5, never)
    model.stop_speech(stopped(10.5, 3, held=True))
    assert (sentence(model).lit_to, sentence(model).cut_at, sentence(model).current) == (3, 3, None)
    assert not model.advance(11.0, never)
    model.start_speech(spoken.started(20.0, offset_s=0.2))
    assert sentence(model).cut_at is None
    lit = []
    for at_s in (19.9, 20.05, 21.35):
        model.advance(at_s, never)
        lit.append(sentence(model).lit_to)
    assert lit == [3, 13, 17]


def test_a_sentence_played_out_is_lit_to_its_end(model: SubtitleModel, spoken: Any) -> None:
    model.start_speech(spoken.started(10.0))
    model.stop_speech(stopped(12.0, None))
    assert (sentence(model).lit_to, sentence(model).cut_at) == (17, None)


def test_a_cancelled_answer_is_cut_where_it_was(model: SubtitleModel, spoken: Any) -> None:
    model.add_character_text(CharacterTextView(generation_id=G1, intent_id=I2, text="Never heard."))
    model.start_speech(spoken.started(10.0))
    model.advance(10.3, never)
    model.end_generation(GenerationEndedView(generation_id=G1, outcome="cancelled"))
    assert [(s.lit_to, s.cut_at) for s in model.blocks[-1].sentences] == [(13, 13), (0, 0)]
    model.stop_speech(stopped(10.3, 3))
    assert (sentence(model).lit_to, sentence(model).cut_at) == (3, 3)


def test_an_answer_cancelled_before_it_was_heard_leaves_nothing(model: SubtitleModel) -> None:
    model.end_generation(GenerationEndedView(generation_id=G1, outcome="cancelled"))
    assert model.blocks == []


def test_a_stale_answer_lights_no_further(model: SubtitleModel, spoken: Any) -> None:
    model.start_speech(spoken.started(10.0))
    model.advance(10.15, never)
    model.advance(10.5, lambda generation: generation == G1)
    assert (sentence(model).lit_to, sentence(model).current) == (2, None)


def test_what_is_only_shown_is_lit_at_once() -> None:
    model = SubtitleModel()
    model.add_character_text(CharacterTextView(generation_id=G1, intent_id=I1, text="你好。", spoken=False))
    assert sentence(model).lit_to == 3


def test_live_words_settle_in_their_line_and_an_empty_end_takes_it_away() -> None:
    model = SubtitleModel()
    model.set_user_text(user("what is", final=False))
    model.set_user_text(user("what is the time", final=False))
    assert [(b.text, b.is_tentative) for b in model.blocks] == [("what is the time", True)]
    model.set_user_text(user("What is the time?", final=True))
    assert [(b.text, b.is_tentative) for b in model.blocks] == [("What is the time?", False)]
    model.set_user_text(user("hm", final=False, utterance="u-2"))
    model.set_user_text(user("", final=True, utterance="u-2"))
    assert [b.text for b in model.blocks] == ["What is the time?"]


def test_typed_lines_without_an_utterance_stand_each_for_itself() -> None:
    model = SubtitleModel()
    model.set_user_text(user("one", final=True, utterance=None))
    model.set_user_text(user("two", final=True, utterance=None))
    assert [b.text for b in model.blocks] == ["one", "two"]


@pytest.mark.parametrize(
    ("texts", "joined", "starts"),
    [
        (["Yes.", "It is."], "Yes. It is.", [0, 5]),
        (["好的。", "今天晴。"], "好的。今天晴。", [0, 3]),
        (["OK.", "今天晴。", "Bye."], "OK.今天晴。Bye.", [0, 3, 7]),
    ],
)
def test_sentences_join_with_a_space_only_between_words_that_use_spaces(
    texts: list[str], joined: str, starts: list[int]
) -> None:
    block = Block(role="character")
    for index, text in enumerate(texts):
        block.sentences.append(Sentence(intent_id=IntentId(f"i-{index}"), text=text, spoken=True))
    assert block.joined() == (joined, starts)


def test_only_the_last_turns_are_kept() -> None:
    model = SubtitleModel()
    for number in range(20):
        model.set_user_text(user(str(number), final=True, utterance=f"u-{number}"))
    assert [b.text for b in model.blocks] == [str(n) for n in range(20 - KEPT_BLOCKS, 20)]


def test_a_timeline_that_comes_before_its_text_is_not_lost(spoken: Any) -> None:
    model = SubtitleModel()
    model.start_speech(spoken.started(10.0))
    model.add_character_text(spoken.added())
    model.advance(10.3, never)
    assert sentence(model).lit_to == 13


def test_the_same_sentence_shown_again_keeps_its_light(model: SubtitleModel, spoken: Any) -> None:
    model.start_speech(spoken.started(10.0))
    model.advance(10.3, never)
    model.stop_speech(stopped(10.3, 3, held=True))
    model.add_character_text(spoken.added())
    assert len(model.blocks[-1].sentences) == 1
    assert (sentence(model).lit_to, sentence(model).cut_at) == (3, 3)
