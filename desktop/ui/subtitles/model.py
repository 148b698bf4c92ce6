"""What the subtitles say; pure, on the monotonic clock."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from orchestrator.contracts.events import TimedWord
from orchestrator.contracts.ids import GenerationId, IntentId, UtteranceId
from orchestrator.contracts.views import (
    CharacterTextView,
    GenerationEndedView,
    SpeechStoppedView,
    SpeechTimelineView,
    UserTextView,
)

KEPT_BLOCKS = 6
"""Blocks that are remembered; older ones live in the history."""


@dataclass(slots=True, kw_only=True)
class Sentence:
    """A sentence of the character. Offsets count characters of `text`; `lit_to` is the end of what has sounded."""

    intent_id: IntentId
    text: str
    spoken: bool
    lit_to: int = 0
    cut_at: int | None = None
    is_held: bool = False
    is_over: bool = False
    current: tuple[int, int] | None = None
    _origin_s: float = 0.0
    _begins_s: float | None = None
    _ends_s: float = 0.0
    _floor: int = 0
    _words: tuple[TimedWord, ...] = ()

    @property
    def is_sounding(self) -> bool:
        """Whether the sentence sounds now or was told to."""
        return self._begins_s is not None

    @property
    def is_waiting(self) -> bool:
        """Whether some of the sentence is still to be heard."""
        return self.spoken and not self.is_over and self.cut_at is None and self.lit_to < len(self.text)

    def start(self, view: SpeechTimelineView) -> None:
        """Follow `view`; a resume takes the cut back and leaves lit what is lit."""
        self.is_over = self.is_held = False
        if view.start_offset_s > 0.0 and view.words:
            self._floor = max(self._floor, view.words[0].char_start)
        elif view.start_offset_s <= 0.0:
            self._floor = 0
        self.cut_at = None
        self.lit_to = min(self.lit_to, self._floor)
        self._words = view.words
        self._origin_s = view.at_s - view.start_offset_s
        self._begins_s = view.at_s
        self._ends_s = self._origin_s + view.duration_s

    def stop(self, cut_at: int | None, *, is_held: bool = False) -> None:
        """End the sound: played out without `cut_at`, else cut at that character."""
        self._begins_s = None
        self.current = None
        self.is_held = is_held
        self.is_over = not is_held
        if cut_at is None:
            self.cut_at = None
            self.lit_to = len(self.text)
        else:
            self.cut_at = max(0, min(cut_at, len(self.text)))
            self.lit_to = self.cut_at

    def advance(self, now_s: float) -> bool:
        """Light what has begun to sound by `now_s`; True if anything changed."""
        if self._begins_s is None or now_s < self._begins_s:
            return False
        before = self.lit_to, self.current
        at_s = now_s - self._origin_s
        index = bisect_right(self._words, at_s, key=lambda word: word.start_s) - 1
        self.current = None
        if index >= 0:
            word = self._words[index]
            self.lit_to = max(self._floor, word.char_end)
            if at_s < word.end_s:
                self.current = (word.char_start, word.char_end)
        elif self.lit_to < self._floor:
            self.lit_to = self._floor
        if now_s >= self._ends_s:
            self.current = None
        return before != (self.lit_to, self.current)

    def freeze(self) -> bool:
        """Light nothing more; True if it was sounding."""
        was_sounding = self._begins_s is not None
        self._begins_s = None
        self.current = None
        return was_sounding


@dataclass(slots=True, kw_only=True)
class Block:
    """One turn of one side. The user's has `text`, the character's has sentences."""

    role: str
    utterance_id: UtteranceId | None = None
    generation_id: GenerationId | None = None
    text: str = ""
    is_tentative: bool = False
    sentences: list[Sentence] = field(default_factory=list)

    def joined(self) -> tuple[str, list[int]]:
        """Return the text as shown and where each sentence begins in it."""
        if self.role == "user":
            return self.text, []
        text, starts = "", []
        for sentence in self.sentences:
            if text and not (_is_wide(text[-1]) or (sentence.text and _is_wide(sentence.text[0]))):
                text += "" if text[-1].isspace() else " "
            starts.append(len(text))
            text += sentence.text
        return text, starts


def _is_wide(char: str) -> bool:
    """Whether `char` is Chinese writing or its punctuation, which takes no space around it."""
    code = ord(char)
    return 0x2E80 <= code <= 0x9FFF or 0xF900 <= code <= 0xFAFF or 0xFF00 <= code <= 0xFF60 or code >= 0x20000


class SubtitleModel:
    """The last few turns. Texts of an answer are kept from the first view on; `changed` counts what to repaint."""

    def __init__(self) -> None:
        """Start empty."""
        self.blocks: list[Block] = []
        self.changes = 0
        self._early: deque[SpeechTimelineView] = deque(maxlen=4)

    def set_user_text(self, view: UserTextView) -> None:
        """Show the user's words, live or settled; an empty settled text takes the line away."""
        self.changes += 1
        block = self._user_block(view)
        text = view.text.strip()
        if not text:
            if block is not None and view.final:
                self.blocks.remove(block)
            return
        if block is None:
            block = Block(role="user", utterance_id=view.utterance_id)
            self._append(block)
        block.text = text
        block.is_tentative = not view.final

    def take_back(self, heard: str) -> None:
        """Take the newest settled line that reads `heard` off the screen, and its answer: it was misheard."""
        wanted = heard.strip().casefold()
        for index in range(len(self.blocks) - 1, -1, -1):
            block = self.blocks[index]
            if block.role == "user" and not block.is_tentative and block.text.casefold() == wanted:
                following = self.blocks[index + 1 :]
                ends = next((n for n, later in enumerate(following) if later.role == "user"), len(following))
                del self.blocks[index : index + 1 + ends]
                self.changes += 1
                return

    def add_character_text(self, view: CharacterTextView) -> None:
        """Show a sentence, unlit; the same intent again (it goes on after a cut) keeps its light."""
        self.changes += 1
        block = self._block_of(view.generation_id)
        if block is None:
            block = Block(role="character", generation_id=view.generation_id)
            self._append(block)
        lit_to = 0 if view.spoken else len(view.text)
        for known in block.sentences:
            if known.intent_id == view.intent_id:
                if known.text != view.text or not view.spoken:
                    known.lit_to, known.cut_at = lit_to, None
                known.text, known.spoken = view.text, view.spoken
                return
        sentence = Sentence(intent_id=view.intent_id, text=view.text, spoken=view.spoken, lit_to=lit_to)
        block.sentences.append(sentence)
        for early in list(self._early):
            if early.intent_id == view.intent_id:
                self._early.remove(early)
                sentence.start(early)

    def start_speech(self, view: SpeechTimelineView) -> None:
        """Begin to light a sentence; if it is not shown yet, as soon as it is."""
        sentence = self._sentence(view.generation_id, view.intent_id)
        if sentence is None:
            self._early.append(view)
            return
        self.changes += 1
        sentence.start(view)

    def stop_speech(self, view: SpeechStoppedView) -> None:
        """Mark a sentence played out or cut."""
        sentence = self._sentence(view.generation_id, view.intent_id)
        if sentence is not None:
            self.changes += 1
            sentence.stop(view.cut_at, is_held=view.held)

    def end_generation(self, view: GenerationEndedView) -> None:
        """Settle an answer: what was not heard of a cancelled one is cut; one never heard at all disappears."""
        block = self._block_of(view.generation_id)
        if block is None or view.outcome == "completed":
            return
        self.changes += 1
        if not any(s.lit_to > 0 for s in block.sentences):
            self.blocks.remove(block)
            return
        for sentence in block.sentences:
            sentence.freeze()
            sentence.is_held, sentence.is_over = False, True
            if sentence.cut_at is None and sentence.lit_to < len(sentence.text):
                sentence.cut_at = sentence.lit_to

    def advance(self, now_s: float, is_stale: Callable[[GenerationId | None], bool]) -> bool:
        """Bring the light to `now_s`; True if there is something new to paint. A stale answer lights no further."""
        changed = False
        for block in self.blocks:
            for sentence in block.sentences:
                if not sentence.is_sounding:
                    continue
                changed |= sentence.freeze() if is_stale(block.generation_id) else sentence.advance(now_s)
        if changed:
            self.changes += 1
        return changed

    def _append(self, block: Block) -> None:
        self.blocks.append(block)
        del self.blocks[:-KEPT_BLOCKS]

    def _user_block(self, view: UserTextView) -> Block | None:
        for block in reversed(self.blocks):
            if block.role != "user":
                continue
            if view.utterance_id is not None and block.utterance_id == view.utterance_id:
                return block
            if view.utterance_id is None and block.utterance_id is None and block.is_tentative:
                return block
        return None

    def _block_of(self, generation_id: GenerationId) -> Block | None:
        for block in reversed(self.blocks):
            if block.generation_id == generation_id:
                return block
        return None

    def _sentence(self, generation_id: GenerationId, intent_id: IntentId) -> Sentence | None:
        block = self._block_of(generation_id)
        for sentence in block.sentences if block is not None else ():
            if sentence.intent_id == intent_id:
                return sentence
        return None
