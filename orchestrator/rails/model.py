"""The validated content of rails.yml."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from orchestrator.dialogue.phrase_book import normalise
from orchestrator.rails.program import Bot, Branch, Extract, SetVars, WaitEvent, WaitUser
from orchestrator.rails.state import Rail, RailSet

UNKNOWN_INTENT = "unknown message"
"""The intent of a sentence nothing was recognised in."""

GENERAL_RESPONSE = "general response"
"""The bot intent of an answer whose kind nobody named."""

BUILT_IN_VARS = ("last_user_message", "user_message", "bot_message", "language")


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One wording of a bot message; `language` None fits any."""

    text: str
    language: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputRail:
    """A subrail run on what the character is about to say. `scope` is sentence or reply."""

    rail: str
    scope: str = "sentence"


@dataclass(frozen=True, slots=True, kw_only=True)
class RailSettings:
    """`settings` of rails.yml. `similarity_threshold` None means auto."""

    embeddings_only: bool = True
    similarity_threshold: float | None = None
    similarity_scale: str = "cosine"
    margin: float = 0.03
    fallback_intent: str | None = None
    closed_intents: bool = False
    single_call: bool = False
    fallback_to_multiple_calls: bool = True
    multi_step: bool = False
    max_events: int = 300


@dataclass(frozen=True, kw_only=True)
class RailsConfig:
    """Everything the rails of one configuration say. `rail_lines` are the steps as lines, for the model's examples."""

    user_intents: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    bot_messages: Mapping[str, tuple[Variant, ...]] = field(default_factory=dict)
    rails: tuple[Rail, ...] = ()
    input_rails: tuple[str, ...] = ()
    output_rails: tuple[OutputRail, ...] = ()
    settings: RailSettings = RailSettings()
    rail_lines: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def rail_set(self) -> RailSet:
        """Return the rails as the machine takes them."""
        return RailSet(self.rails)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do for rails at all."""
        return not (self.rails or self.user_intents or self.input_rails or self.output_rails)

    @cached_property
    def always_intents(self) -> frozenset[str]:
        """User intents that start a safety rail."""
        found: set[str] = set()
        for rail in self.rails:
            if rail.always:
                found |= first_intents(rail)
        return frozenset(found)

    def has_literal_example(self, text: str, intents: Collection[str]) -> bool:
        """Whether `text` is, but for case and marks, an example of one of `intents`."""
        return not self._by_example.get(normalise(text), frozenset()).isdisjoint(intents)

    @cached_property
    def _by_example(self) -> dict[str, frozenset[str]]:
        found: dict[str, frozenset[str]] = {}
        for name, texts in self.user_intents.items():
            for text in texts:
                key = normalise(text)
                found[key] = found.get(key, frozenset()) | {name}
        found.pop("", None)
        return found

    def known_intent(self, name: str) -> str | None:
        """Return the configured spelling of an intent, or None for one that is not configured."""
        wanted = " ".join(name.split()).casefold()
        return self._by_folded.get(wanted)

    @cached_property
    def _by_folded(self) -> dict[str, str]:
        names = list(self.user_intents)
        for rail in self.rails:
            names += sorted(intents_of(rail))
        return {" ".join(n.split()).casefold(): n for n in reversed(names)}


def first_intents(rail: Rail) -> frozenset[str]:
    """Return the intents a rail may start on."""
    found: set[str] = set()
    for op in rail.program.ops:
        if isinstance(op, WaitUser):
            return frozenset({*found, op.intent})
        if isinstance(op, Branch):
            return frozenset(a.wait.intent for a in op.arms if isinstance(a.wait, WaitUser))
        if isinstance(op, WaitEvent):
            break
    return frozenset(found)


def intents_of(rail: Rail) -> frozenset[str]:
    """Return all user intents a rail waits for, but not `...`."""
    found: set[str] = set()
    for op in rail.program.ops:
        if isinstance(op, WaitUser):
            found.add(op.intent)
        elif isinstance(op, Branch):
            found |= {a.wait.intent for a in op.arms if isinstance(a.wait, WaitUser)}
    return frozenset(found - {"..."})


def bot_intents_of(rail: Rail) -> frozenset[str]:
    """Return all bot intents a rail uses."""
    return frozenset(op.intent for op in rail.program.ops if isinstance(op, Bot))


def variables_of(rail: Rail) -> frozenset[str]:
    """Return the variables a rail writes."""
    found: set[str] = set()
    for op in rail.program.ops:
        if isinstance(op, SetVars):
            found |= set(op.values)
        elif isinstance(op, Extract):
            found.add(op.var)
        save_to = getattr(op, "save_to", None)
        if save_to:
            found.add(save_to)
    return frozenset(found)
