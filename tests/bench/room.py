"""Both ends of the virtual sound card on one clock, and the program in the middle as a user would drive it."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from bench.scorer import Heard, Samples, Track, find_sound
from bench.stimuli import RATE_HZ, Stimulus
from rigs.program_rig import Program, Record
from rigs.sound_rig import Recording, SoundRig, write_wav

MICROPHONE = "mic_in.monitor"
LOUDSPEAKER = "speaker.monitor"


class Failed(Exception):
    """A trial that gave no figure; the text says why."""


@dataclass(slots=True)
class Taken:
    """What was recorded during a trial. Empty until the recording is over."""

    mic: Track = field(default_factory=lambda: Track(samples=np.zeros(0, np.float32), rate_hz=RATE_HZ, start_s=0.0))
    speaker: Track = field(default_factory=lambda: Track(samples=np.zeros(0, np.float32), rate_hz=RATE_HZ, start_s=0.0))
    played_from_s: float = 0.0

    def find(self, stimulus: Stimulus) -> Heard:
        """Find the stimulus at the microphone. Raises `Failed`."""
        try:
            return find_sound(stimulus.samples, self.mic, after_s=self.played_from_s)
        except ValueError as error:
            raise Failed(f"{stimulus.name}: {error}") from error


@dataclass(slots=True)
class Room:
    """Plays stimuli into the microphone and records what is at the microphone and at the loudspeaker."""

    rig: SoundRig
    folder: Path
    keep: Path | None = None
    _count: int = 0

    @contextmanager
    def recorded(self) -> Iterator[Taken]:
        """Record while the block runs; the tracks are there after it."""
        taken = Taken()
        mic, speaker = self.rig.record(source=MICROPHONE), self.rig.record(source=LOUDSPEAKER)
        try:
            yield taken
        finally:
            taken.mic, taken.speaker = self._stop(mic), self._stop(speaker)
            if self.keep is not None:
                self._keep(taken)

    def play(self, stimulus: Stimulus, taken: Taken) -> None:
        """Play a stimulus to its end."""
        self._count += 1
        wav = write_wav(self.folder / f"stimulus-{self._count}.wav", stimulus.samples, RATE_HZ)
        taken.played_from_s = time.monotonic() - 0.05
        # A wide buffer: a gap in what is played would spoil the trial, a delay does not matter.
        command = ["paplay", "--device=mic_in", "--latency-msec=150", str(wav)]
        done = subprocess.run(command, env=self.rig._client_env(), capture_output=True, check=False, timeout=60)
        wav.unlink()
        if done.returncode != 0:
            raise Failed(f"{stimulus.name} could not be played")

    def _stop(self, recording: Recording) -> Track:
        samples: Samples = recording.stop()
        self.rig._recordings.remove(recording)
        return Track(samples=samples, rate_hz=recording.rate_hz, start_s=recording.start_s)

    def _keep(self, taken: Taken) -> None:
        assert self.keep is not None
        self.keep.mkdir(parents=True, exist_ok=True)
        for name, track in (("mic", taken.mic), ("speaker", taken.speaker)):
            write_wav(self.keep / f"{self._count:03d}-{name}.wav", track.samples, track.rate_hz)


class Talk:
    """A conversation with a running program."""

    def __init__(self, program: Program) -> None:
        """Talk to `program`, which is listening."""
        self.program = program

    def mark(self) -> int:
        """Return the number of the last event so far."""
        self.program.of("log:open")
        return int(self.program.events[-1]["seq"]) if self.program.events else 0

    def since(self, kind: str, mark: int) -> list[Record]:
        """Return the events of `kind` beyond `mark`."""
        return [record for record in self.program.of(kind) if record["seq"] > mark]

    def wait(self, kind: str, mark: int, timeout_s: float, **equal: object) -> Record:
        """Return the first event of `kind` beyond `mark` whose payload has `equal`. Raises `Failed`."""

        def fits(record: Record) -> bool:
            return all(record["payload"].get(name) == value for name, value in equal.items())

        return self.wait_where(kind, mark, timeout_s, fits)

    def wait_where(self, kind: str, mark: int, timeout_s: float, fits: Callable[[Record], bool]) -> Record:
        """Return the first event of `kind` beyond `mark` that fits. Raises `Failed`."""
        try:
            return self.program.wait_for(kind, fits, timeout_s=timeout_s, after=mark)
        except AssertionError as error:
            raise Failed(f"no {kind} within {timeout_s:g} s{self._death()}") from error

    def is_final(self, generation: str) -> str | None:
        """Return the final state of an answer; None while it goes on."""
        states = [
            r["payload"]["to"] for r in self.program.of("generation:state") if r.get("generationId") == generation
        ]
        return next((state for state in states if state in ("COMPLETED", "CANCELLED", "FAILED")), None)

    def sounding(self, text: str = "Tell me a very long story, please.") -> str:
        """Return the id of an answer of which a word was just heard; starts one with `text` if need be.

        Raises `Failed` if nothing is to be heard.
        """
        heard = [r["generationId"] for r in self.program.of("output:first_sound") if r.get("generationId")]
        if heard and self.is_final(heard[-1]) is None:
            mark = self.mark()
            try:
                self.wait_where("output:word", mark, 3, lambda r: r.get("generationId") == heard[-1])
            except Failed:
                self.be_quiet()
            else:
                return str(heard[-1])
        mark = self.mark()
        self.program.send(cmd="text", text=text)
        return str(self.wait("output:word", mark, 20)["generationId"])

    def be_quiet(self) -> None:
        """Stop what is being said and let half a second of silence pass. Raises `Failed`."""
        mark = self.mark()
        self.program.send(cmd="stop")
        self.wait("control:ack", mark, 5, cmd="stop")
        deadline_s = time.monotonic() + 5
        while self._open_answers() and time.monotonic() < deadline_s:
            time.sleep(0.05)
        time.sleep(0.5)

    def _open_answers(self) -> set[str]:
        states = {r["generationId"]: r["payload"]["to"] for r in self.program.of("generation:state")}
        return {name for name, state in states.items() if state not in ("COMPLETED", "CANCELLED", "FAILED")}

    def _death(self) -> str:
        process = self.program.process
        code = None if process is None else process.poll()
        return "" if code is None else f"; the program has ended with {code}"

    @property
    def is_alive(self) -> bool:
        """Whether the program still runs."""
        return self.program.process is not None and self.program.process.poll() is None


def finish(talk: Talk, tell: Callable[[str], None]) -> list[str]:
    """End the program as a user would; returns what its events file or its exit code has wrong.

    The figures measured before stay good, so a fault of the end does not raise.
    """
    try:
        code, took_s = talk.program.end()
    except (AssertionError, subprocess.TimeoutExpired) as error:
        problems = [f"the end of the program: {error}"]
    else:
        tell(f"the program ended with {code} after {took_s:.1f} s")
        problems = [] if code == 0 else [f"the program ended with {code}"]
    for problem in problems:
        tell(problem)
    return problems
