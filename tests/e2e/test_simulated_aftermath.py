"""What a cancelled answer must not do and what history keeps (spec §5 to §7): the engine of `mynah simulate`."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bench import stimuli
from rigs.simulated_rig import Heard, Sound, TopicLlm, converse, words_of

from audio.ports import Samples
from desktop.simulate import load_track
from orchestrator.contracts.commands import Notify, SendText, Stop
from orchestrator.contracts.views import CharacterTextView, ExpressionView, GenerationEndedView, SpeechTimelineView
from orchestrator.llm.failures import FailureCode
from orchestrator.llm.unavailable import STILL as AGAIN
from orchestrator.llm.unavailable import spoken

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

SAILORS = (
    "Long ago seven brave sailors crossed an unknown ocean without maps. Their captain trusted only stars, winds and "
    "her own quiet heart. After forty stormy nights they found green islands full of singing birds."
)
MOUNTAINS = "Mountains keep still."
ANSWERS = {"mountain": MOUNTAINS, "sea": SAILORS}
QUESTION = SendText(text="Can you tell me something about the sea?")
ACTIONS = """
import asyncio
from pathlib import Path

from orchestrator.tasks.actions.base import Action, ActionResult


class Look(Action):
    name = "look"
    effect = "read"

    async def run(self, context, args):
        await asyncio.sleep(0.6)
        return ActionResult()


class Brew(Action):
    name = "brew"

    async def run(self, context, args):
        with (Path(__file__).parent / "brewed.txt").open("a") as file:
            file.write("once ")
        await asyncio.sleep(4.0)
        return ActionResult(value="hot")
"""
FLOWS = """
flows:
  coffee:
    name: coffee
    examples: [brew me some coffee]
    steps:
      - {id: start, type: start, next: look}
      - {id: look, type: action, action: look, next: brew}
      - {id: brew, type: action, action: brew, next: done}
      - {id: done, type: action, action: action_response, args: {text: "Coffee stands ready."}, next: end}
      - {id: end, type: end}
"""
COFFEE = SendText(text="Brew me some coffee.")


@pytest.fixture(scope="session")
def stop_word(speech_dir: Path) -> Sound:
    samples: Samples = load_track(speech_dir / "en_card_001.wav")
    return Sound(samples=samples, text="Wait, stop.")


@pytest.fixture(scope="session")
def about_mountains(speech_dir: Path) -> Sound:
    samples: Samples = load_track(speech_dir / "en_az_weather.wav")
    return Sound(samples=samples, text="What about mountains?")


@pytest.fixture
def coffee(tmp_path: Path) -> Callable[..., Heard]:
    folder = tmp_path / "flows"
    folder.mkdir()
    (folder / "coffee.yml").write_text(FLOWS, encoding="utf-8")

    def run(sounds: dict[float, Sound], **more: Any) -> Heard:
        at = {1.0: COFFEE, **more.pop("at", {})}
        return converse(tmp_path, sounds, llm=TopicLlm(ANSWERS), flows=folder, actions=ACTIONS, at=at, **more)

    return run


def brewed(heard: Heard) -> int:
    file = heard.data / "actions" / "brewed.txt"
    return file.read_text().count("once") if file.exists() else 0


def stored(heard: Heard, query: str) -> list[Any]:
    with contextlib.closing(sqlite3.connect(heard.data / "mynah.db")) as store:
        return store.execute(query).fetchall()


def test_a_late_tool_result_is_set_aside_and_never_spoken(coffee: Callable[..., Heard], stop_word: Sound) -> None:
    heard = coffee({3.0: stop_word}, length_s=8.0)
    (call,), (result,) = heard.of("tool:call"), heard.of("tool:result")
    assert call["correlationId"] == result["correlationId"]
    assert result["payload"]["disposition"] == "quarantined", heard.story()
    assert [row[0] for row in stored(heard, "SELECT correlation_id FROM quarantine")] == [call["correlationId"]]
    assert brewed(heard) == 1
    assert [word for word, _ in heard.words()] == words_of(heard.answers()[0]["text"]) == ["okay", "coffee"]


def test_a_side_effect_that_had_not_begun_does_not(coffee: Callable[..., Heard], stop_word: Sound) -> None:
    heard = coffee({0.8: stop_word}, length_s=5.0)
    assert brewed(heard) == 0 and heard.of("tool:call") == [], heard.story()
    assert [word for word, part in heard.words() if part >= 0.9] == [] and "CANCELLED" in heard.final_states()


def test_a_side_effect_waits_while_the_answer_is_held_and_runs_once(coffee: Callable[..., Heard]) -> None:
    laugh = Sound(samples=stimuli.synthetic("laugh", 1).samples, text="Thank you.", avg_logprob=-2.0)
    heard = coffee({0.85: laugh}, length_s=9.0)
    assert heard.verdicts() == [("resume", "nothing")], heard.story()
    (call,) = heard.of("tool:call")
    released = next(r["t"] for r in heard.of("generation:state") if r["payload"]["from"] == "SUSPENDED")
    assert call["t"] >= released and brewed(heard) == 1
    assert [word for word, _ in heard.words()][-3:] == words_of("Coffee stands ready.")


def test_what_a_cancelled_answer_still_had_is_dropped(tmp_path: Path, about_mountains: Sound) -> None:
    llm = TopicLlm(ANSWERS, token_s=0.2)
    heard = converse(tmp_path, {4.0: about_mountains}, length_s=9.0, llm=llm, at={1.0: QUESTION})
    old, new = dict.fromkeys(r["generationId"] for r in heard.of("generation:state"))
    cancelled = next(r for r in heard.of("generation:state") if r["payload"]["to"] == "CANCELLED")
    assert cancelled["generationId"] == old and llm.closed == 1, "the model was broken off"
    late = [r for r in heard.records if r.get("generationId") == old and r["seq"] > cancelled["seq"]]
    assert {r["payload"]["state"] for r in late if r["type"] == "intent:state"} <= {"dropped"}, heard.story()
    assert not [r for r in late if r["type"] in ("output:first_sound", "tts:first_pcm", "output:resume")]
    ended = next(i for i, v in enumerate(heard.views) if isinstance(v, GenerationEndedView) and v.generation_id == old)
    shown = [v for v in heard.views[ended:] if isinstance(v, CharacterTextView | SpeechTimelineView | ExpressionView)]
    assert shown and {view.generation_id for view in shown} == {new}, "no subtitle and no gesture of the old one"
    assert [word for word, _ in heard.words(4.6)] == words_of(MOUNTAINS)


def test_a_new_question_has_a_new_snapshot_that_knows_what_was_heard(tmp_path: Path, about_mountains: Sound) -> None:
    llm = TopicLlm(ANSWERS)
    heard = converse(tmp_path, {5.0: about_mountains}, length_s=10.0, llm=llm, at={1.0: QUESTION})
    snapshots = {r["generationId"]: r["payload"]["snapshotId"] for r in heard.of("generation:state")}
    assert len(snapshots) == len(set(snapshots.values())) == 2
    (kept, _) = heard.answers()
    assert kept["status"] == "interrupted"
    prompt = "\n".join(message.content for message in llm.requests[-1].messages)
    assert f'The user heard only this of it: "{kept["text"]}"' in prompt
    assert not {"captain", "forty", "stormy", "islands", "birds"} & {*words_of(prompt)} - {*words_of(kept["text"])}
    assert "..." not in prompt and "…" not in prompt
    rows = stored(heard, "SELECT text, unheard FROM messages WHERE status = 'interrupted'")
    assert [words_of(f"{said} {rest}") for said, rest in rows] == [words_of(SAILORS)], "kept beside it for going on"


def test_going_on_after_a_model_was_broken_off_asks_it_once_for_the_rest(tmp_path: Path) -> None:
    llm = TopicLlm({"go on": MOUNTAINS, **ANSWERS}, token_s=0.25)
    at = {1.0: QUESTION, 5.0: Stop(), 7.0: SendText(text="go on")}
    heard = converse(tmp_path, {}, length_s=10.0, llm=llm, at=at)
    first, rest = heard.answers()
    assert (first["status"], rest["status"]) == ("interrupted", "completed"), heard.story()
    assert len(llm.requests) == 2, "one call continues it"
    said = words_of(first["text"]) + words_of(rest["text"])
    assert said[: len(said) - 3] == words_of(SAILORS)[: len(said) - 3] and said[-3:] == words_of(MOUNTAINS)


def test_cut_before_anything_was_heard_keeps_no_answer(tmp_path: Path) -> None:
    heard = converse(tmp_path, {}, length_s=6.0, llm=TopicLlm(ANSWERS), at={1.0: QUESTION, 1.2: Stop()})
    assert heard.final_states() == ["CANCELLED"] and heard.answers() == [] and heard.words() == []


def test_a_failure_is_no_answer_and_the_next_turn_works(tmp_path: Path) -> None:
    llm = TopicLlm(ANSWERS, fails_after=0)
    heard = converse(tmp_path, {}, length_s=4.0, llm=llm, at={1.0: QUESTION})
    assert heard.final_states() == ["FAILED"]
    assert [p["status"] for p in heard.answers()] == ["failed"] and heard.answers()[0]["text"] == ""
    assert heard.words() and len(heard.payloads("app:error")) == 1, "said once, and not stored as an answer"
    assert stored(heard, "SELECT * FROM messages WHERE role = 'assistant'") == []


SPOKEN_IN_TIME = words_of("Long ago seven brave sailors crossed an unknown ocean without maps.")


@pytest.mark.parametrize("via", ["typed", pytest.param("voice", marks=pytest.mark.long)])
@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize(
    ("language", "text", "again"),
    [("en", QUESTION.text, "And once more about the sea, please?"), ("zh", "你能说说大海吗？", "再讲讲大海好不好？")],
)
def test_a_time_limit_is_no_answer_and_is_said_once_in_the_users_language(
    tmp_path: Path, speech_dir: Path, language: str, text: str, again: str, is_late: bool, via: str
) -> None:
    # Late: the first sentence has sounded when the model's time is over; else it never said a word.
    slow = (
        {"first_token_s": 0.2, "token_s": 0.1, "limit_s": 1.5} if is_late else {"first_token_s": 99.0, "limit_s": 2.5}
    )
    llm = TopicLlm({"sea": SAILORS, "大海": SAILORS}, **slow)
    first, second = 1.0, 15.0
    carriers = {"en": ("en_card_004", "en_az_weather"), "zh": ("zh_sc_TV-1", "zh_sc_TV-1")}[language]
    sounds: dict[float, Sound] = {}
    at: dict[float, SendText] = {}
    for at_s, words, carrier in ((first, text, carriers[0]), (second, again, carriers[1])):
        if via == "typed":
            at[at_s] = SendText(text=words)
        else:
            sounds[at_s] = Sound(samples=load_track(speech_dir / f"{carrier}.wav"), text=words, language=language)
    if via == "voice" and language == "zh":
        # One recording can't mean two things: the second time it is typed.
        del sounds[second]
        at[second] = SendText(text=again)
    heard = converse(tmp_path, sounds, length_s=27.0, llm=llm, at=at)
    assert heard.final_states() == ["FAILED", "FAILED"], heard.story()
    assert [(p["status"], p["text"]) for p in heard.answers()] == [("failed", "")] * 2, "no pretence of an answer"
    assert stored(heard, "SELECT * FROM messages WHERE role = 'assistant'") == []
    assert [row[0] for row in stored(heard, "SELECT text FROM messages ORDER BY id")] == [text, again]
    full, short = spoken(FailureCode.TIMEOUT, language), AGAIN[language]
    errors = heard.payloads("app:error")
    assert [(e["code"], e["message"], e["recoverable"]) for e in errors] == [
        ("llm_timeout", full, True), ("llm_timeout", short, True),
    ]  # fmt: skip
    said = [word for word, part in heard.words() if part >= 0.9]
    before = SPOKEN_IN_TIME if is_late else []
    assert said == before + words_of(full) + before + words_of(short), "said in full once, and what it is the next time"
    assert [r["payload"] for r in heard.of("interrupt:confirm")] == [], "it is no interruption"
    assert all(SAILORS not in message.content for request in llm.requests for message in request.messages)


def test_a_notice_waits_for_the_answer_and_an_urgent_one_passes_it(tmp_path: Path) -> None:
    at = {
        1.0: QUESTION,
        3.0: [Notify(id="tea", text="Your kettle whistles."), Notify(id="bus", text="Departed.", expires_s=3.0)],
        5.0: Notify(id="fire", text="Smoke everywhere!", urgent=True),
    }
    heard = converse(tmp_path, {}, length_s=9.0, llm=TopicLlm(ANSWERS), at=at)
    said = [word for word, part in heard.words() if part >= 0.9]
    urgent = said.index("smoke")
    assert said[urgent : urgent + 2] == ["smoke", "everywhere"] and said[-3:] == words_of("Your kettle whistles.")
    around = [word for word in said[:-3] if word not in ("smoke", "everywhere")]
    assert 0 < urgent < len(around) and list(dict.fromkeys(around)) == words_of(SAILORS), "the answer went on"
    states = {name: [p["state"] for p in heard.payloads("notify:state") if p["id"] == name] for name in ("tea", "bus")}
    assert states == {"tea": ["due", "held", "spoken"], "bus": ["due", "held", "expired"]}
