"""Folds a finished or cut turn into the dialogue state: what was said stays, questions count only when they sounded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.tasks.asking import COUNTED
from orchestrator.tasks.state import SlotValue, State, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """A message of the turn. `asks`: the kind of asking at `place` of task `uid`; `after_effect`: about an effect."""

    key: str
    text: str
    asks: str | None = None
    uid: str | None = None
    place: str | None = None
    after_effect: bool = False


def _tasks(state: State) -> dict[str, Task]:
    tasks = [*([state.active] if state.active is not None else []), *state.paused]
    return {task.uid: task for task in tasks}


def _said_now(slots: dict[str, SlotValue], turn: int) -> dict[str, SlotValue]:
    return {name: slot for name, slot in slots.items() if slot.turn == turn and slot.by == "said"}


def keep_what_was_said(base: State, work: State, *, at: str, is_undone: bool) -> State:
    """Return `base` with what must survive a turn that is undone: slots the user said, effects that took place.

    `is_undone`: it will be done over with more words; else the program may stop here. `at` is the time of the turn.
    """
    kept = base.copy()
    kept.slots.update(_said_now(work.slots, work.turn))
    before = _tasks(kept)
    ended = kept.finished
    for uid, task in _tasks(work).items():
        said = _said_now(task.slots, work.turn)
        if uid in before:
            before[uid].slots.update(said)
            _note_done(before[uid], task)
        elif ended is not None and uid == ended.uid:
            ended.slots.update({} if is_undone else said)
            _note_done(ended, task)
        else:
            if said:
                kept.carried.setdefault(task.root, {}).update({name: slot.value for name, slot in said.items()})
            if task.done:
                _keep_done(kept, task, work.turn, at, is_undone)
    over = work.finished
    if over is not None and over.done:
        if over.uid in before:
            _note_done(before[over.uid], over)
        elif ended is not None and over.uid == ended.uid:
            _note_done(ended, over)
        else:
            _keep_done(kept, over, work.turn, at, is_undone)
    kept.focus, kept.focus_turn = work.focus, work.focus_turn
    return kept


def _note_done(kept: Task, task: Task) -> None:
    kept.done.update(task.done)
    kept.done_args.update(task.done_args)
    kept.done_slots.update(task.done_slots)
    kept.done_values.update(task.done_values)


def _keep_done(kept: State, task: Task, turn: int, at: str, is_undone: bool) -> None:
    """Keep what a task did that began in this turn: it can be corrected, and is known if the turn is done over."""
    lone = State(finished=task).copy().finished
    if lone is not None:
        lone.is_undone, lone.ended_turn, lone.ended_at = is_undone, turn, at
        kept.finished = lone


def fold_cut(work: State, messages: Sequence[Spoken], sounded: frozenset[str], opened: bool) -> None:
    """Take back what depended on being heard, in place. `opened`: the open question was first asked in this turn."""
    tasks = _tasks(work)
    for message in messages:
        if message.key in sounded:
            continue
        task = tasks.get(message.uid or "")
        if task is not None and message.asks is not None and message.place is not None:
            if message.asks in COUNTED:
                _less(task.attempts, message.place)
                _less(task.questions, message.place)
            elif message.asks == "silence":
                task.silences = max(0, task.silences - 1)
        elif message.after_effect and message.text not in work.untold:
            work.untold.append(message.text)
    if not sounded and opened and work.active is not None:
        work.active.open = False
    if not sounded:
        work.pending = None
    if work.system is not None and not work.system.waiting:
        work.system = None
    work.queue.clear()


def _less(counts: dict[str, int], place: str) -> None:
    if counts.get(place, 0) > 1:
        counts[place] -= 1
    else:
        counts.pop(place, None)
