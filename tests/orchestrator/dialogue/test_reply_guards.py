"""What a model generates but nobody should hear: sentences in circles, and the notes of its own prompt."""

from __future__ import annotations

from collections.abc import AsyncIterator

from orchestrator.clock import VirtualClock
from orchestrator.contracts.dialogue import Message
from orchestrator.contracts.ids import IdFactory
from orchestrator.contracts.intents import SpeechIntent
from orchestrator.dialogue.heard import HeardLedger
from orchestrator.dialogue.reply import SpeechReply
from orchestrator.generation import Generations
from orchestrator.llm.reply_text import ReplyText


class Mouth:
    """Takes intents."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def submit(self, intent: SpeechIntent) -> bool:
        self.said.append(intent.text.strip())
        return True

    def prepare(self, intent: SpeechIntent) -> None: ...

    def hold(self, generation_id: str) -> None: ...
    def resume(self, generation_id: str) -> None: ...
    def purge(self, generation_id: str, reason: str) -> None: ...
    def set_muted(self, on: bool) -> None: ...


async def spoken(*chunks: str) -> list[str]:
    ids, mouth = IdFactory(), Mouth()
    generation = Generations(ids, VirtualClock(), lambda event: None).start(session_id=ids.session())
    reply = SpeechReply(generation=generation, ledger=HeardLedger(), speech=mouth, ids=ids, make_pipe=ReplyText)

    async def stream() -> AsyncIterator[str]:
        for chunk in chunks:
            yield chunk

    await reply.stream(stream(), Message(text="", source="persona"))
    return mouth.said


async def test_a_model_that_runs_in_circles_is_stopped() -> None:
    said = await spoken("Hello there, my friend. ", *["I'm a little bird! "] * 12, "And more. ")
    assert said.count("I'm a little bird!") == 2
    assert "And more." not in said


async def test_short_words_and_different_sentences_may_come_again() -> None:
    said = await spoken("No. ", "No. ", "No. ", "I like it. ", "I like it too. ", "I like it a lot. ")
    assert "".join(said).replace(" ", "").count("No.") == 3
    assert said[-1] == "I like it a lot."


async def test_the_notes_of_the_prompt_are_not_spoken() -> None:
    said = await spoken('The user heard only this of it: "I am not sure." ', "Whales sing in the sea. ")
    assert said == ["Whales sing in the sea."]
    assert await spoken("用户只听到了：“鲸鱼”。", "鲸鱼会唱歌。") == ["鲸鱼会唱歌。"]
