from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.speech.words import ends_clause, ends_sentence, is_pronounced, reading_duration_s, word_spans


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Hello, (there) world! — ok 😀.", ["Hello,", "(there)", "world! —", "ok 😀."]),
        ("你好，世界。Hello世界(吗)?", ["你", "好，", "世", "界。", "Hello", "世", "界", "(吗)?"]),
        ("“Yes,” he said: 3.5 km + 2 = 5.", ["“Yes,”", "he", "said:", "3.5", "km", "+", "2", "=", "5."]),
        ("在15：30，花￥20，买3.5公里。", ["在", "15：30，", "花", "￥20，", "买", "3.5", "公", "里。"]),
        ("「停一下」他说。", ["「停", "一", "下」", "他", "说。"]),
        ("well... no", ["well...", "no"]),
        ("-5 degrees", ["-5", "degrees"]),
        ("", []),
        (" … — ", []),
    ],
)
def test_words_are_counted_alike_in_both_languages(text, words):
    assert [span.text for span in word_spans(text)] == words


@given(st.text(alphabet=st.sampled_from("ab1 ,.!?，。！—…「」“”()你好世界😀$%+-\n'"), max_size=40))
def test_spans_are_slices_in_order_and_leave_out_only_what_is_not_said(text):
    spans = word_spans(text)
    at = 0
    for span in spans:
        assert span.char_start >= at
        assert text[span.char_start : span.char_end] == span.text
        assert not any(char.isalnum() for char in text[at : span.char_start])
        assert any(is_pronounced(char) for char in span.text)
        at = span.char_end
    assert not any(char.isalnum() for char in text[at:])


def test_a_decimal_point_ends_neither_clause_nor_sentence():
    assert not ends_clause("3.5")
    assert ends_clause("two,")
    assert not ends_sentence("two,")
    assert ends_sentence("吗？」")
    assert ends_clause("好，")


def test_reading_takes_longer_for_more_text_and_about_as_long_as_speaking():
    assert reading_duration_s("") == 0.0
    assert 0.8 < reading_duration_s("How are you today?") < 2.5
    assert 0.8 < reading_duration_s("你今天好吗？") < 2.5
