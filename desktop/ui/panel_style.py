"""How panels and dialogs look: the house palette handed to the toolkit's own controls, and a few rules on top."""

from __future__ import annotations

from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QApplication, QWidget

from desktop.ui.theme import RADIUS_PX, TYPE, Palette, Theme, px, sign


def toolkit_palette(p: Palette) -> QPalette:
    """Return `p` by the toolkit's roles, so that boxes, tabs and scroll bars follow the theme."""
    made = QPalette()
    roles = QPalette.ColorRole
    for role, colour in (
        (roles.Window, p.background),
        (roles.WindowText, p.ink),
        (roles.Base, p.surface),
        (roles.AlternateBase, p.background),
        (roles.Text, p.ink),
        (roles.PlaceholderText, p.muted),
        (roles.Button, p.raised),
        (roles.ButtonText, p.ink),
        (roles.BrightText, p.danger),
        (roles.Highlight, p.primary),
        (roles.HighlightedText, p.on_primary),
        (roles.Accent, p.primary),
        (roles.ToolTipBase, p.raised),
        (roles.ToolTipText, p.ink),
        (roles.Link, p.primary),
        (roles.Light, p.raised),
        (roles.Midlight, p.line),
        (roles.Mid, p.outline),
        (roles.Dark, p.outline),
        (roles.Shadow, p.outline),
    ):
        made.setColor(role, QColor(colour))
    for role in (roles.WindowText, roles.Text, roles.ButtonText):
        made.setColor(QPalette.ColorGroup.Disabled, role, QColor(p.muted))
    return made


def panel_stylesheet(p: Palette) -> str:
    """Return the rules of panels and dialogs, on top of the window's: one height, one frame, one focus for controls."""
    return f"""
    QDialog, QWidget[isPanel="true"] {{ background: {p.background}; }}
    QScrollArea {{ background: transparent; border: none; }}
    QScrollArea > QWidget > QWidget {{ background: transparent; }}
    QLabel[role="caption"] {{ font-size: {TYPE.caption_px}px; color: {p.muted}; }}
    QLabel[role="title"] {{ font-size: {TYPE.state_px}px; font-weight: 600; }}
    QLabel[role="headline"] {{ font-size: {TYPE.subtitle_px}px; font-weight: 600; }}
    QLabel[role="name"], QCheckBox[role="name"] {{ font-weight: 600; }}
    QLabel[role="error"] {{ font-size: {TYPE.caption_px}px; font-weight: 600; color: {p.danger}; }}
    QLabel[role="good"] {{ font-size: {TYPE.caption_px}px; font-weight: 600; color: {p.good}; }}
    QLabel[role="later"] {{ font-size: {TYPE.caption_px}px; font-weight: 600; color: {p.warning}; }}
    QFrame[isCard="true"] {{ background: {p.surface}; border: 1px solid {p.line}; border-radius: 12px; }}
    {_buttons(p)}
    {_fields(p)}
    {_lists(p)}
    QCheckBox {{ spacing: 8px; min-height: {px(24)}px; }}
    QCheckBox::indicator, QTreeWidget::indicator {{
        width: {px(18)}px; height: {px(18)}px; background: {p.surface}; border: 2px solid {p.outline};
        border-radius: 5px; }}
    QCheckBox::indicator:checked, QTreeWidget::indicator:checked {{
        background: {p.primary}; border-color: {p.primary}; image: url("{sign("check", p, is_on_primary=True)}"); }}
    QTreeWidget::indicator:indeterminate {{ background: {p.raised}; border-color: {p.primary}; }}
    QCheckBox::indicator:focus {{ border-color: {p.primary}; }}
    QCheckBox::indicator:checked:focus {{ border-color: {p.ink}; }}
    QProgressBar {{ background: {p.raised}; border: none; border-radius: 4px; max-height: 8px; }}
    QProgressBar::chunk {{ background: {p.primary}; border-radius: 4px; }}
    {bars_stylesheet(p)}
    """


def bars_stylesheet(p: Palette) -> str:
    """Return the rules of tabs and scroll bars, the same wherever they are."""
    return f"""
    QTabBar {{ font-size: {TYPE.caption_px}px; }}
    QTabBar::tab {{
        padding: 6px; margin-right: 2px; color: {p.muted}; background: transparent; border: none;
        border-bottom: 2px solid transparent; }}
    QTabBar::tab:selected {{ color: {p.ink}; border-bottom: 2px solid {p.primary}; }}
    QTabBar::tab:hover {{ color: {p.ink}; }}
    QTabBar::tab:focus {{ border: 1px solid {p.primary}; border-bottom: 2px solid {p.primary}; }}
    QTabBar QToolButton {{ background: {p.raised}; border: none; border-radius: 4px; }}
    QTabBar QToolButton::right-arrow {{ image: url("{sign("right", p)}"); width: 12px; height: 12px; }}
    QTabBar QToolButton::left-arrow {{ image: url("{sign("left", p)}"); width: 12px; height: 12px; }}
    QTabWidget::pane {{ border: none; border-top: 1px solid {p.line}; }}
    QScrollBar:vertical {{ background: transparent; width: 12px; margin: 0; }}
    QScrollBar:horizontal {{ background: transparent; height: 12px; margin: 0; }}
    QScrollBar::handle {{ background: {p.outline}; border-radius: 3px; margin: 3px; }}
    QScrollBar::handle:hover {{ background: {p.muted}; }}
    QScrollBar::handle:vertical {{ min-height: 32px; }}
    QScrollBar::handle:horizontal {{ min-width: 32px; }}
    QScrollBar::add-line, QScrollBar::sub-line {{ width: 0; height: 0; }}
    QScrollBar::add-page, QScrollBar::sub-page {{ background: transparent; }}
    """


def _buttons(p: Palette) -> str:
    return f"""
    QPushButton {{ min-height: {px(28)}px; border-radius: {RADIUS_PX}px; padding: 0 15px; }}
    QPushButton[isSmall="true"] {{ padding: 0 11px; }}
    QPushButton[isPrimary="true"] {{ background: {p.primary}; color: {p.on_primary}; }}
    QPushButton[isPrimary="true"]:focus {{ border-color: {p.ink}; }}
    QPushButton[isDanger="true"] {{ background: transparent; border-color: {p.danger}; color: {p.danger}; }}
    QPushButton[isDanger="true"]:focus {{ border-color: {p.primary}; background: {p.raised}; }}
    """


def _fields(p: Palette) -> str:
    return f"""
    QLineEdit, QComboBox, QAbstractSpinBox {{
        background: {p.surface}; border: 1px solid {p.outline}; border-radius: {RADIUS_PX}px; min-height: 30px;
        padding: 0 8px; selection-background-color: {p.primary}; selection-color: {p.on_primary}; }}
    QLineEdit:focus, QComboBox:focus, QAbstractSpinBox:focus {{ border: 2px solid {p.primary}; padding: 0 7px; }}
    QComboBox:disabled, QAbstractSpinBox:disabled {{ color: {p.muted}; }}
    QComboBox {{ combobox-popup: 0; padding: 0 12px 0 8px; }}
    QComboBox::drop-down {{ subcontrol-position: right center; width: {px(28)}px; border: none; }}
    QComboBox::down-arrow {{ image: url("{sign("down", p)}"); width: {px(16)}px; height: {px(16)}px; }}
    QComboBox QAbstractItemView {{
        background: {p.surface}; border: 1px solid {p.outline}; border-radius: 0; padding: 4px; outline: 0; }}
    QComboBox QAbstractItemView::item {{ min-height: 28px; padding: 0 8px; border-radius: 4px; }}
    QComboBox QAbstractItemView::item:selected {{ background: {p.primary}; color: {p.on_primary}; }}
    QAbstractSpinBox QLineEdit {{ background: transparent; border: none; border-radius: 0; padding: 0; min-height: 0; }}
    QAbstractSpinBox::up-button {{
        subcontrol-origin: border; subcontrol-position: center right; right: 1px; width: {px(30)}px; height: {px(30)}px;
        border: none; border-left: 1px solid {p.line}; }}
    QAbstractSpinBox::down-button {{
        subcontrol-origin: border; subcontrol-position: center right; right: {px(30) + 2}px;
        width: {px(30)}px; height: {px(30)}px; border: none; border-left: 1px solid {p.line}; }}
    QAbstractSpinBox::up-button:hover, QAbstractSpinBox::down-button:hover {{ background: {p.raised}; }}
    QAbstractSpinBox::up-arrow {{ image: url("{sign("plus", p)}"); width: {px(12)}px; height: {px(12)}px; }}
    QAbstractSpinBox::down-arrow {{ image: url("{sign("minus", p)}"); width: {px(12)}px; height: {px(12)}px; }}
    """


def _lists(p: Palette) -> str:
    return f"""
    QListWidget, QListView, QTreeWidget, QTableWidget, QPlainTextEdit, QTextBrowser {{
        background: {p.surface}; border: 1px solid {p.line}; border-radius: {RADIUS_PX}px; outline: 0;
        selection-background-color: {p.primary}; selection-color: {p.on_primary}; }}
    QListWidget:focus, QListView:focus, QTreeWidget:focus, QPlainTextEdit:focus, QTextBrowser:focus {{
        border: 1px solid {p.primary}; }}
    QPlainTextEdit {{ placeholder-text-color: {p.muted}; padding: 4px; }}
    QListWidget::item {{ padding: 8px; border-radius: {RADIUS_PX}px; }}
    QListWidget::item:hover {{ background: {p.raised}; }}
    QListWidget::item:selected, QTreeWidget::item:selected {{ background: {p.primary}; color: {p.on_primary}; }}
    QListWidget[isMenu="true"] {{ background: transparent; border: none; }}
    QListWidget[isMenu="true"]::item {{ border: 2px solid transparent; padding: 6px; }}
    QListWidget[isMenu="true"]::item:selected:focus {{ border: 2px solid {p.highlight}; }}
    QTreeWidget::item {{ padding: 4px 2px; }}
    QHeaderView {{ background: {p.surface}; }}
    QHeaderView::section {{
        background: {p.raised}; color: {p.ink}; border: none; padding: 4px 8px; font-size: {TYPE.caption_px}px; }}
    """


def dress_application(theme: Theme) -> None:
    """Keep the toolkit's own controls in the colours of `theme`.

    They take them from the application, for a style sheet keeps a parent's palette from its children.
    """

    def paint() -> None:
        QApplication.setPalette(toolkit_palette(theme.palette))

    theme.changed.connect(paint)
    paint()


def dress(panel: QWidget, theme: Theme) -> None:
    """Keep `panel` in the colours of `theme`."""

    def paint() -> None:
        panel.setStyleSheet(panel_stylesheet(theme.palette))

    panel.setProperty("isPanel", True)
    theme.changed.connect(paint)
    paint()
