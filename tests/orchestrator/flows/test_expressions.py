"""The expression language: what it means, and what it refuses, for known escapes, bombs and anything else."""

# ruff: noqa: E501 - lists of words, patterns and inline files are read line by line

from __future__ import annotations

import builtins
import sys
import time
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.flows.expressions import PROMPT_NAMES, compile_condition, compile_template

NAMES: dict[str, Any] = {
    "slots": {"zero": 0, "no": False, "empty": "", "text": "x", "n": 5, "items": "mine", "list": [1, 2], "gone": None},
    "context": {"response": {"text": "hi"}}, "world": {"screen": {"title": "T"}}, "vars": {"d": {"k": [1, 2, 3]}, "count": None},
    "user": {}, "now": datetime(2026, 12, 1, 9, 0),
}  # fmt: skip


def value(text: str) -> Any:
    compiled, problems = compile_condition(text)
    assert compiled is not None, problems
    return compiled.evaluate(NAMES).value


def rendered(text: str) -> str:
    compiled, problems = compile_template(text)
    assert compiled is not None, problems
    return str(compiled.render(NAMES).value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("slots.missing == none", True), ("slots.missing != none", False), ("slots.missing == None", True),
        ("slots.missing != 3", True), ("slots.missing == 3", False), ("slots.missing is None", True),
        ("slots.missing is not None", False), ("slots.text is not None", True), ("slots.gone is none", True),
        ("slots.missing > 3", False), ("slots.missing <= 3", False), ("3 < slots.missing", False), ("slots.text > 3", False),
        ("slots.text < 3", False), ("not slots.missing", True), ("slots.missing.deeper.still == none", True),
        ("slots.get('zero')", 0), ("slots.get('zero') == 0", True), ("slots.get('no') is none", False), ("slots.zero is none", False),
        ("slots.empty == ''", True), ("slots.empty is none", False), ("slots.get('missing', 7)", 7), ("slots.items", "mine"),
        ("slots['n']", 5), ("'n' in slots", True), ("'missing' in slots", False), ("'gone' in slots", False), ("len(slots.text)", 1),
        ("len(slots.missing)", 0), ("slots.missing in [none]", True), ("3 in slots.missing", False), ("slots.n in (1, 5)", True),
        ("1 < slots.n < 9", True), ("9 < slots.n < 1", False), ("(vars.count or 0) + 1", 1), ("slots.n if slots.text else 3", 5),
        ("slots.missing is defined", False), ("slots.n is defined", True), ("slots.no == 0", False), ("true and slots.n", 5),
        ("vars.d.k[-1]", 3), ("vars.d.k[0:2]", [1, 2]), ("vars.d.k | sum", 6), ("now.hour >= 9", True), ("slots.text ~ slots.n", "x5"),
        ("{{ slots.n }}", 5), ("world.screen.title | lower", "t"), ("slots.list | length == 2", True), ("slots.text.upper()", "X"),
        ("slots.n == '5'", False), ("'a' < 'b'", True), ("2.5 > slots.missing", False), ("slots.missing | default('d')", "d"),
    ],
)  # fmt: skip
def test_meaning(text: str, expected: Any) -> None:
    found = value(text)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize("text", ["slots.missing > 3", "slots.text > 3", "slots.missing + 1"])
def test_what_came_out_false_is_traced(text: str) -> None:
    compiled, _ = compile_condition(text)
    assert compiled is not None
    assert compiled.evaluate(NAMES).traces


def test_unset_in_a_text_is_empty_and_named() -> None:
    compiled, _ = compile_template("a {{ slots.missing }} b")
    assert compiled is not None
    outcome = compiled.render(NAMES)
    assert outcome.value == "a  b"
    assert outcome.unset == ("slots.missing",)


def test_arithmetic_with_unset_says_so() -> None:
    compiled, _ = compile_condition("vars.count + 1")
    assert compiled is not None
    outcome = compiled.evaluate(NAMES)
    assert (outcome.ok, outcome.unset_arithmetic, outcome.value) == (False, True, None)


def test_a_whole_expression_keeps_its_type() -> None:
    for text, expected in (
        ("{{ slots.n }}", 5),
        (" {{ vars.d.k }} ", [1, 2, 3]),
        ("n={{ slots.n }}", "n=5"),
        ("{{ slots.n }}{{ slots.n }}", "55"),
    ):
        compiled, _ = compile_template(text)
        assert compiled is not None
        assert compiled.evaluate(NAMES).value == expected


def test_template_statements() -> None:
    assert (
        rendered("{% for x in vars.d.k %}{{ loop.index }}:{{ x }}{% if not loop.last %},{% endif %}{% endfor %}")
        == "1:1,2:2,3:3"
    )
    assert rendered("{% set x = slots.n + 1 %}{{ x }}") == "6"
    assert rendered("{% if slots.missing %}a{% elif slots.zero == 0 %}b{% endif %}") == "b"
    assert rendered("{{ vars.d.k | join('-') }}") == "1-2-3"


def test_prompt_names_are_for_prompts_only() -> None:
    assert compile_template("{{ history }}")[0] is None
    assert compile_template("{{ history }}", names=PROMPT_NAMES)[0] is not None


ESCAPES = [
    "''.__class__.__mro__[1].__subclasses__()", "slots.__init__.__globals__", "slots['__class__']", "().__class__.__bases__[0]",
    "slots.get.__globals__", "(1).__class__", "now.__class__", "slots|attr('__class__')", "range.__self__", "len.__globals__",
    "self.__init__", "cycler.__init__.__globals__.os", "lipsum.__globals__", "joiner()", "namespace()", "dict(a=1).__class__",
    "slots._values", "vars._x", "config", "request", "loop", "''.format", "'{0.__class__}'.format(1)", "'%c'|format(65)",
    "slots.get.function", "now.strftime.__func__", "_compare", "''|_weighed", "[].append(1)", "{}.update({1: 2})", "vars.d.pop('k')",
    "vars.d.clear()", "slots.update({})", "now.replace(year=1)", "''.encode()", "().count.__self__", "len.function", "range.name",
    "slots.text.translate({})", "('a'|map('attr', '__class__')|list)", "[1]|map(attribute='__class__')|list",
    "['x']|map(attribute='upper')|list", "slots.text['__class__']", "slots[('__cla' ~ 'ss__')]", "vars.d['__cl' ~ 'ass__']",
]  # fmt: skip

BOMBS = [
    "9**9**9", "2**100000", "'a'*10**9", "10**9*'a'", "[0]*10**9", "range(10**9)", "range(10**9)|list", "'a'*9999*9999",
    "('a'*9999)*9999", "[[0]*9999]*9999", "('a'*9999)|replace('a', 'b'*9999)", "'x'|center(10**9)", "'x'|indent(10**9)",
    "'%1000000000d' % 1", "'%1000000000d'|format(1)", "range(999)|list|string * 99", "'a' ~ ('b'*19999) ~ ('c'*19999)",
    "[1]|batch(10**9)|list", "1e308*1e308", "(2**60)**60", "10**64*10**64*10**64", "[[[[0]*99]*99]*99]*99", "now.strftime('%1000000000d')",
    "1/0", "5%0", "5//0", "2.0**5000", "(-8)**0.5", "1.5|round(10**9)", "3|round(-10**8)", "slots.text*slots.text", "'a'|truncate(10**12)|upper",
    "range(0, 10**12, 1)", "range(1, 0, 0)", "('a,'*9999).split(',')|sort|unique|list|join('x'*9999)",
]  # fmt: skip


def _must_be_harmless(text: str, limit_s: float = 1.0) -> None:
    before = {name: id(thing) for name, thing in vars(builtins).items()}
    modules = set(sys.modules)
    start_s = time.thread_time()
    for form in (
        text,
        "{{ " + text + " }}",
        "{% for x in " + text + " %}{{ x }}{% endfor %}",
        "{% if " + text + " %}a{% endif %}",
    ):
        template, _ = compile_template(form)
        if template is not None:
            outcome = template.evaluate(NAMES)
            assert _is_plain(outcome.value), form
            assert len(str(outcome.value)) <= 400_000
    condition, _ = compile_condition(text)
    if condition is not None:
        outcome = condition.evaluate(NAMES)
        assert _is_plain(outcome.value), text
    assert time.thread_time() - start_s < limit_s, text
    assert {name: id(thing) for name, thing in vars(builtins).items()} == before
    assert not {"subprocess", "ctypes"} & (set(sys.modules) - modules)


def _is_plain(found: Any) -> bool:
    if isinstance(found, (list, tuple)):
        return all(map(_is_plain, found))
    if isinstance(found, dict):
        return all(map(_is_plain, found.values()))
    return found is None or type(found) in (str, int, float, bool)


@pytest.mark.parametrize("text", ESCAPES)
def test_an_escape_is_refused_or_empty(text: str) -> None:
    _must_be_harmless(text)
    condition, problems = compile_condition(text)
    if condition is None:
        assert problems
        assert 0 <= problems[0].start <= len(text)
        return
    found = condition.evaluate(NAMES).value
    assert found in (None, False, "", [], [None], [""]) or (
        isinstance(found, str) and "class" not in found and "<" not in found
    ), found


@pytest.mark.parametrize("text", BOMBS)
def test_a_bomb_is_refused_or_empty_and_quick(text: str) -> None:
    _must_be_harmless(text)
    condition, problems = compile_condition(text)
    if condition is not None:
        outcome = condition.evaluate(NAMES)
        if outcome.ok:
            assert len(str(outcome.value)) < 200_000
        else:
            assert not outcome.value
            assert outcome.traces
    else:
        assert problems


@pytest.mark.parametrize(
    "text",
    [
        "{% for a in range(999) %}{% for b in range(999) %}{% for c in range(999) %}{{ c }}{% endfor %}{% endfor %}{% endfor %}",
        "{% for a in range(999) %}" + "x" * 500 + "{% endfor %}",
        "{% set a = 'x' * 9999 %}{% set b = a ~ a %}{% set c = b ~ b %}{{ c ~ c }}",
        "{% set a = [1] * 99 %}{% set b = [a] * 99 %}{% set c = [b] * 99 %}{{ c }}{{ c == c }}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "{% include 'x' %}", "{% import 'os' as os %}", "{% extends 'x' %}",
        "{% block a %}{{ self.a() }}{% endblock %}", "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}", "{% call f() %}{% endcall %}",
        "{% filter upper %}x{% endfilter %}", "{% set slots = 1 %}", "{% set x.y = 1 %}", "{{ loop }}", "{% raw %}{{ x }}{% endraw %}",
        "{{" * 500, "{%" * 500, "{{ (" + "(" * 3000, "{{ '" + "\\x00" * 100 + "' }}", "{{ " + "not " * 900 + "1 }}", "{{ " + "-" * 1500 + "1 }}",
        "{{ " + "1 if 1 else " * 300 + "1 }}", "{{ " + "[" * 200 + "]" * 200 + " }}", "{{ 9" + "9" * 5000 + " }}",
    ],
)  # fmt: skip
def test_a_hostile_template_is_refused_or_bounded(text: str) -> None:
    start_s = time.thread_time()
    template, problems = compile_template(text)
    if template is None:
        assert problems
    else:
        assert len(template.render(NAMES).value) <= 20_000
    assert time.thread_time() - start_s < 2.0


_ATOMS = st.sampled_from(
    ["slots", "slots.n", "slots.text", "slots.missing", "vars.d", "vars.d.k", "now", "world", "1", "0", "99", "'a'", "'__class__'", "none", "true",
     "[1, 2]", "{'a': 1}", "range(9)", "len", "slots.get", "now.strftime", "slots.get('n')", "''", "-1", "2.5", "()"]
)  # fmt: skip
_WRAPS = st.sampled_from(
    ["({0}) + ({1})", "({0}) * ({1})", "({0}) ** ({1})", "({0}) ~ ({1})", "({0})[{1}]", "({0}).{2}", "({0})|{2}", "({0})({1})", "({0}) is {2}",
     "({0}) in ({1})", "({0}) < ({1})", "not ({0})", "({0}) if ({1}) else ({0})", "[{0}, {1}]", "({0})[{1}:{1}]", "-({0})", "({0}) and ({1})",
     "({0})|map('{2}')|list", "({0})|{2}({1})", "({0}).{2}({1})", "({0})|sort(attribute='{2}')"]
)  # fmt: skip
_WORDS = st.sampled_from(
    ["__class__", "__globals__", "_values", "upper", "get", "items", "keys", "format", "join", "replace", "split", "list", "string", "sum", "map",
     "select", "tojson", "spoken", "defined", "mapping", "attr", "pprint", "length", "round", "count", "index", "isoformat", "function", "name"]
)  # fmt: skip


@st.composite
def _expressions(draw: st.DrawFn) -> str:
    text = draw(_ATOMS)
    for _ in range(draw(st.integers(0, 5))):
        text = draw(_WRAPS).format(text, draw(_ATOMS), draw(_WORDS))
    return text


@settings(max_examples=400, deadline=None)
@given(_expressions())
def test_any_expression_gives_plain_data_in_bounded_time(text: str) -> None:
    _must_be_harmless(text, limit_s=3.0)


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="slotvarxn.'\"()[]{}%|~+-*/=<>! 019_#,:", max_size=60))
def test_any_text_compiles_or_has_a_place(text: str) -> None:
    for compile_text in (compile_condition, compile_template):
        compiled, problems = compile_text(text)
        if compiled is None:
            assert problems
            assert all(0 <= p.start <= p.end <= len(text) + 1 for p in problems)


def test_values_of_users_are_never_evaluated() -> None:
    names = {**NAMES, "slots": {"text": "{{ slots.n }} {% for x in range(9) %}"}}
    compiled, _ = compile_template("you said {{ slots.text }}")
    assert compiled is not None
    assert compiled.render(names).value == "you said {{ slots.n }} {% for x in range(9) %}"
