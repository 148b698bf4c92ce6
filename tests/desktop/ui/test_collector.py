"""Garbage with widgets in it is collected on the GUI thread, whatever other threads allocate."""

from __future__ import annotations

import gc
import threading
import weakref

from PySide6.QtWidgets import QWidget

from desktop.ui.collector import GuiCollector


class Cycle:
    def __init__(self) -> None:
        self.widget = QWidget()
        self.itself = self
        self.ended_on: list[threading.Thread] = []
        weakref.finalize(self, lambda ended: ended.append(threading.current_thread()), self.ended_on)


def test_a_cycle_of_widgets_never_ends_on_another_thread(collector: GuiCollector) -> None:
    # What other tests have imported since the last tick is taken to stay, and what is there then with it.
    collector.tick()
    ended = Cycle().ended_on
    worker = threading.Thread(target=lambda: [[[] for _ in range(50)] for _ in range(2000)], name="worker")
    worker.start()
    worker.join()
    assert ended == []
    for _ in range(40):
        collector.tick()
    assert ended == [threading.main_thread()]


def test_python_collects_by_itself_again_after_stop(collector: GuiCollector) -> None:
    assert not gc.isenabled()
    second = GuiCollector()
    second.stop()
    try:
        assert gc.isenabled()
    finally:
        gc.disable()
