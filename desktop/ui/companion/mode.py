"""Companion mode: window or companion, the tray, and where the companion stood last time."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

from desktop.bridge import Bridge
from desktop.flow_folders import write_atomically
from desktop.ui.companion.placement import Rect, read_place
from desktop.ui.companion.tray import SystemTray, Tray, TrayPort
from desktop.ui.companion.window import CompanionWindow
from desktop.ui.i18n import Translator
from orchestrator.contracts.errors import InputError
from orchestrator.contracts.views import NoticeView

if TYPE_CHECKING:
    from desktop.ui.main_window import MainWindow

log = logging.getLogger(__name__)

PLACE_FILE = "companion.json"
_METER_MS = 50
_MOST_BYTES = 10_000


class CompanionMode(QObject):
    """Shows the companion in place of `window`, and back. There is always a way back: the tray, or the taskbar."""

    def __init__(
        self, window: MainWindow, bridge: Bridge, translator: Translator, port: TrayPort | None = None
    ) -> None:
        """Begin in the window, without a tray icon before `show_tray`."""
        super().__init__(window)
        self._window = window
        self._bridge = bridge
        self._translator = translator
        self._companion: CompanionWindow | None = None
        self._place: Rect | None = None
        self._place_file: Path | None = None
        self._is_click_through = False
        self._are_subtitles_shown = True
        self._subtitle_share = 1.0
        self._subtitle_family: str | None = None
        self._is_high_contrast = False
        self._is_ending = False
        self.is_on = False
        self.tray = Tray(port if port is not None else SystemTray(), window.theme, translator, self)
        self.tray.window_asked.connect(self._on_window_asked)
        self.tray.mute_asked.connect(window.mute_microphone)
        self.tray.companion_asked.connect(self.turn)
        self.tray.click_through_asked.connect(self._on_click_through_asked)
        self.tray.quit_asked.connect(window.close)
        self.tray.menu.insertAction(self.tray.companion_action, window.menu.sleep)
        window.menu.companion.triggered.connect(lambda _=False: self.turn(not self.is_on))
        window.characters.shown.connect(lambda _pack: self._follow_pack())
        window.avatar.pack_changed.connect(self._follow_pack)
        window.closed.connect(self._on_closed)
        self._meter = QTimer(self)
        self._meter.setInterval(_METER_MS)
        self._meter.timeout.connect(self._on_meter)
        for signal in (QGuiApplication.instance().screenAdded, QGuiApplication.instance().screenRemoved):  # type: ignore[union-attr]
            signal.connect(self._on_screens_changed)

    @property
    def companion(self) -> CompanionWindow:
        """The companion; made on first use."""
        if self._companion is None:
            window = self._window
            made = CompanionWindow(
                self._bridge,
                window.avatar.pack,
                window.theme,
                self._translator,
                is_motion_reduced=window.is_motion_reduced,
            )
            made.setWindowIcon(window.windowIcon())
            made.set_click_through(self._is_click_through)
            # The same entry and key as in the window.
            made.menu.addAction(window.menu.sleep)
            made.addAction(window.menu.sleep)
            made.addAction(window.menu.companion)
            made.set_subtitles(is_shown=self._are_subtitles_shown, share=self._subtitle_share)
            made.subtitles.set_family(self._subtitle_family)
            made.subtitles.set_high_contrast(self._is_high_contrast)
            made.talk_changed.connect(window.hold_talk)
            made.back_asked.connect(lambda: self.turn(False))
            made.stop_asked.connect(lambda: window.stop("companion"))
            made.mute_asked.connect(window.mute_microphone)
            made.click_through_asked.connect(self._on_click_through_asked)
            made.place_changed.connect(self._keep_place)
            self._companion = made
        return self._companion

    def windows(self) -> tuple[QWidget, ...]:
        """Return the companion, once it was shown, and the menu of the tray: what is no part of the window."""
        return (self.tray.menu,) if self._companion is None else (self._companion, self.tray.menu)

    def show_tray(self) -> bool:
        """Show the icon in the tray; False where there is none."""
        shown = self.tray.show()
        self._meter.start()
        self._tell_tray()
        return shown

    def keep_in(self, place_file: Path) -> None:
        """Remember the companion's place in this file."""
        self._place_file = place_file
        try:
            if place_file.stat().st_size <= _MOST_BYTES:
                found = json.loads(place_file.read_text(encoding="utf-8"))
                self._place = read_place(found.get("place")) if isinstance(found, dict) else None
        except (OSError, ValueError, RecursionError):
            self._place = None

    def turn(self, is_on: bool) -> None:
        """Show the companion, or the window."""
        if is_on == self.is_on or self._is_ending:
            self._tell_tray()
            return
        self.is_on = is_on
        window = self._window
        if is_on:
            companion = self.companion
            companion.subtitles.copy_from(window.subtitles)
            companion.avatar.copy_from(window.avatar)
            companion.put(self._place)
            companion.show()
            self._meter.start()
            if self.tray.is_available:
                window.hide()
            else:
                # Without a tray a hidden window could not be found again.
                window.showMinimized()
                self._bridge.show(NoticeView(code="companion_no_tray", text="", severity="info"))
        else:
            self._keep_place()
            self.companion.hide()
            window.showNormal()
            window.activateWindow()
        self._tell_tray()

    def set_click_through(self, is_through: bool) -> None:
        """Let clicks go through the companion, or not."""
        self._is_click_through = is_through
        if self._companion is not None:
            self._companion.set_click_through(is_through)
        self._tell_tray()

    def set_subtitles(self, *, is_shown: bool, share: float) -> None:
        """Show or hide the words, in letters `share` times as large as usual."""
        self._are_subtitles_shown, self._subtitle_share = is_shown, share
        if self._companion is not None:
            self._companion.set_subtitles(is_shown=is_shown, share=share)

    def set_subtitle_style(self, *, family: str | None, is_high_contrast: bool) -> None:
        """Write the words in another font, or with more contrast."""
        self._subtitle_family, self._is_high_contrast = family, is_high_contrast
        if self._companion is not None:
            self._companion.subtitles.set_family(family)
            self._companion.subtitles.set_high_contrast(is_high_contrast)

    def set_character_name(self, name: str) -> None:
        """Call the character by `name`."""
        if self._companion is not None:
            self._companion.subtitles.set_character_name(name)

    def set_motion_reduced(self, is_reduced: bool) -> None:
        """Keep still what need not move."""
        if self._companion is not None:
            self._companion.set_motion_reduced(is_reduced)

    # --- inside ----------------------------------------------------------------------------------------

    def _on_window_asked(self) -> None:
        window = self._window
        if self.is_on:
            self.turn(False)
        elif window.isVisible() and not window.isMinimized():
            window.hide()
        else:
            window.showNormal()
            window.activateWindow()
        self._tell_tray()

    def _on_click_through_asked(self, is_through: bool) -> None:
        self.set_click_through(is_through)
        self._window.setting_changed.emit("companion_click_through", is_through)

    def _follow_pack(self) -> None:
        pack = self._window.avatar.pack
        if self._companion is not None and self._companion.avatar.pack is not pack:
            self._companion.avatar.set_pack(pack)

    def _on_meter(self) -> None:
        """Keep the signs of the microphone true while the window is not there to do it."""
        now_s = self._bridge.clock.monotonic_s()
        window = self._window
        if not window.isVisible() or window.isMinimized():
            window.meter(now_s)
        if self.is_on:
            self.companion.show_microphone(window.microphone.state, self._bridge.level_db(), now_s)
            if window.isActiveWindow() and window.isVisible() and not window.isMinimized():
                # It was opened from the taskbar: that is the way back where there is no tray.
                self.turn(False)
        self._tell_tray()

    def _tell_tray(self) -> None:
        window = self._window
        self.tray.show_state(
            microphone=window.microphone.state,
            is_window_shown=window.isVisible() and not window.isMinimized(),
            is_companion=self.is_on,
            is_click_through=self._is_click_through,
        )

    def _on_screens_changed(self, _screen: object) -> None:
        if self.is_on:
            self.companion.put(self.companion.place())

    def _keep_place(self) -> None:
        self._place = self.companion.place()
        if self._place_file is None:
            return
        place = self._place
        try:
            write_atomically(self._place_file, json.dumps({"place": [place.x, place.y, place.width, place.height]}))
        except InputError as error:
            log.warning("the companion's place was not kept: %s", error.code)

    def _on_closed(self) -> None:
        self._is_ending = True
        self._meter.stop()
        self.tray.hide()
        if self._companion is not None:
            if self.is_on:
                self._keep_place()
            self._companion.hide()
            self._companion.deleteLater()
            self._companion = None
            self.is_on = False
