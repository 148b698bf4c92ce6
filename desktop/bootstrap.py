"""The only composition root: puts audio, core and views together and takes them apart again."""

from __future__ import annotations

import logging
import os
import secrets
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from audio.engine import AudioEngine, AudioModels, EngineConfig
from audio.stt.chinese import ChineseScript
from audio.stt.settings import CostTable, RecogniserSettings
from audio.tts.pauses import Pauses
from audio.workers import ThreadWorker, Worker
from desktop.brain import BrainFactory, raise_all
from desktop.browser import SystemBrowser
from desktop.ears_numbers import ears_config
from desktop.event_socket import EventSocket
from desktop.faults import fault_text
from desktop.file_lock import DataFolderLock
from desktop.llm_host import LlmHost
from desktop.models import ModelStore
from desktop.options import RunOptions
from desktop.paths import DATABASE, ECHO_PATHS
from desktop.settings import Settings
from orchestrator.bus.bus import Bus
from orchestrator.bus.event_log import EventLog
from orchestrator.clock import Clock
from orchestrator.context.active_window import find_active_window
from orchestrator.context.sources import ClockSource, ContextSource, WindowSource
from orchestrator.contracts.commands import (
    Command,
    MuteMicrophone,
    MuteVoice,
    PushToTalk,
    Quit,
    Stop,
)
from orchestrator.contracts.dialogue import Brain, Llm
from orchestrator.contracts.errors import InputError, MynahError
from orchestrator.contracts.events import (
    AppError,
    AppExit,
    AppReady,
    ControlAck,
    Event,
    LlmEnded,
    LogOpen,
    OutputStateChanged,
    Payload,
)
from orchestrator.contracts.ids import IdFactory
from orchestrator.contracts.ports import ViewSink
from orchestrator.contracts.views import MuteView, NoticeView
from orchestrator.core import Core, CoreParts
from orchestrator.dialogue.known_sentences import KnownSentences
from orchestrator.generation import Generations
from orchestrator.llm.reply_text import ReplyText
from orchestrator.llm.unavailable import FailureNotice, code_of, local_failure
from orchestrator.policy_file import Policy, load_policy
from orchestrator.runtime import CoreThread
from orchestrator.store.database import Database

log = logging.getLogger(__name__)

EVENTS_SCHEMA = 1
_SHORT_ANSWERS = ("boolean", "integer", "number")


def engine_config(settings: Settings, *, seed: int | None) -> EngineConfig:
    """Translate settings into the engine's."""
    return EngineConfig(
        ears=ears_config(settings),
        recogniser=RecogniserSettings(languages=settings.languages, script=ChineseScript(settings.chinese_script)),
        costs=CostTable() if seed is not None else None,
        synth_cost_per_char_s=0.004 if seed is not None else None,
        input_name=settings.input_device,
        output_name=settings.output_device,
        extra_output_delay_s=settings.extra_output_delay_ms / 1000,
        is_hands_free=settings.talk_mode == "hands_free",
        volume=settings.volume,
        pauses=Pauses().scaled(settings.pauses),
    )


def context_sources(settings: Settings, clock: Clock) -> tuple[ContextSource, ...]:
    """Return what the settings let Mynah look at by itself; nothing by default."""
    sources: list[ContextSource] = []
    if "clock" in settings.context_sources:
        sources.append(ClockSource(clock=clock))
    if "window_title" in settings.context_sources:
        window = find_active_window()
        if window is None:
            log.warning("window_title: this desktop does not tell the active window (on X11 install xdotool)")
        else:
            sources.append(WindowSource(window=window))
    return tuple(sources)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Where time and work come from: real threads, or a simulation."""

    clock: Clock
    make_worker: Callable[[str], Worker]
    is_inline: bool = False
    mic_rate_hz: int = 48_000
    out_rate_hz: int = 48_000


class TraceSink:
    """An `EventSink` that writes facts into the events file without sending them to anyone."""

    def __init__(self, bus: Bus) -> None:
        """Write through `bus`."""
        self._bus = bus

    def post(self, event: Event) -> bool:
        """Write `event`."""
        self._bus.trace(event)
        return True


class Assembly:
    """The parts of one running program. Built in the thread that starts it; the parts have their own."""

    def __init__(
        self,
        *,
        options: RunOptions,
        timing: Timing,
        views: ViewSink,
        models: AudioModels,
        store: ModelStore,
        must_answer: bool = False,
        must_be_valid: bool = False,
        wait_for_llm: bool = False,
        on_llm_state: Callable[[str], None] | None = None,
        wrap_llm: Callable[[Llm], Llm] | None = None,
    ) -> None:
        """Build everything; nothing runs yet. Raises `MynahError` for what can't be built."""
        self.options = options
        self.settings = options.settings
        self.must_answer = must_answer
        self.timing = timing
        self.models = models
        settings = options.settings
        clock = timing.clock
        prefix = "" if options.seed is not None else secrets.token_hex(4)
        self.ids = IdFactory(prefix)
        policy = self._policy = self._read_policy()
        self.brains = BrainFactory(options.flow_layers, settings, clock, options.data, seed=options.seed)
        if must_be_valid:
            self.brains.require_valid()
        self.event_log = EventLog(
            clock, options.events, with_text=options.events_with_text, is_threaded=not timing.is_inline
        )
        self.bus = Bus(clock, self.ids, self.event_log, policy.table)
        self.event_log.on_failure = self._on_log_failure
        self.generations = Generations(self.ids, clock, self.bus.trace)
        self.database = Database(options.data / DATABASE, is_inline=timing.is_inline)
        self.llm = LlmHost(
            settings=settings,
            store=store,
            data=options.data,
            clock=clock,
            ids=self.ids,
            warm=self.brains.warm_messages,
            must_answer=must_answer,
            wait_for_local=wait_for_llm,
            on_state=on_llm_state,
            wrap=wrap_llm,
        )
        # Locked last of what may fail, so that a second try with other options finds the folder free.
        self._data_lock = DataFolderLock(options.data / "mynah.lock")
        self.engine = AudioEngine(
            clock=clock,
            ids=self.ids,
            events=self.bus,
            staleness=self.generations,
            models=models,
            config=replace(engine_config(settings, seed=options.seed), echo_paths=options.data / ECHO_PATHS),
            make_worker=timing.make_worker,
            mic_rate_hz=timing.mic_rate_hz,
            out_rate_hz=timing.out_rate_hz,
        )
        self.engine.recogniser.set_hotwords(self.brains.hotwords())
        self.engine.speech.set_voice_for(lambda language: self.brains.persona.voice_for(language))
        self._book = policy.book(self.brains.names)
        self.engine.ears.words.holds_turn = lambda text: self._book.holds_turn(text)
        self._known = KnownSentences(lambda: self._book)
        self._known.learn(self.brains.examples())
        self.engine.ears.words.is_complete = lambda text: text in self._known
        failures = FailureNotice()
        self.event_log.add_tap(
            lambda record: (
                failures.recovered()
                if record["type"] == LlmEnded.TYPE and record["payload"]["outcome"] == "ok"
                else None
            )
        )
        names = self.brains.names
        self._parts = CoreParts(
            clock=clock,
            ids=self.ids,
            event_log=self.event_log,
            database=self.database,
            speech=self.engine.speech,
            views=views,
            llm=self.llm,
            make_brain=self.brains.make,
            remake_brain=self._remake_brain,
            warm_brain=self.brains.warm,
            make_pipe=lambda: ReplyText(names),
            policy=policy,
            apology=lambda code, language: failures.sentence(
                local_failure(code_of(code)) if self.settings.llm == "local" else code_of(code),
                language or self.settings.languages[0],
            ),
            names=names,
            session_idle_s=settings.session_idle_min * 60,
            load_policy=lambda: self._policy,
            page_opener=SystemBrowser(),
            may_speculate=settings.answer_ahead,
            thinking_cue=lambda language: self.brains.thinking_cue(language, is_wanted=self.settings.thinking_cue),
            attention_window_s=settings.attention_s if settings.attention == "addressed" else None,
            on_expected=self._expect_answer,
            fault_words=lambda code: fault_text(code, "", self.settings.languages[0]),
            context_sources=() if timing.is_inline else context_sources(settings, clock),
        )
        self.core: Core | None = None
        self._on_quit: Callable[[], None] = lambda: None

    def _read_policy(self) -> Policy:
        return load_policy(
            [layer / "policy.yml" for layer in self.options.flow_layers if (layer / "policy.yml").is_file()]
        )

    def _expect_answer(self, kind: str | None) -> None:
        self.engine.ears.words.is_short_answer_due = kind in _SHORT_ANSWERS

    def _remake_brain(self) -> Brain:
        """Read all files of the layers again; raises `InputError` with all their faults, and changes nothing then."""
        faults: list[InputError] = []
        policy, before = self._policy, (self.brains.persona, self.brains.loaded)
        try:
            policy = self._read_policy()
        except InputError as error:
            faults.append(error)
        try:
            brain = self.brains.remake()
        except InputError as error:
            raise_all([*faults, error])
            raise
        if faults:
            self.brains.persona, self.brains.loaded = before
            raise_all(faults)
        self._policy = policy
        self._book = policy.book(self.brains.names)
        self._known.learn(self.brains.examples())
        return brain

    def _on_log_failure(self, kind: str, error: Exception) -> None:
        """Tell the user that the events file is not whole; the conversation goes on."""
        why = error.strerror if isinstance(error, OSError) else type(error).__name__
        failed = AppError(
            code="events_failed", part="events", recoverable=True, message=f"the events file has gaps ({kind}: {why})"
        )
        self.bus.post(Event(payload=failed, source="events"))

    def tell(self, error: MynahError) -> None:
        """Show the user what does not work while the rest goes on."""
        self._parts.views.show(NoticeView(code=error.code, text=error.message, severity="error"))

    def use(self, settings: Settings) -> None:
        """Take settings over that count from the next answer on: languages, and what is said of the model. Any thread.

        The brain follows with the next `Reload`.
        """
        self.settings = settings
        self.brains.use(settings)

    def release_data(self) -> None:
        """Let another program have the data folder."""
        self._data_lock.release()

    def make_core(self) -> Core:
        """Build the core; on its own loop's thread."""
        self.core = Core(self._parts, self.bus, self.generations)
        return self.core

    def on_quit(self, call: Callable[[], None]) -> None:
        """Let `call` end the program."""
        self._on_quit = call

    # --- records ----------------------------------------------------------------------------------------

    def record(self, payload: Payload) -> None:
        """Write a fact about the program into the events file."""
        self.event_log.record(Event(payload=payload, source="app"))

    def record_open(self) -> None:
        """Write the first record."""
        clock = self.timing.clock
        heard, spoken = self.engine.latencies()
        self.record(
            LogOpen(
                schema=EVENTS_SCHEMA,
                wall=clock.wall().isoformat(),
                monotonic_origin=clock.monotonic_s(),
                rates={"input": self.timing.mic_rate_hz, "output": self.timing.out_rate_hz, "recogniser": 16_000},
                in_latency_s=heard,
                out_latency_s=spoken,
            )
        )

    def record_ready(self) -> None:
        """Write that everything is loaded and listening."""
        settings = self.options.settings
        self.record(
            AppReady(
                devices=self.engine.device_names(),
                models={
                    "stt": settings.whisper if self.models.final is not None else None,
                    "voice": self.models.voices[0].name if self.models.voices else None,
                    "llm": self.llm.name,
                },
            )
        )
        self.event_log.record(
            Event(payload=OutputStateChanged(state="listening", at_s=self.timing.clock.monotonic_s()), source="app")
        )

    def record_exit(self, code: int) -> None:
        """Write the last record and close the file."""
        counters = {
            **self.engine.stats(),
            **{f"bus_{key}": value for key, value in sorted(self.bus.counters.items())},
            **{f"events_failed:{key}": value for key, value in sorted(self.event_log.failures.items())},
        }
        self.record(AppExit(code=code, counters=counters))
        self.event_log.close()

    # --- commands ---------------------------------------------------------------------------------------

    def carry_out(self, command: Command, to_core: Callable[[Command], bool]) -> bool:
        """Send a command where it belongs: sound commands straight to the engine, the rest to the core."""
        match command:
            case PushToTalk():
                self.engine.push_to_talk(down=command.down)
                return True
            case MuteMicrophone():
                self.engine.mute_microphone(command.on)
                self._parts.views.show(MuteView(direction="input", on=command.on))
                return True
            case MuteVoice():
                self.engine.speech.set_muted(command.on)
                self._parts.views.show(MuteView(direction="output", on=command.on))
                return True
            case Quit():
                self._on_quit()
                return True
            case Stop():
                self.engine.stop_sound()
                return to_core(command)
            case _:
                return to_core(command)

    def acknowledge(self, ack: ControlAck) -> None:
        """Answer the control channel: in the events file, or on standard output where there is none."""
        event = Event(payload=ack, source="control")
        self.event_log.record(event)


class RunningProgram:
    """The conversation on real threads and devices: headless or behind a window."""

    def __init__(self, assembly: Assembly) -> None:
        """Run `assembly`."""
        self.assembly = assembly
        self._thread = CoreThread(assembly.make_core)
        settings = assembly.options.settings
        self.event_socket: EventSocket | None = None
        if settings.event_socket is not None:
            self.event_socket = EventSocket(
                port=settings.event_socket,
                data=assembly.options.data,
                clock=assembly.timing.clock,
                submit=self.submit,
            )
        self._is_started = False
        self._is_stopped = False
        # Called when nothing is carried out any more, before the record ends.
        self.ending: list[Callable[[], None]] = []

    def start(self, *, with_microphone: bool = True, with_loudspeaker: bool = True) -> None:
        """Prepare the core, open the devices and begin.

        Raises `InputError` for an unusable model, or an unknown device.
        """
        assembly = self.assembly
        self._thread.start()
        assembly.engine.start(with_microphone=with_microphone, with_loudspeaker=with_loudspeaker)
        assembly.record_open()
        self._is_started = True
        self._thread.begin()
        self._open_event_socket()
        assembly.record_ready()

    def _open_event_socket(self) -> None:
        """Listen for other programs; behind a window a port that can't be had is told and left out."""
        if self.event_socket is None:
            return
        try:
            self.event_socket.start()
        except InputError as error:
            if self.assembly.must_answer:
                raise
            self.assembly.tell(error)
            return
        sys.stderr.write(f"mynah: the token of the event socket is in {self.event_socket.token_path}\n")

    def submit(self, command: Command) -> bool:
        """Carry out a command; False while starting or ending. Any thread."""
        if self._is_stopped:
            return False
        return self.assembly.carry_out(command, self._thread.submit)

    def run_on_core(self, work: Callable[[], Awaitable[object]]) -> object:
        """Run `work` on the core loop and wait for it. Not from the core's thread."""
        return self._thread.run(work)

    def stop(self, code: int = 0) -> None:
        """End everything in bounded time (under 3 s), the core first, so that what was heard is stored."""
        if self._is_stopped:
            return
        self._is_stopped = True
        if self.event_socket is not None:
            self.event_socket.stop()
        if self._is_started:
            self.assembly.engine.stop_listening()
        if not self._thread.stop():
            log.warning("the core did not end in time")
        self.assembly.engine.stop()
        self.assembly.database.close()
        self.assembly.release_data()
        for call in self.ending:
            call()
        if self._is_started:
            self.assembly.record_exit(code)
        else:
            self.assembly.event_log.close()

    def state(self) -> Mapping[str, Any]:
        """Return what can be told about the program without a window."""
        core = self.assembly.core
        active = core.turns.active if core is not None else None
        return {
            "pid": os.getpid(),
            "generation": active.generation_id if active is not None else None,
            "generation_state": active.state.value if active is not None else None,
            "devices": self.assembly.engine.device_names(),
            "counters": self.assembly.engine.stats(),
        }


def real_timing(clock: Clock) -> Timing:
    """Return timing on real threads."""
    return Timing(clock=clock, make_worker=lambda name: ThreadWorker(name, capacity=16))
