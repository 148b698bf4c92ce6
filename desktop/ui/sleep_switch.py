"""Sleep and wake by menu and key: asleep, the character answers nobody who does not call it by name."""

from __future__ import annotations

from PySide6.QtCore import QObject
from PySide6.QtGui import QAction

from desktop.bridge import Bridge
from desktop.ui.i18n import Translator
from orchestrator.contracts.commands import SetAsleep, Stop
from orchestrator.contracts.views import StateView


class SleepSwitch(QObject):
    """Carries out an action that stands in several menus; its words follow the state."""

    def __init__(self, action: QAction, bridge: Bridge, translator: Translator, parent: QObject) -> None:
        """Begin awake; `action` is triggered by menu or key."""
        super().__init__(parent)
        self._action = action
        self._bridge = bridge
        self._translator = translator
        self.is_asleep = False
        action.triggered.connect(lambda _=False: self._on_triggered())
        bridge.state_changed.connect(self._on_state_changed)
        translator.changed.connect(self._refresh)
        self._refresh()

    def _on_triggered(self) -> None:
        wanted = not self.is_asleep
        if not self._bridge.submit(SetAsleep(on=wanted)):
            return
        if wanted:
            # Whoever sends it to sleep in the middle of an answer has heard enough.
            self._bridge.stop_now()
            self._bridge.submit(Stop(by="key"))

    def _on_state_changed(self, view: StateView) -> None:
        self.is_asleep = view.state == "asleep"
        self._refresh()

    def _refresh(self) -> None:
        self._action.setText(self._translator.text("menu.wake" if self.is_asleep else "menu.sleep"))
