"""The character of the window: which packs there are, which one is shown, and the menu that chooses among them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, QUrl, Signal
from PySide6.QtGui import QAction, QActionGroup, QDesktopServices
from PySide6.QtWidgets import QFileDialog, QMenu

from desktop.bridge import Bridge
from desktop.ui.avatar.importing import import_pack
from desktop.ui.avatar.library import DEFAULT, AvatarChoice, AvatarLibrary
from desktop.ui.avatar.pack import AvatarPack
from desktop.ui.i18n import Translator
from desktop.work_queue import WorkQueue
from orchestrator.contracts.errors import InputError
from orchestrator.contracts.views import NoticeView


class AvatarInWindow(QObject):
    """Reads packs on the thread “avatars”; a pack that can't be shown becomes a notice and leaves the old one."""

    chosen = Signal(str)
    shown = Signal(object)
    found = Signal(object)

    def __init__(self, menu: QMenu, bridge: Bridge, translator: Translator, library: AvatarLibrary, now: str) -> None:
        """Fill `menu` whenever it is opened; the pack `now` is shown already."""
        super().__init__(menu)
        self._menu = menu
        self._bridge = bridge
        self._translator = translator
        self.library = library
        self.id = now
        self.choices: tuple[AvatarChoice, ...] = ()
        self._group = QActionGroup(self)
        self._work = WorkQueue("avatars")
        self._wanted = now
        self._list()
        menu.aboutToShow.connect(self.look_again)
        translator.changed.connect(self._list)

    def look_again(self) -> None:
        """Read the folders; `found` and the menu follow soon."""
        library = self.library
        self._add(lambda: self._bridge.call(_bound(self._take_choices, library.choices())))

    def show(self, avatar_id: str | None) -> None:
        """Show the pack called so, None is the bird; `shown` follows soon, or a notice."""
        wanted = avatar_id or DEFAULT
        if wanted == self._wanted:
            return
        self._wanted = wanted
        library = self.library

        def work() -> None:
            try:
                pack = library.load(wanted)
            except InputError as error:
                self._bridge.call(_bound(self._refuse, error))
            else:
                self._bridge.call(_bound(self._take, wanted, pack))

        self._add(work)

    def refuse(self, error: InputError) -> None:
        """Say why a pack can't be shown."""
        self._refuse(error)

    def close(self) -> None:
        """End the thread."""
        self._work.close()

    def _add(self, work: Callable[[], object]) -> None:
        self._work.add(lambda: (work(), None)[1])

    def _take(self, avatar_id: str, pack: AvatarPack) -> None:
        if avatar_id == self._wanted:
            self.id = avatar_id
            self.shown.emit(pack)
            self._list()

    def _refuse(self, error: InputError) -> None:
        self._wanted = self.id
        self._bridge.show(NoticeView(code=error.code, text=error.message, severity="warning"))
        self._list()

    def _take_choices(self, choices: tuple[AvatarChoice, ...]) -> None:
        self.choices = choices
        self._list()
        self.found.emit(choices)

    def _list(self) -> None:
        """Write the menu anew: one line for each pack, then the way to the user's folder."""
        menu = self._menu
        for action in menu.actions():
            menu.removeAction(action)
            action.setParent(None)
            action.deleteLater()
        self._group = QActionGroup(self)
        language = self._translator.language
        for choice in self.choices:
            action = QAction(choice.name(language).replace("&", "&&"), menu)
            action.setObjectName(f"avatarAction_{choice.id}")
            action.setCheckable(True)
            action.setChecked(choice.id == self.id)
            action.setEnabled(not choice.problem)
            if choice.problem:
                action.setText(self._translator.text("menu.avatar.broken", name=choice.id).replace("&", "&&"))
                action.setToolTip(self._translator.fault(choice.code, choice.problem))
            action.triggered.connect(lambda _=False, wanted=choice.id: self.chosen.emit(wanted))
            self._group.addAction(action)
            menu.addAction(action)
        if self.library.user is not None:
            menu.addSeparator()
            for name, key, slot in (
                ("avatarImportAction", "menu.avatar.import", self._on_import_asked),
                ("avatarFolderAction", "menu.avatar.folder", self._on_folder_asked),
            ):
                action = QAction(self._translator.text(key), menu)
                action.setObjectName(name)
                action.triggered.connect(slot)
                menu.addAction(action)

    def take_in(self, source: Path) -> None:
        """Import the zip file `source` and choose what is in it; a fault becomes a notice."""
        user = self.library.user
        if user is None:
            return

        def work() -> None:
            try:
                name = import_pack(source, user)
            except InputError as error:
                self._bridge.call(_bound(self._refuse, error))
            else:
                self._bridge.call(_bound(self.chosen.emit, name))

        self._add(work)

    def _on_import_asked(self) -> None:
        text = self._translator.text
        name, _ = QFileDialog.getOpenFileName(None, text("menu.avatar.import"), "", text("menu.avatar.filter"))
        if name:
            self.take_in(Path(name))

    def _on_folder_asked(self) -> None:
        folder = self.library.user
        if folder is None:
            return
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            self._refuse(InputError("avatar_folder", f"{folder} can't be made: {error.strerror}", part="avatar"))
            return
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder)))


def _bound(function: Callable[..., None], *arguments: object) -> Callable[[], None]:
    return lambda: function(*arguments)
