from __future__ import annotations

import itertools

import numpy as np
import pytest

from audio.tts.piper_adapter import PiperSynthesiser
from audio.tts.visemes import REST, SHAPES
from audio.tts.voice import spoken_language
from orchestrator.contracts.errors import InputError, PartFailed
from orchestrator.speech.words import word_spans

SENTENCES = [
    "Sure.",
    "Yes",
    "At the end of the day, I've got 25 of them.",
    "Dr. Smith doesn't live at 221B Baker Street; he is in the U.S.",
    "It is 15:30 on 2026-12-09 — in the middle of the night!",
    "The meeting is at 3:05 pm, not 4:10 am.",
    "That costs $5, or ￥20, or €3.50 at most.",
    "It's 3.5 km away and 20% steeper.",
    "What do you want to do about it?",
    "I'd have thought you'd've known that.",
    "Is it a, b, or c?",
    "He said: “Wait, what?” and left.",
    "In the beginning of the year of the horse.",
    "One. Two. Three.",
    "No, no, no!",
    "Hmm... let me think about that for a moment.",
    "Please open the file (the second one) and read it.",
    "GPT-4 and iPhone 15 are names.",
    "The 21st of May 2005 was a Saturday.",
    "She sells sea shells by the sea shore.",
    "You're welcome to it, aren't you?",
    "The quick brown fox jumps over the lazy dog.",
    "Of the people, by the people, for the people.",
    "It was in 1984, or in the 1990s.",
    "2 + 2 = 4",
    "1/2 of 1,000 is 500.",
    "Call 555-0123 now.",
    "version v2.0.1 is out",
    "a",
    "I",
    "Well-known state-of-the-art things.",
    "and/or",
    "Mr. and Mrs. Li, Prof. Wang, e.g. friends, etc.",
    "I scream, you scream, we all scream for ice cream.",
    "Thank you very much indeed.",
    "What's the weather like today in San Francisco?",
    "I can't discuss salary here. Please check the HR portal.",
    "Your timer for ten minutes is set; I'll tell you when it's done.",
    "Emoji 😀 are not read — really.",
    "This sentence is somewhat longer than the others, since it has to show that the times stay right to its very end.",
]


@pytest.fixture(scope="module")
def voice(model_path):
    return PiperSynthesiser(model_path("piper-en_US-joe-medium") / "voice.onnx")


@pytest.mark.models
@pytest.mark.parametrize("text", SENTENCES)
def test_every_word_has_its_time_and_the_mouth_closes(voice, text):
    made = voice.synthesise(text, language="en")
    assert made.rate_hz == 22_050
    assert made.pcm.dtype == np.float32
    assert not made.estimated
    spans = word_spans(text)
    assert [(w.text, w.char_start, w.char_end) for w in made.words] == [
        (s.text, s.char_start, s.char_end) for s in spans
    ]
    at_s = 0.0
    for word in made.words:
        assert at_s <= word.start_s < word.end_s <= made.duration_s, word
        assert word.end_s - word.start_s >= 0.03, word
        at_s = word.end_s
    # What is behind the last word is the silence that was left there, in front of the first one likewise.
    assert made.duration_s - made.words[-1].end_s < 0.25
    assert made.words[0].start_s < 0.15
    assert {v.shape for v in made.visemes} <= set(SHAPES)
    starts = [v.start_s for v in made.visemes]
    assert starts == sorted(starts)
    assert made.visemes[-1].shape == REST
    assert len(made.visemes) > len(spans)


@pytest.mark.models
def test_times_agree_with_the_sound(voice):
    """In the pause of a comma it is quiet, and in the words it is not."""
    made = voice.synthesise("First this, then that, finally nothing.", language="en")

    def level(start_s, end_s):
        part = made.pcm[int(start_s * made.rate_hz) : int(end_s * made.rate_hz)]
        return float(np.sqrt(np.mean(part**2)))

    words = made.words
    for word in words:
        assert level(word.start_s, word.end_s) > 0.02
    pauses = [(words[1].end_s, words[2].start_s), (words[3].end_s, words[4].start_s)]
    for start_s, end_s in pauses:
        assert end_s - start_s > 0.05
        assert level(start_s + 0.03, end_s - 0.01) < 0.5 * level(words[0].start_s, words[0].end_s)


@pytest.mark.models
def test_durations_add_up_to_the_sound_before_it_is_trimmed(voice):
    for text in ("Sure.", "One. Two. Three."):
        sentences, timeline = voice._encode(text, 1.0)
        frames = sum(len(item.samples(0, item.frames)) for item in sentences)
        assert frames > 5_000
        assert timeline is not None
        assert timeline[0][1] == 0
        assert timeline[-1][2] == frames
        assert all(before[2] == after[1] for before, after in itertools.pairwise(timeline))


@pytest.mark.models
def test_it_begins_and_ends_at_zero_and_is_not_too_loud(voice):
    made = voice.synthesise("Good morning to you.", language="en")
    assert abs(made.pcm[0]) < 0.001
    assert abs(made.pcm[-1]) < 0.001
    assert 0.3 < np.abs(made.pcm).max() <= 0.75


@pytest.mark.models
def test_a_faster_voice_is_shorter(voice, model_path):
    fast = PiperSynthesiser(model_path("piper-en_US-joe-medium") / "voice.onnx", speed=1.5)
    text = "This takes a while to say."
    assert fast.synthesise(text, language="en").duration_s < 0.85 * voice.synthesise(text, language="en").duration_s


@pytest.mark.models
def test_the_voice_knows_its_language(voice):
    assert voice.speaks("en")
    assert not voice.speaks("zh")
    assert voice.name == "piper-en_US-joe-medium"
    assert spoken_language("Hi 你好", "en") == "zh"
    assert spoken_language("Hi", "zh") == "en"
    assert spoken_language("Salut", "fr-FR") == "fr"


@pytest.mark.models
def test_nothing_to_say_is_a_failure_of_the_part(voice):
    with pytest.raises(PartFailed):
        voice.synthesise("😀", language="en")


def test_a_missing_or_broken_voice_is_one_clear_line(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        PiperSynthesiser(tmp_path / "none.onnx")
    (tmp_path / "bad.onnx").write_bytes(b"no model")
    (tmp_path / "bad.onnx.json").write_text("{}")
    with pytest.raises(InputError, match="cannot be loaded"):
        PiperSynthesiser(tmp_path / "bad.onnx")
