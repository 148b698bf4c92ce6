"""The companion: the character alone on the desktop, with what is said in a bubble and a sign of the microphone."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRect, QSize, Qt, Signal
from PySide6.QtGui import (
    QAction,
    QCloseEvent,
    QColor,
    QContextMenuEvent,
    QFocusEvent,
    QGuiApplication,
    QHideEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
    QShowEvent,
)
from PySide6.QtWidgets import QFrame, QHBoxLayout, QMenu, QSizeGrip, QVBoxLayout, QWidget

from desktop.bridge import Bridge
from desktop.ui import icons
from desktop.ui.avatar.pack import AvatarPack
from desktop.ui.avatar.widget import AvatarWidget
from desktop.ui.companion.placement import Rect, clamped, default_place
from desktop.ui.controls import make_button
from desktop.ui.i18n import Translator
from desktop.ui.microphone import MicrophoneSign
from desktop.ui.stage_frames import StageFrames
from desktop.ui.subtitles.widget import SubtitleWidget
from desktop.ui.theme import GRID_PX, Theme, px, stylesheet

_STEP_PX = 5 * GRID_PX
_SUBTITLE_PX = 16
_NARROW_PX = 36 * GRID_PX
_BUBBLE_SHARE = 0.45
"""The most of the companion's height that words may take: the character stays in sight."""

_BUBBLE_LETTERS = 7
"""The height of the words in sizes of their letters: three lines and the edges."""

_METER_S = 1 / 20


class _Grip(QSizeGrip):
    """The corner that resizes, drawn as three lines so that it is seen on any desktop."""

    def __init__(self, parent: QWidget, theme: Theme) -> None:
        super().__init__(parent)
        self.setObjectName("companionGrip")
        self.setFixedSize(3 * GRID_PX, 3 * GRID_PX)
        self._theme = theme

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the lines."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        for colour, width in ((self._theme.palette.surface, 4.0), (self._theme.palette.ink, 1.5)):
            painter.setPen(QPen(QColor(colour), width, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
            for step in (4, 8, 12):
                painter.drawLine(QPoint(20, 20 - step), QPoint(20 - step, 20))
        painter.end()


def is_place_free() -> bool:
    """Whether a program may put its windows where it likes: not under Wayland."""
    return not QGuiApplication.platformName().startswith("wayland")


def screens() -> list[Rect]:
    """Return the available parts of the screens, the primary one first."""
    first = QGuiApplication.primaryScreen()
    found = sorted(QGuiApplication.screens(), key=lambda screen: screen is not first)
    return [_rect(screen.availableGeometry()) for screen in found]


def _rect(rect: QRect) -> Rect:
    return Rect(rect.x(), rect.y(), rect.width(), rect.height())


class CompanionWindow(QWidget):
    """Frameless, transparent, above other windows; dragged anywhere, resized at its corner or with plus and minus."""

    back_asked = Signal()
    stop_asked = Signal()
    mute_asked = Signal(bool)
    talk_changed = Signal(bool)
    click_through_asked = Signal(bool)
    place_changed = Signal()

    def __init__(
        self,
        bridge: Bridge,
        pack: AvatarPack,
        theme: Theme,
        translator: Translator,
        *,
        is_motion_reduced: bool = False,
    ) -> None:
        """Build it, hidden."""
        super().__init__(None)
        self.setObjectName("companionWindow")
        self._bridge = bridge
        self._theme = theme
        self._translator = translator
        self._grabbed: QPoint | None = None
        self._is_click_through = False
        self._metered_at_s = 0.0
        self._are_subtitles_shown = True
        self._subtitle_px = px(_SUBTITLE_PX)
        self._is_talk_key_down = False
        self.setWindowFlags(Qt.WindowType.FramelessWindowHint | Qt.WindowType.WindowStaysOnTopHint | Qt.WindowType.Tool)
        self.setAttribute(Qt.WidgetAttribute.WA_TranslucentBackground)
        self.setAttribute(Qt.WidgetAttribute.WA_QuitOnClose, False)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.avatar = AvatarWidget(bridge, pack, theme, is_motion_reduced=is_motion_reduced, is_floating=True)
        self.subtitles = SubtitleWidget(
            bridge, theme, translator, is_motion_reduced=is_motion_reduced, is_floating=True
        )
        self.subtitles.set_size(self._subtitle_px)
        self.microphone = MicrophoneSign(theme, translator, is_compact=True)
        self.microphone.setObjectName("companionMicrophone")
        self.mute = make_button("companionMuteButton", is_icon=True)
        self.mute.setCheckable(True)
        self.stop = make_button("companionStopButton", is_icon=True)
        self.back = make_button("companionBackButton", is_icon=True)
        self.bubble = QFrame()
        self.bubble.setObjectName("companionBubble")
        self.menu = QMenu(self)
        self.menu.setObjectName("companionMenu")
        self.click_through_action = self._add_actions()
        self._grip = _Grip(self, theme)
        self._lay_out()
        self._connect()
        self._frames = StageFrames(
            bridge, self.avatar, self.subtitles, self, on_frame=self._on_frame, longest_s=lambda: _METER_S
        )
        self._refresh()
        self.setMinimumSize(QSize(px(200), px(240)))
        self._fit_bubble()

    def _lay_out(self) -> None:
        inside = QVBoxLayout(self.bubble)
        inside.setContentsMargins(GRID_PX // 2, GRID_PX, GRID_PX // 2, GRID_PX)
        inside.addWidget(self.subtitles)
        self._row = QFrame()
        self._row.setObjectName("companionControls")
        row = QHBoxLayout(self._row)
        row.setContentsMargins(GRID_PX, GRID_PX // 2, GRID_PX, GRID_PX // 2)
        row.setSpacing(GRID_PX // 2)
        row.addWidget(self.microphone)
        row.addStretch(1)
        for button in (self.mute, self.stop, self.back):
            row.addWidget(button)
        row.addWidget(self._grip, 0, Qt.AlignmentFlag.AlignBottom)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(GRID_PX)
        column.addWidget(self.bubble)
        column.addWidget(self.avatar, 1)
        column.addWidget(self._row)

    def _connect(self) -> None:
        translator = self._translator
        self.mute.clicked.connect(self.mute_asked)
        self.stop.clicked.connect(lambda _=False: self.stop_asked.emit())
        self.back.clicked.connect(lambda _=False: self.back_asked.emit())
        bind = translator.bind
        bind(self.setWindowTitle, "companion.title")
        bind(self.setAccessibleName, "companion.name")
        bind(self.setAccessibleDescription, "companion.tip")
        bind(self.avatar.setAccessibleName, "avatar.name")
        bind(self.avatar.setToolTip, "companion.tip")
        bind(self.bubble.setAccessibleName, "companion.bubble")
        bind(self.subtitles.setAccessibleName, "subtitles.name")
        bind(self._row.setAccessibleName, "companion.name")
        bind(self._grip.setAccessibleName, "companion.grip")
        bind(self._grip.setToolTip, "companion.grip")
        for button, key in ((self.stop, "companion.stop"), (self.back, "companion.back")):
            bind(button.setAccessibleName, key)
            bind(button.setToolTip, key)
        translator.changed.connect(self._refresh)
        self._theme.changed.connect(self._refresh)

    def _add_actions(self) -> QAction:
        def add(name: str, key: str) -> QAction:
            made = QAction(self.menu)
            made.setObjectName(name)
            self._translator.bind(made.setText, key)
            self.menu.addAction(made)
            return made

        add("companionBackAction", "companion.back").triggered.connect(lambda _=False: self.back_asked.emit())
        add("companionLargerAction", "companion.larger").triggered.connect(lambda _=False: self.grow(_STEP_PX))
        add("companionSmallerAction", "companion.smaller").triggered.connect(lambda _=False: self.grow(-_STEP_PX))
        through = add("companionClickThroughAction", "companion.click_through")
        through.setCheckable(True)
        through.triggered.connect(self.click_through_asked)
        return through

    # --- for the mode ----------------------------------------------------------------------------------

    def set_motion_reduced(self, is_reduced: bool) -> None:
        """Keep still what need not move."""
        self.avatar.set_motion_reduced(is_reduced)
        self.subtitles.set_motion_reduced(is_reduced)

    def set_subtitles(self, *, is_shown: bool, share: float) -> None:
        """Show or hide the words, in letters `share` times as large as usual; the bubble grows with them."""
        self._are_subtitles_shown = is_shown
        self._subtitle_px = max(1, round(px(_SUBTITLE_PX) * share))
        self.subtitles.set_size(self._subtitle_px)
        self._fit_bubble()
        self._show_bubble()

    def put(self, place: Rect | None) -> None:
        """Stand at `place`, or in the corner; always wholly on a screen. Under Wayland only the size counts."""
        now = screens()
        rect = clamped(place, now) if place is not None else default_place(now)
        self.resize(rect.width, rect.height)
        if is_place_free():
            self.move(rect.x, rect.y)

    def place(self) -> Rect:
        """Return where it stands."""
        return _rect(self.geometry())

    def grow(self, by_px: int) -> None:
        """Become larger or smaller, in place."""
        now = self.place()
        height = round(now.height * (now.width + by_px) / now.width)
        self.put(Rect(now.x - by_px // 2, now.y - (height - now.height), now.width + by_px, height))
        self.place_changed.emit()

    def set_click_through(self, is_through: bool) -> None:
        """Let clicks go to what is behind it, or take them."""
        self.click_through_action.setChecked(is_through)
        if self._is_click_through == is_through:
            return
        self._is_click_through = is_through
        was_visible, place = self.isVisible(), self.place()
        self.setWindowFlag(Qt.WindowType.WindowTransparentForInput, is_through)
        if was_visible:
            # Another flag makes another window of the system, which begins hidden.
            self.put(place)
            self.show()

    @property
    def is_click_through(self) -> bool:
        """Whether clicks go to what is behind it."""
        return self._is_click_through

    def show_microphone(self, state: str, level_db: float | None, now_s: float) -> None:
        """Show the microphone's state and level."""
        if state != self.microphone.state:
            self.microphone.show_state(state)
            self._refresh()
        self.microphone.meter.show_level(level_db if state == "open" else None, now_s)
        self.avatar.set_level(self.microphone.meter.level)

    # --- frames ----------------------------------------------------------------------------------------

    def _on_frame(self, now_s: float) -> None:
        self._frames.paint(now_s)
        self._show_bubble()

    def _show_bubble(self) -> None:
        self.bubble.setVisible(self._are_subtitles_shown and bool(self.subtitles.model.blocks))

    def _fit_bubble(self) -> None:
        height = min(_BUBBLE_LETTERS * self._subtitle_px, round(self.height() * _BUBBLE_SHARE))
        if height != self.bubble.height():
            self.bubble.setFixedHeight(height)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Leave the character its part of the height, and the level out of a narrow bar: its sign tells enough."""
        super().resizeEvent(event)
        self.microphone.set_meter_shown(self.width() >= px(_NARROW_PX))
        self._fit_bubble()

    # --- what the user does ----------------------------------------------------------------------------

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Begin to drag, wherever it is grabbed."""
        if event.button() != Qt.MouseButton.LeftButton:
            super().mousePressEvent(event)
            return
        handle = self.windowHandle()
        if not is_place_free() and handle is not None:
            handle.startSystemMove()
            return
        self._grabbed = event.globalPosition().toPoint() - self.pos()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Follow the pointer."""
        if self._grabbed is not None:
            self.move(event.globalPosition().toPoint() - self._grabbed)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Stay where it was put, on a screen."""
        if self._grabbed is not None:
            self._grabbed = None
            self.put(self.place())
            self.place_changed.emit()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Go back to the window."""
        if event.button() == Qt.MouseButton.LeftButton:
            self._grabbed = None
            self.back_asked.emit()

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Open the menu, by the mouse or by its key."""
        self.menu.popup(event.globalPos())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Talk while Space is held, stop on Escape; arrows move, plus and minus resize."""
        moves = {
            Qt.Key.Key_Left: (-_STEP_PX, 0),
            Qt.Key.Key_Right: (_STEP_PX, 0),
            Qt.Key.Key_Up: (0, -_STEP_PX),
            Qt.Key.Key_Down: (0, _STEP_PX),
        }
        key = Qt.Key(event.key())
        if key == Qt.Key.Key_Space:
            if not event.isAutoRepeat() and self.microphone.state != "missing":
                self._hold_talk(True)
        elif key == Qt.Key.Key_Escape:
            self.stop_asked.emit()
        elif key in moves:
            now, (dx, dy) = self.place(), moves[key]
            self.put(Rect(now.x + dx, now.y + dy, now.width, now.height))
            self.place_changed.emit()
        elif event.text() in ("+", "=", "-"):
            self.grow(-_STEP_PX if event.text() == "-" else _STEP_PX)
        else:
            super().keyPressEvent(event)

    def keyReleaseEvent(self, event: QKeyEvent) -> None:
        """Let push-to-talk go."""
        if event.key() == Qt.Key.Key_Space:
            if not event.isAutoRepeat():
                self._hold_talk(False)
        else:
            super().keyReleaseEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Let push-to-talk go with the keyboard, for the release never comes."""
        self._hold_talk(False)
        super().focusOutEvent(event)

    def _hold_talk(self, is_down: bool) -> None:
        if self._is_talk_key_down != is_down:
            self._is_talk_key_down = is_down
            self.talk_changed.emit(is_down)

    # --- window life -----------------------------------------------------------------------------------

    def showEvent(self, event: QShowEvent) -> None:
        """Begin to paint frames."""
        super().showEvent(event)
        self.setFocus(Qt.FocusReason.OtherFocusReason)
        self._show_bubble()
        self._frames.start()

    def hideEvent(self, event: QHideEvent) -> None:
        """Paint nothing while hidden, and hear no key."""
        self._hold_talk(False)
        self._frames.stop()
        super().hideEvent(event)

    def closeEvent(self, event: QCloseEvent) -> None:
        """Go back to the window instead: closing the companion does not end the program."""
        event.ignore()
        self.back_asked.emit()

    def _refresh(self) -> None:
        p = self._theme.palette
        self.setStyleSheet(
            stylesheet(p)
            + f"""
            QWidget#companionWindow {{ background: transparent; }}
            QFrame#companionBubble, QFrame#companionControls {{
                background: {p.surface}; border: 1px solid {p.outline}; border-radius: 16px; }}
            QFrame#companionMicrophone {{ background: transparent; border: 0; }}
            QFrame#companionControls QPushButton {{
                min-height: {px(28)}px; min-width: {px(28)}px; max-width: {px(28)}px; border-radius: 16px; }}
            """
        )
        is_muted = self.microphone.state == "muted"
        words = self._translator.text(f"mute_microphone.{'on' if is_muted else 'off'}")
        self.mute.setAccessibleName(words)
        self.mute.setToolTip(words)
        self.mute.setChecked(is_muted)
        self.mute.setEnabled(self.microphone.state != "missing")
        self.mute.setIcon(icons.icon("mic_off" if is_muted else "mic", p.ink, pressed=p.on_primary))
        self.stop.setIcon(icons.icon("stop", p.danger))
        self.back.setIcon(icons.icon("window", p.ink))
