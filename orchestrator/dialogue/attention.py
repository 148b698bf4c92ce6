"""Whom the character answers: everyone, or only who calls it by name or has just talked with it; and nobody, asleep."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum

from orchestrator.clock import Clock
from orchestrator.contracts.dialogue import Message
from orchestrator.contracts.events import AttentionChanged, Event, InputIgnored
from orchestrator.contracts.ids import UtteranceId
from orchestrator.dialogue.phrase_book import clauses, normalise
from orchestrator.dialogue.turn_context import CoreTurn
from orchestrator.dialogue.turn_work import Script
from orchestrator.speech.words import has_cjk

_SLEEP = frozenset((
    "go to sleep", "sleep", "you can sleep", "you can go to sleep", "good night", "time to sleep",
    "睡吧", "去睡吧", "睡觉吧", "去睡觉吧", "你睡吧", "可以睡了", "你可以睡了", "晚安", "休息吧", "去休息吧",
))  # fmt: skip
_POLITE = ("please", "now", "okay", "ok", "hey", "well", "好", "好了", "那", "请", "嘿", "喂")
_GREETINGS = ("hey", "hello", "hi", "ok", "okay", "嘿", "喂", "你好", "哈喽")
_LIKE = 0.8
_SAYINGS = {
    "sleep": {"en": "Good night. Call me when you need me.", "zh": "晚安，需要我的时候叫我。"},
    "here": {"en": "Yes?", "zh": "我在。"},
}


class Heed(StrEnum):
    """What words are for the character."""

    ANSWER = "answer"
    HERE = "here"
    """It was only called."""
    SLEEP = "sleep"
    IGNORE = "ignore"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionSettings:
    """`window_s`: how long after an exchange no name is needed; None: never. `names` are those it answers to."""

    window_s: float | None = None
    names: tuple[str, ...] = ()


def is_addressed(text: str, names: tuple[str, ...]) -> bool:
    """Whether a clause of `text` begins or ends with one of `names`, or with what a recogniser makes of it."""
    known = [normalise(name) for name in names if normalise(name)]
    for clause, _ in clauses(text):
        words = clause.split()
        while words and words[0] in _GREETINGS:
            words = words[1:]
        if not words:
            continue
        rest = "".join(words)
        for name in known:
            if has_cjk(name):
                bare = rest
                for greeting in _GREETINGS:
                    bare = bare.removeprefix(greeting)
                if bare.startswith(name) or bare.endswith(name):
                    return True
                continue
            length = len(name.split())
            ends = (" ".join(words[:length]), " ".join(words[-length:]))
            if any(SequenceMatcher(a=name, b=end).ratio() >= _LIKE for end in ends):
                return True
    return False


def is_only_called(text: str, names: tuple[str, ...]) -> bool:
    """Whether `text` is nothing but the name, perhaps with a greeting before it."""
    if not is_addressed(text, names):
        return False
    bare = normalise(text).replace(" ", "")
    for greeting in sorted(_GREETINGS, key=len, reverse=True):
        bare = bare.removeprefix(greeting)
    return any(SequenceMatcher(a=normalise(name).replace(" ", ""), b=bare).ratio() >= _LIKE for name in names)


def sends_to_sleep(text: str, names: tuple[str, ...]) -> bool:
    """Whether `text` as a whole tells the character to sleep."""
    known = {normalise(name) for name in names}
    left = []
    for clause, _ in clauses(text):
        words = [word for word in clause.split() if word not in _POLITE and word not in known]
        if words:
            left.append(" ".join(words))
    bare = [_without_names(part, known) for part in left]
    return bool(bare) and all(part in _SLEEP for part in bare)


def _without_names(part: str, names: set[str]) -> str:
    for name in names:
        if has_cjk(name):
            part = part.removeprefix(name).removesuffix(name)
    return part


class Attention:
    """Keeps who is listened to. Lives on the core loop; `on_change` is called when the state changed."""

    def __init__(
        self,
        *,
        settings: AttentionSettings,
        clock: Clock,
        trace: Callable[[Event], None],
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        """Begin awake; where a name is needed, it is needed at once."""
        self._settings = settings
        self._clock = clock
        self._trace = trace
        self._on_change = on_change
        self._is_asleep = False
        self._until_s = float("-inf")
        self._timer: asyncio.TimerHandle | None = None
        self.state = "always" if settings.window_s is None else "waiting"

    def configure(self, settings: AttentionSettings) -> None:
        """Take other settings from now on."""
        self._settings = settings
        self._update("settings")

    @property
    def is_asleep(self) -> bool:
        """Whether only its name wakes it."""
        return self._is_asleep

    def judge(self, text: str, *, began_s: float, is_answer: bool = False) -> Heed:
        """Say what `text`, spoken from `began_s` on, is for the character; changes nothing.

        `is_answer`: a running question takes it as its answer.
        """
        names = self._settings.names
        called = is_addressed(text, names)
        is_open = self._settings.window_s is None or began_s <= self._until_s or is_answer
        if self._is_asleep and not called:
            return Heed.IGNORE
        if not self._is_asleep and not called and not is_open:
            return Heed.IGNORE
        if sends_to_sleep(text, names):
            return Heed.SLEEP
        needs_call = self._is_asleep or not is_open
        return Heed.HERE if needs_call and is_only_called(text, names) else Heed.ANSWER

    def note(self, heed: Heed, text: str, utterance_id: UtteranceId | None) -> None:
        """Act on what was judged of a finished utterance."""
        if heed is Heed.IGNORE:
            because = "asleep" if self._is_asleep else "not_addressed"
            self._trace(
                Event(payload=InputIgnored(text=text, because=because), source="dialogue", utterance_id=utterance_id)
            )
            return
        self.set_asleep(heed is Heed.SLEEP, because="voice")

    def set_asleep(self, on: bool, *, because: str) -> None:
        """Fall asleep or wake up; awake, no name is needed for a while."""
        self._is_asleep = on
        if not on:
            self.note_exchange(because=because)
        else:
            self._until_s = float("-inf")
            self._update(because)

    def note_exchange(self, *, because: str = "exchange") -> None:
        """An exchange has just taken place: the time without a name begins anew."""
        if self._is_asleep:
            return
        window_s = self._settings.window_s
        if window_s is not None:
            self._until_s = self._clock.monotonic_s() + window_s
            self.close()
            self._timer = asyncio.get_running_loop().call_later(window_s + 0.01, self._update, "time")
        self._update(because)

    def close(self) -> None:
        """Stop waiting for time to pass."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def script_for(self, heed: Heed, text: str) -> Script | None:
        """Return what is said without the brain: good night, or that it listens."""
        if heed not in (Heed.SLEEP, Heed.HERE):
            return None
        language = "zh" if has_cjk(text) else "en"
        said = _SAYINGS[heed.value][language]

        async def script(turn: CoreTurn) -> None:
            await turn.reply.say(Message(text=said, source="system", language=language))

        return script

    def _update(self, because: str) -> None:
        state = "always"
        if self._is_asleep:
            state = "asleep"
        elif self._settings.window_s is not None:
            state = "awake" if self._clock.monotonic_s() <= self._until_s else "waiting"
        if state != self.state:
            self.state = state
            self._trace(Event(payload=AttentionChanged(state=state, because=because), source="dialogue"))
            self._on_change()
