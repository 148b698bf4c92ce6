"""The models folder, against a hub on loopback and wheels in a folder that pip is configured for."""

from __future__ import annotations

import json
import os
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest
from rigs.hub_rig import HubRig, hub_source, make_wheel, package_source, sha256, toy_catalogue, toy_model

from desktop.model_alignment import original_sha256
from desktop.model_catalogue import HubSource, Model
from desktop.model_download import InstallCancelled
from desktop.model_files import MANIFEST, Progress
from desktop.models import ModelStore
from orchestrator.contracts.errors import InputError, PartFailed

BIG = os.urandom(1_200_000)
SMALL = b'{"toy": true}'
CONTENTS = {"model.bin": BIG, "config.json": SMALL}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A models folder whose path has spaces and Chinese characters."""
    return tmp_path / "模型 folder"


@pytest.fixture
def hub() -> Iterator[HubRig]:
    with HubRig({f"maker/toy/{name}": content for name, content in CONTENTS.items()}) as rig:
        yield rig


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that is all of pip's world."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.fixture(autouse=True)
def _no_endpoint_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_ENDPOINT", raising=False)


def store_of(root: Path, model: Model, *hubs: str) -> ModelStore:
    return ModelStore(root, toy_catalogue(model, hubs=hubs))


def closed_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


PARTS = package_source(
    {
        "model.bin": [("toy-part-1", "toy_part_1/data/part1"), ("toy-part-2", "**/data/part2")],
        "config.json": [("toy-part-2", "toy_part_2/data/config.json")],
    }
)


def make_parts(folder: Path) -> None:
    make_wheel(folder, "toy-part-1", {"toy_part_1/data/part1": BIG[:500_000]})
    make_wheel(folder, "toy-part-2", {"toy_part_2/data/part2": BIG[500_000:], "toy_part_2/data/config.json": SMALL})


def assert_in_place(store: ModelStore) -> None:
    folder = store.path("toy")
    assert {file.name: file.read_bytes() for file in folder.iterdir() if file.name != MANIFEST} == CONTENTS
    assert store.verify("toy").is_ok
    assert not (store.root / "toy.partial").exists()


# --- the hub ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_pinned", [True, False])
def test_hub_files_are_checked_and_placed_with_a_manifest(root: Path, hub: HubRig, is_pinned: bool) -> None:
    store = store_of(root, toy_model(CONTENTS, hub_source(), is_pinned=is_pinned), hub.url)
    seen: list[Progress] = []
    assert store.install("toy", progress=seen.append) == root / "toy"
    assert_in_place(store)
    manifest = json.loads((root / "toy" / MANIFEST).read_text())
    assert manifest["verified"] is True
    assert manifest["files"]["model.bin"] == {"size_bytes": len(BIG), "sha256": sha256(BIG)}
    assert "maker/toy" in manifest["source"]
    done = [step.done_bytes for step in seen if step.stage == "downloading"]
    assert done == sorted(done) and done[-1] == seen[-1].total_bytes == len(BIG) + len(SMALL)
    requests = len(hub.requests)
    store.install("toy")
    assert len(hub.requests) == requests, "an installed model is left alone"


def test_broken_connection_is_resumed_and_the_half_is_never_used(root: Path, hub: HubRig) -> None:
    store = store_of(root, toy_model(CONTENTS, hub_source(), is_pinned=False), hub.url)
    hub.break_after = 700_000
    with pytest.raises(PartFailed, match="broke") as failed:
        store.install("toy")
    assert failed.value.code == "model_unavailable"
    assert not store.is_installed("toy") and not (root / "toy").exists()
    with pytest.raises(InputError, match="mynah models get toy"):
        store.path("toy")
    hub.break_after = None
    store.install("toy")
    assert_in_place(store)
    ranges = [ranged for path, ranged in hub.downloads() if path.endswith("model.bin")]
    assert ranges == [None, "bytes=700000-"]


def test_file_that_changed_meanwhile_is_fetched_anew(root: Path, hub: HubRig) -> None:
    store = store_of(root, toy_model(CONTENTS, hub_source(), is_pinned=False), hub.url)
    hub.files["maker/toy/model.bin"] = os.urandom(len(BIG))
    hub.break_after = 700_000
    with pytest.raises(PartFailed):
        store.install("toy")
    hub.files["maker/toy/model.bin"] = BIG
    hub.break_after = None
    store.install("toy")
    assert_in_place(store)


@pytest.mark.parametrize("is_pinned", [True, False])
def test_corrupt_download_is_refused_and_not_kept(root: Path, hub: HubRig, is_pinned: bool) -> None:
    store = store_of(root, toy_model(CONTENTS, hub_source(), is_pinned=is_pinned), hub.url)
    hub.corrupt = True
    with pytest.raises(PartFailed, match="wrong checksum"):
        store.install("toy")
    hub.corrupt = False
    store.install("toy")
    assert_in_place(store)


def test_hub_without_a_published_hash_is_not_trusted(root: Path, hub: HubRig, monkeypatch: pytest.MonkeyPatch) -> None:
    store = store_of(root, toy_model(CONTENTS, hub_source(), is_pinned=False), f"{hub.url}/cdn")
    with pytest.raises(PartFailed, match="no published checksum"):
        store.install("toy")


def test_cancelled_download_goes_on_later(root: Path, hub: HubRig) -> None:
    store = store_of(root, toy_model(CONTENTS, hub_source()), hub.url)
    seen: list[int] = []
    with pytest.raises(InstallCancelled) as cancelled:
        store.install(
            "toy",
            progress=lambda step: seen.append(step.done_bytes),
            cancelled=lambda: bool(seen and seen[-1] > 400_000),
        )
    assert cancelled.value.exit_code == 130
    assert not store.is_installed("toy")
    store.install("toy")
    assert_in_place(store)
    (_, first), (_, second) = [entry for entry in hub.downloads() if entry[0].endswith("model.bin")]
    assert first is None and second is not None and int(second.removeprefix("bytes=").rstrip("-")) > 400_000


def test_second_hub_is_asked_when_the_first_is_down_and_the_first_only_once(root: Path, hub: HubRig) -> None:
    dead = closed_port()
    models = [toy_model(CONTENTS, hub_source(), name=name) for name in ("toy", "other")]
    store = ModelStore(root, toy_catalogue(*models, hubs=(dead, hub.url)))
    asked: list[str] = []
    for name in ("toy", "other"):
        store.install(name, progress=lambda step: asked.append(step.source) if step.stage == "connecting" else None)
    assert_in_place(store)
    assert asked.count(dead) == 1


def test_endpoint_of_the_user_replaces_the_hubs(root: Path, hub: HubRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", hub.url + "/")
    store = store_of(root, toy_model(CONTENTS, hub_source()), closed_port())
    store.install("toy")
    assert_in_place(store)


# --- packages ---------------------------------------------------------------------------------------------------------


def test_unreachable_hub_falls_through_to_packages_quickly(root: Path, index: Path) -> None:
    make_parts(index)
    store = store_of(root, toy_model(CONTENTS, hub_source(), PARTS), closed_port())
    seen: list[Progress] = []
    store.install("toy", progress=seen.append)
    assert_in_place(store)
    assert "toy-part-1==1.0" in json.loads((root / "toy" / MANIFEST).read_text())["source"]
    assert {step.source for step in seen if step.stage == "downloading"} == {"toy-part-1==1.0", "toy-part-2==1.0"}


def test_second_source_is_used_when_the_first_delivers_wrong_bytes(root: Path, hub: HubRig, index: Path) -> None:
    make_parts(index)
    hub.corrupt = True
    store = store_of(root, toy_model(CONTENTS, hub_source(), PARTS), hub.url)
    store.install("toy")
    assert_in_place(store)


def test_missing_package_is_reported_in_one_line_and_what_came_is_kept(root: Path, index: Path) -> None:
    make_parts(index)
    (index / "toy_part_2-1.0-py3-none-any.whl").rename(index.parent / "aside.whl")
    store = store_of(root, toy_model(CONTENTS, PARTS))
    with pytest.raises(PartFailed) as failed:
        store.install("toy")
    assert "toy-part-2==1.0" in failed.value.message and "mynah models import" in failed.value.message
    assert "\n" not in failed.value.message
    (index.parent / "aside.whl").rename(index / "toy_part_2-1.0-py3-none-any.whl")
    (index / "toy_part_1-1.0-py3-none-any.whl").unlink()
    store.install("toy")
    assert_in_place(store)


@pytest.mark.parametrize("content", [BIG[:-1], os.urandom(len(BIG))], ids=["short", "other bytes"])
def test_wheel_with_wrong_content_is_refused(root: Path, index: Path, content: bytes) -> None:
    make_wheel(index, "toy", {"toy/model.bin": content})
    source = package_source({"model.bin": [("toy", "toy/model.bin")]})
    store = store_of(root, toy_model({"model.bin": BIG}, source))
    with pytest.raises(PartFailed, match=r"checksum|bytes instead"):
        store.install("toy")
    assert not (root / "toy").exists()
    make_wheel(index, "toy", {"toy/model.bin": BIG})
    store.install("toy")
    assert store.verify("toy").is_ok


def test_package_download_can_be_cancelled(root: Path, index: Path) -> None:
    make_parts(index)
    store = store_of(root, toy_model(CONTENTS, PARTS))
    started = threading.Event()

    def note(step: Progress) -> None:
        if step.stage == "downloading":
            started.set()

    before_s = time.monotonic()
    with pytest.raises(InstallCancelled):
        store.install("toy", progress=note, cancelled=started.is_set)
    assert time.monotonic() - before_s < 5
    assert not list((root / "toy.partial").rglob("pip-*"))


# --- in the folder ----------------------------------------------------------------------------------------------------


@pytest.fixture
def installed(root: Path, index: Path) -> ModelStore:
    make_parts(index)
    store = store_of(root, toy_model(CONTENTS, PARTS))
    store.install("toy")
    return store


def test_damage_is_found_and_repaired(installed: ModelStore) -> None:
    path = installed.root / "toy" / "model.bin"
    content = bytearray(BIG)
    content[-1] ^= 1
    path.write_bytes(content)
    assert [problem.split()[0] for problem in installed.verify("toy").problems] == ["model.bin"]
    path.write_bytes(BIG[:-5])
    assert not installed.is_installed("toy")
    path.unlink()
    assert "model.bin is missing" in installed.verify("toy").problems
    installed.install("toy")
    assert_in_place(installed)


def test_forged_manifest_does_not_pass_the_check(installed: ModelStore) -> None:
    content = os.urandom(len(BIG))
    (installed.root / "toy" / "model.bin").write_bytes(content)
    manifest = installed.manifest("toy")
    assert manifest is not None
    manifest["files"]["model.bin"]["sha256"] = sha256(content)
    (installed.root / "toy" / MANIFEST).write_text(json.dumps(manifest))
    assert installed.verify("toy").problems == ("its files are not those of the catalogue",)


def test_folder_put_there_by_hand_is_adopted_if_right(root: Path) -> None:
    (root / "toy").mkdir(parents=True)
    for name, content in CONTENTS.items():
        (root / "toy" / name).write_bytes(content)
    store = store_of(root, toy_model(CONTENTS, hub_source()), closed_port())
    assert not store.is_installed("toy")
    store.install("toy")
    assert_in_place(store)


def test_folder_put_there_by_hand_is_replaced_if_wrong(root: Path, hub: HubRig) -> None:
    (root / "toy").mkdir(parents=True)
    (root / "toy" / "model.bin").write_bytes(BIG[:1000])
    (root / "toy" / "config.json").write_bytes(SMALL)
    store = store_of(root, toy_model(CONTENTS, hub_source()), hub.url)
    store.install("toy")
    assert_in_place(store)


def test_two_at_once_fetch_once(root: Path, hub: HubRig) -> None:
    hub.gate = threading.Event()
    failures: list[BaseException] = []
    waiting = threading.Event()

    def work(is_second: bool) -> None:
        store = store_of(root, toy_model(CONTENTS, hub_source()), hub.url)
        try:
            store.install("toy", progress=lambda step: waiting.set() if step.stage == "waiting" else None)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(second,), name=f"install-{second}") for second in (False, True)]
    for thread in threads:
        thread.start()
    assert waiting.wait(10)
    hub.gate.set()
    for thread in threads:
        thread.join(timeout=20)
    assert not failures
    assert [path.rsplit("/", 1)[-1] for path, _ in hub.downloads()] == ["model.bin", "config.json"]


def test_unknown_and_missing_models_say_what_to_do(root: Path, tmp_path: Path) -> None:
    store = store_of(root, toy_model(CONTENTS, name="whisper-toy"))
    with pytest.raises(InputError, match="did you mean whisper-toy") as unknown:
        store.path("wisper-toy")
    assert unknown.value.code == "model_unknown" and unknown.value.exit_code == 2
    with pytest.raises(InputError) as missing:
        store.path("whisper-toy")
    assert missing.value.code == "model_missing"
    own = tmp_path / "my model"
    with pytest.raises(InputError):
        store.path(str(own))
    own.mkdir()
    assert store.path(str(own)) == own


def test_full_disk_is_said_before_fetching(root: Path, hub: HubRig, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage("/")._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(InputError) as full:
        store_of(root, toy_model(CONTENTS, hub_source()), hub.url).install("toy")
    assert full.value.code == "disk_full"
    assert not hub.requests


# --- import -----------------------------------------------------------------------------------------------------------


def write_all(folder: Path, contents: dict[str, bytes]) -> Path:
    folder.mkdir(parents=True)
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return folder


@pytest.mark.parametrize("layout", ["model folder", "its files", "wheels"])
def test_import_takes_what_a_folder_offers(root: Path, tmp_path: Path, layout: str) -> None:
    given = tmp_path / "给 you"
    if layout == "wheels":
        make_parts(given)
    else:
        write_all(given / "toy" if layout == "model folder" else given, CONTENTS)
    store = store_of(root, toy_model(CONTENTS, hub_source(), PARTS))
    (imported,) = store.import_folder(given)
    assert (imported.name, imported.is_verified) == ("toy", True)
    assert_in_place(store)
    assert store.import_folder(given) == []


def test_import_of_wrong_bytes_places_nothing(root: Path, tmp_path: Path) -> None:
    given = write_all(tmp_path / "given", {"model.bin": BIG[:-1] + bytes([BIG[-1] ^ 1]), "config.json": SMALL})
    store = store_of(root, toy_model(CONTENTS, hub_source()))
    with pytest.raises(InputError, match=r"model\.bin") as corrupt:
        store.import_folder(given)
    assert corrupt.value.code == "model_corrupt"
    assert not (root / "toy").exists()


def test_import_of_a_hub_file_without_known_hash_is_marked(root: Path, tmp_path: Path) -> None:
    given = write_all(tmp_path / "given", {"Toy-Q4.gguf": BIG})
    model = toy_model({"model.gguf": BIG}, hub_source(**{"model.gguf": "Toy-Q4.gguf"}), is_pinned=False)
    store = store_of(root, model)
    (imported,) = store.import_folder(given)
    assert not imported.is_verified
    assert (store.path("toy") / "model.gguf").read_bytes() == BIG
    assert store.verify("toy").is_ok


def test_files_of_unknown_models_are_not_taken_for_one(root: Path, tmp_path: Path) -> None:
    given = write_all(tmp_path / "given", {"model.bin": BIG})
    store = store_of(root, toy_model({"model.bin": BIG}, hub_source(), is_pinned=False))
    with pytest.raises(InputError) as nothing:
        store.import_folder(given)
    assert nothing.value.code == "nothing_to_import"
    with pytest.raises(InputError) as missing:
        store.import_folder(tmp_path / "nowhere")
    assert missing.value.code == "folder_missing"


# --- voices -----------------------------------------------------------------------------------------------------------


def toy_voice() -> bytes:
    node = onnx.helper.make_node("Ceil", ["x"], ["w_ceil"])
    back = onnx.helper.make_node("Neg", ["w_ceil"], ["output"])
    shape = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1]) for name in ("x", "output")]
    graph = onnx.helper.make_graph([node, back], "voice", shape[:1], shape[1:])
    return bytes(onnx.helper.make_model(graph).SerializeToString())


def test_voice_gets_phoneme_durations_and_keeps_its_provenance(root: Path, tmp_path: Path) -> None:
    voice = toy_voice()
    contents = {"voice.onnx": voice, "voice.onnx.json": b"{}"}
    given = write_all(tmp_path / "toy", contents)
    store = store_of(root, toy_model(contents, transform="piper_alignment"))
    store.import_folder(given)
    patched = store.path("toy") / "voice.onnx"
    assert [output.name for output in onnx.load(str(patched)).graph.output] == ["output", "w_ceil"]
    assert original_sha256(patched) == sha256(voice)
    manifest = store.manifest("toy")
    assert manifest is not None
    assert manifest["files"]["voice.onnx"]["original_sha256"] == sha256(voice)
    assert store.verify("toy").is_ok

    again = ModelStore(tmp_path / "again", store.catalogue)
    again.import_folder(store.path("toy"))
    assert again.verify("toy").is_ok and (again.path("toy") / "voice.onnx").read_bytes() == patched.read_bytes()

    given_bad = write_all(tmp_path / "bad" / "toy", {"voice.onnx": b"no voice at all", "voice.onnx.json": b"{}"})
    with pytest.raises(InputError):
        ModelStore(tmp_path / "third", store.catalogue).import_folder(given_bad.parent)


# --- the real ones ----------------------------------------------------------------------------------------------------


@pytest.mark.models
def test_default_models_are_as_delivered() -> None:
    store = ModelStore()
    for model in store.catalogue.defaults():
        verification = store.verify(model.name)
        assert verification.is_ok, verification
        manifest = store.manifest(model.name)
        assert manifest is not None
        assert manifest["licence"] == model.licence


def test_catalogue_of_the_program_is_complete() -> None:
    catalogue = ModelStore().catalogue
    assert {model.kind for model in catalogue.models.values()} == {"stt", "tts", "llm", "embedding", "turn"}
    for model in catalogue.models.values():
        pinned = all(file.sha256 is not None for file in model.files)
        only_hub = all(isinstance(source, HubSource) for source in model.sources)
        assert pinned or only_hub, f"{model.name}: a package's files need a hash in the catalogue"
        kinds = [isinstance(source, HubSource) for source in model.sources]
        assert kinds == sorted(kinds, reverse=True), f"{model.name}: the hub comes first"
        if pinned and model.files:
            assert sum(file.size_bytes or 0 for file in model.files) == model.size_bytes, model.name
        if model.default:
            assert not only_hub, f"{model.name}: a default must come without the hub"
    assert {model.kind for model in catalogue.defaults()} >= {"stt", "tts", "llm"}
    assert any(model.kind == "tts" and "zh" in model.languages for model in catalogue.models.values())
