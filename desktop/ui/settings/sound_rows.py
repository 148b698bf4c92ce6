"""The rows of voice and recogniser with their servers: tests, faults of an address, and when a key is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from desktop.bridge import Bridge
from desktop.settings_service import SettingsService
from desktop.sound_probe import SoundTest
from desktop.sound_server import KEY_SETTINGS
from desktop.ui.i18n import Translator
from desktop.ui.settings.editors import Editor
from desktop.ui.settings.row import SettingRow
from desktop.ui.settings.sound_editor import SoundEditor

_MISSING = "settings.error.model_missing"


class SoundRows:
    """Belongs to a form, whose rows it looks at."""

    def __init__(
        self, service: SettingsService, bridge: Bridge, translator: Translator, rows: Mapping[str, SettingRow]
    ) -> None:
        """Begin without rows."""
        self._service = service
        self._bridge = bridge
        self._translator = translator
        self._rows = rows
        self._testing: set[str] = set()

    def connect_rows(self, names: Iterable[str]) -> None:
        """Follow those of the new rows `names` that may be a server."""
        for name in names:
            editor = self._rows[name].editor
            if isinstance(editor, SoundEditor):
                editor.source_changed.connect(partial(self._on_source_changed, name))
                editor.refused.connect(partial(self._on_refused, name))
                editor.server.test_asked.connect(partial(self._on_test_asked, name))
                editor.server.cancel_asked.connect(partial(self._service.cancel_test, name))

    def is_typed(self, editor: Editor) -> bool:
        """Whether the value of `editor` was typed, so that it stays to be corrected when it is refused."""
        return isinstance(editor, SoundEditor) and editor.is_server

    def is_testing(self, name: str) -> bool:
        """Whether the result of a test is awaited at the row `name`."""
        return name in self._testing

    def show_test(self, test: SoundTest) -> None:
        """Show how a test ended."""
        row = self._rows[test.setting]
        assert isinstance(row.editor, SoundEditor)
        self._testing.discard(test.setting)
        row.editor.server.set_busy(False)
        code = test.code
        if code == "key" and not getattr(self._service.settings, KEY_SETTINGS[test.setting]):
            code = "no_key"
        role = "good" if test.is_ok else "caption" if code == "cancelled" else "error"
        row.tell(role, f"settings.server.test.{code}", str(test.ms) if test.is_ok else test.detail)

    def _on_source_changed(self, name: str, is_server: bool) -> None:
        if is_server and self._rows[name].says(_MISSING):
            # that was about the model chosen before
            self._rows[name].hush()
        key = self._rows.get(KEY_SETTINGS[name])
        if key is not None:
            key.setVisible(is_server)

    def _on_refused(self, name: str, why: str) -> None:
        self._rows[name].tell("error", "settings.error.setting_invalid", why)

    def _on_test_asked(self, name: str) -> None:
        row = self._rows[name]
        assert isinstance(row.editor, SoundEditor)
        row.editor.server.set_busy(True)
        row.tell("caption", "settings.server.testing")
        self._testing.add(name)
        self._service.test_sound(name, self._on_tested)

    def _on_tested(self, test: SoundTest) -> None:
        self._bridge.call(lambda: self.show_test(test))
