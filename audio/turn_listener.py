"""Listens to the tone of a pause beside its words, on a thread of its own."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from audio.ports import Samples
from audio.workers import Job, Worker
from orchestrator.contracts.ids import UtteranceId

log = logging.getLogger(__name__)

ToneReport = Callable[[UtteranceId, int, float | None], None]
"""Takes utterance, revision, and how likely the turn is over by its sound; None when that could not be told."""


class TurnModel(Protocol):
    """Tells by the sound of an utterance how likely the turn is over."""

    def chance(self, audio: Samples) -> float:
        """Return a chance from 0 to 1 for float32 mono at 16 kHz. May take a tenth of a second, and may raise."""
        ...


class TurnListener:
    """The turn model behind a worker. Only what was asked for last counts: a newer pause makes an older one stale."""

    def __init__(self, worker: Worker, model: TurnModel, *, cost_s: float | None = None) -> None:
        """Ask `model` on `worker`; `cost_s` is what it costs in seeded virtual time."""
        self._worker = worker
        self._model = model
        self._cost_s = cost_s
        self._last: tuple[UtteranceId, int] | None = None
        self.failures = 0

    def listen(self, utterance_id: UtteranceId, revision: int, audio: Samples, report: ToneReport) -> bool:
        """Have `audio` listened to; never blocks. `report` is called on the worker's thread, once or, if stale, never.

        False when the worker is full or stopped: then nothing is reported.
        """
        asked = (utterance_id, revision)
        self._last = asked

        def job() -> Callable[[], None] | None:
            if self._last != asked:
                return None
            chance = self._chance(audio)
            return lambda: report(utterance_id, revision, chance)

        run: Job = job
        return self._worker.submit(run, name="tone", cost_s=self._cost_s)

    def _chance(self, audio: Samples) -> float | None:
        try:
            return self._model.chance(audio)
        except Exception as error:
            self.failures += 1
            if self.failures == 1:
                log.warning("the turn model failed; turns end by their words alone: %s", error)
            return None


class ToneWatch:
    """What is known of the tone before the present pause. Ears thread only; `report` is called on another one.

    Every pause has a revision, that of its early final. The tone is asked for once the pause lasted a while, with the
    sound as it was in its beginning: more silence behind the voice tells the model less.
    """

    def __init__(self, listener: TurnListener | None, report: ToneReport) -> None:
        """Without a `listener` no tone is ever due."""
        self._listener = listener
        self._report = report
        self._pause: tuple[UtteranceId, int, Samples] | None = None
        self._is_asked = False
        self.is_due = False
        self.chance: float | None = None

    def voice_ended(self, utterance_id: UtteranceId, revision: int, audio: Samples) -> None:
        """A pause began behind `audio`."""
        self.forget()
        if self._listener is not None:
            self._pause = (utterance_id, revision, audio)
            self.is_due = True

    def tick(self, silence_s: float, after_s: float) -> None:
        """Ask once the pause has lasted `after_s`."""
        if self._pause is None or self._is_asked or silence_s < after_s or self._listener is None:
            return
        self._is_asked = True
        self.is_due = self._listener.listen(*self._pause, self._report)

    def take(self, utterance_id: UtteranceId, revision: int, chance: float | None) -> bool:
        """Take what was reported; False if it belongs to another pause."""
        if self._pause is None or (utterance_id, revision) != self._pause[:2]:
            return False
        self.is_due = False
        self.chance = chance
        return True

    def forget(self) -> None:
        """The pause is over."""
        self._pause = None
        self._is_asked = self.is_due = False
        self.chance = None
