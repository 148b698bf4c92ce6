from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audio.tts.normalise import normalise, sentence
from audio.tts.numerals import chinese_cardinal, english_cardinal, english_ordinal, english_year
from orchestrator.speech.words import word_spans


def english(text):
    return sentence(normalise(text, "en"), "en")


def chinese(text):
    return sentence(normalise(text, "zh"), "zh")


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("Meet Dr. Smith at 15:30.", "Meet doctor Smith at fifteen thirty."),
        ("Due 2026-12-09, then.", "Due December ninth, twenty twenty six, then."),
        ("At 2026-12-09T08:05 sharp", "At December ninth, twenty twenty six, eight oh five sharp"),
        ("It is 3.5 km away.", "It is three point five kilometers away."),
        ("1 km, 80 km/h", "one kilometer, eighty kilometers per hour"),
        ("20% off", "twenty percent off"),
        ("$5, $3.50 or $1.5M", "five dollars, three dollars and fifty cents or one point five million dollars"),
        ("￥20 or €1", "twenty yuan or one euro"),
        ("Mr. and Mrs. Li vs. us", "mister and missus Li versus us"),
        ("It is 3:05 pm, or 7:00.", "It is three oh five P M, or seven o'clock."),
        ("Dec 9, 2026", "December ninth, twenty twenty six"),
        ("the 21st of May 2005", "the twenty first of May two thousand five"),
        ("in 1984 and the 1990s", "in nineteen eighty four and the nineteen nineties"),
        ("1,000,000 things", "one million things"),
        ("5-10 kg", "five to ten kilograms"),
        ("call 555-0123", "call five five five, zero one two three"),
        ("v2.0.1", "version two point zero point one"),
        ("1/2 cup", "one half cup"),
        ("-5°C", "minus five degrees celsius"),
        ("2 + 2 = 4", "two plus two equals four"),
        ("No. 5, no!", "number five, no!"),
        ("221B and GPT-4", "two hundred twenty one B and GPT four"),
        ("agent 007", "agent zero zero seven"),
        ("e.g. this, etc.", "for example this, et cetera."),
        ("St. Mary on Main St.", "saint Mary on Main street."),
        ("I may be", "I may be"),
    ],
)
def test_english(written, spoken):
    assert english(written) == spoken


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("15:30开会", "十五点三十分开会"),
        ("2:05见", "两点零五分见"),
        ("2026-12-09到期", "二零二六年十二月九日到期"),
        ("2026年12月9日", "二零二六年十二月九日"),
        ("3.5 km外", "三点五公里外"),
        ("打折20%。", "打折百分之二十。"),
        ("￥20或$5", "二十元或五美元"),
        ("2个人，第2次，12个", "两个人，第二次，十二个"),
        ("10001只", "一万零一只"),
        ("1/3，-5℃", "三分之一，负五摄氏度"),
        ("打13800138000", "打一三八零零一三八零零零"),
        ("5-10公斤", "五到十公斤"),
        ("5%-10%", "百分之五到百分之十"),
        ("用Python写", "用Python写"),
        ("1,024", "一千零二十四"),
    ],
)
def test_chinese(written, spoken):
    assert chinese(written) == spoken


@pytest.mark.parametrize(
    ("number", "english_words", "chinese_words"),
    [
        (0, "zero", "零"),
        (10, "ten", "十"),
        (15, "fifteen", "十五"),
        (110, "one hundred ten", "一百一十"),
        (1005, "one thousand five", "一千零五"),
        (20300, "twenty thousand three hundred", "两万零三百"),
        (100010, "one hundred thousand ten", "十万零一十"),
        (100000001, "one hundred million one", "一亿零一"),
        (-7, "minus seven", "负七"),
    ],
)
def test_numbers(number, english_words, chinese_words):
    assert english_cardinal(number) == english_words
    assert chinese_cardinal(number) == chinese_words


def test_ranks_and_years():
    assert [english_ordinal(n) for n in (1, 2, 3, 12, 20, 101)] == [
        "first",
        "second",
        "third",
        "twelfth",
        "twentieth",
        "one hundred first",
    ]
    assert [english_year(n) for n in (1900, 1905, 2000, 2026)] == [
        "nineteen hundred",
        "nineteen oh five",
        "two thousand",
        "twenty twenty six",
    ]


@given(
    st.text(alphabet=st.sampled_from("aB19 .,:/-%$￥€°@#&+=!?'“”，。！：年个月好km"), max_size=30),
    st.sampled_from(["en", "zh"]),
)
def test_the_map_to_the_written_words_is_kept_and_no_digit_is_left(text, language):
    words = normalise(text, language)
    assert [(w.text, w.char_start, w.char_end) for w in words] == [
        (s.text, s.char_start, s.char_end) for s in word_spans(text)
    ]
    assert not any(char in "0123456789" for char in sentence(words, language))
