"""One check of the layers as the editor asks for it: problems, outline, and the ids that can be completed. No Qt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from desktop.flow_check import Checked
from desktop.flow_files import FlowFiles
from desktop.ui.flow_editor.completion import Vocabulary
from desktop.ui.flow_editor.outline import Outline, outline_of
from orchestrator.flows.model import CONTEXT_FIELDS
from orchestrator.flows.read_steps import RESPONSE_KEYS
from orchestrator.flows.source import Problem
from orchestrator.tasks.actions.registry import ActionRegistry

_SPECIAL_ARGUMENTS = {"action_response": RESPONSE_KEYS, "start_flow": ("flow",)}
"""Of actions that the engine itself runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """What is known of the open text; `version` tells to which of its states it belongs."""

    version: int
    problems: tuple[Problem, ...] = ()
    outline: Outline = field(default_factory=Outline)
    words: Vocabulary = field(default_factory=Vocabulary)


def check_job(files: FlowFiles, version: int, texts: Mapping[str, str], label: str, text: str) -> CheckResult:
    """Check everything with `texts` unsaved; `text` is the open one, called `label`. For the worker's thread."""
    checked = files.checked(texts)
    outline = outline_of(files.parsed(label, text))
    return CheckResult(
        version=version, problems=checked.problems, outline=outline, words=_vocabulary(checked, outline)
    )  # fmt: skip


def _vocabulary(checked: Checked, outline: Outline) -> Vocabulary:
    config = checked.config
    rails = config.rails
    steps = {name: tuple(flow.steps) for name, flow in config.flows.items()}
    steps.update({graph.id: outline.steps(graph.id) for graph in outline.graphs if graph.kind == "flow"})

    def known(*groups: Any) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for group in groups for name in group))

    return Vocabulary(
        slots=known(outline.names("slots"), config.slots),
        flows=known(outline.names("flows"), config.user_flows(), config.flows),
        actions=known(checked.actions),
        arguments={name: _arguments(checked.actions, name) for name in checked.actions},
        intents=known(outline.names("user_intents"), getattr(rails, "user_intents", ())),
        messages=known(outline.names("bot_messages"), getattr(rails, "bot_messages", ())),
        rails=known(outline.names("rails"), (rail.id for rail in getattr(rails, "rails", ()))),
        steps=steps,
        contexts={name: tuple(sorted(fields)) for name, fields in CONTEXT_FIELDS.items()},
    )


def _arguments(actions: ActionRegistry, name: str) -> tuple[str, ...]:
    found = actions.get(name)
    return found.arguments if found is not None else _SPECIAL_ARGUMENTS.get(name, ())


@lru_cache(maxsize=8)
def schema_of(kind: str) -> dict[str, Any]:
    """Return the JSON Schema of a kind of file; flow files may hold rails, too."""
    from orchestrator.flows.schema import flows_schema
    from orchestrator.flows.testing.schema import test_schema
    from orchestrator.llm.persona import persona_schema
    from orchestrator.policy_file import policy_schema
    from orchestrator.rails.schema import rails_schema

    if kind == "tests":
        return test_schema()
    if kind == "policy":
        return policy_schema()
    if kind == "persona":
        return persona_schema()
    flows, rails = flows_schema(), rails_schema()
    return {
        **flows,
        "properties": {
            **flows["properties"],
            **{k: v for k, v in rails["properties"].items() if k not in ("slots", "flows")},
        },
        "$defs": {**rails["$defs"], **flows["$defs"]},
    }
