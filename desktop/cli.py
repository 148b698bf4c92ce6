"""The command `mynah`."""

from __future__ import annotations

import argparse
import contextlib
import gc
import io
import logging
import os
import sys
from collections.abc import Callable, Sequence

from orchestrator.contracts.errors import MynahError

Command = Callable[[list[str]], int]


def _window(argv: list[str]) -> int:
    # What is imported stays; looking for garbage among it delays the window. It is collected from then on in steps.
    gc.disable()
    from desktop.options import add_run_options, run_options

    parser = argparse.ArgumentParser(
        prog="mynah",
        description="A voice companion for the desktop.",
        epilog=_commands_text(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_run_options(parser)
    options = run_options(parser.parse_args(argv), strict=False)
    _set_up_logging(options.settings.log_level)
    from desktop.window_app import run_window

    return run_window(options)


def _run(argv: list[str]) -> int:
    from desktop.options import add_run_options, run_options

    parser = argparse.ArgumentParser(prog="mynah run", description="Run the conversation.")
    parser.add_argument("--headless", action="store_true", help="without a window")
    add_run_options(parser)
    args = parser.parse_args(argv)
    options = run_options(args, strict=args.headless)
    _set_up_logging(options.settings.log_level)
    if args.headless:
        from desktop.headless import run_headless

        return run_headless(options)
    from desktop.window_app import run_window

    return run_window(options)


def _simulate(argv: list[str]) -> int:
    from desktop.simulate import simulate_main

    return simulate_main(argv)


def _demo(argv: list[str]) -> int:
    from desktop.demo import demo_main

    return demo_main(argv)


def _flows(argv: list[str]) -> int:
    from desktop.flows_cli import flows_main

    return flows_main(argv)


def _models(argv: list[str]) -> int:
    from desktop.model_cli import models_main

    return models_main(argv)


def _doctor(argv: list[str]) -> int:
    from desktop.doctor import doctor_main

    return doctor_main(argv)


def _licenses(argv: list[str]) -> int:
    from desktop.licenses import licenses_main

    return licenses_main(argv)


def _devices(argv: list[str]) -> int:
    from desktop.tools_cli import devices_main

    return devices_main(argv)


def _say(argv: list[str]) -> int:
    from desktop.tools_cli import say_main

    return say_main(argv)


def _transcribe(argv: list[str]) -> int:
    from desktop.tools_cli import transcribe_main

    return transcribe_main(argv)


def _history(argv: list[str]) -> int:
    from desktop.history_cli import history_main

    return history_main(argv)


def _schema(argv: list[str]) -> int:
    from desktop.schema_cli import schema_main

    return schema_main(argv)


COMMANDS: dict[str, tuple[Command, str]] = {
    "run": (_run, "run the conversation (--headless: without a window)"),
    "simulate": (_simulate, "run it between sound files"),
    "demo": (_demo, "a scripted conversation with an interruption, measured"),
    "flows": (_flows, "check, test, draw and calibrate flows and rails"),
    "models": (_models, "list, get, verify and import models"),
    "devices": (_devices, "list microphones and loudspeakers"),
    "doctor": (_doctor, "look whether everything is there and works"),
    "say": (_say, "speak a text"),
    "transcribe": (_transcribe, "recognise a sound file"),
    "history": (_history, "list, export and delete conversations"),
    "licenses": (_licenses, "licences of everything used"),
    "schema": (_schema, "JSON Schema of a file format"),
}


def _commands_text() -> str:
    lines = [f"  {name:<11} {about}" for name, (_, about) in COMMANDS.items()]
    return "commands:\n" + "\n".join(lines) + "\n\nWithout a command the window opens."


def main(argv: Sequence[str] | None = None) -> int:
    """Run `mynah`; returns the exit code: 0, 2 bad input, 3 a part failed, 130 interrupted."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    command: Command = _window
    if arguments and not arguments[0].startswith("-"):
        name = arguments.pop(0)
        if name not in COMMANDS:
            return _fail(f"unknown command {name!r}; known: {', '.join(COMMANDS)}", 2)
        command = COMMANDS[name][0]
    _set_up_logging("warning")
    try:
        return command(arguments)
    except MynahError as error:
        return _fail(error.message, error.exit_code)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read our output has gone; the interpreter must not complain about it when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        logging.getLogger(__name__).debug("unexpected failure", exc_info=error)
        return _fail(
            f"something went wrong inside Mynah: {type(error).__name__}: {error} (--log-level debug tells more)", 3
        )


def entry() -> None:
    """Run `mynah` as a program: end the process with its code, without waiting for what native threads still do."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal or pipe of another encoding shows what it can't hold as an escape.
        sys.stdout.reconfigure(errors="backslashreplace")
    code = main()
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    # A model call may still run on a worker thread; tearing the interpreter down under it would crash.
    os._exit(code)


def _fail(message: str, code: int) -> int:
    sys.stderr.write(f"mynah: {message}\n")
    return code


def _set_up_logging(level: str) -> None:
    logging.basicConfig(
        level=getattr(logging, level.upper(), logging.WARNING),
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        force=True,
    )
    # These write what was said or asked at INFO.
    for noisy in ("httpx", "httpx2", "httpcore", "httpcore2", "openai", "faster_whisper"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


if __name__ == "__main__":
    entry()
