"""The settings dialog: groups at the left, one page each; every change counts at once or says when it will."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QScrollArea,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from desktop.bridge import Bridge
from desktop.persona_service import PersonaService
from desktop.settings_service import SettingsService
from desktop.ui.i18n import Translator
from desktop.ui.settings.form_dialog import FormDialog
from desktop.ui.settings.groups import GROUPS
from desktop.ui.settings.leaves_note import LeavesNote
from desktop.ui.settings.row import SettingRow
from desktop.ui.setup.listen_button import ListenButton
from desktop.ui.setup.persona_pane import PersonaPane
from desktop.ui.setup.room_pane import RoomPane
from desktop.ui.theme import GRID_PX, Theme


class SettingsDialog(FormDialog):
    """Asks the service and shows what came of it."""

    def __init__(
        self,
        service: SettingsService,
        persona: PersonaService,
        bridge: Bridge,
        theme: Theme,
        translator: Translator,
        parent: QWidget | None,
    ) -> None:
        """Build the first page, the others when they are turned to; look things up when shown."""
        super().__init__("settings", service, persona, bridge, theme, translator)
        self.setObjectName("settingsDialog")
        self.form.applied.connect(self._tell_what_leaves)
        self._leaves: LeavesNote | None = None
        self._list = QListWidget()
        self._list.setObjectName("settingsGroups")
        self._list.setProperty("isMenu", True)
        self._list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._pages = QStackedWidget()
        self._pages.setObjectName("settingsPages")
        for group in GROUPS:
            self._add_place(group)
        self._close = QPushButton()
        self._close.setObjectName("settingsCloseButton")
        self._close.clicked.connect(self.hide)
        self._close.setAutoDefault(False)
        self._lay_out()
        self._bind()
        translator.changed.connect(self._fit_list)
        self._list.currentRowChanged.connect(self._on_row_changed)
        self._list.setCurrentRow(0)
        self.adopt(parent, 96 * GRID_PX, 72 * GRID_PX)

    # --- showing ----------------------------------------------------------------------------------------

    def show_group(self, group: str) -> None:
        """Turn to the page `group`."""
        self._list.setCurrentRow(list(GROUPS).index(group))

    @property
    def rows(self) -> dict[str, SettingRow]:
        """The rows of the pages that were turned to."""
        return self.form.rows

    @property
    def is_informed(self) -> bool:
        """Whether devices and models are known."""
        return self.form.is_informed

    def show_all(self) -> None:
        """Show the settings in force, also those changed elsewhere."""
        super().show_all()
        self._tell_what_leaves()

    def showEvent(self, event: QShowEvent) -> None:
        """Give the list of pages its width: only now is the style known."""
        super().showEvent(event)
        self._fit_list()

    def _fit_list(self) -> None:
        self._list.setFixedWidth(max(20 * GRID_PX, self._list.sizeHintForColumn(0) + 3 * GRID_PX))

    # --- building ---------------------------------------------------------------------------------------

    def _add_place(self, group: str) -> None:
        area = QScrollArea()
        area.setObjectName(f"settingsScroll_{group}")
        area.setWidgetResizable(True)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        self._translator.bind(area.setAccessibleName, f"settings.group.{group}")
        self._pages.addWidget(area)
        # Made here and not by Qt: the wrapper of an item that Qt made is not told when its list ends.
        item = QListWidgetItem("", self._list)
        self._translator.bind(item.setText, f"settings.group.{group}")

    def _on_row_changed(self, index: int) -> None:
        group = list(GROUPS)[index]
        area = self._pages.widget(index)
        if isinstance(area, QScrollArea) and area.widget() is None:
            area.setWidget(self._make_page(group, GROUPS[group]))
        self._pages.setCurrentIndex(index)

    def _make_page(self, group: str, names: tuple[str, ...]) -> QWidget:
        page = QWidget()
        page.setObjectName(f"settingsPage_{group}")
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, GRID_PX, GRID_PX)
        title = QLabel()
        title.setObjectName(f"settingsTitle_{group}")
        title.setProperty("role", "title")
        self._translator.bind(title.setText, f"settings.group.{group}")
        column.addWidget(title)
        if group in ("privacy", "llm", "numbers", "character"):
            column.addWidget(self._note(f"settings.group.{group}.note", f"settingsNote_{group}"))
        for name, row in zip(names, self.form.add(names, page), strict=True):
            column.addWidget(row)
            if name == "input_device":
                column.addLayout(self.meter_row())
        for extra in self._extras(group):
            column.addWidget(extra)
        column.addStretch(1)
        return page

    def _extras(self, group: str) -> list[QWidget]:
        """Return what a page has beside settings."""
        match group:
            case "sound":
                return [
                    ListenButton(self._service, self._bridge, self._translator),
                    RoomPane(self._service, self._bridge, self._translator),
                ]
            case "voice":
                return [ListenButton(self._service, self._bridge, self._translator)]
            case "privacy":
                self._leaves = LeavesNote(self._service.settings, self._translator)
                return [self._leaves]
            case "character":
                return [PersonaPane(self._persona, self._bridge, self._translator)]
            case _:
                return []

    def _note(self, key: str, name: str) -> QLabel:
        made = QLabel()
        made.setObjectName(name)
        made.setProperty("role", "caption")
        made.setWordWrap(True)
        self._translator.bind(made.setText, key)
        return made

    def _lay_out(self) -> None:
        middle = QHBoxLayout()
        middle.setSpacing(2 * GRID_PX)
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

    def _bind(self) -> None:
        bind = self._translator.bind
        bind(self.setWindowTitle, "settings.title")
        bind(self.setAccessibleName, "settings.title")
        bind(self._list.setAccessibleName, "settings.groups")
        bind(self._pages.setAccessibleName, "settings.title")
        bind(self._close.setText, "settings.close")
        bind(self._close.setAccessibleName, "settings.close")

    def _tell_what_leaves(self) -> None:
        if self._leaves is not None:
            self._leaves.tell_of(self._service.settings)
