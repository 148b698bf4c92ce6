"""Python's garbage collection in short steps, at moments of the program's choosing.

Python's own looks at everything that was made since the last time, on whichever thread allocates, and no other thread
runs meanwhile: a tenth of a second after something big was loaded, in which the sound breaks off.
"""

from __future__ import annotations

import gc
import sys

INTERVAL_S = 0.25
"""How often `tick` wants to be called."""

_YOUNG = 2000
"""As many more objects than before as make Python itself look at the youngest ones, roughly."""

_MIDDLE_EVERY = 40
_OLD_EVERY = 1200
_SETTLING_TICKS = 80


class Collecting:
    """Switches the automatic collection off and collects in steps; the steps all belong to one thread.

    Garbage is looked for among what is new: the youngest objects when there are many, the middle ones every ten
    seconds, the old ones every five minutes. What outlives that, and what comes with an import, is taken to stay for
    good and never looked at again. So a step costs as much as the last minutes made, however much the program holds.
    """

    def __init__(self) -> None:
        """Switch the automatic collection off; `settle` is called when the program runs."""
        gc.disable()
        self._ticks = 0
        self._settling = 0
        self._modules = len(sys.modules)

    def settle(self) -> None:
        """Take what is there, and what the next seconds still load in the background, to stay for good."""
        self._settling = _SETTLING_TICKS
        gc.freeze()

    def tick(self) -> None:
        """Do as much as it is time for."""
        self._ticks += 1
        modules = len(sys.modules)
        is_loading = self._settling > 0 or modules != self._modules
        self._modules = modules
        self._settling = max(0, self._settling - 1)
        if is_loading:
            gc.freeze()
        elif self._ticks % _OLD_EVERY == 0:
            gc.collect()
            gc.freeze()
        elif self._ticks % _MIDDLE_EVERY == 0:
            gc.collect(1)
        elif gc.get_count()[0] > _YOUNG:
            gc.collect(0)

    def stop(self) -> None:
        """Leave collecting to Python again."""
        gc.enable()
