"""The inspector: what happened and why, live or from an events file."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QDockWidget,
    QFileDialog,
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QPushButton,
    QScrollArea,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from desktop.bridge import Bridge
from desktop.event_view import CHATTER, EventFile, EventInbox, EventView, Record, read_events, write_events
from desktop.faults import Fault, fault_of
from desktop.prompt_record import PromptRecord
from desktop.ui.dock_title import DockTitle
from desktop.ui.i18n import Translator
from desktop.ui.inspector.tables import (
    ANSWER_COLUMNS,
    COMMAND_COLUMNS,
    OUTPUT_COLUMNS,
    SLOT_COLUMNS,
    InspectorTable,
    answer_rows,
    command_rows,
    output_rows,
    slot_rows,
)
from desktop.ui.inspector.timeline import Timeline
from desktop.ui.panel_style import dress
from desktop.ui.theme import GRID_PX, Theme
from orchestrator.contracts.errors import MynahError

_SEEN_MS = 200
_UNSEEN_MS = 1000
_AT_ONCE = 1000
"""Records taken in one go: about 10 ms."""


class InspectorPanel(QDockWidget):
    """Follows an inbox of records; a file is shown in its place until one returns to the live events."""

    def __init__(
        self, inbox: EventInbox, prompts: PromptRecord, bridge: Bridge, theme: Theme, translator: Translator
    ) -> None:
        """Begin live and empty."""
        super().__init__()
        self.setObjectName("inspectorPanel")
        dress(self, theme)
        self._title = DockTitle(self, "inspector", "dock", theme, translator)
        self.setTitleBarWidget(self._title)
        self._inbox = inbox
        self._prompts = prompts
        self._bridge = bridge
        self._translator = translator
        self.live = EventView()
        self.view = self.live
        self._file: EventFile | None = None
        self._shown: tuple[object, ...] = ()
        self._message: tuple[str, dict[str, object]] | None = None
        self.timeline = Timeline(theme, translator)
        self.details = QPlainTextEdit()
        self.answers = InspectorTable("inspectorAnswers", ANSWER_COLUMNS, translator)
        self.outputs = InspectorTable("inspectorOutputs", OUTPUT_COLUMNS, translator)
        self.slots = InspectorTable("inspectorSlots", SLOT_COLUMNS, translator)
        self.commands = InspectorTable("inspectorCommands", COMMAND_COLUMNS, translator)
        self.place = QLabel()
        self.prompt = QPlainTextEdit()
        self.status = QLabel()
        self.pause = self._button("inspectorPauseButton", "inspector.pause")
        self.pause.setCheckable(True)
        self.open = self._button("inspectorOpenButton", "inspector.open")
        self.back = self._button("inspectorLiveButton", "inspector.back")
        self.export = self._button("inspectorExportButton", "inspector.export")
        self.with_text = self._switch("inspectorTextSwitch", "inspector.with_text")
        self.with_chatter = self._switch("inspectorChatterSwitch", "inspector.chatter")
        self.tabs = QTabWidget()
        self._lay_out()
        self._bind()
        self._timer = QTimer(self)
        self._timer.setInterval(_UNSEEN_MS)
        self._timer.timeout.connect(self.refresh)
        self._timer.start()

    # --- records ----------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Take what came and show it, if anyone looks."""
        if not self.pause.isChecked():
            self.live.add(self._inbox.take(_AT_ONCE))
        if self.isVisible():
            self._show()

    def load(self, path: Path) -> None:
        """Read an events file on a thread of its own and show it."""
        self._say("inspector.reading", name=path.name)

        def read() -> None:
            try:
                found = read_events(path)
            except MynahError as error:
                fault = fault_of(error)
                self._bridge.call(lambda: self._say_fault(fault))
                return
            self._bridge.call(lambda: self._take_file(found))

        threading.Thread(target=read, name="inspector-file", daemon=True).start()

    def show_live(self) -> None:
        """Return to what happens now."""
        self._file = None
        self.view = self.live
        self._message = None
        self.timeline.follow()
        self._show()

    def save(self, path: Path) -> None:
        """Write the records shown for a bug report, on a thread of its own."""
        records = list(self.view.records)
        is_with_text = self.with_text.isChecked()

        def write() -> None:
            try:
                count = write_events(path, records, with_text=is_with_text)
            except MynahError as error:
                fault = fault_of(error)
                self._bridge.call(lambda: self._say_fault(fault))
                return
            key = "inspector.saved" if is_with_text else "inspector.saved_without_text"
            self._bridge.call(lambda: self._say(key, count=count, name=path.name))

        threading.Thread(target=write, name="inspector-export", daemon=True).start()

    def _take_file(self, found: EventFile) -> None:
        self._file = found
        self._message = None
        self.view = EventView()
        self.view.add(found.records)
        self.timeline.follow()
        self._show()

    # --- showing ----------------------------------------------------------------------------------------

    def showEvent(self, event: QShowEvent) -> None:
        """Look more often while someone looks."""
        super().showEvent(event)
        # What is wide scrolls in its own list; the panel itself only up and down.
        area, body = self.widget(), self._body
        area.setMinimumWidth(body.minimumSizeHint().width() + 2 * GRID_PX)
        self._timer.setInterval(_SEEN_MS)
        self.refresh()

    def hideEvent(self, event: QHideEvent) -> None:
        """Keep up, unseen."""
        super().hideEvent(event)
        self._timer.setInterval(_UNSEEN_MS)

    def _show(self) -> None:
        prompt = self._prompts.last
        tab = self.tabs.currentIndex()
        shown = (
            id(self.view),
            self.view.revision,
            tab,
            prompt.number if prompt is not None else 0,
            self.with_chatter.isChecked(),
            self._translator.language,
            self._message is None,
        )
        if shown == self._shown:
            return
        self._shown = shown
        painters: tuple[Callable[[], None], ...] = (
            self._show_timeline,
            self._show_answers,
            self._show_outputs,
            self._show_flow,
            self._show_prompt,
        )
        painters[tab]()
        self.back.setVisible(self._file is not None)
        self.pause.setVisible(self._file is None)
        self._show_status()

    def _show_timeline(self) -> None:
        self.timeline.show_view(self.view, frozenset() if self.with_chatter.isChecked() else CHATTER)

    def _show_answers(self) -> None:
        self.answers.show_rows(answer_rows(self.view, self._translator))

    def _show_outputs(self) -> None:
        self.outputs.show_rows(output_rows(self.view, self._translator))

    def _show_flow(self) -> None:
        text = self._translator.text
        flow = self.view.flow
        nothing = text("inspector.nothing")
        self.place.setText(
            text(
                "inspector.place",
                task=flow.active_task or nothing,
                step=flow.step or nothing,
                system=flow.system_flow or nothing,
                paused=", ".join(flow.paused) or nothing,
            )
        )
        self.slots.show_rows(slot_rows(self.view, self._translator))
        self.commands.show_rows(command_rows(self.view, self._translator))

    def _show_prompt(self) -> None:
        prompt = self._prompts.last if self._file is None else None
        if prompt is None:
            self.prompt.setPlainText("")
            return
        lines = [f"# {prompt.task}"]
        lines.extend(f"[{role}]\n{content}" for role, content in prompt.messages)
        self.prompt.setPlainText("\n\n".join(lines))

    def _show_status(self) -> None:
        text = self._translator.text
        if self._message is not None:
            key, values = self._message
            words = text(key, **values)
        elif self._file is not None:
            words = text("inspector.file", name=self._file.name, count=len(self.view.records), older=self._file.older)
        elif not self.view.records:
            words = text("inspector.empty")
        else:
            words = text("inspector.live", count=len(self.view.records), lost=self._inbox.lost)
        self.status.setText(words)
        self.status.setAccessibleName(words)

    def _say_fault(self, fault: Fault) -> None:
        self._say("inspector.failed", reason=self._translator.fault(fault.code, fault.message))

    def _say(self, key: str, **values: object) -> None:
        self._message = key, values
        self._show_status()

    # --- building ---------------------------------------------------------------------------------------

    def _button(self, name: str, key: str) -> QPushButton:
        made = QPushButton()
        made.setObjectName(name)
        made.setProperty("isSmall", True)
        self._translator.bind(made.setText, key)
        self._translator.bind(made.setAccessibleName, key)
        self._translator.bind(made.setToolTip, f"{key}.tip")
        return made

    def _switch(self, name: str, key: str) -> QCheckBox:
        made = QCheckBox()
        made.setObjectName(name)
        self._translator.bind(made.setText, key)
        self._translator.bind(made.setAccessibleName, key)
        self._translator.bind(made.setToolTip, f"{key}.tip")
        return made

    def _lay_out(self) -> None:
        body = self._body = QWidget()
        body.setObjectName("inspectorBody")
        column = QVBoxLayout(body)
        column.setContentsMargins(GRID_PX, GRID_PX, GRID_PX, GRID_PX)
        column.setSpacing(GRID_PX)
        bar = QHBoxLayout()
        bar.setSpacing(GRID_PX)
        for part in (self.pause, self.back, self.open, self.export):
            bar.addWidget(part)
        bar.addStretch(1)
        column.addLayout(bar)
        column.addWidget(self.with_text)
        self.status.setObjectName("inspectorStatus")
        self.status.setProperty("role", "caption")
        self.status.setWordWrap(True)
        column.addWidget(self.status)
        self.tabs.setObjectName("inspectorTabs")
        self.tabs.setUsesScrollButtons(False)
        self.tabs.tabBar().setObjectName("inspectorTabBar")
        self._translator.bind(self.tabs.tabBar().setAccessibleName, "inspector.title")
        for edit, name in ((self.details, "inspectorDetails"), (self.prompt, "inspectorPrompt")):
            edit.setObjectName(name)
            edit.setReadOnly(True)
        self.place.setObjectName("inspectorPlace")
        self.place.setWordWrap(True)
        self.place.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        for name, parts in (
            ("timeline", (self.timeline, self.with_chatter, self.details)),
            ("answers", (self.answers,)),
            ("outputs", (self.outputs,)),
            ("flow", (self.place, self.slots, self.commands)),
            ("prompt", (self.prompt,)),
        ):
            self._add_tab(name, parts)
        column.addWidget(self.tabs, 1)
        self.back.hide()
        area = QScrollArea()
        area.setObjectName("inspectorArea")
        area.setWidgetResizable(True)
        area.setMinimumHeight(24 * GRID_PX)
        area.setWidget(body)
        self._translator.bind(area.setAccessibleName, "inspector.title")
        self.setWidget(area)

    def _add_tab(self, name: str, parts: tuple[QWidget, ...]) -> None:
        page = QWidget()
        page.setObjectName(f"inspectorPage_{name}")
        column = QVBoxLayout(page)
        column.setContentsMargins(0, GRID_PX, 0, 0)
        for part in parts:
            column.addWidget(part)
        index = self.tabs.addTab(page, "")
        self._translator.bind(partial(self.tabs.setTabText, index), f"inspector.tab.{name}")

    def _bind(self) -> None:
        bind = self._translator.bind
        for setter in (
            self.setWindowTitle,
            self._title.show_title,
            self.setAccessibleName,
            self.tabs.setAccessibleName,
        ):
            bind(setter, "inspector.title")
        bind(self.details.setAccessibleName, "inspector.details")
        bind(self.details.setPlaceholderText, "inspector.details.hint")
        bind(self.prompt.setAccessibleName, "inspector.tab.prompt")
        bind(self.prompt.setPlaceholderText, "inspector.prompt.hint")
        bind(self.answers.setAccessibleName, "inspector.tab.answers")
        bind(self.outputs.setAccessibleName, "inspector.tab.outputs")
        bind(self.slots.setAccessibleName, "inspector.slots")
        bind(self.commands.setAccessibleName, "inspector.commands")
        self.timeline.event_chosen.connect(self._on_event_chosen)
        self.open.clicked.connect(self._on_open_clicked)
        self.back.clicked.connect(self._on_back_clicked)
        self.export.clicked.connect(self._on_export_clicked)
        self.tabs.currentChanged.connect(self._on_look_changed)
        self.with_chatter.toggled.connect(self._on_look_changed)
        self._translator.changed.connect(self._on_look_changed)

    # --- what the user does -----------------------------------------------------------------------------

    def _on_look_changed(self) -> None:
        self._show()

    def _on_event_chosen(self, record: Record) -> None:
        self.details.setPlainText(json.dumps(record, ensure_ascii=False, indent=2)[:20_000])

    def _on_back_clicked(self) -> None:
        self.show_live()

    def _on_open_clicked(self) -> None:
        text = self._translator.text
        chosen, _ = QFileDialog.getOpenFileName(self, text("inspector.open"), "", text("inspector.filter"))
        if chosen:
            self.load(Path(chosen))

    def _on_export_clicked(self) -> None:
        text = self._translator.text
        chosen, _ = QFileDialog.getSaveFileName(
            self, text("inspector.export"), "mynah-events.jsonl", text("inspector.filter")
        )
        if chosen:
            self.save(Path(chosen))
