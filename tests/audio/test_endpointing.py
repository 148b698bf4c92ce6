"""The segmenter on plain numbers. One character is a window of 32 ms: # voiced, . not, ~ in between."""

from dataclasses import replace

import pytest

from audio.ears_config import PATIENCE, EndpointConfig, VadConfig
from audio.endpointing import (
    Endpointer,
    EndpointEvent,
    Onset,
    TurnEnded,
    VoiceEnded,
    VoiceResumed,
)
from orchestrator.speech.turn_text import Ending

WINDOW_S = 0.032
PROBABILITY = {"#": 0.9, ".": 0.05, "~": 0.4}


class Stream:
    """Feeds windows, ticks every 8 ms, and keeps the events."""

    def __init__(self, config: EndpointConfig | None = None, *, decode_wait_s: float = 0.0) -> None:
        self.endpointer = Endpointer(replace(config or EndpointConfig(), decode_wait_s=decode_wait_s), VadConfig())
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


@pytest.mark.parametrize(("patience", "end_silence_s"), [("quick", 0.5), ("normal", 0.75), ("patient", 1.1)])
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
    assert stream.ends()[0].at_s == pytest.approx(10 * WINDOW_S + 0.75, abs=0.01)


def test_mid_sentence_waits_longer_and_only_for_this_pause() -> None:
    config = EndpointConfig(end_silence_s=0.65, hold_silence_s=1.4)
    stream = Stream(config).feed("##########")
    stream.endpointer.note_words(Ending.OPEN, is_whole=False)
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


def after_words(ending: Ending, config: EndpointConfig | None = None) -> TurnEnded:
    """Return how a turn ends whose words were told 0.16 s into the silence."""
    stream = Stream(config, decode_wait_s=1.2).feed("##########" + "." * 5)
    stream.endpointer.note_words(ending, is_whole=True)
    return stream.feed("." * 300).ends()[0]


@pytest.mark.parametrize(
    ("ending", "silence_s", "by"),
    [
        (Ending.ANSWER, 0.25, "semantic"),
        (Ending.CLOSED, 0.35, "semantic"),
        (Ending.UNSURE, 0.75, "silence"),
        (Ending.OPEN, 1.4, "silence"),
        (Ending.HOLD, 5.0, "silence"),
    ],
)
def test_the_silence_that_ends_a_turn_depends_on_its_words(ending: Ending, silence_s: float, by: str) -> None:
    ended = after_words(ending)
    assert ended.silence_s == pytest.approx(silence_s, abs=0.011)
    assert ended.by == by


@pytest.mark.parametrize("patience", sorted(PATIENCE))
def test_every_dial_waits_longer_the_less_is_finished(patience: str) -> None:
    waits = [after_words(ending, PATIENCE[patience]).silence_s for ending in
             (Ending.ANSWER, Ending.CLOSED, Ending.UNSURE, Ending.OPEN, Ending.HOLD)]  # fmt: skip
    assert waits == sorted(waits) and len(set(waits)) == len(waits)


def test_words_that_are_not_known_yet_are_waited_for() -> None:
    stream = Stream(decode_wait_s=1.2).feed("##########" + "." * 30)
    assert stream.ends() == []
    stream.endpointer.note_words(Ending.CLOSED, is_whole=True)
    assert stream.feed("..").ends()[0].silence_s == pytest.approx(30 * WINDOW_S, abs=0.011)
    never = Stream(decode_wait_s=1.2).feed("##########" + "." * 60)
    assert never.ends()[0].silence_s == pytest.approx(1.2, abs=0.011)


def test_words_before_a_pause_say_nothing_about_the_next_one() -> None:
    stream = Stream(decode_wait_s=1.2).feed("##########" + "." * 5)
    stream.endpointer.note_words(Ending.CLOSED, is_whole=True)
    stream.feed("..##########" + "." * 12)
    assert stream.ends() == []
    stream.endpointer.note_words(Ending.OPEN, is_whole=True)
    assert stream.feed("." * 60).ends()[0].silence_s == pytest.approx(1.4, abs=0.011)


def test_a_late_partial_does_not_outweigh_the_whole() -> None:
    stream = Stream(decode_wait_s=1.2).feed("##########" + "." * 5)
    stream.endpointer.note_words(Ending.CLOSED, is_whole=True)
    stream.endpointer.note_words(Ending.OPEN, is_whole=False)
    assert stream.feed("." * 30).ends()[0].silence_s == pytest.approx(0.35, abs=0.011)
