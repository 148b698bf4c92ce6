"""Every number of the ears by its name, for the settings: what there is, what may be set, and the dials underneath."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from audio.ears_config import EarsConfig, preset

if TYPE_CHECKING:
    from desktop.settings import Settings

Numbers = tuple[tuple[str, float], ...]
"""Names as `endpoint.end_silence_s` with what they are to be in place of the dials' values."""

LIVE_SECTIONS = ("endpoint", "barge_in")
"""Parts that the ears take over while they listen; the others are read at the start."""

_LIMITS = (
    ("_s", (0.0, 60.0)),
    ("_db", (-120.0, 60.0)),
    ("probability", (0.0, 1.0)),
    ("chance", (0.0, 1.0)),
    ("vad1_mode", (0.0, 3.0)),
    ("_steps", (1.0, 1000.0)),
    ("_samples", (1.0, 1000.0)),
    ("_windows", (1.0, 1000.0)),
)
_ANY = (0.0, 1000.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class EarsNumber:
    """One number. `kind` is number, integer or switch (0 or 1)."""

    name: str
    kind: str
    minimum: float
    maximum: float

    @property
    def section(self) -> str:
        """The part of the ears it belongs to."""
        return self.name.partition(".")[0]

    @property
    def is_live(self) -> bool:
        """Whether it counts at once."""
        return self.section in LIVE_SECTIONS


@functools.cache
def ears_numbers() -> Mapping[str, EarsNumber]:
    """Return what can be set, in the order of the configuration. Numbers that may be absent are not among them."""
    found: dict[str, EarsNumber] = {}
    config = EarsConfig()
    for part in dataclasses.fields(config):
        section = getattr(config, part.name)
        entries = (
            [(f"{part.name}.{field.name}", getattr(section, field.name)) for field in dataclasses.fields(section)]
            if dataclasses.is_dataclass(section)
            else [(part.name, section)]
        )
        for name, value in entries:
            if isinstance(value, bool):
                found[name] = EarsNumber(name=name, kind="switch", minimum=0, maximum=1)
            elif isinstance(value, int | float):
                kind = "integer" if isinstance(value, int) else "number"
                low, high = next((limits for end, limits in _LIMITS if name.endswith(end)), _ANY)
                found[name] = EarsNumber(name=name, kind=kind, minimum=low, maximum=high)
    return found


def check_numbers(value: Any) -> Numbers:
    """Return what was given as sorted pairs; raise `ValueError` in one line for what may not be."""
    if isinstance(value, tuple):
        value = dict(value)
    if not isinstance(value, Mapping):
        raise ValueError(f"expected `name: number` lines, got {value!r}")
    checked: dict[str, float] = {}
    for name, given in value.items():
        known = ears_numbers().get(str(name))
        if known is None:
            from desktop.settings import did_you_mean

            raise ValueError(f"unknown number {name}{did_you_mean(str(name), ears_numbers())}")
        if isinstance(given, bool) and known.kind != "switch":
            raise ValueError(f"{name}: expected a number, got {given!r}")
        if not isinstance(given, int | float) or not math.isfinite(given):
            raise ValueError(f"{name}: expected a number, got {given!r}")
        if not known.minimum <= given <= known.maximum or (known.kind != "number" and given != int(given)):
            raise ValueError(f"{name}: expected a number from {known.minimum:g} to {known.maximum:g}, got {given:g}")
        checked[str(name)] = float(given)
    order = list(ears_numbers())
    return tuple(sorted(checked.items(), key=lambda item: order.index(item[0])))


def numbers_schema() -> dict[str, Any]:
    """Return the JSON Schema of the numbers."""
    properties = {
        number.name: {"type": ["number", "boolean"], "minimum": number.minimum, "maximum": number.maximum}
        for number in ears_numbers().values()
    }
    return {"type": "object", "properties": properties, "additionalProperties": False}


def ears_config(settings: Settings) -> EarsConfig:
    """Return the ears as both dials and the numbers set by hand make them."""
    return with_numbers(preset(patience=settings.patience, sensitivity=settings.sensitivity), settings.ears)


def with_numbers(config: EarsConfig, numbers: Iterable[tuple[str, float]]) -> EarsConfig:
    """Return `config` with `numbers` in place of its own."""
    for name, value in numbers:
        known = ears_numbers().get(name)
        if known is None:
            continue
        typed: Any = bool(value) if known.kind == "switch" else int(value) if known.kind == "integer" else value
        section, _, field = name.partition(".")
        changed: Any = dataclasses.replace(getattr(config, section), **{field: typed}) if field else typed
        config = dataclasses.replace(config, **{section: changed})
    return config


def dial_numbers(settings: Settings) -> dict[str, float]:
    """Return every number as the two dials alone make it."""
    config = preset(patience=settings.patience, sensitivity=settings.sensitivity)
    return {name: _number_of(config, name) for name in ears_numbers()}


def _number_of(config: EarsConfig, name: str) -> float:
    section, _, field = name.partition(".")
    found = getattr(config, section)
    return float(getattr(found, field) if field else found)
