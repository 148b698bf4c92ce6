from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from rigs.core_rig import CoreRig
from rigs.scripted_llm import Answer, ScriptedLlm

from orchestrator.contracts.commands import SendText
from orchestrator.contracts.views import MisheardView, View
from orchestrator.dialogue.misheard import Corrections, said_instead
from orchestrator.store import records


@dataclass
class Views:
    """The window's side; implements `ViewSink`."""

    seen: list[View]

    def show(self, view: View) -> bool:
        self.seen.append(view)
        return True


@pytest.mark.parametrize(
    ("heard", "text", "said"),
    [
        ("open the comfy eye page", "I said open the ComfyUI page", "open the ComfyUI page"),
        ("what is the whether in Paris", "No, I said the weather in Paris.", "the weather in Paris."),
        ("play some ties", "I didn't say ties, I said Thais", "Thais"),
        ("remind me about the tee", "sorry, I said: “tea”", "tea"),
        ("明天天气怎么样", "不对，我说的是后天天气怎么样", "后天天气怎么样"),
        ("给我放点绿茶", "我刚才说的是绿洲", "绿洲"),
        ("我想听歌", "我说的不是听歌，我说的是听课", "听课"),
    ],
)
def test_a_correction_gives_the_right_words(heard: str, text: str, said: str) -> None:
    assert said_instead(text, heard) == said


@pytest.mark.parametrize(
    ("heard", "text"),
    [
        ("what is the time", "I said hello to my boss"),
        ("tell me a joke", "what did I say"),
        ("tell me a joke", "I said tell me a joke"),
        ("你好", "我说的是真的"),
        ("你好", "我说你好"),
        (None, "I said tea"),
        ("tea", ""),
        ("tea", "I said"),
        ("tea", "I said " + "x" * 400),
    ],
)
def test_a_sentence_of_its_own_is_none(heard: str | None, text: str) -> None:
    assert said_instead(text, heard) is None


async def test_the_turn_is_taken_again_with_the_right_words(tmp_path: Path) -> None:
    with ScriptedLlm(default=Answer(text="Fine.", first_token_s=0.0, tokens_per_s=2000)) as llm:
        async with CoreRig(tmp_path, llm.url) as rig:
            views: list[View] = []
            rig.core.conversation._corrections = Corrections(Views(views))
            await rig.ask("open the comfy eye page")
            await rig.ask("No, I said the ComfyUI page")
            await rig.ask("I said it to my friend yesterday as well")
            lessons = [view for view in views if isinstance(view, MisheardView)]
            assert lessons == [MisheardView(heard="open the comfy eye page", said="the ComfyUI page")]
    asked = [call.last_user_text for call in llm.calls]
    assert asked[-2].endswith("the ComfyUI page") and "I said" not in asked[-2]
    assert asked[-1].endswith("I said it to my friend yesterday as well")


@pytest.mark.parametrize("how", ["said", "clicked"])
async def test_a_misheard_turn_is_as_if_it_had_not_been(tmp_path: Path, how: str) -> None:
    misled = Answer(pattern="comfy eye", text="Comfy eyes are lovely.", first_token_s=0.0, tokens_per_s=2000)
    with ScriptedLlm([misled], default=Answer(text="Fine.", first_token_s=0.0, tokens_per_s=2000)) as llm:
        async with CoreRig(tmp_path, llm.url) as rig:
            await rig.ask("open the comfy eye page")
            if how == "said":
                await rig.ask("No, I said the ComfyUI page")
            else:
                rig.core.handle(SendText(text="the ComfyUI page", corrects="Open the comfy eye page"))
                await rig.wait_for("history:commit", lambda r: r["payload"]["text"] == "Fine.")
            await rig.ask("thank you")
            stored = rig.database.transact_now(records.list_messages)
            kept = rig.database.transact_now(lambda db: records.recent_messages(db, limit=9))
    for call in llm.calls[-2:]:
        prompt = "\n".join(str(message["content"]) for message in call.body["messages"])
        assert "comfy eye" not in prompt.casefold()
    assert [(row["text"], row["replaced"]) for row in stored] == [
        ("open the comfy eye page", True),
        ("Comfy eyes are lovely.", True),
        ("the ComfyUI page", False),
        ("Fine.", False),
        ("thank you", False),
        ("Fine.", False),
    ]
    assert [entry.text for entry in kept] == ["the ComfyUI page", "Fine.", "thank you", "Fine."]


async def test_an_older_line_is_taken_back_alone(tmp_path: Path) -> None:
    with ScriptedLlm(default=Answer(text="Fine.", first_token_s=0.0, tokens_per_s=2000)) as llm:
        async with CoreRig(tmp_path, llm.url) as rig:
            for text in ("one", "two"):
                await rig.ask(text)
            rig.core.handle(SendText(text="won", corrects="one"))
            said = await rig.wait_for("history:commit", lambda r: r["payload"]["text"] == "won")
            await rig.wait_for("turn:commit", after=said["seq"])
            assert [e.text for e in rig.core.history.entries if e.role == "user"] == ["two", "won"]
