"""Colours, fonts and buttons of the flow editor, by the window's theme."""

from __future__ import annotations

from PySide6.QtGui import QFont, QFontDatabase

from desktop.ui.panel_style import panel_stylesheet
from desktop.ui.theme import RADIUS_PX, TYPE, Palette, px
from desktop.ui.tool_buttons import tool_button_stylesheet

_MONOSPACE = (
    *("JetBrains Mono", "Cascadia Mono", "SF Mono", "Menlo", "Consolas", "DejaVu Sans Mono", "Liberation Mono"),
    *("Noto Sans Mono CJK SC", "PingFang SC", "Microsoft YaHei UI", "Noto Sans CJK SC"),
)


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


def editor_stylesheet(p: Palette) -> str:
    """Return the style of everything inside the dock: that of panels, in smaller letters."""
    return f"""
    {panel_stylesheet(p)}
    {tool_button_stylesheet(p)}
    QWidget#flowEditor {{ background: {p.background}; }}
    QWidget#flowEditor QLabel {{ font-size: {TYPE.caption_px}px; }}
    QWidget#flowEditor QLabel#flowEmptyTitle {{ font-size: {TYPE.state_px}px; font-weight: 600; }}
    QLabel[isMuted="true"] {{ color: {p.muted}; }}
    QTextBrowser, QTreeWidget, QGraphicsView {{
        background: {p.surface}; color: {p.ink}; border: 1px solid {p.line}; border-radius: {RADIUS_PX}px;
        font-size: {TYPE.caption_px}px; }}
    QPlainTextEdit {{ font-size: {TYPE.caption_px + 1}px; border-radius: 0; padding: 0; }}
    QGraphicsView:focus {{ border: 1px solid {p.primary}; }}
    QWidget#flowEditor QPushButton {{ min-height: {px(24)}px; padding: 0 11px; font-size: {TYPE.caption_px}px; }}
    QTreeWidget QPushButton {{ margin: 2px; }}
    QWidget#flowEditor QLineEdit {{ min-height: {px(28)}px; font-size: {TYPE.caption_px}px; }}
    QListView#flowCompletions {{
        background: {p.surface}; color: {p.ink}; border: 1px solid {p.outline}; font-size: {TYPE.caption_px}px; }}
    QFrame#flowBanner, QFrame#flowFindBar {{
        background: {p.surface}; border: 1px solid {p.outline}; border-radius: {RADIUS_PX}px; }}
    QFrame#flowBanner[severity="warning"] {{ border: 2px solid {p.warning}; }}
    QTabWidget::pane {{ border: none; }}
    QSplitter::handle {{ background: {p.line}; }}
    QSplitter::handle:horizontal {{ width: 1px; margin: 0 3px; }}
    QSplitter::handle:vertical {{ height: 1px; margin: 3px 0; }}
    """
