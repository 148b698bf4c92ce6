"""Figures of the running program without a model (rules and rails) and with its window and the offline model."""

from __future__ import annotations

import statistics
import threading
import time
from collections import defaultdict
from collections.abc import Sequence

from bench.live import LANGUAGES, ask
from bench.machine import cpu_s, pss_mb
from bench.plan import Setting
from bench.room import Failed, Room, Talk, finish
from bench.rows import Budget, Row
from bench.stimuli import Stimulus, spoken, spoken_by_voice
from rigs.program_rig import Program
from rigs.screen_rig import ScreenRig
from rigs.sound_rig import SoundRig

from desktop.models import ModelStore

RULE_BUDGET = Budget(p50=550, p95_over_p50=1.6)
LOCAL_BUDGET = Budget(p50=950, p95_over_p50=1.6)
PSS_BUDGET_MB = 1536.0
_RAIL_TEXT = "All right, I will look after that for you."
_RAILS = f"""\
bot_messages:
  bench answer: ["{_RAIL_TEXT}"]
rails:
  bench rail:
    kind: rail
    priority: 9.0
    steps: [{{user: "..."}}, {{bot: bench answer}}]
"""


class RuleSection:
    """The program with no language model: what rules and rails answer."""

    name = "rules"

    def __init__(self, setting: Setting) -> None:
        """Prepare."""
        self._set = setting
        self._rail: dict[str, list[float]] = defaultdict(list)
        self._again: list[float] = []
        self._rail_note = ""

    def run(self) -> None:
        """Ask for the last answer again, then ask what a rail answers."""
        folder = self._set.folder / "rules"
        flows = folder / "flows"
        flows.mkdir(parents=True)
        (flows / "rails.yml").write_text(_RAILS, encoding="utf-8")
        with SoundRig() as rig:
            room = Room(rig=rig, folder=folder, keep=self._set.keep)
            self._set.tell.say("starting the program (no window, no language model)")
            arguments = ["run", "--headless", "--llm", "none", "--flows", str(flows)]
            with Program(arguments, folder=folder, env=rig.env) as program:
                talk = Talk(program)
                with self._set.tell.trial("a rail"):
                    self._ask_rail(room, talk)
                voice = ModelStore().path("piper-en_US-joe-medium") / "voice.onnx"
                again = spoken_by_voice("Say that again.", voice)
                for _ in range(self._set.plan.rule_replies):
                    with self._set.tell.trial("say that again"):
                        delay_ms, _, _ = ask(room, talk, again)
                        self._again.append(delay_ms)
                        self._set.tell.say(f"reply by rule, say that again: {delay_ms:.0f} ms")
                self._set.keep_events(program.events_path, "rules")
                self._set.tell.failures += finish(talk, self._set.tell.say)

    def _ask_rail(self, room: Room, talk: Talk) -> None:
        """Ask with real recordings while a rail of the bench answers everything."""
        if self._set.recordings is None:
            raise Failed("no recordings")
        for number in range(self._set.plan.rule_replies):
            for language in LANGUAGES:
                names = self._set.recordings.utterances(language, shortest_s=1.2, longest_s=4.5)
                stimulus = self._set.recordings.load(names[number % len(names)])
                delay_ms, _, mark = ask(room, talk, stimulus)
                said = [r["payload"]["text"] for r in talk.since("intent:state", mark)]
                if not any(text in _RAIL_TEXT and text for text in said):
                    self._rail_note = "the answer was not the rail's: rails are not wired in"
                    raise Failed(self._rail_note)
                self._rail[language].append(delay_ms)
                self._set.tell.say(f"reply by rail, {stimulus.name}: {delay_ms:.0f} ms")

    def rows(self) -> Sequence[Row]:
        """Return what was measured so far."""
        rows = [
            _reply_row(f"rail, predefined text, {title}", self._rail[language], RULE_BUDGET, note=self._rail_note)
            for language, title in LANGUAGES.items()
        ]
        condition = "rule, “say that again” spoken by Piper"
        return [*rows, _reply_row(condition, self._again, RULE_BUDGET, stimuli="synthetic")]


class WindowSection:
    """The whole program: window on a virtual screen, offline model, memory over time."""

    name = "window"

    def __init__(self, setting: Setting) -> None:
        """Prepare."""
        self._set = setting
        self._window_s: list[float] = []
        self._listening_s: list[float] = []
        self._replies: list[float] = []
        self._stall_ms: list[float] = []
        self._stalls = 0
        self._loading_ms: list[float] = []
        self._paint_ms: list[float] = []
        self._paint_p95_ms: list[float] = []
        self._pss_mb: list[float] = []
        self._growth: list[float] = []
        self._minutes = 0.0
        self._xruns: list[float] = []
        self._cpu: tuple[list[float], list[float]] = ([], [])

    def run(self) -> None:
        """Start the window, talk for the planned time, end."""
        folder = self._set.folder / "window"
        folder.mkdir()
        with SoundRig() as rig, ScreenRig() as screen:
            room = Room(rig=rig, folder=folder, keep=self._set.keep)
            self._set.tell.say("starting the program (window, offline language model)")
            program = Program(["--llm", "local"], folder=folder, env={**rig.env, **screen.env})
            watch = _WindowWatch(screen)
            watch.start()
            try:
                with program:
                    self._listening_s.append(program.ready_after_s)
                    watch.join(30)
                    if watch.seen_after_s is not None:
                        self._window_s.append(watch.seen_after_s)
                    talk = Talk(program)
                    self._talk(room, talk, screen)
                    self._set.keep_events(program.events_path, "window")
                    self._set.tell.failures += finish(talk, self._set.tell.say)
                    exits = program.of("app:exit")
                    if exits and "xruns" in exits[-1]["payload"]["counters"]:
                        self._xruns.append(float(exits[-1]["payload"]["counters"]["xruns"]))
            finally:
                watch.stop.set()
                watch.join(10)

    def _talk(self, room: Room, talk: Talk, screen: ScreenRig) -> None:
        """Have replies measured, then open the flow editor and keep model and voice busy until the time is over."""
        assert talk.program.process is not None
        pid = talk.program.process.pid
        began_s = time.monotonic()
        for number in range(self._set.plan.local_replies):
            with self._set.tell.trial("reply of the offline model"):
                delay_ms, _, _ = ask(room, talk, self._question(number))
                self._replies.append(delay_ms)
                self._set.tell.say(f"reply of the offline model: {delay_ms:.0f} ms")
        self._pss_mb.append(pss_mb(pid))
        self._set.tell.say(f"memory {self._pss_mb[-1]:.0f} MB; talking on for {self._set.plan.soak_s:.0f} s")
        screen.xdotool("search", "--name", "^Mynah$", "windowactivate", "--sync", "key", "ctrl+e")
        number = 0
        talks_s, used = time.monotonic(), cpu_s(pid)
        while time.monotonic() - began_s < self._set.plan.soak_s and talk.is_alive:
            number += 1
            with self._set.tell.trial("talking on"):
                mark = talk.mark()
                talk.program.send(cmd="text", text=f"Tell me story number {number} about the sea.")
                talk.wait("output:first_sound", mark, 15)
                for _ in range(3):
                    time.sleep(1.5)
                    self._pss_mb.append(pss_mb(pid))
        self._minutes = (time.monotonic() - began_s) / 60
        spent = {member: s - used.get(member, 0.0) for member, s in cpu_s(pid).items()}
        cores = [s / (time.monotonic() - talks_s) for s in (spent.pop(pid, 0.0), sum(spent.values()))]
        for share, kept in zip(cores, self._cpu, strict=True):
            kept.append(100 * share)
        self._growth += growth_percent(self._pss_mb)
        mark = talk.mark()
        talk.program.send(cmd="dump")
        state = talk.wait("control:ack", mark, 10, cmd="dump")["payload"]["result"]["state"]
        self._stalls = int(state["stalls"]["count"])
        self._loading_ms.append(float(state["loadingStalls"]["worst_ms"]))
        self._stall_ms.append(float(state["stalls"]["worst_ms"]))
        self._paint_ms.append(float(state["paint"]["mean_ms"]))
        self._paint_p95_ms.append(float(state["paint"]["p95_ms"]))

    def _question(self, number: int) -> Stimulus:
        if self._set.recordings is None:
            return spoken("What is the weather like today?", "en")
        names = self._set.recordings.utterances("en", shortest_s=1.2, longest_s=4.5)
        return self._set.recordings.load(names[number % len(names)])

    def rows(self) -> Sequence[Row]:
        """Return what was measured so far."""
        minutes = f"{self._minutes:.1f} min, offline model busy, flow editor open"
        note = f"{self._stalls} stalls over 50 ms" if self._stall_ms else ""
        memory = "Whisper base, Piper voice, window, SmolLM2 child"
        highest = [max(self._pss_mb)] if self._pss_mb else []
        return [
            _reply_row("smallest local model (SmolLM2), English", self._replies, LOCAL_BUDGET),
            _component("start → window", "models in cache, virtual screen", self._window_s, "s", Budget(worst=2.0)),
            _component("start → listening", "models in cache", self._listening_s, "s", Budget(worst=6.0)),
            _component("GUI thread: longest stall", "while loading", self._loading_ms, "ms", Budget(worst=50.0)),
            _component("GUI thread: longest stall", minutes, self._stall_ms, "ms", Budget(worst=50.0), note=note),
            _component(
                "avatar: paint time a frame, mean",
                "software rendering, flow editor open",
                self._paint_ms,
                "ms",
                Budget(share=3.0),
            ),
            _component("avatar: paint time a frame, p95 of frames", "software rendering", self._paint_p95_ms, "ms"),
            _component("CPU of the program, of one core", f"{minutes}, talking on", self._cpu[0], "%"),
            _component("CPU of its children (model, checks), of one core", minutes, self._cpu[1], "%"),
            _component("xruns", minutes, self._xruns, "count", Budget(share=1.0)),
            _component("proportional set size", memory, highest, "MB", Budget(share=PSS_BUDGET_MB)),
            _component("growth of it after warm-up", f"{self._minutes:.1f} min", self._growth, "%", Budget(share=3.0)),
        ]


def growth_percent(samples_mb: Sequence[float]) -> list[float]:
    """Return by how much the last fifth of the samples is above the second fifth; nothing for fewer than ten.

    The first fifth is the warm-up: caches fill and models touch their memory for the first time.
    """
    fifth = len(samples_mb) // 5
    if fifth < 2:
        return []
    before, after = statistics.median(samples_mb[fifth : 2 * fifth]), statistics.median(samples_mb[-fifth:])
    return [100 * (after / before - 1)]


class _WindowWatch(threading.Thread):
    """Looks for the window from the moment it is started; `seen_after_s` is None until it is visible."""

    def __init__(self, screen: ScreenRig) -> None:
        super().__init__(name="bench-window-watch", daemon=True)
        self._screen = screen
        self.stop = threading.Event()
        self.seen_after_s: float | None = None

    def run(self) -> None:
        began_s = time.monotonic()
        while not self.stop.is_set():
            try:
                self._screen.wait_for_window("Mynah|mynah|小八", timeout_s=0.1)
            except (AssertionError, OSError):
                continue
            self.seen_after_s = time.monotonic() - began_s
            return


def _reply_row(
    condition: str, values: Sequence[float], budget: Budget, *, stimuli: str = "recorded", note: str = ""
) -> Row:
    return Row(
        name="end of speech → first audible reply",
        condition=condition,
        values=tuple(values),
        unit="ms",
        budget=budget,
        source="loudspeaker",
        stimuli=stimuli,  # type: ignore[arg-type] # one of the two kinds
        note=note,
    )


def _component(
    name: str, condition: str, values: Sequence[float], unit: str, budget: Budget | None = None, note: str = ""
) -> Row:
    return Row(
        name=name,
        condition=condition,
        values=tuple(values),
        unit=unit,
        budget=budget,
        source="component",
        stimuli="synthetic",
        note=note,
    )
