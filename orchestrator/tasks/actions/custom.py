"""Custom actions: Python files, direct children of the user's actions folder, found by scan.

Only the user's own actions folder is looked at: a flow pack can't bring Python with it.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
import traceback
from collections.abc import Container
from pathlib import Path
from types import ModuleType

from orchestrator.flows.source import Problem
from orchestrator.tasks.actions.base import Action


def _problem(path: Path, line: int, code: str, message: str) -> Problem:
    return Problem(file=str(path), line=line, col=1, end=(line, 1), code=code, message=message)


def scan_actions(folder: Path, taken: Container[str] = ()) -> tuple[list[Action], list[Problem]]:
    """Load the folder's actions. A broken file, a double or missing name is reported and does not stop the others."""
    found: dict[str, tuple[Action, Path]] = {}
    problems: list[Problem] = []
    if not folder.is_dir():
        return [], []
    for path in sorted(folder.glob("*.py")):
        if not path.is_file() or path.name.startswith("_"):
            continue
        module, problem = _load(path)
        if module is None:
            if problem is not None:
                problems.append(problem)
            continue
        for cls in _own_actions(module):
            action, fault = _construct(cls, path)
            if action is None:
                problems.append(fault or _problem(path, 1, "action_broken", f"{cls.__name__} can't be constructed"))
                continue
            line = _line_of(cls)
            if not isinstance(action.name, str) or not action.name:
                problems.append(_problem(path, line, "action_name_missing", f"{cls.__name__} has no name"))
            elif action.name in found or action.name in taken:
                where = found[action.name][1].name if action.name in found else "the built-in actions"
                problems.append(_problem(path, line, "action_name_taken",
                                         f"the name {action.name} of {cls.__name__} is taken by {where}"))  # fmt: skip
            else:
                found[action.name] = (action, path)
    return [action for action, _ in found.values()], problems


def _load(path: Path) -> tuple[ModuleType | None, Problem | None]:
    name = f"mynah_user_actions_{path.stem}_{abs(hash(str(path)))}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        return None, _problem(path, 1, "action_broken", "can't be loaded as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001 - a user's file may raise anything, SystemExit included
        sys.modules.pop(name, None)
        return None, _problem(path, _line_in(path, error), "action_broken", f"{type(error).__name__}: {error}")
    return module, None


def _line_in(path: Path, error: BaseException) -> int:
    if isinstance(error, SyntaxError) and error.lineno:
        return error.lineno
    lines = [f.lineno or 1 for f in traceback.extract_tb(error.__traceback__) if f.filename == str(path)]
    return lines[-1] if lines else 1


def _own_actions(module: ModuleType) -> list[type[Action]]:
    return [
        value for value in vars(module).values()
        if inspect.isclass(value) and issubclass(value, Action) and value.__module__ == module.__name__
        and not inspect.isabstract(value)
    ]  # fmt: skip


def _construct(cls: type[Action], path: Path) -> tuple[Action | None, Problem | None]:
    try:
        return cls(), None
    except Exception as error:  # noqa: BLE001 - a user's constructor may raise anything
        return None, _problem(path, _line_of(cls), "action_broken", f"{cls.__name__}() failed: {error}")


def _line_of(cls: type[Action]) -> int:
    try:
        return inspect.getsourcelines(cls)[1]
    except (OSError, TypeError):
        return 1
