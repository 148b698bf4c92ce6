"""What a folder of the user's offers towards the models of the catalogue."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from desktop.model_catalogue import HubSource, Model, ModelFile, PackageSource
from desktop.model_download import wheel_matches


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedPaths:
    """Files by the names they get."""

    paths: dict[str, Path]


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedWheels:
    """Wheels of a package source."""

    source: PackageSource
    wheels: tuple[Path, ...]


Offer = OfferedPaths | OfferedWheels


def offers(model: Model, folder: Path) -> list[tuple[tuple[ModelFile, ...], Offer]]:
    """Find what in `folder` could be `model`, the best check first."""
    found: list[tuple[tuple[ModelFile, ...], Offer]] = []
    for place in (folder / model.name, folder):
        for files in model.file_sets:
            paths = {file.name: place / file.name for file in files}
            # A file that is called like everybody's (`model.bin`) and has no known hash says nothing about the model.
            is_named = place.name in {model.name, *_hub_names(model)}
            is_complete = bool(files) and all(path.is_file() for path in paths.values())
            if is_complete and (is_named or all(file.sha256 is not None for file in files)):
                found.append((files, OfferedPaths(paths=paths)))
    for source in model.sources:
        if isinstance(source, HubSource) and source.paths:
            paths = {name: folder / Path(path).name for name, path in source.paths.items()}
            if all(path.is_file() for path in paths.values()):
                found.append((source.files, OfferedPaths(paths=paths)))
        if isinstance(source, PackageSource):
            all_wheels = sorted(folder.glob("*.whl"))
            wheels = [
                next((wheel for wheel in all_wheels if wheel_matches(wheel, requirement)), None)
                for requirement in source.packages
            ]
            if None not in wheels:
                found.append((source.files, OfferedWheels(source=source, wheels=tuple(w for w in wheels if w))))
    return found


def _hub_names(model: Model) -> set[str]:
    hubs = (source for source in model.sources if isinstance(source, HubSource) and not source.paths)
    return {source.repo.split("/")[-1] for source in hubs}
