"""rails.yml → `RailsConfig`, with every problem at once and where it stands.

The editor, the checker and the runtime call the same two functions: `read_fragment` on each file (or on the inline
`config` of a test), then `build` on the layers.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from orchestrator.flows.source import Document, ListNode, MapNode, Node, Problem, Report, ScalarNode, did_you_mean
from orchestrator.flows.texts import warn_languages
from orchestrator.rails.model import OutputRail, RailsConfig, RailSettings, Variant
from orchestrator.rails.program import ANY_INTENT, compile_steps, digest
from orchestrator.rails.state import FALLBACK_PRIORITY, Rail
from orchestrator.rails.validate_names import NameChecker
from orchestrator.rails.validate_steps import ExpressionCheck, StepChecker, text_of

TOP_KEYS = ("user_intents", "bot_messages", "rails", "input_rails", "output_rails", "settings")
TASK_KEYS = ("slots", "flows")
RAIL_KEYS = ("kind", "priority", "interruptible", "allow_multiple", "always", "description", "steps")
KINDS = ("rail", "subrail", "extension")
EXTENSION_PRIORITY = 2.0
"""Default of extensions: above ordinary rails, so that they run before the rail they attach to goes on."""


@dataclass(slots=True)
class Fragment:
    """What one file says, as nodes; nothing is resolved across files yet."""

    user_intents: dict[str, tuple[Node, tuple[str, ...]]] = field(default_factory=dict)
    bot_messages: dict[str, tuple[Node, tuple[Variant, ...]]] = field(default_factory=dict)
    rails: dict[str, tuple[ScalarNode, MapNode]] = field(default_factory=dict)
    input_rails: list[tuple[Node, str]] | None = None
    output_rails: list[tuple[Node, OutputRail]] | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    fallback: tuple[Node, str] | None = None


def read_fragment(node: Node | None, report: Report, *, also: Sequence[str] = TASK_KEYS) -> Fragment:
    """Read the rails part of a file's root (or a test's `config`), passing over the keys in `also`, others' keys."""
    fragment = Fragment()
    if node is None:
        return fragment
    if not isinstance(node, MapNode):
        keys = ", ".join((*also, *TOP_KEYS))
        report.add(node, "not_a_mapping", f"the file must be a mapping with {keys}, not {node.kind}")
        return fragment
    readers: dict[str, Callable[[Node, Report, Fragment], None]] = {
        "user_intents": _read_intents, "bot_messages": _read_messages, "rails": _read_rails,
        "input_rails": _read_input_rails, "output_rails": _read_output_rails, "settings": _read_settings,
    }  # fmt: skip
    for key in node:
        value = node.entries[key][1]
        if key in readers:
            if not (isinstance(value, ScalarNode) and value.value is None):
                readers[key](value, report, fragment)
        elif key not in also:
            hint = did_you_mean(key, (*also, *TOP_KEYS))
            report.add(node.key(key), "unknown_key", f"unknown key {key!r}", suggestion=hint)
    return fragment


def _mapping(node: Node, report: Report, what: str) -> MapNode | None:
    if isinstance(node, MapNode):
        return node
    report.add(node, "not_a_mapping", f"{what} must be a mapping, not {node.kind}")
    return None


def _texts(node: Node, report: Report, what: str) -> tuple[str, ...]:
    items = node.items if isinstance(node, ListNode) else [node]
    found: list[str] = []
    for item in items:
        text = text_of(item)
        if text is None or not text.strip():
            report.add(item, "not_text", f"{what} must be texts, not {'empty' if text is not None else item.kind}")
        else:
            found.append(text)
    return tuple(found)


def _read_intents(node: Node, report: Report, fragment: Fragment) -> None:
    found = _mapping(node, report, "user_intents")
    for name in found or ():
        assert found is not None
        key, value = found.entries[name]
        empty = isinstance(value, ScalarNode) and value.value is None
        if name == ANY_INTENT:
            report.add(key, "reserved_name", f"{ANY_INTENT} stands for any intent and can't be the name of one")
            continue
        if isinstance(value, ScalarNode) and not empty and not isinstance(value.value, str):
            report.add(value, "not_text", f"the examples of an intent must be texts, not {value.kind}")
            empty = True
        elif isinstance(value, ListNode) and not value.items:
            report.add(value, "no_examples", f"the intent {name!r} has no examples, so no sentence is like it",
                       severity="warning")  # fmt: skip
        fragment.user_intents[name] = (key, () if empty else _texts(value, report, "the examples of an intent"))


def _read_messages(node: Node, report: Report, fragment: Fragment) -> None:
    found = _mapping(node, report, "bot_messages")
    for name in found or ():
        assert found is not None
        key, value = found.entries[name]
        variants: list[Variant] = []
        if isinstance(value, MapNode):
            warn_languages(value, report, "a bot message")
            for language in value:
                texts = _texts(value.entries[language][1], report, "the texts of a bot message")
                variants += [Variant(text=t, language=language) for t in texts]
        else:
            variants = [Variant(text=t) for t in _texts(value, report, "the texts of a bot message")]
        if not variants:
            report.add(key, "empty_message", f"the bot message {name!r} has no text")
        fragment.bot_messages[name] = (value, tuple(variants))


def _read_rails(node: Node, report: Report, fragment: Fragment) -> None:
    found = _mapping(node, report, "rails")
    for name in found or ():
        assert found is not None
        key, value = found.entries[name]
        body = _mapping(value, report, f"the rail {name!r}")
        if body is not None:
            fragment.rails[name] = (key, body)


def _read_input_rails(node: Node, report: Report, fragment: Fragment) -> None:
    fragment.input_rails = []
    for item in node.items if isinstance(node, ListNode) else [node]:
        if isinstance(item, MapNode):
            _check_screen_keys(item, ("rail",), report)
        name = text_of(item.get("rail")) if isinstance(item, MapNode) else text_of(item)
        if name is None:
            report.add(item, "not_text", "input_rails must be names of subrails")
        else:
            fragment.input_rails.append((item, name))


def _check_screen_keys(item: MapNode, known: Sequence[str], report: Report) -> None:
    for key in item:
        if key not in known:
            report.add(item.key(key), "unknown_key", f"unknown key {key!r}", suggestion=did_you_mean(key, known))


def _read_output_rails(node: Node, report: Report, fragment: Fragment) -> None:
    fragment.output_rails = []
    for item in node.items if isinstance(node, ListNode) else [node]:
        scope = "sentence"
        if isinstance(item, MapNode):
            _check_screen_keys(item, ("rail", "scope"), report)
            name = text_of(item.get("rail"))
            given = item.get("scope")
            scope = text_of(given) or "sentence"
            if given is not None and scope not in ("sentence", "reply"):
                report.add(
                    given,
                    "bad_value",
                    "scope must be sentence or reply",
                    suggestion=did_you_mean(scope, ("sentence", "reply")),
                )
                scope = "sentence"
        else:
            name = text_of(item)
        if name is None:
            report.add(item, "not_text", "output_rails must be {rail: name, scope: sentence | reply}")
        else:
            fragment.output_rails.append((item, OutputRail(rail=name, scope=scope)))


_BOOLEANS = ("embeddings_only", "closed_intents", "single_call", "fallback_to_multiple_calls", "multi_step")


def _read_settings(node: Node, report: Report, fragment: Fragment) -> None:
    found = _mapping(node, report, "settings")
    known = [f.name for f in fields(RailSettings)]
    for name in found or ():
        assert found is not None
        key, value = found.entries[name]
        if name not in known:
            report.add(key, "unknown_key", f"unknown setting {name!r}", suggestion=did_you_mean(name, known))
            continue
        plain = value.plain()
        problem, plain = _setting(name, plain)
        if problem:
            words = {"similarity_scale": ("cosine", "angular"), "similarity_threshold": ("auto",)}.get(name, ())
            report.add(value, "bad_value", f"{name} must be {problem}", suggestion=did_you_mean(str(plain), words))
        else:
            fragment.settings[name] = plain
            if name == "fallback_intent":
                fragment.fallback = (value, plain) if plain is not None else None


def _setting(name: str, value: Any) -> tuple[str | None, Any]:
    """Return what `value` should have been, or None, and the value as kept."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if name in _BOOLEANS:
        return (None if isinstance(value, bool) else "true or false"), value
    if name == "similarity_threshold":
        if value == "auto" or value is None:
            return None, None
        return (None if number and -1 <= value <= 1 else "auto or a number from -1 to 1"), value
    if name == "similarity_scale":
        return (None if value in ("cosine", "angular") else "cosine or angular"), value
    if name == "margin":
        return (None if number and 0 <= value <= 2 else "a number from 0 to 2"), value
    if name == "fallback_intent":
        return (None if value is None or (isinstance(value, str) and value) else "the name of an intent or null"), value
    return (None if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 10_000
            else "a whole number from 1 to 10000"), value  # fmt: skip


def build(
    layers: Sequence[Sequence[Fragment]], report: Report, *,
    expressions: ExpressionCheck | None = None, actions: Container[str] | None = None,
    flows: Container[str] | None = None, slots: Container[str] | None = None,
) -> RailsConfig:  # fmt: skip
    """Merge layers (later ones overlay earlier ones by id), check across them and compile.

    An id that stands twice in one layer is an error. Faulty rails are left out of the result, so that a running
    program can go on with the rest. `actions`, `flows` and `slots` are the names known; None leaves them unchecked.
    """
    merged = Fragment()
    for layer in layers:
        _merge_layer(merged, layer, report)
    built: dict[str, Rail] = {}
    for index, (name, (key, body)) in enumerate(merged.rails.items()):
        rail = _rail(name, key, body, index, report, expressions, actions)
        if rail is not None:
            built[name] = rail
    names = NameChecker(
        report, built, merged.rails, intents=merged.user_intents, messages=merged.bot_messages, flows=flows, slots=slots
    )
    names.check_rails()
    names.check_texts(node for node, _ in merged.bot_messages.values())
    names.check_fallback(merged.fallback)
    _check_examples(merged, report)
    _check_messages(merged, report, expressions)
    settings = RailSettings(**merged.settings)
    return RailsConfig(
        user_intents={name: texts for name, (_, texts) in merged.user_intents.items()},
        bot_messages={name: variants for name, (_, variants) in merged.bot_messages.items()},
        rails=tuple(built.values()),
        input_rails=tuple(n for node, n in merged.input_rails or () if names.check_screen(node, n)),
        output_rails=tuple(o for node, o in merged.output_rails or () if names.check_screen(node, o.rail)),
        settings=settings,
        rail_lines={name: tuple(rail_lines(merged.rails[name][1].get("steps"))) for name in built},
    )


def _merge_layer(merged: Fragment, layer: Sequence[Fragment], report: Report) -> None:
    for attribute in ("user_intents", "bot_messages", "rails"):
        seen: dict[str, Any] = {}
        for fragment in layer:
            for name, entry in getattr(fragment, attribute).items():
                if name in seen:
                    report.add(entry[0], "duplicate_id", f"{name!r} stands twice in {attribute}")
                    continue
                seen[name] = entry
        getattr(merged, attribute).update(seen)
    for fragment in layer:
        if fragment.input_rails is not None:
            merged.input_rails = fragment.input_rails
        if fragment.output_rails is not None:
            merged.output_rails = fragment.output_rails
        merged.settings.update(fragment.settings)
        if "fallback_intent" in fragment.settings:
            merged.fallback = fragment.fallback


def _flag(body: MapNode, name: str, default: bool, report: Report) -> bool:
    node = body.get(name)
    if node is None:
        return default
    value = node.plain()
    if isinstance(value, bool):
        return value
    report.add(node, "bad_value", f"{name} must be true or false")
    return default


def _rail(
    name: str, key: ScalarNode, body: MapNode, index: int, report: Report,
    expressions: ExpressionCheck | None, actions: Container[str] | None,
) -> Rail | None:  # fmt: skip
    for entry in body:
        if entry not in RAIL_KEYS:
            report.add(body.key(entry), "unknown_key", f"unknown key {entry!r} in the rail {name!r}",
                       suggestion=did_you_mean(entry, RAIL_KEYS))  # fmt: skip
    kind_node = body.get("kind")
    kind = text_of(kind_node) if kind_node is not None else "rail"
    if kind not in KINDS:
        assert kind_node is not None
        report.add(kind_node, "bad_value", "kind must be rail, subrail or extension",
                   suggestion=did_you_mean(kind or "", KINDS))  # fmt: skip
        kind = "rail"
    priority = _priority(body, kind, report)
    steps = body.get("steps")
    if not isinstance(steps, ListNode) or not steps.items:
        report.add(steps or key, "missing_steps", f"the rail {name!r} needs a list of steps")
        return None
    before = sum(p.severity == "error" for p in report.problems)
    StepChecker(report, expressions=expressions, actions=actions).steps(steps)
    if sum(p.severity == "error" for p in report.problems) > before:
        return None
    plain = steps.plain()
    program = compile_steps(plain)
    rail = Rail(
        id=name, program=program, kind=kind, priority=priority, index=index, digest=digest(plain),
        interruptible=_flag(body, "interruptible", True, report),
        allow_multiple=_flag(body, "allow_multiple", False, report), always=_flag(body, "always", False, report),
    )  # fmt: skip
    _check_start(rail, steps, report)
    if rail.always and kind != "rail":
        report.add(body.key("always"), "unused_always", f"always counts for a rail that starts by itself, not for "
                   f"{'a' if kind == 'subrail' else 'an'} {kind}", severity="warning")  # fmt: skip
    return rail


def _priority(body: MapNode, kind: str, report: Report) -> float:
    node = body.get("priority")
    if node is None:
        return EXTENSION_PRIORITY if kind == "extension" else 1.0
    value = node.plain()
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 1000:
        report.add(node, "bad_value", "priority must be a number above 0, at most 1000")
        return 1.0
    if value < FALLBACK_PRIORITY or (value == FALLBACK_PRIORITY and kind != "subrail"):
        report.add(node, "low_priority", f"at a priority of {value:g} the model's own next step (0.9) "
                   "wins or nearly wins over this rail", severity="warning")  # fmt: skip
    return float(value)


def _check_start(rail: Rail, steps: ListNode, report: Report) -> None:
    first = steps.items[0]
    has_bot = isinstance(first, MapNode) and "bot" in first
    if rail.kind == "extension" and not has_bot:
        report.add(first, "extension_start", "an extension begins with the bot: step it attaches to")
    if rail.kind == "rail" and isinstance(first, MapNode) and any(k in first for k in ("bot", "say", "do", "extract")):
        report.add(first, "rail_start", "a rail begins with user:, event: or branch:; this one only starts when "
                   "another rail does this step", severity="warning")  # fmt: skip


def _check_examples(merged: Fragment, report: Report) -> None:
    places: dict[str, str] = {}
    for name, (node, texts) in merged.user_intents.items():
        for text in texts:
            folded = " ".join(text.split()).casefold()
            if places.setdefault(folded, name) != name:
                report.add(node, "same_example", f"{text!r} is an example of {places[folded]!r} and of {name!r}",
                           severity="warning")  # fmt: skip


def _check_messages(merged: Fragment, report: Report, expressions: ExpressionCheck | None) -> None:
    if expressions is None:
        return
    for node, _ in merged.bot_messages.values():
        for scalar in _scalars(node):
            expressions.template(scalar, report)


def _scalars(node: Node) -> list[ScalarNode]:
    if isinstance(node, ScalarNode):
        return [node]
    if isinstance(node, ListNode):
        return [s for item in node.items for s in _scalars(item)]
    if isinstance(node, MapNode):
        return [s for _, value in node.entries.values() for s in _scalars(value)]
    return []


def rail_lines(node: Node | None) -> list[str]:
    """Return a rail's talk as `user …` / `bot …` / `do …` lines, as the model sees them."""
    found: list[str] = []
    if isinstance(node, ListNode):
        for item in node.items:
            found += rail_lines(item)
    elif isinstance(node, MapNode):
        for key in node:
            value = node.entries[key][1]
            if key in ("user", "bot") and text_of(value) is not None:
                found.append(f"{key} {text_of(value)}")
            elif key == "do":
                name = text_of(value.get("action")) if isinstance(value, MapNode) else text_of(value)
                found.append(f"do {name}")
            elif key in ("then", "else", "branch"):
                found += rail_lines(value)
    return found


def load_rails(
    documents: Sequence[Document], *, expressions: ExpressionCheck | None = None, actions: Container[str] | None = None,
    layered: bool = False,
) -> tuple[RailsConfig, list[Problem]]:  # fmt: skip
    """Check and compile documents: all of one layer, or with `layered` each one over the one before."""
    report = Report()
    fragments = []
    for document in documents:
        report.problems.extend(document.problems)
        fragments.append(read_fragment(document.root, report))
    layers = [[f] for f in fragments] if layered else [fragments]
    config = build(layers, report, expressions=expressions, actions=actions)
    return config, report.sorted()
