r"""Text and JSON from outside: whole text stays as it is, broken text is mended, broken JSON is refused in one line."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.contracts.commands import FocusObject, SendText
from orchestrator.contracts.events import ObjectRef
from orchestrator.contracts.wellformed import MAX_DEPTH, StreamMender, is_well_formed, mend, mend_text, read_json

HALVES = st.text(st.characters(categories=("Cs",)) | st.sampled_from("a你😀\x00 \ud83d\ude00"), max_size=12)
VALUES: st.SearchStrategy[Any] = st.recursive(
    HALVES | st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(HALVES, inner, max_size=3) | st.tuples(inner, inner),
    max_leaves=8,
)


def texts(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from texts(key)
            yield from texts(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from texts(item)


@pytest.mark.parametrize(
    ("broken", "whole"),
    [
        ("\ud83d\ude00 hi", "😀 hi"),
        ("\ud800 hi", "\ufffd hi"),
        ("hi \udc00", "hi \ufffd"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("a\x00b", "a\ufffdb"),
    ],
)
def test_pairs_are_joined_and_halves_replaced(broken: str, whole: str) -> None:
    assert mend_text(broken) == whole


@settings(max_examples=300)
@given(VALUES)
def test_what_is_mended_can_be_stored_and_sent(value: Any) -> None:
    mended = mend(value)
    assert all(is_well_formed(text) for text in texts(mended))
    json.dumps(mended, ensure_ascii=False).encode()
    with sqlite3.connect(":memory:") as store:
        for text in texts(mended):
            assert store.execute("SELECT ?", (text,)).fetchone() == (text,)
    assert mend(mended) == mended


def test_what_is_whole_stays_the_same_object() -> None:
    value = {"a": [1, "你好 😀", {"b": ("c", None)}]}
    assert mend(value) is value
    command = SendText(text="hello")
    assert mend(command) is command


def test_commands_are_mended_down_to_the_attributes() -> None:
    thing = ObjectRef(type="file", id="\ud800", title="t", attributes={"\udfff": ["\ud83d\ude00"]})
    mended = mend(FocusObject(object=thing)).object
    assert (mended.id, mended.attributes) == ("\ufffd", {"\ufffd": ["😀"]})


@settings(max_examples=200)
@given(HALVES, st.data())
def test_a_stream_in_pieces_is_mended_like_the_whole(text: str, data: st.DataObject) -> None:
    mender, said, rest = StreamMender(), "", text
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        said, rest = said + mender.feed(rest[:size]), rest[size:]
    assert said + mender.flush() == mend_text(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("NaN", "NaN is not a number"),
        ('{"a": [-Infinity]}', "not a number"),
        ("1e400", "too large"),
        ("9" * 400, "too large"),
        ("9" * 5_000, "too large"),
        ("[" * 100_000, "nested too deeply"),
        ("[" * (MAX_DEPTH + 2) + "]" * (MAX_DEPTH + 2), "nested too deeply"),
        ('{"a"', "not JSON"),
        ("", "not JSON"),
        (b"\xff{}", "not UTF-8 text (byte 1)"),
    ],
)
def test_bad_json_is_refused_in_one_sentence(text: str | bytes, words: str) -> None:
    with pytest.raises(ValueError, match=r"^[^\n]{1,120}$") as refused:
        read_json(text)
    assert words in str(refused.value)


def test_good_json_is_read_as_ever() -> None:
    assert read_json(b'\xef\xbb\xbf{"a": [1, -2.5, "\\ud83d\\ude00", null, 1e308]}') == {
        "a": [1, -2.5, "😀", None, 1e308]
    }
    deep = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert read_json(deep) == json.loads(deep)
    assert math.isfinite(read_json("9" * 300))
