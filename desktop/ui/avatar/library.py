"""The characters there are: packs that ship and packs of the user, by the name of their folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from desktop.ui.avatar.pack import PACK_FILE, AvatarPack, load_pack
from orchestrator.contracts.errors import InputError

DEFAULT = "mynah"
FOLDER = "avatars"
"""Where packs are: below the assets and below the data folder."""

_MOST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class AvatarChoice:
    """A pack that can be chosen by `id`. `problem`, of the kind `code`, says why it can't be shown, empty if it can."""

    id: str
    names: Mapping[str, str] = field(default_factory=dict)
    is_shipped: bool
    licence: str = ""
    problem: str = ""
    code: str = ""

    def name(self, language: str) -> str:
        """Return what the character is called in `language`, else in any, else its folder's name."""
        return self.names.get(language) or next(iter(self.names.values()), self.id)


class AvatarLibrary:
    """Finds packs anew at every call: a folder that was put there is there. Any thread."""

    def __init__(self, shipped: Path, user: Path | None = None) -> None:
        """Look in two folders of packs; the user's need not exist and comes first."""
        self._shipped = shipped
        self.user = user

    def choices(self) -> tuple[AvatarChoice, ...]:
        """Return all packs, shipped ones first; a pack of the user's takes the place of a shipped one of its name."""
        found: dict[str, AvatarChoice] = {}
        for folder, is_shipped in ((self._shipped, True), (self.user, False)):
            for pack in _folders(folder):
                found[pack.name] = _look_at(pack, is_shipped=is_shipped)
        return tuple(found.values())

    def load(self, avatar_id: str | None) -> AvatarPack:
        """Return the pack called `avatar_id`; None is the bird.

        Raises `InputError`: avatar_unknown, or avatar_invalid with the place of the fault.
        """
        wanted = avatar_id or DEFAULT
        for folder in (self.user, self._shipped):
            if folder is not None and _is_name(wanted) and (folder / wanted / PACK_FILE).is_file():
                return load_pack(folder / wanted)
        known = ", ".join(choice.id for choice in self.choices())
        raise InputError("avatar_unknown", f"there is no avatar pack {wanted!r}; there are: {known}", part="avatar")


def _is_name(text: str) -> bool:
    """Whether `text` names a folder and does not lead elsewhere."""
    return bool(text) and len(text) < 120 and not any(c in text for c in "/\\:\0") and not text.startswith(".")


def _folders(folder: Path | None) -> list[Path]:
    if folder is None:
        return []
    try:
        found = sorted(p for p in folder.iterdir() if _is_name(p.name) and (p / PACK_FILE).is_file())
    except OSError:
        return []
    return found[:_MOST]


def _look_at(folder: Path, *, is_shipped: bool) -> AvatarChoice:
    try:
        pack = load_pack(folder)
    except InputError as error:
        return AvatarChoice(id=folder.name, is_shipped=is_shipped, problem=error.message, code=error.code)
    return AvatarChoice(id=folder.name, names=pack.names, is_shipped=is_shipped, licence=pack.licence)
