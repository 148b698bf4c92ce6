"""The files of the user's flow layer: what there is, reading, saving without losing anything, drafts of faulty ones."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from desktop.flow_check import TESTS_FOLDER, Checked, FlowCheck, kind_of, layer_names
from desktop.flow_folders import FlowFolders, unwritable, write_atomically
from orchestrator.contracts.errors import InputError
from orchestrator.flows.source import MAX_CHARS, Document, Problem

DRAFTS_FOLDER = ".drafts"
_MAX_BYTES = 4 * MAX_CHARS
_MOST_COPIES = 20
"""Copies kept of each file; then the oldest makes room."""
_NAME = re.compile(rf"(?:{TESTS_FOLDER}/)?[^\W_][\w\- ]{{0,79}}\.ya?ml")
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowFile:
    """A file of one of the layers. `layer` is user or shipped; `kind` flows, tests, policy or persona."""

    name: str
    layer: str
    kind: str
    has_draft: bool = False

    @property
    def is_editable(self) -> bool:
        """Whether it may be changed in place."""
        return self.layer == "user"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileText:
    """A file's text. `stamp` identifies what is on disk (None: no file); `is_draft`: the text is the kept draft."""

    text: str
    stamp: str | None
    is_draft: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """What saving came to.

    `state`: saved; draft (faulty: kept aside, the former file stays in force); conflict (someone else changed the
    file: nothing was written). `reloads` says whether the program can read the layers again as they are now.
    """

    state: str
    stamp: str | None
    problems: tuple[Problem, ...] = ()
    reloads: bool = False


def check_name(name: str) -> str:
    """Return the name if a file of the user's layer may be called so; raises `InputError` flow_name otherwise."""
    stem = name.rpartition("/")[2].partition(".")[0]
    if not _NAME.fullmatch(name) or _RESERVED.fullmatch(stem):
        raise InputError("flow_name", f"{name[:100]!r} can't be a file name: letters, digits, - and _, ending in .yml")
    return name


class FlowFiles:
    """The user's layer on disk. Not for two threads at once."""

    def __init__(self, folders: FlowFolders, check: FlowCheck | None = None) -> None:
        """Touch nothing yet; the user's folder is made by the first save."""
        self.folders = folders
        self._check = check or FlowCheck(folders)

    def files(self) -> tuple[FlowFile, ...]:
        """Return the user's files, drafts of new ones included, then what ships."""
        user, drafts = self.folders.user, self.folders.user / DRAFTS_FOLDER
        drafted = {p.relative_to(drafts).as_posix().removesuffix(".draft") for p in drafts.rglob("*.draft")}
        names = dict.fromkeys([*(layer_names(user) if user.is_dir() else ()), *sorted(drafted)])
        own = [FlowFile(name=n, layer="user", kind=kind_of(n), has_draft=n in drafted) for n in names if _is_name(n)]
        shipped = [FlowFile(name=n, layer="shipped", kind=kind_of(n)) for n in layer_names(self.folders.shipped)]
        return (*own, *shipped)

    def read(self, name: str, layer: str = "user", *, from_draft: bool = True) -> FileText:
        """Return a file's text, or its draft's if there is one and it is wanted.

        Raises `InputError` flow_unreadable.
        """
        if layer == "shipped":
            if name not in layer_names(self.folders.shipped):
                raise InputError("flow_unreadable", f"{name[:100]!r} does not ship with Mynah")
            return FileText(text=_read(self.folders.shipped / name), stamp=self.stamp(name, layer))
        check_name(name)
        draft = self._draft(name)
        stamp = self.stamp(name)
        if from_draft and draft.is_file():
            return FileText(text=_read(draft), stamp=stamp, is_draft=True)
        return FileText(text=_read(self.folders.user / name), stamp=stamp)

    def stamp(self, name: str, layer: str = "user") -> str | None:
        """Return what tells one state of a file from another; None when there is no file."""
        folder = self.folders.shipped if layer == "shipped" else self.folders.user
        try:
            return hashlib.sha256((folder / name).read_bytes()).hexdigest()
        except OSError:
            return None

    def copy_to_edit(self, name: str) -> str:
        """Copy a shipped file into the user's layer, unless it is there; returns its name there.

        Raises `InputError` flow_unwritable or flow_unreadable.
        """
        if not (self.folders.user / check_name(name)).exists():
            self._write(name, self.read(name, "shipped").text)
        return name

    def save(self, name: str, text: str, *, stamp: str | None, force: bool = False) -> Saved:
        """Check `text`; write it (the former file stays as NAME.bak), or keep it as a draft when it is faulty.

        `stamp` is the state the text was made from; `force` overwrites what another program wrote meanwhile.
        Faulty means: errors in this file, or errors that it causes in others. Raises `InputError` flow_unwritable.
        """
        check_name(name)
        now = self.stamp(name)
        if now != stamp and not force:
            return Saved(state="conflict", stamp=now)
        text = text if not text or text.endswith("\n") else text + "\n"
        checked = self._check.run({name: text})
        faults = checked.errors(name)
        if checked.errors() and not faults:
            before = {_identity(p) for p in self._check.run().errors()}
            faults = tuple(p for p in checked.errors() if _identity(p) not in before)
        if faults or len(text) > MAX_CHARS:
            self._write_draft(name, text)
            return Saved(state="draft", stamp=now, problems=faults)
        self._write(name, text)
        self._draft(name).unlink(missing_ok=True)
        return Saved(state="saved", stamp=self.stamp(name), problems=checked.problems, reloads=not checked.errors())

    def save_all(self, texts: Mapping[str, str]) -> Saved:
        """Write several files at once (a pack): all of them, or all as drafts if together they have faults."""
        for name in texts:
            check_name(name)
        checked = self._check.run(texts)
        if any(p.file in texts for p in checked.errors()):
            for name, text in texts.items():
                self._write_draft(name, text)
            return Saved(state="draft", stamp=None, problems=checked.errors())
        for name, text in texts.items():
            self._write(name, text)
        return Saved(state="saved", stamp=None, problems=checked.problems, reloads=not checked.errors())

    def keep_draft(self, name: str, text: str) -> None:
        """Keep an unsaved text for the next time; raises `InputError` flow_unwritable."""
        self._write_draft(check_name(name), text)

    def discard_draft(self, name: str) -> None:
        """Forget the draft; the file itself stays."""
        self._draft(check_name(name)).unlink(missing_ok=True)

    def set_aside(self, name: str, text: str) -> Path:
        """Keep a copy of a text that is about to be replaced, beside those kept before; returns where.

        Raises `InputError` flow_unwritable.
        """
        folder = self.folders.user / DRAFTS_FOLDER
        for number in range(1, _MOST_COPIES + 1):
            path = folder / f"{check_name(name)}.{number}.copy"
            if not path.exists():
                break
            if number == _MOST_COPIES:
                path = min(folder.glob(f"{name}.*.copy"), key=lambda p: p.stat().st_mtime)
        write_atomically(path, text)
        return path

    def checked(self, texts: Mapping[str, str] | None = None) -> Checked:
        """Check the layers with `texts` over what is on disk."""
        return self._check.run(texts)

    def parsed(self, label: str, text: str) -> Document:
        """Return the tree of a text; `label` is what its problems call the file."""
        return self._check.parse(label, text)

    # --- writing ---------------------------------------------------------------------------------------

    def _draft(self, name: str) -> Path:
        return self.folders.user / DRAFTS_FOLDER / f"{name}.draft"

    def _write_draft(self, name: str, text: str) -> None:
        write_atomically(self._draft(name), text)

    def _write(self, name: str, text: str) -> None:
        path = self.folders.user / name
        if path.is_file():
            try:
                shutil.copy2(path, path.with_name(path.name + ".bak"))
            except OSError as error:
                raise unwritable(path, error) from error
        write_atomically(path, text)


def _read(path: Path) -> str:
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise InputError("flow_unreadable", f"{path.name} is too long to edit", part="flows")
        return path.read_bytes().decode("utf-8").replace("\r\n", "\n")
    except OSError as error:
        raise InputError("flow_unreadable", f"{path.name} can't be read: {error.strerror}", part="flows") from error
    except UnicodeDecodeError as error:
        raise InputError("flow_unreadable", f"{path.name} is no UTF-8 text", part="flows") from error


def _is_name(name: str) -> bool:
    try:
        check_name(name)
    except InputError:
        return False
    return True


def _identity(problem: Problem) -> tuple[str, str, str]:
    return problem.file, problem.code, problem.message
