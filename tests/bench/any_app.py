"""Measures any program with a microphone and a loudspeaker: what it does when it is interrupted, from outside.

Nothing is known of the program but its sound: it runs on the virtual sound card, is asked something, and while it
answers somebody interrupts, coughs or says "mm-hm". All figures come from recordings of its two devices.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path

from bench.machine import machine
from bench.plan import Teller
from bench.room import Failed, Room
from bench.rows import Row, markdown, share_row, table
from bench.scorer import first_sound, is_sounding, reply_after, speech_level_db, yielding
from bench.stimuli import BACKCHANNELS, MAKERS, Recordings, Stimulus, spoken, synthetic
from bench.story import STORY
from rigs.scripted_llm import Answer, ScriptedLlm
from rigs.sound_rig import SoundRig, missing_tools

ROOT = Path(__file__).resolve().parent.parent.parent
LANGUAGES = {"en": "English", "zh": "Chinese"}
_ANSWER_WITHIN_S = 30.0
_SLOW_S = 6.0
_GOES_ON_WITHIN_S = 5.0
_OWN_VOICE_S = 10.0
KINDS = ("own-voice", "interruptions", "noises", "backchannels")
ENDPOINT = "{llm}"
"""Stands in the command for the address of an endpoint that tells a long story."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trials:
    """How many of each."""

    interruptions: int
    disturbances: int
    backchannels: int


FULL = Trials(interruptions=8, disturbances=12, backchannels=6)
QUICK = Trials(interruptions=1, disturbances=2, backchannels=1)


@dataclass(slots=True)
class Figures:
    """What was measured so far; times in ms."""

    down: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    silent: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    yielded: dict[str, list[bool]] = field(default_factory=lambda: defaultdict(list))
    goes_on: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    replies: list[float] = field(default_factory=list)
    own_voice: list[float] = field(default_factory=list)


class AnyApp:
    """A run against one command."""

    def __init__(
        self,
        command: Sequence[str],
        recordings: Recordings,
        tell: Teller,
        *,
        seed: int,
        echo_db: float | None,
        kinds: Sequence[str] = KINDS,
    ) -> None:
        """Measure `command`; `echo_db` lets its microphone hear its loudspeaker. `kinds`: some of `KINDS`."""
        self._command = command
        self._kinds = kinds
        self._recordings = recordings
        self._tell = tell
        self._seed = seed
        self._echo_db = echo_db
        self.found = Figures()

    def run(self, trials: Trials, *, ready_s: float, keep: Path | None = None) -> None:
        """Start the program, go through the trials, end it. Raises `Failed` if it never speaks."""
        with tempfile.TemporaryDirectory(prefix="barge-in-bench-") as folder, SoundRig() as rig:
            room = Room(rig=rig, folder=Path(folder), keep=keep)
            if self._echo_db is not None:
                rig.set_echo(self._echo_db)
            with (Path(folder) / "app.log").open("wb") as log:
                program = subprocess.Popen(
                    self._command,
                    env={**os.environ, **rig.env},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            try:
                self._wait_ready(program, ready_s)
                self._trials(room, program, trials)
            finally:
                _end(program)

    def _wait_ready(self, program: subprocess.Popen[bytes], ready_s: float) -> None:
        self._tell.say(f"started; waiting {ready_s:g} s until it listens")
        deadline_s = time.monotonic() + ready_s
        while time.monotonic() < deadline_s:
            if program.poll() is not None:
                raise Failed(f"the program ended with {program.returncode} before it listened")
            time.sleep(0.1)

    def _trials(self, room: Room, program: subprocess.Popen[bytes], trials: Trials) -> None:
        if self._echo_db is not None and "own-voice" in self._kinds:
            with self._tell.trial("own voice"):
                self._own_voice(room)
        for number in range(trials.interruptions if "interruptions" in self._kinds else 0):
            for language in LANGUAGES:
                names = self._recordings.utterances(language, shortest_s=1.2, longest_s=4.5)
                stimulus = self._recordings.load(names[number % len(names)])
                with self._tell.trial(stimulus.name):
                    self._interrupt(room, stimulus)
        for kind, stimulus in self._disturbances(trials):
            with self._tell.trial(stimulus.name):
                self._disturb(room, kind, stimulus)
            if program.poll() is not None:
                raise Failed(f"the program ended with {program.returncode}")

    def _make_it_talk(self, room: Room) -> None:
        """Ask something and wait for the answer to sound; an answer that still sounds is good enough."""
        with room.recorded() as taken:
            time.sleep(0.4)
        now_s = taken.speaker.start_s + len(taken.speaker.samples) / taken.speaker.rate_hz
        if is_sounding(taken.speaker, now_s - 0.35, now_s):
            return
        question = self._recordings.load("en_az_weather")
        began_s = time.monotonic()
        while time.monotonic() - began_s < _ANSWER_WITHIN_S:
            with room.recorded() as taken:
                room.play(question, taken)
                time.sleep(4.0)
            heard = taken.find(question)
            delay_s = reply_after(taken.speaker, heard.end_at_s, onset_at_s=heard.onset_at_s)
            if delay_s is not None:
                self.found.replies.append(1000 * delay_s)
                return
            # Asked again at once, a slow program would be interrupted just as it begins.
            with room.recorded() as late:
                time.sleep(_SLOW_S)
            if is_sounding(late.speaker, late.speaker.start_s, late.speaker.start_s + _SLOW_S):
                return
        raise Failed("it does not answer")

    def _interrupt(self, room: Room, stimulus: Stimulus) -> None:
        self._make_it_talk(room)
        key = LANGUAGES[stimulus.language]
        with room.recorded() as taken:
            time.sleep(1.2)
            room.play(stimulus, taken)
            time.sleep(1.2)
        heard = taken.find(stimulus)
        before_db = speech_level_db(taken.speaker, heard.onset_at_s - 1.2, heard.onset_at_s)
        if before_db is None or not is_sounding(taken.speaker, heard.onset_at_s - 0.3, heard.onset_at_s + 0.03):
            raise Failed("it was silent before the interruption")
        gave = yielding(taken.speaker, heard.onset_at_s, reference_db=before_db)
        self.found.yielded[key].append(gave.silent_s is not None)
        for times, value in ((self.found.down, gave.down_s), (self.found.silent, gave.silent_s)):
            if value is not None:
                times[key].append(1000 * value)
        self._tell.say(f"interruption, {stimulus.name}: down {_ms(gave.down_s)}, silent {_ms(gave.silent_s)}")

    def _disturb(self, room: Room, kind: str, stimulus: Stimulus) -> None:
        self._make_it_talk(room)
        with room.recorded() as taken:
            time.sleep(0.8)
            room.play(stimulus, taken)
            time.sleep(_GOES_ON_WITHIN_S)
        heard = taken.find(stimulus)
        if not is_sounding(taken.speaker, heard.onset_at_s - 0.3, heard.onset_at_s + 0.03):
            raise Failed("it was silent before the disturbance")
        end_s = taken.speaker.start_s + len(taken.speaker.samples) / taken.speaker.rate_hz
        silent_s = yielding(taken.speaker, heard.onset_at_s, reference_db=-20.0, within_s=3.0, quiet_s=0.7).silent_s
        outcome = "goes on"
        if silent_s is not None:
            again_s = first_sound(taken.speaker, heard.onset_at_s + silent_s + 0.1)
            outcome = "stops" if again_s is None or again_s > end_s - 0.3 else "pauses"
        self.found.goes_on[kind].append(outcome)
        self._tell.say(f"disturbance, {stimulus.name}: {outcome}")

    def _own_voice(self, room: Room) -> None:
        """While nobody speaks, every silence longer than a pause for breath is the program's own doing."""
        self._make_it_talk(room)
        with room.recorded() as taken:
            time.sleep(_OWN_VOICE_S)
        begin_s = taken.speaker.start_s
        breaks, at_s = 0, begin_s
        while at_s < begin_s + _OWN_VOICE_S - 1.0:
            gave = yielding(taken.speaker, at_s, reference_db=-20.0, within_s=_OWN_VOICE_S, quiet_s=1.0)
            if gave.silent_s is None:
                break
            breaks += 1
            again_s = first_sound(taken.speaker, at_s + gave.silent_s + 0.5)
            if again_s is None:
                break
            at_s = again_s
        self.found.own_voice.append(float(breaks))
        self._tell.say(f"own voice: fell silent {breaks} times in {_OWN_VOICE_S:.0f} s")

    def _disturbances(self, trials: Trials) -> list[tuple[str, Stimulus]]:
        found: list[tuple[str, Stimulus]] = []
        makers = [name for name in sorted(MAKERS) if name not in ("babble", "music")]
        real = self._recordings.noises()
        for number in range(trials.disturbances if "noises" in self._kinds else 0):
            if number % 3 == 2:
                noise = self._recordings.load(real[number // 3 % len(real)], longest_s=3.0)
                found.append(("recorded noises", noise))
            else:
                found.append(("synthetic noises", synthetic(makers[number % len(makers)], self._seed + number)))
        texts = [(name, text, language) for language, said in BACKCHANNELS.items() for name, text in said.items()]
        for number in range(trials.backchannels if "backchannels" in self._kinds else 0):
            name, text, language = texts[number % len(texts)]
            found.append(("backchannels", spoken(text, language, name=name)))
        return found

    def rows(self) -> list[Row]:
        """Return what was measured so far."""
        rows: list[Row] = []
        for title in LANGUAGES.values():
            for name, times in (
                ("onset → output down by ≥ 12 dB", self.found.down[title]),
                ("onset → output silent, true interruption", self.found.silent[title]),
            ):
                rows.append(_row(name, title, times, "ms", "recorded"))
            yielded = self.found.yielded[title]
            rows.append(
                share_row(
                    name="true interruptions that silenced it",
                    condition=title,
                    hits=sum(yielded),
                    trials=len(yielded),
                    source="loudspeaker",
                    stimuli="recorded",
                )
            )
        for kind in ("synthetic noises", "recorded noises", "backchannels"):
            counts = Counter(self.found.goes_on[kind])
            rows.append(
                share_row(
                    name="disturbances that stopped it for good",
                    condition=kind,
                    hits=counts["stops"],
                    trials=sum(counts.values()),
                    source="loudspeaker",
                    stimuli="recorded" if kind == "recorded noises" else "synthetic",
                    note=f"went on {counts['goes on']}, paused {counts['pauses']}, stopped {counts['stops']}",
                )
            )
        rows.append(
            _row("end of speech → first sound", "a question into silence", self.found.replies, "ms", "recorded")
        )
        if self._echo_db is not None:
            rows.append(
                _row("falls silent by itself", f"{self._echo_db:g} dB echo", self.found.own_voice, "times", "recorded")
            )
        return rows


def _row(name: str, condition: str, values: Sequence[float], unit: str, stimuli: str) -> Row:
    return Row(
        name=name,
        condition=condition,
        values=tuple(values),
        unit=unit,
        source="loudspeaker",
        stimuli=stimuli,  # type: ignore[arg-type] # one of the two kinds
    )


def _ms(seconds: float | None) -> str:
    return "–" if seconds is None else f"{1000 * seconds:.0f} ms"


def _end(program: subprocess.Popen[bytes]) -> None:
    """End the program and what it started: its own session, nothing else."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(program.pid, number)
        with suppress(subprocess.TimeoutExpired):
            program.wait(timeout=5)
            break
    with suppress(ProcessLookupError):
        os.killpg(program.pid, signal.SIGKILL)


def main(argv: Sequence[str]) -> int:
    """Run the bench: 0 measured, 2 bad arguments, 3 a part failed, 130 cancelled."""
    args = _parser().parse_args(argv)
    for out in (args.json, args.markdown):
        if out is not None and not out.parent.is_dir():
            sys.stderr.write(f"barge-in-bench: there is no folder {out.parent}\n")
            return 2
    try:
        command = shlex.split(args.app)
    except ValueError as error:
        sys.stderr.write(f"barge-in-bench: --app: {error}\n")
        return 2
    folder = Path(os.environ.get("MYNAH_SPEECH") or ROOT.parent / "shared" / "speech")
    if not command or not (folder / "manifest.jsonl").is_file():
        reason = "--app is empty" if not command else "no recordings: set MYNAH_SPEECH"
        sys.stderr.write(f"barge-in-bench: {reason}\n")
        return 2
    missing = missing_tools()
    if missing:
        sys.stderr.write(f"barge-in-bench: no virtual sound card: {', '.join(missing)} missing\n")
        return 3
    kinds = KINDS if args.only is None else tuple(args.only.split(","))
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        sys.stderr.write(f"barge-in-bench: --only: no {unknown[0]}; there are {', '.join(KINDS)}\n")
        return 2
    tell = Teller()
    # A bench that is told to end takes the program with it, as when it is cancelled.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    story = Answer(text=STORY, first_token_s=0.1, tokens_per_s=50.0)
    with ScriptedLlm(default=story) if ENDPOINT in args.app else nullcontext() as llm:
        if llm is not None:
            command = [part.replace(ENDPOINT, llm.url) for part in command]
        app = AnyApp(command, Recordings(folder=folder), tell, seed=args.seed, echo_db=args.echo_db, kinds=kinds)
        code = _measure(app, args, tell)
    _publish(app, args, tell, command[0])
    return code


def _measure(app: AnyApp, args: argparse.Namespace, tell: Teller) -> int:
    code = 0
    try:
        app.run(QUICK if args.quick else FULL, ready_s=args.ready_s, keep=args.keep)
    except KeyboardInterrupt:
        code = 130
        tell.say("cancelled; this is what was measured so far")
    except (Failed, OSError) as error:
        code = 3
        tell.failures.append(str(error))
        tell.say(f"ended early: {error}")
    return code


def _publish(app: AnyApp, args: argparse.Namespace, tell: Teller, program: str) -> None:
    rows = app.rows()
    sys.stdout.write(table(rows))
    for failure in tell.failures:
        sys.stdout.write(f"no figure: {failure}\n")
    facts = {**machine(), "app": program, "seed": args.seed}
    if args.json is not None:
        stored = {"rows": [row.to_json() for row in rows], "machine": machine(), "failures": tell.failures}
        args.json.write_text(json.dumps(stored, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    if args.markdown is not None:
        args.markdown.write_text(markdown(rows, facts), encoding="utf-8")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="script/barge-in-bench", description="Measure how a program with a microphone and a loudspeaker yields."
    )
    parser.add_argument(
        "--app",
        required=True,
        metavar="COMMAND",
        help=f"the program, with its arguments; {ENDPOINT} in it becomes the URL of a model that tells a long story",
    )
    parser.add_argument("--only", metavar="KINDS", help=f"some of {', '.join(KINDS)}, comma-separated")
    parser.add_argument("--ready-s", type=float, default=20.0, metavar="S", help="how long it takes to listen (20)")
    parser.add_argument("--echo-db", type=float, metavar="DB", help="let its microphone hear its loudspeaker, ≤ 0")
    parser.add_argument("--quick", action="store_true", help="one or two trials of each kind")
    parser.add_argument("--json", type=Path, metavar="F", help="write the rows into F")
    parser.add_argument("--markdown", type=Path, metavar="F", help="write the rows as a Markdown table into F")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed of synthetic sounds")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the recordings of every trial in DIR")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
