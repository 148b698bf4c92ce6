"""What an empty list says: what will be in it, and how to begin."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtWidgets import QAbstractItemView, QAbstractScrollArea, QLabel

from desktop.ui.i18n import Translator
from desktop.ui.theme import GRID_PX


class EmptyHint(QLabel):
    """Lies over the viewport of `view`; over a list of items it comes and goes with them."""

    def __init__(self, view: QAbstractScrollArea, key: str, translator: Translator) -> None:
        """Say the text `key`."""
        super().__init__(view.viewport())
        self.setObjectName(f"{view.objectName()}Empty")
        self.setProperty("role", "caption")
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setWordWrap(True)
        self.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._view = view
        view.viewport().installEventFilter(self)
        translator.bind(self.setText, key)
        if isinstance(view, QAbstractItemView):
            model = view.model()
            for signal in (model.rowsInserted, model.rowsRemoved, model.modelReset):
                signal.connect(self._on_rows_changed)
            self._on_rows_changed()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Stay as large as the viewport."""
        if event.type() == QEvent.Type.Resize:
            self.setGeometry(self._view.viewport().rect().adjusted(GRID_PX, 0, -GRID_PX, 0))
        return super().eventFilter(watched, event)

    def _on_rows_changed(self) -> None:
        view = self._view
        self.setVisible(isinstance(view, QAbstractItemView) and view.model().rowCount() == 0)
