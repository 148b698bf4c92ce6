"""What an utterance means for an answer in progress. Pure rules; no model is asked."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum

from orchestrator.dialogue.phrase_book import PhraseBook, normalise


class Verdict(StrEnum):
    """What becomes of the answer in progress."""

    CANCEL = "cancel"
    STOP_ONLY = "stop_only"
    RESUME = "resume"
    KEEP = "keep"
    """Nothing was cut and nothing changes: the answer goes on, or there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InterruptionTimes:
    """Numbers of `policy.yml`, section `interruption`.

    `confirm_timeout_s`: a held answer that hears nothing this long after the sound ended goes on by itself, once.
    `thinking_after_s`: without sound for this long, the character shows that it thinks.
    `quiet_after_stop_s`: for this long after a stop nothing is said that is not urgent.
    """

    confirm_timeout_s: float = 2.0
    thinking_after_s: float = 1.0
    quiet_after_stop_s: float = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What was going on when the utterance ended.

    `sounded` tells whether any of the present answer was heard; `during_output` whether the utterance began while the
    character's voice was in the air; `recent_text` what it said in the last seconds; `is_answer` whether a running
    question takes the words as its answer; `is_protected` whether the answer must not be interrupted. `is_faint`
    marks a short sound whose words the recogniser hardly believes itself ("mm-hm" heard as "Wow" or "Come on").
    """

    has_answer: bool
    is_held: bool
    sounded: bool
    during_output: bool
    recent_text: str
    is_answer: bool
    is_protected: bool = False
    is_faint: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The verdict, why, and what the user's new input is (`None`: none).

    `hint` is none, interrupted or objection; `is_joined` says that the input belongs to the utterance before it;
    `is_kept` that it is to be answered after the protected answer.
    """

    verdict: Verdict
    because: str
    input_text: str | None = None
    hint: str | None = None
    is_joined: bool = False
    is_kept: bool = False


FAINT_S = 0.75
FAINT_LOGPROB = -0.75
"""A sound no longer than this over the character's voice, believed no more than this, is a hum. One clear word, like
"no" or "Rome", is believed more (recorded single words: −0.1 to −0.6)."""


def is_faint(*, audio_s: float, avg_logprob: float | None) -> bool:
    """Whether an utterance over the character's voice is too short and too doubtful to be words."""
    return audio_s <= FAINT_S and avg_logprob is not None and avg_logprob < FAINT_LOGPROB


def tokens_of(text: str) -> list[str]:
    """Return comparable units: words, and single Chinese characters."""
    found: list[str] = []
    for word in normalise(text).split():
        run = ""
        for char in word:
            if "\u3400" <= char <= "\u9fff":
                if run:
                    found.append(run)
                    run = ""
                found.append(char)
            else:
                run += char
        if run:
            found.append(run)
    return found


def is_echo(text: str, recent_text: str, *, ratio: float = 0.8, least_units: int = 3) -> bool:
    """Whether `text` is only what the character itself just said.

    True when at least `least_units` units of it were heard and `ratio` of them stand in order in a stretch of the
    recent text of about the same length. Short utterances never count: a user may well repeat one of our words.
    """
    heard = tokens_of(text)
    said = tokens_of(recent_text)
    if len(heard) < least_units or not said:
        return False
    matcher = SequenceMatcher(a=said, b=heard, autojunk=False)
    longest = matcher.find_longest_match(0, len(said), 0, len(heard))
    if longest.size == 0:
        return False
    start = max(0, longest.a - longest.b - 1)
    window = said[start : start + len(heard) + 2]
    matched = sum(block.size for block in SequenceMatcher(a=window, b=heard, autojunk=False).get_matching_blocks())
    return matched / len(heard) >= ratio


def decide(text: str, *, rejected: bool, situation: Situation, book: PhraseBook) -> Decision:
    """Decide what the finished utterance `text` means for the answer and for the dialogue."""
    stay = Verdict.RESUME if situation.is_held else Verdict.KEEP
    text = text.strip()
    if rejected or not tokens_of(text):
        return Decision(verdict=stay, because="nothing")
    if situation.during_output and is_echo(text, situation.recent_text):
        return Decision(verdict=stay, because="echo")
    if situation.has_answer and book.is_names_only(text):
        # The recogniser expects the name and hears it in short noises.
        return Decision(verdict=stay, because="nothing")
    end = Verdict.CANCEL if situation.has_answer else Verdict.KEEP
    stop = book.stop_phrase(text)
    if situation.is_faint and situation.has_answer and stop is None:
        return Decision(verdict=stay, because="nothing")
    if stop is not None and stop.kind == "objection":
        if situation.has_answer and not situation.sounded and not situation.is_protected and tokens_of(stop.rest):
            # nothing was said yet that it could object to: the user corrects his own words
            return Decision(verdict=end, because="words", input_text=text, is_joined=True)
        return Decision(verdict=end, because="words", input_text=text, hint="objection")
    if stop is not None and not situation.is_answer:
        rest = stop.rest
        if not tokens_of(rest) or book.is_backchannel(rest):
            return Decision(verdict=Verdict.STOP_ONLY, because="words")
        return _words(rest, situation, end, book, hint="interrupted" if situation.has_answer else None)
    if (
        situation.has_answer
        and not situation.is_answer
        and (book.is_backchannel(text) or (book.is_go_on(text) and situation.sounded))
    ):
        return Decision(verdict=stay, because="backchannel")
    if not situation.has_answer and not situation.is_answer and book.is_hum(text):
        return Decision(verdict=Verdict.KEEP, because="backchannel")
    return _words(
        text, situation, end, book, hint="interrupted" if situation.sounded and situation.has_answer else None
    )


def _words(text: str, situation: Situation, end: Verdict, book: PhraseBook, *, hint: str | None) -> Decision:
    if situation.has_answer and situation.is_protected:
        stay = Verdict.RESUME if situation.is_held else Verdict.KEEP
        return Decision(verdict=stay, because="words", input_text=text, hint=None, is_kept=True)
    stands_alone = book.is_go_on(text) or book.is_repeat(text)
    is_joined = situation.has_answer and not situation.sounded and not stands_alone
    return Decision(verdict=end, because="words", input_text=text, hint=hint, is_joined=is_joined)
