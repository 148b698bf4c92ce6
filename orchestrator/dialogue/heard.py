"""The heard ledger: which words of which answer were really played."""

from __future__ import annotations

from dataclasses import dataclass, field

from orchestrator.contracts.dialogue import MessageHeard
from orchestrator.contracts.events import OutputWord
from orchestrator.contracts.ids import GenerationId, IntentId


@dataclass(slots=True)
class SpokenPiece:
    """One intent of a message. `heard_chars` counts from the start of `text`."""

    intent_id: IntentId
    text: str
    heard_chars: int = 0
    is_final: bool = False
    was_played: bool = False
    was_dropped_because: str | None = None
    started: bool = False
    expression: str | None = None

    @property
    def is_fully_heard(self) -> bool:
        """Whether all of it was heard."""
        return self.was_played or self.heard_chars >= len(self.text.rstrip())


@dataclass(slots=True)
class SpokenMessage:
    """One utterance of the character: its pieces in order, and the text it was made from."""

    key: str | None
    source: str
    pieces: list[SpokenPiece] = field(default_factory=list)
    is_complete: bool = False

    @property
    def text(self) -> str:
        """The whole text as far as it was generated."""
        return "".join(piece.text for piece in self.pieces).strip()

    @property
    def heard(self) -> str:
        """The text that was heard, up to the last word that ended."""
        parts: list[str] = []
        for piece in self.pieces:
            if piece.is_fully_heard:
                parts.append(piece.text)
                continue
            parts.append(piece.text[: piece.heard_chars])
            break
        return "".join(parts).strip()

    @property
    def unheard(self) -> str:
        """What follows the heard text."""
        parts: list[str] = []
        is_past = False
        for piece in self.pieces:
            if is_past:
                parts.append(piece.text)
            elif not piece.is_fully_heard:
                parts.append(piece.text[piece.heard_chars :])
                is_past = True
        return "".join(parts).strip()

    @property
    def sounded(self) -> bool:
        """Whether any of it was heard or shown."""
        return any(piece.started for piece in self.pieces)


class HeardLedger:
    """What was said in which generation and how far it was heard.

    Lives on the core loop; keeps the last few answers.
    """

    _KEEP = 32

    def __init__(self) -> None:
        """Start empty."""
        self._messages: dict[GenerationId, list[SpokenMessage]] = {}
        self._pieces: dict[IntentId, SpokenPiece] = {}

    def open_message(self, generation_id: GenerationId, *, key: str | None, source: str) -> SpokenMessage:
        """Begin a message of `generation_id`."""
        message = SpokenMessage(key=key, source=source)
        self._messages.setdefault(generation_id, []).append(message)
        while len(self._messages) > self._KEEP:
            oldest = next(iter(self._messages))
            for old in self._messages.pop(oldest):
                for piece in old.pieces:
                    self._pieces.pop(piece.intent_id, None)
        return message

    def add_piece(
        self, message: SpokenMessage, intent_id: IntentId, text: str, expression: str | None = None
    ) -> SpokenPiece:
        """Add an intent to a message, with the expression it is said with."""
        piece = SpokenPiece(intent_id=intent_id, text=text, expression=expression)
        message.pieces.append(piece)
        self._pieces[intent_id] = piece
        return piece

    def piece(self, intent_id: IntentId | None) -> SpokenPiece | None:
        """Return a remembered piece."""
        return self._pieces.get(intent_id) if intent_id is not None else None

    def on_word(self, intent_id: IntentId, word: OutputWord) -> None:
        """Count a word that ended; a cut word is not heard; a repeated one counts once."""
        piece = self._pieces.get(intent_id)
        if piece is None:
            return
        piece.started = True
        if not word.cut:
            piece.heard_chars = max(piece.heard_chars, word.char_end)

    def on_playing(self, intent_id: IntentId) -> None:
        """Note that a piece began to sound or to be shown."""
        piece = self._pieces.get(intent_id)
        if piece is not None:
            piece.started = True

    def on_played(self, intent_id: IntentId) -> None:
        """Note that a piece was played or shown to its end."""
        piece = self._pieces.get(intent_id)
        if piece is not None:
            piece.is_final = True
            piece.was_played = True
            piece.started = True

    def on_dropped(self, intent_id: IntentId, reason: str | None) -> None:
        """Note that nothing more of a piece will be heard."""
        piece = self._pieces.get(intent_id)
        if piece is not None:
            piece.is_final = True
            piece.was_dropped_because = reason

    def messages(self, generation_id: GenerationId) -> list[SpokenMessage]:
        """Return the messages of an answer in order."""
        return self._messages.get(generation_id, [])

    def forget(self, generation_id: GenerationId) -> None:
        """Forget an answer of which nothing was said."""
        for message in self._messages.pop(generation_id, []):
            for piece in message.pieces:
                self._pieces.pop(piece.intent_id, None)

    def is_drained(self, generation_id: GenerationId) -> bool:
        """Whether every piece of the answer has been played or dropped."""
        return all(piece.is_final for message in self.messages(generation_id) for piece in message.pieces)

    def heard(self, generation_id: GenerationId) -> tuple[MessageHeard, ...]:
        """Return what was heard of each message."""
        return tuple(
            MessageHeard(
                key=message.key,
                text=message.text,
                heard=message.heard,
                sounded=message.sounded,
                completed=message.is_complete and all(piece.is_fully_heard for piece in message.pieces),
            )
            for message in self.messages(generation_id)
        )
