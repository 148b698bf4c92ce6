"""Pure helpers: units, guards, rejection, phrases, partials, Chinese, chunking."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from audio.stt.chinese import ChineseScript, finish_text, punctuate, to_script
from audio.stt.chunking import split_at_silences
from audio.stt.guards import find_flaw
from audio.stt.hallucinations import is_hallucination_phrase
from audio.stt.partials import StablePartial
from audio.stt.rejection import reject
from audio.stt.text import join_texts, split_pieces, units
from audio.stt.transcription import Transcription

# --- units -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Don't stop, please!", ["dont", "stop", "please"]),
        ("今天，天气怎么样？", list("今天天气怎么样")),
        ("打开 ComfyUI 吧。", ["打", "开", "comfyui", "吧"]),
        ("ＡＢＣ 20", ["abc", "20"]),
        ("... — ?", []),
        ("", []),
    ],
)
def test_units_are_words_or_chinese_characters(text: str, expected: list[str]) -> None:
    assert units(text) == expected


@given(st.text(alphabet=" ab,。今天!?", max_size=30))
def test_pieces_lose_nothing(text: str) -> None:
    assert "".join(split_pieces(text)).rstrip() == text.rstrip()


def test_texts_are_joined_with_a_space_only_between_words() -> None:
    assert join_texts(["one two.", " three"]) == "one two. three"
    assert join_texts(["今天很好。", "明天呢"]) == "今天很好。明天呢"
    assert join_texts(["", "好", "", "OK"]) == "好 OK"


# --- guards ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "audio_s", "flaw"),
    [
        ("What is the weather? What is the weather?", 2.0, "repeated"),
        ("What is the weather? What is the weather? What is", 2.0, "repeated"),
        ("今天天气怎么样?今天天气怎么样?", 3.0, "repeated"),
        ("I said no no no no no no", 2.0, "repeated"),
        ("so I went and I went and I went and", 3.0, "repeated"),
        ("one two three four five six seven eight nine ten eleven twelve", 2.0, "too_fast"),
        ("我们明天早上一起去公园散步然后吃饭吧", 2.0, "too_fast"),
        ("la " * 100, 60.0, "compressed"),
    ],
)
def test_runaway_texts_are_flagged(text: str, audio_s: float, flaw: str) -> None:
    assert find_flaw(text, audio_s=audio_s, is_capped=False) == flaw


@pytest.mark.parametrize(
    ("text", "audio_s"),
    [
        ("Would you rather fight a bear or a shark?", 2.1),
        ("five five", 1.0),
        ("no no", 0.6),
        ("no, no, no, wait", 1.2),
        ("谢谢谢谢", 1.0),
        ("等一下等一下", 1.2),
        ("好的好的", 0.8),
        ("大学生利用漏洞免费吃肯德基获刑", 3.0),
        ("", 1.0),
    ],
)
def test_what_people_say_is_not_flagged(text: str, audio_s: float) -> None:
    assert find_flaw(text, audio_s=audio_s, is_capped=False) is None


def test_the_token_limit_is_a_flaw_of_its_own() -> None:
    assert find_flaw("perfectly fine", audio_s=2.0, is_capped=True) == "capped"


# --- rejection -------------------------------------------------------------------------------------------------


def _result(
    text: str,
    *,
    logprob: float | None = -0.2,
    no_speech: float | None = 0.1,
    flaw: str | None = None,
    context: str = "full",
) -> Transcription:
    return Transcription(
        text=text,
        language="en",
        decode_s=0.1,
        avg_logprob=logprob,
        no_speech=no_speech,
        flaw=flaw,
        context=context,
    )


@pytest.mark.parametrize(
    ("result", "vad", "rule"),
    [
        (_result("hello there"), 0.1, "vad"),
        (_result(" ... "), 0.9, "empty"),
        (_result("hello there", logprob=-0.9), 0.9, "low_confidence"),
        (_result("hello there", logprob=-0.55, no_speech=0.7), 0.9, "no_speech"),
        (_result("hello there", flaw="capped"), 0.9, "runaway"),
        (_result("Thank you for watching!", no_speech=0.7), 0.9, "phrase"),
        (_result("Thank you.", logprob=-0.6), 0.9, "phrase"),
        (_result("请不吝点赞订阅", logprob=-0.6), 0.9, "phrase"),
        (_result("請不吝點贊 訂閱 轉發", logprob=-0.6), 0.9, "phrase"),
        (_result("[Music]"), 0.3, "phrase"),
        (_result("Thank you."), 0.9, None),
        (_result("谢谢。"), 0.9, None),
        (_result("再见"), None, None),
        (_result("hello there", no_speech=0.9), 0.9, None),
        (_result("hello there", logprob=-0.7, no_speech=0.5), 0.9, None),
        (_result("who who who who who who", flaw="repeated"), 0.9, None),
        (_result("hello there", logprob=None, no_speech=None), None, None),
    ],
)
def test_signal_rejects_first_and_phrases_only_when_it_is_weak(
    result: Transcription, vad: float | None, rule: str | None
) -> None:
    assert reject(result, vad_fraction=vad) == rule


def test_short_context_is_forgiven_more_when_the_vad_heard_speech() -> None:
    result = _result("ten of clubs", logprob=-0.6, no_speech=0.7, context="short")
    assert reject(result, vad_fraction=0.9) is None
    assert reject(result, vad_fraction=0.3) == "no_speech"
    assert reject(result, vad_fraction=None) == "no_speech"


@pytest.mark.parametrize("text", ["Thank you. Thank you. Thank you.", "you you", "謝謝觀看", "（掌声）", "♪ la la ♪"])
def test_known_phrases_in_all_their_forms(text: str) -> None:
    assert is_hallucination_phrase(text)


@pytest.mark.parametrize(
    "text", ["thank you for the music", "你好", "谢谢你帮我", "so what", "", "remind me to subscribe"]
)
def test_ordinary_sentences_are_no_known_phrases(text: str) -> None:
    assert not is_hallucination_phrase(text)


# --- partials --------------------------------------------------------------------------------------------------


def _shown(decodings: list[str]) -> list[str]:
    partial = StablePartial()
    return [partial.update(text) for text in decodings]


def test_a_partial_grows_and_its_last_word_may_change() -> None:
    assert _shown(["Make me", "Make me a mo", "Make me a mocha"]) == ["Make me", "Make me a mo", "Make me a mocha"]


def test_one_disagreeing_decoding_changes_nothing_two_do() -> None:
    assert _shown(["turn the light on", "burn the light on", "turn the light on now"]) == [
        "turn the light on",
        "turn the light on",
        "turn the light on now",
    ]
    assert _shown(["turn the light on", "burn the light on", "burn the light only"])[-1] == "burn the light only"


def test_a_shorter_decoding_takes_no_word_away_at_once() -> None:
    assert _shown(["one two three", "one", "one two three four"]) == [
        "one two three",
        "one two three",
        "one two three four",
    ]


def test_chinese_partials_are_stable_by_character() -> None:
    assert _shown(["今天天", "金天天气", "今天天气怎么样"]) == ["今天天", "今天天", "今天天气怎么样"]


def test_case_and_punctuation_are_no_disagreement() -> None:
    assert _shown(["Well I", "well, I think"])[-1] == "well, I think"


# --- Chinese ---------------------------------------------------------------------------------------------------


def test_scripts() -> None:
    assert to_script("今天天氣怎麼樣", ChineseScript.SIMPLIFIED) == "今天天气怎么样"
    assert to_script("今天天气怎么样", ChineseScript.TRADITIONAL) == "今天天氣怎麼樣"
    assert to_script("頭髮和發展", ChineseScript.SIMPLIFIED) == "头发和发展"
    assert to_script("头发和发展", ChineseScript.TRADITIONAL) == "頭髮和發展"
    assert to_script("今天天氣", ChineseScript.AS_RECOGNISED) == "今天天氣"
    assert to_script("plain English", ChineseScript.SIMPLIFIED) == "plain English"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("今天很好,明天呢?", "今天很好，明天呢？"),
        ("各位观众 晚上好", "各位观众，晚上好。"),
        ("你要来吗", "你要来吗？"),
        ("图书馆在哪里", "图书馆在哪里"),
        ("好的", "好的"),
        ("价格是3.5元,对吗?", "价格是3.5元，对吗？"),
        ("打开 ComfyUI, please", "打开 ComfyUI, please"),
        ("已经好了。", "已经好了。"),
        ("", ""),
    ],
)
def test_only_certain_punctuation_is_added(text: str, expected: str) -> None:
    assert punctuate(text, is_whole=True) == expected


def test_a_partial_gets_no_end_and_english_stays() -> None:
    assert finish_text("今天天氣很好", language="zh", script=ChineseScript.SIMPLIFIED, is_whole=False) == "今天天气很好"
    assert finish_text("well, so", language="en", script=ChineseScript.SIMPLIFIED, is_whole=True) == "well, so"
    # Japanese shares characters with Chinese and must not be rewritten.
    assert finish_text("東京駅", language="ja", script=ChineseScript.SIMPLIFIED, is_whole=True) == "東京駅"


# --- chunking --------------------------------------------------------------------------------------------------


def test_long_audio_is_cut_in_its_pauses_and_nothing_is_lost() -> None:
    noise = np.random.default_rng(1).normal(0, 0.1, 70 * 16_000).astype(np.float32)
    for pause_s in (21, 44):
        noise[pause_s * 16_000 : int((pause_s + 0.5) * 16_000)] = 0.0
    parts = split_at_silences(noise)
    assert np.array_equal(np.concatenate(parts), noise)
    assert max(map(len, parts)) <= 28 * 16_000
    ends_s = np.cumsum([len(part) for part in parts])[:-1] / 16_000
    assert 21 < ends_s[0] < 21.5
    assert 44 < ends_s[1] < 44.5


@pytest.mark.parametrize(("seconds", "least"), [(0.0, 1), (0.01, 1), (28.0, 1), (28.1, 2), (90.0, 4)])
def test_audio_without_pauses_is_cut_anyway(seconds: float, least: int) -> None:
    audio = np.ones(int(seconds * 16_000), np.float32)
    parts = split_at_silences(audio)
    assert sum(map(len, parts)) == len(audio)
    assert max(map(len, parts)) <= 28 * 16_000
    assert least <= len(parts) <= 1 + seconds / 9.9
