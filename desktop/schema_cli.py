"""`mynah schema NAME`: JSON Schemas of the file formats."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

Schema = dict[str, Any]


def _rails() -> Schema:
    from orchestrator.rails.schema import rails_schema

    return rails_schema()


def _flows() -> Schema:
    from orchestrator.flows.schema import flows_schema

    return flows_schema()


def _test() -> Schema:
    from orchestrator.flows.testing.schema import test_schema

    return test_schema()


def _events() -> Schema:
    from orchestrator.bus.event_schema import events_schema

    return events_schema()


def _policy() -> Schema:
    from orchestrator.policy_file import policy_schema

    return policy_schema()


def _persona() -> Schema:
    from orchestrator.llm.persona import persona_schema

    return persona_schema()


def _avatar() -> Schema:
    from desktop.ui.avatar.pack import avatar_schema

    return avatar_schema()


def _settings() -> Schema:
    from desktop.settings import settings_schema

    return settings_schema()


SCHEMAS: dict[str, Callable[[], Schema]] = {
    "rails": _rails,
    "flows": _flows,
    "test": _test,
    "events": _events,
    "policy": _policy,
    "persona": _persona,
    "avatar": _avatar,
    "settings": _settings,
}


def schema_main(argv: list[str]) -> int:
    """Print a schema."""
    parser = argparse.ArgumentParser(prog="mynah schema", description="Print the JSON Schema of a file format.")
    parser.add_argument("name", choices=tuple(SCHEMAS))
    args = parser.parse_args(argv)
    print(json.dumps(SCHEMAS[args.name](), ensure_ascii=False, indent=2))
    return 0
