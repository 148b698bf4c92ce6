"""`mynah run --headless`: the voice loop without a window."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Mapping
from typing import Any

from desktop.bootstrap import Assembly, RunningProgram, real_timing
from desktop.collecting import INTERVAL_S, Collecting
from desktop.control_channel import ControlChannel, print_ack, require_readable
from desktop.models import ModelStore
from desktop.options import RunOptions
from desktop.sound_models import load_all
from orchestrator.clock import SystemClock
from orchestrator.contracts.errors import MynahError
from orchestrator.contracts.events import json_name
from orchestrator.contracts.views import DeviceView, NoticeView, View


class NoWindow:
    """Takes views where there is no window; notices go to standard error."""

    def show(self, view: View) -> bool:
        """Print a notice and a missing device, forget the rest."""
        if isinstance(view, DeviceView) and view.state in ("missing", "lost"):
            why = f": {view.reason}" if view.reason else ""
            print(f"mynah: {view.direction} device {view.state}{why}", file=sys.stderr)  # noqa: T201 - as below
        if isinstance(view, NoticeView):
            print(f"mynah: {view.text}", file=sys.stderr)  # noqa: T201 - the only way to tell without a window
        return True


def run_headless(options: RunOptions) -> int:
    """Run until SIGTERM, SIGINT or `quit`; returns the exit code.

    Raises `MynahError` for what keeps it from starting.
    """
    clock = SystemClock()
    store = ModelStore()
    over = threading.Event()
    code = 0
    is_loading = True

    def on_signal(number: int, _frame: Any) -> None:
        nonlocal code
        code = 130 if number == signal.SIGINT else 0
        if is_loading:
            # Native loaders can't be interrupted, and nothing is open yet that would have to be closed.
            os._exit(code)
        over.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, on_signal)
    collecting = Collecting()
    if options.control is not None:
        require_readable(options.control)
    models = load_all(options.settings, store, clock, lambda part: None)
    is_loading = False
    assembly = Assembly(
        options=options,
        timing=real_timing(clock),
        views=NoWindow(),
        models=models,
        store=store,
        must_answer=True,
        must_be_valid=True,
    )
    assembly.on_quit(over.set)
    program = RunningProgram(assembly)
    try:
        program.start()
        if options.control is not None:
            acknowledge = assembly.acknowledge if options.events is not None else print_ack
            channel = ControlChannel(submit=program.submit, acknowledge=acknowledge, dump=lambda: _dump(program))
            program.ending.append(channel.close)
            channel.start(options.control)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        collecting.settle()
        while not over.wait(INTERVAL_S):
            collecting.tick()
    except MynahError as error:
        program.stop(code=error.exit_code)
        raise
    except BaseException:
        program.stop(code=3)
        raise
    finally:
        collecting.stop()
    program.stop(code=code)
    return code


def _dump(program: RunningProgram) -> Mapping[str, Any]:
    return {"widgets": [], "state": {json_name(key): value for key, value in program.state().items()}}
