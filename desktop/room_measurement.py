"""The measure of `mynah doctor --room` for the window: in steps, on a thread of its own, with what follows from it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from desktop.models import ModelStore
from desktop.settings import Settings
from orchestrator.contracts.errors import MynahError

if TYPE_CHECKING:
    from audio.ports import Samples
    from audio.room_measure import RoomFigures, Track

log = logging.getLogger(__name__)

_OVER = ("done", "failed", "cancelled")


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomAdvice:
    """What is measured in plain terms, and the settings that fit it.

    `because` is fine, headphones, noise, echo, stumbles or half_duplex.
    """

    because: str
    sensitivity: str
    extra_output_delay_ms: float

    def changes(self, settings: Settings) -> dict[str, object]:
        """Return what would change."""
        wanted: dict[str, object] = {
            "sensitivity": self.sensitivity,
            "extra_output_delay_ms": self.extra_output_delay_ms,
        }
        return {name: value for name, value in wanted.items() if getattr(settings, name) != value}


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomProgress:
    """How far it is. `stage` is preparing, quiet, talking, judging, done, failed or cancelled; `share` from 0 to 1.

    `findings` are lines for people by language (en, zh): whether all is well, what it is about, what was found, what to
    do about it (perhaps empty).
    """

    stage: str
    share: float = 0.0
    figures: RoomFigures | None = None
    advice: RoomAdvice | None = None
    findings: Mapping[str, tuple[tuple[bool, str, str, str], ...]] = field(default_factory=dict)
    code: str = ""
    message: str = ""

    @property
    def is_over(self) -> bool:
        """Whether no further step comes."""
        return self.stage in _OVER


class RoomSound(Protocol):
    """The sound that the measure needs. Both may block; both raise `MynahError`."""

    def sample(self, settings: Settings) -> Samples:
        """Return silence, the character's voice and silence at 48 kHz."""
        ...

    def play(
        self, samples: Samples, settings: Settings, on_progress: Callable[[float], None], cancelled: threading.Event
    ) -> tuple[Track, Track]:
        """Play `samples`, tell how many seconds were played, and return what was heard and what was played."""
        ...


class SystemSound:
    """The user's voice model and devices; what they need is imported when they are used."""

    def sample(self, settings: Settings) -> Samples:
        """Return silence, the character's voice and silence at 48 kHz."""
        from desktop.doctor_room import voice_sample

        return voice_sample(settings, ModelStore())

    def play(
        self, samples: Samples, settings: Settings, on_progress: Callable[[float], None], cancelled: threading.Event
    ) -> tuple[Track, Track]:
        """Play `samples` on the devices of `settings`, beside a conversation that has them open."""
        from desktop.doctor_room import SoundCard

        return SoundCard(settings, on_progress=on_progress, cancelled=cancelled).play(samples)


class RoomMeasurement:
    """Measures at most one room at a time. `start` and `cancel` may be called from any thread."""

    def __init__(self, settings: Callable[[], Settings], sound: RoomSound | None = None) -> None:
        """Measure with the `settings` in force when it begins."""
        self._settings = settings
        self._sound = sound or SystemSound()
        self._lock = threading.Lock()
        self._cancelled: threading.Event | None = None

    def start(self, on_progress: Callable[[RoomProgress], None]) -> bool:
        """Begin; `on_progress` is called from the thread `room-check` until a step is over. False while one runs."""
        with self._lock:
            if self._cancelled is not None:
                return False
            cancelled = self._cancelled = threading.Event()
        thread = threading.Thread(target=self._run, args=(on_progress, cancelled), name="room-check", daemon=True)
        thread.start()
        return True

    def cancel(self) -> None:
        """Give it up; its last step follows."""
        with self._lock:
            if self._cancelled is not None:
                self._cancelled.set()

    def _run(self, on_progress: Callable[[RoomProgress], None], cancelled: threading.Event) -> None:
        try:
            last = self._measure(on_progress, cancelled)
        except MynahError as error:
            last = RoomProgress(stage="failed", code=error.code, message=error.message)
        except Exception as error:
            log.exception("the room could not be measured")
            last = RoomProgress(stage="failed", code="internal", message=type(error).__name__)
        if cancelled.is_set():
            last = RoomProgress(stage="cancelled")
        with self._lock:
            self._cancelled = None
        on_progress(last)

    def _measure(self, on_progress: Callable[[RoomProgress], None], cancelled: threading.Event) -> RoomProgress:
        from desktop.doctor_room import QUIET_S

        settings = self._settings()
        on_progress(RoomProgress(stage="preparing"))
        samples = self._sound.sample(settings)
        if cancelled.is_set():
            return RoomProgress(stage="cancelled")
        seconds = len(samples) / 48_000

        def tell(played_s: float) -> None:
            stage = "quiet" if played_s < QUIET_S else "talking"
            on_progress(RoomProgress(stage=stage, share=min(1.0, played_s / seconds)))

        tell(0.0)
        microphone, loudspeaker = self._sound.play(samples, settings, tell, cancelled)
        on_progress(RoomProgress(stage="judging", share=1.0))
        figures, advice = judge_room(microphone, loudspeaker, settings, cancelled.is_set)
        return RoomProgress(stage="done", share=1.0, figures=figures, advice=advice, findings=in_words(figures))


def judge_room(
    microphone: Track, loudspeaker: Track, settings: Settings, is_cancelled: Callable[[], bool] = lambda: False
) -> tuple[RoomFigures, RoomAdvice]:
    """Let the recording pass through the ears, with another position of the dial where the first says so.

    The figures are those of the position that is advised.
    """
    from audio.room_measure import measure_room
    from desktop.ears_numbers import ears_config

    def measured(sensitivity: str) -> RoomFigures:
        return measure_room(microphone, loudspeaker, config=ears_config(replace(settings, sensitivity=sensitivity)))

    figures = measured("normal")
    advice = advise(figures, settings)
    if advice.sensitivity == "normal" or is_cancelled():
        return figures, advice
    other = measured(advice.sensitivity)
    if advice.sensitivity == "eager" and (other.cuts or other.ducks):
        return figures, replace(advice, sensitivity="normal")
    return other, advice


def in_words(figures: RoomFigures) -> dict[str, tuple[tuple[bool, str, str, str], ...]]:
    """Return what `mynah doctor --room` says of `figures`, by language."""
    from desktop.doctor_room import explain

    return {
        language: tuple((one.status == "ok", one.part, one.text, one.advice) for one in explain(figures, language))
        for language in ("en", "zh")
    }


def advise(figures: RoomFigures, settings: Settings) -> RoomAdvice:
    """Return what fits `figures`, which were measured with the dial at normal.

    Who stumbles over itself there, or hears much noise, is to be harder to interrupt; where nothing comes back and it
    is quiet, it may be easier. The delay counts from what the devices report; None leaves it as it is.
    """
    from desktop.doctor_room import CALM_PER_MINUTE, MUCH_ECHO_DB, NOISY_DB, late_ms

    late = late_ms(figures)
    delay_ms = settings.extra_output_delay_ms if late is None else float(min(2000, late))
    is_noisy = figures.noise_db > NOISY_DB
    sensitivity, because = "normal", "fine"
    if figures.is_half_duplex:
        sensitivity, because = "relaxed", "half_duplex"
    elif figures.cuts or figures.ducks_per_minute > CALM_PER_MINUTE:
        sensitivity, because = "relaxed", "stumbles"
    elif is_noisy:
        sensitivity, because = "relaxed", "noise"
    elif figures.coupling_db is None:
        sensitivity, because = "eager", "headphones"
    elif figures.coupling_db > MUCH_ECHO_DB:
        because = "echo"
    return RoomAdvice(because=because, sensitivity=sensitivity, extra_output_delay_ms=delay_ms)
