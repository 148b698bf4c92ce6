"""The first screen: the character, its words, one clear state, and the controls."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from PySide6.QtCore import QEvent, QRect, Qt, Signal
from PySide6.QtGui import QAction, QCloseEvent, QFocusEvent, QGuiApplication, QHideEvent, QIcon, QKeyEvent, QShowEvent
from PySide6.QtWidgets import (
    QApplication,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QMainWindow,
    QPlainTextEdit,
    QSizePolicy,
    QTextEdit,
    QVBoxLayout,
    QWidget,
)

from desktop import paths
from desktop.bridge import Bridge
from desktop.ui import icons
from desktop.ui.avatar.in_window import AvatarInWindow
from desktop.ui.avatar.library import DEFAULT, FOLDER, AvatarLibrary
from desktop.ui.avatar.pack import AvatarPack
from desktop.ui.avatar.stats import PaintStats
from desktop.ui.avatar.widget import AvatarWidget
from desktop.ui.companion.mode import CompanionMode
from desktop.ui.companion.tray import TrayPort
from desktop.ui.controls import ControlBar, make_button
from desktop.ui.devices import DeviceSigns
from desktop.ui.dump import dump_widgets
from desktop.ui.flow_editor.in_window import FlowEditorInWindow
from desktop.ui.frames import StallStats, StallWatch
from desktop.ui.i18n import Translator, toolkit
from desktop.ui.menu import WindowMenu
from desktop.ui.microphone import MicrophoneSign
from desktop.ui.notices import NoticeBar
from desktop.ui.panel_style import dress_application
from desktop.ui.preferences import WindowSettings
from desktop.ui.stage_frames import StageFrames
from desktop.ui.state_line import StateLine
from desktop.ui.subtitles.widget import SubtitleWidget
from desktop.ui.theme import GRID_PX, TYPE, Theme, font_scale, install_font, px, set_font_scale, stylesheet
from orchestrator.contracts.commands import (
    Command,
    MuteMicrophone,
    MuteVoice,
    NewSession,
    PushToTalk,
    Quit,
    SendText,
    Stop,
)
from orchestrator.contracts.errors import InputError
from orchestrator.contracts.views import NoticeView, StateView

_METER_S = 1 / 20
_TEXT_WIDGETS = (QLineEdit, QTextEdit, QPlainTextEdit)


class _WordsPane(QWidget):
    """A pane whose height does not follow from its width: a wrapped notice must not push the stage."""

    def hasHeightForWidth(self) -> bool:
        """Deny what the layout would say of the wrapped text inside."""
        return False


class MainWindow(QMainWindow):
    """The window of the program; everything it knows comes from the bridge."""

    setting_changed = Signal(str, object)
    global_keys_changed = Signal(object, object)
    closed = Signal()

    def __init__(
        self,
        bridge: Bridge,
        settings: WindowSettings,
        pack: AvatarPack,
        library: AvatarLibrary,
        tray: TrayPort | None = None,
    ) -> None:
        """Build the widgets; nothing is loaded that takes time."""
        super().__init__()
        self.setObjectName("mainWindow")
        self._bridge = bridge
        self._is_motion_reduced = bool(settings.reduced_motion)
        self.theme = Theme(settings.theme, self)
        dress_application(self.theme)
        self.translator = Translator(settings.language, self)
        self._is_talk_key_down = False
        self._metered_at_s = 0.0
        self._persona_name: str | None = None
        reduced = self._is_motion_reduced
        self.avatar = AvatarWidget(bridge, pack, self.theme, is_motion_reduced=reduced)
        self.subtitles = SubtitleWidget(bridge, self.theme, self.translator, is_motion_reduced=reduced)
        self.state_line = StateLine(self.theme, self.translator)
        self.microphone = MicrophoneSign(self.theme, self.translator)
        self.notices = NoticeBar(self.theme, self.translator)
        self.controls = ControlBar(self.theme, self.translator)
        self._devices = DeviceSigns(bridge, self.microphone, self.notices, self.controls)
        self.menu_button = make_button("menuButton", is_icon=True)
        self.menu = WindowMenu(self, self.theme, self.translator, is_motion_reduced=reduced)
        self.characters = AvatarInWindow(
            self.menu.characters, bridge, self.translator, library, pack.folder.name or DEFAULT
        )
        self._app_name = QLabel()
        self._app_name.setObjectName("appName")
        self._frames = StageFrames(
            bridge, self.avatar, self.subtitles, self, on_frame=self._on_frame, longest_s=self._longest_wait_s
        )
        self.watch = StallWatch(bridge.clock, self)
        self._lay_out()
        self._connect()
        self.flow_editor = FlowEditorInWindow(self, bridge)
        self.companion = CompanionMode(self, bridge, self.translator, tray)
        self._apply_theme()
        self._apply_language()

    # --- for the composition root ----------------------------------------------------------------------

    def set_character_name(self, name: str) -> None:
        """Call the character by its persona's `name`."""
        self._persona_name = name
        self.subtitles.set_character_name(name)
        self.companion.set_character_name(name)
        self._apply_language()

    def set_language(self, language: str) -> None:
        """Switch all texts to `language`."""
        self.translator.choose(language)
        self._sync_menu()

    def set_theme(self, choice: str) -> None:
        """Switch to system, light or dark."""
        self.theme.choose(choice)
        self._sync_menu()

    def set_reduced_motion(self, is_reduced: bool) -> None:
        """Keep still what need not move."""
        self._is_motion_reduced = is_reduced
        self.avatar.set_motion_reduced(is_reduced)
        self.subtitles.set_motion_reduced(is_reduced)
        self.companion.set_motion_reduced(is_reduced)
        self._sync_menu()

    @property
    def is_motion_reduced(self) -> bool:
        """Whether what need not move keeps still."""
        return self._is_motion_reduced

    def set_subtitles(self, *, is_shown: bool, size_px: int) -> None:
        """Show or hide the words, in letters of `size_px`."""
        self.subtitles.setVisible(is_shown)
        self.subtitles.set_size(size_px)
        self.companion.set_subtitles(is_shown=is_shown, share=size_px / TYPE.subtitle_px)

    def set_subtitle_style(self, *, family: str | None, is_high_contrast: bool) -> None:
        """Write the words in another font, or with more contrast."""
        self.subtitles.set_family(family)
        self.subtitles.set_high_contrast(is_high_contrast)
        self.companion.set_subtitle_style(family=family, is_high_contrast=is_high_contrast)

    def set_always_on_top(self, is_on_top: bool) -> None:
        """Keep the window above others or not."""
        if bool(self.windowFlags() & Qt.WindowType.WindowStaysOnTopHint) == is_on_top:
            return
        was_visible = self.isVisible()
        self.setWindowFlag(Qt.WindowType.WindowStaysOnTopHint, is_on_top)
        if was_visible:
            # Another flag makes another window of the system, which begins hidden.
            self.show()

    def add_panel(self, name: str, key: str, shortcut: str) -> QAction:
        """Add the menu entry `name` of a panel with its key; it works all over the window."""
        action = self.menu.add_panel(name, key, shortcut, self.translator)
        self.addAction(action)
        return action

    def _sync_menu(self) -> None:
        self.menu.show_choices(self.translator.language, self.theme.choice, is_motion_reduced=self._is_motion_reduced)

    def paint_stats(self) -> PaintStats:
        """Return what painting the character costs."""
        return self.avatar.paint_stats()

    def gui_stalls(self) -> StallStats:
        """Return how often this thread did not answer for more than 50 ms."""
        return self.watch.stats()

    def dump(self) -> dict[str, Any]:
        """Return `widgets` and `state` for the control channel. GUI thread."""
        return {"widgets": dump_widgets(self, *self.companion.windows()), "state": self.state()}

    def state(self) -> dict[str, Any]:
        """Return what the window shows now, in plain values."""
        now_s = self._bridge.clock.monotonic_s()
        mouth, paint, stalls = self.avatar.mouth(now_s), self.paint_stats(), self.gui_stalls()
        return {
            "state": self.state_line.state,
            "stateText": self.state_line.text(),
            "language": self.translator.language,
            "theme": self.theme.choice,
            "microphone": self.microphone.state,
            "notices": self.notices.codes(),
            "noticeText": self.notices.text(),
            "subtitles": self.subtitles.lines(),
            "avatar": {
                "state": self.avatar.state,
                "expression": self.avatar.expression,
                "mouth": mouth.shape,
                "opening": round(mouth.opening, 3),
            },
            "paint": {"frames": paint.frames, "mean_ms": paint.mean_ms, "p95_ms": paint.p95_ms, "fps": paint.fps},
            "companion": self.companion.is_on,
            "stalls": stalls.plain(),
            "loadingStalls": self.watch.loading.plain(),
        }

    # --- building --------------------------------------------------------------------------------------

    def _lay_out(self) -> None:
        top = QHBoxLayout()
        top.setSpacing(GRID_PX)
        top.addWidget(self._app_name)
        top.addStretch(1)
        top.addWidget(self.microphone)
        top.addWidget(self.menu_button)
        self.menu_button.setProperty("isFlat", True)
        self.menu_button.setMenu(self.menu)
        middle = QHBoxLayout()
        middle.addStretch(1)
        middle.addWidget(self.state_line)
        middle.addStretch(1)
        pane = QWidget()
        pane.setObjectName("centralPane")
        column = QVBoxLayout(pane)
        column.setContentsMargins(2 * GRID_PX, GRID_PX, 2 * GRID_PX, 2 * GRID_PX)
        column.setSpacing(GRID_PX)
        column.addLayout(top)
        column.addWidget(self.avatar, 7)
        column.addLayout(middle)
        column.addWidget(self._make_words_pane(), 4)
        column.addWidget(self.controls)
        self.setCentralWidget(pane)
        pane.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        pane.setFocus()
        self.setMinimumHeight(px(52 * GRID_PX))
        self.resize(px(95 * GRID_PX), px(92 * GRID_PX))

    def _make_words_pane(self) -> QWidget:
        """Return subtitles and notices in one pane: a notice takes its room from the subtitles, the stage stays."""
        made = _WordsPane()
        made.setObjectName("wordsPane")
        made.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Ignored)
        made.setMinimumHeight(px(14 * GRID_PX))
        words = QVBoxLayout(made)
        words.setContentsMargins(0, 0, 0, 0)
        words.setSpacing(GRID_PX)
        words.addWidget(self.subtitles, 1)
        words.addWidget(self.notices)
        return made

    def _connect(self) -> None:
        bridge = self._bridge
        bridge.state_changed.connect(self._on_state_changed)
        bridge.notice_raised.connect(self.notices.raise_notice)
        bridge.command_refused.connect(self._on_command_refused)
        self.controls.text_sent.connect(self._on_text_sent)
        self.controls.stop_pressed.connect(self._on_stop_pressed)
        self.controls.talk_changed.connect(self._on_talk_changed)
        self.controls.microphone_muted.connect(self.mute_microphone)
        self.controls.voice_muted.connect(self._on_voice_muted)
        self.menu.language_chosen.connect(self._on_language_chosen)
        self.menu.theme_chosen.connect(self._on_theme_chosen)
        self.menu.motion_reduced.connect(self._on_motion_reduced)
        self.menu.correction.triggered.connect(lambda _=False: self.subtitles.correct_last())
        self.addActions([self.menu.correction, self.menu.companion])
        self.menu.session_asked.connect(self._on_session_asked)
        self.menu.quit_asked.connect(self.close)
        self.characters.chosen.connect(self._on_character_chosen)
        self.characters.shown.connect(self._on_character_shown)
        self.avatar.pack_changed.connect(self._apply_language)
        self.theme.changed.connect(self._apply_theme)
        self.translator.changed.connect(self._apply_language)
        bind = self.translator.bind
        bind(self.setWindowTitle, "app.title")
        bind(self._app_name.setText, "app.title")
        bind(self.menu_button.setAccessibleName, "menu.name")
        bind(self.menu_button.setToolTip, "menu.tip")
        bind(self.avatar.setAccessibleName, "avatar.name")
        bind(self.subtitles.setAccessibleName, "subtitles.name")

    def _apply_theme(self) -> None:
        self.setStyleSheet(stylesheet(self.theme.palette))
        self.menu_button.setIcon(icons.icon("menu", self.theme.palette.ink))

    def _apply_language(self) -> None:
        name = self._persona_name or self.avatar.pack.name(self.translator.language)
        self.subtitles.set_character_name(name)
        words = self.translator.text("avatar.tip", name=name, state=self.state_line.text())
        self.avatar.setToolTip(words)
        self.avatar.setAccessibleDescription(words)

    # --- views -----------------------------------------------------------------------------------------

    def _on_state_changed(self, view: StateView) -> None:
        self.state_line.show_state(view)
        self.subtitles.set_hint_shown(view.state != "starting")
        self._apply_language()
        if view.state != "starting":
            self.notices.withdraw("not_ready")

    def _on_command_refused(self, command: Command) -> None:
        is_early = self.state_line.state == "starting" and isinstance(command, SendText)
        code = "not_ready" if is_early else "refused"
        self.notices.raise_notice(NoticeView(code=code, text="", severity="info" if is_early else "warning"))

    # --- frames ----------------------------------------------------------------------------------------

    def _on_frame(self, now_s: float) -> None:
        self._frames.paint(now_s)
        if now_s - self._metered_at_s >= _METER_S:
            self._metered_at_s = now_s
            self._devices.meter(now_s)
            self.avatar.set_level(self.microphone.meter.level)

    def meter(self, now_s: float) -> None:
        """Bring the microphone's sign to this moment; frames do it while the window is shown."""
        self._devices.meter(now_s)

    def _longest_wait_s(self) -> float:
        return _METER_S if self.microphone.state == "open" else math.inf

    # --- what the user does ----------------------------------------------------------------------------

    def _on_text_sent(self, text: str) -> None:
        if self._bridge.submit(SendText(text=text)):
            self.controls.field.clear()

    def _on_stop_pressed(self) -> None:
        self.stop("button")

    def stop(self, by: str) -> None:
        """Silence the player now and tell the core; `by` is button, key or companion."""
        self._bridge.stop_now()
        self.avatar.hush()
        self._bridge.submit(Stop(by=by))

    def _on_talk_changed(self, is_down: bool) -> None:
        self._bridge.submit(PushToTalk(down=is_down))

    def mute_microphone(self, is_muted: bool) -> None:
        """Ask to close or open the microphone; a refusal leaves everything as it is."""
        if self._bridge.submit(MuteMicrophone(on=is_muted)):
            self._devices.show_microphone_muted(is_muted)
        else:
            self.controls.show_microphone_muted(not is_muted)

    def _on_voice_muted(self, is_muted: bool) -> None:
        if not self._bridge.submit(MuteVoice(on=is_muted)):
            self.controls.show_voice_muted(not is_muted)

    def _on_language_chosen(self, language: str) -> None:
        self.set_language(language)
        self.setting_changed.emit("language", language)

    def _on_theme_chosen(self, choice: str) -> None:
        self.set_theme(choice)
        self.setting_changed.emit("theme", choice)

    def _on_motion_reduced(self, is_reduced: bool) -> None:
        self.set_reduced_motion(is_reduced)
        self.setting_changed.emit("reduced_motion", is_reduced)

    def _on_character_chosen(self, avatar_id: str) -> None:
        self.characters.show(avatar_id)
        self.setting_changed.emit("avatar", avatar_id)

    def _on_character_shown(self, pack: AvatarPack) -> None:
        try:
            self.avatar.set_pack(pack)
        except InputError as error:
            self.characters.refuse(error)

    def _on_session_asked(self) -> None:
        self._bridge.submit(NewSession())

    # --- keys ------------------------------------------------------------------------------------------

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Take the keys no focused widget wanted: Escape, the space bar, and plain typing."""
        is_plain = event.modifiers() == Qt.KeyboardModifier.NoModifier
        if event.key() == Qt.Key.Key_Escape and is_plain:
            if not event.isAutoRepeat():
                self.stop("key")
        elif event.key() == Qt.Key.Key_Space and is_plain:
            if not event.isAutoRepeat() and self.controls.talk.isEnabled():
                self.hold_talk(True)
        elif self._is_typing(event):
            self.controls.field.setFocus(Qt.FocusReason.ShortcutFocusReason)
            self.controls.field.insert(event.text())
        else:
            super().keyPressEvent(event)

    def keyReleaseEvent(self, event: QKeyEvent) -> None:
        """Let push-to-talk go."""
        if event.key() == Qt.Key.Key_Space and self._is_talk_key_down:
            if not event.isAutoRepeat():
                self.hold_talk(False)
            return
        super().keyReleaseEvent(event)

    def _is_typing(self, event: QKeyEvent) -> bool:
        commands = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.AltModifier
        text = event.text()
        is_writing = not isinstance(QApplication.focusWidget(), _TEXT_WIDGETS)
        return is_writing and bool(text) and text.isprintable() and not event.modifiers() & commands

    def hold_talk(self, is_down: bool) -> None:
        """Begin or end push-to-talk; nothing happens if it is so already."""
        if self._is_talk_key_down != is_down:
            self._is_talk_key_down = is_down
            self.controls.show_talking(is_down)
            self._on_talk_changed(is_down)

    # --- window life -----------------------------------------------------------------------------------

    def changeEvent(self, event: QEvent) -> None:
        """Let push-to-talk go when the window loses the keyboard, for the release never comes; rest when minimised."""
        if event.type() == QEvent.Type.ActivationChange and not self.isActiveWindow():
            self.hold_talk(False)
        if event.type() == QEvent.Type.WindowStateChange and self.isVisible():
            if self.isMinimized():
                self._frames.stop()
            else:
                self._frames.start()
        super().changeEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Let push-to-talk go with the focus."""
        self.hold_talk(False)
        super().focusOutEvent(event)

    def showEvent(self, event: QShowEvent) -> None:
        """Begin to paint frames."""
        super().showEvent(event)
        self._frames.start()
        self.watch.start()

    def hideEvent(self, event: QHideEvent) -> None:
        """Paint nothing while hidden."""
        self._frames.stop()
        self.watch.stop()
        super().hideEvent(event)

    def closeEvent(self, event: QCloseEvent) -> None:
        """Ask the program to end."""
        self._bridge.submit(Quit())
        self.characters.close()
        self.closed.emit()
        super().closeEvent(event)


def create_window(
    bridge: Bridge,
    settings: WindowSettings,
    pack: AvatarPack | None = None,
    *,
    avatars: Path | None = None,
    tray: TrayPort | None = None,
) -> MainWindow:
    """Return the window, not yet shown; `pack` none is the bird that ships, `avatars` the folder of the user's packs.

    Needs a QApplication. Raises `InputError` (`avatar_invalid`) if the pack is broken.
    """
    set_font_scale(getattr(settings, "text_size", font_scale()))
    install_font()
    library = AvatarLibrary(paths.assets() / FOLDER, avatars)
    window = MainWindow(bridge, settings, pack or library.load(DEFAULT), library, tray)
    translator = window.translator
    toolkit.speak(translator.language)
    # The window itself must not be held by what its own child calls.
    translator.changed.connect(lambda: toolkit.speak(translator.language))
    window.setWindowIcon(QIcon(str(paths.assets() / "icons" / "mynah.svg")))
    screen = QGuiApplication.primaryScreen()
    if screen is not None:
        room: QRect = screen.availableGeometry()
        window.resize(min(window.width(), room.width()), min(window.height(), room.height()))
    return window
