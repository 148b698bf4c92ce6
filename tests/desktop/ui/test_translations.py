"""Every word of the window is in both catalogues, and no widget has words of its own."""

from __future__ import annotations

import ast
import string
from collections.abc import Iterator
from pathlib import Path

import pytest

from desktop.ui.i18n.translator import CATALOGUES, LANGUAGES, Translator

UI = Path(__file__).resolve().parents[3] / "desktop" / "ui"
SETTERS = {
    "addAction", "addItem", "addItems", "addMenu", "addTab", "insertItem", "setAccessibleDescription",
    "setAccessibleName", "setHeaderLabels", "setHorizontalHeaderLabels", "setItemText", "setLabelText",
    "setPlaceholderText", "setPlainText", "setStatusTip", "setTabText", "setText", "setTitle", "setToolTip",
    "setWhatsThis", "setWindowTitle", "showMessage",
}  # fmt: skip
WIDGETS = {
    "QAction",
    "QCheckBox",
    "QDockWidget",
    "QGroupBox",
    "QLabel",
    "QMenu",
    "QPushButton",
    "QRadioButton",
    "QToolButton",
}
NAMES = {"Mynah"}
"""Words that are the same in every language."""


def said(node: ast.AST) -> Iterator[str]:
    """Yield the literal words that an argument is made of; a name, a call or a look-up is none."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        for part in node.values:
            yield from said(part)
    elif isinstance(node, ast.IfExp):
        yield from said(node.body)
        yield from said(node.orelse)
    elif isinstance(node, (ast.List, ast.Tuple)):
        for part in node.elts:
            yield from said(part)
    elif isinstance(node, ast.BinOp):
        yield from said(node.left)
        yield from said(node.right)


def own_words(source: str) -> list[tuple[int, str]]:
    """Return line and text of every literal with letters that a widget would show."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in SETTERS or name in WIDGETS:
            for argument in node.args:
                for words in said(argument):
                    if (
                        words not in NAMES
                        and "://" not in words
                        and any(c in string.ascii_letters or c > "\u2fff" for c in words)
                    ):
                        found.append((node.lineno, words))
    return found


def test_the_check_finds_what_it_is_for() -> None:
    assert own_words('label.setText("Hello")') == [(1, "Hello")]
    assert own_words('QLabel(f"{n} 个")') == [(1, " 个")]
    assert own_words('box.addItem("a" if x else text("b.c"))') == [(1, "a")]
    assert own_words('label.setText(text("a.b")); label.setText("• ")') == []


def test_no_widget_has_words_of_its_own() -> None:
    found = []
    for path in sorted(UI.rglob("*.py")):
        if path.parent.name != "i18n":
            found += [f"{path.relative_to(UI)}:{line}: {words!r}" for line, words in own_words(path.read_text("utf-8"))]
    assert found == []


def test_both_catalogues_have_the_same_keys_and_the_same_places_to_fill() -> None:
    english, chinese = CATALOGUES["en"], CATALOGUES["zh_CN"]
    assert set(english) == set(chinese)
    for key, words in english.items():
        fields = {field for _, field, _, _ in string.Formatter().parse(words) if field is not None}
        others = {field for _, field, _, _ in string.Formatter().parse(chinese[key]) if field is not None}
        assert fields == others, key
        assert words.strip() and chinese[key].strip(), key


def test_chinese_texts_are_chinese() -> None:
    """A text that was left in English is the same in both catalogues."""
    same = {
        key
        for key, words in CATALOGUES["en"].items()
        if words == CATALOGUES["zh_CN"][key] and sum(c.isalpha() for c in words) > 12
    }
    allowed = {key for key in same if "{" in CATALOGUES["en"][key] or "://" in CATALOGUES["en"][key]}
    assert same - allowed <= {"settings.llm_key_env.placeholder"}


@pytest.mark.parametrize("language", list(LANGUAGES))
def test_a_switch_reaches_every_bound_text(qapp: object, language: str) -> None:
    translator = Translator("en" if language != "en" else "zh_CN")
    shown: dict[str, str] = {}
    for key in CATALOGUES[language]:
        translator.bind(lambda words, key=key: shown.__setitem__(key, words), key)
    translator.choose(language)
    assert shown == CATALOGUES[language]
