"""A YAML loader that refuses, with its place, text that nobody could store, send or speak."""

from __future__ import annotations

from typing import Any

import yaml

from orchestrator.contracts.wellformed import is_well_formed

ILL_FORMED = "half a character (a lone surrogate) or a NUL, which can be neither stored nor spoken"


class WholeTextLoader(yaml.SafeLoader):
    r"""`yaml.SafeLoader`, but `"\ud800"` and `"\0"` are errors; raises `yaml.MarkedYAMLError`."""

    def compose_scalar_node(self, anchor: Any) -> yaml.ScalarNode:
        """Return the node of a scalar that is whole."""
        node = super().compose_scalar_node(anchor)
        if not is_well_formed(node.value):
            raise yaml.MarkedYAMLError(problem=ILL_FORMED, problem_mark=node.start_mark)
        return node
