"""What is wrong with a file: problems with their place, and the suggestion that goes with them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from orchestrator.flows.nodes import Node, ScalarNode


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing wrong with a file. Lines and columns start at 1; `end` is (line, column) after the range."""

    file: str
    line: int
    col: int
    end: tuple[int, int]
    code: str
    message: str
    suggestion: str | None = None
    severity: str = "error"

    def __str__(self) -> str:
        """Return the one-line form of `mynah flows check`."""
        hint = f"  did you mean {self.suggestion}?" if self.suggestion else ""
        kind = "" if self.severity == "error" else f"{self.severity}: "
        return f"{self.file}:{self.line}:{self.col}  {self.code}  {kind}{self.message}{hint}"

    def to_json(self) -> dict[str, Any]:
        """Return the problem as JSON."""
        return {
            "file": self.file,
            "line": self.line,
            "col": self.col,
            "end": list(self.end),
            "code": self.code,
            "message": self.message,
            "suggestion": self.suggestion,
            "severity": self.severity,
        }


def did_you_mean(word: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate closest to `word`, or None when none is close."""
    options = [c for c in candidates if isinstance(c, str)][:2000]
    if not word or len(word) > 100:
        return None
    folded = {c.casefold(): c for c in reversed(options)}
    if word.casefold() in folded and folded[word.casefold()] != word:
        return folded[word.casefold()]
    found = difflib.get_close_matches(word, options, n=1, cutoff=0.6)
    return found[0] if found and found[0] != word else None


class Report:
    """Collects problems; every part of the checker writes into one."""

    def __init__(self) -> None:
        """Start empty."""
        self.problems: list[Problem] = []

    def add(
        self, node: Node, code: str, message: str, *, suggestion: str | None = None, severity: str = "error"
    ) -> None:
        """Note a problem of the whole node."""
        self.problems.append(
            Problem(
                file=node.file,
                line=node.line,
                col=node.col,
                end=(node.end_line, node.end_col),
                code=code,
                message=message,
                suggestion=suggestion,
                severity=severity,
            )
        )

    def add_inside(
        self,
        node: ScalarNode,
        start: int,
        end: int,
        code: str,
        message: str,
        *,
        suggestion: str | None = None,
        severity: str = "error",
    ) -> None:
        """Note a problem of the characters `start`…`end` of the node's text."""
        line, col = node.place(start)
        if end > start:
            end_line, end_col = node.place(end - 1)
            end_col += 1
        else:
            end_line, end_col = line, col
        self.problems.append(
            Problem(
                file=node.file,
                line=line,
                col=col,
                end=(end_line, end_col),
                code=code,
                message=message,
                suggestion=suggestion,
                severity=severity,
            )
        )

    def sorted(self) -> list[Problem]:
        """Return the problems by file and place, each once."""
        seen = dict.fromkeys(self.problems)
        return sorted(seen, key=lambda p: (p.file, p.line, p.col, p.code))
