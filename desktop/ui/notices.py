"""The bar that says what the user should know, one thing at a time."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QSizePolicy

from desktop.ui import icons
from desktop.ui.i18n import Translator
from desktop.ui.theme import GRID_PX, Theme
from orchestrator.contracts.views import NoticeView

_RANK = {"error": 0, "warning": 1, "info": 2}
_KEPT = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class _Notice:
    code: str
    text: str
    severity: str
    values: tuple[tuple[str, str], ...] = ()


class NoticeBar(QFrame):
    """Shows the gravest notice, the newest of equals; closing it shows the next. One per code, at most eight."""

    def __init__(self, theme: Theme, translator: Translator) -> None:
        """Begin empty and hidden."""
        super().__init__()
        self.setObjectName("noticeBar")
        self._theme = theme
        self._translator = translator
        self._notices: list[_Notice] = []
        row = QHBoxLayout(self)
        row.setContentsMargins(2 * GRID_PX, GRID_PX, GRID_PX, GRID_PX)
        row.setSpacing(GRID_PX)
        self._icon = QLabel()
        self._icon.setObjectName("noticeIcon")
        self._text = QLabel()
        self._text.setObjectName("noticeText")
        self._text.setTextFormat(Qt.TextFormat.PlainText)
        self._text.setWordWrap(True)
        self._text.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self._close = QPushButton()
        self._close.setObjectName("noticeCloseButton")
        self._close.setProperty("isIcon", True)
        self._close.setProperty("isFlat", True)
        self._close.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._close.clicked.connect(self._on_close_clicked)
        row.addWidget(self._icon)
        row.addWidget(self._text, 1)
        row.addWidget(self._close)
        translator.bind(self.setAccessibleName, "notice.name")
        translator.bind(self._close.setAccessibleName, "notice.close")
        translator.bind(self._close.setToolTip, "notice.close")
        translator.changed.connect(self._refresh)
        theme.changed.connect(self._refresh)
        self._refresh()

    def raise_notice(self, view: NoticeView, **values: str) -> None:
        """Show `view`; the catalogue's words for its code come before its own text, with `values` filled in."""
        self.withdraw(view.code)
        severity = view.severity if view.severity in _RANK else "info"
        self._notices.append(_Notice(code=view.code, text=view.text, severity=severity, values=tuple(values.items())))
        del self._notices[:-_KEPT]
        self._refresh()

    def withdraw(self, *codes: str) -> None:
        """Take notices away that are no longer true."""
        self._notices = [n for n in self._notices if n.code not in codes]
        self._refresh()

    def codes(self) -> list[str]:
        """Return the codes that wait, oldest first."""
        return [n.code for n in self._notices]

    def text(self) -> str:
        """Return the words shown, empty when hidden."""
        return self._text.text() if self._notices else ""

    def _top(self) -> _Notice | None:
        return min(reversed(self._notices), key=lambda n: _RANK[n.severity], default=None)

    def _on_close_clicked(self) -> None:
        top = self._top()
        if top is not None:
            self.withdraw(top.code)

    def _refresh(self) -> None:
        top = self._top()
        self.setVisible(top is not None)
        palette = self._theme.palette
        self._close.setIcon(icons.icon("close", palette.muted))
        if top is None:
            self._text.clear()
            return
        key = f"notice.{top.code}"
        if self._translator.has(key):
            words = self._translator.text(key, **dict(top.values))
        else:
            words = self._translator.fault(top.code, top.text)
        self._text.setText(words)
        kind = self._translator.text(f"notice.severity.{top.severity}")
        self._icon.setToolTip(kind)
        self._icon.setAccessibleName(kind)
        self.setAccessibleDescription(f"{kind}: {words}")
        colour = {"error": palette.danger, "warning": palette.warning}.get(top.severity, palette.primary)
        self._icon.setPixmap(icons.pixmap(top.severity, colour, 22, self.devicePixelRatioF()))
        self.setProperty("severity", top.severity)
        self.style().unpolish(self)
        self.style().polish(self)
