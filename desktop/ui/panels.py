"""The panels around the character: made on first use, opened by menu and key."""

from __future__ import annotations

import logging
from typing import Any

from PySide6.QtCore import QObject

from desktop.bridge import Bridge
from desktop.settings import Settings
from desktop.settings_service import Change, SettingsService
from desktop.ui.main_window import MainWindow
from desktop.ui.settings.dialog import SettingsDialog
from desktop.ui.theme import TYPE

_SUBTITLE_PX_PER_PT = TYPE.subtitle_px / 18
"""The window is drawn for 18 pt, whatever the resolution the screen claims."""

_LANGUAGES = {"auto": "system", "zh": "zh_CN"}
_SETTING_OF = {"language": "ui_language", "theme": "theme", "reduced_motion": "reduced_motion"}
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

    def __init__(self, window: MainWindow, bridge: Bridge, service: SettingsService) -> None:
        """Add the entries to the menu of `window`; the panels themselves are made when they are asked for."""
        super().__init__(window)
        self._window = window
        self._bridge = bridge
        self._service = service
        self._settings: SettingsDialog | None = None
        window.add_panel("settingsAction", "menu.settings", "Ctrl+,").triggered.connect(self._on_settings_asked)
        for name in ("always_on_top", "subtitles"):
            apply_look(window, service.settings, name)

    @property
    def settings(self) -> SettingsDialog:
        """The settings dialog."""
        if self._settings is None:
            window = self._window
            self._settings = SettingsDialog(self._service, self._bridge, window.theme, window.translator, window)
            self._settings.applied.connect(self._on_applied)
        return self._settings

    def refresh(self) -> None:
        """Show settings that were changed elsewhere."""
        if self._settings is not None:
            self._settings.show_all()

    def _on_settings_asked(self) -> None:
        self.settings.show()
        self.settings.activateWindow()

    def _on_applied(self, name: str, value: Any) -> None:
        apply_look(self._window, self._service.settings, name)
