"""Checks the files of the user's layer, saved or not, with the reader that the runtime uses for each."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from desktop.flow_folders import FlowFolders
from orchestrator.contracts.errors import InputError
from orchestrator.flows.loader import NOT_FLOWS, Layer, load_config
from orchestrator.flows.model import FlowConfig
from orchestrator.flows.source import Document, Problem, Report, parse_source, read_source
from orchestrator.flows.testing.format import read_tests
from orchestrator.llm.persona import Persona, load_persona
from orchestrator.policy_file import check_policy
from orchestrator.tasks.actions.builtin import builtin_actions
from orchestrator.tasks.actions.custom import scan_actions
from orchestrator.tasks.actions.registry import ActionRegistry

SHIPPED_LABEL = "shipped"
TESTS_FOLDER = "tests"

_PERSONA_LINE = re.compile(r".*?:(\d+):(\d+): (.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What the two layers come to. A problem's `file` is a name in the user's layer, or `shipped/NAME`."""

    config: FlowConfig
    actions: ActionRegistry
    problems: tuple[Problem, ...]

    def errors(self, name: str | None = None) -> tuple[Problem, ...]:
        """Return the errors of the file `name`, or all."""
        return tuple(p for p in self.problems if p.severity == "error" and name in (None, p.file))


def kind_of(name: str) -> str:
    """Return what a file of a layer holds: flows (rails included), tests, policy or persona."""
    if name.startswith(f"{TESTS_FOLDER}/"):
        return "tests"
    return name.partition(".")[0] if name in NOT_FLOWS else "flows"


def layer_names(folder: Path) -> list[str]:
    """Return the files of a layer, those of its tests last."""
    found = sorted(p.name for p in folder.glob("*.y*ml") if p.is_file() and not p.name.startswith("."))
    tests = sorted(p.name for p in (folder / TESTS_FOLDER).glob("*.y*ml") if p.is_file())
    return [*found, *(f"{TESTS_FOLDER}/{name}" for name in tests)]


class FlowCheck:
    """Reads both layers. Used by one thread at a time; what ships and the actions are read once."""

    def __init__(self, folders: FlowFolders) -> None:
        """Read nothing yet."""
        self.folders = folders
        self._shipped: Layer | None = None
        self._actions: tuple[ActionRegistry, tuple[Problem, ...]] | None = None
        self._parsed: dict[str, tuple[str, Document]] = {}

    def forget(self) -> None:
        """Read what ships and the actions anew at the next check."""
        self._shipped = self._actions = None

    def run(self, texts: Mapping[str, str] | None = None) -> Checked:
        """Check everything; `texts` replaces files of the user's layer by name, also such as don't exist yet."""
        texts = texts or {}
        user = self.folders.user
        names = list(dict.fromkeys([*(layer_names(user) if user.is_dir() else ()), *texts]))
        documents = {name: self._document(name, texts) for name in names}
        if self._shipped is None:
            self._shipped = Layer.of_folder(self.folders.shipped, shown=SHIPPED_LABEL)
        actions, action_problems = self._read_actions()
        flows = tuple(documents[name] for name in names if kind_of(name) == "flows")
        loaded = load_config([self._shipped, Layer(documents=flows)], actions=actions)
        problems = [*action_problems, *loaded.problems]
        for name in names:
            problems += self._check_other(name, documents[name], texts)
        return Checked(config=loaded.config, actions=actions, problems=tuple(problems))

    def parse(self, name: str, text: str) -> Document:
        """Parse a text, unless it is the one that was parsed last under this name."""
        found = self._parsed.get(name)
        if found is None or found[0] != text:
            found = self._parsed[name] = (text, parse_source(text, name))
        return found[1]

    def _document(self, name: str, texts: Mapping[str, str]) -> Document:
        text = texts[name] if name in texts else _text_of(self.folders.user / name)
        if text is None:
            return read_source(self.folders.user / name, name)
        return self.parse(name, text)

    def _read_actions(self) -> tuple[ActionRegistry, tuple[Problem, ...]]:
        if self._actions is None:
            builtin = builtin_actions()
            folder = self.folders.actions
            custom, problems = (
                scan_actions(folder, {a.name for a in builtin}) if folder is not None and folder.is_dir() else ([], [])
            )
            self._actions = ActionRegistry([*builtin, *custom]), tuple(problems)
        return self._actions

    def _check_other(self, name: str, document: Document, texts: Mapping[str, str]) -> list[Problem]:
        kind = kind_of(name)
        if kind == "tests":
            report = Report()
            read_tests(document, report)
            return report.sorted()
        if kind == "flows":
            return []
        text = texts[name] if name in texts else _text_of(self.folders.user / name)
        if text is None:
            return list(document.problems)
        return self._check_persona(name, text) if kind == "persona" else _check_policy(name, text)

    def _check_persona(self, name: str, text: str) -> list[Problem]:
        return persona_problems(name, text, base=self._shipped_persona())

    def _shipped_persona(self) -> Persona | None:
        path = self.folders.shipped / "persona.yml"
        return load_persona(path.read_text(encoding="utf-8")) if path.is_file() else None


def persona_problems(name: str, text: str, *, base: Persona | None) -> list[Problem]:
    """Return what is wrong with a persona's text, laid over `base`."""
    try:
        load_persona(text, source=name, base=base)
    except InputError as error:
        return [_persona_problem(name, line) for line in error.message.splitlines()]
    return []


def _text_of(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def _persona_problem(name: str, line: str) -> Problem:
    found = _PERSONA_LINE.fullmatch(line)
    row, col, message = (int(found[1]), int(found[2]), found[3]) if found else (1, 1, line)
    return Problem(file=name, line=row, col=col, end=(row, col + 1), code="persona_invalid", message=message)


def _check_policy(name: str, text: str) -> list[Problem]:
    # The policy's reader takes files: an unsaved text is put into one for as long as it is read.
    with tempfile.TemporaryDirectory(prefix="mynah-") as folder:
        path = Path(folder) / "policy.yml"
        path.write_text(text, encoding="utf-8", errors="replace")
        _, problems = check_policy([path])
    return [replace(problem, file=name) for problem in problems]
