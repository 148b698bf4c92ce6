"""Who the character is: a preview, another one from a card, and the way back."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QFileDialog, QFrame, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from desktop.bridge import Bridge
from desktop.character_card import CharacterCard
from desktop.persona_service import CardRead, PersonaService, PersonaState
from desktop.ui.form_parts import make_label, make_small_button
from desktop.ui.i18n import Translator
from desktop.ui.theme import GRID_PX
from orchestrator.llm.persona import Persona

_LONG = 280


_ROLES = {"name": "title", "left": "caption", "example": "caption", "status": "error"}


def _label(name: str) -> QLabel:
    return make_label(f"persona_{name}", _ROLES.get(name))


class PersonaPane(QWidget):
    """Shows the character in force, or a card that waits to be taken over."""

    def __init__(self, service: PersonaService, bridge: Bridge, translator: Translator) -> None:
        """Begin empty; the character is looked up when shown."""
        super().__init__()
        self.setObjectName("personaPane")
        self._service = service
        self._bridge = bridge
        self._translator = translator
        self.state = PersonaState()
        self.card: CharacterCard | None = None
        self._problem: tuple[str, str] | None = None
        self._labels = {name: _label(name) for name in ("name", "greeting", "style", "about", "example", "left")}
        self.status = _label("status")
        self.bring = self._button("cardImportButton", "setup.persona.import")
        self.take = self._button("cardTakeButton", "setup.persona.take")
        self.drop = self._button("cardDropButton", "setup.persona.drop")
        self.back = self._button("personaBackButton", "setup.persona.back")
        self._lay_out()
        self.bring.clicked.connect(self._on_import_clicked)
        self.take.clicked.connect(self._on_take_clicked)
        self.drop.clicked.connect(self._on_drop_clicked)
        self.back.clicked.connect(self._on_back_clicked)
        translator.changed.connect(self._show)
        self._show()

    def showEvent(self, event: QShowEvent) -> None:
        """Look the character up anew."""
        super().showEvent(event)
        self._service.find(self._later)

    def bring_in(self, path: Path) -> None:
        """Read a card and show what it would make of the character."""
        self._service.read(path, self._on_card)

    # --- what comes back --------------------------------------------------------------------------------

    def _later(self, state: PersonaState) -> None:
        self._bridge.call(lambda: self._on_state(state))

    def _on_card(self, found: CardRead) -> None:
        self._bridge.call(lambda: self._on_read(found))

    def _on_state(self, state: PersonaState) -> None:
        self.state = state
        self._problem = (state.code, state.message) if state.code else None
        self._show()

    def _on_read(self, found: CardRead) -> None:
        self.card = found.card
        self._problem = (found.code, found.message) if found.code else None
        self._show()

    # --- what the user does -----------------------------------------------------------------------------

    def _on_import_clicked(self) -> None:
        text = self._translator.text
        chosen, _ = QFileDialog.getOpenFileName(self, text("setup.persona.import"), "", text("setup.persona.filter"))
        if chosen:
            self.bring_in(Path(chosen))

    def _on_take_clicked(self) -> None:
        if self.card is not None:
            card, self.card = self.card, None
            self._service.take(card, self._later)

    def _on_drop_clicked(self) -> None:
        self.card = None
        self._show()

    def _on_back_clicked(self) -> None:
        self._service.go_back(self._later)

    # --- what is shown ----------------------------------------------------------------------------------

    def _show(self) -> None:
        text = self._translator.text
        card = self.card
        persona = card.persona if card is not None else self.state.persona
        self._show_persona(persona)
        left = ""
        if card is not None:
            parts = [text("setup.persona.from", spec=card.spec, creator=card.creator or text("setup.persona.unknown"))]
            if card.left_out:
                parts.append(text("setup.persona.left_out", names=", ".join(card.left_out)))
            if card.is_shortened:
                parts.append(text("setup.persona.shortened"))
            left = " ".join(parts)
        self._put("left", left)
        self.take.setVisible(card is not None)
        self.drop.setVisible(card is not None)
        self.bring.setVisible(card is None)
        self.back.setVisible(card is None and self.state.is_own)
        self._show_problem()

    def _show_persona(self, persona: Persona | None) -> None:
        text = self._translator.text
        language = "zh" if self._translator.language == "zh_CN" else "en"
        if persona is None:
            for name in ("name", "greeting", "style", "about", "example"):
                self._put(name, "")
            return
        self._put("name", persona.name.get(language))
        greeting = persona.greeting.get(language)
        self._put("greeting", text("setup.persona.says", text=greeting) if greeting else "")
        for name, words in (("style", persona.style.get(language)), ("about", persona.about.get(language))):
            short = words if len(words) <= _LONG else words[:_LONG].rstrip() + " …"
            self._put(name, text(f"setup.persona.{name}", text=short) if words else "")
        fitting = [e for e in persona.examples if e.language == language] or list(persona.examples)
        example = fitting[0] if fitting else None
        self._put("example", f"{example.user}\n→ {example.assistant}" if example is not None else "")

    def _show_problem(self) -> None:
        problem = self._problem
        self.status.setVisible(problem is not None)
        if problem is not None:
            key = f"settings.error.{problem[0]}"
            known = self._translator.has(key)
            self.status.setText(self._translator.text(key) if known else self._translator.fault(*problem))

    def _put(self, name: str, words: str) -> None:
        label = self._labels[name]
        label.setText(words)
        label.setVisible(bool(words))

    # --- building ---------------------------------------------------------------------------------------

    def _button(self, name: str, key: str) -> QPushButton:
        made = make_small_button(name)
        self._translator.bind(made.setText, key)
        self._translator.bind(made.setAccessibleName, key)
        return made

    def _lay_out(self) -> None:
        card = QFrame()
        card.setObjectName("personaCard")
        card.setProperty("isCard", True)
        inside = QVBoxLayout(card)
        inside.setContentsMargins(2 * GRID_PX, 2 * GRID_PX, 2 * GRID_PX, 2 * GRID_PX)
        inside.setSpacing(GRID_PX)
        for label in self._labels.values():
            inside.addWidget(label)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(GRID_PX)
        column.addWidget(card)
        column.addWidget(self.status)
        row = QHBoxLayout()
        row.setSpacing(GRID_PX)
        for button in (self.bring, self.take, self.drop, self.back):
            row.addWidget(button)
        row.addStretch(1)
        column.addLayout(row)
