"""What the conversation rig sees and hears, and what it must never see or hear."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
from rigs.conversation_acts import BLOCK_S
from rigs.conversation_parts import WORD_FRAMES

from orchestrator.bus.envelope import Envelope
from orchestrator.contracts.ids import GenerationId, IntentId
from orchestrator.contracts.intents import CUE_SLOT
from orchestrator.contracts.lanes import GenerationState, Lane
from orchestrator.speech.words import word_spans
from orchestrator.store import records

BLOCK = 160
FADE_FRAMES = 48
SILENT_SPEAKING_S = 1.2
SILENT_SHOWING_S = 12.0
"""How long the window may show that the character speaks without any sound, and while a text is shown instead."""

Record = dict[str, Any]


def letters(text: str) -> str:
    """Return only what can be heard of a text."""
    return "".join(char for char in text if char.isalnum())


class Watch:
    """Mixed into the rig: `problems` collects what must never happen."""

    if TYPE_CHECKING:
        # What the rig itself has.
        def __getattr__(self, name: str) -> Any: ...

    def _look_at(self, out: np.ndarray[Any, Any]) -> None:
        """Read from the samples whose words sound, and whether they may."""
        self._block_credits.clear()
        is_loud = bool(np.any(out))
        # What is shown instead has its time; only after it the silence of the voice is counted.
        is_silent = not is_loud and self.views.state == "speaking"
        is_same = self._playing == self._shown_before
        self._shown_before = set(self._playing)
        # Each sentence has a reading time of its own; several may follow each other without a gap.
        self._showing_s = self._showing_s + BLOCK_S if is_silent and self._playing and is_same else 0.0
        self._silent_speaking_s = self._silent_speaking_s + BLOCK_S if is_silent and not self._playing else 0.0
        if self._silent_speaking_s > SILENT_SPEAKING_S or self._showing_s > SILENT_SHOWING_S:
            self.note("the character is shown as speaking without a sound")
            self._silent_speaking_s = self._showing_s = 0.0
        if not is_loud:
            return
        steady = out[1:][(np.abs(np.diff(out)) < 1e-8) & (out[1:] != 0.0)]
        if not len(steady) and bool(np.all(out != 0.0)):
            self._credit_ramp()
            return
        steady = out[1:][(np.abs(np.diff(out)) < 1e-8) & (out[1:] != 0.0)]
        values, places = np.unique(steady, return_index=True)
        for index in np.argsort(places):
            value = float(values[index])
            owner = self.levels.owner(value)
            if owner is None:
                self.note(f"a sound that is no word: {value}")
                continue
            self._hear(owner, int(np.count_nonzero(steady == values[index])) + 1)

    def _credit_ramp(self) -> None:
        """A block whose volume changes throughout belongs to the word before it, or to the one that begins with it."""
        run = self.run_frames[-1] if self.run_frames else None
        if run is not None and run[2] == self._blocks - 1 and run[1] < WORD_FRAMES - FADE_FRAMES - 12:
            self._hear(run[0], BLOCK)
        else:
            self._ramped = (self._blocks, self._ramped[1] + BLOCK if self._ramped[0] == self._blocks - 1 else BLOCK)

    def _hear(self, owner: tuple[IntentId, int], frames: int) -> None:
        intent = self.intents[owner[0]]
        generation = self.generations.get(intent.generation_id)
        if generation is None:
            self.note(f"{intent.generation_id} of an earlier program sounds")
            return
        if generation.is_stale:
            self.note(f"{intent.generation_id} sounds after it was over")
        if generation.state is GenerationState.SUSPENDED:
            self.note(f"{intent.generation_id} sounds while it is held")
        if self.run_frames and self.run_frames[-1][0] == owner and self.run_frames[-1][2] == self._blocks - 1:
            self.run_frames[-1][1] += frames
            self.run_frames[-1][2] = self._blocks
        else:
            ramped = self._ramped[1] if self._ramped[0] == self._blocks - 1 else 0
            self.run_frames.append([owner, frames + ramped, self._blocks, False])
        run = self.run_frames[-1]
        self._block_credits.add(owner)
        if run[1] >= WORD_FRAMES - FADE_FRAMES - 12 and not run[3]:
            run[3] = True
            if owner in self.complete_words:
                self._said_again[intent.generation_id] += 1
            else:
                self.complete_words.append(owner)

    def _lose_last_block(self) -> None:
        """Note the words of the block that was on its way to a loudspeaker that is gone: heard all but its last 20 ms.

        The player counts a sentence that it has handed over whole as said, and one that it has to break off as cut.
        """
        self._maybe_heard.update(self._block_credits)
        self._block_credits.clear()

    # --- what must never happen -------------------------------------------------------------------------

    def note(self, problem: str) -> None:
        """Remember something that must not happen."""
        if not self._is_dead:
            self.problems.append(problem)

    def _on_record(self, record: Record) -> None:
        if self._is_dead:
            return
        self.records.append(record)
        self.checker.feed(record)
        if record["type"] == "intent:state":
            is_playing = record["payload"]["state"] == "playing"
            (self._playing.add if is_playing else self._playing.discard)(record.get("intentId", ""))
        if record["type"] == "history:commit" and record["payload"]["role"] == "assistant":
            payload = record["payload"]
            if payload["status"] != "failed":
                self._committed.append(payload["text"])
                self._check_heard(GenerationId(record["generationId"]), payload["text"])

    def _check_heard(self, generation_id: GenerationId, text: str) -> None:
        """Compare what is stored with what was in the samples; shown sentences count as the player says."""
        errors = {
            piece.intent_id
            for message in self.core.ledger.messages(generation_id)
            for piece in message.pieces
            if message.source == "error"
        }
        mine = [
            intent
            for intent in self.intents.values()
            if intent.generation_id == generation_id and intent.intent_id not in errors and intent.slot != CUE_SLOT
        ]
        whole = letters("".join(intent.text for intent in mine))
        if not whole.startswith(letters(text)):
            self.note(f"what is stored of {generation_id} is no beginning of its text")
        if generation_id in self._unclear or any(self._was_shown(intent.intent_id) for intent in mine):
            return
        ids = {intent.intent_id for intent in mine}
        said = sorted((owner for owner in self.complete_words if owner[0] in ids), key=lambda o: (_number(o[0]), o[1]))
        heard, least = (
            "".join(word_spans(self.intents[i].text)[n].text for i, n in owners)
            for owners in (said, [owner for owner in said if owner not in self._maybe_heard])
        )
        if letters(text) not in (letters(heard), letters(least)):
            self.note(f"stored of {generation_id}: {text!r}; in the samples: {heard!r}")

    def _was_shown(self, intent_id: IntentId) -> bool:
        return any(
            record["type"] == "output:word" and record.get("intentId") == intent_id and record["payload"]["estimated"]
            for record in self.records
        )

    def note_snapshot(self, turn: Any) -> None:
        """Check what an answer is begun from."""
        for generation in self.generations.all:
            if generation.state.is_final and not generation.settled.is_set():
                self.note(f"{turn.generation_id} was begun before {generation.generation_id} was stored")
        known = [entry.text for entry in turn.history if entry.role == "assistant"]
        if known[-3:] != self._committed[-3:]:
            self.note(f"the snapshot of {turn.generation_id} has other answers than the store")

    def _on_handled(self, envelope: Envelope) -> None:
        is_control = envelope.lane is Lane.CONTROL
        if is_control:
            late = [order for order, seen, control in self._orders[-64:] if not control and seen >= envelope.order]
            if late:
                self.note(f"{envelope.type} of the control lane was handled after events that came no earlier")
        self._orders.append((envelope.order, self.bus.taken, is_control))

    def _check_nothing_lost(self) -> None:
        ended: Counter[str] = Counter()
        for record in self.records:
            if "lane" in record:
                ended[record["type"]] += 1
            elif record["type"] == "bus:dropped":
                ended[record["payload"]["droppedType"]] += record["payload"]["count"]
        for kind, count in self.bus.asked.items():
            if ended[kind] != count:
                self.note(f"{count} events {kind} were posted, {ended[kind]} were handled or counted as dropped")
        allowed: Counter[str] = Counter()
        for record in self.of("output:resume"):
            allowed[record["generationId"]] += record["payload"]["repeatedWords"]
        for generation_id, count in self._said_again.items():
            if count > allowed[generation_id] and self.generations.get(generation_id) is not None:
                self.note(f"{count} words of {generation_id} were said twice, {allowed[generation_id]} may be")
        for key, count in self.effects_run.items():
            if count > 1:
                self.note(f"the effect {key} ran {count} times")

    # --- looking ------------------------------------------------------------------------------------------

    def of(self, kind: str) -> list[Record]:
        """Return the records of one kind of this program."""
        return [record for record in self.records if record["type"] == kind]

    def payloads(self, kind: str) -> list[Record]:
        """Return their payloads."""
        return [record["payload"] for record in self.of(kind)]

    def states(self, generation_id: str) -> list[str]:
        """Return the states of an answer in order."""
        return [r["payload"]["to"] for r in self.of("generation:state") if r.get("generationId") == generation_id]

    def answers(self) -> list[Record]:
        """Return what was stored of the character's answers."""
        return [p for p in self.payloads("history:commit") if p["role"] == "assistant"]

    def stored(self) -> list[dict[str, Any]]:
        """Return all stored messages."""
        found: list[dict[str, Any]] = self.database.transact_now(records.list_messages)
        return found

    def words_sounded(self) -> str:
        """Return the words that sounded whole, in the order they first did."""
        return " ".join(word_spans(self.intents[i].text)[n].text for i, n in self.complete_words)

    def check_speculation(self) -> None:
        """Raise if an answer that is not confirmed has left anything in the store or the record."""
        guesses = {g.generation_id for g in self.generations.all if g.is_speculative}
        if not guesses:
            return
        stored = self.database.transact_now(lambda db: db.execute("SELECT generation_id FROM messages").fetchall())
        assert not guesses & {row[0] for row in stored}, "the store has words of an answer that is not confirmed"
        told = {
            r.get("generationId") for r in self.records if r["type"] in ("history:commit", "turn:commit", "tool:call")
        }
        assert not guesses & told, "the record has deeds of an answer that is not confirmed"

    def check(self) -> None:
        """Raise if something happened that must not."""
        assert not self.problems, "\n".join(dict.fromkeys(self.problems))


def _number(intent_id: IntentId) -> tuple[int, ...]:
    return tuple(int(part) for part in intent_id.removeprefix("i").split("-"))
