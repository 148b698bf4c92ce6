from __future__ import annotations

import numpy as np
import pytest

from audio.tts.visemes import SHAPES, shape_of, visemes_from_loudness, visemes_from_phonemes


@pytest.mark.parametrize(
    ("phoneme", "shape"),
    [("m", "mbp"), ("f", "fv"), ("θ", "th"), ("s", "sz"), ("u", "oo"), ("ɹ", "r"), ("ɑ", "aa"), (".", "rest")],
)
def test_phonemes_have_the_shape_one_sees(phoneme, shape):
    assert shape_of(phoneme) == shape


def test_marks_do_not_move_the_mouth():
    assert [shape_of(mark) for mark in "ˈˌː "] == [None] * 4


def test_shapes_are_merged_and_begin_and_end_at_rest():
    timed = [("^", 0.0), ("m", 0.1), ("p", 0.15), ("a", 0.2), ("ː", 0.3), (".", 0.4), ("$", 0.5)]
    shapes = visemes_from_phonemes(timed, duration_s=0.6)
    assert [(v.shape, v.start_s) for v in shapes] == [("rest", 0.0), ("mbp", 0.1), ("aa", 0.2), ("rest", 0.4)]
    open_end = visemes_from_phonemes([("a", 0.0)], duration_s=0.3)
    assert (open_end[-1].shape, open_end[-1].start_s) == ("rest", 0.3)


def test_loudness_opens_and_silence_closes():
    rate = 16_000
    t = np.arange(rate) / rate
    pcm = (np.sin(2 * np.pi * 200 * t) * 0.5).astype(np.float32)
    pcm[rate // 2 : 3 * rate // 4] = 0.0
    shapes = visemes_from_loudness(pcm, rate)
    assert {v.shape for v in shapes} <= set(SHAPES)
    inside = [v for v in shapes if 0.5 <= v.start_s <= 0.6]
    assert inside[-1].shape == "rest"
    assert shapes[0].shape == "aa"
    assert shapes[-1].shape == "rest"
    assert visemes_from_loudness(np.zeros(10, np.float32), rate)[-1].shape == "rest"
