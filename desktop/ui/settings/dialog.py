"""The settings dialog: groups at the left, one page each; every change counts at once or says when it will."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import (
    QDialog,
    QHBoxLayout,
    QLabel,
    QListWidget,
    QPushButton,
    QScrollArea,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from desktop.bridge import Bridge
from desktop.settings_service import Change, DeviceChoices, InstallStep, LlmTest, ModelChoice, SettingsService
from desktop.ui.i18n import Translator
from desktop.ui.microphone import LevelMeter
from desktop.ui.panel_style import dress
from desktop.ui.settings.editors import DeviceEditor, TextEditor
from desktop.ui.settings.groups import ENDPOINT_ONLY, GROUPS, KEY, make_editor
from desktop.ui.settings.llm_editor import LlmEditor, LlmModelEditor
from desktop.ui.settings.model_editor import ModelEditor
from desktop.ui.settings.row import SettingRow
from desktop.ui.theme import GRID_PX, Theme

_METER_MS = 50


class SettingsDialog(QDialog):
    """Asks the service and shows what came of it. `applied` names what the window itself has to carry out."""

    applied = Signal(str, object)

    def __init__(
        self, service: SettingsService, bridge: Bridge, theme: Theme, translator: Translator, parent: QWidget | None
    ) -> None:
        """Build the first page, the others when they are turned to; look things up when shown."""
        super().__init__()
        dress(self, theme)
        self.setObjectName("settingsDialog")
        self._service = service
        self._bridge = bridge
        self._translator = translator
        self._installing: dict[str, ModelEditor] = {}
        self.rows: dict[str, SettingRow] = {}
        self._list = QListWidget()
        self._list.setObjectName("settingsGroups")
        self._list.setFixedWidth(20 * GRID_PX)
        self._list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._pages = QStackedWidget()
        self._pages.setObjectName("settingsPages")
        self.meter = LevelMeter(theme)
        self.meter.setObjectName("settingsMeter")
        self._devices_note = QLabel()
        self._devices: DeviceChoices | None = None
        self._models: tuple[ModelChoice, ...] | None = None
        for group in GROUPS:
            self._add_place(group)
        self._close = QPushButton()
        self._close.setObjectName("settingsCloseButton")
        self._close.clicked.connect(self.hide)
        self._close.setAutoDefault(False)
        self._lay_out()
        self._bind()
        self._timer = QTimer(self)
        self._timer.setInterval(_METER_MS)
        self._timer.timeout.connect(self._on_meter)
        self._list.currentRowChanged.connect(self._on_row_changed)
        self._list.setCurrentRow(0)
        if parent is not None:
            # Last: under a parent with a style sheet, every widget would be styled as it is added.
            self.setParent(parent, self.windowFlags())

    # --- showing ----------------------------------------------------------------------------------------

    def show_group(self, group: str) -> None:
        """Turn to the page `group`."""
        self._list.setCurrentRow(list(GROUPS).index(group))

    def show_all(self) -> None:
        """Show the settings in force, also those changed elsewhere."""
        settings = self._service.settings
        for name, row in self.rows.items():
            if name != KEY:
                row.editor.show_value(getattr(settings, name))
        self._show_key()

    def showEvent(self, event: QShowEvent) -> None:
        """Look devices and models up anew."""
        super().showEvent(event)
        self.show_all()
        self._timer.start()
        self._service.find_devices(lambda found: self._later(lambda: self._show_devices(found)))
        self._find_models()

    def hideEvent(self, event: QHideEvent) -> None:
        """Rest while hidden."""
        self._timer.stop()
        super().hideEvent(event)

    # --- building ---------------------------------------------------------------------------------------

    def _add_place(self, group: str) -> None:
        area = QScrollArea()
        area.setObjectName(f"settingsScroll_{group}")
        area.setWidgetResizable(True)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._translator.bind(area.setAccessibleName, f"settings.group.{group}")
        self._pages.addWidget(area)
        self._list.addItem("")
        self._translator.bind(self._list.item(self._list.count() - 1).setText, f"settings.group.{group}")

    def _on_row_changed(self, index: int) -> None:
        group = list(GROUPS)[index]
        area = self._pages.widget(index)
        if isinstance(area, QScrollArea) and area.widget() is None:
            area.setWidget(self._make_page(group, GROUPS[group]))
            self._connect(GROUPS[group])
            self.show_all()
            self._offer()
        self._pages.setCurrentIndex(index)

    def _make_page(self, group: str, names: tuple[str, ...]) -> QWidget:
        page = QWidget()
        page.setObjectName(f"settingsPage_{group}")
        column = QVBoxLayout(page)
        column.setContentsMargins(2 * GRID_PX, GRID_PX, 2 * GRID_PX, 2 * GRID_PX)
        title = QLabel()
        title.setObjectName(f"settingsTitle_{group}")
        title.setProperty("role", "title")
        self._translator.bind(title.setText, f"settings.group.{group}")
        column.addWidget(title)
        if group in ("privacy", "llm"):
            column.addWidget(self._note(f"settings.group.{group}.note", f"settingsNote_{group}"))
        for name in names:
            row = self.rows[name] = SettingRow(make_editor(name, self._translator), self._translator)
            column.addWidget(row)
            if name == "input_device":
                column.addLayout(self._make_meter_row())
        column.addStretch(1)
        return page

    def _note(self, key: str, name: str) -> QLabel:
        made = QLabel()
        made.setObjectName(name)
        made.setProperty("role", "caption")
        made.setWordWrap(True)
        self._translator.bind(made.setText, key)
        return made

    def _make_meter_row(self) -> QHBoxLayout:
        row = QHBoxLayout()
        words = self._note("settings.meter", "settingsMeterText")
        words.setWordWrap(False)
        row.addWidget(words)
        row.addWidget(self.meter)
        self._devices_note.setObjectName("settingsDevicesNote")
        self._devices_note.setProperty("role", "error")
        self._devices_note.setWordWrap(True)
        self._devices_note.hide()
        row.addWidget(self._devices_note, 1)
        row.addStretch(1)
        return row

    def _lay_out(self) -> None:
        middle = QHBoxLayout()
        middle.setSpacing(GRID_PX)
        middle.addWidget(self._list)
        middle.addWidget(self._pages, 1)
        bottom = QHBoxLayout()
        bottom.addStretch(1)
        bottom.addWidget(self._close)
        column = QVBoxLayout(self)
        column.setContentsMargins(2 * GRID_PX, 2 * GRID_PX, 2 * GRID_PX, 2 * GRID_PX)
        column.setSpacing(GRID_PX)
        column.addLayout(middle, 1)
        column.addLayout(bottom)
        self.setMinimumSize(65 * GRID_PX, 40 * GRID_PX)
        self.resize(90 * GRID_PX, 70 * GRID_PX)

    def _bind(self) -> None:
        bind = self._translator.bind
        bind(self.setWindowTitle, "settings.title")
        bind(self.setAccessibleName, "settings.title")
        bind(self._list.setAccessibleName, "settings.groups")
        bind(self._pages.setAccessibleName, "settings.title")
        bind(self.meter.setAccessibleName, "meter.name")
        bind(self._close.setText, "settings.close")
        bind(self._close.setAccessibleName, "settings.close")

    def _connect(self, names: tuple[str, ...]) -> None:
        for name in names:
            row = self.rows[name]
            if name == KEY:
                row.editor.edited.connect(self._on_key_edited)
            else:
                row.editor.edited.connect(lambda value, key=name: self._on_edited(key, value))
        for editor in self._model_editors(names):
            editor.install_asked.connect(lambda model, asking=editor: self._on_install_asked(model, asking))
            editor.cancel_asked.connect(self._service.cancel_install)
        if "llm" not in names:
            return
        llm = self._llm
        llm.test_asked.connect(self._on_test_asked)
        llm.search_asked.connect(self._on_search_asked)
        llm.source_changed.connect(self._on_source_changed)

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
            elif isinstance(row.editor, LlmModelEditor):
                found.append(row.editor.models)
        return found

    def _later(self, call: Callable[[], None]) -> None:
        """Do `call` on the window's thread."""
        self._bridge.call(call)

    # --- what the user does -----------------------------------------------------------------------------

    def _on_edited(self, name: str, value: Any) -> None:
        self.rows[name].hush()
        self._service.change(name, value, lambda change: self._later(lambda: self._on_changed(change)))

    def _on_changed(self, change: Change) -> None:
        row = self.rows[change.name]
        if change.is_refused:
            row.tell("error", f"settings.error.{change.code}", change.message)
            if change.code != "model_missing" and not isinstance(row.editor, (TextEditor, LlmEditor)):
                # What was typed stays to be corrected, a model to be fetched; a choice goes back to what holds.
                row.editor.show_value(change.value)
            return
        if change.effect == "restart":
            row.tell("later", "settings.after_restart")
        else:
            row.hush()
            self.applied.emit(change.name, change.value)
        if change.name == "llm":
            self._show_key()

    def _on_key_edited(self, text: Any) -> None:
        self._service.save_key(str(text), lambda change: self._later(lambda: self._on_key_saved(change)))

    def _on_key_saved(self, change: Change) -> None:
        row = self.rows[KEY]
        self._show_key()
        if change.is_refused:
            row.tell("error", f"settings.error.{change.code}", change.message)
        else:
            row.tell("good", "settings.key.saved" if change.value else "settings.key.deleted")

    def _show_key(self) -> None:
        row = self.rows.get(KEY)
        if row is None:
            return
        row.editor.show_value("")
        if self._service.settings.llm_key_in_keyring:
            row.tell("good", "settings.key.present")
        else:
            row.hush()

    def _on_source_changed(self, source: str) -> None:
        for name in ENDPOINT_ONLY:
            self.rows[name].setVisible(source == "endpoint")
        self.rows["llm_model"].setVisible(source != "none")
        models = self.rows["llm_model"].editor
        if isinstance(models, LlmModelEditor):
            models.show_source(source)

    # --- the service's answers --------------------------------------------------------------------------

    @property
    def is_informed(self) -> bool:
        """Whether devices and models are known."""
        return self._devices is not None and self._models is not None

    def _show_devices(self, found: DeviceChoices) -> None:
        self._devices = found
        self._offer()

    def _show_models(self, found: tuple[ModelChoice, ...]) -> None:
        self._models = found
        self._offer()

    def _offer(self) -> None:
        """Offer what is known on the pages that are there."""
        if self._models is not None:
            for models in self._model_editors(self.rows):
                models.offer(self._models)
        found = self._devices
        if found is None or "input_device" not in self.rows:
            return
        for name, devices in (("input_device", found.inputs), ("output_device", found.outputs)):
            editor = self.rows[name].editor
            if isinstance(editor, DeviceEditor):
                editor.offer([device.name for device in devices])
        self._devices_note.setVisible(bool(found.message))
        self._devices_note.setText(found.message)

    def _find_models(self) -> None:
        self._service.find_models(lambda found: self._later(lambda: self._show_models(found)))

    def _on_install_asked(self, model: str, editor: ModelEditor) -> None:
        self._installing[model] = editor
        self.rows[editor.name].tell("caption", "settings.model.fetching")
        self._service.install(model, lambda step: self._later(lambda: self._on_step(step)))

    def _on_step(self, step: InstallStep) -> None:
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
            self._on_edited(editor.name, step.name)
        elif step.stage == "cancelled":
            row.hush()
        else:
            row.tell("error", "settings.model.failed", step.message)

    def _on_test_asked(self) -> None:
        self._llm.set_busy(True)
        self.rows["llm"].tell("caption", "settings.llm.testing")
        self._service.test_llm(lambda test: self._later(lambda: self._on_tested(test)))

    def _on_tested(self, test: LlmTest) -> None:
        self._llm.set_busy(False)
        row = self.rows["llm"]
        if test.is_ok:
            row.tell("good", "settings.llm.works", ", ".join(test.models[:3]) or test.url)
        else:
            language = "zh" if self._translator.language == "zh_CN" else "en"
            row.tell("error", "", (test.messages or {}).get(language, ""))

    def _on_search_asked(self) -> None:
        self._llm.set_busy(True)
        self.rows["llm"].tell("caption", "settings.llm.searching")
        self._service.find_servers(lambda found: self._later(lambda: self._on_found(found)))

    def _on_found(self, found: tuple[LlmTest, ...]) -> None:
        self._llm.set_busy(False)
        if found:
            self._llm.take_found(found)
            self.rows["llm"].tell("good", "settings.llm.works", found[0].url)
        else:
            self.rows["llm"].tell("caption", "settings.llm.nothing_found")

    def _on_meter(self) -> None:
        self.meter.show_level(self._bridge.level_db(), self._bridge.clock.monotonic_s())
