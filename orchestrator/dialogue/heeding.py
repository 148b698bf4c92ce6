"""Whether words are meant for the character, with all that tells it: attention, what is going on, who asked what."""

from __future__ import annotations

from collections.abc import Callable

from orchestrator.clock import Clock
from orchestrator.contracts.dialogue import Brain
from orchestrator.contracts.events import Event, InputUser
from orchestrator.contracts.ids import UtteranceId
from orchestrator.dialogue.attention import Attention, Heed
from orchestrator.dialogue.misheard import TYPED
from orchestrator.dialogue.turn_loop import TurnLoop
from orchestrator.dialogue.turn_work import Script
from orchestrator.dialogue.utterances import Utterance


class Heeding:
    """Asks the attention about words, and keeps what the character says to being called until its turn begins."""

    def __init__(self, *, attention: Attention, turns: TurnLoop, brain: Callable[[], Brain], clock: Clock) -> None:
        """Use `turns` and `brain` to tell what the character has going on. Lives on the core loop."""
        self._attention = attention
        self._turns = turns
        self._brain = brain
        self._clock = clock
        self._called: tuple[UtteranceId | None, Script] | None = None

    def judge(self, user: InputUser, utterance: Utterance) -> Heed:
        """Return what spoken words are for the character; nothing changes."""
        # Who talks while the character has something going on, or holds the key, talks to it.
        is_meant = self._turns.active is not None or utterance.by_ptt
        is_answer = is_meant or self._brain().accepts_as_answer(user.text, user.language)
        return self._attention.judge(user.text, began_s=utterance.onset_at_s, is_answer=is_answer)

    def note(self, user: InputUser, utterance: Utterance) -> bool:
        """Note what spoken words change about the attention; False: they are not meant for the character."""
        heed = self.judge(user, utterance)
        self._attention.note(heed, user.text, utterance.utterance_id)
        script = self._attention.script_for(heed, user.text)
        self._called = (utterance.utterance_id, script) if script is not None else None
        return heed is not Heed.IGNORE

    def script_for(self, payload: InputUser, event: Event) -> Script | None:
        """Return what the character says when it is called or sent to sleep; who types is always meant."""
        if payload.via in TYPED:
            heed = self._attention.judge(payload.text, began_s=self._clock.monotonic_s(), is_answer=True)
            is_sleep = heed is Heed.SLEEP
            self._attention.set_asleep(is_sleep, because="typed")
            return self._attention.script_for(heed, payload.text) if is_sleep else None
        called, self._called = self._called, None
        return called[1] if called is not None and called[0] == event.utterance_id else None
