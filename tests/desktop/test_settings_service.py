from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from desktop.llm_probe import LlmTest
from desktop.models import ModelStore
from desktop.settings import SETTINGS_FILE, Settings, load_settings
from desktop.settings_service import Change, DeviceChoice, DeviceChoices, InstallStep, SettingsService
from orchestrator.clock import SystemClock
from orchestrator.contracts.errors import InputError


class FakeVault:
    """A keyring in memory; `is_locked` makes it refuse."""

    def __init__(self) -> None:
        self.keys: dict[str, str] = {}
        self.is_locked = False

    def _check(self) -> None:
        if self.is_locked:
            raise InputError("keyring_unavailable", "locked", part="settings")

    def read(self, url: str) -> str | None:
        self._check()
        return self.keys.get(url)

    def write(self, url: str, key: str) -> None:
        self._check()
        self.keys[url] = key

    def delete(self, url: str) -> None:
        self._check()
        self.keys.pop(url, None)


class FakeDoor:
    """A running conversation that knows two devices."""

    def __init__(self) -> None:
        self.applied: list[tuple[str, Any]] = []

    def apply(self, name: str, settings: Settings) -> None:
        if name == "input_device" and settings.input_device not in (None, "USB"):
            raise InputError("device_unknown", "unknown input device", part="devices")
        self.applied.append((name, getattr(settings, name)))

    def say_sample(self, language: str) -> None:
        self.said = language

    def is_quiet(self) -> bool:
        return True

    def rest_ears(self, on: bool) -> None:
        self.rests = on

    def read_again(self) -> None:
        self.reads = True


class Waiting:
    """Collects what comes from another thread and waits for the last of it."""

    def __init__(self) -> None:
        self.got: list[Any] = []
        self._came = threading.Event()

    def __call__(self, result: Any) -> None:
        self.got.append(result)
        if not isinstance(result, InstallStep) or result.is_over:
            self._came.set()

    def last(self) -> Any:
        assert self._came.wait(20.0), "no answer came"
        self._came.clear()
        return self.got[-1]


@pytest.fixture
def vault() -> FakeVault:
    return FakeVault()


@pytest.fixture
def make(tmp_path: Path, vault: FakeVault) -> Iterator[Callable[..., SettingsService]]:
    made: list[SettingsService] = []

    def build(**values: Any) -> SettingsService:
        service = SettingsService(
            tmp_path,
            Settings(**values),
            SystemClock(),
            vault=vault,
            make_store=lambda: ModelStore(tmp_path / "models"),
            list_sound=lambda: DeviceChoices(inputs=(DeviceChoice(name="USB", is_default=True, is_bluetooth=False),)),
        )
        made.append(service)
        return service

    yield build
    for service in made:
        service.close()


def test_a_change_of_the_window_is_saved_at_once(make: Callable[..., SettingsService], tmp_path: Path) -> None:
    change = make().change_now("theme", "dark")
    assert change == Change(name="theme", value="dark", effect="now")
    assert load_settings(tmp_path).settings.theme == "dark"


def test_a_wrong_value_is_refused_and_nothing_is_written(make: Callable[..., SettingsService], tmp_path: Path) -> None:
    service = make()
    change = service.change_now("llm", "not a url")
    assert change.is_refused
    assert change.code == "setting_invalid"
    assert change.value == "local"
    assert not (tmp_path / SETTINGS_FILE).exists()


def test_what_is_changed_while_the_conversation_loads_counts_from_its_begin(
    make: Callable[..., SettingsService],
) -> None:
    service, door = make(), FakeDoor()
    service.expect()
    assert service.change_now("patience", "quick").effect == "now"
    assert service.change_now("languages", ("zh",)).effect == "now"
    assert service.change_now("session_idle_min", 10).effect == "restart"
    service.attach(door)
    service.close(10.0)
    assert door.applied == [("patience", "quick"), ("languages", ("zh",))]


def test_what_needs_a_restart_says_so(make: Callable[..., SettingsService]) -> None:
    assert make().change_now("session_idle_min", 10).effect == "restart"
    assert make().change_now("patience", "quick").effect == "restart", "no conversation runs that could take it"


def test_options_of_the_command_line_are_not_saved_along(make: Callable[..., SettingsService], tmp_path: Path) -> None:
    service = make(llm="none", input_device="USB")
    service.change_now("theme", "light")
    assert service.settings.llm == "none"
    assert load_settings(tmp_path).settings == Settings(theme="light")


def test_a_running_conversation_takes_over_live(make: Callable[..., SettingsService], tmp_path: Path) -> None:
    service, door, done = make(), FakeDoor(), Waiting()
    service.attach(door)
    service.change("input_device", "USB", done)
    assert done.last() == Change(name="input_device", value="USB", effect="now")
    assert door.applied == [("input_device", "USB")]
    assert load_settings(tmp_path).settings.input_device == "USB"


def test_what_can_not_be_applied_is_not_saved(make: Callable[..., SettingsService], tmp_path: Path) -> None:
    service, done = make(), Waiting()
    service.attach(FakeDoor())
    service.change("input_device", "gone", done)
    change = done.last()
    assert (change.effect, change.code, change.value) == ("refused", "device_unknown", None)
    assert load_settings(tmp_path).settings.input_device is None


def test_a_model_must_be_there_before_it_is_chosen(make: Callable[..., SettingsService], tmp_path: Path) -> None:
    service, done = make(), Waiting()
    service.change("whisper", "whisper-small", done)
    change = done.last()
    assert (change.effect, change.code) == ("refused", "model_missing")
    own = tmp_path / "own-model"
    own.mkdir()
    service.change("whisper", str(own), done)
    assert done.last().effect == "restart"
    assert service.settings.whisper == str(own)


def test_models_are_listed_with_size_and_licence(make: Callable[..., SettingsService]) -> None:
    done = Waiting()
    make().find_models(done)
    found = {model.name: model for model in done.last()}
    assert {model.kind for model in found.values()} >= {"stt", "tts", "llm"}
    assert all(model.size_bytes >= 0 and model.licence and model.title for model in found.values())
    assert not found["whisper-base"].is_installed


def test_an_installation_that_fails_ends_with_its_reason(make: Callable[..., SettingsService]) -> None:
    done = Waiting()
    make().install("no-such-model", done)
    step = done.last()
    assert step.stage == "failed"
    assert "no-such-model" in step.message


def test_a_key_goes_to_the_keyring_and_never_to_the_file(
    make: Callable[..., SettingsService], vault: FakeVault, tmp_path: Path
) -> None:
    service, done = make(llm="http://example.org/v1/"), Waiting()
    service.save_key(" sk-secret ", done)
    assert done.last().value is True
    assert vault.keys == {"http://example.org/v1": "sk-secret"}
    assert "sk-secret" not in (tmp_path / SETTINGS_FILE).read_text(encoding="utf-8")
    service.change_now("llm", "http://other.example/v1")
    assert service.settings.llm_key_in_keyring is False, "another address has no key of this one"
    service.change_now("llm", "http://example.org/v1")
    service.save_key("", done)
    assert done.last().value is False
    assert vault.keys == {}


def test_a_locked_keyring_is_said(make: Callable[..., SettingsService], vault: FakeVault) -> None:
    service, done = make(llm="http://example.org/v1"), Waiting()
    vault.is_locked = True
    service.save_key("sk-1", done)
    assert done.last().code == "keyring_unavailable"
    assert service.settings.llm_key_in_keyring is False


@pytest.fixture
def endpoint() -> Iterator[tuple[str, list[str]]]:
    """A server that lists one model for those who have the key."""
    seen: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            key = self.headers.get("Authorization", "")
            seen.append(key)
            is_known = key == "Bearer sk-right"
            body = json.dumps(
                {"object": "list", "data": [{"id": "small-model", "object": "model", "created": 0, "owned_by": "x"}]}
                if is_known
                else {"error": {"message": "wrong key", "code": "invalid_api_key"}}
            ).encode()
            self.send_response(200 if is_known else 401)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            return

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, name="endpoint", daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1", seen
    server.shutdown()
    server.server_close()
    thread.join(5.0)


@pytest.mark.parametrize(("key", "is_ok"), [("sk-right", True), ("sk-wrong", False)])
def test_the_test_button_asks_with_the_key_of_the_keyring(
    make: Callable[..., SettingsService],
    vault: FakeVault,
    endpoint: tuple[str, list[str]],
    key: str,
    is_ok: bool,
) -> None:
    url, seen = endpoint
    vault.keys[url] = key
    service, done = make(llm=url, llm_key_in_keyring=True), Waiting()
    service.test_llm(done)
    test = done.last()
    assert isinstance(test, LlmTest)
    assert test.is_ok is is_ok
    assert seen
    assert set(seen) == {f"Bearer {key}"}
    if is_ok:
        assert test.models == ("small-model",)
    else:
        assert test.messages
        assert all(test.messages[language] for language in ("en", "zh"))


def test_nobody_answers_a_dead_address(make: Callable[..., SettingsService]) -> None:
    service, done = make(llm="http://127.0.0.1:9/v1"), Waiting()
    service.test_llm(done)
    assert done.last().is_ok is False
