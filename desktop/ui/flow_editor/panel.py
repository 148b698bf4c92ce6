"""The flow editor: what belongs together when a file is opened, changed, checked, saved and tried."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path

from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QHideEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QWidget

from desktop.faults import Fault
from desktop.flow_files import FileText, FlowFile, FlowFiles, Saved
from desktop.flow_folders import FlowFolders
from desktop.try_out import TryOut, TryOutListener
from desktop.ui.flow_editor.buffers import Buffer, Buffers, Key
from desktop.ui.flow_editor.checks import Checks
from desktop.ui.flow_editor.fixes import Fixes
from desktop.ui.flow_editor.outline import GraphNode
from desktop.ui.flow_editor.packs import Packs
from desktop.ui.flow_editor.panel_view import PanelView
from desktop.ui.flow_editor.parts import PanelParts
from desktop.ui.flow_editor.templates import insert_template
from desktop.ui.flow_editor.try_pane import MakeTryOut, TryOutPort
from desktop.ui.flow_editor.worker import FlowWorker
from desktop.ui.i18n import Translator
from desktop.ui.theme import Theme
from orchestrator.flows.source import Problem

_POLL_MS = 2000
_NEW_FILE, _NEW_TESTS = "my_flows", "tests/my_tests"
_TEST_TEXT = """\
tests:
  - name: what is tested
    turns:
      - user: hello
        expect: {active_flow: null}
"""


def real_try_out(folders: FlowFolders, listener: TryOutListener) -> TryOut:
    """Return a try-out with the local embedding model."""
    return TryOut(folders, listener)


class FlowEditorPanel(QWidget):
    """Edits the user's layer. `layers_changed`: something was saved that the program can read again."""

    layers_changed = Signal()
    title_changed = Signal(str)

    def __init__(
        self,
        folders: FlowFolders,
        theme: Theme,
        translator: Translator,
        *,
        make_try_out: MakeTryOut = real_try_out,
        parts: PanelParts | None = None,
    ) -> None:
        """Build the widgets, but for `parts` that are made; files are read when the panel is shown."""
        super().__init__()
        self.setObjectName("flowEditor")
        self._theme = theme
        self._translator = translator
        self._worker = FlowWorker(FlowFiles(folders), self)
        self._try_out = TryOutPort(folders, make_try_out, self)
        self._buffers = Buffers(theme, self)
        self._current: Buffer | None = None
        self._files: tuple[FlowFile, ...] = ()
        self._checks = Checks(self, folders)
        self._is_listed = False
        self._is_closed = False
        self._wanted: Key | None = None
        made = parts or PanelParts(theme, translator)
        self.view = PanelView(self, theme, translator, self._checks.complete, self._try_out, self._try_texts, made)
        self.fixes = Fixes(self)
        self.packs = Packs(self._worker, self._buffers, self.view, self, theme, translator)
        self._poll_timer = QTimer(self)
        self._poll_timer.setInterval(_POLL_MS)
        self._poll_timer.timeout.connect(self._poll)
        self._connect()
        if parts is None:
            self.dress()

    def dress(self) -> None:
        """Take the colours of the theme, if it has not yet: before it is shown."""
        self.view.dress()

    def _connect(self) -> None:
        view = self.view
        view.files.file_chosen.connect(self.open_file)
        view.outline.line_chosen.connect(self._on_line_chosen)
        view.edit.place_changed.connect(self._checks.on_place_changed)
        view.edit.fix_asked.connect(self.fixes.fix_here)
        view.problems.problem_chosen.connect(self.fixes.go_to)
        view.problems.fix_chosen.connect(self.fixes.apply)
        view.graph.step_chosen.connect(self._on_step_chosen)
        view.try_pane.step_reached.connect(self._checks.show_tried)
        view.tests_pane.test_chosen.connect(self._on_test_chosen)
        view.template_chosen.connect(self.add_template)
        view.file_asked.connect(self.new_file)
        view.save_asked.connect(self.save)
        view.copy_asked.connect(self.copy_to_edit)
        view.tests_asked.connect(self.run_tests)
        view.import_chosen.connect(self.packs.bring_in)
        view.export_asked.connect(self.packs.ask_export)
        view.discard_asked.connect(self.discard_draft)
        view.problem_step_asked.connect(self.fixes.go_to_next)
        self._worker.failed.connect(self._on_failed)
        self._theme.changed.connect(self._buffers.restyle)
        self._translator.changed.connect(self.show_state)

    # --- for the window --------------------------------------------------------------------------------

    @property
    def current(self) -> Buffer | None:
        """The file that is open, or None."""
        return self._current

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What the last check found, of the open file first."""
        return self._checks.problems

    @property
    def file_keys(self) -> frozenset[Key]:
        """Layer and name of everything that can be opened."""
        return frozenset({(f.layer, f.name) for f in self._files} | {b.key for b in self._buffers.modified()})

    @property
    def is_checked(self) -> bool:
        """Whether the problems in sight are those of the text in sight."""
        return self._checks.is_done and self._current is not None

    @property
    def checks(self) -> Checks:
        """What is known of the open text."""
        return self._checks

    @property
    def buffers(self) -> Buffers:
        """The texts that are open."""
        return self._buffers

    @property
    def worker(self) -> FlowWorker:
        """The thread of the files."""
        return self._worker

    def show_running_step(self, flow: str | None, step: str | None) -> None:
        """Light the step that the real conversation is at; None puts the light out."""
        self._checks.show_running(flow, step)

    def place(self) -> dict[str, str]:
        """Return which file is open, to be opened again at the next start."""
        return {"layer": self._current.layer, "name": self._current.name} if self._current is not None else {}

    def restore_place(self, place: Mapping[str, object]) -> None:
        """Open the file of `place` when the panel is shown."""
        layer, name = place.get("layer"), place.get("name")
        if layer in ("user", "shipped") and isinstance(name, str):
            self._wanted = str(layer), name

    def close_down(self) -> None:
        """Keep unsaved texts as drafts and end the threads. The panel can't be used any more."""
        if self._is_closed:
            return
        self._is_closed = True
        self._poll_timer.stop()
        self._checks.close()
        for buffer in self._buffers.modified():
            self._worker.run(partial(_keep_draft, buffer.name, buffer.text), lambda _: None)
        self._try_out.stop()
        self._worker.stop()

    def showEvent(self, event: QShowEvent) -> None:
        """Read what there is."""
        super().showEvent(event)
        self._poll_timer.start()
        self._poll()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Show what there is room for."""
        super().resizeEvent(event)
        self.view.fit(self.width())

    def hideEvent(self, event: QHideEvent) -> None:
        """Look at the disk no more while hidden."""
        self._poll_timer.stop()
        super().hideEvent(event)

    # --- files -----------------------------------------------------------------------------------------

    def open_file(self, layer: str, name: str, then: Callable[[], None] | None = None) -> None:
        """Show a file, then call `then`."""
        found = self._buffers.get((layer, name))
        if found is not None:
            self._show_buffer(found)
            if then is not None:
                then()
            return

        def put(text: FileText) -> None:
            self._show_buffer(self._buffers.get((layer, name)) or self._buffers.put(layer, name, text))
            if then is not None:
                then()

        self._worker.run(lambda files: files.read(name, layer), put)

    def new_file(self, kind: str = "flows") -> Buffer:
        """Open a new file; it is on disk once it is saved. `kind` is flows or tests."""
        stem, text = (_NEW_TESTS, _TEST_TEXT) if kind == "tests" else (_NEW_FILE, "")
        taken = {f.name for f in self._files if f.layer == "user"} | {n for _, n in self._buffers_keys()}
        number, name = 1, f"{stem}.yml"
        while name in taken:
            number += 1
            name = f"{stem}_{number}.yml"
        buffer = self._buffers.put("user", name, FileText(text=text, stamp=None))
        buffer.document.setModified(True)
        self._show_buffer(buffer)
        return buffer

    def _buffers_keys(self) -> list[Key]:
        return [b.key for b in self._buffers.modified()]

    def copy_to_edit(self) -> None:
        """Copy the shipped file in sight into the user's layer and open the copy."""
        buffer = self._current
        if buffer is None or buffer.is_editable:
            return
        self._worker.run(lambda files: files.copy_to_edit(buffer.name), lambda name: self.open_file("user", name))
        self._poll()

    def save(self, *, force: bool = False) -> None:
        """Save the open file; a faulty one becomes a draft."""
        buffer = self._current
        if buffer is None or not buffer.is_editable:
            return
        text, force = buffer.text, force or buffer.is_forced
        self.view.say("flows.status.saving")

        def done(saved: Saved) -> None:
            self._on_saved(buffer, text, saved)

        self._worker.run(lambda files: files.save(buffer.name, text, stamp=buffer.stamp, force=force), done)

    def _on_saved(self, buffer: Buffer, text: str, saved: Saved) -> None:
        if saved.state == "conflict":
            buffer.is_conflict = True
            self.view.say("flows.status.conflict")
        else:
            buffer.stamp, buffer.is_draft = saved.stamp, saved.state == "draft"
            buffer.is_forced = buffer.is_conflict = False
            if buffer.text == text:
                buffer.document.setModified(False)
            if saved.state == "draft":
                self.view.say("flows.status.draft", count=len(saved.problems))
            else:
                self.view.say(
                    "flows.status.saved" if saved.reloads else "flows.status.saved_not_used", name=buffer.name
                )
        if saved.state == "saved" and saved.reloads:
            self.layers_changed.emit()
        self._poll()
        self.show_state()
        self._checks.ask()

    def discard_draft(self) -> None:
        """Forget the draft and go back to the file in force; a file that was only a draft is closed."""
        buffer = self._current
        if buffer is None or not buffer.is_editable:
            return
        self._worker.run(partial(_take_back, buffer.name, self._own_text(buffer)), partial(self._reopen, buffer))

    def _own_text(self, buffer: Buffer) -> str | None:
        """Return the text if it stands nowhere else, so that a copy is to be kept."""
        return buffer.text if (buffer.is_unsaved or buffer.is_draft) and buffer.text.strip() else None

    def _reopen(self, buffer: Buffer, kept: Path | None = None, *, is_told: bool = True) -> None:
        """Show what is on disk; `kept` is the copy of the text that it replaces."""
        if buffer.stamp is None:
            self._leave(buffer)
            if kept is not None:
                self.view.say("flows.status.closed_kept", name=buffer.name, path=kept)
            return

        def put(text: FileText) -> None:
            self._show_buffer(self._buffers.put(buffer.layer, buffer.name, text))
            if kept is not None:
                self.view.say("flows.status.loaded_kept", name=buffer.name, path=kept)
            elif is_told:
                self.view.say("flows.status.loaded", name=buffer.name)

        self._worker.run(lambda files: files.read(buffer.name, buffer.layer), put)

    def _leave(self, buffer: Buffer) -> None:
        if self._current is buffer:
            self._current = None
            self.view.show_nothing()
        self._buffers.drop(buffer.key)
        self._poll()
        self.show_state()

    def _poll(self) -> None:
        """Look at the disk: what files there are, and whether another program changed the open one."""
        buffer = self._current
        key = buffer.key if buffer is not None else None

        def look(files: FlowFiles) -> tuple[tuple[FlowFile, ...], str | None]:
            return files.files(), files.stamp(key[1], key[0]) if key is not None else None

        def done(found: tuple[tuple[FlowFile, ...], str | None]) -> None:
            self._on_polled(found[0], key, found[1])

        self._worker.run(look, done, key="poll")

    def _on_polled(self, files: tuple[FlowFile, ...], key: Key | None, stamp: str | None) -> None:
        is_first, self._is_listed = not self._is_listed, True
        if files != self._files or is_first:
            self._files = files
            self.show_state()
        buffer = self._current
        if is_first and buffer is None:
            self._open_something()
        elif buffer is not None and buffer.key == key and stamp != buffer.stamp and not buffer.is_forced:
            if stamp is not None and not buffer.is_unsaved and not buffer.is_draft:
                self._reopen(buffer)
            elif not buffer.is_conflict:
                buffer.is_conflict = True
                self.show_state()

    def _open_something(self) -> None:
        known = {(f.layer, f.name) for f in self._files}
        own = [(f.layer, f.name) for f in self._files if f.layer == "user"]
        wanted = self._wanted if self._wanted in known else None
        if wanted is None and own:
            wanted = own[0]
        if wanted is not None:
            self.open_file(*wanted)

    def show_fresh(self, names: Collection[str]) -> None:
        """Read files again that came from outside, and show the first of them."""
        for name in names:
            found = self._buffers.get(("user", name))
            if found is not None and found is not self._current:
                self._buffers.drop(found.key)
        self._poll()
        first = next(iter(names))
        current = self._buffers.get(("user", first))
        if current is not None:
            self._load_from_disk(current, is_told=False)
        else:
            self.open_file("user", first)

    # --- the text --------------------------------------------------------------------------------------

    def _show_buffer(self, buffer: Buffer) -> None:
        edit, former = self.view.edit, self._current
        if former is buffer:
            self.show_state()
            self._checks.ask()
            return
        if former is not None:
            former.place, former.scroll = edit.textCursor().position(), edit.verticalScrollBar().value()
            former.document.contentsChanged.disconnect(self._checks.ask)
            former.document.modificationChanged.disconnect(self._on_modified)
        self._current = buffer
        self.view.show_document(buffer)
        buffer.document.contentsChanged.connect(self._checks.ask)
        buffer.document.modificationChanged.connect(self._on_modified)
        self.show_state()
        self._checks.begin()

    def _on_modified(self, _: bool) -> None:
        self.show_state()

    def _on_line_chosen(self, line: int) -> None:
        self.view.edit.go_to(line)
        self.view.edit.setFocus()

    def _on_step_chosen(self, node: GraphNode) -> None:
        self.view.edit.go_to(node.line)
        self.view.edit.show_lines(node.line, node.end_line)

    # --- templates, packs, trying ----------------------------------------------------------------------

    def add_template(self, kind: str) -> None:
        """Put a template into the open file, or into a new one if that can't hold it."""
        buffer = self._current
        if buffer is None or not buffer.is_editable or buffer.kind != "flows":
            buffer = self.new_file()
        words = self._checks.words
        taken = {*words.slots, *words.flows, *words.intents, *words.messages, *words.rails}
        found = insert_template(buffer.text, kind, taken | {i.id for i in self._checks.outline.items})
        self.view.replace_text(found.text)
        self.view.edit.go_to(found.line)
        self.view.edit.show_lines(found.line, found.end_line)
        self.view.edit.setFocus()

    def run_tests(self) -> None:
        """Run the tests of the user's layer on the unsaved texts."""
        self.view.show_tests()
        self._try_out.session.run_tests(self._buffers.unsaved())

    def _try_texts(self) -> tuple[int, Mapping[str, str]]:
        texts = self._buffers.unsaved()
        return hash(tuple(sorted(texts.items()))), texts

    def _on_test_chosen(self, file: str, line: int) -> None:
        self.open_file("user", file, lambda: self.view.edit.go_to(line))

    # --- what is shown ---------------------------------------------------------------------------------

    def show_state(self) -> None:
        """Show again what is known of the open file."""
        buffer = self._current
        unsaved = {b.name for b in self._buffers.modified()}
        current = buffer.key if buffer is not None else ("", "")
        files = self._files
        extra = [n for n in unsaved if ("user", n) not in {(f.layer, f.name) for f in files}]
        shown = (*(FlowFile(name=n, layer="user", kind="flows") for n in sorted(extra)), *files)
        self.view.show_files(shown, unsaved, current)
        self.view.show_abilities(buffer)
        title = "" if buffer is None else f"{'• ' if buffer.is_unsaved else ''}{buffer.name}"
        self.title_changed.emit(title)
        self._show_banner(buffer)

    def _show_banner(self, buffer: Buffer | None) -> None:
        banner = self.view.banner
        if buffer is None:
            banner.say(None)
        elif not buffer.is_editable:
            banner.say("flows.banner.shipped", ("flows.copy", self.copy_to_edit))
        elif buffer.is_conflict:
            banner.say(
                "flows.banner.conflict", ("flows.banner.load", lambda: self._load_theirs(buffer)),
                ("flows.banner.keep", lambda: self._keep_mine(buffer)), is_warning=True,
            )  # fmt: skip
        elif buffer.is_draft:
            banner.say("flows.banner.draft", ("flows.banner.discard", self.discard_draft), is_warning=True)
        else:
            banner.say(None)

    def _load_theirs(self, buffer: Buffer) -> None:
        take_back = partial(_take_back, buffer.name, self._own_text(buffer))
        self._worker.run(take_back, partial(self._load_from_disk, buffer))

    def _load_from_disk(self, buffer: Buffer, kept: Path | None = None, *, is_told: bool = True) -> None:
        def look(files: FlowFiles) -> str | None:
            return files.stamp(buffer.name)

        def done(stamp: str | None) -> None:
            buffer.stamp = stamp
            self._reopen(buffer, kept, is_told=is_told)

        self._worker.run(look, done)

    def _keep_mine(self, buffer: Buffer) -> None:
        buffer.is_conflict, buffer.is_forced = False, True
        self.show_state()

    def _on_failed(self, fault: Fault) -> None:
        self.view.say_fault(fault)


def _take_back(name: str, text: str | None, files: FlowFiles) -> Path | None:
    """Forget the draft, and keep a copy of `text`; returns where."""
    kept = files.set_aside(name, text) if text is not None else None
    files.discard_draft(name)
    return kept


def _keep_draft(name: str, text: str, files: FlowFiles) -> None:
    files.keep_draft(name, text)
