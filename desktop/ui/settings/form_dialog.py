"""What the settings and the guide have in common: a form, the microphone's meter, and looking up when shown."""

from __future__ import annotations

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QHideEvent, QKeyEvent, QShowEvent
from PySide6.QtWidgets import QDialog, QHBoxLayout, QLabel, QPushButton, QWidget

from desktop.bridge import Bridge
from desktop.persona_service import PersonaService
from desktop.settings_service import SettingsService
from desktop.ui.i18n import Translator
from desktop.ui.microphone import LevelMeter
from desktop.ui.panel_style import dress
from desktop.ui.screen_room import centre
from desktop.ui.settings.form import SettingsForm
from desktop.ui.theme import GRID_PX, Theme, font_scale

_METER_MS = 50


class FormDialog(QDialog):
    """`name` begins the object names; `applied` names what the window itself has to carry out."""

    applied = Signal(str, object)

    def __init__(
        self,
        name: str,
        service: SettingsService,
        persona: PersonaService,
        bridge: Bridge,
        theme: Theme,
        translator: Translator,
    ) -> None:
        """Build nothing in sight; the heir lays out, then calls `adopt`."""
        super().__init__()
        dress(self, theme)
        self._name = name
        self._is_placed = False
        self._service = service
        self._persona = persona
        self._bridge = bridge
        self._theme = theme
        self._translator = translator
        self.form = SettingsForm(service, bridge, translator, self)
        self.form.applied.connect(self.applied)
        self.meter = LevelMeter(theme)
        self.meter.setObjectName(f"{name}Meter")
        translator.bind(self.meter.setAccessibleName, "meter.name")
        self._timer = QTimer(self)
        self._timer.setInterval(_METER_MS)
        self._timer.timeout.connect(self._on_meter)

    def show_all(self) -> None:
        """Show the settings in force, also those changed elsewhere."""
        self.form.show_all()

    def showEvent(self, event: QShowEvent) -> None:
        """Look devices and models up anew."""
        super().showEvent(event)
        if not self._is_placed and not event.spontaneous():
            self._is_placed = True
            centre(self, self.parentWidget())
        self.show_all()
        self.form.look_up()
        self._timer.start()

    def hideEvent(self, event: QHideEvent) -> None:
        """Rest while hidden."""
        self._timer.stop()
        super().hideEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Let Enter end a field: it presses a button only where that has the keyboard."""
        is_enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if is_enter and not isinstance(self.focusWidget(), QPushButton):
            event.accept()
            return
        super().keyPressEvent(event)

    def adopt(self, parent: QWidget | None, width_px: int, height_px: int) -> None:
        """Take `parent`, and the size at letters of normal size, as far as the screen goes.

        Last of all: under a parent with a style sheet, every widget would be styled as it is added.
        """
        if parent is not None:
            self.setParent(parent, self.windowFlags())
        room = self.screen().availableGeometry()
        scale = font_scale()
        self.resize(min(round(width_px * scale), room.width()), min(round(height_px * scale), room.height()))

    def meter_row(self) -> QHBoxLayout:
        """Return the row that shows what the microphone hears."""
        row = QHBoxLayout()
        row.setSpacing(GRID_PX)
        words = QLabel()
        words.setObjectName(f"{self._name}MeterText")
        words.setProperty("role", "caption")
        self._translator.bind(words.setText, "settings.meter")
        row.addWidget(words)
        row.addWidget(self.meter)
        row.addWidget(self.form.devices_note, 1)
        row.addStretch(1)
        return row

    def _on_meter(self) -> None:
        self.meter.show_level(self._bridge.level_db(), self._bridge.clock.monotonic_s())
