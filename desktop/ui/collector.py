"""Garbage is collected on the GUI thread only.

Python collects on whichever thread allocates. A cycle that holds widgets, collected on a thread of the conversation,
would destroy them there, which ends the process; and a full collection by a loading thread makes the window wait.
"""

from __future__ import annotations

import gc

from PySide6.QtCore import QObject, QTimer

_INTERVAL_MS = 1000
# As many more objects than before as make Python itself look at the youngest ones (gc.get_threshold).
_YOUNG = 2000
_MIDDLE_EVERY = 10
_OLD_EVERY = 300


class GuiCollector(QObject):
    """Switches the automatic collection off and collects in steps. Lives on the GUI thread.

    The youngest objects are looked at once a second if there are many, the middle ones every tenth, all every three
    hundredth time. What lives as long as the program is frozen before `start` and never looked at.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        """Switch the automatic collection off; nothing is collected before `start`."""
        super().__init__(parent)
        gc.disable()
        self._ticks = 0
        self._timer = QTimer(self)
        self._timer.setInterval(_INTERVAL_MS)
        self._timer.timeout.connect(self.tick)

    def start(self) -> None:
        """Begin to collect, once what is to stay has been loaded."""
        self._timer.start()

    def tick(self) -> None:
        """Collect as much as it is time for."""
        self._ticks += 1
        if self._ticks % _OLD_EVERY == 0:
            gc.collect()
        elif self._ticks % _MIDDLE_EVERY == 0:
            gc.collect(1)
        elif gc.get_count()[0] > _YOUNG:
            gc.collect(0)

    def stop(self) -> None:
        """Leave collecting to Python again."""
        self._timer.stop()
        gc.enable()
