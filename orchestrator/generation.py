"""One handle per answer: its states, its cancel, its staleness."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from orchestrator.clock import Clock
from orchestrator.contracts.errors import GenerationCancelled
from orchestrator.contracts.events import Event, GenerationStateChanged
from orchestrator.contracts.ids import GenerationId, IdFactory, IntentId, SessionId, SnapshotId, UtteranceId
from orchestrator.contracts.lanes import GenerationState, InterruptReason

_S = GenerationState
_ALLOWED: dict[GenerationState, frozenset[GenerationState]] = {
    _S.PREPARING: frozenset({_S.STREAMING, _S.SUSPENDED, _S.COMPLETED, _S.CANCELLED, _S.FAILED}),
    _S.STREAMING: frozenset({_S.SUSPENDED, _S.COMPLETED, _S.CANCELLED, _S.FAILED}),
    _S.SUSPENDED: frozenset({_S.PREPARING, _S.STREAMING, _S.CANCELLED, _S.FAILED}),
    _S.COMPLETED: frozenset(),
    _S.CANCELLED: frozenset(),
    _S.FAILED: frozenset(),
}

Trace = Callable[[Event], None]


class Generation:
    """One answer, from the decision to answer to its end. Lives on the core loop; `is_stale` may be read anywhere.

    `order` rises with every new generation. `sounded` tells whether any of it was heard or shown. `running` is clear
    while it is suspended, `confirmed` while it is speculative; `stopped` is set once the output has acknowledged its
    end, `settled` once it is in history.
    """

    def __init__(
        self,
        *,
        generation_id: GenerationId,
        order: int,
        session_id: SessionId,
        utterance_id: UtteranceId | None,
        snapshot_id: SnapshotId | None,
        speculative: bool,
        trace: Trace,
    ) -> None:
        """Begin in PREPARING; use `Generations.start`."""
        self.generation_id = generation_id
        self.order = order
        self.session_id = session_id
        self.utterance_id = utterance_id
        self.snapshot_id = snapshot_id
        self.is_speculative = speculative
        self.state = _S.PREPARING
        self.reason: str | None = None
        self.sounded = False
        self.suspend_count = 0
        self.protected_intents: set[IntentId] = set()
        self.cue_intents: set[IntentId] = set()
        self.task: asyncio.Task[Any] | None = None
        self.running = asyncio.Event()
        self.running.set()
        self.confirmed = asyncio.Event()
        if not speculative:
            self.confirmed.set()
        self.settled = asyncio.Event()
        self.stopped = asyncio.Event()
        self._before_suspend = _S.PREPARING
        self._trace = trace
        self._announce(None, None)

    @property
    def is_active(self) -> bool:
        """Whether the answer has not reached a final state."""
        return not self.state.is_final

    @property
    def is_protected(self) -> bool:
        """Whether the user's voice must not interrupt it now: something that may not be interrupted waits or sounds."""
        return bool(self.protected_intents)

    @property
    def is_stale(self) -> bool:
        """Whether nothing of it may be heard, seen or acted on any more."""
        return self.state in (_S.CANCELLED, _S.FAILED)

    def check(self) -> None:
        """Raise `GenerationCancelled` when stale."""
        if self.is_stale:
            raise GenerationCancelled(self.reason or "")

    def begin_streaming(self) -> None:
        """Note that output has begun to be made; no effect after the first time. A suspended answer stays suspended."""
        if self.state is _S.PREPARING:
            self._enter(_S.STREAMING, None)
        elif self.state is _S.SUSPENDED:
            self._before_suspend = _S.STREAMING

    def suspend(self, reason: str) -> bool:
        """Hold the answer; False if it was final or already held."""
        if self.state in (_S.PREPARING, _S.STREAMING):
            self._before_suspend = self.state
            self.suspend_count += 1
            self._enter(_S.SUSPENDED, reason)
            return True
        return False

    def resume(self, reason: str) -> bool:
        """Let a held answer go on; False if it was not held."""
        if self.state is not _S.SUSPENDED:
            return False
        self._enter(self._before_suspend, reason)
        return True

    def confirm(self) -> None:
        """Turn a speculative answer into a real one."""
        if self.is_speculative and self.is_active:
            self.is_speculative = False
            self.confirmed.set()
            self._announce(self.state.value, "confirmed")

    def finish(self, state: GenerationState, reason: str | None) -> bool:
        """Enter the final `state`; False (and no effect) if there is one already."""
        if not state.is_final:
            raise ValueError(f"{state} is not final")
        if self.state.is_final:
            return False
        self._enter(state, reason)
        return True

    def _enter(self, state: GenerationState, reason: str | None) -> None:
        if state not in _ALLOWED[self.state]:
            raise ValueError(f"a generation cannot go from {self.state} to {state}")
        before = self.state
        self.state = state
        self.reason = reason
        if state is _S.SUSPENDED:
            self.running.clear()
        else:
            self.running.set()
        self._announce(before.value, reason)

    def _announce(self, before: str | None, reason: str | None) -> None:
        self._trace(
            Event(
                payload=GenerationStateChanged(
                    from_state=before,
                    to_state=self.state.value,
                    reason=reason,
                    speculative=self.is_speculative,
                    snapshot_id=self.snapshot_id,
                ),
                source="core",
                session_id=self.session_id,
                utterance_id=self.utterance_id,
                generation_id=self.generation_id,
            )
        )


class Generations:
    """All answers of the running program, and which of them are stale.

    The set of stale ids is only ever added to and is replaced as a whole, so any thread may read it without a lock.
    Ids of answers that ended long ago leave the set; nothing that carries them can still be under way.
    """

    _KEEP = 256

    def __init__(self, ids: IdFactory, clock: Clock, trace: Trace) -> None:
        """Number from one."""
        self._ids = ids
        self._clock = clock
        self._trace = trace
        self._order = 0
        self._known: dict[GenerationId, Generation] = {}
        self._dead: frozenset[GenerationId] = frozenset()

    def start(
        self,
        *,
        session_id: SessionId,
        utterance_id: UtteranceId | None = None,
        snapshot_id: SnapshotId | None = None,
        speculative: bool = False,
    ) -> Generation:
        """Make the next generation."""
        self._order += 1
        generation = Generation(
            generation_id=self._ids.generation(),
            order=self._order,
            session_id=session_id,
            utterance_id=utterance_id,
            snapshot_id=snapshot_id,
            speculative=speculative,
            trace=self._trace,
        )
        self._known[generation.generation_id] = generation
        self._forget_old()
        return generation

    def get(self, generation_id: GenerationId | None) -> Generation | None:
        """Return the generation if it is remembered."""
        return self._known.get(generation_id) if generation_id is not None else None

    def cancel(self, generation: Generation, reason: InterruptReason | str) -> bool:
        """Mark `generation` cancelled and raise staleness; False if it was already final. Synchronous."""
        if not generation.finish(_S.CANCELLED, str(reason)):
            return False
        self._bury(generation)
        return True

    def fail(self, generation: Generation, reason: str) -> bool:
        """Mark `generation` failed and raise staleness; False if it was already final."""
        if not generation.finish(_S.FAILED, reason):
            return False
        self._bury(generation)
        return True

    def complete(self, generation: Generation) -> bool:
        """Mark `generation` completed; False if it was already final."""
        return generation.finish(_S.COMPLETED, None)

    def is_stale(self, generation_id: GenerationId) -> bool:
        """Whether `generation_id` was cancelled or has failed. Callable from any thread."""
        return generation_id in self._dead

    def _bury(self, generation: Generation) -> None:
        self._dead = self._dead | {generation.generation_id}
        if generation.task is not None and not generation.task.done():
            generation.task.cancel(msg=generation.reason)

    def _forget_old(self) -> None:
        while len(self._known) > self._KEEP:
            oldest = next(iter(self._known.values()))
            if oldest.is_active:
                return
            del self._known[oldest.generation_id]
            # Ids are never reused, and everything that could still carry this one has long been played or purged.
            self._dead = self._dead - {oldest.generation_id}
