"""The program killed at any moment: the next start works, what was stored is there, nothing is done twice."""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from rigs.program_rig import Program
from rigs.sound_rig import SoundRig

pytestmark = [pytest.mark.e2e, pytest.mark.audio, pytest.mark.models]

THINGS = (
    "water the plants", "call my mother", "feed the cat", "buy some bread", "close the window",
    "wash the car", "write a letter", "clean the kitchen", "pay the rent", "walk the dog",
    "cut the grass", "sweep the yard", "paint the fence", "mend the roof", "bake a cake",
    "sort the books", "iron the shirts", "fill the bath", "empty the bin", "lock the door",
)  # fmt: skip
MOMENTS = (
    "input:user",
    "tool:call",
    "tool:result",
    "turn:commit",
    "output:first_sound",
    "history:commit",
    "output:word",
    "intent:state",
)


def rows(database: Path, query: str) -> list[Any]:
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def kill_rounds(rounds: int, rig: SoundRig, folder: Path, *, seed: int) -> None:
    chance = random.Random(seed)
    database = folder / "data" / "mynah.db"
    stored: list[str] = []
    promised: set[str] = set()
    asked: list[str] = []
    for number in range(rounds):
        thing = THINGS[number]
        moment = MOMENTS[chance.randrange(len(MOMENTS))]
        with Program(["run", "--headless", "--llm", "none"], folder=folder, env=rig.env) as program:
            check_store(database, stored, promised)
            assert not list(database.parent.glob("*.damaged-*")), "killing damages nothing"
            program.send(cmd="text", text=f"remind me to {thing} in ten hours")
            asked.append(thing)
            begun = program.wait_for("input:user", timeout_s=30)
            program.wait_for(moment, timeout_s=60, after=begun["seq"] - 1)
            assert program.process is not None
            program.process.kill()
            program.process.wait(10)
            stored += [r["payload"]["text"] for r in program.of("history:commit") if r["payload"]["status"] != "failed"]
            tools = {r["correlationId"]: r["payload"] for r in program.of("tool:call")}
            for record in program.of("tool:result"):
                if record["payload"]["ok"] and "remind" in tools[record["correlationId"]]["name"]:
                    promised.add(thing)
    check_store(database, stored, promised)
    assert len(stored) >= 1
    with Program(["run", "--headless", "--llm", "none"], folder=folder, env=rig.env) as program:
        program.send(cmd="text", text="remind me to go to bed in ten hours")
        program.wait_for("tool:result", lambda r: bool(r["payload"]["ok"]), timeout_s=60)
        program.wait_for("history:commit", lambda r: r["payload"]["role"] == "assistant", timeout_s=60)
        code, _ = program.end()
        assert code == 0
    reminders = [text for (text,) in rows(database, "SELECT text FROM reminders")]
    assert len(reminders) <= len(asked) + 1


def check_store(database: Path, stored: list[str], promised: set[str]) -> None:
    """Everything the program said it had stored is there, in order; every promise is kept, and once."""
    if not database.exists():
        return
    texts = [text for (text,) in rows(database, "SELECT text FROM messages ORDER BY id")]
    found = iter(texts)
    assert all(text in found for text in stored), (stored, texts)
    assert len(texts) - len(stored) <= max(2, len(promised)), "no message out of nowhere"
    reminders = Counter(text.casefold() for (text,) in rows(database, "SELECT text FROM reminders"))
    assert all(count == 1 for count in reminders.values()), reminders
    for thing in promised:
        assert reminders[thing.casefold()] == 1, (thing, reminders)


@pytest.mark.timeout(300)
def test_two_kills_lose_at_most_the_turn_in_flight(sound_rig: SoundRig, tmp_path: Path) -> None:
    kill_rounds(2, sound_rig, tmp_path, seed=3)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_twenty_kills_lose_at_most_the_turns_in_flight(sound_rig: SoundRig, tmp_path: Path) -> None:
    kill_rounds(20, sound_rig, tmp_path, seed=7)


@pytest.mark.timeout(200)
@pytest.mark.parametrize(("language", "named"), [("en", "your reminders"), ("zh", "你的提醒")])
def test_a_damaged_store_is_moved_aside_and_reported(
    sound_rig: SoundRig, tmp_path: Path, language: str, named: str
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "mynah.db").write_bytes(b"this is a letter and no database\n" * 200)
    options = ["run", "--headless", "--llm", "none", "--language", language]
    with Program(options, folder=tmp_path, env=sound_rig.env) as program:
        assert len(list(data.glob("mynah.db.damaged-*"))) == 1
        error = program.wait_for("app:error", timeout_s=30)["payload"]
        assert (error["code"], error["part"]) == ("store_damaged", "store") and "reminders" in error["message"]
        program.wait_for("notify:state", lambda r: r["payload"]["state"] == "spoken", timeout_s=40)
        said = [r["payload"]["text"] for r in program.of("history:commit") if r["payload"]["role"] == "assistant"]
        assert len(said) == 1 and named in said[0]
        program.send(cmd="text", text="what can you do?")
        program.wait_for("input:user", timeout_s=30)
        code, _ = program.end()
        assert code == 0
    assert "damaged" in program.stderr
