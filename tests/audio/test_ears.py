"""What the ears promise, with scripted VADs and everything around them scripted."""

import threading
from dataclasses import replace

import numpy as np
import pytest
from rigs.ears_rig import LoudVad, Rig, make_rig, square

from audio.ears_config import RATE_HZ, EarsConfig, EndpointConfig, preset
from audio.echo import NoEchoCanceller
from audio.pcm import SILENCE_DB
from orchestrator.contracts.errors import InputError
from orchestrator.contracts.lanes import InterruptReason


def scripted(config: EarsConfig | None = None, rate_hz: int = RATE_HZ) -> Rig:
    vad = LoudVad()
    return make_rig(config=config, rate_hz=rate_hz, echo=NoEchoCanceller(), vad1=vad, vad2=vad)


def assert_contract(rig: Rig) -> None:
    """Every utterance: one onset, one end, one turn end right after it, one released final; in this order."""
    per_utterance: dict[str, list[str]] = {}
    for event in rig.events.events:
        if event.payload.TYPE in ("input:interrupt", "input:continued"):
            continue
        assert event.utterance_id is not None
        phase = getattr(event.payload, "phase", "turn_end")
        per_utterance.setdefault(event.utterance_id, []).append(phase)
    assert all(phases == ["onset", "end", "turn_end"] for phases in per_utterance.values()), per_utterance
    assert list(per_utterance) == list(rig.recogniser.posted)


def test_one_utterance() -> None:
    rig = scripted()
    rig.silence(1.0)
    rig.voice(1.0)
    rig.silence(1.5)
    assert_contract(rig)
    onset, end, turn_end = rig.events.speech("onset")[0], rig.events.speech("end")[0], rig.events.turn_ends()[0]
    assert onset.at_s == pytest.approx(1.0, abs=0.011)
    assert end.at_s == pytest.approx(2.0, abs=0.033)
    assert turn_end.at_s == pytest.approx(end.at_s + turn_end.silence_s)
    assert turn_end.silence_s == pytest.approx(0.75, abs=0.011)
    assert turn_end.by == "silence"
    assert not onset.during_output
    final = rig.recogniser.posted[rig.events.events[0].utterance_id]
    assert (final.via, final.during_output) == ("voice", False)
    assert final.vad_fraction == pytest.approx(1.0)
    # 0.25 s of lead, the voice, and the 0.1 s until the early decode.
    assert len(final.audio) / RATE_HZ == pytest.approx(1.35, abs=0.05)
    assert float(np.abs(final.audio[: round(0.23 * RATE_HZ)]).max()) == 0.0
    assert float(np.abs(final.audio[round(0.27 * RATE_HZ)])) > 0.0


def test_the_final_is_decoded_early_and_released_at_the_turn_end() -> None:
    rig = scripted()
    rig.voice(1.0)
    rig.silence(0.3)
    assert rig.recogniser.calls == ["final 1"]
    assert rig.events.turn_ends() == []
    rig.silence(0.5)
    assert rig.recogniser.calls == ["final 1", "release 1"]


def test_speech_that_resumes_withdraws_and_decodes_all_of_it_again() -> None:
    rig = scripted()
    rig.voice(1.0)
    rig.silence(0.4)
    rig.voice(0.5)
    rig.silence(1.0)
    assert rig.recogniser.calls == ["final 1", "withdraw", "final 2", "release 2"]
    assert_contract(rig)
    first, second = rig.recogniser.finals
    assert len(second.audio) / RATE_HZ == pytest.approx(len(first.audio) / RATE_HZ + 0.9, abs=0.05)
    assert rig.ears.stats()["withdrawn"] == 1


def test_partials_begin_after_600_ms_and_wait_for_the_recogniser() -> None:
    rig = scripted()
    rig.voice(0.5)
    assert rig.recogniser.partials == []
    rig.voice(0.2)
    assert len(rig.recogniser.partials) == 1
    rig.voice(1.0)
    assert len(rig.recogniser.partials) == 3
    rig.recogniser.is_busy = True
    rig.voice(1.0)
    assert len(rig.recogniser.partials) == 3
    assert 5 <= rig.ears.stats()["partials_refused"] <= 11
    rig.recogniser.is_busy = False
    rig.voice(0.11)
    assert len(rig.recogniser.partials) == 4
    assert [job.revision for job in rig.recogniser.partials] == [1, 1, 1, 1]
    assert rig.recogniser.partials[-1].audio.size > rig.recogniser.partials[0].audio.size


def test_clicks_are_nothing() -> None:
    rig = scripted()
    rig.player.is_on = True
    for _ in range(20):
        rig.voice(0.03)
        rig.silence(0.2)
    assert rig.events.events == []
    assert rig.recogniser.jobs == []
    assert "cut" not in rig.player.names()
    rig.silence(0.3)
    assert rig.player.gain == 1.0
    assert rig.player.names().count("duck") == rig.player.names().count("unduck")


def test_barge_in_ducks_cuts_and_tells_which_answer() -> None:
    rig = scripted()
    rig.player.is_on = True
    rig.silence(0.5)
    rig.voice(0.5)
    assert rig.player.names() == ["duck", "cut"]
    interrupt = rig.events.interrupts()[0]
    assert interrupt.target_generation_id == rig.player.GENERATION
    assert interrupt.interrupt_reason is InterruptReason.USER_BARGE_IN
    assert interrupt.payload.by == "vad"
    assert interrupt.utterance_id == rig.events.events[0].utterance_id
    assert rig.events.speech("onset")[0].during_output
    rig.silence(1.0)
    assert rig.recogniser.finals[0].during_output
    assert rig.player.names() == ["duck", "cut", "unduck"]
    assert len(rig.events.interrupts()) == 1
    assert_contract(rig)


def test_protected_output_sounds_on_and_the_speech_is_kept() -> None:
    rig = scripted()
    rig.player.is_on, rig.player.is_interruptible = True, False
    rig.voice(1.0)
    rig.silence(1.0)
    assert rig.player.calls == []
    assert rig.events.interrupts() == []
    assert len(rig.recogniser.posted) == 1
    assert_contract(rig)


def test_a_stop_phrase_in_a_partial_cuts() -> None:
    rig = scripted()
    rig.voice(0.7)
    rig.player.is_on = True
    rig.player.keeps_sounding = True
    rig.silence(0.3)
    rig.player.calls.clear()
    rig.ears.on_partial_phrase("等一下")
    rig.silence(0.02)
    assert "cut" in rig.player.names()
    assert (rig.events.interrupts()[-1].payload.by, rig.events.interrupts()[-1].payload.text) == ("phrase", "等一下")


def test_a_phrase_of_another_utterance_is_ignored() -> None:
    rig = scripted()
    rig.player.is_on = True
    rig.silence(0.1)
    rig.ears.on_partial_phrase("stop", "u-99")
    rig.silence(0.1)
    assert rig.player.calls == []


def test_mid_sentence_partials_make_it_patient() -> None:
    rig = scripted()
    rig.voice(1.0)
    rig.ears.on_partial("I would like to")
    rig.silence(1.0)
    assert rig.events.turn_ends() == []
    rig.silence(0.6)
    assert rig.events.turn_ends()[0].silence_s == pytest.approx(1.4, abs=0.011)


def test_semantic_end_of_turn() -> None:
    rig = scripted()
    rig.voice(1.0)
    utterance_id = rig.events.events[0].utterance_id
    assert utterance_id is not None
    rig.ears.end_turn(utterance_id)
    rig.voice(0.1)
    assert rig.events.turn_ends() == []
    rig.silence(0.2)
    rig.ears.end_turn(utterance_id)
    rig.silence(0.01)
    assert rig.events.turn_ends()[0].by == "semantic"
    assert_contract(rig)


# --- push-to-talk ----------------------------------------------------------------------------------------------------


def test_push_to_talk_works_for_a_whisper() -> None:
    rig = scripted()
    rig.player.is_on = True
    rig.silence(1.0)
    rig.ears.ptt_down(rig.now_s)
    rig.hear(np.full(RATE_HZ, 1e-4, np.float32))  # below both VADs
    assert rig.player.names() == ["cut"]
    assert rig.events.interrupts()[0].payload.by == "ptt"
    rig.ears.ptt_up(rig.now_s)
    rig.silence(0.2)
    turn_end = rig.events.turn_ends()[0]
    assert turn_end.by == "ptt"
    final = next(iter(rig.recogniser.posted.values()))
    assert (final.via, final.vad_fraction) == ("ptt", 0.0)
    assert len(final.audio) / RATE_HZ == pytest.approx(0.3 + 1.0 + 0.1, abs=0.03)
    assert_contract(rig)


def test_push_to_talk_cuts_at_once_and_again_while_it_is_held() -> None:
    rig = scripted()
    rig.silence(0.5)
    rig.ears.ptt_down(rig.now_s)
    rig.silence(0.5)
    rig.player.is_on = True
    rig.silence(0.01)
    assert rig.player.names() == ["cut"]


def test_a_pause_does_not_end_push_to_talk() -> None:
    rig = scripted()
    rig.silence(0.5)
    rig.ears.ptt_down(rig.now_s)
    rig.voice(0.5)
    rig.silence(3.0)
    rig.voice(0.5)
    assert rig.events.turn_ends() == []
    rig.ears.ptt_up(rig.now_s)
    rig.silence(0.2)
    assert len(rig.events.turn_ends()) == 1
    assert_contract(rig)


def test_without_hands_free_only_the_key_opens_the_ears() -> None:
    rig = scripted()
    rig.player.is_on = True
    rig.ears.set_hands_free(False)
    rig.silence(0.1)
    rig.voice(1.0)
    rig.silence(1.0)
    assert rig.events.events == []
    assert rig.player.calls == []
    rig.ears.ptt_down(rig.now_s)
    rig.voice(0.5)
    rig.ears.ptt_up(rig.now_s)
    rig.silence(0.3)
    assert_contract(rig)
    assert len(rig.recogniser.posted) == 1
    rig.ears.set_hands_free(True)
    rig.voice(0.5)
    assert len(rig.events.speech("onset")) == 2


def test_push_to_talk_without_a_microphone_is_counted() -> None:
    rig = scripted()
    rig.silence(0.5)
    rig.ears.ptt_down(10.0)
    rig.ears.idle(10.0)
    assert rig.events.events == []
    assert rig.ears.stats()["ptt_without_microphone"] == 1


# --- trouble ---------------------------------------------------------------------------------------------------------


def test_muted_in_mid_word_it_ends_cleanly() -> None:
    rig = scripted()
    rig.player.is_on = True
    rig.player.keeps_sounding = True
    rig.silence(0.3)
    rig.voice(0.5)
    rig.ears.set_muted(True)
    rig.voice(0.5)
    assert_contract(rig)
    assert len(rig.events.turn_ends()) == 1
    assert rig.player.gain == 1.0
    assert rig.ears.level_db == SILENCE_DB
    rig.voice(2.0)
    assert len(rig.events.speech("onset")) == 1
    rig.ears.set_muted(False)
    rig.silence(1.0)
    rig.voice(0.5)
    rig.silence(1.0)
    assert len(rig.events.turn_ends()) == 2
    assert rig.events.speech("onset")[1].at_s == pytest.approx(4.3, abs=0.035)
    assert_contract(rig)


def test_a_lost_microphone_ends_the_utterance() -> None:
    rig = scripted()
    rig.voice(0.5)
    rig.ears.idle(rig.now_s + 0.3)
    assert rig.events.turn_ends() == []
    rig.ears.idle(rig.now_s + 0.6)
    assert_contract(rig)
    assert rig.ears.stats()["streams_lost"] == 1
    rig.now_s = 60.0
    rig.silence(0.5)
    rig.voice(0.5)
    rig.silence(1.0)
    assert rig.events.speech("onset")[1].at_s == pytest.approx(60.5, abs=0.035)
    assert_contract(rig)


def test_a_hole_in_the_stream_ends_the_utterance() -> None:
    rig = scripted()
    rig.voice(0.5)
    rig.now_s += 5.0
    rig.voice(0.5)
    rig.silence(1.0)
    assert len(rig.events.turn_ends()) == 2
    assert_contract(rig)


def test_other_devices_in_mid_word() -> None:
    rig = scripted()
    rig.voice(0.5)
    rig.ears.set_devices(rate_hz=48000, reference_rate_hz=44100)
    rig.rate_hz = 48000
    rig.voice(0.5)
    rig.silence(1.0)
    assert len(rig.events.turn_ends()) == 2
    assert_contract(rig)


def test_long_speech_is_split_and_nothing_of_it_lost() -> None:
    config = EarsConfig(endpoint=EndpointConfig(split_after_s=2.0, limit_s=3.0, decode_wait_s=0.0))
    rig = scripted(config)
    rig.silence(1.0)
    rig.voice(7.0)
    rig.silence(1.0)
    assert_contract(rig)
    assert [each.by for each in rig.events.turn_ends()] == ["limit", "limit", "silence"]
    loud = sum(int((np.abs(job.audio) > 0.05).sum()) for job in rig.recogniser.posted.values())
    assert loud == 7 * RATE_HZ


@pytest.mark.parametrize("rate_hz", [16000, 44100, 48000])
@pytest.mark.parametrize("step_s", [0.005, 0.0107, 0.023])
def test_any_rate_and_block_length(rate_hz: int, step_s: float) -> None:
    rig = scripted(rate_hz=rate_hz)
    step = round(rate_hz * step_s)
    sound = np.concatenate([np.zeros(rate_hz), square(rate_hz, rate_hz, 0.1), np.zeros(rate_hz)])
    jitter = np.random.default_rng(1)
    for begin in range(0, len(sound), step):
        at_s = 100.0 + begin / rate_hz + float(jitter.normal(0.0, 0.001))
        rig.ears.process(sound[begin : begin + step].astype(np.float32), at_s, None)
    assert_contract(rig)
    assert rig.events.speech("onset")[0].at_s == pytest.approx(101.0, abs=0.035)
    assert rig.events.speech("end")[0].at_s == pytest.approx(102.0, abs=0.05)


def test_dials_change_while_it_runs() -> None:
    rig = scripted()
    rig.ears.configure(preset(patience="quick", sensitivity="relaxed"))
    rig.voice(0.5)
    rig.silence(0.2)
    rig.ears.on_partial("It is late.", is_whole=True)
    rig.silence(0.4)
    assert rig.events.turn_ends()[0].silence_s == pytest.approx(0.25, abs=0.011)


def test_the_words_of_the_early_final_end_the_turn_or_hold_it() -> None:
    for text, silence_s in (("It is late.", 0.35), ("今天很冷。", 0.35), ("It was in the", 1.4), ("等我想想。", 5.0),
                            ("Let me think.", 5.0), ("", 0.75)):  # fmt: skip
        rig = scripted()
        rig.ears.words.holds_turn = lambda words: "想想" in words or "think" in words
        rig.voice(1.0)
        rig.silence(0.2)
        rig.ears.on_partial(text, is_whole=True)
        rig.silence(5.2)
        ended = rig.events.turn_ends()[0]
        assert ended.silence_s == pytest.approx(silence_s, abs=0.04)
        assert ended.by == ("semantic" if silence_s < 0.5 else "silence")
        assert ended.speculative_hit is bool(text)


def test_what_was_not_understood_ends_a_turn_soon_only_over_an_answer() -> None:
    for is_on, silence_s in ((True, 0.35), (False, 0.75)):
        rig = scripted()
        rig.player.is_on = is_on
        rig.voice(1.0)
        rig.silence(0.2)
        rig.ears.on_partial("", is_whole=True)
        rig.silence(0.8)
        assert rig.events.turn_ends()[0].silence_s == pytest.approx(silence_s, abs=0.04)


def test_a_yes_ends_faster_when_a_question_waits_for_it() -> None:
    for is_due, silence_s in ((True, 0.25), (False, 0.35)):
        rig = scripted()
        rig.ears.words.is_short_answer_due = is_due
        rig.voice(0.4)
        rig.silence(0.2)
        rig.ears.on_partial("Yes.", is_whole=True)
        rig.silence(0.6)
        assert rig.events.turn_ends()[0].silence_s == pytest.approx(silence_s, abs=0.04)


def test_going_on_is_told_and_takes_the_early_words_back() -> None:
    rig = scripted()
    rig.voice(1.0)
    rig.silence(0.2)
    rig.ears.on_partial("It is late.", is_whole=True)
    rig.silence(0.02)
    rig.voice(0.5)
    rig.silence(2.0)
    assert [type(e.payload).__name__ for e in rig.events.events].count("InputContinued") == 1
    ended = rig.events.turn_ends()[0]
    assert not ended.speculative_hit and ended.silence_s == pytest.approx(0.75, abs=0.04)


def test_unknown_presets_are_named() -> None:
    with pytest.raises(InputError, match="quick, normal, patient"):
        preset(patience="slow")
    with pytest.raises(InputError, match="relaxed, normal, eager"):
        preset(sensitivity="high")
    other = replace(EarsConfig(), stream_gap_s=1.0)
    assert preset(base=other).stream_gap_s == 1.0


def test_commands_from_other_threads_run_on_the_ears_thread() -> None:
    rig = scripted()
    rig.silence(0.1)
    thread = threading.Thread(target=rig.ears.ptt_down, args=(rig.now_s,), name="test-key")
    thread.start()
    thread.join()
    assert rig.events.events == []
    rig.silence(0.01)
    assert len(rig.events.speech("onset")) == 1


def test_the_meter_follows_the_level() -> None:
    rig = scripted()
    rig.voice(0.5, level=0.1)
    assert rig.ears.level_db == pytest.approx(-20.0, abs=0.5)
    rig.silence(1.0)
    assert rig.ears.level_db < -60.0
