"""The small menu: language, appearance, a new conversation."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction, QActionGroup, QKeySequence
from PySide6.QtWidgets import QMenu, QWidget

from desktop.ui.i18n import LANGUAGES, Translator
from desktop.ui.theme import THEMES, Theme


class WindowMenu(QMenu):
    """Says what was chosen; the window does it."""

    language_chosen = Signal(str)
    theme_chosen = Signal(str)
    motion_reduced = Signal(bool)
    session_asked = Signal()
    quit_asked = Signal()

    def __init__(self, parent: QWidget, theme: Theme, translator: Translator, *, is_motion_reduced: bool) -> None:
        """Show the present choices as checked."""
        super().__init__(parent)
        self.setObjectName("windowMenu")
        self._panels_end: QAction | None = None
        self._languages = self._choices("menu.language", translator)
        self._themes = self._choices("menu.theme", translator)
        self.characters = self._choices("menu.avatar", translator)
        language_group, theme_group = QActionGroup(self), QActionGroup(self)
        for code, name in LANGUAGES.items():
            is_now = code == translator.language
            action = self._choice(self._languages, language_group, f"languageAction_{code}", is_now)
            action.setText(name)
            action.triggered.connect(lambda _=False, chosen=code: self.language_chosen.emit(chosen))
        for choice in THEMES:
            action = self._choice(self._themes, theme_group, f"themeAction_{choice}", choice == theme.choice)
            translator.bind(action.setText, f"menu.theme.{choice}")
            action.triggered.connect(lambda _=False, chosen=choice: self.theme_chosen.emit(chosen))
        motion = self._motion = QAction(self)
        motion.setObjectName("reducedMotionAction")
        motion.setCheckable(True)
        motion.setChecked(is_motion_reduced)
        motion.toggled.connect(self.motion_reduced)
        translator.bind(motion.setText, "menu.reduced_motion")
        self.addAction(motion)
        self.addSeparator()
        self.correction = self._plain("correctAction", "menu.subtitles.correct", translator)
        self.correction.setShortcut(QKeySequence("F2"))
        self.companion = self._plain("companionAction", "menu.companion", translator)
        self.companion.setShortcut(QKeySequence("Ctrl+M"))
        self.sleep = self._plain("sleepAction", "menu.sleep", translator)
        self.sleep.setShortcut(QKeySequence("Ctrl+L"))
        self.addSeparator()
        self._plain("newSessionAction", "menu.new_session", translator).triggered.connect(
            lambda _=False: self.session_asked.emit()
        )
        self._plain("quitAction", "menu.quit", translator).triggered.connect(lambda _=False: self.quit_asked.emit())

    def add_panel(self, name: str, key: str, shortcut: str, translator: Translator) -> QAction:
        """Add a panel or dialog at the top and return its action; whoever owns the panel does the rest."""
        action = QAction(self)
        action.setObjectName(name)
        action.setShortcut(QKeySequence(shortcut))
        action.setShortcutContext(Qt.ShortcutContext.WindowShortcut)
        translator.bind(action.setText, key)
        if self._panels_end is None:
            first = self.actions()[0]
            self._panels_end = self.insertSeparator(first)
        self.insertAction(self._panels_end, action)
        return action

    def show_choices(self, language: str, theme: str, *, is_motion_reduced: bool) -> None:
        """Check what is chosen now, by whichever way it was chosen."""
        for name in (f"languageAction_{language}", f"themeAction_{theme}"):
            action = self.findChild(QAction, name)
            if action is not None:
                action.setChecked(True)
        was_blocked = self._motion.blockSignals(True)
        self._motion.setChecked(is_motion_reduced)
        self._motion.blockSignals(was_blocked)

    def _choices(self, key: str, translator: Translator) -> QMenu:
        made = QMenu(self)
        made.setObjectName(key)
        translator.bind(made.setTitle, key)
        self.addMenu(made)
        return made

    def _choice(self, menu: QMenu, group: QActionGroup, name: str, is_checked: bool) -> QAction:
        action = QAction(menu)
        action.setObjectName(name)
        action.setCheckable(True)
        action.setChecked(is_checked)
        group.addAction(action)
        menu.addAction(action)
        return action

    def _plain(self, name: str, key: str, translator: Translator) -> QAction:
        action = QAction(self)
        action.setObjectName(name)
        translator.bind(action.setText, key)
        self.addAction(action)
        return action
