"""A real window on real time, played by a script: what the test of the screen starts.

Reads commands from stdin, one word a line; writes one JSON object a line: the window's state, or a command it sent.
"""

from __future__ import annotations

import json
import sys
import threading
from dataclasses import asdict
from types import SimpleNamespace

from PySide6.QtWidgets import QApplication

from desktop.bridge import Bridge
from desktop.ui.main_window import MainWindow, create_window
from orchestrator.clock import SystemClock
from orchestrator.contracts.commands import Command
from orchestrator.contracts.events import TimedViseme, TimedWord
from orchestrator.contracts.ids import GenerationId, IntentId, UtteranceId
from orchestrator.contracts.views import (
    CharacterTextView,
    SpeechStoppedView,
    SpeechTimelineView,
    StateView,
    UserTextView,
)

GENERATION, INTENT = GenerationId("g-1"), IntentId("i-1")
TEXT = "One moment please, the weather is 很好 today."


def say(kind: str, **values: object) -> None:
    sys.stdout.write(json.dumps({"kind": kind, **values}) + "\n")
    sys.stdout.flush()


class Core:
    def submit(self, command: Command) -> bool:
        say("command", name=type(command).__name__, **asdict(command))
        return True


def timeline(at_s: float) -> SpeechTimelineView:
    pieces = TEXT.split(" ")
    words, start = [], 0
    for index, piece in enumerate(pieces):
        begin_s = 0.1 + index * 1.2
        words.append(
            TimedWord(
                index=index,
                text=piece,
                char_start=start,
                char_end=start + len(piece),
                start_s=begin_s,
                end_s=begin_s + 1.0,
            )
        )
        start += len(piece) + 1
    visemes = [TimedViseme(shape="rest", start_s=0.0)]
    for word in words:
        visemes += [
            TimedViseme(shape="aa", start_s=word.start_s),
            TimedViseme(shape="rest", start_s=word.end_s),
        ]
    return SpeechTimelineView(
        generation_id=GENERATION,
        intent_id=INTENT,
        at_s=at_s,
        start_offset_s=0.0,
        duration_s=10.0,
        words=tuple(words),
        visemes=tuple(visemes),
    )


def read_commands(bridge: Bridge, window: MainWindow) -> None:
    clock = SystemClock()
    for line in sys.stdin:
        match line.strip():
            case "idle":
                bridge.show(StateView(state="idle"))
            case "user":
                bridge.show(UserTextView(utterance_id=UtteranceId("u-1"), text="what is the weather", final=False))
                bridge.show(StateView(state="listening"))
            case "speak":
                bridge.show(StateView(state="speaking", generation_id=GENERATION))
                bridge.show(CharacterTextView(generation_id=GENERATION, intent_id=INTENT, text=TEXT))
                bridge.show(timeline(clock.monotonic_s() + 0.2))
            case "cut":
                now_s = clock.monotonic_s()
                bridge.show(
                    SpeechStoppedView(generation_id=GENERATION, intent_id=INTENT, at_s=now_s, cut_at=11, held=True)
                )
                bridge.show(StateView(state="interrupted"))
            case "dark":
                bridge.call(lambda: window.set_theme("dark"))
            case "chinese":
                bridge.call(lambda: window.set_language("zh_CN"))
            case "dump":
                bridge.call(lambda: say("dump", **window.dump()))
            case "quit":
                break
    bridge.call(QApplication.quit)


def main() -> None:
    application = QApplication([])
    bridge = Bridge(SystemClock(), commands=Core(), level_db=lambda: -20.0)
    window = create_window(bridge, SimpleNamespace(language="en", theme="light", reduced_motion=False))
    window.show()
    reader = threading.Thread(target=read_commands, args=(bridge, window), name="player-stdin", daemon=True)
    reader.start()
    application.exec()
    bridge.close()


if __name__ == "__main__":
    main()
