from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from audio.tts.alignment import assign_words, is_sound


def owners(words, sentence):
    return assign_words([list(word) for word in words], list(sentence))


def test_words_that_run_together_are_told_apart():
    found = owners(["ʌv", "ðə", "dˈeɪ"], "ʌvðə dˈeɪ,")
    assert found == [0, 0, 1, 1, None, 2, 2, 2, 2, None]


def test_a_word_of_several_spoken_words_owns_them_all():
    assert owners(["twˈɛnti fˈaɪv", "dˈeɪz"], "twˈɛnti fˈaɪv dˈeɪz")[:8] == [0, 0, 0, 0, 0, 0, 0, None]


def test_changed_vowels_and_lost_sounds_stay_with_their_word():
    found = owners(["ænd", "ðˈɛn", "ɡˈoʊ"], "ən ðɛn ɡoʊ")
    assert [label for label in found if label is not None] == [0, 0, 1, 1, 1, 2, 2, 2]


def test_marks_go_with_their_sound_and_pauses_belong_to_nobody():
    assert owners(["ɪˈt", "nˈɑːt"], "ɪt, ˈnɑːt.") == [0, 0, None, None, 1, 1, 1, 1, 1, None]


def test_nothing_to_align():
    assert owners([], "abc") == [None, None, None]
    assert owners(["abc"], " ,") == [None, None]


@given(st.lists(st.text("ptkaeiou ˈː", max_size=5), max_size=6), st.text("ptkaeiou ˈː,.", max_size=30))
def test_owners_never_go_back_and_every_sound_has_one(words, sentence):
    found = owners(words, sentence)
    labels = [label for label in found if label is not None]
    assert labels == sorted(labels)
    if any(is_sound(phoneme) for word in words for phoneme in word):
        assert all(label is not None for label, phoneme in zip(found, sentence, strict=True) if is_sound(phoneme))
