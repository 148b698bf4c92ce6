from __future__ import annotations

import io
import random
import zipfile
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from desktop import paths
from desktop.ui.avatar.importing import import_pack, unpack
from desktop.ui.avatar.library import AvatarLibrary
from desktop.ui.main_window import create_window
from orchestrator.contracts.errors import InputError

SHIPPED = paths.assets() / "avatars"


def zipped(files: Mapping[str, bytes], attributes: int = 0) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as pack:
        for name, data in files.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = attributes
            info.compress_type = zipfile.ZIP_DEFLATED
            pack.writestr(info, data)
    return buffer.getvalue()


def bit(prefix: str = "") -> dict[str, bytes]:
    return {f"{prefix}{p.name}": p.read_bytes() for p in (SHIPPED / "bit").iterdir()}


def everything(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*")}


@pytest.mark.parametrize(("prefix", "name"), [("", "My bot"), ("机器人/", "机器人"), ("deep/er/", "er")])
def test_a_pack_is_taken_in_and_can_be_chosen(tmp_path: Path, prefix: str, name: str) -> None:
    source, user = tmp_path / "My bot.zip", tmp_path / "data" / "avatars"
    source.write_bytes(zipped(bit(prefix)))
    assert import_pack(source, user) == name
    assert import_pack(source, user) == f"{name} 2"
    assert AvatarLibrary(SHIPPED, user).load(name).names["en"] == "Bit"
    assert {p.name for p in user.iterdir()} == {name, f"{name} 2"}


@pytest.mark.parametrize(
    ("files", "code"),
    [
        ({"../avatar.yaml": b""}, "pack_path"),
        ({"/etc/avatar.yaml": b""}, "pack_path"),
        ({"a\\..\\avatar.yaml": b""}, "pack_path"),
        ({"C:avatar.yaml": b""}, "pack_path"),
        ({**bit(), "run.py": b"print()"}, "pack_path"),
        ({**bit(), ".hidden.svg": b""}, "pack_path"),
        ({**bit(), "BODY.png": b""}, "pack_broken"),
        ({"body.png": b""}, "pack_broken"),
        ({"avatar.yaml": b"format: 9\n"}, "avatar_invalid"),
        ({**bit(), "bomb.png": b"\0" * 50_000_000}, "pack_size"),
        ({f"{n}.png": b"" for n in range(300)}, "pack_size"),
    ],
)
def test_a_pack_that_could_do_harm_is_refused_and_leaves_nothing(
    tmp_path: Path, files: dict[str, bytes], code: str
) -> None:
    source, user = tmp_path / "x.zip", tmp_path / "avatars"
    source.write_bytes(zipped(files))
    with pytest.raises(InputError) as caught:
        import_pack(source, user)
    assert caught.value.code == code and "\n" not in caught.value.message
    assert everything(tmp_path) <= {"x.zip", "avatars"}


def test_links_and_missing_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_bytes(zipped({"avatar.yaml": b"/etc/passwd"}, 0o120777 << 16))
    with pytest.raises(InputError, match="link"):
        import_pack(tmp_path / "x.zip", tmp_path / "avatars")
    with pytest.raises(InputError) as caught:
        import_pack(tmp_path / "absent.zip", tmp_path / "avatars")
    assert caught.value.code == "pack_unreadable"


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=200), seed=st.integers(0, 10**6))
def test_garbage_is_no_pack(data: bytes, seed: int) -> None:
    whole = bytearray(zipped({"avatar.yaml": b"format: 1\n", "a.png": b"x" * 50}))
    rng = random.Random(seed)
    for _ in range(rng.randrange(1, 6)):
        whole[rng.randrange(len(whole))] = rng.randrange(256)
    for text in (data, bytes(whole)):
        try:
            _, files = unpack(text)
        except InputError as error:
            assert "\n" not in error.message
        else:
            assert all(".." not in name and not name.startswith("/") for name in files)


def test_an_imported_character_is_chosen_at_once(qtbot: Any, bridge: Any, tmp_path: Path) -> None:
    (tmp_path / "Bot.zip").write_bytes(zipped(bit()))
    (tmp_path / "bad.zip").write_bytes(b"no zip")
    user = tmp_path / "avatars"
    window = create_window(bridge, SimpleNamespace(language="en", theme="light", reduced_motion=True), avatars=user)
    qtbot.addWidget(window)
    with qtbot.waitSignal(window.characters.shown):
        window.characters.take_in(tmp_path / "Bot.zip")
    assert window.characters.id == "Bot" and window.avatar.pack.names["en"] == "Bit"
    window.characters.take_in(tmp_path / "bad.zip")
    qtbot.waitUntil(lambda: "pack_broken" in window.notices.codes())
