"""Bringing flow packs in and out. Nothing is taken that was not shown and ticked."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from desktop.flow_check import kind_of
from desktop.flow_files import FlowFiles, Saved
from desktop.flow_pack import FlowPack, export_pack, own_files, read_pack
from desktop.ui.flow_editor.pack_choice import PackChoice, PackEntry

if TYPE_CHECKING:
    from desktop.ui.flow_editor.buffers import Buffers
    from desktop.ui.flow_editor.panel import FlowEditorPanel
    from desktop.ui.flow_editor.panel_view import PanelView
    from desktop.ui.flow_editor.worker import FlowWorker
    from desktop.ui.i18n import Translator
    from desktop.ui.theme import Theme


class Packs(QObject):
    """Reads and writes packs for one panel."""

    def __init__(
        self,
        worker: FlowWorker,
        buffers: Buffers,
        view: PanelView,
        panel: FlowEditorPanel,
        theme: Theme,
        translator: Translator,
    ) -> None:
        """Work on the worker's thread and speak through `view`."""
        super().__init__(panel)
        self._worker = worker
        self._buffers = buffers
        self._view = view
        self._panel = panel
        self._theme = theme
        self._translator = translator
        self._choice: PackChoice | None = None
        self._pack: FlowPack | None = None

    @property
    def choice(self) -> PackChoice:
        """The dialog that asks; made on first use."""
        if self._choice is None:
            made = self._choice = PackChoice(self._theme, self._translator)
            made.setParent(self._panel, made.windowFlags())
            made.chosen.connect(self._on_chosen)
            made.rejected.connect(self._on_rejected)
        return self._choice

    def bring_in(self, path: str) -> None:
        """Read a flow pack, show what it holds, and take what is ticked then."""

        def done(pack: FlowPack) -> None:
            unsaved = {b.name for b in self._buffers.modified()}
            notes = {name: "unsaved" if name in unsaved else "replaces" for name in (*pack.clashes, *unsaved)}
            self._pack = pack
            entries = [PackEntry(name=n, kind=kind_of(n), note=notes.get(n)) for n in pack.texts]
            self.choice.ask("import", Path(path).name, entries)

        self._worker.run(lambda files: read_pack(Path(path), files), done)

    def ask_export(self) -> None:
        """Show the user's files, then ask where the pack of those that are ticked goes."""

        def done(names: tuple[str, ...]) -> None:
            self._pack = None
            self.choice.ask("export", "", [PackEntry(name=n, kind=kind_of(n)) for n in names])

        self._worker.run(own_files, done)

    def export(self, path: str, names: tuple[str, ...]) -> None:
        """Write these files of the user's into a zip file."""

        def done(count: int) -> None:
            self._view.say("flows.status.exported", count=count)

        self._worker.run(lambda files: export_pack(files, Path(path), names), done)

    def _on_chosen(self, names: tuple[str, ...]) -> None:
        pack, self._pack = self._pack, None
        if pack is None:
            self._view.ask_export_path(lambda path: self.export(path, names))
        else:
            self._install({name: pack.texts[name] for name in names})

    def _on_rejected(self) -> None:
        self._pack = None

    def _install(self, texts: dict[str, str]) -> None:
        lost = {b.name: b.text for b in self._buffers.modified() if b.name in texts and b.text.strip()}

        def done(saved: Saved) -> None:
            key = "flows.status.imported" if saved.state == "saved" else "flows.status.imported_drafts"
            self._view.say(key, count=len(texts))
            if saved.reloads:
                self._panel.layers_changed.emit()
            self._panel.show_fresh(tuple(texts))

        self._worker.run(partial(_take, texts, lost), done)


def _take(texts: dict[str, str], lost: dict[str, str], files: FlowFiles) -> Saved:
    """Save `texts`, with copies kept of the unsaved ones that they replace."""
    for name, text in lost.items():
        files.set_aside(name, text)
    return files.save_all(texts)
