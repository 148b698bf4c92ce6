"""What the running program takes over: languages, recogniser, language model, without a restart."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rigs.scripted_llm import Answer, ScriptedLlm

from desktop import live_settings
from desktop.live_settings import EngineDoor
from desktop.llm_host import LlmHost
from desktop.models import ModelStore
from desktop.settings import Settings
from orchestrator.clock import SystemClock
from orchestrator.contracts.commands import Command, Reload
from orchestrator.contracts.dialogue import ChatMessage, LlmRequest, LlmTask
from orchestrator.contracts.errors import InputError
from orchestrator.contracts.ids import GenerationId, IdFactory
from orchestrator.generation import Generations


class Recorder:
    """Stands for the engine's parts; notes every call."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *args, **values: self.calls.append((name, args or values))


class Running:
    """A running program whose core loop is the caller's."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self.commands: list[Command] = []
        self.loop = asyncio.new_event_loop()
        self.store = ModelStore(folder / "models")
        self.recogniser, self.speech, self.ears = Recorder(), Recorder(), Recorder()
        ids = IdFactory("t")
        self.llm = LlmHost(settings=settings, store=self.store, data=folder, clock=SystemClock(), ids=ids)
        self.apart: list[str] = []
        self.assembly = SimpleNamespace(
            settings=settings,
            timing=SimpleNamespace(clock=SystemClock()),
            engine=SimpleNamespace(recogniser=self.recogniser, speech=self.speech, ears=self.ears, is_output_idle=True),
            brains=SimpleNamespace(hotwords=lambda: ("Mynah",)),
            llm=self.llm,
            ids=ids,
            generations=Generations(ids, SystemClock(), lambda event: None),
            core=SimpleNamespace(turns=SimpleNamespace(session_id="s-1", note_apart=self.apart.append)),
            use=self._use,
        )

    def _use(self, settings: Settings) -> None:
        self.assembly.settings = settings

    def submit(self, command: Command) -> bool:
        self.commands.append(command)
        return True

    def run_on_core(self, work: Callable[[], Awaitable[object]]) -> object:
        async def run() -> object:
            return await work()

        return self.loop.run_until_complete(run())

    def ask(self) -> str:
        async def answer() -> str:
            llm = self.llm.for_turn(GenerationId("g"), lambda payload: None)
            request = LlmRequest(task=LlmTask.PERSONA, messages=(ChatMessage(role="user", content="hello"),))
            return "".join([piece async for piece in llm.stream(request)])

        return cast(str, self.run_on_core(answer))

    def close(self) -> None:
        self.run_on_core(self.llm.close)
        self.loop.close()


@pytest.fixture
def make(tmp_path: Path) -> Any:
    made: list[Running] = []

    def build(**values: Any) -> tuple[Running, EngineDoor]:
        running = Running(tmp_path, Settings(**values))
        made.append(running)
        return running, EngineDoor(cast(Any, running), running.store)

    yield build
    for running in made:
        running.close()


def test_another_endpoint_answers_from_the_next_turn_on(make: Any) -> None:
    with ScriptedLlm([Answer(pattern=".", text="one")]) as one, ScriptedLlm([Answer(pattern=".", text="two")]) as two:
        running, door = make(llm=one.url)
        assert running.ask() == "one"
        door.apply("llm", Settings(llm=two.url))
        assert running.ask() == "two"
        assert running.llm.name == two.url
        assert running.assembly.settings.llm == two.url
        assert running.commands == [Reload()]
        door.apply("llm", Settings(llm="none"))
        assert running.llm.client is None


def test_a_model_that_must_be_fetched_first_leaves_none_and_says_so(make: Any) -> None:
    with ScriptedLlm([Answer(pattern=".", text="one")]) as one:
        running, door = make(llm=one.url)
        with pytest.raises(InputError) as raised:
            door.apply("llm", Settings(llm="local"))
        assert raised.value.code == "model_missing"
        assert running.llm.client is None


def test_a_key_that_is_not_there_changes_nothing(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    with ScriptedLlm([Answer(pattern=".", text="one")]) as one:
        running, door = make(llm=one.url)
        with pytest.raises(InputError):
            door.apply("llm_key_env", Settings(llm=one.url, llm_key_env="NO_SUCH_KEY"))
        assert running.ask() == "one"


def test_languages_reach_recogniser_and_brain(make: Any) -> None:
    running, door = make(llm="none")
    door.apply("languages", Settings(llm="none", languages=("zh",), chinese_script="traditional"))
    ((name, values),) = running.recogniser.calls
    assert name == "set_languages" and values[0] == ("zh",) and values[1].value == "traditional"
    assert running.assembly.settings.languages == ("zh",)
    assert running.commands == [Reload()]


def test_another_recogniser_is_loaded_and_used(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_settings, "load_final", lambda settings, store, clock: settings.whisper)
    monkeypatch.setattr(live_settings, "load_partial", lambda settings, store, clock: None)
    running, door = make(llm="none")
    door.apply("whisper", Settings(whisper="whisper-small"))
    assert running.recogniser.calls == [("set_models", ("whisper-small", None))]


def test_a_sample_of_the_voice_belongs_to_no_conversation(make: Any) -> None:
    running, door = make(llm="none")
    door.say_sample("zh")
    ((name, (intent,)),) = running.speech.calls
    assert name == "submit"
    assert "你好" in intent.text and intent.language == "zh" and not intent.interruptible
    assert not running.assembly.generations.is_stale(intent.generation_id)
    assert running.apart == [intent.generation_id], "a stop knows what to silence"


def test_while_the_ears_rest_nothing_is_taken_for_speech(make: Any) -> None:
    running, door = make(llm="none")
    door.rest_ears(True)
    door.rest_ears(False)
    door.apply("talk_mode", Settings(talk_mode="push_to_talk"))
    door.rest_ears(False)
    assert [args[0] for _, args in running.ears.calls] == [False, True, False, False]
