"""The parts of the flow editor that know no window: outline, layout of the graph, completion, templates."""

from __future__ import annotations

import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop import paths
from desktop.flow_check import FlowCheck
from desktop.flow_folders import FlowFolders
from desktop.ui.flow_editor.checking import schema_of
from desktop.ui.flow_editor.code_edit import from_utf16, to_utf16
from desktop.ui.flow_editor.completion import Vocabulary, complete, spot_at
from desktop.ui.flow_editor.layering import lay_out
from desktop.ui.flow_editor.outline import Graph, GraphEdge, GraphNode, outline_of
from desktop.ui.flow_editor.templates import KINDS, insert_template
from orchestrator.flows.source import parse_source

WORDS = Vocabulary(
    slots=("order_number", "reason"), flows=("refund", "other"), actions=("action_now",), intents=("ask pay",),
    messages=("refuse",), rails=("salary",), steps={"refund": ("start", "ask", "end")},
    contexts={"system_task_started": ("started_flow_id", "started_flow_name")},
    arguments={"action_set_reminder": ("text", "at", "in_s"), "start_flow": ("flow",)},
)  # fmt: skip


def offered(text: str, kind: str = "flows") -> list[str]:
    """Return what is offered at the bar `|` of a text."""
    at = text.index("|")
    line, col = text.count("\n", 0, at) + 1, at - (text.rfind("\n", 0, at) + 1) + 1
    found = complete(text.replace("|", "", 1), line, col, schema_of(kind), WORDS)
    return [candidate.text for candidate in found.candidates]


# --- completion -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("fl|", ["flows"]),
        ("flows:\n  refund:\n    ste|", ["steps"]),
        ("flows:\n  refund:\n    steps:\n      - {id: a, type: start, next: |}", ["start", "ask", "end"]),
        ("flows:\n  refund:\n    steps:\n      - id: a\n        type: col|", ["collect"]),
        (
            "flows:\n  refund:\n    steps:\n      - id: a\n        type: collect\n        slot_name: |",
            ["order_number", "reason"],
        ),
        ('flows:\n  refund:\n    steps:\n      - id: a\n        next:\n          - {if: "x", then: e|', ["end"]),
        ('flows:\n  refund:\n    if: "slots.re|', ["reason"]),
        ("flows:\n  refund:\n    slots: [ord|", ["order_number"]),
        ("flows:\n  refund:\n    slots:\n      - rea|", ["reason"]),
        ('flows:\n  system_task_started:\n    if: "context.|', ["started_flow_id", "started_flow_name"]),
        ("slots:\n  a: {type: dat|", ["date", "datetime"]),
        ("slots:\n  a:\n    persist: |", ["true", "false"]),
        ("rails:\n  r:\n    kind: |", ["rail", "subrail", "extension"]),
        ("rails:\n  r:\n    steps:\n      - user: |", ["ask pay", "..."]),
        ("rails:\n  r:\n    steps:\n      - call: |", ["salary"]),
        ("input_rails: [|", ["salary"]),
    ],
)
def test_what_is_valid_at_a_place_is_offered(text: str, first: list[str]) -> None:
    assert offered(text)[: len(first)] == first


def test_keys_that_are_there_and_keys_of_other_steps_are_not_offered() -> None:
    text = "flows:\n  refund:\n    steps:\n      - id: a\n        type: action\n        |\n        next: end\n"
    found = offered(text)
    assert "action" in found and "on_error" in found
    assert not {"id", "type", "next", "slot_name"} & set(found)


STEP = "flows:\n  refund:\n    steps:\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("      - {id: a, type: action, action: action_set_reminder, args: {|", ["text", "at", "in_s"]),
        ("      - {id: a, type: action, action: action_set_reminder, args: {text: x, |", ["at", "in_s"]),
        ("      - id: a\n        action: action_set_reminder\n        args:\n          |", ["text", "at", "in_s"]),
        ("      - id: a\n        action: action_set_reminder\n        args: {|", ["text", "at", "in_s"]),
        (
            "      - id: a\n        args:\n          text: x\n          i|\n        action: action_set_reminder\n",
            ["in_s"],
        ),
        ("      - {id: a, type: action, action: start_flow, args: {flow: |", ["refund", "other"]),
        ("      - {id: a, type: action, action: unheard_of, args: {|", []),
    ],
)
def test_inside_args_the_arguments_of_the_action_are_offered(text: str, found: list[str]) -> None:
    assert offered(STEP + text) == found


def test_nothing_is_offered_inside_a_comment() -> None:
    assert offered("flows:\n  refund:\n    na|") != []
    assert offered("flows:\n  refund:\n    # na|") == []
    assert offered("flows:\n  refund:\n    name: a refund # na|") == []
    assert offered(STEP + "      - {id: a, type: start, next: |") == offered(STEP + '      - {id: "# a", next: |')


def test_other_files_have_their_own_words() -> None:
    assert "phrases" in offered("|", "policy") and "flows" not in offered("|", "policy")
    assert "name" in offered("|", "persona")
    assert "turns" in offered("tests:\n  - name: a\n    |", "tests")


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="ab:- \n{}[],\"'#|你", max_size=80), st.integers(1, 12), st.integers(1, 20))
def test_completion_takes_any_text(text: str, line: int, col: int) -> None:
    spot = spot_at(text, line, col)
    assert all(isinstance(key, str) for key in spot.path)
    assert complete(text, line, col, schema_of("flows"), WORDS).prefix == spot.prefix or "slots" in text


@given(st.text(max_size=30), st.data())
def test_columns_in_both_units_agree(text: str, data: st.DataObject) -> None:
    col = data.draw(st.integers(1, len(text) + 1))
    assert from_utf16(text, to_utf16(text, col)) == col


# --- outline and graph ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["user_flows.yml", "rails.yml", "system_flows.yml"])
def test_the_graph_of_a_shipped_flow_has_all_its_steps(name: str) -> None:
    text = (paths.flow_config() / name).read_text(encoding="utf-8")
    outline = outline_of(parse_source(text))
    config = FlowCheck(FlowFolders(shipped=paths.flow_config(), user=paths.flow_config() / "none")).run().config
    assert outline.graphs
    for graph in outline.graphs:
        if graph.kind == "flow":
            flow = config.flows[graph.id]
            assert [n.id for n in graph.nodes] == list(flow.steps)
            links = {(s.id, t) for s in flow.steps.values() for t in s.links.targets()}
            assert {(e.source, e.target) for e in graph.edges if e.kind == "next"} == links
        assert text.split("\n")[graph.line - 1].strip().strip('"').startswith(graph.id.split(":")[0])
        layout = lay_out(graph)
        assert set(layout.cells) == {n.id for n in graph.nodes}
        assert len({(row, at) for row, at, _ in layout.cells.values()}) == len(graph.nodes)


def test_a_flow_with_faults_is_drawn_as_well() -> None:
    outline = outline_of(
        parse_source("flows:\n  a:\n    steps:\n      - {id: x, next: [{then: y}]}\n      - {type: 3}\n")
    )
    (graph,) = outline.graphs
    assert [n.id for n in graph.nodes] == ["x", "line 5"] and graph.edges == ()
    assert outline.graph_at(4) is graph and outline.graph_at(9) is None


def test_branches_of_a_rail_come_together_again() -> None:
    steps = "- user: a\n- if: x\n  then: [{bot: b}]\n  else: [{stop: true}]\n- say: c\n"
    text = f"rails:\n  r:\n    steps:\n{textwrap.indent(steps, '      ')}"
    (graph,) = outline_of(parse_source(text)).graphs
    assert [n.kind for n in graph.nodes] == ["user", "if", "bot", "stop", "say"]
    assert {(e.source, e.target, e.label) for e in graph.edges} == {
        ("0", "1", ""), ("1", "2", "then"), ("1", "3", "else"), ("2", "4", ""),
    }  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=40))
def test_any_graph_is_laid_out_downward_but_for_circles(links: list[tuple[int, int]]) -> None:
    nodes = tuple(GraphNode(id=str(n), kind="action", title=str(n)) for n in range(13))
    edges = tuple(GraphEdge(source=str(a), target=str(b)) for a, b in links)
    layout = lay_out(Graph(kind="flow", id="x", line=1, end_line=1, nodes=nodes, edges=edges))
    for edge in edges:
        if (edge.source, edge.target) not in layout.backward:
            assert layout.cells[edge.source][0] < layout.cells[edge.target][0]


# --- templates --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("start", ["", "# mine\n", "slots:\n    a: {type: text}\n\nflows:\n", "flows: {}\n"])
def test_templates_are_sound_wherever_they_are_put(kind: str, start: str) -> None:
    check = FlowCheck(FlowFolders(shipped=paths.flow_config(), user=paths.flow_config() / "none"))
    text = start
    for _ in range(2):
        taken = {item.id for item in outline_of(parse_source(text)).items}
        found = insert_template(text, kind, taken)
        assert found.text.split("\n")[found.line - 1].rstrip(":").strip() not in taken
        text = found.text
    assert check.run({"mine.yml": text}).problems == ()
