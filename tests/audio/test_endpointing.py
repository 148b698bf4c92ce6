"""The segmenter on plain numbers. One character is a window of 32 ms: # voiced, . not, ~ in between."""

import pytest

from audio.ears_config import PATIENCE, EndpointConfig, VadConfig
from audio.endpointing import (
    Endpointer,
    EndpointEvent,
    Onset,
    TurnEnded,
    VoiceEnded,
    VoiceResumed,
    ends_mid_sentence,
)

WINDOW_S = 0.032
PROBABILITY = {"#": 0.9, ".": 0.05, "~": 0.4}


class Stream:
    """Feeds windows, ticks every 8 ms, and keeps the events."""

    def __init__(self, config: EndpointConfig | None = None) -> None:
        self.endpointer = Endpointer(config or EndpointConfig(), VadConfig())
        self.windows = 0
        self.events: list[EndpointEvent] = []

    @property
    def now_s(self) -> float:
        return self.windows * WINDOW_S

    def feed(self, pattern: str) -> "Stream":
        for each in pattern:
            start_s = self.now_s
            for part in (1, 2, 3):
                self.events += self.endpointer.tick(start_s + part * 0.008)
            self.windows += 1
            self.events += self.endpointer.window(start_s, self.now_s, PROBABILITY[each])
            self.events += self.endpointer.tick(self.now_s)
        return self

    def names(self) -> list[str]:
        return [type(each).__name__ for each in self.events]

    def ends(self) -> list[TurnEnded]:
        return [each for each in self.events if isinstance(each, TurnEnded)]


@pytest.mark.parametrize(
    ("pattern", "begins"),
    [
        ("...###", True),  # 96 ms in one piece
        ("...##....##....##....##", False),  # fragments do not add up
        ("...##.#", True),  # a gap of one window is no gap
        ("...##...#..", False),
        ("...~~~~~~~~", False),  # never reaches the start threshold
        ("...#~~", True),  # once it did, the lower one holds
        ("..........", False),
    ],
)
def test_what_begins_an_utterance(pattern: str, begins: bool) -> None:
    stream = Stream().feed(pattern)
    assert ([name for name in stream.names() if name == "Onset"] == ["Onset"]) is begins
    assert stream.endpointer.is_open is begins


def test_onset_is_dated_back_to_the_first_voiced_window() -> None:
    stream = Stream().feed("....###")
    onset = stream.events[0]
    assert isinstance(onset, Onset)
    assert onset.at_s == pytest.approx(4 * WINDOW_S)


@pytest.mark.parametrize(("patience", "end_silence_s"), [("quick", 0.45), ("normal", 0.65), ("patient", 1.0)])
def test_turn_ends_after_the_silence_of_the_dial(patience: str, end_silence_s: float) -> None:
    stream = Stream(PATIENCE[patience]).feed("..##########" + "." * 50)
    assert stream.names() == ["Onset", "VoiceEnded", "TurnEnded"]
    ended = stream.ends()[0]
    assert ended.by == "silence"
    assert ended.voice_end_s == pytest.approx(12 * WINDOW_S)
    assert end_silence_s <= ended.silence_s + 1e-5 < end_silence_s + 0.009
    assert ended.at_s == pytest.approx(ended.voice_end_s + ended.silence_s)
    assert ended.vad_fraction == 1.0


def test_early_decode_comes_a_tenth_after_the_voice() -> None:
    stream = Stream().feed("##########......")
    assert stream.names() == ["Onset", "VoiceEnded"]
    early = stream.events[1]
    assert early.at_s == pytest.approx(10 * WINDOW_S)


def test_a_pause_inside_is_one_turn_and_withdraws_the_early_decode() -> None:
    stream = Stream().feed("##########" + "." * 15 + "##########" + "." * 30)
    assert stream.names() == ["Onset", "VoiceEnded", "VoiceResumed", "VoiceEnded", "TurnEnded"]
    assert stream.ends()[0].vad_fraction == pytest.approx(20 / 35, abs=0.01)


def test_a_single_late_window_neither_withdraws_nor_prolongs() -> None:
    stream = Stream().feed("##########" + "." * 8 + "#" + "." * 30)
    assert stream.names() == ["Onset", "VoiceEnded", "TurnEnded"]
    assert stream.ends()[0].at_s == pytest.approx(10 * WINDOW_S + 0.65, abs=0.01)


def test_mid_sentence_waits_longer_and_only_for_this_pause() -> None:
    config = EndpointConfig(end_silence_s=0.65, hold_silence_s=1.4)
    stream = Stream(config).feed("##########")
    stream.endpointer.hold_hint = True
    stream.feed("." * 50)
    assert stream.ends()[0].silence_s == pytest.approx(1.4, abs=0.01)
    stream.feed("##########" + "." * 50)
    assert stream.ends()[1].silence_s == pytest.approx(0.65, abs=0.01)


def test_turns_follow_each_other() -> None:
    stream = Stream().feed(("#####" + "." * 30) * 3)
    assert stream.names() == ["Onset", "VoiceEnded", "TurnEnded"] * 3


def test_long_speech_is_split_in_a_pause() -> None:
    config = EndpointConfig(split_after_s=2.0, limit_s=3.0)
    stream = Stream(config).feed("#" * 70 + "." * 9 + "#" * 10 + "." * 30)
    assert [each.by for each in stream.ends()] == ["limit", "silence"]
    assert stream.ends()[0].silence_s == pytest.approx(config.split_pause_s, abs=0.01)
    onsets = [each for each in stream.events if isinstance(each, Onset)]
    assert [each.is_continued for each in onsets] == [False, False]


def test_long_speech_without_a_pause_is_split_without_a_gap() -> None:
    stream = Stream(EndpointConfig(split_after_s=2.0, limit_s=3.0)).feed("#" * 130 + "." * 30)
    onsets = [each for each in stream.events if isinstance(each, Onset)]
    ends = stream.ends()
    assert [each.by for each in ends] == ["limit", "silence"]
    assert [each.is_continued for each in onsets] == [False, True]
    assert onsets[1].at_s == ends[0].at_s
    assert all(each.vad_fraction > 0.9 for each in ends)


def test_push_to_talk_needs_no_voice_and_ends_with_the_key() -> None:
    stream = Stream().feed("....")
    stream.events += stream.endpointer.ptt_down(stream.now_s)
    stream.feed("." * 60)
    assert stream.names() == ["Onset"]
    stream.endpointer.ptt_up(stream.now_s)
    stream.feed("." * 10)
    assert stream.names() == ["Onset", "TurnEnded"]
    ended = stream.ends()[0]
    assert (ended.by, ended.is_ptt, ended.vad_fraction) == ("ptt", True, 0.0)
    assert ended.at_s == pytest.approx(64 * WINDOW_S + 0.1, abs=0.01)


def test_push_to_talk_takes_over_a_spoken_utterance() -> None:
    stream = Stream().feed("##########" + "." * 6)
    stream.events += stream.endpointer.ptt_down(stream.now_s)
    stream.feed("." * 40)
    stream.endpointer.ptt_up(stream.now_s)
    stream.feed("." * 6)
    assert stream.names() == ["Onset", "VoiceEnded", "VoiceResumed", "TurnEnded"]
    assert stream.ends()[0].by == "ptt"


def test_a_held_key_is_split_at_the_limit_and_stays_held() -> None:
    stream = Stream(EndpointConfig(split_after_s=2.0, limit_s=3.0))
    stream.events += stream.endpointer.ptt_down(0.0)
    stream.feed("." * 100)
    stream.endpointer.ptt_up(stream.now_s)
    stream.feed("." * 6)
    assert [each.by for each in stream.ends()] == ["limit", "ptt"]
    assert all(each.is_ptt for each in stream.ends())


def test_ended_from_outside_it_is_not_left_speaking() -> None:
    stream = Stream().feed("##########")
    stream.events += stream.endpointer.end(stream.now_s, "silence")
    assert not stream.endpointer.is_open
    assert stream.endpointer.end(stream.now_s, "silence") == []
    stream.feed("." * 40)
    assert stream.names() == ["Onset", "TurnEnded"]


def test_not_listening_opens_nothing_by_voice() -> None:
    stream = Stream()
    stream.endpointer.is_listening = False
    assert stream.feed("#" * 30).events == []


def test_forced_open_takes_the_voice_before_along() -> None:
    stream = Stream().feed("....##")
    stream.events += stream.endpointer.force_open(stream.now_s)
    onset = stream.events[0]
    assert isinstance(onset, Onset)
    assert onset.at_s == pytest.approx(4 * WINDOW_S)


def test_early_events_are_typed() -> None:
    stream = Stream().feed("##########" + "." * 10 + "####")
    assert isinstance(stream.events[1], VoiceEnded)
    assert isinstance(stream.events[2], VoiceResumed)


@pytest.mark.parametrize(
    ("text", "unfinished"),
    [
        ("I would like to", True),
        ("remind me at nine and", True),
        ("remind me at nine,", True),
        ("What time is it?", False),
        ("what time is it", False),
        ("turn on the light", False),
        ("提醒我买牛奶，", True),
        ("我想去北京，因为", True),
        ("明天早上八点", False),
        ("今天天气怎么样？", False),
        ("", False),
    ],
)
def test_mid_sentence(text: str, unfinished: bool) -> None:
    assert ends_mid_sentence(text) is unfinished
