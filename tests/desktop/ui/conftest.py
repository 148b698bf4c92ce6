"""A window with a clock that the test moves, and the other side of every door."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
from PySide6.QtCore import QCoreApplication, QEvent
from pytestqt.qtbot import QtBot
from rigs.flow_desk import folders, open_editor, refund

from desktop.bridge import Bridge
from desktop.ui.collector import GuiCollector
from desktop.ui.companion.tray import TrayPort
from desktop.ui.main_window import MainWindow, create_window
from orchestrator.clock import VirtualClock
from orchestrator.contracts.commands import Command
from orchestrator.contracts.events import Event, TimedViseme, TimedWord
from orchestrator.contracts.ids import GenerationId, IntentId
from orchestrator.contracts.views import CharacterTextView, SpeechTimelineView, View

__all__ = ["folders", "open_editor", "refund"]

G1, G2 = GenerationId("g-1"), GenerationId("g-2")
I1, I2 = IntentId("i-1"), IntentId("i-2")


def settle() -> None:
    """Let everything that waits in the event loop happen; no time passes."""
    for _ in range(4):
        QCoreApplication.sendPostedEvents(None, 0)
        QCoreApplication.processEvents()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)


@dataclass
class Outside:
    """The core, the player and the bus, as the window sees them."""

    commands: list[Command] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    stale: set[GenerationId] = field(default_factory=set)
    calls: list[str] = field(default_factory=list)
    accepts: bool = True
    level: float | None = None

    def submit(self, command: Command) -> bool:
        self.calls.append(type(command).__name__)
        if self.accepts:
            self.commands.append(command)
        return self.accepts

    def post(self, event: Event) -> bool:
        self.events.append(event)
        return True

    def is_stale(self, generation_id: GenerationId) -> bool:
        return generation_id in self.stale

    def stop_player(self) -> None:
        self.calls.append("player")

    def level_db(self) -> float | None:
        return self.level


@dataclass
class Stage:
    """A window under test."""

    clock: VirtualClock
    outside: Outside
    bridge: Bridge
    window: MainWindow

    def show(self, *views: View) -> None:
        for view in views:
            assert self.bridge.show(view)
        settle()

    def at(self, at_s: float) -> None:
        """Move the clock and paint that moment."""
        self.clock.advance_to(at_s)
        self.window.subtitles.tick(at_s)
        self.window.avatar.repaint()
        self.window.subtitles.repaint()
        settle()

    def painted(self, kind: type) -> list[Event]:
        return [event for event in self.outside.events if isinstance(event.payload, kind)]


@pytest.fixture(scope="session")
def collector(qapp: object) -> Iterator[GuiCollector]:
    """Collects as the program does: on the GUI thread, and not by chance on a thread of a service."""
    made = GuiCollector()
    yield made
    made.stop()


@pytest.fixture(autouse=True)
def collected(collector: GuiCollector) -> Iterator[None]:
    """Let the window of a test end with it."""
    yield
    gc.collect(1)


@pytest.fixture(autouse=True, scope="module")
def all_collected(collector: GuiCollector) -> Iterator[None]:
    yield
    gc.collect()


@pytest.fixture
def outside() -> Outside:
    return Outside()


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(100.0)


@pytest.fixture
def bridge(qapp: object, outside: Outside, clock: VirtualClock) -> Iterator[Bridge]:
    made = Bridge(
        clock,
        commands=outside,
        events=outside,
        staleness=outside,
        level_db=outside.level_db,
        on_stop_now=outside.stop_player,
    )
    yield made
    made.close()


@pytest.fixture
def make_stage(qtbot: QtBot, outside: Outside, clock: VirtualClock, bridge: Bridge) -> Callable[..., Stage]:
    def make(
        language: str = "en", theme: str = "light", *, reduced_motion: bool = True, tray: TrayPort | None = None
    ) -> Stage:
        settings = SimpleNamespace(language=language, theme=theme, reduced_motion=reduced_motion)
        window = create_window(bridge, settings, tray=tray)
        qtbot.addWidget(window)
        window.show()
        qtbot.waitExposed(window)
        settle()
        return Stage(clock, outside, bridge, window)

    return make


@pytest.fixture
def stage(make_stage: Callable[..., Stage]) -> Stage:
    return make_stage()


@dataclass(frozen=True)
class Spoken:
    """A sentence with an uneven timeline: a short word, a long one, a pause, a short one."""

    text: str = "So wonderful! Yes"
    words: tuple[TimedWord, ...] = (
        TimedWord(index=0, text="So", char_start=0, char_end=2, start_s=0.1, end_s=0.2),
        TimedWord(index=1, text="wonderful!", char_start=3, char_end=13, start_s=0.2, end_s=1.0),
        TimedWord(index=2, text="Yes", char_start=14, char_end=17, start_s=1.5, end_s=1.8),
    )
    visemes: tuple[TimedViseme, ...] = (
        TimedViseme(shape="rest", start_s=0.0),
        TimedViseme(shape="oh", start_s=0.1),
        TimedViseme(shape="aa", start_s=0.2),
        TimedViseme(shape="rest", start_s=1.0),
        TimedViseme(shape="ee", start_s=1.5),
        TimedViseme(shape="rest", start_s=1.8),
    )
    duration_s: float = 2.0

    def added(self, generation: GenerationId = G1, intent: IntentId = I1) -> CharacterTextView:
        return CharacterTextView(generation_id=generation, intent_id=intent, text=self.text)

    def started(
        self, at_s: float, generation: GenerationId = G1, intent: IntentId = I1, offset_s: float = 0.0
    ) -> SpeechTimelineView:
        return SpeechTimelineView(
            generation_id=generation,
            intent_id=intent,
            at_s=at_s,
            start_offset_s=offset_s,
            duration_s=self.duration_s,
            words=tuple(word for word in self.words if word.start_s >= offset_s),
            visemes=self.visemes,
        )


@pytest.fixture
def spoken() -> Spoken:
    return Spoken()
