"""From text to speech intents: the `Reply` of one generation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing

from orchestrator.contracts.dialogue import CUT_SHORT, LlmUnavailable, Message
from orchestrator.contracts.errors import GenerationCancelled
from orchestrator.contracts.ids import IdFactory, IntentId
from orchestrator.contracts.intents import APOLOGY_SLOT, SpeechIntent
from orchestrator.contracts.ports import SpeechPort
from orchestrator.contracts.wellformed import mend_text
from orchestrator.dialogue.heard import HeardLedger, SpokenMessage
from orchestrator.generation import Generation
from orchestrator.llm.prompts import is_note
from orchestrator.llm.reply_text import ReplyPiece, ReplyText

_LOOP = 2
_SHORT_CHARS = 4
_MOST_WAITING = 16
"""Pieces that may wait unplayed; the model is not read further until some were played."""


class SpeechReply:
    """Speaks for one generation. Lives on the core loop.

    A piece is submitted at most once, and only while the generation is not stale. An expression asked for in a sentence
    waits in the ledger until the sentence sounds.
    """

    def __init__(
        self,
        *,
        generation: Generation,
        ledger: HeardLedger,
        speech: SpeechPort,
        ids: IdFactory,
        make_pipe: Callable[[], ReplyText],
        voice: str | None = None,
    ) -> None:
        """Bind to `generation`."""
        self._generation = generation
        self._ledger = ledger
        self._speech = speech
        self._ids = ids
        self._make_pipe = make_pipe
        self._voice = voice
        self._room = asyncio.Event()
        self._is_in_note = False
        self.is_first_ready = False
        self.on_first_piece: Callable[[], None] | None = None

    def note_progress(self) -> None:
        """Wake a reply that waits because too much is unplayed."""
        self._room.set()

    async def say(self, message: Message) -> None:
        """Speak a finished message; see `contracts.dialogue.Reply.say`."""
        self._generation.check()
        spoken = self._ledger.open_message(self._generation.generation_id, key=message.key, source=message.source)
        pipe = self._make_pipe()
        for piece in pipe.whole(mend_text(message.text)):
            await self._submit(spoken, piece.text, message, piece.expression or message.expression)
        spoken.is_complete = True

    async def stream(
        self, chunks: AsyncIterator[str], message: Message, guard: Callable[[str], Awaitable[str | None]] | None = None
    ) -> str:
        """Speak text while it is generated; see `contracts.dialogue.Reply.stream`."""
        self._generation.check()
        spoken = self._ledger.open_message(self._generation.generation_id, key=message.key, source=message.source)
        pipe = self._make_pipe()
        async with aclosing(_as_generator(chunks)) as source:
            try:
                async for chunk in source:
                    self._generation.check()
                    if not await self._pass_on(spoken, pipe.feed(mend_text(chunk)), message, guard):
                        spoken.is_complete = True
                        return spoken.text
            except LlmUnavailable as error:
                if error.args[:1] == (CUT_SHORT,):
                    await self._pass_on(spoken, pipe.flush(), message, guard)
                raise
        await self._pass_on(spoken, pipe.flush(), message, guard)
        spoken.is_complete = True
        return spoken.text

    async def _pass_on(
        self,
        spoken: SpokenMessage,
        pieces: list[ReplyPiece],
        message: Message,
        guard: Callable[[str], Awaitable[str | None]] | None,
    ) -> bool:
        for piece in pieces:
            text = piece.text
            if piece.is_speakable and self._is_loop(spoken, text):
                return False
            if self._is_in_note or is_note(text):
                # A note that ends with a colon is followed by what it quotes.
                self._is_in_note = not self._is_in_note and text.rstrip().endswith((":", "："))
                continue
            if guard is not None and piece.is_speakable:
                replacement = await guard(text.strip())
                if replacement is None:
                    return False
                text = text if replacement == text.strip() else replacement
            await self._submit(spoken, text, message, piece.expression)
        return True

    @staticmethod
    def _is_loop(spoken: SpokenMessage, text: str) -> bool:
        """Whether a generated sentence was said twice already in this message: the model runs in circles."""
        bare = text.strip().casefold()
        return len(bare) > _SHORT_CHARS and sum(bare == p.text.strip().casefold() for p in spoken.pieces) >= _LOOP

    async def _submit(self, spoken: SpokenMessage, piece: str, message: Message, expression: str | None) -> None:
        if not any(char.isalnum() for char in piece):
            if spoken.pieces:
                spoken.pieces[-1].text += piece
            return
        while self._unplayed() >= _MOST_WAITING:
            self._room.clear()
            await self._room.wait()
        if self._generation.is_speculative:
            self._rehearse(piece, message)
            await self._generation.confirmed.wait()
        if self._generation.is_stale:
            raise GenerationCancelled(self._generation.reason or "")
        intent_id = self._ids.intent()
        self._ledger.add_piece(spoken, intent_id, piece, expression)
        if not message.interruptible:
            self._generation.protected_intents.add(intent_id)
        self._generation.begin_streaming()
        self._speech.submit(self._intent(intent_id, piece, message))

    def _intent(self, intent_id: IntentId, piece: str, message: Message) -> SpeechIntent:
        return SpeechIntent(
            intent_id=intent_id,
            generation_id=self._generation.generation_id,
            generation_order=self._generation.order,
            text=piece,
            slot=APOLOGY_SLOT if message.source == "error" else None,
            voice=self._voice,
            language=message.language,
            interruptible=message.interruptible,
        )

    def _rehearse(self, piece: str, message: Message) -> None:
        """Let the first piece be synthesised while the end of the user's turn is still being judged."""
        if not self.is_first_ready:
            self.is_first_ready = True
            self._speech.prepare(self._intent(IntentId(""), piece, message))
            if self.on_first_piece is not None:
                self.on_first_piece()

    def _unplayed(self) -> int:
        messages = self._ledger.messages(self._generation.generation_id)
        return sum(1 for message in messages for piece in message.pieces if not piece.is_final)


async def _as_generator(chunks: AsyncIterator[str]) -> AsyncGenerator[str, None]:
    """Close `chunks` deterministically when the consumer stops early, if it can be closed."""
    try:
        async for chunk in chunks:
            yield chunk
    finally:
        close = getattr(chunks, "aclose", None)
        if close is not None:
            await close()
