"""What microphone and loudspeaker are doing, said by sign, notice and controls."""

from __future__ import annotations

from PySide6.QtCore import QObject

from desktop.bridge import Bridge
from desktop.ui.controls import ControlBar
from desktop.ui.microphone import MicrophoneSign
from desktop.ui.notices import NoticeBar
from orchestrator.contracts.views import DeviceView, MuteView, NoticeView

_GONE = frozenset({"lost", "missing", "none", "failed", "unavailable", "closed", "error", "stalled"})
_CODES = ("no_microphone", "microphone_lost", "no_output", "output_lost", "no_audio")
_ABSENT = frozenset({"lost", "missing"})
_UNKNOWN = "unknown"
_OPEN = "open"


class DeviceSigns(QObject):
    """Keeps the signs true to the device and mute views; a device nobody spoke of is neither there nor gone."""

    def __init__(self, bridge: Bridge, microphone: MicrophoneSign, notices: NoticeBar, controls: ControlBar) -> None:
        """Follow the views of `bridge`."""
        super().__init__(microphone)
        self._bridge = bridge
        self._microphone = microphone
        self._notices = notices
        self._controls = controls
        self._input = _UNKNOWN
        self._output = _UNKNOWN
        self._is_microphone_muted = False
        bridge.device_changed.connect(self._on_device_changed)
        bridge.mute_changed.connect(self._on_mute_changed)

    def meter(self, now_s: float) -> None:
        """Bring sign and meter to the level of this moment."""
        level_db = self._bridge.level_db()
        self._show_microphone(level_db)
        self._microphone.meter.show_level(level_db if self._microphone.state == _OPEN else None, now_s)

    def show_microphone_muted(self, is_muted: bool) -> None:
        """Show the microphone as muted or not."""
        self._is_microphone_muted = is_muted
        self._show_microphone(self._bridge.level_db())

    def _on_device_changed(self, view: DeviceView) -> None:
        if view.state == "half_duplex":
            # The device is there as before; only its echo is too much to be interrupted by voice.
            self._notices.raise_notice(NoticeView(code="half_duplex", text="", severity="warning"))
            return
        if view.state == "full_duplex":
            self._notices.withdraw("half_duplex")
            return
        before = self._input if _is_input(view.direction) else self._output
        state = _OPEN
        if view.state in _GONE:
            # What was never there cannot be lost.
            state = "lost" if before in (_OPEN, "lost") else "missing"
        if _is_input(view.direction):
            self._input = state
        else:
            self._output = state
        self._show()
        is_other = view.state in ("replaced", "changed") and view.reason != "underruns"
        if is_other and before != _UNKNOWN and view.device:
            self._notices.raise_notice(NoticeView(code="device_changed", text=view.device), device=view.device)

    def _on_mute_changed(self, view: MuteView) -> None:
        if _is_input(view.direction):
            self._controls.show_microphone_muted(view.on)
            self.show_microphone_muted(view.on)
        else:
            self._controls.show_voice_muted(view.on)

    def _show(self) -> None:
        has_no_input, has_no_output = self._input in _ABSENT, self._output in _ABSENT
        self._notices.withdraw(*_CODES)
        code = None
        if has_no_input and has_no_output:
            code = "no_audio"
        elif has_no_input:
            code = "microphone_lost" if self._input == "lost" else "no_microphone"
        elif has_no_output:
            code = "output_lost" if self._output == "lost" else "no_output"
        if code is not None:
            self._notices.raise_notice(NoticeView(code=code, text="", severity="warning"))
        self._controls.talk.setEnabled(not has_no_input)
        self._controls.mute_microphone.setEnabled(not has_no_input)
        self._show_microphone(self._bridge.level_db())

    def _show_microphone(self, level_db: float | None) -> None:
        if self._input in _ABSENT:
            self._microphone.show_state("missing")
        elif self._is_microphone_muted:
            self._microphone.show_state("muted")
        else:
            self._microphone.show_state(_OPEN if level_db is not None else "closed")


def _is_input(direction: str) -> bool:
    return direction in ("input", "in")
