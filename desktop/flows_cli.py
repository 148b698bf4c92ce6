"""`mynah flows check | test | graph | calibrate`: the author tools."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

from desktop.faults import fault_text
from desktop.flow_check import persona_problems
from desktop.meaning_vectors import meaning_rails, meaning_store
from desktop.paths import data_dir, flow_config
from desktop.shared_options import add_everywhere
from orchestrator.contracts.dialogue import LlmRequest, TurnContext, TurnInput
from orchestrator.contracts.errors import InputError, MynahError
from orchestrator.dialogue.brain_loading import LoadedBrain
from orchestrator.flows.graph import mermaid
from orchestrator.flows.loader import NOT_FLOWS, Layer, Loaded, load_config
from orchestrator.flows.source import MapNode, Node, Problem, Report, ScalarNode, did_you_mean, read_source
from orchestrator.flows.testing.coverage import coverage_of
from orchestrator.flows.testing.format import TestCase, read_tests
from orchestrator.flows.testing.runner import Runner, TestResult, run_tests
from orchestrator.llm.persona import Persona, load_persona_layers
from orchestrator.llm.prompts import persona_request
from orchestrator.policy_file import check_policy
from orchestrator.tasks.actions.builtin import builtin_actions
from orchestrator.tasks.actions.custom import scan_actions
from orchestrator.tasks.actions.registry import ActionRegistry

LOG_LEVELS = ("debug", "info", "warning", "error")


def flows_main(argv: list[str]) -> int:
    """Run one of the author tools; returns the exit code (0, 1 a test failed, 2 bad input or faults found)."""
    parser = _parser()
    args = parser.parse_args(argv)
    # an action that a test lets fail is part of its result, no trouble of the program
    root = logging.getLogger()
    level = root.level
    root.setLevel((args.log_level or "error").upper())
    try:
        return int(args.run(args))
    except MynahError as error:
        told = fault_text(error.code, error.message, getattr(args, "language", "en"))
        print(f"mynah flows: {told}", file=sys.stderr)
        return error.exit_code
    finally:
        root.setLevel(level)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mynah flows", description="Check, test, draw and calibrate flows and rails.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    check = commands.add_parser("check", help="report every fault with its place")
    check.add_argument("path", nargs="?", type=Path, help="a folder or a file (default: your flow folder)")
    check.add_argument("--language", choices=("en", "zh"), default="en", help="the language of the faults")
    check.set_defaults(run=_check)
    test = commands.add_parser("test", help="run the test conversations")
    test.add_argument("path", nargs="?", type=Path, help="a folder or a test file (default: your flow folder)")
    test.add_argument("-k", dest="only", metavar="REGEX", help="only tests whose name matches")
    test.set_defaults(run=_test)
    graph = commands.add_parser("graph", help="print a flow as a Mermaid flowchart")
    graph.add_argument("flow", help="the flow's id")
    graph.add_argument("path", nargs="?", type=Path, help="a folder or a file (default: your flow folder)")
    graph.set_defaults(run=_graph)
    calibrate = commands.add_parser("calibrate", help="show how well user intents are told apart")
    calibrate.add_argument("path", nargs="?", type=Path, help="a folder or a file (default: your flow folder)")
    calibrate.set_defaults(run=_calibrate)
    each = (check, test, graph, calibrate)
    add_everywhere(parser, each, "--json", action="store_true", help="print JSON")
    add_everywhere(parser, each, "--flows", type=Path, metavar="DIR", help="your own flow folder")
    add_everywhere(parser, each, "--data", type=Path, metavar="DIR", help="the data folder")
    add_everywhere(parser, each, "--log-level", choices=LOG_LEVELS, help="how much is logged to standard error")
    return parser


# --- where things are ------------------------------------------------------------------------------------


def _user_folder(args: argparse.Namespace) -> Path:
    if args.flows is not None:
        if not args.flows.is_dir():
            raise InputError("flows_missing", f"{args.flows} is no folder")
        return Path(args.flows)
    return data_dir(args.data) / "flows"


def _actions_folder(args: argparse.Namespace) -> Path:
    return data_dir(args.data) / "actions"


def _layers(args: argparse.Namespace) -> list[Layer]:
    """Read the shipped layer with the user's over it, or with the path given over it."""
    path: Path | None = args.path
    if path is not None and not path.exists():
        raise InputError("path_missing", f"{path} does not exist")
    shipped = Layer.of_folder(flow_config())
    if path is not None and path.is_file():
        return [shipped, Layer(documents=(read_source(path, str(path)),))]
    folder = path or _user_folder(args)
    if folder.resolve() == flow_config().resolve() or not folder.is_dir():
        return [shipped]
    return [shipped, Layer.of_folder(folder)]


def _actions(folder: Path) -> tuple[ActionRegistry, tuple[Problem, ...]]:
    builtin = builtin_actions()
    custom, problems = scan_actions(folder, {a.name for a in builtin})
    return ActionRegistry([*builtin, *custom]), tuple(problems)


def _load(args: argparse.Namespace) -> LoadedBrain:
    layers = _layers(args)
    actions, problems = _actions(_actions_folder(args))
    loaded = load_config(layers, actions=actions)
    return LoadedBrain(config=loaded.config, actions=actions, problems=(*problems, *loaded.problems))


# --- check -----------------------------------------------------------------------------------------------


def _check(args: argparse.Namespace) -> int:
    loaded = _load(args)
    problems = loaded.problems
    if (args.path is None and not args.flows) or args.path is None or args.path.is_dir():
        problems = (*problems, *_test_problems(args.path or _user_folder(args)))
    folder = args.path if args.path is not None and args.path.is_dir() else _user_folder(args)
    problems = (*problems, *_other_problems(args.path if args.path is not None and args.path.is_file() else folder))
    return _print_problems([_told(p, args.language) for p in problems], args.json, args.language)


def _told(problem: Problem, language: str) -> Problem:
    return replace(problem, message=fault_text(problem.code, problem.message, language))


def _other_problems(path: Path) -> tuple[Problem, ...]:
    """Return what is wrong with `policy.yml` and `persona.yml` at `path`, a folder or one of them."""
    files = [path] if path.is_file() else [path / "policy.yml", path / "persona.yml"]
    found: list[Problem] = []
    shipped = load_persona_layers([flow_config() / "persona.yml"])
    for file in files:
        if file.name == "policy.yml" and file.is_file():
            found += check_policy([file])[1]
        elif file.name == "persona.yml" and file.is_file():
            found += persona_problems(str(file), file.read_text(encoding="utf-8", errors="replace"), base=shipped)
    return tuple(found)


def _test_problems(folder: Path) -> tuple[Problem, ...]:
    report = Report()
    for path in _test_files(folder):
        read_tests(read_source(path, str(path)), report)
    return tuple(report.sorted())


def _print_problems(problems: Sequence[Problem], as_json: bool, language: str = "en") -> int:
    errors = [p for p in problems if p.severity == "error"]
    if as_json:
        print(json.dumps({"ok": not errors, "problems": [p.to_json() for p in problems]}, ensure_ascii=False, indent=2))
    else:
        for problem in problems:
            print(problem if language == "en" else _in_chinese(problem))
        if not problems:
            print("no problems" if language == "en" else "没有问题")
    return 2 if errors else 0


def _in_chinese(problem: Problem) -> str:
    hint = f"  是不是 {problem.suggestion}？" if problem.suggestion else ""
    kind = "" if problem.severity == "error" else "注意："
    return f"{problem.file}:{problem.line}:{problem.col}  {problem.code}  {kind}{problem.message}{hint}"


# --- test ------------------------------------------------------------------------------------------------


def _test_files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    folder = path / "tests" if (path / "tests").is_dir() else path
    found = sorted(p for p in folder.rglob("*.y*ml") if p.is_file())
    return [p for p in found if _has_tests(p)]


def _has_tests(path: Path) -> bool:
    root = read_source(path).root
    return hasattr(root, "entries") and "tests" in getattr(root, "entries", {})


def _flow_folder(test_file: Path, args: argparse.Namespace) -> Path:
    """Return the folder whose flows a test file is about: its own, or the one above a `tests` folder."""
    if args.flows is not None:
        return Path(args.flows)
    folder = test_file.parent
    while folder.name != "tests" and folder.parent != folder and "tests" in folder.parts:
        folder = folder.parent
    folder = folder.parent if folder.name == "tests" else test_file.parent
    if any(_is_flow_file(p) for p in folder.glob("*.y*ml")):
        return folder
    user = _user_folder(args)
    return user if user.is_dir() else flow_config()


def _is_flow_file(path: Path) -> bool:
    return path.is_file() and path.name not in NOT_FLOWS and not _has_tests(path)


def _test(args: argparse.Namespace) -> int:
    path = args.path
    if path is None:
        user = _user_folder(args)
        path = user if user.is_dir() and _test_files(user) else flow_config()
    if not path.exists():
        raise InputError("path_missing", f"{path} does not exist")
    report = Report()
    files = _test_files(path)
    if not files:
        raise InputError("no_tests", f"no test files in {path}")
    suites = [(file, read_tests(read_source(file, str(file)), report)) for file in files]
    problems = report.sorted()
    if any(p.severity == "error" for p in problems):
        return _print_problems(problems, args.json)
    for problem in problems if not args.json else ():
        print(problem, file=sys.stderr)
    suites = [(file, _chosen(tests, args.only)) for file, tests in suites]
    if args.only is not None and not any(tests for _, tests in suites):
        raise InputError("no_tests", f"no tests: none has a name that -k {args.only} matches")
    results = asyncio.run(_run_suites(suites, args))
    _print_results(results, coverage_of(results), problems, args.json)
    return 0 if all(r.passed for r in results) else 1


def _chosen(tests: list[TestCase], only: str | None) -> list[TestCase]:
    try:
        return [t for t in tests if only is None or re.search(only, t.name)]
    except re.error as error:
        raise InputError("pattern_invalid", f"-k {only}: not a regular expression ({error})") from error


async def _run_suites(suites: list[tuple[Path, list[TestCase]]], args: argparse.Namespace) -> list[TestResult]:
    shipped_text = (flow_config() / "system_flows.yml").read_text(encoding="utf-8")
    rails = meaning_rails()
    results: list[TestResult] = []
    for file, tests in suites:
        folder = _flow_folder(file, args)
        runner = Runner(
            folder=folder,
            shipped={"system_flows.yml": shipped_text},
            make_rails=rails,
            persona_request=_persona_requests(folder),
            shown=str(folder),
            fallback=flow_config(),
        )
        results += await run_tests(runner, tests)
    return results


def _persona_requests(folder: Path) -> Any:
    paths = [p for p in (flow_config() / "persona.yml", folder / "persona.yml") if p.is_file()]
    persona: Persona = load_persona_layers(paths)

    def make(turn: TurnContext, user: TurnInput) -> LlmRequest:
        return persona_request(persona, history=turn.history, user=user, world=turn.world, now=_aware(turn.now))

    return make


def _aware(now: datetime) -> datetime:
    return now if now.tzinfo is not None else now.astimezone()


def _print_results(
    results: Sequence[TestResult], coverage: dict[str, Any], warnings: Sequence[Problem], as_json: bool
) -> None:
    if as_json:
        tests = [{"name": r.name, "passed": r.passed, "failures": [f.to_json() for f in r.failures]} for r in results]
        found = {"tests": tests, "coverage": coverage, "warnings": [p.to_json() for p in warnings]}
        print(json.dumps(found, ensure_ascii=False, indent=2, default=str))
        return
    for result in results:
        print(f"{'ok  ' if result.passed else 'FAIL'} {result.name}")
        for failure in result.failures:
            print(f"     {failure}")
    failed = sum(not r.passed for r in results)
    print(f"{len(results) - failed} passed, {failed} failed" if results else "no tests")
    for name, flow in coverage["flows"].items():
        if flow["visited"]:
            missed = f"  not taken: {', '.join(flow['missed'][:6])}" if flow["missed"] else ""
            print(
                f"  {name}: {flow['visited']}/{flow['steps']} steps, "
                f"{flow['taken']}/{flow['branches']} branches{missed}"
            )


# --- graph, calibrate ------------------------------------------------------------------------------------


def _graph(args: argparse.Namespace) -> int:
    layers = _layers(args)
    # a flow is drawn also where one of its actions is not installed
    loaded = load_config(layers)
    flow, entry = loaded.config.flow(args.flow), _flow_entries(layers).get(args.flow)
    if flow is None or entry is None:
        _refuse_graph(args.flow, loaded, layers)
    else:
        checked = load_config(layers, actions=_actions(_actions_folder(args))[0])
        for problem in checked.problems:
            if problem.code == "unknown_action" and _is_inside(problem, *entry):
                print(replace(problem, severity="warning"), file=sys.stderr)
        drawing = mermaid(loaded.config, flow)
        print(json.dumps({"flow": flow.id, "mermaid": drawing}, ensure_ascii=False) if args.json else drawing.rstrip())
    return 0


def _flow_entries(layers: Sequence[Layer]) -> dict[str, tuple[ScalarNode, Node]]:
    """Return every flow that is written down, sound or not; a later layer counts."""
    found: dict[str, tuple[ScalarNode, Node]] = {}
    for document in (d for layer in layers for d in layer.documents):
        flows = document.root.get("flows") if isinstance(document.root, MapNode) else None
        found |= flows.entries if isinstance(flows, MapNode) else {}
    return found


def _is_inside(problem: Problem, key: ScalarNode, node: Node) -> bool:
    return problem.file == key.file and (key.line, key.col) <= (problem.line, problem.col) < (
        node.end_line,
        node.end_col,
    )


def _refuse_graph(name: str, loaded: Loaded, layers: Sequence[Layer]) -> NoReturn:
    known = _flow_entries(layers)
    if name in known:
        faults = [p for p in loaded.errors if _is_inside(p, *known[name])] or loaded.errors
    else:
        faults = [p for p in loaded.errors if p.code.startswith(("yaml_", "file_"))]
    for problem in faults:
        print(problem, file=sys.stderr)
    if name in known:
        raise InputError("flow_faulty", f"the flow {name!r} can't be drawn, it has errors")
    hint = did_you_mean(name, known)
    raise InputError("flow_unknown", f"no such flow: {name!r}" + (f"; did you mean {hint}?" if hint else ""))


def _calibrate(args: argparse.Namespace) -> int:
    from orchestrator.rails.calibrate import calibrate

    loaded = _load(args)
    for problem in loaded.errors:
        print(problem, file=sys.stderr)
    report = asyncio.run(calibrate(loaded.config.rails, meaning_store()))
    if args.json:
        print(json.dumps(report.to_json(), ensure_ascii=False, indent=2))
    else:
        print("\n".join(report.lines()))
    return 0


__all__ = ["NOT_FLOWS", "flows_main"]
