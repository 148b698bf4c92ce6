"""The guide of the first start: one question a page; everything counts at once, and can be changed in the settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QHideEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QProgressBar,
    QPushButton,
    QScrollArea,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from desktop.bridge import Bridge
from desktop.persona_service import PersonaService
from desktop.settings_service import SettingsService
from desktop.sound_server import KEY_SETTINGS
from desktop.ui import icons
from desktop.ui.form_parts import make_label
from desktop.ui.i18n import Translator
from desktop.ui.settings.form_dialog import FormDialog
from desktop.ui.settings.groups import KEY
from desktop.ui.setup.listen_button import ListenButton
from desktop.ui.setup.persona_pane import PersonaPane
from desktop.ui.setup.room_pane import RoomPane
from desktop.ui.theme import GRID_PX, Theme

STEPS: Mapping[str, tuple[str, ...]] = {
    "language": ("ui_language", "languages"),
    "sound": ("input_device", "output_device"),
    "room": ("sensitivity", "patience"),
    "hearing": ("whisper", KEY_SETTINGS["whisper"], "whisper_partial"),
    "voice": ("voice", KEY_SETTINGS["voice"], "speed", "volume"),
    "llm": ("llm", "llm_model", KEY, "llm_key_env"),
    "persona": (),
    "done": (),
}
"""The pages in order, with the settings each asks for."""

_PICTURE_PX = 6 * GRID_PX


class SetupGuide(FormDialog):
    """Leads through `STEPS`. `left` comes when it is closed."""

    left = Signal()

    def __init__(
        self,
        service: SettingsService,
        persona: PersonaService,
        bridge: Bridge,
        theme: Theme,
        translator: Translator,
        parent: QWidget | None,
    ) -> None:
        """Build the first page, the others when they are turned to."""
        super().__init__("setup", service, persona, bridge, theme, translator)
        self.setObjectName("setupGuide")
        self._names = list(STEPS)
        self._picture = QLabel()
        self._picture.setObjectName("setupPicture")
        self._picture.setFixedSize(icons.square(_PICTURE_PX))
        self._title = make_label("setupTitle", "headline")
        self._intro = make_label("setupIntro")
        self._count = make_label("setupCount", "caption")
        self._count.setWordWrap(False)
        self._progress = QProgressBar()
        self._progress.setObjectName("setupProgress")
        self._progress.setTextVisible(False)
        self._progress.setRange(0, len(STEPS))
        self._pages = QStackedWidget()
        self._pages.setObjectName("setupPages")
        for _ in STEPS:
            area = QScrollArea()
            area.setWidgetResizable(True)
            area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
            self._pages.addWidget(area)
        self.skip = self._button("setupSkipButton", self.hide)
        self.back = self._button("setupBackButton", lambda: self.turn(-1))
        self.next = self._button("setupNextButton", lambda: self.turn(1))
        self.next.setProperty("isPrimary", True)
        self._lay_out()
        translator.bind(self.setWindowTitle, "setup.title")
        translator.bind(self.setAccessibleName, "setup.title")
        translator.bind(self._pages.setAccessibleName, "setup.title")
        translator.bind(self._progress.setAccessibleName, "setup.progress")
        translator.changed.connect(self._show)
        theme.changed.connect(self._show_picture)
        self._show_picture()
        self.go_to(0)
        self.adopt(parent, 84 * GRID_PX, 76 * GRID_PX)

    # --- pages ------------------------------------------------------------------------------------------

    @property
    def step(self) -> str:
        """Name of the page in sight."""
        return self._names[self._pages.currentIndex()]

    def turn(self, by: int) -> None:
        """Turn to the next page or the one before; past the last one the guide ends."""
        index = self._pages.currentIndex() + by
        if index >= len(self._names):
            self.hide()
        else:
            self.go_to(max(0, index))

    def go_to(self, index: int) -> None:
        """Turn to a page."""
        area = self._pages.widget(index)
        name = self._names[index]
        if isinstance(area, QScrollArea):
            if area.widget() is None:
                area.setObjectName(f"setupScroll_{name}")
                area.setAccessibleName(self._translator.text(f"setup.{name}.title"))
                area.setWidget(self._make_page(name))
            area.verticalScrollBar().setValue(0)
        self._pages.setCurrentIndex(index)
        self.form.show_all()
        self._show()
        if name == "llm" and self.isVisible():
            self.form.search_servers()
        self.next.setFocus()

    def hideEvent(self, event: QHideEvent) -> None:
        """Remember that the guide was seen."""
        super().hideEvent(event)
        if not event.spontaneous():
            self._service.note_start()
            self.left.emit()

    def _show(self) -> None:
        text, index = self._translator.text, self._pages.currentIndex()
        is_last = index == len(self._names) - 1
        self._title.setText(text(f"setup.{self.step}.title"))
        self._intro.setText(text(f"setup.{self.step}.intro"))
        self._count.setText(text("setup.count", number=index + 1, all=len(self._names)))
        self._progress.setValue(index + 1)
        self.skip.setText(text("setup.skip"))
        self.skip.setVisible(not is_last)
        self.back.setText(text("setup.back"))
        self.back.setVisible(index > 0)
        self.next.setText(text("setup.finish" if is_last else "setup.next"))
        for button in (self.skip, self.back, self.next):
            button.setAccessibleName(button.text())

    def _show_picture(self) -> None:
        ratio = self.devicePixelRatioF()
        self._picture.setPixmap(icons.pixmap("mynah", self._theme.palette.ink, _PICTURE_PX, ratio))

    # --- building ---------------------------------------------------------------------------------------

    def _make_page(self, name: str) -> QWidget:
        page = QWidget()
        page.setObjectName(f"setupPage_{name}")
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, 0, GRID_PX)
        column.setSpacing(GRID_PX)
        if name == "room":
            column.addWidget(RoomPane(self._service, self._bridge, self._translator))
        for setting, row in zip(STEPS[name], self.form.add(STEPS[name], page), strict=True):
            column.addWidget(row)
            if setting == "input_device":
                column.addLayout(self.meter_row())
        if name in ("sound", "voice"):
            column.addWidget(ListenButton(self._service, self._bridge, self._translator))
        if name == "persona":
            column.addWidget(PersonaPane(self._persona, self._bridge, self._translator))
        if name == "done":
            column.addWidget(self._make_tips())
        column.addStretch(1)
        return page

    def _make_tips(self) -> QFrame:
        card = QFrame()
        card.setObjectName("setupTips")
        card.setProperty("isCard", True)
        column = QVBoxLayout(card)
        column.setContentsMargins(2 * GRID_PX, 2 * GRID_PX, 2 * GRID_PX, 2 * GRID_PX)
        column.setSpacing(2 * GRID_PX)
        for key in ("talk", "stop", "sleep", "type", "menu", "again"):
            tip = make_label(f"setupTip_{key}")
            self._translator.bind(tip.setText, f"setup.done.{key}")
            column.addWidget(tip)
        return card

    def _button(self, name: str, act: Callable[[], None]) -> QPushButton:
        made = QPushButton()
        made.setObjectName(name)
        made.clicked.connect(partial(_ignore_argument, act))
        return made

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        head.setSpacing(2 * GRID_PX)
        head.addWidget(self._picture, 0, Qt.AlignmentFlag.AlignTop)
        words = QVBoxLayout()
        words.setSpacing(GRID_PX)
        words.addWidget(self._title)
        words.addWidget(self._intro)
        head.addLayout(words, 1)
        head.addWidget(self._count, 0, Qt.AlignmentFlag.AlignTop)
        bottom = QHBoxLayout()
        bottom.setSpacing(GRID_PX)
        bottom.addWidget(self.skip)
        bottom.addStretch(1)
        bottom.addWidget(self.back)
        bottom.addWidget(self.next)
        column = QVBoxLayout(self)
        column.setContentsMargins(3 * GRID_PX, 3 * GRID_PX, 3 * GRID_PX, 2 * GRID_PX)
        column.setSpacing(2 * GRID_PX)
        column.addLayout(head)
        column.addWidget(self._progress)
        column.addWidget(self._pages, 1)
        column.addLayout(bottom)
        self.setMinimumSize(60 * GRID_PX, 52 * GRID_PX)


def _ignore_argument(act: Callable[[], None], _: bool = False) -> None:
    act()
