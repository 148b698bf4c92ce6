"""The recogniser's mailbox, in virtual time with a scripted model."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from audio.ports import Samples
from audio.stt.chinese import ChineseScript
from audio.stt.settings import RecogniserSettings
from audio.stt.transcription import Unwanted
from orchestrator.contracts.errors import PartFailed
from orchestrator.contracts.ids import UtteranceId


def test_a_final_is_kept_until_its_release(mailbox: Any) -> None:
    assert mailbox.submit(1, final=True)
    mailbox.run(2.0)
    assert mailbox.texts(final=True) == []
    mailbox.release(1)
    assert mailbox.texts(final=True) == ["take 1"]
    assert mailbox.sink.events[0].utterance_id == "u"
    assert mailbox.sink.events[0].source == "stt"


def test_a_release_before_the_decoding_ends_posts_when_it_ends(mailbox: Any) -> None:
    mailbox.submit(1, final=True)
    mailbox.release(1)
    mailbox.run(0.29)
    assert mailbox.texts(final=True) == []
    mailbox.run(0.02)
    assert mailbox.texts(final=True) == ["take 1"]


_STORIES: dict[str, tuple[list[str], str | None]] = {
    # What the ears may do, in this order, and which text must come out; None for a final without text.
    "plain": (["F1", "R1"], "take 1"),
    "with partials": (["P1", "F1", "P1", "R1"], "take 1"),
    "user goes on": (["F1", "W", "F2", "R2"], "take 2"),
    "user goes on twice": (["F1", "W", "P2", "F2", "W", "F3", "R3"], "take 3"),
    "replaced without withdrawal": (["F1", "F2", "R2"], "take 2"),
    "late partial": (["F1", "R1", "P1"], "take 1"),
    "withdrawn after release": (["F1", "R1", "W"], "take 1"),
    "submitted after release": (["F1", "R1", "F2"], "take 1"),
    "released twice": (["F1", "R1", "R1"], "take 1"),
    "nothing submitted": (["R1"], None),
    "withdrawn and released": (["F1", "W", "R1"], None),
    "older revision released": (["F1", "F2", "R1"], None),
    "newer revision released": (["F1", "R2"], None),
}


@pytest.mark.parametrize("name", _STORIES)
def test_every_order_gives_exactly_one_final(name: str, make_mailbox: Any) -> None:
    story, expected = _STORIES[name]
    for gaps in itertools.product((0.0, 0.25, 0.7), repeat=len(story)):
        box = make_mailbox()
        for step, gap_s in zip(story, gaps, strict=True):
            number = int(step[1:] or 0)
            if step[0] == "F":
                box.submit(number, final=True)
            elif step[0] == "P":
                box.submit(number, final=False)
            elif step[0] == "W":
                box.withdraw()
            else:
                box.release(number)
            box.run(gap_s)
        box.run(5.0)
        finals = box.sink.transcripts(final=True)
        assert len(finals) == 1, (name, gaps)
        assert finals[0].text == (expected or ""), (name, gaps)
        assert (finals[0].rejected is None) == (expected is not None), (name, gaps)
        after = box.sink.events[[event.payload for event in box.sink.events].index(finals[0]) + 1 :]
        assert after == [], (name, gaps)


def test_partials_submitted_before_a_withdrawal_never_come_out(mailbox: Any) -> None:
    assert mailbox.submit(1, final=False)
    mailbox.withdraw()
    mailbox.run(1.0)
    assert mailbox.sink.events == []
    assert mailbox.submit(2, final=False)
    mailbox.run(1.0)
    assert mailbox.texts(final=False) == ["take 2"]


def test_partials_never_delay_a_final(mailbox: Any) -> None:
    assert mailbox.submit(1, final=True)
    assert mailbox.submit(2, final=True, utterance="v")
    assert not mailbox.submit(1, final=False)
    assert not mailbox.submit(3, final=False, utterance="w")
    mailbox.release(1)
    mailbox.release(2, "v")
    mailbox.run(0.61)
    assert mailbox.texts(final=True) == ["take 1", "take 2"]
    assert [call["final"] for call in mailbox.final.calls + mailbox.partial.calls] == [True, True]
    assert mailbox.recogniser.refused_partials == 2


def test_a_final_waits_for_no_more_than_the_running_partial(mailbox: Any) -> None:
    assert mailbox.submit(1, final=False)
    mailbox.submit(1, final=True)
    mailbox.release(1)
    mailbox.run(0.2 + 0.3 + 0.01)
    assert mailbox.texts(final=True) == ["take 1"]


def test_partials_take_half_a_core_at_most(mailbox: Any) -> None:
    decoded = 0
    for _ in range(100):  # ten seconds, offered every 0.1 s, at 0.2 s each
        decoded += mailbox.submit(1, final=False)
        mailbox.run(0.1)
    assert 0.2 * decoded <= 0.5 * 10 + 0.2
    assert decoded >= 20


def test_partials_can_be_turned_off(make_mailbox: Any) -> None:
    box = make_mailbox(settings=RecogniserSettings(partial_load=0.0))
    assert not box.submit(1, final=False)
    assert box.submit(1, final=True)


def test_partials_of_a_model_on_two_cores_come_half_as_often(make_mailbox: Any, make_scripted: Any) -> None:
    box = make_mailbox(final=make_scripted(cores=2.0), settings=RecogniserSettings(languages=("zh",)))
    decoded = 0
    for _ in range(100):
        decoded += box.submit(1, final=False)
        box.run(0.1)
    assert 10 <= decoded <= 13


def _by_language(language: str, make_plain: Callable[..., Any]) -> Callable[[Samples], Any]:
    return lambda audio: make_plain("你好吗" if language == "zh" else "hello", language=language)


def _run_partials(box: Any, audio_s: float = 1.5) -> None:
    for number in (1, 2, 3):
        assert box.submit(number, final=False, audio_s=audio_s + number / 2)
        box.run(1.0)


def test_english_partials_go_to_the_small_model_once_the_language_is_known(
    make_mailbox: Any, make_scripted: Any, make_plain: Any
) -> None:
    box = make_mailbox(final=make_scripted(_by_language("en", make_plain)))
    _run_partials(box)
    assert len(box.final.calls) == 1
    assert len(box.partial.calls) == 2


def test_chinese_partials_go_to_the_big_model(make_mailbox: Any, make_scripted: Any, make_plain: Any) -> None:
    box = make_mailbox(final=make_scripted(_by_language("zh", make_plain)))
    _run_partials(box)
    assert len(box.final.calls) == 3
    assert box.partial.calls == []
    assert box.texts(final=False) == ["你好吗"]


@pytest.mark.parametrize(("languages", "big", "small"), [(("zh",), 3, 0), (("en",), 0, 3)])
def test_one_language_needs_no_detection(
    languages: tuple[str, ...], big: int, small: int, make_mailbox: Any, make_scripted: Any, make_plain: Any
) -> None:
    models = {name: make_scripted(_by_language(languages[0], make_plain)) for name in ("final", "partial")}
    box = make_mailbox(settings=RecogniserSettings(languages=languages), **models)
    _run_partials(box)
    assert (len(box.final.calls), len(box.partial.calls)) == (big, small)


def test_the_language_of_very_short_audio_is_not_believed(
    make_mailbox: Any, make_scripted: Any, make_plain: Any
) -> None:
    box = make_mailbox(final=make_scripted(_by_language("en", make_plain)))
    for audio_s in (0.6, 0.8, 1.2, 1.6):
        assert box.submit(1, final=False, audio_s=audio_s)
        box.run(1.0)
    assert len(box.final.calls) == 3
    assert len(box.partial.calls) == 1


def test_noise_is_not_decoded_and_still_answered(mailbox: Any) -> None:
    mailbox.submit(1, final=True, vad_fraction=0.1)
    mailbox.release(1)
    mailbox.run(1.0)
    (final,) = mailbox.sink.transcripts(final=True)
    assert (final.text, final.rejected) == ("", "vad")
    assert mailbox.final.calls == []


def test_push_to_talk_asks_no_vad(mailbox: Any) -> None:
    mailbox.submit(1, final=True, vad_fraction=0.0, via="ptt")
    mailbox.release(1)
    mailbox.run(1.0)
    assert mailbox.texts(final=True) == ["take 1"]
    assert mailbox.final.calls[0]["vad"] is None


def test_a_rejected_final_names_its_rule_and_says_nothing(
    make_mailbox: Any, make_scripted: Any, make_plain: Any
) -> None:
    box = make_mailbox(final=make_scripted(lambda audio: make_plain("Thank you.", avg_logprob=-0.6, no_speech=0.5)))
    box.submit(1, final=True)
    box.submit(1, final=False, utterance="v")
    box.release(1)
    box.run(1.0)
    (final,) = box.sink.transcripts(final=True)
    assert (final.text, final.rejected, final.avg_logprob) == ("", "phrase", -0.6)


def test_rejected_partials_are_not_shown(make_mailbox: Any, make_scripted: Any, make_plain: Any) -> None:
    box = make_mailbox(final=make_scripted(lambda audio: make_plain("you", avg_logprob=-1.2)))
    assert box.submit(1, final=False)
    box.run(1.0)
    assert box.sink.events == []


def test_a_partial_that_repeats_itself_is_not_shown_but_a_final_is(
    make_mailbox: Any, make_scripted: Any, make_plain: Any
) -> None:
    box = make_mailbox(final=make_scripted(lambda audio: make_plain("go go go go go go", flaw="repeated")))
    assert box.submit(1, final=False)
    box.run(1.0)
    assert box.sink.events == []
    box.submit(1, final=True)
    box.release(1)
    box.run(1.0)
    assert box.texts(final=True) == ["go go go go go go"]


def test_failures_are_answered_reported_once_and_do_not_last(
    make_mailbox: Any, make_scripted: Any, make_plain: Any
) -> None:
    box = make_mailbox(final=make_scripted())
    is_broken = True

    def decode(audio: Samples) -> Any:
        if is_broken:
            raise PartFailed("stt_failed", "out of order", part="stt")
        return make_plain("fine again")

    box.final.script = decode
    for number, utterance in enumerate(("a", "b"), start=1):
        box.submit(number, final=True, utterance=utterance)
        box.release(number, utterance)
        box.run(1.0)
    assert [final.rejected for final in box.sink.transcripts(final=True)] == ["failed", "failed"]
    (error,) = box.sink.errors()
    assert (error.code, error.part, error.recoverable) == ("stt_failed", "stt", True)
    assert "out of order" not in error.message
    is_broken = False
    box.submit(3, final=True, utterance="c")
    box.release(3, "c")
    box.run(1.0)
    assert box.texts(final=True)[-1] == "fine again"
    is_broken = True
    box.submit(4, final=True, utterance="d")
    box.release(4, "d")
    box.run(1.0)
    assert len(box.sink.errors()) == 2


def test_failures_are_told_in_the_users_language(make_mailbox: Any, make_scripted: Any) -> None:
    def fail(audio: Samples) -> Any:
        raise ValueError("boom")

    box = make_mailbox(final=make_scripted(fail), settings=RecogniserSettings(languages=("zh", "en")))
    box.submit(1, final=True)
    box.run(1.0)
    (error,) = box.sink.errors()
    assert "语音识别" in error.message


@pytest.mark.parametrize(
    ("script", "text"), [(ChineseScript.SIMPLIFIED, "今天天气很好。"), (ChineseScript.TRADITIONAL, "今天天氣很好。")]
)
def test_chinese_comes_in_the_set_script(
    script: ChineseScript, text: str, make_mailbox: Any, make_scripted: Any, make_plain: Any
) -> None:
    model = make_scripted(lambda audio: make_plain("今天天气很好" if audio[0] == 1 else "今天天氣很好", language="zh"))
    for number in (1, 2):
        box = make_mailbox(final=model, settings=RecogniserSettings(script=script))
        box.submit(number, final=True)
        box.release(number)
        box.run(1.0)
        assert box.texts(final=True) == [text]


def test_hotwords_reach_the_model(mailbox: Any) -> None:
    mailbox.recogniser.set_hotwords(["ComfyUI"])
    mailbox.submit(1, final=True)
    mailbox.run(1.0)
    assert mailbox.final.calls[0]["hotwords"] == ("ComfyUI",)


def test_the_table_of_costs_is_what_a_decoding_takes(mailbox: Any) -> None:
    mailbox.submit(1, final=True)
    mailbox.release(1)
    mailbox.run(1.0)
    assert mailbox.sink.transcripts(final=True)[0].decode_s == pytest.approx(0.3)


def test_after_stop_every_release_is_answered(mailbox: Any) -> None:
    mailbox.submit(1, final=True, utterance="running")
    mailbox.submit(2, final=True, utterance="queued")
    mailbox.release(1, "running")
    mailbox.recogniser.stop()
    mailbox.worker.stop(1.0)
    mailbox.release(2, "queued")
    assert not mailbox.submit(3, final=True, utterance="late")
    mailbox.release(3, "late")
    mailbox.run(1.0)
    assert [final.rejected for final in mailbox.sink.transcripts(final=True)] == ["failed"] * 3


def test_a_worker_that_refuses_is_a_failed_final(mailbox: Any) -> None:
    mailbox.worker.stop(0.0)
    mailbox.submit(1, final=True)
    mailbox.release(1)
    assert [final.rejected for final in mailbox.sink.transcripts(final=True)] == ["failed"]


def test_too_many_finals_push_out_the_oldest_and_it_is_answered(mailbox: Any) -> None:
    for number in range(20):
        assert mailbox.submit(number, final=True, utterance=f"u{number}")
        mailbox.release(number, f"u{number}")
    mailbox.run(30.0)
    finals = mailbox.sink.transcripts(final=True)
    assert len(finals) == 20
    assert sum(final.rejected == "missing" for final in finals) == mailbox.recogniser.overflowed == 3


def test_audio_is_not_kept_after_decoding(mailbox: Any) -> None:
    import gc
    import weakref

    from audio.ports import Recognition

    audio = np.full(16_000, 1, np.float32)
    alive = weakref.ref(audio)
    mailbox.recogniser.submit(
        Recognition(
            utterance_id=UtteranceId("u"), audio=audio, final=True, vad_fraction=0.9, during_output=False, revision=1
        )
    )
    mailbox.run(1.0)
    del audio
    gc.collect()
    assert alive() is None


def test_a_model_that_can_stop_is_told_when_nobody_wants_the_text(make_mailbox: Any, make_plain: Any) -> None:
    class Stopping:
        """Asks once before it begins and once half-way, where the script may have changed what is wanted."""

        cores = 1.0

        def __init__(self) -> None:
            self.half_way: Callable[[], None] = lambda: None
            self.stopped = 0

        def transcribe(self, audio: Samples, *, is_wanted: Callable[[], bool], **_: Any) -> Any:
            assert is_wanted()
            self.half_way()
            if not is_wanted():
                self.stopped += 1
                raise Unwanted
            return make_plain(f"take {int(audio[0])}")

    model = Stopping()
    box = make_mailbox(final=model, partial=model)
    box.submit(1, final=True)
    box.run(1.0)
    assert model.stopped == 0
    # The voice comes back while the second one is encoded.
    model.half_way = box.withdraw
    box.submit(2, final=True)
    model.half_way = lambda: None
    box.submit(3, final=True)
    box.release(3)
    box.run(2.0)
    assert model.stopped == 1
    assert box.texts(final=True) == ["take 3"]
    # A partial gives way to a final.
    model.half_way = lambda: box.submit(5, final=True, utterance="v") and None
    box.submit(4, final=False, utterance="v")
    model.half_way = lambda: None
    box.release(5, utterance="v")
    box.run(2.0)
    assert model.stopped == 2
    assert box.texts(final=True) == ["take 3", "take 5"]


def test_a_final_is_asked_for_every_language_whatever_its_partials_told(
    make_mailbox: Any, make_scripted: Any, make_plain: Any
) -> None:
    """The whole tells more than its beginning: a wrong guess at a beginning must not turn a sentence into nonsense."""
    final = make_scripted(lambda audio: make_plain("现在", language="zh"))
    box = make_mailbox(final=final)
    box.submit(1, final=False, audio_s=1.5)
    box.run(1.0)
    box.submit(1, final=True)
    box.run(2.0)
    assert [call["languages"] for call in final.calls] == [("en", "zh"), ("en", "zh")]
