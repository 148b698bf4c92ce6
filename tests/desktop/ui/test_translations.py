"""Every word of the window is in both catalogues, and no widget has words of its own."""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QDialogButtonBox

from desktop.faults import FAULT_KEY, PROBLEM_KEY, fault_text
from desktop.ui.i18n.translator import CATALOGUES, LANGUAGES, Translator
from orchestrator.llm.failures import FailureCode

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


# --- faults ------------------------------------------------------------------------------------------------

ROOT = UI.parents[1]
CODE = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)+")
REPORTERS = {"add", "add_inside", "_fail", "_at", "_add_read", "_problem", "fault", "_failed", "_notice"}
"""Functions whose first word that looks like a code is one; the reporters of problems and of failures."""
DYNAMIC = {
    "f'{part}_{code}'": "what a failed answer says of itself is spoken in the user's language",
    "f'no_{direction}'": ("no_input", "no_output"),
    "f'llm_{self.code}'": tuple(f"llm_{code}" for code in FailureCode),
    "f'wav_{kind}'": ("wav_unreadable", "wav_format", "wav_empty", "wav_unwritable"),
}
"""Codes that are put together at run time, and what they come to."""


def codes_of(source: str) -> Iterator[str]:
    """Yield the codes of all errors, problems and notices that a module makes; made-up ones as they stand."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        given = [k.value for k in node.keywords if k.arg == "code"]
        if name in ("InputError", "PartFailed", "MynahError"):
            given += node.args[:1]
        elif name in REPORTERS:
            words = [a for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            given += [a for a in words if CODE.fullmatch(a.value)][:1]
        for value in given:
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield value.value
            elif isinstance(value, ast.JoinedStr):
                yield ast.unparse(value)


def all_codes() -> set[str]:
    found: set[str] = set()
    for package in ("desktop", "audio", "orchestrator"):
        for path in (ROOT / package).rglob("*.py"):
            found |= set(codes_of(path.read_text("utf-8")))
    return found


def test_the_walk_over_the_codes_finds_them() -> None:
    assert set(codes_of('raise InputError("a_b", "x")')) == {"a_b"}
    assert set(codes_of('report.add_inside(node, 1, 2, "bad_x", "y is z")')) == {"bad_x"}
    assert set(codes_of('Problem(file=f, code="yaml_x", message="m")')) == {"yaml_x"}
    assert set(codes_of('PartFailed(f"no_{direction}", "x")')) == {"f'no_{direction}'"}
    assert len(all_codes()) > 150


def test_every_error_has_words_in_both_languages() -> None:
    wanted: set[str] = set()
    for code in all_codes():
        if code.startswith("f'"):
            assert code in DYNAMIC, f"{code}: say here what it comes to"
            parts = DYNAMIC[code]
            wanted |= set(parts) if isinstance(parts, tuple) else set()
        else:
            wanted.add(code)
    for language, texts in CATALOGUES.items():
        missing = sorted(
            code for code in wanted - NO_FAULTS if not any(f"{kind}{code}" in texts for kind in (*KINDS, "notice."))
        )
        assert missing == [], language


NO_FAULTS = {"", "ok", "address", "cancelled", "keyring", "device_changed", "half_duplex", "companion_no_tray"}
"""States that are told with words of their own where they are shown."""
KINDS = (FAULT_KEY, PROBLEM_KEY)


def test_a_fault_in_chinese_keeps_what_it_is_about() -> None:
    assert fault_text("unknown_slot", "there is no slot 'colour'", "zh") == "未知的槽位：colour"
    told = fault_text("avatar_invalid", "cat/avatar.yaml:4:1: unknown key 'layrs'; did you mean layers?", "zh_CN")
    assert told.startswith("cat/avatar.yaml:4:1：") and "layrs" in told and "unknown" not in told
    assert fault_text("unknown_slot", "there is no slot 'colour'", "en") == "there is no slot 'colour'"
    assert fault_text("never_heard_of", "in its own words", "zh") == "in its own words"


@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_the_toolkit_speaks_the_language_of_the_window(make_stage: Any, language: str) -> None:
    other = next(name for name in LANGUAGES if name != language)
    stage = make_stage(other)
    for spoken in (language, other, language):
        stage.window.set_language(spoken)
        menu = stage.window.controls.field.createStandardContextMenu()
        words = [action.text() for action in menu.actions() if action.text()]
        menu.deleteLater()
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)
        words.append(buttons.button(QDialogButtonBox.StandardButton.Cancel).text())
        chinese = [any(c > "\u2fff" for c in word) for word in words]
        assert len(words) > 5 and all(chinese) if spoken == "zh_CN" else not any(chinese), words
