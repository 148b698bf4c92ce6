"""Garbage is collected on the GUI thread only.

Python collects on whichever thread allocates. A cycle that holds widgets, collected on a thread of the conversation,
would destroy them there, which ends the process.
"""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer

from desktop.collecting import INTERVAL_S, Collecting


class GuiCollector(QObject):
    """Collects in the short steps of `Collecting`. Lives on the GUI thread."""

    def __init__(self, parent: QObject | None = None) -> None:
        """Switch the automatic collection off; nothing is collected before `start`."""
        super().__init__(parent)
        self._collecting = Collecting()
        self._timer = QTimer(self)
        self._timer.setInterval(round(1000 * INTERVAL_S))
        self._timer.timeout.connect(self.tick)

    def start(self) -> None:
        """Begin to collect, once what is to stay has been loaded."""
        self._collecting.settle()
        self._timer.start()

    def tick(self) -> None:
        """Collect as much as it is time for."""
        self._collecting.tick()

    def stop(self) -> None:
        """Leave collecting to Python again."""
        self._timer.stop()
        self._collecting.stop()
