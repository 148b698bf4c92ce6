"""Builds the conversation behind an open window, on the loader's thread; imported there, for its imports are heavy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from desktop.bootstrap import Assembly, RunningProgram, TraceSink, real_timing
from desktop.event_view import EventInbox
from desktop.live_settings import EngineDoor
from desktop.models import ModelStore
from desktop.options import RunOptions
from desktop.prompt_record import PromptRecord
from desktop.sound_models import load_what_works
from orchestrator.clock import Clock
from orchestrator.contracts.errors import MynahError
from orchestrator.contracts.ports import EventSink, ViewSink
from orchestrator.contracts.views import NoticeView, StateView


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """The running conversation and what the window needs of it."""

    program: RunningProgram
    assembly: Assembly
    painted: EventSink
    display_name: str
    avatar: str | None
    door: EngineDoor


def load_program(
    options: RunOptions,
    clock: Clock,
    views: ViewSink,
    on_quit: Callable[[], None],
    *,
    inbox: EventInbox,
    prompts: PromptRecord,
) -> Loaded:
    """Load the models, build the program and start it; what is missing becomes a notice, not an end.

    Every record of the event log goes to `inbox`, every prompt to `prompts`.
    Raises `MynahError` for what leaves nothing to run: a broken configuration, an unusable data folder.
    """
    store = ModelStore()

    def tell(part: str) -> None:
        views.show(StateView(state="starting", detail=part))

    models, errors = load_what_works(options.settings, store, clock, tell)
    for error in errors:
        _notice(views, error)

    def build(chosen: RunOptions) -> Assembly:
        assembly = Assembly(
            options=chosen,
            timing=real_timing(clock),
            views=views,
            models=models,
            store=store,
            wrap_llm=prompts.wrap,
        )
        assembly.event_log.add_tap(inbox.offer)
        assembly.on_quit(on_quit)
        for problem in assembly.brains.errors[:3]:
            views.show(NoticeView(code="flows_invalid", text=str(problem), severity="warning"))
        return assembly

    try:
        assembly = build(options)
    except MynahError as error:
        if error.part not in ("llm", "models"):
            raise
        _notice(views, error)
        options = options.without_llm()
        assembly = build(options)
    program = RunningProgram(assembly)
    try:
        program.start()
    except MynahError as error:
        if error.part not in ("devices", "audio"):
            raise
        _notice(views, error)
        program.stop()
        assembly = build(options.with_default_devices())
        program = RunningProgram(assembly)
        program.start()
    return Loaded(
        program=program,
        assembly=assembly,
        painted=TraceSink(assembly.bus),
        display_name=assembly.brains.display_name(options.settings.ui_language),
        avatar=assembly.brains.persona.avatar,
        door=EngineDoor(program, store),
    )


def _notice(views: ViewSink, error: MynahError) -> None:
    views.show(NoticeView(code=error.code, text=error.message, severity="error"))
