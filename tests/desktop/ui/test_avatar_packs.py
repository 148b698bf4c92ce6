from __future__ import annotations

import random
import shutil
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PySide6.QtGui import QAction, QImage
from rigs.pixels import pixels

from desktop import paths
from desktop.ui.avatar.drawing_check import DrawingError, check_drawing
from desktop.ui.avatar.expression import expression_of
from desktop.ui.avatar.library import AvatarLibrary
from desktop.ui.avatar.pack import avatar_schema, load_pack, place_and_fault
from desktop.ui.avatar.painter import AvatarPainter
from desktop.ui.avatar.pose import EXPRESSIONS
from desktop.ui.avatar.reader import check_pack
from orchestrator.contracts.errors import InputError
from orchestrator.contracts.ids import GenerationId, IntentId
from orchestrator.contracts.views import (
    CharacterTextView,
    ExpressionView,
    GenerationEndedView,
    SpeechTimelineView,
    StateView,
)

SHIPPED = paths.assets() / "avatars"
PACKS = ("mynah", "tutu", "bit")
G1, I1 = GenerationId("g-1"), IntentId("i-1")


def png(width: int = 2, height: int = 2) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + b"\xff\0\0\xff" * min(width, 4) for _ in range(min(height, 4)))
    head = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def copy_of(name: str, target: Path) -> Path:
    shutil.copytree(SHIPPED / name, target)
    return target


def settle_pack(stage: Any, steps: int = 30) -> None:
    for _ in range(steps):
        stage.at(stage.clock.monotonic_s() + 0.1)


def look(stage: Any) -> QImage:
    settle_pack(stage, 12)
    return stage.window.avatar.grab().toImage()


# --- packs that ship ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PACKS)
def test_every_pack_that_ships_is_whole(qapp: object, name: str) -> None:
    pack, problems = check_pack(SHIPPED / name)
    assert problems == () and pack is not None
    assert {"en", "zh_CN"} <= set(pack.names) and pack.licence
    painter = AvatarPainter(pack)
    painter.prepare(0.5)
    schema = avatar_schema()
    jsonschema.validate(yaml.safe_load((SHIPPED / name / "avatar.yaml").read_text(encoding="utf-8")), schema)


def test_the_png_pack_is_what_its_script_draws(tmp_path: Path, repo_root: Path) -> None:
    scope: dict[str, Any] = {"__name__": "drawn", "__file__": str(repo_root / "script" / "make-png-avatar")}
    exec((repo_root / "script" / "make-png-avatar").read_text(encoding="utf-8"), scope)
    drawn = {f"{name}.png": picture.png() for name, picture in scope["PICTURES"].items()}
    assert drawn == {p.name: p.read_bytes() for p in (SHIPPED / "bit").glob("*.png")}


@pytest.mark.parametrize("name", PACKS)
def test_every_pack_speaks_blinks_and_shows_what_it_feels(
    make_stage: Callable[..., Any], spoken: Any, name: str
) -> None:
    stage = make_stage(reduced_motion=True)
    stage.window.avatar.set_pack(load_pack(SHIPPED / name))
    settle_pack(stage)
    assert stage.window.avatar.pack.folder.name == name
    stage.show(StateView(state="speaking"))
    closed = look(stage)
    seen = [closed]
    for expression in ("happy", "sad", "surprised", "thinking"):
        stage.show(ExpressionView(generation_id=G1, expression=expression))
        seen.append(look(stage))
    stage.show(ExpressionView(generation_id=G1, expression="neutral"))
    start_s = stage.clock.monotonic_s()
    stage.show(spoken.added(), spoken.started(start_s))
    stage.at(start_s + 0.6)
    seen.append(stage.window.avatar.grab().toImage())
    for i, one in enumerate(seen):
        for other in seen[i + 1 :]:
            assert int((abs(pixels(one) - pixels(other)).sum(axis=2) > 60).sum()) > 20


# --- choosing -----------------------------------------------------------------------------------------------------


def test_a_character_is_chosen_live_from_the_menu(stage: Any, qtbot: Any) -> None:
    window = stage.window
    before = look(stage)
    chosen: list[tuple[str, object]] = []
    window.setting_changed.connect(lambda key, value: chosen.append((key, value)))
    with qtbot.waitSignal(window.characters.found):
        window.menu.characters.aboutToShow.emit()
    action = window.findChild(QAction, "avatarAction_tutu")
    assert action.text() == "Tutu" and not action.isChecked()
    with qtbot.waitSignal(window.characters.shown):
        action.trigger()
    settle_pack(stage)
    assert chosen == [("avatar", "tutu")]
    assert window.avatar.pack.names["en"] == "Tutu"
    assert "Tutu" in window.avatar.toolTip()
    assert window.findChild(QAction, "avatarAction_tutu").isChecked()
    assert int((abs(pixels(before) - pixels(look(stage))).sum(axis=2) > 60).sum()) > 500
    window.set_language("zh_CN")
    assert window.findChild(QAction, "avatarAction_tutu").text() == "兔兔"


def test_the_sentence_that_sounds_goes_on_in_another_character(stage: Any, spoken: Any) -> None:
    stage.show(spoken.added(), spoken.started(100.0))
    stage.at(100.3)
    stage.window.avatar.set_pack(load_pack(SHIPPED / "tutu"))
    stage.at(100.6)
    assert stage.window.avatar.mouth(100.6).shape == "aa"


def test_an_unknown_pack_is_a_notice_and_leaves_the_old_one(stage: Any, qtbot: Any) -> None:
    window = stage.window
    window.characters.show("nobody")
    qtbot.waitUntil(lambda: "avatar_unknown" in window.notices.codes())
    assert "mynah, tutu" in window.notices.text() and window.characters.id == "mynah"
    window.characters.show("nobody/../mynah")
    qtbot.waitUntil(lambda: "nobody/.." in window.notices.text())


def test_packs_of_the_user_come_beside_and_before_the_shipped_ones(tmp_path: Path) -> None:
    copy_of("tutu", tmp_path / "mynah")
    (tmp_path / "空 broken").mkdir()
    (tmp_path / "空 broken" / "avatar.yaml").write_text("format: 1\nlayers: [", encoding="utf-8")
    (tmp_path / "no pack").mkdir()
    library = AvatarLibrary(SHIPPED, tmp_path)
    choices = {choice.id: choice for choice in library.choices()}
    assert set(choices) == {"mynah", "tutu", "bit", "空 broken"}
    assert not choices["mynah"].is_shipped and library.load("mynah").names["en"] == "Tutu"
    assert "avatar.yaml:3:1:" in choices["空 broken"].problem
    assert library.load(None).names["en"] == "Tutu"
    assert AvatarLibrary(SHIPPED, tmp_path / "absent").load(None).names["en"] == "Mynah"


# --- faults -------------------------------------------------------------------------------------------------------


def test_all_faults_of_a_pack_come_at_once_with_their_places(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(png())
    (tmp_path / "avatar.yaml").write_text(
        "format: 2\n"
        "name: Bird\n"
        "canvas: [100, 100]\n"
        "layers:\n"
        "  - {id: a, file: a.png, show: {mouth: opn}}\n"
        "  - {id: a, file: b.png}\n"
        "  - {id: c, file: ../../etc/passwd}\n"
        "visemes: {aa: [2, 1], zz: [1, 1]}\n",
        encoding="utf-8",
    )
    pack, problems = check_pack(tmp_path)
    assert pack is None
    lines = [place_and_fault(problem).removeprefix(f"{tmp_path}/") for problem in problems]
    assert [line.split(" ", 1)[0] for line in lines] == [
        *("avatar.yaml:1:9:", "avatar.yaml:2:7:", "avatar.yaml:5:40:", "avatar.yaml:6:19:"),
        *("avatar.yaml:7:19:", "avatar.yaml:8:15:", "avatar.yaml:8:23:"),
    ]
    assert "did you mean open?" in lines[2]
    assert all("\n" not in line for line in lines)
    with pytest.raises(InputError, match=r"avatar\.yaml:1:9: format must be 1 \(and 6 more\)"):
        load_pack(tmp_path)


@pytest.mark.parametrize(
    ("drawing", "complaint"),
    [
        ("<svg", "no sound XML"),
        ("<!DOCTYPE svg [<!ENTITY a 'b'>]><svg viewBox='0 0 9 9'/>", "document type"),
        ("<svg viewBox='0 0 9 9'><script/></svg>", "script"),
        ("<svg viewBox='0 0 9 9'><image href='file:///etc/passwd'/></svg>", "pictures"),
        ("<svg viewBox='0 0 9 9'><rect href='http://x/'/></svg>", "outside itself"),
        ("<svg viewBox='0 0 9 9'><g id='a'/><use href='#a'/></svg>", "unlink"),
        ("<svg viewBox='0 0 9 9'>" + "<g>" * 60 + "</g>" * 60 + "</svg>", "deeper than"),
        ("<svg viewBox='0 0 9 9'>" + "<g/>" * 6000 + "</svg>", "more than 5000"),
        ("<svg viewBox='0 0 9'/>", "viewBox"),
        ("<svg viewBox='0 0 nan 9'/>", "viewBox"),
        ("<html/>", "not an SVG"),
        ("<svg viewBox='0 0 9 9'>" + " " * 600_000 + "</svg>", "bigger than"),
    ],
)
def test_a_drawing_that_could_do_harm_is_refused(tmp_path: Path, drawing: str, complaint: str) -> None:
    (tmp_path / "a.svg").write_text(drawing, encoding="utf-8")
    with pytest.raises(DrawingError, match=complaint):
        check_drawing(tmp_path / "a.svg")


@pytest.mark.parametrize(
    ("data", "complaint"),
    [(b"no picture", "not a PNG"), (png(100_000, 100_000), "pixels"), (png(0, 5), "pixels")],
)
def test_a_picture_that_could_do_harm_is_refused(tmp_path: Path, data: bytes, complaint: str) -> None:
    (tmp_path / "a.png").write_bytes(data)
    with pytest.raises(DrawingError, match=complaint):
        check_drawing(tmp_path / "a.png")


def test_a_picture_that_lies_about_itself_is_told_by_the_painter(qapp: object, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(png()[:-30])
    (tmp_path / "avatar.yaml").write_text(
        "format: 1\nname: {en: A}\ncanvas: [100, 100]\nlayers: [{id: a, file: a.png}]\n", encoding="utf-8"
    )
    with pytest.raises(InputError, match="not a PNG"):
        AvatarPainter(load_pack(tmp_path))


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["mynah.svg", "body.svg", "tail.svg", "..", "/", "open", "happy", "head", "mouth", "a\0b"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=6), inner, max_size=4)),
    max_leaves=12,
)
KEYS = st.sampled_from([*avatar_schema()["properties"], "layer", "名"])


def must_tell(folder: Path) -> None:
    pack, problems = check_pack(folder)
    assert (pack is None) == bool(problems)
    for problem in problems:
        assert problem.line >= 1 and problem.col >= 1
        assert "\n" not in place_and_fault(problem)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=st.dictionaries(KEYS, VALUES, max_size=4), where=st.integers(0, 13), layer=st.data())
def test_random_values_in_a_pack_are_told_or_drawn(
    tmp_path: Path, changes: dict[str, Any], where: int, layer: Any
) -> None:
    folder = tmp_path / "pack"
    if not folder.exists():
        copy_of("mynah", folder)
    data = yaml.safe_load((SHIPPED / "mynah" / "avatar.yaml").read_text(encoding="utf-8"))
    keys = st.sampled_from(["id", "file", "group", "drive", "pivot", "at", "size", "show"])
    data["layers"][where] |= layer.draw(st.dictionaries(keys, VALUES, max_size=3))
    data |= changes
    (folder / "avatar.yaml").write_text(yaml.safe_dump(data, allow_unicode=True), encoding="utf-8")
    must_tell(folder)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.one_of(st.binary(max_size=300), st.text(max_size=300).map(str.encode)), seed=st.integers(0, 10**6))
def test_garbage_in_place_of_a_pack_is_told(tmp_path: Path, data: bytes, seed: int) -> None:
    whole = (SHIPPED / "tutu" / "avatar.yaml").read_bytes()
    rng = random.Random(seed)
    at = rng.randrange(len(whole))
    for text in (data, whole[:at] + data[:20] + whole[at + rng.randrange(9) :]):
        (tmp_path / "avatar.yaml").write_bytes(text)
        must_tell(tmp_path)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=200), seed=st.integers(0, 10**6))
def test_garbage_in_place_of_a_drawing_is_told(tmp_path: Path, data: bytes, seed: int) -> None:
    rng = random.Random(seed)
    for name, whole in (("a.svg", (SHIPPED / "tutu" / "head.svg").read_bytes()), ("a.png", png())):
        at = rng.randrange(len(whole))
        for text in (data, whole[:at] + data[:9] + whole[at + 3 :]):
            (tmp_path / name).write_bytes(text)
            try:
                check_drawing(tmp_path / name)
            except DrawingError as error:
                assert str(error) and "\n" not in str(error)


# --- expressions and mouths by rule -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("I'm so sorry to hear that.", "sad"),
        ("Congratulations, that's great!", "happy"),
        ("Wow, I did not know that.", "surprised"),
        ("Hmm, let me think about it.", "thinking"),
        ("很抱歉，我没听清。", "sad"),
        ("太好了，恭喜你！", "happy"),
        ("哇，真的吗？", "surprised"),
        ("让我想想。", "thinking"),
        ("No way! You did it?", "surprised"),
        ("There is no way to do that.", None),
        ("It is ten past nine.", None),
        ("现在是九点十分。", None),
        ("That is not wonderful.", None),
        ("我不开心。", None),
        ("The wowser owns a haha-shaped hall.", None),
        ("", None),
    ],
)
def test_words_have_an_expression_of_their_own(text: str, expression: str | None) -> None:
    assert expression_of(text) == expression
    assert expression is None or expression in EXPRESSIONS


def test_what_the_model_asks_for_comes_before_the_words(stage: Any) -> None:
    avatar = stage.window.avatar
    stage.show(CharacterTextView(generation_id=G1, intent_id=I1, text="Congratulations!"))
    assert avatar.expression == "happy"
    stage.show(ExpressionView(generation_id=G1, expression="surprised"))
    assert avatar.expression == "surprised"
    stage.show(GenerationEndedView(generation_id=G1, outcome="completed"))
    assert avatar.expression == "neutral"


def test_a_voice_that_tells_only_words_moves_the_mouth_during_them(stage: Any, spoken: Any) -> None:
    view = SpeechTimelineView(
        generation_id=G1, intent_id=I1, at_s=100.0, start_offset_s=0.0, duration_s=2.0, words=spoken.words, visemes=()
    )
    stage.show(view)
    avatar = stage.window.avatar
    openings = [avatar.mouth(100.2 + step * 0.04).opening for step in range(20)]
    assert max(openings) > 0.5 and min(openings) < max(openings)
    assert avatar.mouth(101.25).opening == 0.0
    assert avatar.mouth(103.0).opening == 0.0
