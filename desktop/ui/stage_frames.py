"""The frames of a character and its words, the same in the window and in the companion."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject

from desktop.bridge import Bridge
from desktop.ui.avatar.widget import AvatarWidget
from desktop.ui.frames import FrameTicker
from desktop.ui.subtitles.widget import SubtitleWidget


class StageFrames(QObject):
    """Ticks as often as character, words and owner need it, and at once when something happens."""

    def __init__(
        self,
        bridge: Bridge,
        avatar: AvatarWidget,
        subtitles: SubtitleWidget,
        parent: QObject,
        *,
        on_frame: Callable[[float], None],
        longest_s: Callable[[], float],
    ) -> None:
        """Call `on_frame(now_s)`, which paints by `paint`, at least every `longest_s()` seconds."""
        super().__init__(parent)
        self._avatar = avatar
        self._subtitles = subtitles
        self._longest_s = longest_s
        self._avatar_due_s = 0.0
        self._ticker = FrameTicker(bridge.clock, on_frame, self._interval_s, self)
        for signal in (bridge.state_changed, bridge.speech_started, bridge.speech_stopped, bridge.user_text_changed):
            signal.connect(self._on_news)

    def start(self) -> None:
        """Begin now."""
        self._ticker.start()

    def stop(self) -> None:
        """Paint no more until started again."""
        self._ticker.stop()

    def paint(self, now_s: float) -> None:
        """Bring character and words to this moment."""
        if now_s >= self._avatar_due_s:
            # Frames come a little early or late; half a frame's grace keeps the rhythm.
            self._avatar_due_s = now_s + self._avatar.frame_interval_s(now_s) - 1 / 120
            self._avatar.update()
        self._subtitles.tick(now_s)

    def _interval_s(self, now_s: float) -> float:
        wait_s = min(self._avatar.frame_interval_s(now_s), self._longest_s())
        return min(wait_s, 1 / 60) if self._subtitles.is_busy() else wait_s

    def _on_news(self, view: object) -> None:
        self._avatar_due_s = 0.0
        self._ticker.hurry()
