"""What the rules of understanding come to."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.tasks.commands import Command


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What the rules made of a text.

    `answer` is the answer to a question of the engine itself: yes, no, or a flow's id. `rest` is what the user said
    besides; `by` rule or embedding.
    """

    commands: tuple[Command, ...] = ()
    answer: str | None = None
    rest: str = ""
    by: str = "rule"
    note: str = ""
