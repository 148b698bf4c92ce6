"""The catalogue of models: what exists, how big, under which licence, and where it comes from."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from orchestrator.contracts.errors import InputError

CATALOGUE_FILE = Path(__file__).with_name("model_catalogue.yaml")
KINDS = ("stt", "tts", "llm", "embedding", "turn")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """One file of an installed model. `size_bytes` and `sha256` are None where only the hub knows them."""

    name: str
    size_bytes: int | None = None
    sha256: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Base of all sources. `files` are what this source delivers, which may differ in bytes from another's."""

    files: tuple[ModelFile, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HubSource(Source):
    """A repository of the model hub. `paths` maps our file names to paths in it (default: the same name)."""

    repo: str
    revision: str = "main"
    paths: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageMember:
    """A file inside the wheel of `package`; `path` may hold `**` and `*`."""

    package: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageSource(Source):
    """Data files of Python packages. `members` of one file are concatenated in their order."""

    packages: tuple[str, ...]
    members: Mapping[str, tuple[PackageMember, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonSource(Source):
    """A model that lies inside an installed Python package."""

    module: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One entry. `languages` are ISO codes, or `multi`; `memory_mb` is what it takes when loaded."""

    name: str
    kind: str
    title: str
    languages: tuple[str, ...]
    licence: str
    size_bytes: int
    memory_mb: int
    default: bool
    transform: str | None
    files: tuple[ModelFile, ...]
    sources: tuple[Source, ...]

    @property
    def module(self) -> str | None:
        """The Python package that holds the model, or None if it is made of files."""
        return next((source.module for source in self.sources if isinstance(source, PythonSource)), None)

    @property
    def file_sets(self) -> tuple[tuple[ModelFile, ...], ...]:
        """All sets of files that make this model complete, the hash-pinned one first."""
        sets = dict.fromkeys((self.files, *(source.files for source in self.sources)))
        return tuple(sorted(sets, key=lambda files: any(file.sha256 is None for file in files)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """All models by name, and the hosts of the hub with the official one first."""

    version: int
    hubs: tuple[str, ...]
    models: Mapping[str, Model]

    def get(self, name: str) -> Model:
        """Return the entry of `name`. Raises `InputError` (`model_unknown`) with a suggestion."""
        try:
            return self.models[name]
        except KeyError:
            near = difflib.get_close_matches(name, self.models, n=1)
            hint = f"did you mean {near[0]}?" if near else "`mynah models list` shows all."
            raise InputError("model_unknown", f"There is no model {name!r}; {hint}", part="models") from None

    def defaults(self) -> tuple[Model, ...]:
        """Return the models the program needs to work out of the box."""
        return tuple(model for model in self.models.values() if model.default)


def load_catalogue(path: Path = CATALOGUE_FILE) -> Catalogue:
    """Read the catalogue. Raises `InputError` (`catalogue_broken`) if it is not well-formed."""
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
        models = [_model(entry) for entry in raw["models"]]
        catalogue = Catalogue(
            version=int(raw["version"]),
            hubs=tuple(str(hub).rstrip("/") for hub in raw["hubs"]),
            models={model.name: model for model in models},
        )
    except (OSError, yaml.YAMLError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError("catalogue_broken", f"{path.name} can't be read: {error}", part="models") from error
    if len(catalogue.models) != len(models):
        raise InputError("catalogue_broken", f"{path.name} has a name twice.", part="models")
    return catalogue


def _model(raw: Mapping[str, Any]) -> Model:
    files = _files(raw["files"])
    if raw["kind"] not in KINDS:
        raise ValueError(f"{raw['name']}: kind {raw['kind']!r} is none of {', '.join(KINDS)}")
    return Model(
        name=str(raw["name"]),
        kind=str(raw["kind"]),
        title=str(raw["title"]),
        languages=tuple(raw["languages"]),
        licence=str(raw["licence"]),
        size_bytes=int(raw["size_bytes"]),
        memory_mb=int(raw["memory_mb"]),
        default=bool(raw.get("default", False)),
        transform=raw.get("transform"),
        files=files,
        sources=tuple(_source(source, files) for source in raw["sources"]),
    )


def _files(raw: Sequence[Mapping[str, Any]]) -> tuple[ModelFile, ...]:
    return tuple(
        ModelFile(name=str(item["name"]), size_bytes=item.get("size_bytes"), sha256=item["sha256"]) for item in raw
    )


def _source(raw: Mapping[str, Any], model_files: tuple[ModelFile, ...]) -> Source:
    files = _files(raw["files"]) if "files" in raw else model_files
    match raw["type"]:
        case "hub":
            return HubSource(
                files=files, repo=raw["repo"], revision=raw.get("revision", "main"), paths=dict(raw.get("paths", {}))
            )
        case "package":
            members = {name: tuple(_member(part) for part in parts) for name, parts in raw["members"].items()}
            return PackageSource(files=files, packages=tuple(raw["packages"]), members=members)
        case "python":
            return PythonSource(files=(), module=raw["module"])
        case other:
            raise ValueError(f"source type {other!r} is none of hub, package, python")


def _member(raw: str) -> PackageMember:
    package, path = raw.split("!", 1)
    return PackageMember(package=package, path=path)
