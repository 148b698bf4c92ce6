"""The check of the room as a person sees it: three short steps, a result, and one button to take it over."""

from __future__ import annotations

from PySide6.QtCore import QTimer
from PySide6.QtGui import QHideEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QProgressBar, QPushButton, QVBoxLayout

from desktop.bridge import Bridge
from desktop.room_check import QUIET_S, SPEAK_S, VOICE_LIMIT_S, RoomCheck, RoomStep
from desktop.settings_service import Change, SettingsService
from desktop.ui.i18n import Translator
from desktop.ui.microphone import LevelMeter
from desktop.ui.theme import GRID_PX, Theme

_TICK_MS = 50
_LIMITS_S = {RoomStep.QUIET: QUIET_S, RoomStep.VOICE: VOICE_LIMIT_S, RoomStep.SPEAK: SPEAK_S}


class RoomPane(QFrame):
    """Runs a `RoomCheck` on the microphone's level. While it runs, nothing that is said is answered."""

    def __init__(self, service: SettingsService, bridge: Bridge, theme: Theme, translator: Translator) -> None:
        """Begin idle."""
        super().__init__()
        self.setObjectName("roomPane")
        self.setProperty("isCard", True)
        self._service = service
        self._bridge = bridge
        self._translator = translator
        self.check = RoomCheck()
        self._is_resting = False
        self.meter = LevelMeter(theme)
        self.meter.setObjectName("roomMeter")
        self.words = QLabel()
        self.words.setObjectName("roomWords")
        self.words.setWordWrap(True)
        self.numbers = QLabel()
        self.numbers.setObjectName("roomNumbers")
        self.numbers.setProperty("role", "caption")
        self.numbers.setWordWrap(True)
        self.progress = QProgressBar()
        self.progress.setObjectName("roomProgress")
        self.progress.setTextVisible(False)
        self.progress.setRange(0, 1000)
        self.start = self._button("roomStartButton")
        self.take = self._button("roomTakeButton")
        self._lay_out()
        translator.bind(self.meter.setAccessibleName, "meter.name")
        translator.bind(self.progress.setAccessibleName, "setup.room.progress")
        translator.changed.connect(self._show)
        self.start.clicked.connect(self._on_start_clicked)
        self.take.clicked.connect(self._on_take_clicked)
        self._timer = QTimer(self)
        self._timer.setInterval(_TICK_MS)
        self._timer.timeout.connect(self.tick)
        self._show()

    def tick(self) -> None:
        """Take the level of this moment."""
        bridge, door = self._bridge, self._service.door
        now_s, level_db = bridge.clock.monotonic_s(), bridge.level_db()
        self.meter.show_level(level_db, now_s)
        before = self.check.step
        step = self.check.feed(now_s, level_db, is_quiet=door is None or door.is_quiet())
        if step is not before:
            if step is RoomStep.VOICE:
                self._service.say_sample(lambda _: None)
            self._show()
        if self.check.is_running:
            limit_s = _LIMITS_S[step]
            self.progress.setValue(round(1000 * (1 - min(1.0, self.check.left_s(now_s) / limit_s))))
        else:
            self._end()

    def hideEvent(self, event: QHideEvent) -> None:
        """Give up what nobody sees."""
        if self.check.is_running:
            self.check.cancel()
            self._end()
            self._show()
        super().hideEvent(event)

    def _end(self) -> None:
        self._timer.stop()
        self.meter.show_level(None, self._bridge.clock.monotonic_s())
        if self._is_resting:
            self._is_resting = False
            door = self._service.door
            if door is not None:
                door.rest_ears(False)

    def _on_start_clicked(self) -> None:
        if self.check.is_running:
            self.check.cancel()
            self._end()
            self._show()
            return
        door = self._service.door
        if door is None:
            self.words.setText(self._translator.text("setup.not_running"))
            return
        door.rest_ears(True)
        self._is_resting = True
        self.check.start(self._bridge.clock.monotonic_s())
        self._timer.start()
        self._show()

    def _on_take_clicked(self) -> None:
        result = self.check.result
        if result is not None:
            self._service.change("sensitivity", result.sensitivity, self._on_changed)

    def _on_changed(self, change: Change) -> None:
        self._bridge.call(lambda: self._on_taken(change))

    def _on_taken(self, change: Change) -> None:
        self.take.setVisible(change.is_refused)
        if change.is_refused:
            self.numbers.setText(change.message)
        else:
            self.numbers.setText(self._translator.text("setup.room.taken"))

    def _show(self) -> None:
        text, step, result = self._translator.text, self.check.step, self.check.result
        self.words.setText(text(f"setup.room.{step.value}") if result is None else self._verdict())
        self.numbers.setVisible(result is not None)
        if result is not None:
            self.numbers.setText(
                text(
                    "setup.room.numbers",
                    noise=round(result.noise_dbfs),
                    echo=round(result.echo_db),
                    speech=round(result.speech_db),
                )
            )
        self.progress.setVisible(self.check.is_running)
        self.take.setVisible(result is not None)
        wanted = result.sensitivity if result is not None else self._service.settings.sensitivity
        self.take.setText(text("setup.room.take", name=text(f"settings.sensitivity.{wanted}")))
        is_again = step in (RoomStep.DONE, RoomStep.FAILED)
        key = "cancel" if self.check.is_running else "again" if is_again else "start"
        self.start.setText(text(f"setup.room.button.{key}"))
        for button in (self.start, self.take):
            button.setAccessibleName(button.text())

    def _verdict(self) -> str:
        result, text = self.check.result, self._translator.text
        assert result is not None
        return text(f"setup.room.because.{result.because}")

    def _button(self, name: str) -> QPushButton:
        made = QPushButton()
        made.setObjectName(name)
        made.setProperty("isSmall", True)
        made.setAutoDefault(False)
        return made

    def _lay_out(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(2 * GRID_PX, 2 * GRID_PX, 2 * GRID_PX, 2 * GRID_PX)
        column.setSpacing(GRID_PX)
        top = QHBoxLayout()
        top.setSpacing(GRID_PX)
        top.addWidget(self.words, 1)
        top.addWidget(self.meter)
        column.addLayout(top)
        column.addWidget(self.progress)
        column.addWidget(self.numbers)
        row = QHBoxLayout()
        row.setSpacing(GRID_PX)
        row.addWidget(self.start)
        row.addWidget(self.take)
        row.addStretch(1)
        column.addLayout(row)
