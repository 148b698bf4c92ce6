from __future__ import annotations

import io
import json
import shutil
import threading
import wave
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from audio.tts.espeak_adapter import EspeakSynthesiser
from audio.tts.openai_adapter import OpenAiSynthesiser
from orchestrator.clock import VirtualClock
from orchestrator.contracts.errors import InputError, PartFailed


def check(made, words):
    assert [w.text for w in made.words] == words
    assert made.estimated
    assert all(w.estimated for w in made.words)
    at_s = 0.0
    for word in made.words:
        assert at_s <= word.start_s < word.end_s <= made.duration_s + 1e-9
        at_s = word.end_s
    assert made.visemes[-1].shape == "rest"


@pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="espeak-ng is not installed")
@pytest.mark.parametrize(
    ("text", "language", "words"),
    [("你好，现在15:30。", "zh", ["你", "好，", "现", "在", "15:30。"]), ("Hello there.", "en", ["Hello", "there."])],
)
def test_espeak_speaks_both_languages_with_estimated_times(text, language, words):
    voice = EspeakSynthesiser()
    assert voice.speaks(language)
    made = voice.synthesise(text, language=language)
    check(made, words)
    assert np.abs(made.pcm).max() > 0.05
    assert 0.4 < made.duration_s < 6.0


@pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="espeak-ng is not installed")
@pytest.mark.parametrize("text", ["你好你好你好你好", "我们明天早上一起去公园", "我用Python写程序", "打开WiFi和A&B"])
def test_espeak_speaks_chinese_and_not_its_spelling(text):
    """Spelt out ("nee three how three") a character takes twice as long as anyone needs to say it."""
    made = EspeakSynthesiser().synthesise(text, language="zh")
    assert np.abs(made.pcm).max() > 0.05
    assert 0.1 * len(text) < made.duration_s < 0.33 * len(text)


def test_the_next_best_voice_where_one_is_missing(tmp_path):
    old = tmp_path / "espeak-ng"
    old.write_text(
        '#!/bin/sh\ncase "$2" in cmn) exec cat "$(dirname "$0")/said.wav";; esac\necho no voice >&2\nexit 1\n'
    )
    old.chmod(0o755)
    (tmp_path / "said.wav").write_bytes(wav_bytes())
    assert EspeakSynthesiser(str(old)).synthesise("你好", language="zh").duration_s > 0.5


def test_without_espeak_no_language_is_spoken(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    voice = EspeakSynthesiser()
    assert not voice.speaks("zh")
    with pytest.raises(PartFailed, match="not installed"):
        voice.synthesise("你好", language="zh")


def test_an_espeak_that_fails_is_a_failure_of_the_part(tmp_path):
    broken = tmp_path / "espeak-ng"
    broken.write_text("#!/bin/sh\necho it broke >&2\nexit 1\n")
    broken.chmod(0o755)
    with pytest.raises(PartFailed, match="it broke"):
        EspeakSynthesiser(str(broken)).synthesise("hi", language="en")


def wav_bytes(rate=24_000, channels=1, width=2):
    tone = (np.sin(np.arange(rate) * 0.05) * 12_000).astype("<i2")
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(rate)
        file.writeframes(np.repeat(tone, channels).tobytes() if width == 2 else bytes(rate))
    return buffer.getvalue()


class Server:
    """A speech endpoint that answers what it was told and remembers the requests."""

    def __init__(self):
        self.status, self.kind, self.body = 200, "audio/wav", wav_bytes()
        self.requests: list[dict] = []
        self.arrived, self.may_answer = threading.Event(), threading.Event()
        self.may_answer.set()
        self.paths: list[str] = []
        self.keys: list[str | None] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                length = int(self.headers["Content-Length"])
                outer.requests.append(json.loads(self.rfile.read(length)))
                outer.paths.append(self.path)
                outer.keys.append(self.headers.get("Authorization"))
                outer.arrived.set()
                outer.may_answer.wait(10)
                self.send_response(outer.status)
                self.send_header("Content-Type", outer.kind)
                self.send_header("Content-Length", str(len(outer.body)))
                self.end_headers()
                self.wfile.write(outer.body)

            def log_message(self, *args):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1"
        self.thread = threading.Thread(target=self.http.serve_forever, name="speech-endpoint", daemon=True)
        self.thread.start()

    def close(self):
        self.may_answer.set()
        self.http.shutdown()
        self.http.server_close()
        self.thread.join(5)


@pytest.fixture
def server():
    made = Server()
    yield made
    made.close()


def test_the_endpoint_gets_the_normalised_text_and_its_wav_is_spoken(server):
    voice = OpenAiSynthesiser(server.url, model="m", voice="v", key="secret")
    check(voice.synthesise("It is 15:30.", language="en"), ["It", "is", "15:30."])
    assert server.paths == ["/v1/audio/speech"]
    assert server.requests[0]["input"] == "It is fifteen thirty."
    assert (server.requests[0]["model"], server.requests[0]["voice"]) == ("m", "v")
    assert server.keys == ["Bearer secret"]
    assert voice.name == "m/v"


def test_stereo_and_raw_pcm_are_understood(server):
    voice = OpenAiSynthesiser(server.url, model="m", voice="v")
    server.body = wav_bytes(channels=2)
    assert voice.synthesise("Hi.", language="en").duration_s == pytest.approx(1.0, abs=0.05)
    server.kind, server.body = "audio/pcm", (np.sin(np.arange(24_000) * 0.05) * 9_000).astype("<i2").tobytes()
    made = voice.synthesise("Hi.", language="en")
    assert made.rate_hz == 24_000
    assert made.duration_s == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize(
    ("status", "kind", "body", "message"),
    [
        (401, "application/json", b"{}", "answered 401"),
        (200, "text/html", b"<html>", "text/html instead"),
        (200, "audio/wav", b"RIFFxx", "a bad wav"),
        (200, "audio/wav", wav_bytes(width=1), "not 16 bit"),
        (200, "audio/pcm", bytes(4800), "no sound"),
    ],
)
def test_what_is_no_sound_is_a_failure_of_the_part(server, status, kind, body, message):
    server.status, server.kind, server.body = status, kind, body
    with pytest.raises(PartFailed, match=message):
        OpenAiSynthesiser(server.url, model="m", voice="v").synthesise("Hi.", language="en")


def test_an_endpoint_that_is_not_there_and_a_bad_address():
    with pytest.raises(PartFailed, match="cannot be reached"):
        OpenAiSynthesiser("http://127.0.0.1:9/v1", model="m", voice="v").synthesise("Hi.", language="en")
    with pytest.raises(InputError, match="must begin with"):
        OpenAiSynthesiser("ftp://x", model="m", voice="v")


def test_a_dead_server_is_asked_once_and_again_after_a_rest(server):
    clock = VirtualClock(10.0)
    voice = OpenAiSynthesiser(server.url, model="m", voice="v", clock=clock)
    server.status = 503
    for _ in range(3):
        with pytest.raises(PartFailed) as failure:
            voice.synthesise("Hi.", language="en")
        assert failure.value.code == "voice_refused"
    assert len(server.requests) == 1
    server.status = 200
    clock.advance(31.0)
    assert voice.synthesise("Hi.", language="en").duration_s > 0.5


def test_a_refused_key_is_not_tried_again(server):
    clock = VirtualClock(10.0)
    voice = OpenAiSynthesiser(server.url, model="m", voice="v", key="wrong", clock=clock)
    server.status = 401
    for _ in range(2):
        with pytest.raises(PartFailed) as failure:
            voice.synthesise("Hi.", language="en")
        assert failure.value.code == "voice_key_refused"
        assert "wrong" not in str(failure.value)
        clock.advance(3600.0)
    assert len(server.requests) == 1


def test_a_server_that_never_answers_is_given_up(server):
    server.may_answer.clear()
    with pytest.raises(PartFailed) as failure:
        OpenAiSynthesiser(server.url, model="m", voice="v", timeout_s=0.2).synthesise("Hi.", language="en")
    assert failure.value.code == "voice_unreachable"


def test_a_cancel_closes_the_connection_and_is_no_fault_of_the_server(server):
    server.may_answer.clear()
    voice = OpenAiSynthesiser(server.url, model="m", voice="v", timeout_s=30.0)
    codes: list[str] = []

    def speak():
        try:
            voice.synthesise("Hi.", language="en")
        except PartFailed as failure:
            codes.append(failure.code)

    thread = threading.Thread(target=speak, name="speak")
    thread.start()
    assert server.arrived.wait(10)
    voice.cancel()
    thread.join(10)
    assert not thread.is_alive()
    assert codes == ["voice_cancelled"]
    server.may_answer.set()
    assert voice.synthesise("Hi.", language="en").duration_s > 0.5


def test_speed_and_volume_can_be_changed_while_it_talks(server):
    voice = OpenAiSynthesiser(server.url, model="m", voice="v")
    loud = voice.synthesise("Hi.", language="en").pcm
    voice.adjust(speed=1.5, volume=0.5)
    quiet = voice.synthesise("Hi.", language="en").pcm
    assert server.requests[-1]["speed"] == 1.5
    assert np.abs(quiet).max() == pytest.approx(0.5 * np.abs(loud).max(), rel=1e-3)
