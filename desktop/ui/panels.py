"""The panels around the character: made on first use, opened by menu and key."""

from __future__ import annotations

import logging
from typing import Any

from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QDockWidget

from desktop import paths
from desktop.bridge import Bridge
from desktop.event_view import EventInbox
from desktop.flow_folders import FlowFolders
from desktop.history_service import HistoryService
from desktop.persona_service import PersonaService
from desktop.prompt_record import PromptRecord
from desktop.settings import Settings
from desktop.settings_service import Change, SettingsService
from desktop.sound_server import KEY_SETTINGS, parse_server
from desktop.ui.history.panel import HistoryPanel
from desktop.ui.inspector.panel import InspectorPanel
from desktop.ui.main_window import MainWindow
from desktop.ui.screen_room import widen
from desktop.ui.settings.dialog import SettingsDialog
from desktop.ui.setup.guide import SetupGuide
from desktop.ui.sleep_switch import SleepSwitch
from desktop.ui.theme import GRID_PX, TYPE
from orchestrator.contracts.views import NoticeView

_SUBTITLE_PX_PER_PT = TYPE.subtitle_px / 18
"""The window is drawn for 18 pt, whatever the resolution the screen claims."""

_DOCK_PX = 70 * GRID_PX

_LANGUAGES = {"auto": "system", "zh": "zh_CN"}
_SETTING_OF = {
    "language": "ui_language",
    "theme": "theme",
    "reduced_motion": "reduced_motion",
    "avatar": "avatar",
    "companion_click_through": "companion_click_through",
}
_VALUE_OF = {"language": {"system": "auto", "zh_CN": "zh"}, "theme": {"system": "auto"}}


def apply_look(window: MainWindow, settings: Settings, name: str) -> None:
    """Bring the setting `name` into the window; nothing happens if it is not one the window carries out."""
    match name:
        case "ui_language":
            window.set_language(_LANGUAGES.get(settings.ui_language, settings.ui_language))
        case "theme":
            window.set_theme("system" if settings.theme == "auto" else settings.theme)
        case "reduced_motion":
            window.set_reduced_motion(settings.reduced_motion)
        case "always_on_top":
            window.set_always_on_top(settings.always_on_top)
        case "subtitles" | "subtitle_size_pt":
            size_px = round(settings.subtitle_size_pt * _SUBTITLE_PX_PER_PT)
            window.set_subtitles(is_shown=settings.subtitles, size_px=size_px)
        case "subtitle_font" | "subtitle_contrast":
            is_high = settings.subtitle_contrast == "high"
            window.set_subtitle_style(family=settings.subtitle_font, is_high_contrast=is_high)
        case "avatar":
            window.characters.show(settings.avatar)
        case "companion_click_through":
            window.companion.set_click_through(settings.companion_click_through)
        case "global_talk_key" | "global_stop_key":
            window.global_keys_changed.emit(settings.global_talk_key, settings.global_stop_key)
        case "log_level":
            logging.getLogger().setLevel(settings.log_level.upper())


def keep_choice(service: SettingsService, key: str, value: object) -> Change | None:
    """Save what was chosen in the window's menu; None for what is not kept."""
    name = _SETTING_OF.get(key)
    if name is None:
        return None
    return service.change_now(name, _VALUE_OF.get(key, {}).get(str(value), value))


class Panels(QObject):
    """Owns the panels of one window."""

    def __init__(
        self,
        window: MainWindow,
        bridge: Bridge,
        service: SettingsService,
        inbox: EventInbox,
        prompts: PromptRecord,
        conversations: HistoryService,
        folders: FlowFolders | None = None,
    ) -> None:
        """Add the entries to the menu of `window`; the panels themselves are made when they are asked for.

        `folders` hold the persona; by default it is in the data folder.
        """
        super().__init__(window)
        self._window = window
        self._bridge = bridge
        self._service = service
        self._settings: SettingsDialog | None = None
        self._inbox = inbox
        self._prompts = prompts
        self._inspector: InspectorPanel | None = None
        self._conversations = conversations
        self._history: HistoryPanel | None = None
        self._character = ""
        self._guide: SetupGuide | None = None
        places = folders or FlowFolders(shipped=paths.flow_config(), user=service.data / "flows")
        self.persona = PersonaService(places, self._read_again)
        window.add_panel("setupAction", "menu.setup", "Ctrl+Shift+G").triggered.connect(self.open_guide)
        window.add_panel("settingsAction", "menu.settings", "Ctrl+,").triggered.connect(self._on_settings_asked)
        history = window.add_panel("historyAction", "menu.history", "Ctrl+H")
        history.triggered.connect(lambda: self._turn(self.history))
        window.addAction(window.menu.sleep)
        self._sleep = SleepSwitch(window.menu.sleep, bridge, window.translator, self)
        inspector = window.add_panel("inspectorAction", "menu.inspector", "Ctrl+I")
        inspector.triggered.connect(lambda: self._turn(self.inspector))
        for name in ("always_on_top", "subtitles", "subtitle_font", "avatar", "companion_click_through"):
            apply_look(window, service.settings, name)

    @property
    def settings(self) -> SettingsDialog:
        """The settings dialog."""
        if self._settings is None:
            window = self._window
            self._settings = SettingsDialog(
                self._service, self.persona, self._bridge, window.theme, window.translator, window
            )
            self._settings.form.follow(window.characters)
            self._settings.applied.connect(self._on_applied)
        return self._settings

    @property
    def guide(self) -> SetupGuide:
        """The guide of the first start."""
        if self._guide is None:
            window = self._window
            self._guide = SetupGuide(self._service, self.persona, self._bridge, window.theme, window.translator, window)
            self._guide.applied.connect(self._on_applied)
            self._guide.left.connect(self.refresh)
        return self._guide

    def open_guide(self) -> None:
        """Show the guide from its first page."""
        self.guide.go_to(0)
        self.guide.show()
        self.guide.activateWindow()

    def _read_again(self) -> None:
        """Let the program take a changed persona over. Any thread."""
        door = self._service.door
        if door is not None:
            door.read_again()

    @property
    def inspector(self) -> InspectorPanel:
        """The inspector, docked at the right."""
        if self._inspector is None:
            window = self._window
            self._inspector = InspectorPanel(self._inbox, self._prompts, self._bridge, window.theme, window.translator)
            self._dock(self._inspector)
        return self._inspector

    @property
    def history(self) -> HistoryPanel:
        """The history, docked at the right."""
        if self._history is None:
            window = self._window
            self._history = HistoryPanel(self._conversations, self._bridge, window.theme, window.translator)
            self._history.set_character_name(self._character)
            self._dock(self._history)
        return self._history

    def set_character_name(self, name: str) -> None:
        """Call the character by its persona's `name`."""
        self._character = name
        if self._history is not None:
            self._history.set_character_name(name)

    def _dock(self, dock: QDockWidget) -> None:
        """Put `dock` where it was at the last end, else behind the one that is at the right already."""
        dock.hide()
        if not self._window.restoreDockWidget(dock):
            right = Qt.DockWidgetArea.RightDockWidgetArea
            others = [
                one for one in self._window.findChildren(QDockWidget) if self._window.dockWidgetArea(one) == right
            ]
            self._window.addDockWidget(right, dock)
            if others:
                self._window.tabifyDockWidget(others[0], dock)
        dock.hide()

    def _turn(self, dock: QDockWidget) -> None:
        """Open the panel, or close it if it is in front."""
        if dock.isVisible() and not dock.visibleRegion().isEmpty():
            dock.hide()
            return
        is_first = not dock.isVisible() and self._make_room(dock)
        dock.show()
        if is_first:
            self._window.resizeDocks([dock], [_DOCK_PX], Qt.Orientation.Horizontal)
        if not dock.isFloating():
            dock.raise_()
        dock.setFocus()

    def _make_room(self, dock: QDockWidget) -> bool:
        """Widen the window by the panel, as far as the screen goes; False if it stands apart or behind another."""
        window, others = self._window, self._window.findChildren(QDockWidget)
        if dock.isFloating() or any(one.isVisible() for one in others):
            return False
        if not window.isMaximized():
            widen(window, _DOCK_PX)
        return True

    def refresh(self) -> None:
        """Show settings that were changed elsewhere."""
        if self._settings is not None:
            self._settings.show_all()
        if self._guide is not None:
            self._guide.form.show_all()

    def _on_settings_asked(self) -> None:
        self.settings.show()
        self.settings.activateWindow()

    def _on_applied(self, name: str, value: Any) -> None:
        apply_look(self._window, self._service.settings, name)
        if name in KEY_SETTINGS:
            self._tell_what_leaves(name, str(value))

    def _tell_what_leaves(self, name: str, value: str) -> None:
        """Say in the window where sound or words go from now on."""
        server = parse_server(name, value)
        code = f"{name}_leaves"
        if server is None or server.is_here:
            self._window.notices.withdraw(code)
        else:
            self._window.notices.raise_notice(NoticeView(code=code, text="", severity="info"), host=server.host)
