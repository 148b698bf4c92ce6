"""`mynah simulate`: the same engine between sound files, in real or virtual time, without a sound server."""

from __future__ import annotations

import argparse
import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from audio.engine import AudioModels
from audio.pcm import read_wav, resample, write_wav
from audio.ports import Samples
from audio.simulated import BLOCK_S, MIC_RATE_HZ, OUT_BLOCK, OUT_RATE_HZ, RoomConfig, SimulatedRoom, active_rms
from audio.tts.voice import SpeechSynthesiser
from audio.workers import ThreadWorker, VirtualScheduler, VirtualWorker, Worker
from desktop.bootstrap import Assembly, RunningProgram, Timing
from desktop.headless import NoWindow
from desktop.models import ModelStore
from desktop.options import RunOptions, add_common_options, run_options
from desktop.paced_llm import PacedLlm, WaitCounter
from desktop.shared_options import finite
from desktop.sound_models import load_all
from orchestrator.clock import Clock, SystemClock, VirtualClock
from orchestrator.contracts.commands import Command
from orchestrator.contracts.dialogue import Llm
from orchestrator.contracts.errors import InputError
from orchestrator.contracts.ports import ViewSink
from orchestrator.virtual_loop import VirtualTimeLoop

OUT_LATENCY_S = 0.02
_IDLE_S = 3.0
_LONGEST_AFTER_USER_S = 120.0
_VIRTUAL_START_S = 1000.0
_LEVEL_TEXT = "This is how loud I usually talk to you."


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationInput:
    """What is simulated. `user` is at 16 kHz; `at` are commands with the second of the user's track they come at."""

    user: Samples
    room: RoomConfig
    at: tuple[tuple[float, Command], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationResult:
    """What came out: the loudspeaker's track at 48 kHz, and when on the clock both tracks begin."""

    character: Samples
    begin_s: float


def load_track(path: Path) -> Samples:
    """Return a sound file at 16 kHz mono. Raises `InputError` for what is no usable wav."""
    samples, rate_hz = read_wav(path)
    return resample(samples, rate_hz, MIC_RATE_HZ)


def voice_level(voices: tuple[SpeechSynthesiser, ...]) -> float:
    """Return the RMS of the character's speech, measured on one sentence."""
    if not voices:
        return 0.1
    said = voices[0].synthesise(_LEVEL_TEXT, language="en" if voices[0].speaks("en") else "zh")
    return active_rms(said.pcm, said.rate_hz) or 0.1


class _Driver:
    """Moves sound between room and engine, 10 ms at a time, and knows when everything is over."""

    def __init__(
        self, assembly: Assembly, clock: Clock, given: SimulationInput, submit: Callable[[Command], bool]
    ) -> None:
        self._assembly = assembly
        self._engine = assembly.engine
        self._clock = clock
        self._submit = submit
        self._at = sorted(given.at, key=lambda item: item[0])
        self.room = SimulatedRoom(given.user, given.room, voice_rms=voice_level(assembly.models.voices))
        self._out: Samples = np.zeros(OUT_BLOCK, np.float32)
        self._begin_s = clock.monotonic_s()
        self._blocks = 0
        self._idle_since_s: float | None = None
        self._user_over_s: float | None = None

    @property
    def begin_s(self) -> float:
        """When the tracks begin."""
        return self._begin_s

    @property
    def next_s(self) -> float:
        """When the next block is due."""
        return self._begin_s + (self._blocks + 1) * BLOCK_S

    def step(self, now_s: float) -> None:
        """Carry one block each way; the microphone's is over at `next_s`."""
        block_begin_s = self._begin_s + self._blocks * BLOCK_S
        while self._at and self._at[0][0] <= self._blocks * BLOCK_S:
            self._submit(self._at.pop(0)[1])
        self._engine.render(self._out, block_begin_s + OUT_LATENCY_S)
        self.room.play(self._out)
        self._engine.hear(self.room.listen(), block_begin_s)
        self._blocks += 1
        self._engine.loop.step(now_s)

    def is_over(self, now_s: float) -> bool:
        """Whether the user's file is over and nothing has happened for three seconds."""
        if not self.room.is_user_over or self._at:
            return False
        self._user_over_s = self._user_over_s or now_s
        core = self._assembly.core
        quiet = (
            core is not None
            and core.conversation.is_quiet
            and self._engine.is_output_idle
            and not self._engine.is_working
        )
        if not quiet:
            self._idle_since_s = None
            return now_s - self._user_over_s > _LONGEST_AFTER_USER_S
        self._idle_since_s = self._idle_since_s or now_s
        return now_s - self._idle_since_s >= _IDLE_S


def run_virtual(
    options: RunOptions,
    given: SimulationInput,
    *,
    models: AudioModels | None = None,
    views: ViewSink | None = None,
    wrap_llm: Callable[[Llm], Llm] | None = None,
) -> SimulationResult:
    """Run in virtual time, in this thread; the clock stands still or moves with the cost of model calls."""
    clock, real = VirtualClock(_VIRTUAL_START_S), SystemClock()
    scheduler = VirtualScheduler(clock)
    store = ModelStore()
    loaded = models or load_all(options.settings, store, real, lambda part: None, options.seed)
    calls = WaitCounter()
    is_seeded = options.seed is not None
    loop = VirtualTimeLoop(clock, real, lambda: calls.open > 0, is_frozen=is_seeded)

    def make_worker(name: str) -> Worker:
        return VirtualWorker(name, scheduler, real, capacity=16)

    timing = Timing(
        clock=clock, make_worker=make_worker, is_inline=True, mic_rate_hz=MIC_RATE_HZ, out_rate_hz=OUT_RATE_HZ
    )
    assembly = Assembly(
        options=options,
        timing=timing,
        views=views or NoWindow(),
        models=loaded,
        store=store,
        must_answer=True,
        must_be_valid=True,
        wait_for_llm=True,
        wrap_llm=wrap_llm or (lambda llm: PacedLlm(llm, calls, has_fixed_costs=is_seeded)),
    )
    assembly.engine.connect_simulation()

    async def main() -> SimulationResult:
        core = assembly.make_core()
        assembly.record_open()
        with calls:
            await core.open()
        assembly.record_ready()

        def to_core(command: Command) -> bool:
            core.handle(command)
            return True

        driver = _Driver(assembly, clock, given, lambda command: assembly.carry_out(command, to_core))
        while not driver.is_over(clock.monotonic_s()):
            due_s = driver.next_s
            pending_s = scheduler.next_s()
            wake_s = due_s if pending_s is None else min(due_s, pending_s)
            delay_s = wake_s - clock.monotonic_s()
            await asyncio.sleep(max(0.0, delay_s))
            scheduler.run_due()
            if clock.monotonic_s() >= due_s - 1e-9:
                driver.step(clock.monotonic_s())
        assembly.engine.stop_listening()
        with calls:
            await core.close()
        return SimulationResult(character=driver.room.character, begin_s=driver.begin_s)

    try:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            result = runner.run(main())
    except BaseException:
        _close(assembly, 3)
        raise
    _close(assembly, 0)
    return result


def _close(assembly: Assembly, code: int) -> None:
    assembly.engine.stop()
    assembly.database.close()
    assembly.release_data()
    assembly.record_exit(code)


def run_real(options: RunOptions, given: SimulationInput, *, models: AudioModels | None = None) -> SimulationResult:
    """Run in real time on the program's own threads, with a pacing thread in place of the devices."""
    clock = SystemClock()
    store = ModelStore()
    loaded = models or load_all(options.settings, store, clock, lambda part: None)
    timing = Timing(
        clock=clock,
        make_worker=lambda name: ThreadWorker(name, capacity=16),
        mic_rate_hz=MIC_RATE_HZ,
        out_rate_hz=OUT_RATE_HZ,
    )
    assembly = Assembly(
        options=options,
        timing=timing,
        views=NoWindow(),
        models=loaded,
        store=store,
        must_answer=True,
        must_be_valid=True,
        wait_for_llm=True,
    )
    assembly.engine.connect_simulation()
    program = SimulatedProgram(assembly)
    program.start_core()
    driver = _Driver(assembly, clock, given, program.submit)
    pause = threading.Event()
    try:
        while not driver.is_over(clock.monotonic_s()):
            delay_s = driver.next_s - clock.monotonic_s()
            if delay_s > 0:
                pause.wait(delay_s)
            driver.step(clock.monotonic_s())
    finally:
        program.stop()
    return SimulationResult(character=driver.room.character, begin_s=driver.begin_s)


class SimulatedProgram(RunningProgram):
    """A running program whose devices are simulated."""

    def start_core(self) -> None:
        """Start the core without opening devices."""
        self._thread.start(timeout_s=150.0)
        self.assembly.record_open()
        self._is_started = True
        self._thread.begin()
        self.assembly.record_ready()


def simulate_main(argv: list[str]) -> int:
    """Run the command line `mynah simulate`."""
    parser = argparse.ArgumentParser(prog="mynah simulate", description="Run the conversation between sound files.")
    parser.add_argument("--mic", type=Path, required=True, metavar="WAV", help="what the user says")
    parser.add_argument("--out", type=Path, required=True, metavar="WAV", help="where the character's voice is written")
    parser.add_argument(
        "--events", type=Path, metavar="FILE", help="write everything that happens into FILE (JSON lines)"
    )
    parser.add_argument("--events-no-text", action="store_true", help="blank what was said in the events file")
    parser.add_argument(
        "--echo-db",
        type=finite,
        metavar="DB",
        help="echo of the character in the microphone, relative to the user's speech",
    )
    parser.add_argument("--rir", type=Path, metavar="WAV", help="impulse response of the room")
    parser.add_argument(
        "--delay-ms", type=finite, default=40.0, metavar="MS", help="from loudspeaker to microphone (default 40)"
    )
    parser.add_argument(
        "--drift-ppm", type=finite, default=0.0, metavar="PPM", help="how much faster the microphone's clock runs"
    )
    parser.add_argument("--noise", type=Path, metavar="WAV", help="noise in the room")
    parser.add_argument("--snr-db", type=finite, default=20.0, metavar="DB", help="speech over noise (default 20)")
    parser.add_argument("--virtual", action="store_true", help="as fast as the machine can, on a virtual clock")
    add_common_options(parser)
    args = parser.parse_args(argv)
    options = run_options(args, strict=True)
    if args.delay_ms < 0 or args.delay_ms > 2000:
        raise InputError("delay_invalid", "--delay-ms must be from 0 to 2000")
    room = RoomConfig(
        echo_db=args.echo_db,
        impulse_response=load_track(args.rir) if args.rir is not None else None,
        delay_s=args.delay_ms / 1000,
        drift_ppm=args.drift_ppm,
        noise=load_track(args.noise) if args.noise is not None else None,
        snr_db=args.snr_db,
    )
    if not args.out.parent.is_dir():
        raise InputError("out_unwritable", f"--out: there is no folder {args.out.parent}")
    given = SimulationInput(user=load_track(args.mic), room=room)
    result = run_virtual(options, given) if args.virtual else run_real(options, given)
    write_wav(args.out, result.character, OUT_RATE_HZ)
    return 0
