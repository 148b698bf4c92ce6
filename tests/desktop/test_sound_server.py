"""Servers as voice and recogniser: how a setting names one, and what a test says of it, against a local stand-in."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from rigs.sound_endpoint import KEY, MODEL, VOICE, MemoryVault, SoundEndpoint

from desktop.settings import Settings, load_settings
from desktop.sound_probe import SoundTest, SoundTests
from desktop.sound_server import KEY_ENVS, SoundServer, checked_address, parse_server
from orchestrator.clock import SystemClock

_NEITHER = tuple(KEY_ENVS.values())


@pytest.fixture(autouse=True)
def no_keys_around(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _NEITHER:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def endpoint() -> Iterator[SoundEndpoint]:
    with SoundEndpoint() as made:
        yield made


def settings_for(setting: str, server: SoundServer, **values: object) -> Settings:
    return Settings(**{setting: server.name(setting), f"{setting}_key_in_keyring": True, **values})  # type: ignore[arg-type]


def ask(setting: str, server: SoundServer, key: str | None = KEY) -> SoundTest:
    vault = MemoryVault()
    if key is not None:
        vault.write(server.url, key)
    return SoundTests(SystemClock(), vault).run(setting, settings_for(setting, server))


@pytest.mark.parametrize("setting", ["voice", "whisper"])
def test_a_server_is_named_and_read_back(setting: str) -> None:
    voice = VOICE if setting == "voice" else ""
    for server in (
        SoundServer(url="http://localhost:8000/v1"),
        SoundServer(url="https://x.example/v1", model="org/model-82M", voice=voice),
        SoundServer(url="http://[::1]:9/v1", model="a%b", voice=voice),
    ):
        assert parse_server(setting, server.name(setting)) == server
    assert parse_server(setting, "/models/voice") is None


def test_what_was_written_by_hand_before_is_read_as_before() -> None:
    found = parse_server("voice", "http://localhost:8880/v1#kokoro/af_bella")
    assert found == SoundServer(url="http://localhost:8880/v1", model="kokoro", voice="af_bella")
    assert parse_server("whisper", "http://h/v1#Systran/large") == SoundServer(url="http://h/v1", model="Systran/large")


@pytest.mark.parametrize(
    ("typed", "taken"),
    [
        ("http://localhost:8000/v1/", "http://localhost:8000/v1"),
        ("localhost:8000/v1", "http://localhost:8000/v1"),
        ("192.168.1.7:80", "http://192.168.1.7:80"),
        ("api.example.com/v1", "https://api.example.com/v1"),
        (" https://api.example.com/v1/audio/speech ", "https://api.example.com/v1"),
    ],
)
def test_an_address_is_taken_as_people_type_it(typed: str, taken: str) -> None:
    assert checked_address(typed) == taken


@pytest.mark.parametrize(
    "typed",
    [
        "htp:/x",
        "ftp://x/v1",
        "http://",
        "http://a b/v1",
        "http://h:99999/v1",
        "http://u:pw@h/v1",
        "",
        "h/v1?x=1",
        "://",
    ],
)
def test_what_is_no_address_is_refused_in_one_line(typed: str) -> None:
    with pytest.raises(ValueError) as raised:
        checked_address(typed)
    assert "\n" not in str(raised.value)


def test_a_broken_address_in_the_file_is_told_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "settings.yaml").write_text("volume: 0.5\nvoice: http://h:99999/v1#m\n", encoding="utf-8")
    loaded = load_settings(tmp_path)
    assert [str(problem).partition(": ")[0] for problem in loaded.problems] == ["settings.yaml:2:8"]
    assert loaded.settings.voice == Settings().voice


@pytest.mark.parametrize("url", ["http://localhost:1/v1", "http://127.0.0.1/v1", "http://[::1]:2/v1"])
def test_a_server_on_this_computer_is_told_from_others(url: str) -> None:
    assert SoundServer(url=url).is_here
    assert not SoundServer(url="http://192.168.1.7/v1").is_here
    assert SoundServer(url="https://h.example:444/v1").host == "h.example:444"


@pytest.mark.parametrize("setting", ["voice", "whisper"])
def test_a_test_tells_address_key_and_model_apart(endpoint: SoundEndpoint, setting: str) -> None:
    right = SoundServer(url=endpoint.url, model=MODEL, voice=VOICE if setting == "voice" else "")
    works = ask(setting, right)
    assert works.is_ok and works.ms >= 1
    assert ask(setting, right, key="sk-wrong").code == "key"
    assert ask(setting, right, key=None).code == "key"
    wrong_model = ask(setting, SoundServer(url=endpoint.url, model="other", voice=right.voice))
    assert wrong_model.code == "model" and "model" in wrong_model.detail
    path = ask(setting, SoundServer(url=endpoint.url.removesuffix("/v1"), model=MODEL))
    assert (path.code, path.detail) == ("address", "404")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nobody = ask(setting, SoundServer(url=f"http://127.0.0.1:{free.getsockname()[1]}/v1"))
    assert nobody.code == "address" and nobody.detail


def test_a_wrong_voice_is_told(endpoint: SoundEndpoint) -> None:
    assert ask("voice", SoundServer(url=endpoint.url, model=MODEL, voice="nobody")).code == "voice"


def test_an_answer_that_is_no_sound_is_told(endpoint: SoundEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "answer", lambda *_: (200, "text/html", b"<html>"))
    for setting in ("voice", "whisper"):
        assert ask(setting, SoundServer(url=endpoint.url, model=MODEL, voice=VOICE)).code == "answer"


@pytest.mark.parametrize(("status", "code"), [(429, "busy"), (500, "server"), (302, "address"), (403, "key")])
def test_other_refusals_have_words_of_their_own(
    endpoint: SoundEndpoint, monkeypatch: pytest.MonkeyPatch, status: int, code: str
) -> None:
    monkeypatch.setattr(endpoint, "answer", lambda *_: (status, "application/json", b'{"error": "sorry"}'))
    test = ask("whisper", SoundServer(url=endpoint.url, model=MODEL))
    assert test.code == code


def test_a_test_can_be_cancelled_while_the_server_is_silent(endpoint: SoundEndpoint) -> None:
    endpoint.gate.clear()
    server = SoundServer(url=endpoint.url, model=MODEL)
    tests = SoundTests(SystemClock(), MemoryVault())
    found: list[SoundTest] = []
    thread = threading.Thread(
        target=lambda: found.append(tests.run("whisper", Settings(whisper=server.name("whisper"))))
    )
    thread.start()
    assert endpoint.came.wait(10.0)
    tests.cancel("whisper")
    thread.join(5.0)
    assert not thread.is_alive() and [test.code for test in found] == ["cancelled"]


def test_the_environment_goes_before_the_keyring(endpoint: SoundEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_ENVS["voice"], KEY)
    assert ask("voice", SoundServer(url=endpoint.url, model=MODEL, voice=VOICE), key="sk-wrong").is_ok


def test_a_keyring_that_is_locked_is_told_and_nothing_is_sent(endpoint: SoundEndpoint) -> None:
    server = SoundServer(url=endpoint.url, model=MODEL)
    test = SoundTests(SystemClock(), MemoryVault(is_there=False)).run("whisper", settings_for("whisper", server))
    assert (test.code, endpoint.asked) == ("keyring", [])
