"""The tray: an adapter for the system's, which many desktops have and some have not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QAction, QIcon
from PySide6.QtWidgets import QMenu, QSystemTrayIcon

from desktop.ui import icons
from desktop.ui.i18n import Translator
from desktop.ui.theme import Theme, stylesheet


class TrayPort(Protocol):
    """What of a system's tray is used."""

    def is_available(self) -> bool:
        """Whether there is a tray at this moment."""
        ...

    def show(self, icon: QIcon, tip: str, menu: QMenu, on_click: Callable[[], None]) -> None:
        """Show the icon, or bring icon and words up to date."""
        ...

    def hide(self) -> None:
        """Take the icon away."""
        ...


class SystemTray:
    """Implements `TrayPort` with Qt."""

    def __init__(self) -> None:
        """Make nothing before it is shown."""
        self._icon: QSystemTrayIcon | None = None

    def is_available(self) -> bool:
        """Whether there is a tray at this moment."""
        return QSystemTrayIcon.isSystemTrayAvailable()

    def show(self, icon: QIcon, tip: str, menu: QMenu, on_click: Callable[[], None]) -> None:
        """Show the icon, or bring icon and words up to date."""
        if self._icon is None:
            self._icon = QSystemTrayIcon()
            self._icon.setContextMenu(menu)
            self._icon.activated.connect(
                lambda reason: on_click() if reason is QSystemTrayIcon.ActivationReason.Trigger else None
            )
        self._icon.setIcon(icon)
        self._icon.setToolTip(tip)
        self._icon.show()

    def hide(self) -> None:
        """Take the icon away."""
        if self._icon is not None:
            self._icon.hide()


class Tray(QObject):
    """Icon and menu of the program in the tray; the icon says whether the microphone is open."""

    window_asked = Signal()
    mute_asked = Signal(bool)
    companion_asked = Signal(bool)
    click_through_asked = Signal(bool)
    quit_asked = Signal()

    def __init__(self, port: TrayPort, theme: Theme, translator: Translator, parent: QObject | None = None) -> None:
        """Show nothing yet."""
        super().__init__(parent)
        self._port = port
        self._theme = theme
        self._translator = translator
        self._microphone = "closed"
        self._is_window_shown = True
        self._is_shown = False
        self.menu = QMenu()
        self.menu.setObjectName("trayMenu")
        self.window_action = self._add("trayWindowAction", "tray.hide")
        self.mute_action = self._add("trayMuteAction", "tray.mute", is_checkable=True)
        self.companion_action = self._add("trayCompanionAction", "tray.companion", is_checkable=True)
        self.click_through_action = self._add("trayClickThroughAction", "tray.click_through", is_checkable=True)
        self.menu.addSeparator()
        self.quit_action = self._add("trayQuitAction", "tray.quit")
        self.window_action.triggered.connect(lambda _=False: self.window_asked.emit())
        self.mute_action.triggered.connect(self.mute_asked)
        self.companion_action.triggered.connect(self.companion_asked)
        self.click_through_action.triggered.connect(self.click_through_asked)
        self.quit_action.triggered.connect(lambda _=False: self.quit_asked.emit())
        translator.changed.connect(self._refresh)
        theme.changed.connect(self._refresh)

    @property
    def is_available(self) -> bool:
        """Whether the desktop has a tray."""
        return self._port.is_available()

    def show(self) -> bool:
        """Show the icon; False without a tray."""
        self._is_shown = self._port.is_available()
        self._refresh()
        return self._is_shown

    def hide(self) -> None:
        """Take the icon away."""
        self._is_shown = False
        self._port.hide()

    def show_state(self, *, microphone: str, is_window_shown: bool, is_companion: bool, is_click_through: bool) -> None:
        """Say what is so now: microphone is open, muted, closed or missing."""
        self.mute_action.setChecked(microphone == "muted")
        self.mute_action.setEnabled(microphone != "missing")
        self.companion_action.setChecked(is_companion)
        self.click_through_action.setChecked(is_click_through)
        now = microphone, is_window_shown
        if now != (self._microphone, self._is_window_shown):
            self._microphone, self._is_window_shown = now
            self._refresh()

    def _add(self, name: str, key: str, *, is_checkable: bool = False) -> QAction:
        made = QAction(self.menu)
        made.setObjectName(name)
        made.setCheckable(is_checkable)
        self._translator.bind(made.setText, key)
        self.menu.addAction(made)
        return made

    def _refresh(self) -> None:
        text = self._translator.text
        # The menu hangs from the tray and not from the window, whose style it has all the same.
        self.menu.setStyleSheet(stylesheet(self._theme.palette))
        self.window_action.setText(text("tray.hide" if self._is_window_shown else "tray.show"))
        if not self._is_shown:
            return
        is_open = self._microphone == "open"
        palette = self._theme.palette
        icon = icons.icon("mic" if is_open else "mic_off", palette.good if is_open else palette.outline, size_px=24)
        words = text("tray.tip", name=text("tray.name"), microphone=text(f"microphone.{self._microphone}"))
        self._port.show(icon, words, self.menu, self.window_asked.emit)
