"""What stands on the surfaces of the window: talk, flows, events, and stand-ins for what is outside."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QMenu
from rigs.flow_desk import FLOW

from desktop.settings import Settings
from orchestrator.contracts.dialogue import HistoryEntry
from orchestrator.contracts.ids import GenerationId, IntentId, SessionId, UtteranceId
from orchestrator.contracts.views import (
    CharacterTextView,
    DeviceView,
    NoticeView,
    SpeechStoppedView,
    StateView,
    UserTextView,
)
from orchestrator.store import records

G1, I1 = GenerationId("g-1"), IntentId("i-1")
AT = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
SAID = (
    ("user", "what is the weather in foo chow 今天"),
    ("assistant", "It is sunny, and it stays like that until the evening. 傍晚以后有小雨。"),
    ("user", "谢谢"),
    ("assistant", "不客气。"),
)
BROKEN = FLOW.replace("refund", "return").replace("order_number", "parcel").replace("next: end\n", "next: ennd\n")
BROKEN = BROKEN.replace("slot_name: parcel", "slot_name: parsel")
TESTS = """\
tests:
  - name: a refund is given
    turns:
      - user: I want a refund
        expect: {replies: ["Which order?"]}
  - name: a refund that goes wrong
    turns:
      - user: I want a refund
        expect: {replies: ["Nothing like that."]}
"""


class Door:
    """A running conversation, as the settings see it."""

    def apply(self, name: str, settings: Settings) -> None:
        """Take a setting over."""

    def say_sample(self, language: str) -> None:
        """Say a sentence."""

    def is_quiet(self) -> bool:
        """Whether nothing sounds."""
        return True

    def rest_ears(self, on: bool) -> None:
        """Answer nothing for a while."""

    def read_again(self) -> None:
        """Read the files again."""


class StandInTray:
    """A tray that is there; implements `TrayPort`."""

    def is_available(self) -> bool:
        """Whether there is a tray at this moment."""
        return True

    def show(self, icon: QIcon, tip: str, menu: QMenu, on_click: Callable[[], None]) -> None:
        """Show the icon, or bring icon and words up to date."""

    def hide(self) -> None:
        """Take the icon away."""


def event_records(count: int) -> list[dict[str, Any]]:
    """Return the events of `count` answers that were begun and dropped."""
    made: list[dict[str, Any]] = []
    for number in range(count):
        at_s, ids = 100.0 + number, {"generationId": f"g-{number}", "utteranceId": f"u-{number}"}
        common = {"source": "test", **ids}
        speech = {"kind": "speech", "text": f"answer {number}", "state": "dropped", "reason": "stale"}
        made += [
            {"t": at_s, "type": "input:user", "lane": "dialogue", **common, "payload": {"text": f"question {number}"}},
            {"t": at_s + 0.1, "type": "generation:state", **common, "payload": {"from": None, "to": "PREPARING"}},
            {
                "t": at_s + 0.3,
                "type": "generation:state",
                "lane": "control",
                **common,
                "payload": {"from": "PREPARING", "to": "STREAMING"},
            },
            {
                "t": at_s + 0.6,
                "type": "intent:state",
                "lane": "control",
                "intentId": f"i-{number}",
                **common,
                "payload": speech,
            },
            {
                "t": at_s + 0.8,
                "type": "generation:state",
                "lane": "control",
                **common,
                "payload": {"from": "STREAMING", "to": "CANCELLED", "reason": "user_speech"},
            },
        ]
    return made


def fill_history(db: sqlite3.Connection) -> None:
    records.add_session(db, SessionId("s"), AT)
    for number, (role, text) in enumerate(SAID):
        entry = HistoryEntry(role=role, text=text, status="interrupted" if number == 1 else "completed")
        records.add_message(
            db,
            session_id=SessionId("s"),
            generation_id=None,
            utterance_id=None,
            entry=entry,
            at=AT + timedelta(minutes=number),
        )


def fill_window(stage: Any) -> None:
    """Show everything at once: a long state, a notice, both speakers, an open microphone."""
    stage.outside.level = -20.0
    stage.show(
        DeviceView(direction="input", device="mic", state="open"),
        StateView(state="speaking", generation_id=G1),
        UserTextView(utterance_id=UtteranceId("u-1"), text="what is the weather 今天", final=True),
        CharacterTextView(generation_id=G1, intent_id=I1, text="One moment please, 马上就好。 " * 4),
        SpeechStoppedView(generation_id=G1, intent_id=I1, at_s=101.0, cut_at=9),
        NoticeView(code="llm_unreachable", text="", severity="warning"),
    )
    stage.at(102.0)
    stage.window._devices.meter(102.0)
