"""Real models on real recordings of English, Chinese and noise."""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jiwer
import numpy as np
import pytest
from piper import PiperVoice, SynthesisConfig

from audio.pcm import resample, write_wav
from audio.ports import Recognition
from audio.stt import whisper_adapter
from audio.stt.chinese import ChineseScript, to_script
from audio.stt.files import transcribe_file
from audio.stt.recogniser import Recogniser
from audio.stt.rejection import reject
from audio.stt.settings import RecogniserSettings
from audio.stt.text import units
from audio.stt.transcription import Transcription
from audio.stt.whisper_adapter import WhisperAdapter
from audio.workers import ThreadWorker
from orchestrator.clock import SystemClock
from orchestrator.contracts.errors import InputError
from orchestrator.contracts.events import Event
from orchestrator.contracts.ids import UtteranceId

# The first test decodes every recording, which takes minutes on a busy machine.
pytestmark = [pytest.mark.models, pytest.mark.timeout(900)]

_LIMIT_S = 60.0
_NUMBERS = dict(
    zip(
        ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "twenty"],
        ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "20"],
        strict=True,
    )
)
_ALIKE = {"mister": "mr"} | _NUMBERS
# The manifest's text of this one is not what is said in it.
_WRONG_REFERENCE = {"en_sb_spk1_snt5"}


@pytest.fixture(scope="module")
def base(models_dir: Path) -> WhisperAdapter:
    return WhisperAdapter(models_dir / "whisper-base", clock=SystemClock())


@pytest.fixture(scope="module")
def tiny(models_dir: Path) -> WhisperAdapter:
    return WhisperAdapter(models_dir / "whisper-tiny.en", clock=SystemClock(), cpu_threads=1)


@pytest.fixture(scope="module")
def say(models_dir: Path) -> Callable[[str], Any]:
    """Speak with a real voice, cut as the ears do: 0.25 s before the voice, 0.1 s behind it."""
    voice = PiperVoice.load(str(models_dir / "piper-en_US-joe-medium" / "voice.onnx"))
    calm = SynthesisConfig(noise_scale=0.0, noise_w_scale=0.0)  # the same sound every time
    dice = np.random.default_rng(0)

    def spoken(text: str) -> Any:
        pieces = [chunk.audio_float_array for chunk in voice.synthesize(text, calm)]
        audio = resample(np.concatenate(pieces).astype(np.float32), voice.config.sample_rate, 16_000)
        loud = np.flatnonzero(np.abs(audio) > 0.01)
        audio = np.pad(audio[loud[0] : loud[-1] + 1] * 0.5, (4_000, 1_600))
        return (audio + dice.normal(0, 0.001, len(audio))).astype(np.float32)

    return spoken


def _speech(recordings: list[Any], language: str) -> list[Any]:
    return [
        item
        for item in recordings
        if item.language == language and item.kind == "speech" and item.text and item.id not in _WRONG_REFERENCE
    ]


def _words(text: str) -> str:
    return " ".join(_ALIKE.get(word, word) for word in units(re.sub(r"[-.](?=\w)", " ", text)))


def _chars(text: str) -> str:
    return "".join(units(to_script(text, ChineseScript.SIMPLIFIED)))


@pytest.fixture(scope="module")
def of_base(base: WhisperAdapter, recordings: list[Any]) -> dict[str, Transcription]:
    """Every recording of speech as the base model understands it."""
    items = _speech(recordings, "en") + _speech(recordings, "zh")
    return {item.id: base.transcribe(item.audio, languages=("en", "zh"), vad_fraction=0.9) for item in items}


def test_english_word_errors(of_base: dict[str, Transcription], recordings: list[Any]) -> None:
    items = _speech(recordings, "en")
    assert len(items) >= 45
    rate = jiwer.wer([_words(item.text) for item in items], [_words(of_base[item.id].text) for item in items])
    assert rate <= 0.09


def test_chinese_character_errors(of_base: dict[str, Transcription], recordings: list[Any]) -> None:
    items = _speech(recordings, "zh")
    assert len(items) >= 14
    rate = jiwer.cer([_chars(item.text) for item in items], [_chars(of_base[item.id].text) for item in items])
    assert rate <= 0.22


def test_the_language_is_found(of_base: dict[str, Transcription], recordings: list[Any]) -> None:
    expected = {item.id: item.language for item in recordings if item.id in of_base}
    assert {name: result.language for name, result in of_base.items()} == expected


def test_speech_is_believed_and_seldom_needs_the_full_context(of_base: dict[str, Transcription]) -> None:
    assert [name for name, result in of_base.items() if reject(result, vad_fraction=0.9)] == []
    assert sum(result.retried for result in of_base.values()) <= 3


def test_noise_is_rejected_even_where_the_vad_is_wrong(base: WhisperAdapter, recordings: list[Any]) -> None:
    noises = [item for item in recordings if item.kind == "noise"]
    assert len(noises) >= 9
    believed = {}
    for item in noises:
        audio = item.audio[: 10 * 16_000]
        result = base.transcribe(audio, languages=("en", "zh"), vad_fraction=0.9)
        assert result.retried
        if reject(result, vad_fraction=0.9) is None or reject(result, vad_fraction=None) is None:
            believed[item.id] = result.text
    assert believed == {}


def test_tiny_makes_usable_english_partials(tiny: WhisperAdapter, recordings: list[Any]) -> None:
    items = _speech(recordings, "en")
    assert not tiny.is_multilingual
    results = [tiny.transcribe(item.audio, languages=("en", "zh"), final=False) for item in items]
    assert {(result.language, result.context, result.retried) for result in results} == {("en", "short", False)}
    rate = jiwer.wer([_words(item.text) for item in items], [_words(result.text) for result in results])
    assert rate <= 0.14


def test_long_audio_is_recognised_in_parts(base: WhisperAdapter, recordings: list[Any]) -> None:
    items = _speech(recordings, "en")[:12]
    pause = np.zeros(8_000, np.float32)
    audio = np.concatenate([part for item in items for part in (item.audio, pause)])
    assert len(audio) > 40 * 16_000
    result = base.transcribe(audio, languages=("en", "zh"))
    expected = " ".join(_words(item.text) for item in items)
    assert jiwer.wer(expected, _words(result.text)) <= 0.12
    assert reject(result, vad_fraction=None) is None


def test_long_noise_around_speech_is_left_out(base: WhisperAdapter, recordings: list[Any]) -> None:
    by_id = {item.id: item for item in recordings}
    noise = by_id["nz_sb_noise1"].audio[: 27 * 16_000]
    audio = np.concatenate([noise, np.zeros(16_000, np.float32), by_id["en_jfk"].audio])
    result = base.transcribe(audio, languages=("en",))
    assert jiwer.wer(_words(by_id["en_jfk"].text), _words(result.text)) <= 0.15


@pytest.mark.parametrize("word", ["Stop.", "Wait.", "Yes.", "No.", "Cancel.", "Hold on.", "Hello."])
def test_single_words_come_through(word: str, base: WhisperAdapter, say: Callable[[str], Any]) -> None:
    result = base.transcribe(say(word), languages=("en", "zh"), vad_fraction=0.9)
    assert _words(result.text) == _words(word)
    assert result.language == "en"
    assert reject(result, vad_fraction=0.9) is None


def test_running_into_the_token_limit_is_seen(
    base: WhisperAdapter, recordings: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whisper_adapter, "_TOKENS_BASE", 5)
    monkeypatch.setattr(whisper_adapter, "_TOKENS_PER_S", 0)
    audio = next(item for item in recordings if item.id == "en_jfk").audio
    result = base.transcribe(audio, languages=("en",), vad_fraction=0.9)
    assert (result.flaw, result.retried, result.context) == ("capped", True, "full")
    assert reject(result, vad_fraction=0.9) == "runaway"


@pytest.mark.parametrize(
    "audio",
    [
        np.zeros(0, np.float32),
        np.zeros(10, np.float32),
        np.full(16_000, np.nan, np.float32),
        np.full(16_000, np.inf, np.float32),
        np.ones(16_000, np.float64),
    ],
    ids=["none", "ten samples", "nan", "inf", "float64"],
)
def test_odd_audio_is_decoded_without_harm(audio: Any, base: WhisperAdapter) -> None:
    result = base.transcribe(audio, languages=("en", "zh"), final=False)
    assert reject(result, vad_fraction=None) is not None


def test_a_name_can_be_expected(base: WhisperAdapter, recordings: list[Any]) -> None:
    audio = next(item for item in recordings if item.id == "en_ky_dog").audio
    result = base.transcribe(audio, languages=("en",), hotwords=("Mynah", "ComfyUI"))
    assert _words(result.text) == _words("Should I get a dog or a cat?")


def test_a_missing_model_is_one_clear_line(tmp_path: Path, models_dir: Path) -> None:
    shutil.copy(models_dir / "whisper-tiny.en" / "config.json", tmp_path)
    for folder in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(InputError) as caught:
            WhisperAdapter(folder, clock=SystemClock())
        assert caught.value.code == "model_missing"
        assert "model.bin" in caught.value.message
        assert "\n" not in caught.value.message


@pytest.mark.parametrize("broken", ["model.bin", "vocabulary.txt", "config.json"])
def test_a_broken_model_is_one_clear_line(broken: str, tmp_path: Path, models_dir: Path) -> None:
    for file in (models_dir / "whisper-tiny.en").iterdir():
        (tmp_path / file.name).symlink_to(file)
    (tmp_path / broken).unlink()
    (tmp_path / broken).write_bytes(b"\x00not what it should be")
    with pytest.raises(InputError) as caught:
        WhisperAdapter(tmp_path, clock=SystemClock())
    assert caught.value.code == "model_broken"
    assert str(tmp_path) in caught.value.message
    assert "\n" not in caught.value.message


def test_a_tokenizer_that_is_not_needed_may_be_broken(tmp_path: Path, models_dir: Path, recordings: list[Any]) -> None:
    for file in (models_dir / "whisper-tiny.en").iterdir():
        (tmp_path / file.name).symlink_to(file)
    (tmp_path / "tokenizer.json").unlink()
    (tmp_path / "tokenizer.json").write_bytes(b"\x00not what it should be")
    audio = next(item for item in recordings if item.id == "en_az_weather").audio
    model = WhisperAdapter(tmp_path, clock=SystemClock(), cpu_threads=1)
    assert _words(model.transcribe(audio, languages=("en",)).text) == _words("What's the weather like?")


def test_a_model_in_a_folder_with_chinese_and_spaces(tmp_path: Path, models_dir: Path, recordings: list[Any]) -> None:
    folder = tmp_path / "我的 模型"
    folder.symlink_to(models_dir / "whisper-tiny.en", target_is_directory=True)
    model = WhisperAdapter(folder, clock=SystemClock(), cpu_threads=1)
    audio = next(item for item in recordings if item.id == "en_az_weather").audio
    assert _words(model.transcribe(audio, languages=("en",)).text) == _words("What's the weather like?")


def test_a_stereo_file_of_another_rate(tmp_path: Path, base: WhisperAdapter, recordings: list[Any]) -> None:
    audio = next(item for item in recordings if item.id == "zh_azmix_5").audio
    path = tmp_path / "录音 1.wav"
    write_wav(path, np.stack([resample(audio, 16_000, 44_100)] * 2, axis=1), 44_100)
    found = transcribe_file(path, base)
    assert found.text == "请问图书馆在哪里？"
    assert (found.result.language, found.rejected) == ("zh", None)
    assert found.audio_s == pytest.approx(len(audio) / 16_000, abs=0.01)


def test_a_file_of_noise_and_no_file(base: WhisperAdapter, recordings: list[Any], tmp_path: Path) -> None:
    path = next(item for item in recordings if item.id == "nz_pc_office1").path
    found = transcribe_file(path, base)
    assert found.text == ""
    assert found.rejected is not None
    with pytest.raises(InputError):
        transcribe_file(tmp_path / "none.wav", base)


@pytest.mark.parametrize(
    ("name", "language", "expected"),
    [("en_lk_weather", "en", "What is the weather in Paris?"), ("zh_azmix_5", "zh", "请问图书馆在哪里？")],
)
def test_an_utterance_through_the_mailbox(
    name: str,
    language: str,
    expected: str,
    base: WhisperAdapter,
    tiny: WhisperAdapter,
    recordings: list[Any],
    make_mailbox: Any,
    make_scripted: Any,
) -> None:
    audio = next(item for item in recordings if item.id == name).audio
    small = make_scripted(lambda part: tiny.transcribe(part, languages=("en",), final=False))
    big = make_scripted(lambda part: base.transcribe(part, languages=("en", "zh"), vad_fraction=0.9))
    box = make_mailbox(final=big, partial=small)

    def submit(end_s: float, *, final: bool) -> bool:
        job = Recognition(
            utterance_id=UtteranceId("u"),
            audio=audio[: int(end_s * 16_000)],
            final=final,
            vad_fraction=0.9,
            during_output=False,
            revision=1,
        )
        return bool(box.recogniser.submit(job))

    whole_s = len(audio) / 16_000
    for end_s in (1.2, 1.5, whole_s):
        assert submit(end_s, final=False)
        box.run(0.5)
    assert submit(whole_s, final=True)
    box.release(1)
    box.run(0.5)
    assert box.texts(final=False)
    (final,) = box.sink.transcripts(final=True)
    assert (final.text, final.language, final.rejected) == (expected, language, None)
    assert final.audio_s == pytest.approx(whole_s)
    assert (len(big.calls), len(small.calls)) == ((2, 2) if language == "en" else (4, 0))


def test_a_real_thread_answers_while_the_caller_goes_on(
    tiny: WhisperAdapter, recordings: list[Any], event_list: Any
) -> None:
    audio = next(item for item in recordings if item.id == "en_az_weather").audio
    worker = ThreadWorker("stt-models")
    answered = threading.Event()

    class _Sink:
        def post(self, event: Event) -> bool:
            event_list.post(event)
            answered.set()
            return True

    settings = RecogniserSettings(languages=("en",))
    recogniser = Recogniser(
        worker=worker, final=tiny, partial=None, events=_Sink(), clock=SystemClock(), settings=settings
    )
    job = Recognition(
        utterance_id=UtteranceId("u"), audio=audio, final=True, vad_fraction=0.9, during_output=False, revision=1
    )
    try:
        assert recogniser.submit(job)
        recogniser.release(UtteranceId("u"), 1)
        assert answered.wait(_LIMIT_S)
    finally:
        assert worker.stop(_LIMIT_S)
    (final,) = event_list.transcripts(final=True)
    assert _words(final.text) == _words("What's the weather like?")
    assert final.decode_s > 0
