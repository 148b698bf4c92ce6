"""A model that fails, and comes back, in the running program."""

from __future__ import annotations

from pathlib import Path

import pytest
from rigs.program_rig import Program
from rigs.scripted_llm import Answer, ScriptedLlm
from rigs.sound_rig import SoundRig

from orchestrator.llm.failures import FailureCode
from orchestrator.llm.unavailable import STILL, spoken

pytestmark = [pytest.mark.e2e, pytest.mark.audio, pytest.mark.models, pytest.mark.timeout(120)]


def test_a_failure_is_said_in_full_again_once_the_model_had_come_back(sound_rig: SoundRig, tmp_path: Path) -> None:
    answers = [Answer(pattern="lighthouse|灯塔", status=500), Answer(pattern="boats", text="They float.")]
    lines = (
        ("Tell me a poem about some lighthouse.", spoken(FailureCode.SERVER_ERROR, "en")),
        ("给我念一首关于灯塔的诗。", STILL["zh"]),
        ("Tell me a poem about small boats.", None),
        ("再给我念一首关于灯塔的诗吧。", spoken(FailureCode.SERVER_ERROR, "zh")),
    )
    with (
        ScriptedLlm(answers) as llm,
        Program(["run", "--headless", "--llm", llm.url], folder=tmp_path, env=sound_rig.env) as program,
    ):
        program.send(cmd="mute_voice", on=True)
        for count, (line, failure) in enumerate(lines, start=1):
            program.send(cmd="text", text=line)
            program.wait_for("turn:commit", lambda _, n=count: len(program.of("turn:commit")) >= n, timeout_s=40)
            said = [r["payload"]["message"] for r in program.of("app:error") if r["payload"]["part"] == "llm"]
            assert said[-1:] == [failure] if failure is not None else len(said) == 2
        statuses = [r["payload"]["status"] for r in program.of("history:commit") if r["payload"]["role"] == "assistant"]
        assert statuses == ["failed", "failed", "completed", "failed"]
        code, _ = program.end()
        assert code == 0
