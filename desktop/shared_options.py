"""Options as several commands have them: numbers, and those that may stand before and behind a sub-command's name."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable
from typing import Any


def finite(text: str) -> float:
    """Return the number an option gives; for `type=`. Neither nan nor inf is one."""
    value = float(text)
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number to calculate with")
    return value


def add_everywhere(
    parser: argparse.ArgumentParser, commands: Iterable[argparse.ArgumentParser], *names: str, **fields: Any
) -> None:
    """Add an option to `parser` and to each of its sub-commands; given twice, the one behind the name counts."""
    parser.add_argument(*names, **fields)
    for command in commands:
        # Without a default of its own a sub-command leaves alone what stood before its name.
        command.add_argument(*names, **{**fields, "default": argparse.SUPPRESS})
