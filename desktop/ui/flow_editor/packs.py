"""Bringing flow packs in and out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from desktop.flow_files import Saved
from desktop.flow_pack import FlowPack, export_pack, read_pack

if TYPE_CHECKING:
    from desktop.ui.flow_editor.buffers import Buffers
    from desktop.ui.flow_editor.panel import FlowEditorPanel
    from desktop.ui.flow_editor.panel_view import PanelView
    from desktop.ui.flow_editor.worker import FlowWorker


class Packs(QObject):
    """Reads and writes packs for one panel."""

    def __init__(self, worker: FlowWorker, buffers: Buffers, view: PanelView, panel: FlowEditorPanel) -> None:
        """Work on the worker's thread and speak through `view`."""
        super().__init__(panel)
        self._worker = worker
        self._buffers = buffers
        self._view = view
        self._panel = panel

    def bring_in(self, path: str) -> None:
        """Read a flow pack; asks before it replaces files of the user's, unsaved ones included."""

        def done(pack: FlowPack) -> None:
            unsaved = [b.name for b in self._buffers.modified() if b.name in pack.texts]
            clashes = dict.fromkeys([*pack.clashes, *unsaved])
            if not clashes:
                self._install(pack)
                return
            self._view.banner.say(
                "flows.banner.clash", ("flows.banner.replace", lambda: self._install(pack)),
                ("flows.banner.cancel", self._panel.show_state), is_warning=True, names=", ".join(clashes),
            )  # fmt: skip

        self._worker.run(lambda files: read_pack(Path(path), files), done)

    def export(self, path: str) -> None:
        """Write the user's files into a zip file."""

        def done(count: int) -> None:
            self._view.say("flows.status.exported", count=count)

        self._worker.run(lambda files: export_pack(files, Path(path)), done)

    def _install(self, pack: FlowPack) -> None:
        def done(saved: Saved) -> None:
            key = "flows.status.imported" if saved.state == "saved" else "flows.status.imported_drafts"
            self._view.say(key, count=len(pack.texts))
            if saved.reloads:
                self._panel.layers_changed.emit()
            self._panel.show_fresh(tuple(pack.texts))

        self._worker.run(lambda files: files.save_all(pack.texts), done)
