"""Payloads of answers and of what the output did with them: sound, words, intents, what was shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from orchestrator.contracts.ids import CallId
from orchestrator.contracts.payload import Payload


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputDuck(Payload):
    """The character's voice was lowered."""

    TYPE: ClassVar[str] = "output:duck"
    at_s: float
    gain_db: float
    ramp_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputUnduck(Payload):
    """The character's voice came back to full level."""

    TYPE: ClassVar[str] = "output:unduck"
    at_s: float
    gain_db: float
    ramp_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputCut(Payload):
    """The sound stopped inside an answer. `char_offset` counts in the intent's text; `held_s` is unplayed PCM."""

    TYPE: ClassVar[str] = "output:cut"
    TEXT_FIELDS: ClassVar[tuple[str, ...]] = ("word",)
    at_s: float
    last_sample_at_s: float
    word: str | None
    char_offset: int
    held_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class InterruptConfirm(Payload):
    """What a cut turned out to be.

    `verdict`: cancel, stop_only, resume; `because`: words, backchannel, nothing, echo, timeout.
    """

    TYPE: ClassVar[str] = "interrupt:confirm"
    TEXT_FIELDS: ClassVar[tuple[str, ...]] = ("text",)
    verdict: str
    because: str
    text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputResume(Payload):
    """A held answer goes on."""

    TYPE: ClassVar[str] = "output:resume"
    TEXT_FIELDS: ClassVar[tuple[str, ...]] = ("from_word",)
    at_s: float
    from_word: str | None
    repeated_words: int
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationStateChanged(Payload):
    """A generation went from one state to another; `from_state` is none for a new one."""

    TYPE: ClassVar[str] = "generation:state"
    from_state: str | None
    to_state: str
    reason: str | None = None
    speculative: bool = False
    snapshot_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmCallStarted(Payload):
    """A model call was sent."""

    TYPE: ClassVar[str] = "llm:call"
    call_id: CallId
    task: str
    model: str
    prompt_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmFirstToken(Payload):
    """The first token of a model call arrived."""

    TYPE: ClassVar[str] = "llm:first_token"
    call_id: CallId


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmEnded(Payload):
    """A model call ended. `outcome`: ok, cancelled, failed; `closed_s`: cancel → connection closed."""

    TYPE: ClassVar[str] = "llm:end"
    call_id: CallId
    outcome: str
    tokens: int
    closed_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IntentStateChanged(Payload):
    """An output intent went on in its life."""

    TYPE: ClassVar[str] = "intent:state"
    TEXT_FIELDS: ClassVar[tuple[str, ...]] = ("text",)
    kind: str
    behaviour: str
    slot: str | None
    text: str
    state: str
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TtsFirstPcm(Payload):
    """A sentence was synthesised (or its first chunk). `frames` at the voice's rate."""

    TYPE: ClassVar[str] = "tts:first_pcm"
    synth_s: float
    frames: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedWord:
    """One word of an intent's text and when it sounds, relative to the intent's first sample."""

    index: int
    text: str
    char_start: int
    char_end: int
    start_s: float
    end_s: float
    estimated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedViseme:
    """A mouth shape from `start_s` on, relative to the intent's first sample; see `audio.tts.visemes`."""

    shape: str
    start_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFirstSound(Payload):
    """The first sample of an intent was at the loudspeaker. The timeline is for lip-sync and subtitles.

    On a resume it is posted again, with the words that will still sound and `start_offset_s` saying where in the
    intent the sound begins (0 for the start).
    """

    TYPE: ClassVar[str] = "output:first_sound"
    TEXT_FIELDS: ClassVar[tuple[str, ...]] = ("words",)
    at_s: float
    start_offset_s: float = 0.0
    duration_s: float = 0.0
    words: tuple[TimedWord, ...] = ()
    visemes: tuple[TimedViseme, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputWord(Payload):
    """A word was played to its end, or was cut inside (`cut`). Posted after the fact, from the played clock."""

    TYPE: ClassVar[str] = "output:word"
    TEXT_FIELDS: ClassVar[tuple[str, ...]] = ("text",)
    index: int
    text: str
    char_start: int
    char_end: int
    at_s: float
    end_s: float
    cut: bool
    estimated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputStateChanged(Payload):
    """What the output does: speaking, ducked, held, stopped, subtitle_cleared, queue_empty, listening, muted.

    `stopped` with a generation id acknowledges a cut or purge of that generation.
    """

    TYPE: ClassVar[str] = "output:state"
    state: str
    at_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubtitlePainted(Payload):
    """A subtitle line was painted. `lit_to` and `cut_at` are character offsets."""

    TYPE: ClassVar[str] = "subtitle:painted"
    TEXT_FIELDS: ClassVar[tuple[str, ...]] = ("text",)
    role: str
    text: str
    lit_to: int
    cut_at: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AvatarPainted(Payload):
    """The avatar was painted in a new state, mouth shape or expression."""

    TYPE: ClassVar[str] = "avatar:painted"
    state: str
    mouth: str
    expression: str
