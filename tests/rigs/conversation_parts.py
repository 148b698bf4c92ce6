"""What is scripted around the real parts: voice, model, brain, window, and spies on bus, output and answers."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from audio.tts.speech_worker import SpeechWorker
from audio.tts.voice import Utterance
from audio.workers import VirtualWorker
from orchestrator.bus.bus import Bus
from orchestrator.contracts.dialogue import LlmRequest, LlmTask, Message, TurnHeard, TurnInput
from orchestrator.contracts.errors import PartFailed
from orchestrator.contracts.events import (
    Event,
    LlmCallStarted,
    LlmEnded,
    Payload,
    TimedWord,
)
from orchestrator.contracts.ids import GenerationId, IntentId
from orchestrator.contracts.intents import SpeechIntent
from orchestrator.contracts.lanes import GenerationState
from orchestrator.contracts.views import CharacterTextView, ExpressionView, SpeechTimelineView, StateView, View
from orchestrator.generation import Generation, Generations
from orchestrator.speech.words import word_spans

if TYPE_CHECKING:
    from rigs.conversation_rig import ConversationRig

RATE_HZ = 8_000
WORD_FRAMES = 800
WORD_S = WORD_FRAMES / RATE_HZ
_LOWEST, _STEP, _DUCKED = 0.1, 1e-4, 0.125


# --- scripted ends ----------------------------------------------------------------------------------------------------


class Levels:
    """Hands out sound levels: one per (sentence, word)."""

    def __init__(self) -> None:
        self._owners: list[tuple[IntentId, int]] = []
        self._renamed: dict[IntentId, IntentId] = {}

    def take(self, intent_id: IntentId, index: int) -> float:
        self._owners.append((intent_id, index))
        assert len(self._owners) < 4000, "a run has more words than there are levels"
        return _LOWEST + (len(self._owners) - 1) * _STEP

    def rename(self, before: IntentId, after: IntentId) -> None:
        """Let what was synthesised ahead belong to the first sentence it was said as."""
        self._renamed.setdefault(before, after)

    def owner(self, value: float) -> tuple[IntentId, int] | None:
        """Return whose level `value` is, at full or ducked volume; None for the middle of a fade or a ramp."""
        full = value if value >= _LOWEST - _STEP / 2 else value / _DUCKED
        place = round((full - _LOWEST) / _STEP)
        is_exact = abs(_LOWEST + place * _STEP - full) < _STEP * 0.2
        if not is_exact or not 0 <= place < len(self._owners):
            return None
        intent_id, index = self._owners[place]
        return self._renamed.get(intent_id, intent_id), index


class LevelVoice:
    """Speaks each word as 0.1 s of its own level. `fail_next` sentences can't be said."""

    name = "level"

    def __init__(self, levels: Levels) -> None:
        self._levels = levels
        self.intent_id = IntentId("")
        self.fail_next = 0
        self.calls = 0

    def speaks(self, language: str) -> bool:
        return True

    def synthesise(self, text: str, *, language: str) -> Utterance:
        self.calls += 1
        if self.fail_next:
            self.fail_next -= 1
            raise PartFailed("tts_failed", "the scripted voice failed", part="tts", recoverable=True)
        spans = word_spans(text)
        pcm = np.zeros(len(spans) * WORD_FRAMES, np.float32)
        words = []
        for index, span in enumerate(spans):
            pcm[index * WORD_FRAMES : (index + 1) * WORD_FRAMES] = self._levels.take(self.intent_id, index)
            words.append(
                TimedWord(
                    index=index,
                    text=span.text,
                    char_start=span.char_start,
                    char_end=span.char_end,
                    start_s=index * WORD_S,
                    end_s=(index + 1) * WORD_S,
                )
            )
        return Utterance(pcm=pcm, rate_hz=RATE_HZ, words=tuple(words), visemes=(), estimated=False)


class NamingWorker(VirtualWorker):
    """Tells the voice whose sentence it is about to say."""

    voice: LevelVoice | None = None

    def submit(self, job: Any, *, name: str, cost_s: float | None = None) -> bool:
        def named() -> Any:
            assert self.voice is not None
            self.voice.intent_id = IntentId(name.removeprefix("tts "))
            return job()

        return super().submit(named, name=name, cost_s=cost_s)


class SpeechSpy:
    """Passes everything on to the speech worker and remembers the intents."""

    def __init__(self, inner: SpeechWorker, rig: ConversationRig) -> None:
        self._inner = inner
        self._rig = rig
        self._ahead: dict[str, list[GenerationId]] = {}

    def submit(self, intent: SpeechIntent) -> bool:
        self._rig.intents[intent.intent_id] = intent
        generation = self._rig.generations.get(intent.generation_id)
        if generation is not None and generation.is_speculative:
            self._rig.note(f"{intent.intent_id} of a speculative answer reached the output")
        # What a guess had made that was thrown away is used by the next answer that says the same.
        for generation_id in self._ahead.pop(intent.text, []):
            self._rig.levels.rename(IntentId(f"ahead {generation_id}"), intent.intent_id)
        return self._inner.submit(intent)

    def prepare(self, intent: SpeechIntent) -> None:
        generation = self._rig.generations.get(intent.generation_id)
        if generation is None or not generation.is_speculative:
            self._rig.note(f"{intent.generation_id} prepares what it could say")
        self._ahead.setdefault(intent.text, []).append(intent.generation_id)
        self._inner.prepare(intent)

    def hold(self, generation_id: GenerationId) -> None:
        self._inner.hold(generation_id)

    def resume(self, generation_id: GenerationId) -> None:
        self._inner.resume(generation_id)

    def purge(self, generation_id: GenerationId, reason: str) -> None:
        self._inner.purge(generation_id, reason)

    def set_muted(self, on: bool) -> None:
        self._inner.set_muted(on)


class SpyBus(Bus):
    """The real bus; counts what it was asked to take, so that nothing can be lost without a counter."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.asked: Counter[str] = Counter()
        self.taken = 0

    def post(self, event: Event) -> bool:
        payload = getattr(event, "payload", None)
        self.asked[str(getattr(payload, "TYPE", "") or "unknown")] += 1
        is_taken = super().post(event)
        self.taken += is_taken
        return is_taken


class SpyGenerations(Generations):
    """The real thing; remembers all it made."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.all: list[Generation] = []

    def start(self, **fields: Any) -> Generation:
        generation = super().start(**fields)
        self.all.append(generation)
        return generation


class Views:
    """The window: remembers what it was shown, and refuses what belongs to a cancelled answer."""

    def __init__(self, rig: ConversationRig) -> None:
        self._rig = rig
        self.shown: list[View] = []
        self.state = ""

    def show(self, view: View) -> bool:
        self.shown.append(view)
        if isinstance(view, StateView):
            self.state = view.state
        if isinstance(view, (CharacterTextView, SpeechTimelineView, ExpressionView)):
            generation_id = view.generation_id
            if generation_id is not None and self._rig.generations.is_stale(generation_id):
                self._rig.note(f"{type(view).__name__} of {generation_id} after it was over")
        return True


@dataclass(eq=False)
class ModelCall:
    """One open call of the scripted model; tests put pieces in."""

    generation_id: GenerationId
    request: LlmRequest
    pieces: asyncio.Queue[str | Exception | None] = field(default_factory=asyncio.Queue)
    is_over: bool = False
    is_closed: bool = False


class ScriptedModel:
    """The `Llm` of one turn."""

    is_configured = True
    can_plan = False

    def __init__(self, rig: ConversationRig, generation_id: GenerationId, emit: Callable[[Payload], None]) -> None:
        self._rig = rig
        self._generation_id = generation_id
        self._emit = emit

    async def stream(self, request: LlmRequest) -> AsyncIterator[str]:
        call = ModelCall(generation_id=self._generation_id, request=request)
        self._rig.calls.append(call)
        call_id = self._rig.ids.call()
        self._emit(LlmCallStarted(call_id=call_id, task=request.task, model="scripted"))
        outcome, tokens = "cancelled", 0
        try:
            while True:
                piece = await call.pieces.get()
                if piece is None:
                    outcome = "ok"
                    return
                if isinstance(piece, Exception):
                    outcome = "failed"
                    raise piece
                tokens += 1
                yield piece
        finally:
            call.is_over = call.is_closed = True
            self._emit(LlmEnded(call_id=call_id, outcome=outcome, tokens=tokens))

    async def complete(self, request: LlmRequest) -> str:
        return "".join([piece async for piece in self.stream(request)])


class ModelHost:
    """The core's model side."""

    def __init__(self, rig: ConversationRig) -> None:
        self._rig = rig

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass

    def for_turn(self, generation_id: GenerationId, emit: Callable[[Payload], None]) -> ScriptedModel:
        return ScriptedModel(self._rig, generation_id, emit)


@dataclass(eq=False)
class RunningTool:
    """A side effect under way; tests end it."""

    key: str
    generation_id: GenerationId
    result: asyncio.Future[Any]


Step = tuple[Any, ...]


class ScriptedBrain:
    """Does what the plan says: ("say", text[, interruptible]), ("llm",), ("tool", key), ("commit",), ("raise",)."""

    def __init__(self, rig: ConversationRig) -> None:
        self._rig = rig
        self.state: dict[str, Any] = {"settled": 0}
        self.answers: frozenset[str] = frozenset()

    def begin(self, turn: Any, user: TurnInput) -> ScriptedTurn:
        self._rig.note_snapshot(turn)
        if self._rig.plans and user.kind == "user":
            plan = self._rig.plans.popleft()
        elif user.kind == "user":
            plan = (("llm",),)
        else:
            plan = (("say", f"about {user.kind} nothing."),)
        return ScriptedTurn(self._rig, self, turn, user, plan)

    def accepts_as_answer(self, text: str, language: str | None) -> bool:
        return text in self.answers

    def expected_answer(self) -> str | None:
        return None

    def silence_timeout_s(self) -> float | None:
        return None

    def dump_state(self) -> Mapping[str, Any]:
        return dict(self.state)

    def load_state(self, state: Mapping[str, Any]) -> None:
        self.state = dict(state)


class ScriptedTurn:
    """One turn of the plan."""

    def __init__(
        self, rig: ConversationRig, brain: ScriptedBrain, turn: Any, user: TurnInput, plan: tuple[Step, ...]
    ) -> None:
        self._rig = rig
        self._brain = brain
        self._turn = turn
        self._user = user
        self._plan = plan
        self._settled = 0

    async def run(self) -> None:
        rig, turn = self._rig, self._turn
        rig.inputs.append(self._user)
        for step in self._plan:
            match step:
                case ("say", text, *rest):
                    may_interrupt = rest[0] if rest else True
                    await turn.reply.say(Message(text=text, source="task", key="k", interruptible=may_interrupt))
                case ("llm",):
                    request = LlmRequest(task=LlmTask.PERSONA, messages=())
                    await turn.reply.stream(turn.llm.stream(request), Message(text="", source="persona"))
                case ("tool", key):
                    with suppress(TimeoutError, ArithmeticError):
                        await self._tool(key)
                case ("commit",):
                    await turn.commit_early(self._brain.dump_state())
                case ("raise",):
                    raise ArithmeticError("the scripted turn fails")
                case _:
                    raise AssertionError(step)

    async def _tool(self, key: str) -> None:
        rig, generation_id = self._rig, self._turn.generation_id

        async def effect() -> str:
            generation = rig.generations.get(generation_id)
            assert generation is not None
            if generation.is_stale:
                rig.note(f"the effect {key} began after {generation_id} was over")
            if generation.state is GenerationState.SUSPENDED:
                rig.note(f"the effect {key} began while {generation_id} was held")
            if generation.is_speculative:
                rig.note(f"the effect {key} of a speculative answer began")
            rig.effects_run[key] += 1
            tool = RunningTool(key, generation_id, asyncio.get_running_loop().create_future())
            rig.tools.append(tool)
            try:
                return str(await tool.result)
            except ArithmeticError:
                rig.effects_run[key] -= 1
                raise

        await self._turn.effects.run(key=key, name="tool", args={}, effect=effect, timeout_s=60.0)

    def settle(self, heard: TurnHeard) -> Mapping[str, Any]:
        self._settled += 1
        if self._settled > 1:
            self._rig.note(f"{self._turn.generation_id} was settled twice")
        self._rig.heard[self._turn.generation_id] = heard
        self._brain.state = {"settled": self._brain.state.get("settled", 0) + 1}
        return dict(self._brain.state)
