"""Proves from an events file alone that nothing stale came out and that every id ended exactly once."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orchestrator.contracts.intents import APOLOGY_SLOT, CUE_SLOT

Record = dict[str, Any]

_FINAL = ("COMPLETED", "CANCELLED", "FAILED")
_NEXT = {
    "PREPARING": {"STREAMING", "SUSPENDED", *_FINAL},
    "STREAMING": {"SUSPENDED", *_FINAL},
    "SUSPENDED": {"PREPARING", "STREAMING", "CANCELLED", "FAILED"},
}
LATE_SOUND_S = 0.12
"""What may still sound after a cancel: the block in progress, its fade, and the device's buffer beyond its latency."""


@dataclass(slots=True)
class _Generation:
    """What the file says of one generation."""

    states: list[str] = field(default_factory=list)
    ended_t: float | None = None
    is_stale: bool = False
    intents: list[str] = field(default_factory=list)
    assistant_commits: int = 0
    is_speculative: bool = False


class EventChecker:
    """Feed records in order, then ask for `problems`. `out_latency_s` widens what may still be in the device."""

    def __init__(self) -> None:
        """Start before the first record."""
        self.problems: list[str] = []
        self.counts: Counter[str] = Counter()
        self._last_seq = 0
        self._last_t = float("-inf")
        self._out_latency_s = 0.0
        self._is_closed = False
        self._generations: dict[str, _Generation] = {}
        self._intents: dict[str, list[str]] = defaultdict(list)
        self._intent_text: dict[str, str] = {}
        self._intent_owner: dict[str, str] = {}
        self._heard: dict[str, int] = defaultdict(int)
        self._asides: set[str] = set()
        self._calls: dict[str, int] = defaultdict(int)
        self._tools: dict[str, int] = defaultdict(int)
        self._utterances: dict[str, Counter[str]] = defaultdict(Counter)
        self._notices: dict[str, list[str]] = defaultdict(list)
        self._audible: tuple[str, float] | None = None

    # --- feeding ----------------------------------------------------------------------------------------

    def feed(self, record: Record) -> None:
        """Take the next record."""
        kind = record.get("type")
        if not isinstance(kind, str) or not isinstance(record.get("payload"), dict):
            self._say(record, "not a record: type or payload is missing")
            return
        self.counts[kind] += 1
        handler = getattr(self, "_on_" + kind.replace(":", "_"), None)
        try:
            self._check_frame(record, kind)
            if handler is not None:
                handler(record, record["payload"])
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            self._say(record, f"a field is missing or of the wrong kind: {error}")

    def finish(self) -> list[str]:
        """Check what must have ended, and return all problems."""
        if not self._is_closed:
            self.problems.append("the file does not end with app:exit")
        for generation_id, generation in self._generations.items():
            finals = [state for state in generation.states if state in _FINAL]
            if len(finals) != 1:
                self.problems.append(f"generation {generation_id} has {len(finals)} final states")
        for intent_id, states in self._intents.items():
            finals = [state for state in states if state in ("played", "dropped")]
            if len(finals) != 1:
                self.problems.append(f"intent {intent_id} has {len(finals)} final states ({', '.join(states)})")
        self._finish_calls()
        self._finish_utterances()
        return self.problems

    def _finish_calls(self) -> None:
        for what, found in (("model call", self._calls), ("tool call", self._tools)):
            for key, balance in found.items():
                if balance != 0:
                    self.problems.append(f"{what} {key} did not end exactly once")

    def _finish_utterances(self) -> None:
        for utterance_id, seen in self._utterances.items():
            for name in ("onset", "end", "turn_end", "final"):
                if seen[name] != 1:
                    self.problems.append(f"utterance {utterance_id} has {seen[name]} times {name}")
        for key, states in self._notices.items():
            opened = states.count("due")
            ended = sum(states.count(state) for state in ("spoken", "expired", "coalesced"))
            if opened != ended:
                self.problems.append(f"notification {key} was due {opened} times and ended {ended} times")

    # --- frame ------------------------------------------------------------------------------------------

    def _check_frame(self, record: Record, kind: str) -> None:
        seq, t = record.get("seq"), record.get("t")
        if seq != self._last_seq + 1:
            self._say(record, f"seq {seq} follows {self._last_seq}")
        if isinstance(seq, int):
            self._last_seq = seq
        if not isinstance(t, (int, float)) or t < self._last_t:
            self._say(record, "time goes back")
        else:
            self._last_t = float(t)
        if self._last_seq == 1 and kind != "log:open":
            self._say(record, "the file does not begin with log:open")
        if self._is_closed:
            self._say(record, "a record follows app:exit")

    def _on_log_open(self, record: Record, payload: Record) -> None:
        self._out_latency_s = float(payload.get("outLatency_s") or 0.0)

    def _on_device_state(self, record: Record, payload: Record) -> None:
        if payload.get("direction") == "output" and payload.get("latency_s") is not None:
            # What was written under the longer latency may still be on its way when a shorter one begins.
            self._out_latency_s = max(self._out_latency_s, float(payload["latency_s"]))

    def _on_app_exit(self, record: Record, payload: Record) -> None:
        self._is_closed = True

    # --- generations ------------------------------------------------------------------------------------

    def _on_generation_state(self, record: Record, payload: Record) -> None:
        generation = self._generations.setdefault(str(record.get("generationId")), _Generation())
        before, after = payload.get("from"), str(payload.get("to"))
        last = generation.states[-1] if generation.states else None
        generation.is_speculative = bool(payload.get("speculative"))
        if before == after and last == after:
            return
        if before != last:
            self._say(record, f"the state before was {last}, not {before}")
        elif last is not None and after not in _NEXT.get(last, set()):
            self._say(record, f"{last} can't be followed by {after}")
        generation.states.append(after)
        if after in _FINAL:
            generation.ended_t = float(record["t"])
            generation.is_stale = after in ("CANCELLED", "FAILED")

    def _stale(self, record: Record) -> _Generation | None:
        generation = self._generations.get(str(record.get("generationId")))
        return generation if generation is not None and generation.is_stale else None

    def _forbid_after_end(self, record: Record, what: str) -> None:
        if self._stale(record) is not None:
            self._say(record, f"{what} of generation {record.get('generationId')} after it was over")

    def _on_subtitle_painted(self, record: Record, payload: Record) -> None:
        generation = self._stale(record)
        if generation is not None and payload.get("role") == "character" and payload.get("cutAt") is None:
            self._forbid_after_end(record, "a subtitle without its cut mark")

    def _on_tool_call(self, record: Record, payload: Record) -> None:
        self._forbid_after_end(record, "a tool call")
        generation = self._generations.get(str(record.get("generationId")))
        if generation is not None and generation.is_speculative:
            self._say(record, "a tool call of a speculative generation")
        self._tools[str(record.get("correlationId"))] += 1

    def _on_tool_result(self, record: Record, payload: Record) -> None:
        self._tools[str(record.get("correlationId"))] -= 1
        if payload.get("disposition") == "used":
            self._forbid_after_end(record, "a used tool result")

    def _on_llm_call(self, record: Record, payload: Record) -> None:
        self._forbid_after_end(record, "a model call")
        self._calls[str(payload.get("callId"))] += 1

    def _on_llm_end(self, record: Record, payload: Record) -> None:
        self._calls[str(payload.get("callId"))] -= 1

    def _forbid_speculative(self, record: Record, what: str) -> None:
        generation = self._generations.get(str(record.get("generationId")))
        if generation is not None and generation.is_speculative:
            self._say(record, f"{what} of a speculative generation")

    def _on_flow_command(self, record: Record, payload: Record) -> None:
        self._forbid_speculative(record, "a command")

    def _on_flow_slot(self, record: Record, payload: Record) -> None:
        self._forbid_speculative(record, "a slot")

    def _on_turn_commit(self, record: Record, payload: Record) -> None:
        self._forbid_speculative(record, "a stored turn")

    def _on_history_commit(self, record: Record, payload: Record) -> None:
        self._forbid_speculative(record, "a stored message")
        generation = self._generations.get(str(record.get("generationId")))
        if payload.get("role") != "assistant" or generation is None:
            return
        generation.assistant_commits += 1
        if generation.assistant_commits > 1:
            self._say(record, "a second assistant message of the same generation")
        text = str(payload.get("text") or "")
        if text and payload.get("status") in ("completed", "interrupted"):
            self._check_heard(record, generation, text)

    def _check_heard(self, record: Record, generation: _Generation, text: str) -> None:
        parts: list[str] = []
        for intent_id in generation.intents:
            if intent_id in self._asides:
                continue
            whole = self._intent_text.get(intent_id, "")
            if "played" in self._intents[intent_id]:
                parts.append(whole)
            elif self._heard[intent_id]:
                parts.append(whole[: self._heard[intent_id]])
        if _letters("".join(parts)) != _letters(text):
            self._say(record, "the stored text is not what the player says was heard")

    # --- output -----------------------------------------------------------------------------------------

    def _on_intent_state(self, record: Record, payload: Record) -> None:
        intent_id, state = str(record.get("intentId")), str(payload.get("state"))
        self._forbid_speculative(record, "an intent")
        states = self._intents[intent_id]
        if states and states[-1] in ("played", "dropped"):
            self._say(record, f"intent {intent_id} goes on ({state}) after {states[-1]}")
        if not states:
            owner = self._generations.get(str(record.get("generationId")))
            if owner is not None:
                owner.intents.append(intent_id)
            self._intent_text[intent_id] = str(payload.get("text") or "")
            if payload.get("slot") in (CUE_SLOT, APOLOGY_SLOT):
                self._asides.add(intent_id)
        states.append(state)
        if state in ("playing", "ready", "synthesising"):
            generation = self._stale(record)
            late_s = float(record["t"]) - (generation.ended_t or 0.0) if generation is not None else 0.0
            if generation is not None and late_s > LATE_SOUND_S + self._out_latency_s:
                self._forbid_after_end(record, f"an intent ({state})")

    def _on_output_first_sound(self, record: Record, payload: Record) -> None:
        self._check_late_sound(record, float(payload["at_s"]), "a first sound")
        owner, until = str(record.get("generationId")), self._audible
        if until is not None and until[0] != owner and float(payload["at_s"]) < until[1] - 0.005:
            self._say(record, f"generations {until[0]} and {owner} sound at the same time")

    def _on_output_word(self, record: Record, payload: Record) -> None:
        begins_s, ends_s = float(payload["at_s"]), float(payload["end_s"])
        self._check_late_sound(record, begins_s, "a word")
        self._audible = (str(record.get("generationId")), ends_s)
        if not payload.get("cut"):
            intent_id = str(record.get("intentId"))
            self._heard[intent_id] = max(self._heard[intent_id], int(payload["charEnd"]))

    def _check_late_sound(self, record: Record, at_s: float, what: str) -> None:
        generation = self._stale(record)
        if generation is not None and at_s > (generation.ended_t or 0.0) + LATE_SOUND_S + self._out_latency_s:
            self._say(record, f"{what} of generation {record.get('generationId')} after it was over")

    # --- input and the rest -----------------------------------------------------------------------------

    def _on_input_speech(self, record: Record, payload: Record) -> None:
        self._utterances[str(record.get("utteranceId"))][str(payload.get("phase"))] += 1

    def _on_input_turn_end(self, record: Record, payload: Record) -> None:
        self._utterances[str(record.get("utteranceId"))]["turn_end"] += 1

    def _on_input_transcript(self, record: Record, payload: Record) -> None:
        if payload.get("final"):
            self._utterances[str(record.get("utteranceId"))]["final"] += 1

    def _on_notify_state(self, record: Record, payload: Record) -> None:
        self._notices[str(payload.get("id"))].append(str(payload.get("state")))

    def _say(self, record: Record, problem: str) -> None:
        self.problems.append(f"record {record.get('seq')} ({record.get('type')}): {problem}")


def _letters(text: str) -> str:
    return "".join(char for char in text if char.isalnum())


def read_records(lines: Iterable[str]) -> Iterator[Record]:
    """Yield the records of an events file. Raises `ValueError` naming the line that is none."""
    for number, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
        except ValueError as error:
            raise ValueError(f"line {number} is not JSON") from error
        if not isinstance(record, dict):
            raise ValueError(f"line {number} is not a JSON object")
        yield record


def check_records(records: Iterable[Record]) -> list[str]:
    """Return the problems of a whole file."""
    checker = EventChecker()
    for record in records:
        checker.feed(record)
    return checker.finish()


def check_file(path: Path) -> list[str]:
    """Return the problems of an events file; an unreadable one is a problem, too."""
    try:
        with path.open(encoding="utf-8") as lines:
            return check_records(read_records(lines))
    except (OSError, ValueError) as error:
        return [str(error)]


def main(argv: Sequence[str]) -> int:
    """Check the files of `argv`; prints what is wrong and returns 0, 1 for problems, 2 for wrong use."""
    if not argv or argv[0] in ("-h", "--help"):
        print("usage: check-events FILE [FILE …]")  # noqa: T201
        return 0 if argv else 2
    code = 0
    for name in argv:
        problems = check_file(Path(name))
        for problem in problems:
            print(f"{name}: {problem}")  # noqa: T201
        print(f"{name}: {len(problems)} problems" if problems else f"{name}: ok")  # noqa: T201
        code = 1 if problems else code
    return code
