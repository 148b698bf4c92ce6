"""The character's file: what it gives, and that every mistake is named."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest
import yaml

from orchestrator.contracts.errors import InputError
from orchestrator.llm.persona import language_of, load_persona, load_persona_layers, persona_schema

SHIPPED = Path(__file__).resolve().parents[3] / "flow_config" / "persona.yml"


def test_the_shipped_persona():
    persona = load_persona_layers([SHIPPED])
    assert persona.name.get("en") == "Mynah"
    assert persona.name.get("zh-CN") == "小八"
    assert "八哥" in persona.names
    assert language_of(persona.greeting.get("zh")) == "zh"
    assert {example.language for example in persona.examples} == {"en", "zh"}
    assert persona.reply_language("zh") == "zh"
    assert persona.reply_language(None) == "en"
    for part in (persona.style, persona.about, persona.limits, persona.greeting):
        assert part.get("en")
        assert part.get("zh")
        assert part.get("en") != part.get("zh")
    jsonschema.validate(yaml.safe_load(SHIPPED.read_text(encoding="utf-8")), persona_schema())


def test_the_users_layer_overlays_key_by_key(tmp_path):
    mine = tmp_path / "我的 persona.yml"
    mine.write_text("name: Polly\nlanguage: zh\nvoice: {zh: huayan, en: joe}\nthinking_cue: Hm.\n", encoding="utf-8")
    persona = load_persona_layers([SHIPPED, mine, tmp_path / "absent.yml"])
    assert persona.name.get("en") == "Polly"
    assert persona.reply_language("en") == "zh"
    assert persona.voice_for("zh-Hans") == "huayan"
    assert persona.thinking_cue.get("zh") == "Hm."
    assert persona.about.get("en")
    with pytest.raises(InputError):
        load_persona_layers([tmp_path / "absent.yml"])


BROKEN = """\
name:
  en: Mynah
  fr: Mainate
langauge: en
language: klingon
style: [short, {a: b}]
aliases: Minah
about: ""
examples:
  - user: Hi
  - just text
  - {user: Hi, assistant: Hello, language: fr}
greeting: Hi
greeting: Hello
"""


def test_all_mistakes_at_once_with_their_places():
    with pytest.raises(InputError) as caught:
        load_persona(BROKEN, source="p.yml")
    lines = caught.value.message.splitlines()
    places = [line.split(": ", 1)[0] for line in lines]
    assert places == [
        "p.yml:3:3",
        "p.yml:4:1",
        "p.yml:5:11",
        "p.yml:6:16",
        "p.yml:7:10",
        "p.yml:8:8",
        "p.yml:10:5",
        "p.yml:11:5",
        "p.yml:12:44",
        "p.yml:14:1",
    ]
    assert "did you mean 'language'" in lines[1]
    assert "auto, en, zh" in lines[2]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(yaml.safe_load(BROKEN), persona_schema())


@pytest.mark.parametrize("text", ["", "- a\n", "name: [\n", "name: a\nb: {\n", "words", "name: &a [*a]\x00"])
def test_what_is_no_persona_is_one_clear_error(text):
    with pytest.raises(InputError) as caught:
        load_persona(text, source="p.yml")
    assert caught.value.message.startswith("p.yml:")


@pytest.mark.parametrize(
    ("text", "language"),
    [("hello", "en"), ("你好", "zh"), ("用Python写", "zh"), ("", "en"), ("The word 你 means you", "en"), ("123", "en")],
)
def test_language_of(text, language):
    assert language_of(text) == language
