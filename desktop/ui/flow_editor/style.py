"""Colours, fonts and buttons of the flow editor, by the window's theme."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QFont, QFontDatabase
from PySide6.QtWidgets import QToolButton

from desktop.ui.i18n import Translator
from desktop.ui.theme import TYPE, Palette

_MONOSPACE = (
    *("JetBrains Mono", "Cascadia Mono", "SF Mono", "Menlo", "Consolas", "DejaVu Sans Mono", "Liberation Mono"),
    *("Noto Sans Mono CJK SC", "PingFang SC", "Microsoft YaHei UI", "Noto Sans CJK SC"),
)
ICON_PX = 18


def code_font() -> QFont:
    """Return the font of the text: the installed monospaced families, with one for Chinese behind."""
    installed = set(QFontDatabase.families())
    families = [name for name in _MONOSPACE if name in installed]
    made = QFont()
    if families:
        made.setFamilies(families)
    made.setPixelSize(TYPE.caption_px + 1)
    made.setStyleHint(QFont.StyleHint.Monospace)
    return made


def tool_button(name: str, key: str, translator: Translator, *, is_checkable: bool = False) -> QToolButton:
    """Return an icon button whose name and tip are the texts `key` and `key.tip`."""
    made = QToolButton()
    made.setObjectName(name)
    made.setCheckable(is_checkable)
    made.setIconSize(QSize(ICON_PX, ICON_PX))
    made.setFocusPolicy(Qt.FocusPolicy.TabFocus)
    translator.bind(made.setAccessibleName, key)
    translator.bind(made.setToolTip, f"{key}.tip")
    return made


def editor_stylesheet(p: Palette) -> str:
    """Return the style of everything inside the dock."""
    return f"""
    QWidget#flowEditor {{ background: {p.background}; }}
    QWidget#flowEditor QLabel {{ font-size: {TYPE.caption_px}px; }}
    QLabel#flowDockTitle {{ font-size: {TYPE.body_px}px; font-weight: 600; }}
    QLabel[isMuted="true"] {{ color: {p.muted}; }}
    QWidget#flowTitleBar {{ background: {p.surface}; border-bottom: 1px solid {p.line}; }}
    QPlainTextEdit, QTextBrowser, QTreeWidget, QGraphicsView {{
        background: {p.surface}; color: {p.ink}; border: 1px solid {p.line}; border-radius: 8px;
        selection-background-color: {p.primary}; selection-color: {p.on_primary}; font-size: {TYPE.caption_px}px; }}
    QPlainTextEdit {{ font-size: {TYPE.caption_px + 1}px; border-radius: 0; }}
    QPlainTextEdit:focus, QTextBrowser:focus, QTreeWidget:focus, QGraphicsView:focus {{
        border: 1px solid {p.primary}; }}
    QTreeWidget::item {{ padding: 3px 2px; }}
    QTreeWidget::item:selected {{ background: {p.primary}; color: {p.on_primary}; }}
    QHeaderView::section {{ background: {p.raised}; color: {p.ink}; border: none; padding: 4px 8px;
        font-size: {TYPE.caption_px}px; }}
    QToolButton {{ background: transparent; border: 1px solid transparent; border-radius: 8px; padding: 5px;
        font-size: {TYPE.caption_px}px; }}
    QToolButton:hover {{ border: 1px solid {p.outline}; }}
    QToolButton:focus {{ border: 2px solid {p.primary}; padding: 4px; }}
    QToolButton:checked, QToolButton:pressed {{ background: {p.raised}; border: 1px solid {p.outline}; }}
    QToolButton:disabled {{ color: {p.muted}; }}
    QToolButton::menu-indicator {{ image: none; width: 0; }}
    QWidget#flowEditor QPushButton {{
        min-height: 26px; border-radius: 8px; padding: 0 12px; font-size: {TYPE.caption_px}px; }}
    QWidget#flowEditor QLineEdit {{
        min-height: 28px; border-radius: 8px; padding: 0 8px; font-size: {TYPE.caption_px}px; }}
    QWidget#flowEditor QLineEdit:focus {{ padding: 0 7px; }}
    QComboBox {{ background: {p.surface}; color: {p.ink}; border: 1px solid {p.outline}; border-radius: 8px;
        padding: 3px 8px; min-height: 22px; font-size: {TYPE.caption_px}px; }}
    QComboBox:focus {{ border: 2px solid {p.primary}; padding: 2px 7px; }}
    QComboBox QAbstractItemView, QListView#flowCompletions {{
        background: {p.surface}; color: {p.ink}; border: 1px solid {p.outline};
        selection-background-color: {p.primary}; selection-color: {p.on_primary}; font-size: {TYPE.caption_px}px; }}
    QFrame#flowBanner, QFrame#flowFindBar {{
        background: {p.surface}; border: 1px solid {p.outline}; border-radius: 8px; }}
    QFrame#flowBanner[severity="warning"] {{ border: 2px solid {p.warning}; }}
    QTabWidget::pane {{ border: none; }}
    QTabBar::tab {{ background: transparent; color: {p.muted}; padding: 5px 12px; font-size: {TYPE.caption_px}px;
        border-bottom: 2px solid transparent; }}
    QTabBar::tab:selected {{ color: {p.ink}; border-bottom: 2px solid {p.primary}; }}
    QTabBar::tab:focus {{ border: 1px solid {p.primary}; }}
    QSplitter::handle {{ background: {p.line}; }}
    QSplitter::handle:horizontal {{ width: 1px; margin: 0 3px; }}
    QSplitter::handle:vertical {{ height: 1px; margin: 3px 0; }}
    QScrollBar:vertical {{ background: transparent; width: 10px; margin: 0; }}
    QScrollBar:horizontal {{ background: transparent; height: 10px; margin: 0; }}
    QScrollBar::handle {{ background: {p.outline}; border-radius: 5px; min-height: 24px; min-width: 24px; }}
    QScrollBar::add-line, QScrollBar::sub-line {{ width: 0; height: 0; }}
    QScrollBar::add-page, QScrollBar::sub-page {{ background: transparent; }}
    """
