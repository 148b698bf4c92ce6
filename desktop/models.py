"""The models folder: locate, install, verify, import. A model is in its place only when it is complete and checked."""

from __future__ import annotations

import importlib.util
import json
import logging
import os
import shutil
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from desktop.file_lock import file_lock
from desktop.model_catalogue import Catalogue, Model, ModelFile, load_catalogue
from desktop.model_download import Cancelled, InstallCancelled, SourceFailed, sha256_of, write_json
from desktop.model_files import MANIFEST, OnProgress, Progress, build_manifest, is_patched, mismatch, transform
from desktop.model_offers import offers
from desktop.model_sources import Assembly
from desktop.paths import models_root
from orchestrator.contracts.errors import InputError, PartFailed

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What a check found; no `problems` means that the model is as it was delivered."""

    name: str
    problems: tuple[str, ...] = ()

    @property
    def is_ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """A model that an import put into place. `is_verified` is False if nobody published a hash to check it by."""

    name: str
    is_verified: bool


class ModelStore:
    """The models folder. Methods block and may be called from any thread.

    Installations of one model exclude each other, also between processes.
    """

    def __init__(self, root: Path | None = None, catalogue: Catalogue | None = None) -> None:
        """Use the folder `root` (default: `paths.models_root()`); it is created by the first installation."""
        self.root = root if root is not None else models_root()
        self.catalogue = catalogue if catalogue is not None else load_catalogue()
        self._assembly = Assembly(self.root, self.catalogue)

    # --- locate -------------------------------------------------------------------------------------------------------

    def path(self, name: str) -> Path:
        """Return the folder of an installed model; a `name` with a path separator is the user's own folder or file.

        Raises `InputError`: `model_unknown`, or `model_missing` with what to do.
        """
        if "/" in name or os.sep in name:
            own = Path(name).expanduser()
            if own.exists():
                return own
            raise InputError("model_missing", f"There is no model at {name}.", part="models")
        model = self.catalogue.get(name)
        if not self.is_installed(name):
            size_mb = round(model.size_bytes / 1e6)
            raise InputError(
                "model_missing",
                f"The model {name} is not installed; get it with `mynah models get {name}` ({size_mb} MB).",
                part="models",
            )
        if model.module is not None:
            return _module_folder(model.module)
        return self.root / name

    def is_installed(self, name: str) -> bool:
        """Whether the model is complete in its place (sizes only; `verify` reads the content). False if unknown."""
        model = self.catalogue.models.get(name)
        if model is None:
            return False
        if model.module is not None:
            return importlib.util.find_spec(model.module) is not None
        manifest = self.manifest(name)
        if manifest is None:
            return False
        folder = self.root / name
        return all(
            (folder / file).is_file() and (folder / file).stat().st_size == entry["size_bytes"]
            for file, entry in manifest["files"].items()
        )

    def manifest(self, name: str) -> dict[str, Any] | None:
        """Return what was recorded when `name` was installed, or None."""
        try:
            manifest = json.loads((self.root / name / MANIFEST).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return manifest if isinstance(manifest, dict) and isinstance(manifest.get("files"), dict) else None

    # --- install ------------------------------------------------------------------------------------------------------

    def install(
        self,
        name: str,
        progress: OnProgress = lambda _: None,
        cancelled: Cancelled = lambda: False,
    ) -> Path:
        """Fetch, check and place a model, from its first source that delivers; return its folder.

        An installed model is left alone; a folder without a manifest is adopted if its content is right.
        Raises `InputError` (`model_unknown`, `disk_full`), `PartFailed` (`model_unavailable`), `InstallCancelled`.
        """
        model = self.catalogue.get(name)
        with self._locked(model, progress, cancelled):
            if self.is_installed(name):
                return self.path(name)
            if model.module is not None:
                raise PartFailed(
                    "model_unavailable", f"{name} needs the Python package {model.module}; install it.", part="models"
                )
            if self._adopt(model, progress, cancelled):
                return self.root / name
            self._check_room(model)
            reasons = []
            for source in model.sources:
                try:
                    origin = self._assembly.fetch(model, source, progress, cancelled)
                except SourceFailed as failure:
                    _logger.info("source of %s failed: %s", name, failure)
                    reasons.append(str(failure))
                    continue
                self._place(model, source.files, origin, is_verified=True, progress=progress)
                return self.root / name
        raise PartFailed(
            "model_unavailable",
            f"{name} could not be fetched: {'; '.join(reasons)}. "
            "Try again later, or bring it in with `mynah models import FOLDER`.",
            part="models",
            recoverable=True,
        )

    def verify(self, name: str, cancelled: Cancelled = lambda: False) -> Verification:
        """Read an installed model and compare it with what was recorded and with the catalogue.

        Raises `InputError` (`model_unknown`, `model_missing`).
        """
        model = self.catalogue.get(name)
        if model.module is not None or not (self.root / name).is_dir():
            self.path(name)
            return Verification(name=name)
        manifest = self.manifest(name)
        if manifest is None:
            return Verification(name=name, problems=(f"{MANIFEST} is missing or broken",))
        problems = []
        for file, entry in manifest["files"].items():
            path = self.root / name / file
            if not path.is_file():
                problems.append(f"{file} is missing")
            elif sha256_of(path, cancelled=cancelled) != entry["sha256"]:
                problems.append(f"{file} is damaged (its checksum differs)")
        recorded = {file: entry.get("original_sha256", entry["sha256"]) for file, entry in manifest["files"].items()}
        known = [files for files in model.file_sets if {file.name for file in files} <= set(recorded)]
        if not any(all(f.sha256 in (None, recorded[f.name]) for f in files) for files in known):
            problems.append("its files are not those of the catalogue")
        return Verification(name=name, problems=tuple(problems))

    def import_folder(
        self,
        folder: Path,
        progress: OnProgress = lambda _: None,
        cancelled: Cancelled = lambda: False,
        only: Sequence[str] = (),
    ) -> list[Imported]:
        """Bring in every model found in `folder`: model folders, files under the hub's names, or wheels.

        `only` limits it to those names. Models that are installed are left alone and not returned.
        Raises `InputError` (`folder_missing`, `nothing_to_import`, `model_corrupt`), `InstallCancelled`.
        """
        if not folder.is_dir():
            raise InputError("folder_missing", f"There is no folder {folder}.", part="models")
        imported, found, bad = [], False, []
        for model in [self.catalogue.get(name) for name in only] or self.catalogue.models.values():
            for files, paths in offers(model, folder):
                found = True
                with self._locked(model, progress, cancelled):
                    if self.is_installed(model.name):
                        break
                    try:
                        self._assembly.bring_in(model, files, paths, progress, cancelled)
                    except SourceFailed as failure:
                        bad.append(str(failure))
                        continue
                    is_verified = all(file.sha256 is not None for file in files)
                    self._place(model, files, f"folder {folder.name}", is_verified=is_verified, progress=progress)
                    imported.append(Imported(name=model.name, is_verified=is_verified))
                    break
        if bad and not imported:
            raise InputError("model_corrupt", f"Nothing was imported: {'; '.join(bad)}.", part="models")
        if not found:
            raise InputError("nothing_to_import", f"{folder} holds no model of the catalogue.", part="models")
        return imported

    # --- steps --------------------------------------------------------------------------------------------------------

    def _locked(self, model: Model, progress: OnProgress, cancelled: Cancelled) -> AbstractContextManager[None]:
        def keep_waiting() -> None:
            progress(Progress(name=model.name, stage="waiting"))
            if cancelled():
                raise InstallCancelled(model.name)

        return file_lock(self.root / f".{model.name}.lock", keep_waiting=keep_waiting)

    def _check_room(self, model: Model) -> None:
        # The parts and the whole lie side by side while a model is put together.
        needed = 2 * model.size_bytes
        free = shutil.disk_usage(self.root).free
        if free < needed:
            raise InputError(
                "disk_full",
                f"{model.name} needs {needed // 10**6} MB in {self.root}, which has {free // 10**6} MB free.",
                part="models",
            )

    def _adopt(self, model: Model, progress: OnProgress, cancelled: Cancelled) -> bool:
        """Take a folder that is in place without a manifest, if every file has the catalogue's hash."""
        folder = self.root / model.name
        if not folder.is_dir():
            return False
        for files in model.file_sets:
            if any(file.sha256 is None or not (folder / file.name).is_file() for file in files):
                continue
            progress(Progress(name=model.name, stage="checking"))
            if all(
                mismatch(folder / file.name, file, None, cancelled) is None
                or is_patched(model, folder / file.name, file)
                for file in files
            ):
                transform(model, folder, files, progress)
                write_json(
                    folder / MANIFEST, build_manifest(self.catalogue, model, files, folder, "found in place", True)
                )
                return True
        return False

    def _place(
        self, model: Model, files: Sequence[ModelFile], origin: str, *, is_verified: bool, progress: OnProgress
    ) -> None:
        """Patch what needs it, write the manifest, and move the finished folder to its place in one step."""
        ready = self._assembly.partial(model) / "ready"
        transform(model, ready, files, progress)
        write_json(ready / MANIFEST, build_manifest(self.catalogue, model, files, ready, origin, is_verified))
        place, old = self.root / model.name, self.root / f"{model.name}.old"
        if place.exists():
            shutil.rmtree(old, ignore_errors=True)
            place.rename(old)
        ready.rename(place)
        shutil.rmtree(old, ignore_errors=True)
        shutil.rmtree(self._assembly.partial(model), ignore_errors=True)
        progress(Progress(name=model.name, stage="done", done_bytes=model.size_bytes, total_bytes=model.size_bytes))


def _module_folder(module: str) -> Path:
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise InputError("model_missing", f"The Python package {module} is not installed.", part="models")
    return Path(spec.origin).parent
