"""Figures of the running program with a scripted language model: replies, interruptions, noises, pauses."""

from __future__ import annotations

import random
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from bench.plan import Setting
from bench.room import Failed, Room, Taken, Talk, finish
from bench.rows import Budget, Row, share_row
from bench.scorer import Heard, Yielding, first_sound, is_sounding, reply_after, speech_level_db, yielding
from bench.stimuli import BACKCHANNELS, MAKERS, Stimulus, inner_pauses, spoken, synthetic
from bench.story import STORY
from rigs.program_rig import Program
from rigs.scripted_llm import Answer, ScriptedLlm
from rigs.sound_rig import SoundRig

LANGUAGES = {"en": "English", "zh": "Chinese"}
_ECHO_TRIES = 3
ECHO_DB = -6.0
FIRST_TOKEN_S = 0.1
TOKENS_PER_S = 50.0
"""A usual endpoint; see `SLOW_TOKENS_PER_S`."""
SLOW_TOKENS_PER_S = 15.0
PAUSE_S = 0.7


@dataclass(slots=True)
class Measured:
    """What came out of the trials, by condition; times in milliseconds."""

    down: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    silent: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    honoured: dict[str, list[bool]] = field(default_factory=lambda: defaultdict(list))
    replies: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    after_cut: list[float] = field(default_factory=list)
    transcripts: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    false_alarms: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    early_answers: dict[str, list[bool]] = field(default_factory=lambda: defaultdict(list))
    early_ends: dict[str, list[bool]] = field(default_factory=lambda: defaultdict(list))
    closings: list[float] = field(default_factory=list)
    first_pcm: list[float] = field(default_factory=list)
    speculations: Counter[str] = field(default_factory=Counter)
    gained: list[float] = field(default_factory=list)
    own_voice_s: float = 0.0
    own_voice_cuts: int = 0
    own_voice_ducks: int = 0


class LiveSection:
    """The program without a window, a scripted endpoint, real recordings; headphones, so without echo."""

    name = "live"
    conditions: ClassVar[Mapping[str, tuple[Budget, Budget]]] = {
        "no echo": (Budget(p50=150), Budget(p50=270, p95=380)),
    }

    def __init__(self, setting: Setting) -> None:
        """Prepare; `run` starts the program."""
        self._set = setting
        self._rng = random.Random(setting.seed)
        self.found = Measured()

    def run(self) -> None:
        """Start the program and go through all trials."""
        if self._set.recordings is None:
            raise Failed("no recordings: set MYNAH_SPEECH to the folder that has manifest.jsonl")
        story = Answer(text=STORY, first_token_s=FIRST_TOKEN_S, tokens_per_s=TOKENS_PER_S)
        folder = self._set.folder / self.name
        folder.mkdir()
        with SoundRig() as rig, ScriptedLlm(default=story) as llm:
            self._llm = llm
            self._prepare(rig)
            room = Room(rig=rig, folder=folder, keep=None if self._set.keep is None else self._set.keep / self.name)
            self._set.tell.say("starting the program (no window, scripted endpoint)")
            with Program(["run", "--headless", "--llm", llm.url], folder=folder, env=rig.env) as program:
                talk = Talk(program)
                try:
                    self._trials(room, talk)
                finally:
                    self._read_events(talk, llm)
                    self._set.keep_events(program.events_path, self.name)
                self._set.tell.failures += finish(talk, self._set.tell.say)

    def _prepare(self, rig: SoundRig) -> None:
        """Set up the room before the program starts."""

    def _trials(self, room: Room, talk: Talk) -> None:
        plan = self._set.plan
        for stimulus in self._utterances(plan.replies, longest_s=4.5):
            self._ask(room, talk, stimulus, "scripted")
        usual, slow = (
            self._llm.default,
            Answer(text=STORY, first_token_s=FIRST_TOKEN_S, tokens_per_s=SLOW_TOKENS_PER_S),
        )
        self._llm.default = slow
        for stimulus in self._utterances(max(1, plan.replies // 2), longest_s=4.5):
            self._ask(room, talk, stimulus, "slow")
        self._llm.default = usual
        for stimulus in self._utterances(plan.interruptions, longest_s=4.5):
            self._interrupt(room, talk, stimulus, "no echo")
        for stimulus in self._disturbances():
            self._disturb(room, talk, stimulus)
        assert self._set.recordings is not None
        for stimulus in (
            s for code in LANGUAGES for s in inner_pauses(self._set.recordings, code, plan.pauses, PAUSE_S)
        ):
            with self._set.tell.trial(stimulus.name):
                self._pause(room, talk, stimulus)

    def _utterances(self, each: int, *, shortest_s: float = 1.2, longest_s: float) -> Iterable[Stimulus]:
        """Yield `each` utterances of every language in turn."""
        assert self._set.recordings is not None
        names = {
            language: self._set.recordings.utterances(language, shortest_s=shortest_s, longest_s=longest_s)
            for language in LANGUAGES
        }
        for number in range(each):
            for language in LANGUAGES:
                yield self._set.recordings.load(names[language][number % len(names[language])])

    # --- trials -----------------------------------------------------------------------------------------

    def _ask(self, room: Room, talk: Talk, stimulus: Stimulus, condition: str) -> None:
        with self._set.tell.trial(f"reply, {stimulus.name}"):
            delay_ms, heard, mark = ask(room, talk, stimulus)
            self.found.replies[f"{condition} {stimulus.language}"].append(delay_ms)
            self._note_transcript(talk, mark, heard, stimulus)
            self._set.tell.say(f"reply, {stimulus.name}: {delay_ms:.0f} ms")

    def _interrupt(self, room: Room, talk: Talk, stimulus: Stimulus, condition: str) -> None:
        key = f"{condition}, {LANGUAGES[stimulus.language]}"
        with self._set.tell.trial(f"interruption, {key}, {stimulus.name}"):
            old = talk.sounding()
            with room.recorded() as taken:
                time.sleep(self._rng.uniform(1.0, 1.8))
                mark = talk.mark()
                room.play(stimulus, taken)
                is_answered = _answered(talk, mark, old)
                time.sleep(0.3)
            heard = taken.find(stimulus)
            gave = _yielded(taken, heard)
            if talk.since("input:interrupt", mark) and not is_answered:
                # A slow recogniser decides late; the sound has been held meanwhile.
                talk.wait("interrupt:confirm", mark, 15)
            is_honoured = gave.silent_s is not None and talk.is_final(old) == "CANCELLED"
            self.found.honoured[key].append(is_honoured)
            if gave.down_s is not None:
                self.found.down[key].append(1000 * gave.down_s)
            if gave.silent_s is not None and is_honoured:
                self.found.silent[key].append(1000 * gave.silent_s)
                delay_s = reply_after(
                    taken.speaker, heard.end_at_s, onset_at_s=heard.onset_at_s, silent_s=gave.silent_s
                )
                if is_answered and delay_s is not None:
                    self.found.after_cut.append(1000 * delay_s)
            self._note_transcript(talk, mark, heard, stimulus)
            said = ", ".join(
                f"{name} {'–' if value is None else f'{1000 * value:.0f} ms'}"
                for name, value in (("down", gave.down_s), ("silent", gave.silent_s))
            )
            self._set.tell.say(f"interruption, {key}, {stimulus.name}: {said}, honoured {is_honoured}")

    def _disturb(self, room: Room, talk: Talk, stimulus: Stimulus) -> None:
        kind = "backchannels" if stimulus.language != "none" else f"{stimulus.kind} noises"
        with self._set.tell.trial(f"disturbance, {stimulus.name}"):
            old = talk.sounding()
            time.sleep(self._rng.uniform(0.5, 1.0))
            with room.recorded() as taken:
                mark = talk.mark()
                room.play(stimulus, taken)
                time.sleep(1.0)
                if talk.since("output:cut", mark):
                    talk.wait("interrupt:confirm", mark, 8)
                    time.sleep(1.5)
            end_s = taken.speaker.start_s + len(taken.speaker.samples) / taken.speaker.rate_hz
            outcome = "nothing"
            if talk.is_final(old) is not None or not is_sounding(taken.speaker, end_s - 0.8, end_s):
                outcome = "cut"
            elif talk.since("output:cut", mark):
                outcome = "resumed"
            elif talk.since("output:duck", mark):
                outcome = "ducked"
            self.found.false_alarms[kind].append(outcome)
            because = [r["payload"]["because"] for r in talk.since("interrupt:confirm", mark)]
            self._set.tell.say(f"disturbance, {stimulus.name}: {outcome} {' '.join(because)}")

    def _pause(self, room: Room, talk: Talk, stimulus: Stimulus) -> None:
        talk.be_quiet()
        with room.recorded() as taken:
            mark = talk.mark()
            time.sleep(0.2)
            room.play(stimulus, taken)
            _answered(talk, mark, None)
            time.sleep(0.2)
        heard = taken.find(stimulus)
        is_early = first_sound(taken.speaker, heard.onset_at_s, heard.end_at_s) is not None
        ends_s = [r["payload"]["at_s"] for r in talk.since("input:turn_end", mark)]
        has_ended = any(end_s < heard.end_at_s - 0.35 for end_s in ends_s)
        self.found.early_answers[stimulus.language].append(is_early)
        self.found.early_ends[stimulus.language].append(has_ended)
        self._set.tell.say(f"pause inside, {stimulus.name}: answered early {is_early}, turn ended early {has_ended}")
        talk.be_quiet()

    def _disturbances(self) -> list[Stimulus]:
        plan, recordings = self._set.plan, self._set.recordings
        assert recordings is not None
        real = recordings.noises()
        makers = sorted(MAKERS)
        noises: list[Stimulus] = []
        for number in range(plan.noises):
            if number % 3 == 2:
                noises.append(recordings.load(real[(number // 3) % len(real)], longest_s=4.0))
            else:
                made = number - number // 3
                noises.append(synthetic(makers[made % len(makers)], self._set.seed + made // len(makers)))
        texts = [
            (name, text, language)
            for said in zip(*(texts.items() for texts in BACKCHANNELS.values()), strict=True)
            for (name, text), language in zip(said, BACKCHANNELS, strict=True)
        ]
        for number in range(plan.backchannels):
            name, text, language = texts[number % len(texts)]
            noises.append(spoken(text, language, pitch=35 + 15 * (number // len(texts)), name=name))
        return noises

    # --- events -----------------------------------------------------------------------------------------

    def _note_transcript(self, talk: Talk, mark: int, heard: Heard, stimulus: Stimulus) -> None:
        finals = [r for r in talk.since("input:transcript", mark) if r["payload"]["final"]]
        if finals and stimulus.seconds <= 5.0:
            # Known is what was told provisionally in the same words; as the final one it waits for the end of the turn.
            text = finals[-1]["payload"]["text"]
            told = [r for r in talk.since("input:transcript", mark) if r["payload"].get("provisional")]
            known = next((r for r in reversed(told) if r["payload"]["text"] == text), finals[-1])
            self.found.transcripts[stimulus.language].append(1000 * (known["t"] - heard.end_at_s))

    def _read_events(self, talk: Talk, llm: ScriptedLlm) -> None:
        """Take from the events what only they know."""
        for record in talk.program.of("speculation:state"):
            payload = record["payload"]
            self.found.speculations[payload["state"]] += 1
            if payload["state"] == "confirmed":
                self.found.gained.append(1000 * payload["gained_s"])
        seen: set[str] = set()
        for record in talk.program.of("tts:first_pcm"):
            generation = record.get("generationId")
            if generation and generation not in seen:
                seen.add(generation)
                self.found.first_pcm.append(1000 * record["payload"]["synth_s"])
        cancelled = {
            r["generationId"]: r["t"]
            for r in talk.program.of("generation:state")
            if r["payload"]["to"] == "CANCELLED" and r.get("generationId")
        }
        for record in talk.program.of("llm:call"):
            at_s = cancelled.get(record.get("generationId", ""))
            call = min(llm.calls, key=lambda c: abs(c.at_s - record["t"]), default=None)
            if at_s is not None and call is not None and abs(call.at_s - record["t"]) < 0.5 and call.closed_at_s:
                self.found.closings.append(1000 * (call.closed_at_s - at_s))

    # --- rows -------------------------------------------------------------------------------------------

    def rows(self) -> Sequence[Row]:
        """Return what was measured so far."""
        return [*self._interruption_rows(), *self._false_rows(), *self._reply_rows(), *self._pause_rows()]

    def _interruption_rows(self) -> list[Row]:
        rows = []
        for condition, (down, silent) in self.conditions.items():
            for language in LANGUAGES.values():
                key = f"{condition}, {language}"
                rows.append(_live("onset → output down by ≥ 12 dB", key, self.found.down[key], down))
                rows.append(_live("onset → output silent, true interruption", key, self.found.silent[key], silent))
                honoured = self.found.honoured[key]
                rows.append(
                    share_row(
                        name="true interruptions honoured",
                        condition=key,
                        hits=sum(honoured),
                        trials=len(honoured),
                        source="loudspeaker",
                        stimuli="recorded",
                    )
                )
        return rows

    def _false_rows(self) -> list[Row]:
        rows = []
        for kind in ("synthetic noises", "recorded noises", "backchannels"):
            counts = Counter(self.found.false_alarms[kind])
            rows.append(
                share_row(
                    name="false interruption that cut the answer for good",
                    condition=kind,
                    hits=counts["cut"],
                    trials=sum(counts.values()),
                    budget=2.0,
                    source="loudspeaker",
                    stimuli="recorded" if kind == "recorded noises" else "synthetic",
                    note=f"no effect {counts['nothing']}, only lowered {counts['ducked']}, cut and resumed "
                    f"{counts['resumed']}, cut for good {counts['cut']}",
                )
            )
            rows.append(
                share_row(
                    name="false alarm that lowered or paused the voice",
                    condition=kind,
                    hits=counts["ducked"] + counts["resumed"],
                    trials=sum(counts.values()),
                    source="loudspeaker",
                    stimuli="recorded" if kind == "recorded noises" else "synthetic",
                )
            )
        return rows

    def _reply_rows(self) -> list[Row]:
        rows = []
        budget = Budget(p50=750, p95_over_p50=1.6)
        for language, title in LANGUAGES.items():
            replies = self.found.replies[f"scripted {language}"]
            condition = f"scripted endpoint, 100 ms first token, {TOKENS_PER_S:g} tokens/s, {title}"
            rows.append(_live("end of speech → first audible reply", condition, replies, budget))
            condition = f"slow scripted endpoint, 100 ms first token, {SLOW_TOKENS_PER_S:g} tokens/s, {title}"
            slow = self.found.replies[f"slow {language}"]
            rows.append(_live("end of speech → first audible reply", condition, slow, None))
        counts = self.found.speculations
        told = f"begun {counts['started']}, confirmed {counts['confirmed']}, thrown away {counts['discarded']}"
        gained = _component("answers made ahead: time gained", "all turns", self.found.gained, None, "recorded")
        rows.append(replace(gained, note=told if counts else ""))
        condition = "scripted endpoint, the turn that interrupted"
        rows.append(_live("end of speech → first audible reply", condition, self.found.after_cut, None))
        for language, title in LANGUAGES.items():
            times = self.found.transcripts[language]
            condition = f"≤ 5 s, when it is known, {title}"
            rows.append(_component("end of speech → final transcript", condition, times, Budget(p50=400), "recorded"))
        pcm = self.found.first_pcm
        rows.append(_component("first clause → first PCM", "in the running program", pcm, Budget(p50=120), "synthetic"))
        name = "answer cancelled → endpoint sees its connection closed"
        rows.append(_component(name, "scripted endpoint", self.found.closings, Budget(worst=100), "recorded"))
        return rows

    def _pause_rows(self) -> list[Row]:
        rows = []
        for name, found, budget, source in (
            ("utterance with a pause of 0.7 s answered too early", self.found.early_answers, 5.0, "loudspeaker"),
            ("utterance with a pause of 0.7 s: turn ended in the pause", self.found.early_ends, None, "component"),
        ):
            for language, title in LANGUAGES.items():
                hits = found[language]
                rows.append(
                    share_row(
                        name=name,
                        condition=f"{title}, pause spliced in",
                        hits=sum(hits),
                        trials=len(hits),
                        budget=budget,
                        source=source,
                        stimuli="recorded",
                    )
                )
        return rows


class EchoSection(LiveSection):
    """The same on loudspeakers: the microphone hears the character from the start."""

    name = "echo"
    conditions: ClassVar[Mapping[str, tuple[Budget, Budget]]] = {
        "−6 dB echo": (Budget(p50=300), Budget(p50=420, p95=600)),
    }

    def _prepare(self, rig: SoundRig) -> None:
        rig.set_echo(ECHO_DB)

    def _trials(self, room: Room, talk: Talk) -> None:
        self._own_voice(talk)
        for stimulus in self._utterances(self._set.plan.echo_interruptions, longest_s=4.5):
            honoured = self.found.honoured[f"−6 dB echo, {LANGUAGES[stimulus.language]}"]
            before = len(honoured)
            for _ in range(_ECHO_TRIES):
                # A trial that met a pause between two sentences gave no figure; the plan's numbers are of figures.
                self._interrupt(room, talk, stimulus, "−6 dB echo")
                if len(honoured) > before:
                    break

    def _own_voice(self, talk: Talk) -> None:
        """Let the character hear itself while nobody speaks."""
        with self._set.tell.trial("own voice"):
            mark, began_s = talk.mark(), time.monotonic()
            while time.monotonic() - began_s < self._set.plan.own_voice_s + 2.0:
                talk.sounding()
                time.sleep(0.5)
            self.found.own_voice_s += time.monotonic() - began_s
            heard = [r["payload"]["by"] for r in talk.since("input:interrupt", mark)]
            self.found.own_voice_cuts += sum(by in ("vad", "phrase") for by in heard)
            self.found.own_voice_ducks += len(talk.since("output:duck", mark))
            self._set.tell.say(
                f"own voice at −6 dB: {self.found.own_voice_cuts} cuts, {self.found.own_voice_ducks} ducks"
            )

    def rows(self) -> Sequence[Row]:
        """Return what was measured so far."""
        own = (float(self.found.own_voice_cuts),) if self.found.own_voice_s else ()
        row = Row(
            name="own voice taken for the user",
            condition=f"−6 dB echo, {self.found.own_voice_s:.0f} s of talking",
            values=own,
            unit="cuts",
            budget=Budget(share=0),
            source="component",
            stimuli="synthetic",
            note="30 minutes in virtual time: section long" if own else "",
        )
        minutes = self.found.own_voice_s / 60.0
        lowered = Row(
            name="own voice lowered itself",
            condition=row.condition,
            values=(self.found.own_voice_ducks / minutes,) if minutes else (),
            unit="a minute",
            source="component",
            stimuli="synthetic",
        )
        return [*self._interruption_rows(), row, lowered]


def ask(room: Room, talk: Talk, stimulus: Stimulus, *, timeout_s: float = 20.0) -> tuple[float, Heard, int]:
    """Ask into silence; returns milliseconds from the end of speech to the reply, where it was heard, and the mark.

    Raises `Failed` if no reply sounds.
    """
    talk.be_quiet()
    with room.recorded() as taken:
        mark = talk.mark()
        time.sleep(0.2)
        room.play(stimulus, taken)
        talk.wait("output:first_sound", mark, timeout_s)
        time.sleep(0.3)
    heard = taken.find(stimulus)
    delay_s = reply_after(taken.speaker, heard.end_at_s, onset_at_s=heard.onset_at_s)
    if delay_s is None:
        raise Failed("the program says that it spoke, but nothing was heard")
    return 1000 * delay_s, heard, mark


def _answered(talk: Talk, mark: int, old: str | None) -> bool:
    """Wait for the first sound of an answer other than `old`; False if the old one goes on, or none comes."""

    def is_new(record: dict[str, object]) -> bool:
        return record.get("generationId") != old

    try:
        talk.wait_where("output:first_sound", mark, 8, is_new)
    except Failed:
        if not talk.is_alive:
            raise
        return False
    return True


def _yielded(taken: Taken, heard: Heard) -> Yielding:
    before_db = speech_level_db(taken.speaker, heard.onset_at_s - 1.5, heard.onset_at_s)
    if before_db is None or not is_sounding(taken.speaker, heard.onset_at_s - 0.3, heard.onset_at_s + 0.03):
        raise Failed("the character was silent before the interruption")
    return yielding(taken.speaker, heard.onset_at_s, reference_db=before_db)


def _live(name: str, condition: str, values: Sequence[float], budget: Budget | None) -> Row:
    return Row(
        name=name,
        condition=condition,
        values=tuple(values),
        unit="ms",
        budget=budget,
        source="loudspeaker",
        stimuli="recorded",
    )


def _component(name: str, condition: str, values: Sequence[float], budget: Budget | None, stimuli: str) -> Row:
    return Row(
        name=name,
        condition=condition,
        values=tuple(values),
        unit="ms",
        budget=budget,
        source="component",
        stimuli=stimuli,  # type: ignore[arg-type] # one of the two kinds
    )
