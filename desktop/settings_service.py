"""What the settings dialog asks for, without a window: checked, saved, applied to the running program where it can be.

Results come by a callback, from the caller's thread or from a thread of this service.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from desktop.device_choices import DeviceChoice as DeviceChoice
from desktop.device_choices import DeviceChoices as DeviceChoices
from desktop.device_choices import list_sound_devices
from desktop.ears_numbers import Numbers, ears_numbers
from desktop.key_vault import KeyVault, SystemKeyVault
from desktop.llm_probe import LlmProbe, LlmTest, base_url
from desktop.models import ModelStore
from desktop.room_measurement import RoomMeasurement, RoomSound
from desktop.settings import SETTINGS_FILE, Settings, check_value, load_settings, save_settings
from desktop.sound_probe import SoundTest, SoundTests
from desktop.sound_server import KEY_SETTINGS, find_key, is_server, parse_server
from desktop.work_queue import WorkQueue
from orchestrator.clock import Clock
from orchestrator.contracts.errors import InputError, MynahError

log = logging.getLogger(__name__)

WINDOW_LIVE = frozenset(
    {
        *("ui_language", "theme", "reduced_motion", "always_on_top", "log_level"),
        *("subtitles", "subtitle_size_pt", "subtitle_font", "subtitle_contrast"),
        *("avatar", "companion_click_through", "global_talk_key", "global_stop_key"),
    }
)
"""Settings that the window itself carries out at once."""

ENGINE_LIVE = frozenset(
    {
        "input_device",
        "output_device",
        "sensitivity",
        "patience",
        "attention",
        "attention_s",
        "talk_mode",
        "voice",
        "volume",
        "speed",
        "pauses",
        "thinking_cue",
        "unspeakable",
        "extra_output_delay_ms",
        "ears",
        "languages",
        "chinese_script",
        "whisper",
        "whisper_partial",
        "voice_key_in_keyring",
        "whisper_key_in_keyring",
        "llm",
        "llm_model",
        "llm_key_env",
        "llm_key_in_keyring",
        "llm_can_plan",
        "llm_tools",
        "llm_patience_s",
    }
)
"""Settings that a running conversation takes over at once."""

KEPT_CODES = frozenset({"model_missing"})
"""Faults with which a choice of a language model is kept all the same: the model is fetched next."""

MODELS = frozenset({"whisper", "whisper_partial", "voice"})
"""Settings that name a model, which must be there before it is chosen."""


class LiveDoor(Protocol):
    """The running conversation, as the settings see it."""

    def apply(self, name: str, settings: Settings) -> None:
        """Take over the setting `name` of `settings`. May block; raises `MynahError` if it can't be done."""
        ...

    def say_sample(self, language: str) -> None:
        """Say a sentence that belongs to no conversation."""
        ...

    def is_quiet(self) -> bool:
        """Whether nothing sounds or waits to be played."""
        ...

    def rest_ears(self, on: bool) -> None:
        """Answer nothing that is said for a while, or listen again."""
        ...

    def read_again(self) -> None:
        """Read persona, flows and rails again."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What became of a change. `effect` is now, restart or refused; `value` is what holds now.

    `code` and `message` say why it was refused, or what is missing before something kept can work.
    """

    name: str
    value: Any
    effect: str
    code: str = ""
    message: str = ""

    @property
    def is_refused(self) -> bool:
        """Whether everything stayed as it was."""
        return self.effect == "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChoice:
    """A model of the catalogue. `is_recommended`: it is taken where the choice of its kind is left to the program."""

    name: str
    kind: str
    title: str
    licence: str
    size_bytes: int
    is_installed: bool
    is_recommended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallStep:
    """How far an installation is. `stage` is the store's, or failed or cancelled; `total_bytes` is 0 if unknown."""

    name: str
    stage: str
    done_bytes: int = 0
    total_bytes: int = 0
    message: str = ""
    code: str = ""

    @property
    def is_over(self) -> bool:
        """Whether no further step comes."""
        return self.stage in ("installed", "failed", "cancelled")


class SettingsService:
    """The settings of the running program. Callable from the window's thread; slow work runs on named threads."""

    def __init__(
        self,
        data: Path,
        settings: Settings,
        clock: Clock,
        *,
        vault: KeyVault | None = None,
        make_store: Callable[[], ModelStore] = ModelStore,
        list_sound: Callable[[], DeviceChoices] | None = None,
        room_sound: RoomSound | None = None,
    ) -> None:
        """Begin with the `settings` in force, which may differ from the saved ones by options of the command line."""
        self._data = data
        self._settings = settings
        self._clock = clock
        self._vault = vault if vault is not None else SystemKeyVault()
        self._probe = LlmProbe(clock, self._vault)
        self._sound_tests = SoundTests(clock, self._vault)
        self._make_store = make_store
        self._list_sound = list_sound or list_sound_devices
        self.room = RoomMeasurement(lambda: self._settings, room_sound)
        self._lock = threading.Lock()
        self._door: LiveDoor | None = None
        self._cancelled: dict[str, threading.Event] = {}
        self._work = WorkQueue("settings")
        self._is_closed = False
        self._is_expecting = False
        self._pending: list[str] = []

    @property
    def settings(self) -> Settings:
        """The settings in force (those that need a restart, as they will be)."""
        return self._settings

    @property
    def data(self) -> Path:
        """The folder that holds settings and conversations."""
        return self._data

    def expect(self) -> None:
        """Note that a conversation is being loaded: what it can take over counts from its begin."""
        self._is_expecting = True

    def attach(self, door: LiveDoor) -> None:
        """Connect the running conversation; it takes over what was changed while it was being loaded."""
        self._door = door
        self._is_expecting = False
        pending, self._pending = list(dict.fromkeys(self._pending)), []
        for name in pending:
            self._work.add(partial(self._catch_up, door, name))

    def _catch_up(self, door: LiveDoor, name: str) -> None:
        try:
            door.apply(name, self._settings)
        except MynahError as error:
            log.warning("%s could not be taken over: %s", name, error.code)

    def close(self, timeout_s: float = 0.5) -> None:
        """Cancel installations and end the worker once what waits is done."""
        self._is_closed = True
        for event in self._cancelled.values():
            event.set()
        self._sound_tests.cancel()
        self.room.cancel()
        self._work.close(timeout_s)

    # --- settings ---------------------------------------------------------------------------------------

    def change(self, name: str, value: Any, on_done: Callable[[Change], None]) -> None:
        """Check, apply and save one setting; what can't be applied is not saved.

        `on_done` is called on this thread, or on the service's for what the conversation takes over live.
        """
        try:
            checked = check_value(name, value)
        except InputError as error:
            on_done(self._refused(name, error))
            return
        door = self._door
        is_live = name in ENGINE_LIVE and door is not None
        if is_live or name in MODELS:
            self._work.add(lambda: on_done(self._apply(name, checked, door if is_live else None)))
            return
        is_now = name in WINDOW_LIVE or self._is_awaited(name)
        on_done(self._store(name, self._changes(name, checked), "now" if is_now else "restart"))

    def _is_awaited(self, name: str) -> bool:
        """Whether the conversation that is being loaded will take `name` over."""
        if name not in ENGINE_LIVE or not self._is_expecting:
            return False
        self._pending.append(name)
        return True

    def change_now(self, name: str, value: Any) -> Change:
        """Change a setting that the window carries out itself."""
        results: list[Change] = []
        self.change(name, value, results.append)
        return results[0]

    def _apply(self, name: str, value: Any, door: LiveDoor | None) -> Change:
        changes = self._changes(name, value)
        try:
            if name in MODELS and not (name in KEY_SETTINGS and is_server(value)):
                self._make_store().path(value)
            if door is not None:
                door.apply(name, replace(self._settings, **changes))
        except MynahError as error:
            if name.startswith("llm") and error.code in KEPT_CODES:
                return replace(self._store(name, changes, "now"), code=error.code, message=error.message)
            return self._refused(name, error)
        is_now = door is not None or self._is_awaited(name)
        is_now = is_now and not (name == "ears" and self._needs_restart(value))
        return self._store(name, changes, "now" if is_now else "restart")

    def _needs_restart(self, numbers: Numbers) -> bool:
        """Whether one of the numbers that differ is read at the start only."""
        changed = {name for name, _ in set(numbers) ^ set(self._settings.ears)}
        return not all(ears_numbers()[name].is_live for name in changed)

    def _changes(self, name: str, value: Any) -> dict[str, Any]:
        changes = {name: value}
        if name == "llm" and value != self._settings.llm:
            # A key belongs to one address; another one must not be started with "the keyring has no key".
            changes["llm_key_in_keyring"] = False
        if name in KEY_SETTINGS:
            before, server = parse_server(name, getattr(self._settings, name)), parse_server(name, value)
            if server is None:
                changes[KEY_SETTINGS[name]] = False
            elif before is None or before.url != server.url:
                changes[KEY_SETTINGS[name]] = find_key(server, self._vault) is not None
        return changes

    def _store(self, name: str, changes: Mapping[str, Any], effect: str) -> Change:
        with self._lock:
            stored = load_settings(self._data).settings
            try:
                save_settings(self._data, replace(stored, **changes))
            except MynahError as error:
                return self._refused(name, error)
            self._settings = replace(self._settings, **changes)
        return Change(name=name, value=changes[name], effect=effect)

    def _refused(self, name: str, error: MynahError) -> Change:
        value = getattr(self._settings, name, None)
        return Change(name=name, value=value, effect="refused", code=error.code, message=error.message)

    def is_first_start(self) -> bool:
        """Whether nothing was ever set here."""
        return not (self._data / SETTINGS_FILE).exists()

    def note_start(self) -> None:
        """Remember that the guide was shown: keep the settings as they are."""
        with self._lock, contextlib.suppress(MynahError):
            save_settings(self._data, load_settings(self._data).settings)

    def say_sample(self, on_done: Callable[[bool], None]) -> None:
        """Let the voice be heard; False if nothing runs that could speak."""
        door = self._door
        language = self._settings.languages[0]

        def work() -> None:
            if door is not None:
                door.say_sample(language)
            on_done(door is not None)

        self._work.add(work)

    @property
    def is_loading(self) -> bool:
        """Whether a conversation is being loaded."""
        return self._is_expecting

    @property
    def door(self) -> LiveDoor | None:
        """The running conversation, none while it is being loaded."""
        return self._door

    # --- devices and models -----------------------------------------------------------------------------

    def find_devices(self, on_done: Callable[[DeviceChoices], None]) -> None:
        """List the sound devices."""

        def work() -> None:
            try:
                on_done(self._list_sound())
            except MynahError as error:
                on_done(DeviceChoices(message=error.message, code=error.code))

        self._work.add(work)

    def find_models(self, on_done: Callable[[tuple[ModelChoice, ...]], None]) -> None:
        """List the models of the catalogue."""
        self._work.add(lambda: on_done(self._models()))

    def _models(self) -> tuple[ModelChoice, ...]:
        try:
            store = self._make_store()
        except MynahError:
            log.exception("the catalogue of models can't be read")
            return ()
        from desktop.llm_host import recommended_model

        recommended = recommended_model(self._settings)
        return tuple(
            ModelChoice(
                name=model.name,
                kind=model.kind,
                title=model.title,
                licence=model.licence,
                size_bytes=model.size_bytes,
                is_installed=store.is_installed(model.name),
                is_recommended=model.name == recommended,
            )
            for model in store.catalogue.models.values()
        )

    def install(self, name: str, on_step: Callable[[InstallStep], None]) -> None:
        """Fetch a model; `on_step` is called from the thread `install <name>` until a step is over."""
        if name in self._cancelled or self._is_closed:
            return
        cancelled = self._cancelled[name] = threading.Event()

        def run() -> None:
            last = InstallStep(name=name, stage="failed")
            try:
                self._make_store().install(
                    name,
                    lambda p: on_step(
                        InstallStep(name=name, stage=p.stage, done_bytes=p.done_bytes, total_bytes=p.total_bytes or 0)
                    ),
                    cancelled.is_set,
                )
                last = InstallStep(name=name, stage="installed")
            except MynahError as error:
                stage = "cancelled" if cancelled.is_set() else "failed"
                last = InstallStep(name=name, stage=stage, message=error.message, code=error.code)
            except OSError as error:
                last = InstallStep(name=name, stage="failed", message=str(error))
            finally:
                self._cancelled.pop(name, None)
                on_step(last)

        threading.Thread(target=run, name=f"install {name}", daemon=True).start()

    def cancel_install(self, name: str) -> None:
        """Give an installation up; its last step follows."""
        event = self._cancelled.get(name)
        if event is not None:
            event.set()

    # --- the language model -----------------------------------------------------------------------------

    def save_key(self, key: str, on_done: Callable[[Change], None], *, of: str = "llm") -> None:
        """Keep the key of the endpoint that the setting `of` names (llm, voice, whisper) in the keyring.

        An empty key is forgotten.
        """
        name = KEY_SETTINGS.get(of, "llm_key_in_keyring")

        def work() -> None:
            try:
                url = self._key_place(of)
                if key.strip():
                    self._vault.write(url, key.strip())
                else:
                    self._vault.delete(url)
            except MynahError as error:
                on_done(self._refused(name, error))
                return
            on_done(self._apply(name, bool(key.strip()), self._door))

        self._work.add(work)

    def _key_place(self, of: str) -> str:
        """Return the address that a key is kept under. Raises `InputError` where there is none to keep one for."""
        if of == "llm":
            return base_url(self._settings.llm)
        server = parse_server(of, getattr(self._settings, of))
        if server is None:
            raise InputError("server_missing", "enter the address of the server first", part="settings")
        return server.url

    def test_sound(self, setting: str, on_done: Callable[[SoundTest], None]) -> None:
        """Ask the server that `setting` (voice or whisper) names whether it can be used; one test at a time.

        Changes that were asked for before are made before.
        """

        def begin() -> None:
            settings = self._settings
            self._start(f"{setting}-test", lambda: on_done(self._sound_tests.run(setting, settings)))

        self._work.add(begin)

    def cancel_test(self, setting: str) -> None:
        """Give a test up; its result follows."""
        self._sound_tests.cancel(setting)

    def test_llm(self, on_done: Callable[[LlmTest], None]) -> None:
        """Ask the endpoint in force whether it answers, takes the key and has the model."""
        settings = self._settings
        self._start("llm-test", lambda: on_done(self._probe.ask(settings, settings.llm, with_key=True)))

    def find_servers(self, on_done: Callable[[tuple[LlmTest, ...]], None]) -> None:
        """Look for the programs on this machine that serve a model and answer now."""
        settings = self._settings
        self._start("llm-search", lambda: on_done(self._probe.find(settings)))

    # --- threads ----------------------------------------------------------------------------------------

    def _start(self, name: str, work: Callable[[], None]) -> None:
        if not self._is_closed:
            threading.Thread(target=work, name=name, daemon=True).start()
