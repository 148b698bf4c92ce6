"""Rows of settings on a page, wherever it is: they ask the service and show what came of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QLabel, QWidget

from desktop.bridge import Bridge
from desktop.ears_numbers import dial_numbers
from desktop.llm_probe import LlmTest
from desktop.settings_service import Change, DeviceChoices, InstallStep, ModelChoice, SettingsService
from desktop.ui.avatar.in_window import AvatarInWindow
from desktop.ui.i18n import Translator
from desktop.ui.settings.avatar_editor import AvatarEditor
from desktop.ui.settings.editors import DeviceEditor, TextEditor
from desktop.ui.settings.groups import ENDPOINT_ONLY, KEYS, make_editor
from desktop.ui.settings.llm_editor import LlmEditor, LlmModelEditor
from desktop.ui.settings.model_editor import ModelEditor
from desktop.ui.settings.numbers_editor import NumbersEditor
from desktop.ui.settings.row import SettingRow
from desktop.ui.settings.sound_editor import SoundEditor
from desktop.ui.settings.sound_rows import SoundRows


class SettingsForm(QObject):
    """Owns the rows of one window. `applied` names what the window itself has to carry out."""

    applied = Signal(str, object)

    def __init__(self, service: SettingsService, bridge: Bridge, translator: Translator, parent: QObject) -> None:
        """Begin without rows."""
        super().__init__(parent)
        self._service = service
        self._bridge = bridge
        self._translator = translator
        self._installing: dict[str, ModelEditor] = {}
        self._devices: DeviceChoices | None = None
        self._models: tuple[ModelChoice, ...] | None = None
        self._characters: AvatarInWindow | None = None
        self.rows: dict[str, SettingRow] = {}
        self._sound = SoundRows(service, bridge, translator, self.rows)
        self.devices_note = QLabel()
        self.devices_note.setObjectName("settingsDevicesNote")
        self.devices_note.setProperty("role", "error")
        self.devices_note.setWordWrap(True)
        self.devices_note.hide()

    def follow(self, characters: AvatarInWindow) -> None:
        """Offer the packs that `characters` finds, and import through it."""
        self._characters = characters
        characters.found.connect(lambda _choices: self._offer_characters())
        self._offer_characters()

    # --- rows -------------------------------------------------------------------------------------------

    def add(self, names: Sequence[str], page: QWidget) -> list[SettingRow]:
        """Make the rows of `names` on `page`, showing what holds; the caller lays them out."""
        made = []
        for name in names:
            row = self.rows[name] = SettingRow(make_editor(name, self._translator), self._translator)
            # Without a parent, a row that is made visible would be a window for a moment.
            row.setParent(page)
            made.append(row)
        self._connect(names)
        self.show_all()
        self._offer()
        return made

    def show_all(self) -> None:
        """Show the settings in force, also those changed elsewhere."""
        settings = self._service.settings
        for name, row in self.rows.items():
            if name not in KEYS:
                row.editor.show_value(getattr(settings, name))
        numbers = self.rows.get("ears")
        if numbers is not None and isinstance(numbers.editor, NumbersEditor):
            numbers.editor.show_dials(dial_numbers(settings))
        for name in KEYS:
            self._show_key(name)

    def look_up(self) -> None:
        """Look devices and models up anew."""
        self._service.find_devices(lambda found: self._later(lambda: self._show_devices(found)))
        self._find_models()
        if self._characters is not None:
            self._characters.look_again()

    @property
    def is_informed(self) -> bool:
        """Whether devices and models are known."""
        return self._devices is not None and self._models is not None

    def _connect(self, names: Iterable[str]) -> None:
        for name in names:
            row = self.rows[name]
            if name in KEYS:
                row.editor.edited.connect(lambda key, at=name: self._on_key_edited(at, key))
            else:
                row.editor.edited.connect(lambda value, key=name: self._on_edited(key, value))
        for editor in self._model_editors(names):
            editor.install_asked.connect(lambda model, asking=editor: self._on_install_asked(model, asking))
            editor.cancel_asked.connect(self._service.cancel_install)
        self._sound.connect_rows(names)
        if "avatar" in names:
            self._avatars.import_asked.connect(self._on_import_asked)
        if "llm" not in names:
            return
        llm = self._llm
        llm.test_asked.connect(self._on_test_asked)
        llm.search_asked.connect(self.search_servers)
        llm.source_changed.connect(self._on_source_changed)

    @property
    def _avatars(self) -> AvatarEditor:
        editor = self.rows["avatar"].editor
        assert isinstance(editor, AvatarEditor)
        return editor

    @property
    def _llm(self) -> LlmEditor:
        editor = self.rows["llm"].editor
        assert isinstance(editor, LlmEditor)
        return editor

    def _model_editors(self, names: Iterable[str]) -> list[ModelEditor]:
        found = []
        for name in names:
            row = self.rows[name]
            if isinstance(row.editor, ModelEditor):
                found.append(row.editor)
            elif isinstance(row.editor, (LlmModelEditor, SoundEditor)):
                found.append(row.editor.models)
        return found

    def _later(self, call: Callable[[], None]) -> None:
        """Do `call` on the window's thread."""
        self._bridge.call(call)

    # --- what the user does -----------------------------------------------------------------------------

    def _on_edited(self, name: str, value: Any) -> None:
        self.rows[name].hush()
        if name in ("whisper", "whisper_partial"):
            self.rows[name].tell("caption", "settings.model.loading")
        self._service.change(name, value, lambda change: self._later(lambda: self._on_changed(change)))

    def _on_changed(self, change: Change) -> None:
        row = self.rows[change.name]
        if change.is_refused:
            row.tell("error", f"settings.error.{change.code}", change.message)
            is_typed = isinstance(row.editor, (TextEditor, LlmEditor)) or self._sound.is_typed(row.editor)
            if change.code != "model_missing" and not is_typed:
                # What was typed stays to be corrected, a model to be fetched; a choice goes back to what holds.
                row.editor.show_value(change.value)
            return
        if change.effect == "restart":
            row.tell("later", "settings.after_restart")
        else:
            if change.code:
                row.tell("later", f"settings.error.{change.code}", change.message)
            elif not self._sound.is_testing(change.name):
                row.hush()
            self.applied.emit(change.name, change.value)
        if change.name in ("sensitivity", "patience"):
            self.show_all()
        for name, of in KEYS.items():
            if of == change.name:
                self._show_key(name)

    def _on_key_edited(self, name: str, text: Any) -> None:
        self.rows[name].tell("caption", "settings.key.saving")
        self._service.save_key(str(text), lambda change: self._later(lambda: self._on_key_saved(change)), of=KEYS[name])

    def _on_key_saved(self, change: Change) -> None:
        row = self.rows[change.name]
        self._show_key(change.name)
        if change.is_refused:
            row.tell("error", f"settings.error.{change.code}", change.message)
        else:
            row.tell("good", "settings.key.saved" if change.value else "settings.key.deleted")

    def _show_key(self, name: str) -> None:
        row = self.rows.get(name)
        if row is None:
            return
        is_kept = bool(getattr(self._service.settings, name))
        row.editor.show_value(is_kept)
        if is_kept:
            row.tell("good", "settings.key.present")
        else:
            row.hush()

    def _on_source_changed(self, source: str) -> None:
        for name in (*ENDPOINT_ONLY, "llm_model"):
            row = self.rows.get(name)
            if row is not None:
                row.setVisible(source == "endpoint" if name in ENDPOINT_ONLY else source != "none")
        models = self.rows.get("llm_model")
        if models is not None and isinstance(models.editor, LlmModelEditor):
            models.editor.show_source(source)

    # --- devices and models -----------------------------------------------------------------------------

    def _show_devices(self, found: DeviceChoices) -> None:
        self._devices = found
        self._offer()

    def _show_models(self, found: tuple[ModelChoice, ...]) -> None:
        self._models = found
        self._offer()

    def _offer(self) -> None:
        """Offer what is known in the rows that are there."""
        if self._models is not None:
            for models in self._model_editors(self.rows):
                models.offer(self._models)
        self._offer_characters()
        found = self._devices
        if found is None or "input_device" not in self.rows:
            return
        for name, devices in (("input_device", found.inputs), ("output_device", found.outputs)):
            editor = self.rows[name].editor
            if isinstance(editor, DeviceEditor):
                editor.offer([device.name for device in devices])
        self.devices_note.setVisible(bool(found.message))
        self.devices_note.setText(self._translator.fault(found.code, found.message))

    def _on_import_asked(self, path: Path) -> None:
        if self._characters is not None:
            self._characters.take_in(path)

    def _offer_characters(self) -> None:
        if self._characters is not None and "avatar" in self.rows:
            self._avatars.offer(self._characters.choices)

    def _find_models(self) -> None:
        self._service.find_models(lambda found: self._later(lambda: self._show_models(found)))

    def _on_install_asked(self, model: str, editor: ModelEditor) -> None:
        self._installing[model] = editor
        self.rows[editor.name].tell("caption", "settings.model.fetching")
        self._service.install(model, lambda step: self._later(lambda: self.show_step(step)))

    def show_step(self, step: InstallStep) -> None:
        """Show how far an installation is, at the row that asked for it."""
        editor = self._installing.get(step.name)
        if editor is None:
            return
        editor.show_step(step)
        if not step.is_over:
            return
        del self._installing[step.name]
        row = self.rows[editor.name]
        if step.stage == "installed":
            row.tell("good", "settings.model.done")
            self._find_models()
            # The choice was made before the model was there: now it can be taken over.
            self._on_edited(editor.name, step.name if editor.value is not None else None)
        elif step.stage == "cancelled":
            row.tell("caption", "settings.model.cancelled")
        else:
            row.tell("error", "settings.model.failed", self._translator.fault(step.code, step.message))

    # --- the language model -----------------------------------------------------------------------------

    def _on_test_asked(self) -> None:
        self._llm.set_busy(True)
        self.rows["llm"].tell("caption", "settings.llm.testing")
        self._service.test_llm(lambda test: self._later(lambda: self.show_test(test)))

    def show_test(self, test: LlmTest) -> None:
        """Show what an endpoint answered."""
        self._llm.set_busy(False)
        row = self.rows["llm"]
        if test.is_ok:
            row.tell("good", "settings.llm.works", ", ".join(test.models[:3]) or test.url)
        else:
            language = "zh" if self._translator.language == "zh_CN" else "en"
            row.tell("error", "", (test.messages or {}).get(language, ""))

    def search_servers(self) -> None:
        """Look for programs on this machine that serve a model."""
        self._llm.set_busy(True)
        self.rows["llm"].tell("caption", "settings.llm.searching")
        self._service.find_servers(lambda found: self._later(lambda: self._on_found(found)))

    def _on_found(self, found: tuple[LlmTest, ...]) -> None:
        self._llm.set_busy(False)
        self._llm.show_found(found)
        if found:
            names = ", ".join(test.program or test.url for test in found)
            self.rows["llm"].tell("good", "settings.llm.found", names)
        else:
            self.rows["llm"].tell("caption", "settings.llm.nothing_found")
