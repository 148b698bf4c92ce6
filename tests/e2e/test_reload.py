"""Reading the configuration again in a conversation: all of it or nothing, and whoever asked is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from rigs.simulated_rig import TopicLlm, converse, words_of

from orchestrator.contracts.commands import Command, Reload, SendText

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

FLOW = """
flows:
  door:
    name: the door
    examples: [mind the door]
    steps:
      - {{id: start, type: start, next: say}}
      - {{id: say, type: action, action: action_response, args: {{text: "{text}"}}, next: end}}
      - {{id: end, type: end}}
"""
POLICY = "interruption: {confirm_timeout_s: 1.5}\n"
PERSONA = "style: {en: Be terse.}\n"
BROKEN = {
    "door.yml": FLOW.format(text="Never said.").replace("next: end", "next: nowhere"),
    "policy.yml": "interruption:\n  confirm_timeout_s: .nan\n",
    "persona.yml": 'style: {en: "Be \\ud800 terse."}\n',
}
SHOUTED = "Windows stay open!"


@pytest.fixture
def flows(tmp_path: Path) -> Path:
    folder = tmp_path / "flows"
    folder.mkdir()
    write(folder, {"door.yml": FLOW.format(text="Doors stay shut."), "policy.yml": POLICY, "persona.yml": PERSONA})
    return folder


def write(folder: Path, texts: dict[str, str]) -> None:
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")


@pytest.mark.parametrize("names", [("door.yml",), ("policy.yml",), ("persona.yml",), tuple(BROKEN)])
def test_a_reload_that_fails_says_all_that_is_wrong_and_changes_nothing(
    tmp_path: Path, flows: Path, names: tuple[str, ...]
) -> None:
    told: list[str | None] = []

    def spoil(problem: str | None) -> None:
        told.append(problem)
        # What is right beside the faulty file must not be taken over either.
        write(flows, {"door.yml": FLOW.format(text=SHOUTED)} | {name: BROKEN[name] for name in names})

    def mend(problem: str | None) -> None:
        told.append(problem)
        write(flows, {"door.yml": FLOW.format(text=SHOUTED), "policy.yml": POLICY, "persona.yml": PERSONA})

    at: dict[float, Command] = {
        0.5: Reload(on_done=spoil),
        1.0: Reload(on_done=mend),
        1.5: SendText(text="Mind the door."),
        5.0: Reload(on_done=told.append),
        5.5: SendText(text="Mind the door."),
    }
    heard = converse(tmp_path, {}, length_s=9.0, llm=TopicLlm({}), at=at, flows=flows)
    first, failed, last = told
    assert first is None and last is None and failed is not None
    lines = failed.splitlines()
    places = {"door.yml": "door.yml:8:", "policy.yml": "policy.yml:2:22", "persona.yml": "persona.yml:1:13"}
    for name in names:
        assert any(places[name] in line for line in lines), failed
    errors = heard.payloads("app:error")
    assert [error["code"] for error in errors] == ["reload_failed"] and errors[0]["recoverable"]
    assert any(places[name] in errors[0]["message"] for name in names)
    assert [p["text"].removeprefix("Okay: the door. ") for p in heard.answers()] == ["Doors stay shut.", SHOUTED]


def test_a_reload_waits_for_the_end_of_the_answer(tmp_path: Path, flows: Path) -> None:
    told: list[str | None] = []
    at: dict[float, Command] = {
        1.0: SendText(text="Mind the door."),
        1.5: Reload(on_done=told.append),
        1.6: Reload(on_done=told.append),
    }
    heard = converse(tmp_path, {}, length_s=6.0, llm=TopicLlm({}), at=at, flows=flows)
    assert told == [None, None]
    assert [word for word, part in heard.words() if part >= 0.9][-3:] == words_of("Doors stay shut.")


def test_a_reload_that_the_end_of_the_program_overtakes_says_so(tmp_path: Path, flows: Path) -> None:
    told: list[str | None] = []

    at: dict[float, Command] = {
        1.0: SendText(text="What is the sea like?"),
        1.5: Reload(on_done=told.append),
    }
    llm = TopicLlm({"sea": "Waves roll on."}, first_token_s=1e6)
    converse(tmp_path, {}, length_s=3.0, llm=llm, at=at, flows=flows)
    assert told == ["not reloaded: the program is ending"]
