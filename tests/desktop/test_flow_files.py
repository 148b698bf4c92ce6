"""The user's flow layer on disk: saving, drafts, conflicts, packs."""

from __future__ import annotations

import io
import os
import stat
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop import paths
from desktop.flow_check import FlowCheck
from desktop.flow_files import FlowFiles, check_name
from desktop.flow_folders import FlowFolders
from desktop.flow_pack import export_pack, read_pack, unpack
from orchestrator.contracts.errors import InputError

FLOW = """\
flows:
  hello_flow:
    name: a hello
    examples: [say hello to everybody]
    steps:
      - {id: start, type: start, next: say}
      - {id: say, type: action, action: action_response, args: {text: "Hello."}, next: end}
      - {id: end, type: end}
"""
BROKEN = FLOW.replace("next: end}", "next: ende}")


@pytest.fixture
def files(tmp_path: Path) -> FlowFiles:
    return FlowFiles(FlowFolders(shipped=paths.flow_config(), user=tmp_path / "flows"))


def user(files: FlowFiles) -> Path:
    return files.folders.user


# --- saving -----------------------------------------------------------------------------------------------------


def test_saving_makes_the_folder_and_keeps_the_former_version(files: FlowFiles) -> None:
    first = files.save("mine.yml", FLOW.rstrip("\n"), stamp=None)
    assert (first.state, first.reloads) == ("saved", True)
    assert (user(files) / "mine.yml").read_text(encoding="utf-8") == FLOW
    changed = FLOW.replace("Hello.", "你好。")
    second = files.save("mine.yml", changed, stamp=first.stamp)
    assert second.state == "saved" and second.stamp != first.stamp
    assert (user(files) / "mine.yml.bak").read_text(encoding="utf-8") == FLOW
    assert files.read("mine.yml").text == changed
    assert not list(user(files).glob(".*.new"))


def test_a_faulty_text_becomes_a_draft_and_the_runtime_does_not_see_it(files: FlowFiles) -> None:
    stamp = files.save("mine.yml", FLOW, stamp=None).stamp
    saved = files.save("mine.yml", BROKEN, stamp=stamp)
    assert saved.state == "draft" and not saved.reloads
    assert [(p.line, p.suggestion) for p in saved.problems] == [(7, "end")]
    assert (user(files) / "mine.yml").read_text(encoding="utf-8") == FLOW
    assert FlowCheck(files.folders).run().errors() == ()
    kept = files.read("mine.yml")
    assert (kept.text, kept.is_draft) == (BROKEN, True)
    assert [f.has_draft for f in files.files() if f.name == "mine.yml"] == [True]
    assert files.save("mine.yml", FLOW, stamp=kept.stamp).state == "saved"
    assert not files.read("mine.yml").is_draft


def test_a_new_file_that_is_only_a_draft_is_listed(files: FlowFiles) -> None:
    assert files.save("new.yml", BROKEN, stamp=None).state == "draft"
    assert [f.name for f in files.files() if f.layer == "user"] == ["new.yml"]
    assert not (user(files) / "new.yml").exists()
    files.discard_draft("new.yml")
    assert [f.name for f in files.files() if f.layer == "user"] == []


def test_breaking_another_file_is_a_fault_but_its_own_faults_are_not_ours(files: FlowFiles) -> None:
    slots = "slots:\n  my_own_slot: {type: text}\n"
    using = FLOW.replace('action: action_response, args: {text: "Hello."}', "action: action_now").replace(
        "{id: say, type: action, action: action_now, next: end}",
        "{id: say, type: collect, slot_name: my_own_slot, response: {text: a}, next: end}",
    )
    stamp = files.save("slots.yml", slots, stamp=None).stamp
    assert files.save("using.yml", using, stamp=None).state == "saved"
    assert files.save("slots.yml", "slots:\n  other: {type: text}\n", stamp=stamp).state == "draft"
    files.discard_draft("slots.yml")
    (user(files) / "broken.yml").write_text(BROKEN.replace("hello_flow", "third"), encoding="utf-8")
    saved = files.save("slots.yml", slots + "  more: {type: text}\n", stamp=stamp)
    assert (saved.state, saved.reloads) == ("saved", False)


def test_what_another_program_wrote_is_not_overwritten(files: FlowFiles) -> None:
    stamp = files.save("mine.yml", FLOW, stamp=None).stamp
    theirs = FLOW.replace("Hello.", "Hi.")
    (user(files) / "mine.yml").write_text(theirs, encoding="utf-8")
    assert files.save("mine.yml", FLOW + "# mine\n", stamp=stamp).state == "conflict"
    assert (user(files) / "mine.yml").read_text(encoding="utf-8") == theirs
    assert files.save("mine.yml", FLOW + "# mine\n", stamp=stamp, force=True).state == "saved"
    assert (user(files) / "mine.yml.bak").read_text(encoding="utf-8") == theirs


@pytest.mark.parametrize("name", ["policy.yml", "persona.yml", "tests/mine.yml"])
def test_every_kind_of_file_is_checked_by_its_own_reader(files: FlowFiles, name: str) -> None:
    saved = files.save(name, "nonsense_key: 1\n", stamp=None)
    assert saved.state == "draft"
    assert {p.file for p in saved.problems} == {name} and all(p.line == 1 for p in saved.problems)


def test_shipped_files_are_read_only_and_can_be_copied(files: FlowFiles) -> None:
    shipped = files.read("rails.yml", "shipped")
    assert files.copy_to_edit("rails.yml") == "rails.yml"
    assert files.read("rails.yml").text == shipped.text
    files.save("rails.yml", shipped.text + "# mine\n", stamp=files.stamp("rails.yml"))
    files.copy_to_edit("rails.yml")
    assert files.read("rails.yml").text.endswith("# mine\n")
    assert FlowCheck(files.folders).run().errors() == ()


@pytest.mark.parametrize(
    "name", ["../a.yml", "/a.yml", "a/b.yml", ".a.yml", "a.py", "tests/../a.yml", "con.yml", "a\\b.yml", "", "a.yml\n"]
)
def test_names_that_lead_elsewhere_are_refused(files: FlowFiles, name: str) -> None:
    with pytest.raises(InputError):
        check_name(name)
    with pytest.raises(InputError):
        files.save(name, FLOW, stamp=None)


def test_what_is_no_text_is_one_clear_line(files: FlowFiles) -> None:
    user(files).mkdir(parents=True)
    (user(files) / "bad.yml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match=r"bad\.yml is no UTF-8 text"):
        files.read("bad.yml")
    assert [p.code for p in files.checked().errors("bad.yml")] == ["file_encoding"]


def test_texts_set_aside_stay_beside_each_other_and_the_oldest_makes_room(
    files: FlowFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("desktop.flow_files._MOST_COPIES", 3)
    kept = [files.set_aside("tests/mine.yml", f"text {n}") for n in range(3)]
    assert [path.read_text(encoding="utf-8") for path in kept] == ["text 0", "text 1", "text 2"]
    for age, path in enumerate(kept):
        os.utime(path, (age, age))
    assert files.set_aside("tests/mine.yml", "text 3") == kept[0]
    assert sorted(p.read_text(encoding="utf-8") for p in kept) == ["text 1", "text 2", "text 3"]
    assert [f.name for f in files.files() if f.layer == "user"] == []


# --- packs ------------------------------------------------------------------------------------------------------


def zipped(*entries: tuple[str | zipfile.ZipInfo, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as pack:
        for name, data in entries:
            pack.writestr(name, data)
    return buffer.getvalue()


def test_a_pack_brings_the_files_to_another_folder(files: FlowFiles, tmp_path: Path) -> None:
    files.save("mine.yml", FLOW, stamp=None)
    files.save("tests/t.yml", "tests:\n  - {name: a, turns: [{user: hi}]}\n", stamp=None)
    files.save("draft.yml", BROKEN, stamp=None)
    pack = tmp_path / "pack.zip"
    assert export_pack(files, pack) == 2
    other = FlowFiles(FlowFolders(shipped=paths.flow_config(), user=tmp_path / "other"))
    found = read_pack(pack, other)
    assert set(found.texts) == {"mine.yml", "tests/t.yml"} and found.clashes == ()
    assert other.save_all(found.texts).state == "saved"
    assert other.read("mine.yml").text == FLOW
    other.save("mine.yml", FLOW + "# mine\n", stamp=other.stamp("mine.yml"))
    assert read_pack(pack, other).clashes == ("mine.yml",)


def test_a_faulty_pack_comes_in_as_drafts_only(files: FlowFiles) -> None:
    saved = files.save_all({"a.yml": FLOW, "b.yml": BROKEN.replace("hello_flow", "other")})
    assert saved.state == "draft" and not list(user(files).glob("*.yml"))
    assert [f.name for f in files.files() if f.has_draft] == ["a.yml", "b.yml"]


def link() -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo("link.yml")
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    return entry


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (zipped(("../evil.yml", b"a: 1")), "pack_path"),
        (zipped(("/etc/evil.yml", b"a: 1")), "pack_path"),
        (zipped(("C:/evil.yml", b"a: 1")), "pack_path"),
        (zipped(("a/../../evil.yml", b"a: 1")), "pack_path"),
        (zipped(("..\\evil.yml", b"a: 1")), "pack_path"),
        (zipped((".drafts/a.yml", b"a: 1")), "pack_path"),
        (zipped((link(), b"/etc/passwd")), "pack_path"),
        (zipped(("actions/run.py", b"import os")), "pack_code"),
        (zipped(("a.yml", b"a: 1"), ("inner.zip", b"PK")), "pack_code"),
        (zipped(("a.yml", b"a: 1"), ("A.yml", b"a: 1")), "pack_broken"),
        (zipped(("a.yml", b"\xff\xfe")), "pack_broken"),
        (zipped(("bomb.yml", b"a" * 20_000_000)), "pack_size"),
        (zipped(*((f"f{n}.yml", b"a: 1") for n in range(300))), "pack_size"),
        (zipped(*((f"f{n}.yml", b" " * 1_900_000) for n in range(20))), "pack_size"),
        (zipped(("README.md", b"nothing else")), "pack_broken"),
        (b"no zip at all", "pack_broken"),
        (b"", "pack_broken"),
    ],
)
def test_hostile_packs_are_refused(files: FlowFiles, tmp_path: Path, data: bytes, code: str) -> None:
    path = tmp_path / "evil.zip"
    path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        read_pack(path, files)
    assert caught.value.code == code and "\n" not in caught.value.message
    assert not user(files).exists()


def test_a_size_that_the_header_hides_is_found_out() -> None:
    data = bytearray(zipped(("bomb.yml", b"a" * 3_000_000)))
    # The central directory's uncompressed size stands 24 bytes behind its signature.
    at = data.rindex(b"PK\x01\x02") + 24
    data[at : at + 4] = (100).to_bytes(4, "little")
    with pytest.raises(InputError):
        unpack(bytes(data))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_damaged_pack_never_does_more_than_say_so(data: st.DataObject) -> None:
    whole = bytearray(zipped(("a.yml", FLOW.encode()), ("tests/b.yml", b"tests: []"), ("pack.yml", b"format: 1")))
    for _ in range(data.draw(st.integers(1, 8))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    try:
        texts = unpack(bytes(whole[: data.draw(st.integers(0, len(whole)))]))
    except InputError as error:
        assert error.code.startswith("pack_") and "\n" not in error.message
    else:
        assert all(check_name(name) == name for name in texts)
