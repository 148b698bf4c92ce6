"""Every surface in both languages, both themes and two sizes of letters: whole, named, legible, reachable.

With MYNAH_SHOTS=FOLDER each of them is kept as a picture there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import (
    QApplication,
    QComboBox,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QScrollArea,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)
from pytestqt.qtbot import QtBot
from rigs.painted_words import painted_faults
from rigs.surface_parts import StandInTray
from rigs.surfaces import Home
from rigs.widget_texts import Words
from rigs.widget_walk import crowded_lists, faults, lost_by_keys

from desktop.ui.panel_style import panel_stylesheet, toolkit_palette
from desktop.ui.theme import LIGHT, set_font_scale, stylesheet

# The platform of the tests has no stacking of windows.
pytestmark = pytest.mark.qt_log_ignore("This plugin does not support")

KINDS = ("main", "notices", "menus", "companion", "history", "inspector", "settings", "guide", "flows")
LANGUAGES = ("en", "zh_CN")
SHOTS = os.environ.get("MYNAH_SHOTS")
LOOKS = [("en", "light"), ("zh_CN", "dark")]
"""Words do not depend on colours, nor colours on words: each language and each theme once finds what all four find."""
if SHOTS:
    LOOKS = [("en", "light"), ("en", "dark"), ("zh_CN", "light"), ("zh_CN", "dark")]
PAGED = ("settings", "guide")
DIALOG = QSize(768, 608)
DOCKED = ("history", "inspector", "flows")
ROOMY = {1.0: QSize(1440, 900), 2.0: QSize(1920, 1080)}
SMALL = (QSize(900, 600), QSize(1366, 768), QSize(960, 500))
"""The last one is a screen of 1920 × 1080 shown at 200 %, without its task bar."""


@pytest.fixture
def make_home(make_stage: Callable[..., Any], qtbot: QtBot, tmp_path: Path) -> Iterator[Callable[..., Home]]:
    made: list[Home] = []

    def make(scale: float = 1.0) -> Home:
        set_font_scale(scale)
        made.append(Home(qtbot, make_stage("en", "light", tray=StandInTray()), tmp_path))
        return made[-1]

    yield make
    for one in made:
        one.close()
    set_font_scale(1.0)


def looked_at(home: Home, kind: str, looks: list[tuple[str, str]]) -> Iterator[tuple[str, QWidget, str, str]]:
    """Yield every surface in every look. Pages are turned for each look anew: a switch restyles all of them at once."""
    if kind in PAGED:
        for language, theme in looks:
            home.look(language, theme)
            for name, widget in home.surfaces(kind):
                yield name, widget, language, theme
        return
    for name, widget in home.surfaces(kind):
        for language, theme in looks:
            home.look(language, theme)
            yield name, widget, language, theme


def keep(widget: QWidget, name: str) -> None:
    if SHOTS:
        Path(SHOTS).mkdir(parents=True, exist_ok=True)
        assert widget.grab().save(str(Path(SHOTS) / f"{name}.png"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", ROOMY, ids=["100%", "200%"])
def test_every_widget_is_whole_named_legible_and_reachable(make_home: Any, scale: float, kind: str) -> None:
    home: Home = make_home(scale)
    if kind in DOCKED:
        home.window.resize(ROOMY[scale])
    found: list[str] = []
    words = {language: Words(language, home.data_words()) for language in LANGUAGES}
    is_keyed = scale == 1.0 and kind not in ("menus", "notices")
    for name, widget, language, theme in looked_at(home, kind, LOOKS):
        if kind in PAGED:
            widget.resize(ROOMY[scale].boundedTo(widget.size().expandedTo(DIALOG * scale)))
        home.settle()
        picture = f"{name}-{language}-{theme}-{scale:.0%}"
        keep(widget if widget.isWindow() else home.window, picture)
        found += [f"{picture}: {fault}" for fault in faults(widget, words[language], is_painted=scale == 1.0)]
        found += [f"{picture}: {fault}" for fault in painted_faults(widget, words[language], home.flow_words())]
        if kind in PAGED and (language, theme) in (LOOKS[0], LOOKS[-1]):
            found += [f"{picture}: {fault}" for fault in crowded_lists(widget)]
        if is_keyed and (language, theme) == LOOKS[-1]:
            found += [f"{name}: {fault}" for fault in lost_by_keys(widget)]
    assert home.window.translator.missing == set()
    assert not found, "\n".join(found)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("notices", "menus", "companion")])
def test_nothing_is_out_of_reach_in_a_small_window(make_home: Any, kind: str) -> None:
    home: Home = make_home()
    found: list[str] = []
    words = {language: Words(language, home.data_words()) for language in LANGUAGES}
    for name, widget in home.surfaces(kind):
        top = home.window if kind in DOCKED else widget.window()
        roomy = top.size()
        for size in SMALL:
            small = size if kind in (*DOCKED, "main") else roomy.boundedTo(size)
            for _ in range(2):
                # What gives way does so when it is pressed, so the window follows in two steps.
                top.resize(small)
                home.settle()
            # The longest words of both languages once; the other sizes are for the layout.
            for language in words if size == SMALL[0] else ("en",):
                home.look(language, "light")
                if top.width() > small.width() or top.height() > small.height():
                    found.append(f"{name} {language}: needs {top.size().toTuple()} of {small.toTuple()}")
                    continue
                keep(top, f"{name}-{language}-{size.width()}x{size.height()}")
                wrong = faults(widget, words[language], is_painted=False)
                where = f"{name} {language} {small.toTuple()}"
                found += [f"{where}: {fault}" for fault in wrong if not fault.startswith(("untranslated", "nameless"))]
        top.resize(roomy)
    assert not found, "\n".join(found)


# --- the checks find what they are for ------------------------------------------------------------------------------


@pytest.fixture
def page(qtbot: QtBot) -> QWidget:
    made = QWidget()
    made.setPalette(toolkit_palette(LIGHT))
    made.setStyleSheet(stylesheet(LIGHT) + panel_stylesheet(LIGHT))
    made.resize(600, 400)
    QVBoxLayout(made)
    qtbot.addWidget(made)
    made.show()
    return made


def put(page: QWidget, widget: QWidget, name: str = "planted") -> None:
    widget.setObjectName(name)
    layout = page.layout()
    assert layout is not None
    layout.addWidget(widget)
    widget.show()
    for _ in range(3):
        QApplication.processEvents()


def kinds(page: QWidget, words: Words | None = None) -> set[str]:
    found = faults(page, words or Words("en", {"Some words", "More words"}))
    return {fault.split(":")[0] for fault in found}


def named_button(text: str = "Some words") -> QPushButton:
    made = QPushButton(text)
    made.setAccessibleName(text)
    return made


def test_a_good_page_has_no_faults(page: QWidget) -> None:
    put(page, named_button())
    put(page, QLabel("More words"))
    assert faults(page, Words("en", {"Some words", "More words"})) == []
    assert lost_by_keys(page) == []


def squeezed(widget: QWidget) -> QWidget:
    widget.setFixedWidth(60)
    return widget


def short_label() -> QWidget:
    made = QLabel("Some words that are many more than the two lines have room for, and then some")
    made.setWordWrap(True)
    made.setFixedSize(120, 40)
    return made


def narrow_tabs() -> QWidget:
    made = QTabWidget()
    for _ in range(8):
        made.addTab(QLabel("More words"), "Some words")
    made.tabBar().setAccessibleName("Some words")
    made.setFixedWidth(300)
    return made


def narrow_field() -> QWidget:
    made = QLineEdit()
    made.setPlaceholderText("Some words that are many more")
    made.setAccessibleName("Some words")
    return squeezed(made)


def narrow_box() -> QWidget:
    made = QComboBox()
    made.addItem("Some words")
    made.setAccessibleName("Some words")
    return squeezed(made)


@pytest.mark.parametrize(
    "make",
    [lambda: squeezed(named_button()), lambda: squeezed(QLabel("Some words")), short_label, narrow_tabs, narrow_field,
     narrow_box],
    ids=["button", "label", "wrapped", "tabs", "placeholder", "choice"],
)  # fmt: skip
def test_cut_words_are_found(page: QWidget, make: Callable[[], QWidget]) -> None:
    put(page, make())
    assert "cut" in kinds(page)


def test_a_list_that_is_narrower_than_its_choices_is_found(page: QWidget) -> None:
    box = QComboBox()
    box.addItems(["Some words", "Some words that are more than the others"])
    put(page, box)
    assert crowded_lists(page) == []
    box.view().setMaximumWidth(100)
    assert crowded_lists(page) != []


def test_pale_words_and_signs_are_found(page: QWidget) -> None:
    label = QLabel("Some words")
    put(page, label)
    assert kinds(page) == set()
    label.setStyleSheet("color: #9a9a92")
    page.grab()
    assert kinds(page) == {"pale"}


def test_words_of_another_language_are_found(page: QWidget) -> None:
    put(page, named_button("停止"))
    assert kinds(page) == {"untranslated"}
    assert kinds(page, Words("zh_CN")) == set()


def test_words_that_no_catalogue_has_are_found(page: QWidget) -> None:
    put(page, QLabel("Frobnicate"))
    assert kinds(page) == {"untranslated"}


def test_a_control_without_a_name_is_found(page: QWidget) -> None:
    put(page, QLineEdit())
    assert kinds(page) == {"nameless"}


def test_a_small_target_is_found(page: QWidget) -> None:
    button = named_button("")
    button.setAccessibleName("Some words")
    button.setStyleSheet("min-height: 0; min-width: 0; padding: 0; border: 0")
    button.setFixedSize(20, 20)
    put(page, button)
    assert kinds(page) == {"small"}


def test_what_is_beyond_its_parent_is_found_but_not_what_can_be_scrolled_to(page: QWidget) -> None:
    inside = QWidget()
    row = QHBoxLayout(inside)
    row.addWidget(named_button())
    inside.setMinimumSize(400, 900)
    area = QScrollArea()
    area.setWidget(inside)
    put(page, area)
    assert faults(page, Words("en", {"Some words"})) == []
    area.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    stray = QLabel("More words", page)
    stray.setObjectName("stray")
    stray.move(580, 4)
    stray.show()
    assert any(fault.startswith("unreachable: QLabel stray") for fault in faults(page, Words("en", {"More words"})))


def test_widgets_that_overlap_are_found(page: QWidget) -> None:
    put(page, named_button())
    other = QLabel("More words", page)
    other.setGeometry(page.findChild(QPushButton, "planted").geometry())
    other.show()
    assert "overlap" in kinds(page)


def test_a_control_that_the_tab_key_does_not_reach_is_found(page: QWidget) -> None:
    put(page, named_button())
    assert lost_by_keys(page) == []
    lost = named_button()
    lost.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    put(page, lost, "lost")
    assert lost_by_keys(page) == ["no way by keys: QPushButton lost"]


def test_a_control_that_does_not_show_that_it_has_the_keyboard_is_found(page: QWidget) -> None:
    put(page, named_button())
    blank = QWidget()
    blank.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    blank.setMinimumSize(60, 60)
    put(page, blank, "blank")
    assert lost_by_keys(page) == ["unseen focus: QWidget blank"]
