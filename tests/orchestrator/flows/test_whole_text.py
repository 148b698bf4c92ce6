r"""YAML that spells half a character, a NUL or a number beyond all bounds: an error at its place with any loader."""

from __future__ import annotations

import pytest
import yaml

from orchestrator.contracts.errors import InputError
from orchestrator.contracts.wellformed import is_well_formed
from orchestrator.flows import source
from orchestrator.flows.nodes import MapNode
from orchestrator.flows.source import parse_source
from orchestrator.llm.persona import load_persona

LOADERS = [yaml.SafeLoader, *([yaml.CSafeLoader] if hasattr(yaml, "CSafeLoader") else [])]


@pytest.fixture(params=LOADERS, ids=lambda loader: loader.__name__)
def loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "_LOADER", request.param)


@pytest.mark.usefixtures("loader")
@pytest.mark.parametrize("escape", [r"\ud800", r"\udfff", r"\0", r"\x00", r"\ud83d\ude00"])
@pytest.mark.parametrize("shape", ['a: 1\nb: "x {}"\n', 'a: 1\nb: ["x {}"]\n', 'a: 1\n"x {}": 1\n'])
def test_half_a_character_is_an_error_at_its_place(escape: str, shape: str) -> None:
    document = parse_source(shape.format(escape), "f.yml")
    assert [(problem.file, problem.line) for problem in document.problems] == [("f.yml", 2)], document.problems
    assert document.root is None or is_well_formed(str(document.root.plain()))


@pytest.mark.usefixtures("loader")
@pytest.mark.parametrize("number", ["1e400", "-1e999", "9.9e307999"])
def test_a_number_beyond_all_bounds_is_an_error_at_its_place(number: str) -> None:
    (problem,) = parse_source(f"a: 1\nb: {{c: {number}}}\n").problems
    assert (problem.code, problem.line, problem.col) == ("out_of_range", 2, 8)


@pytest.mark.usefixtures("loader")
def test_what_is_whole_is_no_error() -> None:
    document = parse_source('a: "\\U0001F600 \\u4f60"\nb: 1e308\nc: .nan\nd: "1e400"\n')
    assert document.problems == () and isinstance(document.root, MapNode)
    assert document.root.plain() == {"a": "😀 你", "b": 1e308, "c": ".nan", "d": "1e400"}


@pytest.mark.parametrize("escape", [r"\ud800", r"\0"])
def test_a_persona_refuses_it_with_its_place(escape: str) -> None:
    with pytest.raises(InputError, match=r"^mine\.yml:2:13: ") as refused:
        load_persona(f'name: Ada\nstyle: {{en: "x {escape}"}}\n', source="mine.yml")
    assert len(refused.value.message.splitlines()) == 1
