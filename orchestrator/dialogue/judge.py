"""Looks at what was going on when an utterance ended, and lets the rules of `interruption` decide."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from orchestrator.contracts.dialogue import Brain
from orchestrator.contracts.events import InputTranscript, InputUser
from orchestrator.contracts.ids import GenerationId
from orchestrator.contracts.lanes import GenerationState
from orchestrator.dialogue.heard import HeardLedger
from orchestrator.dialogue.interruption import Decision, Situation, decide, is_faint
from orchestrator.dialogue.phrase_book import PhraseBook
from orchestrator.dialogue.turn_loop import TurnLoop
from orchestrator.dialogue.utterances import Utterance, voiced_s


class Judge:
    """Decides what utterances mean for the answer in progress. Changes nothing; lives on the core loop."""

    def __init__(self, *, turns: TurnLoop, ledger: HeardLedger, brain: Callable[[], Brain]) -> None:
        """Look at `turns` and `ledger`; `brain` tells whether words answer a running question."""
        self._turns = turns
        self._ledger = ledger
        self._brain = brain

    def decide(self, utterance: Utterance, heard: InputTranscript, book: PhraseBook) -> Decision:
        """Decide what an utterance means, if `heard` is all of it."""
        active = self._turns.active
        text = heard.text.strip()
        over = utterance.over_generation or utterance.holds
        situation = Situation(
            has_answer=active is not None,
            is_held=active is not None and active.state is GenerationState.SUSPENDED,
            sounded=active is not None and active.sounded,
            during_output=utterance.during_output,
            recent_text=self._spoken_text(over) if utterance.during_output else "",
            is_answer=bool(text) and self._brain().accepts_as_answer(text, heard.language),
            is_protected=active is not None and active.is_protected,
            is_faint=utterance.during_output
            and is_faint(audio_s=voiced_s(utterance, heard), avg_logprob=heard.avg_logprob),
        )
        return decide(text, rejected=heard.rejected is not None, situation=situation, book=book)

    def after_stop_phrase(self, typed: InputUser, book: PhraseBook) -> InputUser | None:
        """Return what a typed line leaves to be answered behind a stop phrase, as a spoken one would; None: nothing."""
        stop = book.stop_phrase(typed.text)
        if stop is None or self._brain().accepts_as_answer(typed.text, typed.language):
            return typed
        if stop.kind == "objection":
            return replace(typed, interrupt_hint="objection")
        hint = "interrupted" if self._turns.active is not None else None
        return replace(typed, text=stop.rest, interrupt_hint=hint) if stop.rest else None

    def _spoken_text(self, generation_id: GenerationId | None) -> str:
        """Return what was said lately, by the given answer and the newest one."""
        texts = [self._turns.last_heard_text]
        if generation_id is not None:
            texts.append(" ".join(message.text for message in self._ledger.messages(generation_id)))
        return " ".join(dict.fromkeys(text for text in texts if text))


def input_of(decision: Decision, utterance: Utterance, language: str | None) -> InputUser | None:
    """Return the user's new input, None for none."""
    if decision.input_text is None:
        return None
    return InputUser(
        text=decision.input_text,
        via="ptt" if utterance.by_ptt else "voice",
        language=language,
        interrupt_hint=decision.hint,
    )
