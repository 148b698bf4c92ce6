"""`mynah licenses`: what Mynah is made of, and under which licence."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from desktop.models import ModelStore

_LONG_NAMES = {
    "Apache License 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD",
    "GNU General Public License v3 or later (GPLv3+)": "GPL-3.0-or-later",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Licensed:
    """A part with its licence. `kind` is program, package or model."""

    kind: str
    name: str
    version: str
    licence: str


def licenses_main(argv: Sequence[str]) -> int:
    """Run `mynah licenses`; returns 0."""
    parser = argparse.ArgumentParser(prog="mynah licenses", description="Licences of Mynah, its packages and models.")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(list(argv))
    parts = [*packages(), *models(ModelStore())]
    if options.json:
        print(json.dumps({"parts": [asdict(part) for part in parts]}, ensure_ascii=False, indent=2))
        return 0
    width = max(len(part.name) for part in parts)
    for part in parts:
        print(f"{part.kind:8} {part.name:{width}}  {part.version:16} {part.licence}")
    return 0


def packages(root: str = "mynah") -> list[Licensed]:
    """Return `root` and every installed package it needs, directly or not, with what its metadata says."""
    found: dict[str, Licensed] = {}
    waiting = [root]
    while waiting:
        name = _canonical(waiting.pop())
        if name in found:
            continue
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # for another platform, or an extra that is not installed
        found[name] = Licensed(
            kind="program" if name == root else "package",
            name=distribution.metadata["Name"],
            version=distribution.version,
            licence=_licence_of(distribution.metadata),
        )
        waiting += _required_by(distribution)
    program, *others = sorted(found.values(), key=lambda part: (part.kind != "program", part.name.lower()))
    return [program, *others]


def models(store: ModelStore) -> Iterable[Licensed]:
    """Yield the installed models with the licences of the catalogue."""
    for model in store.catalogue.models.values():
        if store.is_installed(model.name):
            yield Licensed(kind="model", name=model.name, version="", licence=model.licence)


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _required_by(distribution: importlib.metadata.Distribution) -> list[str]:
    lines = [line for line in distribution.requires or () if not re.search(r"\bextra\s*==", line)]
    return [match[0] for line in lines if (match := re.match(r"[A-Za-z0-9._-]+", line))]


def _licence_of(metadata: importlib.metadata.PackageMetadata) -> str:
    for expression in metadata.get_all("License-Expression") or ():
        return str(expression)
    classifiers = [
        line.rsplit("::", 1)[1].strip()
        for line in metadata.get_all("Classifier") or ()
        if line.startswith("License ::") and not line.endswith("OSI Approved")
    ]
    if classifiers:
        return " / ".join(_LONG_NAMES.get(name, name) for name in classifiers)
    text = "\n".join(metadata.get_all("License") or ()).strip()
    # Some packages put the whole text of the licence there.
    first = text.splitlines()[0] if text else ""
    return _LONG_NAMES.get(first, first) if first and len(first) < 80 else "see the package"
