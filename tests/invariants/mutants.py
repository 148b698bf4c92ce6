"""Wrong versions of the logic, each of which the scenarios or the random conversations must notice."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from audio.playback import Player
from audio.player_render import Play
from audio.tts.speech_worker import SpeechWorker
from orchestrator.bus import bus as bus_module
from orchestrator.bus import lane_queue
from orchestrator.bus.bus import Bus
from orchestrator.contracts.events import OutputStateChanged
from orchestrator.dialogue.conversation import Conversation
from orchestrator.dialogue.effects import TurnEffects
from orchestrator.dialogue.heard import SpokenMessage, SpokenPiece
from orchestrator.dialogue.held import HeldAnswers
from orchestrator.dialogue.history import History
from orchestrator.dialogue.tool_results import ToolResults
from orchestrator.dialogue.turn_loop import TurnLoop
from orchestrator.generation import Generation, Generations
from orchestrator.speech.intent_queue import IntentQueue
from orchestrator.store import records

Mutate = Callable[[pytest.MonkeyPatch], None]
MUTANTS: dict[str, Mutate] = {}


def mutant(change: Mutate) -> Mutate:
    MUTANTS[change.__name__] = change
    return change


@mutant
def watermark_skipped(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Generation, "is_stale", property(lambda self: False))
    patch.setattr(Generations, "is_stale", lambda self, generation_id: False)


@mutant
def purge_skipped(patch: pytest.MonkeyPatch) -> None:
    def only_acknowledge(self: Any, generation_id: Any, reason: str) -> None:
        self._tell(OutputStateChanged(state="stopped"), generation_id)
        self._post()

    patch.setattr(SpeechWorker, "purge", only_acknowledge)


@mutant
def player_purge_skipped(patch: pytest.MonkeyPatch) -> None:
    def only_acknowledge(self: Any, generation_id: Any) -> None:
        self._outbox.tell(OutputStateChanged(state="stopped"), generation_id)
        self._outbox.flush()

    patch.setattr(Player, "purge", only_acknowledge)


@mutant
def commit_late(patch: pytest.MonkeyPatch) -> None:
    async def do_not_wait(self: Any, previous: Any) -> None:
        return None

    patch.setattr(TurnLoop, "_wait_for_settled", do_not_wait)


@mutant
def resumed_twice(patch: pytest.MonkeyPatch) -> None:
    resume = Player._resume_now

    def twice(self: Any, generation_id: Any) -> None:
        resume(self, generation_id)
        for item in self._segments.items:
            if item.generation_id == generation_id:
                self._renderer.commands.append(Play(segment=item.segment, start=item.start))

    patch.setattr(Player, "_resume_now", twice)


@mutant
def resumed_from_the_start(patch: pytest.MonkeyPatch) -> None:
    from audio.player_ledger import PlayedSegment

    rewind = PlayedSegment.rewind

    def all_of_it(self: Any, held_s: float) -> Any:
        found = rewind(self, held_s)
        self.start = 0
        return found

    patch.setattr(PlayedSegment, "rewind", all_of_it)


@mutant
def never_resumed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SpeechWorker, "resume", lambda self, generation_id: None)


@mutant
def hold_skipped(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SpeechWorker, "hold", lambda self, generation_id: None)
    patch.setattr(Player, "cut", lambda self: None)


@mutant
def history_keeps_the_full_text(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SpokenMessage, "heard", property(lambda self: self.text))


@mutant
def cut_words_count_as_heard(patch: pytest.MonkeyPatch) -> None:
    from orchestrator.dialogue.heard import HeardLedger

    def count(self: Any, intent_id: Any, word: Any) -> None:
        piece: SpokenPiece | None = self._pieces.get(intent_id)
        if piece is not None:
            piece.started = True
            piece.heard_chars = max(piece.heard_chars, word.char_end)

    patch.setattr(HeardLedger, "on_word", count)


@mutant
def duplicates_pass(patch: pytest.MonkeyPatch) -> None:
    post = Bus.post
    patch.setattr(Bus, "post", lambda self, event: post(self, dataclasses.replace(event, dedupe_key=None)))


@mutant
def control_not_first(patch: pytest.MonkeyPatch) -> None:
    ranks = {lane: -rank for lane, rank in lane_queue._RANK.items()}
    patch.setattr(lane_queue, "_RANK", ranks)


@mutant
def nothing_coalesces(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(bus_module, "coalesce_key_of", lambda row, event: None)


@mutant
def the_oldest_context_wins(patch: pytest.MonkeyPatch) -> None:
    push = lane_queue.LaneQueue.push

    def keep_old(self: Any, envelope: Any, *, delay_until_s: float = 0.0) -> Any:
        key = envelope.coalesce_key
        old = self._by_key.get(key) if key is not None else None
        if old is not None and old.envelope is not None:
            return envelope
        return push(self, envelope, delay_until_s=delay_until_s)

    patch.setattr(lane_queue.LaneQueue, "push", keep_old)


@mutant
def waiting_is_unbounded(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(lane_queue.LaneQueue, "waiting", lambda self, kind: 0)


@mutant
def drops_are_not_counted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Bus, "_note_drop", lambda self, kind, reason, event: None)


@mutant
def stale_interrupts_act(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Conversation, "_is_stale", lambda self, envelope: False)


@mutant
def late_results_are_used(patch: pytest.MonkeyPatch) -> None:
    result = ToolResults._result

    def used(self: Any, call: Any, *, ok: bool, disposition: str, value: Any = None) -> Any:
        return result(self, call, ok=ok, disposition="used", value=value)

    patch.setattr(ToolResults, "_result", used)


@mutant
def effects_do_not_wait(patch: pytest.MonkeyPatch) -> None:
    async def only_check(self: Any) -> None:
        self._generation.check()

    patch.setattr(TurnEffects, "_may_begin", only_check)


@mutant
def only_an_answer_without_a_sound_is_held(patch: pytest.MonkeyPatch) -> None:
    begun = Conversation._on_speech

    def unheard_only(self: Any, envelope: Any) -> None:
        active = self._turns.active
        if active is not None and active.sounded:
            self._output.audible = active.generation_id
        begun(self, envelope)

    patch.setattr(Conversation, "_on_speech", unheard_only)


@mutant
def effects_are_not_noted_before_they_run(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(records, "start_effect", lambda db, **fields: None)


@mutant
def speculation_is_confirmed_at_once(patch: pytest.MonkeyPatch) -> None:
    init = Generation.__init__

    def confirmed(self: Any, **fields: Any) -> None:
        init(self, **fields)
        self.confirmed.set()

    patch.setattr(Generation, "__init__", confirmed)


@mutant
def held_answers_block_the_others(patch: pytest.MonkeyPatch) -> None:
    after = IntentQueue.next_for_output

    def blocked(self: Any, now_s: float) -> Any:
        return None if self._held else after(self, now_s)

    patch.setattr(IntentQueue, "next_for_output", blocked)


@mutant
def what_stood_aside_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    def drop(self: Any, notification: Any) -> None:
        self.aside.clear()

    patch.setattr(HeldAnswers, "come_back", drop)


@mutant
def joined_inputs_are_two_messages(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(History, "has_input_of", lambda self, generation_id: False)


@mutant
def failures_are_stored_as_answers(patch: pytest.MonkeyPatch) -> None:
    spawn = TurnLoop._spawn_settle
    patch.setattr(
        TurnLoop,
        "_spawn_settle",
        lambda self, work, outcome: spawn(self, work, "completed" if outcome == "failed" else outcome),
    )


@mutant
def intents_end_twice(patch: pytest.MonkeyPatch) -> None:
    finish = IntentQueue._finish

    def twice(self: Any, entry: Any) -> None:
        finish(self, entry)
        self._entries.append(entry)
        finish(self, entry)

    patch.setattr(IntentQueue, "_finish", twice)


@mutant
def the_state_is_not_stored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(records, "save_state", lambda db, state: 1)


@mutant
def a_held_answer_goes_on_never_by_itself(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(HeldAnswers, "arm", lambda self: None)


@mutant
def guesses_are_stored_at_once(patch: pytest.MonkeyPatch) -> None:
    snapshot = TurnLoop._snapshot

    async def store_too(self: Any, work: Any, *, joined: Any) -> Any:
        if work.generation.is_speculative:
            await self._store_input(work, joined)
        return await snapshot(self, work, joined=joined)

    patch.setattr(TurnLoop, "_snapshot", store_too)


@mutant
def an_old_stop_counts_for_a_later_one(patch: pytest.MonkeyPatch) -> None:
    cancel = TurnLoop.cancel

    def with_old_stop(self: Any, generation: Any, reason: Any, *, is_joined: bool = False) -> bool:
        had_stopped = generation.stopped.is_set()
        done: bool = cancel(self, generation, reason, is_joined=is_joined)
        if had_stopped:
            generation.stopped.set()
        return done

    patch.setattr(TurnLoop, "cancel", with_old_stop)


@mutant
def keys_do_not_tell_arguments_apart(patch: pytest.MonkeyPatch) -> None:
    from orchestrator.dialogue import effects

    patch.setattr(effects, "stored_key", lambda key, args: key)


@mutant
def words_that_never_come_are_waited_for(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Conversation, "_on_words_overdue", lambda self, utterance: None)
