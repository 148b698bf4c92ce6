"""The row of controls: microphone, voice, text field, talk, stop."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLineEdit, QPushButton, QSizePolicy

from desktop.ui import icons
from desktop.ui.i18n import Translator
from desktop.ui.theme import GRID_PX, Theme, px

_NARROW_PX = 80 * GRID_PX
_FIELD_FRAME_PX = 5 * GRID_PX


def make_button(name: str, *, is_icon: bool = False) -> QPushButton:
    """Return a button that a click does not focus: the space bar stays the key to talk."""
    made = QPushButton()
    made.setObjectName(name)
    made.setProperty("isIcon", is_icon)
    made.setFocusPolicy(Qt.FocusPolicy.TabFocus)
    made.setIconSize(icons.square(20))
    made.setCursor(Qt.CursorShape.PointingHandCursor)
    return made


class ControlBar(QFrame):
    """Says what the user asked for by signals; holds no state but what its buttons show."""

    text_sent = Signal(str)
    stop_pressed = Signal()
    talk_changed = Signal(bool)
    microphone_muted = Signal(bool)
    voice_muted = Signal(bool)

    def __init__(self, theme: Theme, translator: Translator) -> None:
        """Lay the controls out."""
        super().__init__()
        self.setObjectName("controlBar")
        self._theme = theme
        self._translator = translator
        self._is_narrow = False
        self.mute_microphone = make_button("muteMicrophoneButton", is_icon=True)
        self.mute_voice = make_button("muteVoiceButton", is_icon=True)
        self.field = QLineEdit()
        self.field.setObjectName("messageField")
        self.field.setMaxLength(4000)
        self.send = make_button("sendButton", is_icon=True)
        self.talk = make_button("talkButton")
        self.stop = make_button("stopButton")
        for button in (self.mute_microphone, self.mute_voice):
            button.setCheckable(True)
        for button in (self.talk, self.stop):
            button.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        row = QHBoxLayout(self)
        row.setContentsMargins(GRID_PX, GRID_PX, GRID_PX, GRID_PX)
        row.setSpacing(GRID_PX)
        for part in (self.mute_microphone, self.mute_voice):
            row.addWidget(part)
        row.addWidget(self.field, 1)
        for part in (self.send, self.talk, self.stop):
            row.addWidget(part)
        self._connect()
        self._bind()
        translator.bind(self.setAccessibleName, "controls.name")
        theme.changed.connect(self._refresh)
        translator.changed.connect(self._refresh)
        self._refresh()

    def show_microphone_muted(self, is_muted: bool) -> None:
        """Show the state without asking for it again."""
        self._check(self.mute_microphone, is_muted)

    def show_voice_muted(self, is_muted: bool) -> None:
        """Show the state without asking for it again."""
        self._check(self.mute_voice, is_muted)

    def show_talking(self, is_down: bool) -> None:
        """Show push-to-talk as pressed."""
        self.talk.setDown(is_down)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Leave room for the text field: a narrow bar shows the talk button as its icon alone."""
        super().resizeEvent(event)
        is_narrow = self.width() < px(_NARROW_PX)
        if is_narrow != self._is_narrow:
            self._is_narrow = is_narrow
            self._refresh()

    def _check(self, button: QPushButton, is_checked: bool) -> None:
        was_blocked = button.blockSignals(True)
        button.setChecked(is_checked)
        button.blockSignals(was_blocked)
        self._refresh()

    def _connect(self) -> None:
        self.field.returnPressed.connect(self._on_text_entered)
        self.send.clicked.connect(self._on_text_entered)
        self.stop.clicked.connect(self.stop_pressed)
        self.talk.pressed.connect(self._on_talk_pressed)
        self.talk.released.connect(self._on_talk_released)
        self.mute_microphone.toggled.connect(self._on_microphone_toggled)
        self.mute_voice.toggled.connect(self._on_voice_toggled)

    def _bind(self) -> None:
        bind = self._translator.bind
        bind(self.field.setPlaceholderText, "input.placeholder")
        bind(self.field.setAccessibleName, "input.name")
        bind(self.field.setToolTip, "input.tip")
        bind(self.send.setAccessibleName, "send.name")
        bind(self.send.setToolTip, "send.tip")
        bind(self.talk.setAccessibleName, "talk.text")
        bind(self.talk.setToolTip, "talk.tip")
        bind(self.stop.setText, "stop.text")
        bind(self.stop.setAccessibleName, "stop.text")
        bind(self.stop.setToolTip, "stop.tip")

    def _refresh(self) -> None:
        palette = self._theme.palette
        for button, key, shown in (
            (self.mute_microphone, "mute_microphone", ("mic", "mic_off")),
            (self.mute_voice, "mute_voice", ("voice", "voice_off")),
        ):
            is_muted = button.isChecked()
            words = self._translator.text(f"{key}.{'on' if is_muted else 'off'}")
            button.setAccessibleName(words)
            button.setToolTip(words)
            colour = palette.on_primary if is_muted else palette.ink
            button.setIcon(icons.icon(shown[is_muted], colour, pressed=colour))
        # The placeholder says what the field is for: it is always seen whole.
        self.field.ensurePolished()
        words_px = self.field.fontMetrics().horizontalAdvance(self.field.placeholderText())
        self.field.setMinimumWidth(words_px + _FIELD_FRAME_PX)
        self.talk.setText("" if self._is_narrow else self._translator.text("talk.text"))
        self.send.setIcon(icons.icon("send", palette.on_primary))
        self.talk.setIcon(icons.icon("talk", palette.ink))
        self.stop.setIcon(icons.icon("stop", palette.danger))

    def _on_text_entered(self) -> None:
        text = self.field.text().strip()
        if text:
            self.text_sent.emit(text)

    def _on_talk_pressed(self) -> None:
        self.talk_changed.emit(True)

    def _on_talk_released(self) -> None:
        self.talk_changed.emit(False)

    def _on_microphone_toggled(self, is_muted: bool) -> None:
        self._refresh()
        self.microphone_muted.emit(is_muted)

    def _on_voice_toggled(self, is_muted: bool) -> None:
        self._refresh()
        self.voice_muted.emit(is_muted)
