"""How much is measured in a full and in a quick run, and how progress is told."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from bench.room import Failed
from bench.rows import Row
from bench.stimuli import Recordings


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Numbers of trials. Where two languages are measured each gets as many."""

    replies: int
    interruptions: int
    echo_interruptions: int
    noises: int
    backchannels: int
    pauses: int
    turn_ends: int
    spoken_forms: int
    attention: int
    rule_replies: int
    local_replies: int
    own_voice_s: float
    soak_s: float
    bus_s: float


FULL = Plan(
    replies=10,
    interruptions=12,
    echo_interruptions=10,
    noises=24,
    backchannels=12,
    pauses=20,
    turn_ends=60,
    spoken_forms=100,
    attention=24,
    rule_replies=8,
    local_replies=8,
    own_voice_s=60.0,
    soak_s=600.0,
    bus_s=10.0,
)
QUICK = Plan(
    replies=2,
    interruptions=2,
    echo_interruptions=2,
    noises=4,
    backchannels=2,
    pauses=1,
    turn_ends=8,
    spoken_forms=10,
    attention=4,
    rule_replies=2,
    local_replies=2,
    own_voice_s=8.0,
    soak_s=60.0,
    bus_s=3.0,
)
ONE = Plan(
    replies=1,
    interruptions=1,
    echo_interruptions=1,
    noises=1,
    backchannels=1,
    pauses=1,
    turn_ends=1,
    spoken_forms=1,
    attention=1,
    rule_replies=1,
    local_replies=1,
    own_voice_s=2.0,
    soak_s=8.0,
    bus_s=1.0,
)


@dataclass(slots=True)
class Teller:
    """Says on standard error what is being done."""

    began_s: float = field(default_factory=time.monotonic)
    quiet: bool = False
    failures: list[str] = field(default_factory=list)

    def say(self, text: str) -> None:
        """Print a line with the time since the start."""
        if not self.quiet:
            minutes, seconds = divmod(int(time.monotonic() - self.began_s), 60)
            sys.stderr.write(f"[{minutes:2d}:{seconds:02d}] {text}\n")
            sys.stderr.flush()

    @contextmanager
    def trial(self, name: str) -> Iterator[None]:
        """Keep a trial without a figure from ending the run; it is told and kept in `failures`."""
        try:
            yield
        except Failed as error:
            self.failures.append(f"{name}: {error}")
            self.say(f"{name}: no figure, {error}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a section gets: how much to do, where to work, whom to tell. `keep` stores the recordings of each trial."""

    plan: Plan
    tell: Teller
    folder: Path
    recordings: Recordings | None
    seed: int = 1
    keep: Path | None = None

    def keep_events(self, path: Path, name: str) -> None:
        """Copy an events file beside the kept recordings, if any are kept."""
        if self.keep is not None and path.exists():
            self.keep.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, self.keep / f"{name}-events.jsonl")


class Section(Protocol):
    """A part of the bench. `rows` may be asked at any time and gives what was measured so far."""

    name: str

    def run(self) -> None:
        """Measure."""
        ...

    def rows(self) -> Sequence[Row]:
        """Return what was measured."""
        ...
