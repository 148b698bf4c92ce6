"""The check of the room as a person sees it: what to do, how far it is, what was found, one button to take it over."""

from __future__ import annotations

from PySide6.QtGui import QHideEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QProgressBar, QVBoxLayout

from desktop.bridge import Bridge
from desktop.room_measurement import RoomAdvice, RoomProgress
from desktop.settings_service import Change, SettingsService
from desktop.ui.form_parts import make_label, make_small_button
from desktop.ui.i18n import Translator
from desktop.ui.theme import GRID_PX
from orchestrator.contracts.commands import Stop

_RUNNING = ("preparing", "quiet", "talking", "judging")
_SURE = ("quiet", "talking")
"""Stages whose length is known."""


class RoomPane(QFrame):
    """Runs the measure of `mynah doctor --room`. While it runs, nothing that is said is answered."""

    def __init__(self, service: SettingsService, bridge: Bridge, translator: Translator) -> None:
        """Begin idle."""
        super().__init__()
        self.setObjectName("roomPane")
        self.setProperty("isCard", True)
        self._service = service
        self._bridge = bridge
        self._translator = translator
        self._now = RoomProgress(stage="idle")
        self._note: str | None = None
        self._awaited: set[str] = set()
        self._refused = ""
        self._is_resting = False
        self.words = make_label("roomWords")
        self.findings = make_label("roomFindings", "caption")
        self.advice = make_label("roomAdvice", "name")
        self.progress = QProgressBar()
        self.progress.setObjectName("roomProgress")
        self.progress.setTextVisible(False)
        self.start = make_small_button("roomStartButton")
        self.take = make_small_button("roomTakeButton")
        self.take.setProperty("isPrimary", True)
        self._lay_out()
        translator.bind(self.progress.setAccessibleName, "setup.room.progress")
        translator.changed.connect(self._show)
        self.start.clicked.connect(lambda _=False: self._on_start_clicked())
        self.take.clicked.connect(lambda _=False: self._on_take_clicked())
        self._show()

    @property
    def is_running(self) -> bool:
        """Whether a room is being measured."""
        return self._now.stage in _RUNNING

    def show_progress(self, now: RoomProgress) -> None:
        """Show how far it is, or what was found."""
        if now.is_over:
            self._rest(False)
        if now.stage == "cancelled":
            now = RoomProgress(stage="idle")
        is_other = now.stage != self._now.stage
        self._now = now
        if is_other:
            self._show()
        self.progress.setRange(0, 1000 if now.stage in _SURE else 0)
        if now.stage in _SURE:
            self.progress.setValue(round(1000 * now.share))

    def hideEvent(self, event: QHideEvent) -> None:
        """Give up what nobody sees."""
        if self.is_running and not event.spontaneous():
            self._service.room.cancel()
        super().hideEvent(event)

    def _rest(self, is_resting: bool) -> None:
        if self._is_resting == is_resting:
            return
        self._is_resting = is_resting
        door = self._service.door
        if door is not None:
            door.rest_ears(is_resting)

    # --- what the user does -----------------------------------------------------------------------------

    def _on_start_clicked(self) -> None:
        if self.is_running:
            self._service.room.cancel()
            return
        self._note = "setup.not_running" if self._service.is_loading else None
        if self._note is None:
            door = self._service.door
            if door is not None and not door.is_quiet():
                # What the character is saying would be measured, too.
                self._bridge.stop_now()
                self._bridge.submit(Stop(by="button"))
            if self._service.room.start(self._on_progress):
                self._rest(True)
                self._now = RoomProgress(stage="preparing")
                self.progress.setRange(0, 0)
            else:
                self._note = "setup.room.busy"
        self._show()

    def _on_progress(self, now: RoomProgress) -> None:
        self._bridge.call(lambda: self.show_progress(now))

    def _on_take_clicked(self) -> None:
        advice = self._now.advice
        if advice is None:
            return
        changes = advice.changes(self._service.settings)
        self._awaited, self._refused = set(changes), ""
        self.take.setEnabled(False)
        for name, value in changes.items():
            self._service.change(name, value, self._on_changed)

    def _on_changed(self, change: Change) -> None:
        self._bridge.call(lambda: self._on_taken(change))

    def _on_taken(self, change: Change) -> None:
        self._awaited.discard(change.name)
        if change.is_refused:
            self._refused = change.message
        if not self._awaited:
            self.take.setEnabled(True)
            self._show()
            if self._refused:
                self.advice.setText(self._refused)
            else:
                self.advice.setText(self._translator.text("setup.room.taken"))
                self.advice.show()

    # --- showing ----------------------------------------------------------------------------------------

    def _show(self) -> None:
        text, now, advice = self._translator.text, self._now, self._now.advice
        if self._note is not None:
            words = text(self._note)
        elif now.stage == "failed":
            words = self._failure()
        elif advice is not None:
            words = text(f"setup.room.because.{advice.because}")
        else:
            words = text(f"setup.room.{now.stage}")
        self.words.setText(words)
        language = "zh" if self._translator.language == "zh_CN" else "en"
        lines = []
        for is_well, part, found, tip in now.findings.get(language, ()):
            lines.append(text("setup.room.well" if is_well else "setup.room.careful", part=part, found=found))
            if tip:
                lines.append(text("setup.room.tip", tip=tip))
        self.findings.setText("\n".join(lines))
        self.findings.setVisible(bool(lines))
        changes = advice.changes(self._service.settings) if advice is not None else {}
        self.advice.setVisible(advice is not None)
        if advice is not None:
            self.advice.setText(self._suggestion(advice, changes) if changes else text("setup.room.fits"))
        self.take.setVisible(bool(changes))
        self.take.setText(text("setup.room.take"))
        self.progress.setVisible(self.is_running)
        is_again = now.stage in ("done", "failed")
        key = "cancel" if self.is_running else "again" if is_again else "start"
        self.start.setText(text(f"setup.room.button.{key}"))
        for button in (self.start, self.take):
            button.setAccessibleName(button.text())

    def _failure(self) -> str:
        key = f"setup.room.error.{self._now.code}"
        if self._translator.has(key):
            return self._translator.text(key)
        return self._translator.text("setup.room.failed", why=self._now.message)

    def _suggestion(self, advice: RoomAdvice, changes: dict[str, object]) -> str:
        text = self._translator.text
        shown = {
            "sensitivity": text(f"settings.sensitivity.{advice.sensitivity}"),
            "extra_output_delay_ms": text("setup.room.ms", ms=round(advice.extra_output_delay_ms)),
        }
        parts = [text("setup.room.change", name=text(f"settings.{name}"), value=shown[name]) for name in changes]
        return text("setup.room.suggestion", changes=text("setup.room.and").join(parts))

    # --- building ---------------------------------------------------------------------------------------

    def _lay_out(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(2 * GRID_PX, 2 * GRID_PX, 2 * GRID_PX, 2 * GRID_PX)
        column.setSpacing(GRID_PX)
        for part in (self.words, self.progress, self.findings, self.advice):
            column.addWidget(part)
        row = QHBoxLayout()
        row.setSpacing(GRID_PX)
        row.addWidget(self.start)
        row.addWidget(self.take)
        row.addStretch(1)
        column.addLayout(row)
