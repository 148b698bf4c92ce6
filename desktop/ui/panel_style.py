"""How panels and dialogs look: the house palette handed to the toolkit's own controls, and a few rules on top."""

from __future__ import annotations

from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QApplication, QWidget

from desktop import paths
from desktop.ui.theme import TYPE, Palette, Theme


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
    """Return the rules of panels, on top of the window's."""
    check = (paths.assets() / "icons" / f"check_on_{'light' if p.is_dark else 'dark'}.svg").as_posix()
    ground = "dark" if p.is_dark else "light"
    down, up = ((paths.assets() / "icons" / f"{name}_on_{ground}.svg").as_posix() for name in ("down", "up"))
    return f"""
    QDialog, QWidget[isPanel="true"] {{ background: {p.background}; }}
    QDockWidget::title {{ background: {p.surface}; padding: 8px; border-bottom: 1px solid {p.line}; }}
    QScrollArea {{ background: transparent; border: none; }}
    QScrollArea > QWidget > QWidget {{ background: transparent; }}
    QScrollBar:vertical {{ background: transparent; width: 12px; margin: 0; }}
    QScrollBar:horizontal {{ background: transparent; height: 12px; margin: 0; }}
    QScrollBar::handle {{ background: {p.outline}; border-radius: 4px; margin: 2px; }}
    QScrollBar::handle:vertical {{ min-height: 32px; }}
    QScrollBar::handle:horizontal {{ min-width: 32px; }}
    QScrollBar::add-line, QScrollBar::sub-line {{ width: 0; height: 0; }}
    QScrollBar::add-page, QScrollBar::sub-page {{ background: transparent; }}
    QLabel[role="caption"] {{ font-size: {TYPE.caption_px}px; color: {p.muted}; }}
    QLabel[role="title"] {{ font-size: {TYPE.state_px}px; font-weight: 600; }}
    QLabel[role="headline"] {{ font-size: {TYPE.subtitle_px}px; font-weight: 600; }}
    QLabel[role="name"] {{ font-weight: 600; }}
    QFrame[isCard="true"] {{ background: {p.surface}; border: 1px solid {p.line}; border-radius: 12px; }}
    QPushButton[isPrimary="true"] {{ background: {p.primary}; color: {p.on_primary}; }}
    QPushButton[isPrimary="true"]:focus {{ border: 2px solid {p.ink}; }}
    QLabel[role="error"] {{ font-size: {TYPE.caption_px}px; font-weight: 600; color: {p.danger}; }}
    QLabel[role="good"] {{ font-size: {TYPE.caption_px}px; font-weight: 600; color: {p.good}; }}
    QLabel[role="later"] {{ font-size: {TYPE.caption_px}px; font-weight: 600; color: {p.warning}; }}
    QListWidget, QListView, QTreeWidget, QTableWidget, QPlainTextEdit {{
        background: {p.surface}; border: 1px solid {p.line}; border-radius: 8px; outline: 0; }}
    QPlainTextEdit {{ placeholder-text-color: {p.muted}; }}
    QListWidget::item {{ padding: 8px; border-radius: 8px; }}
    QListWidget::item:selected, QTreeWidget::item:selected {{ background: {p.primary}; color: {p.on_primary}; }}
    QListWidget:focus, QListView:focus, QTreeWidget:focus, QPlainTextEdit:focus {{ border: 1px solid {p.primary}; }}
    QTreeWidget::item {{ padding: 3px; }}
    QHeaderView::section {{
        background: {p.raised}; color: {p.ink}; border: none; border-right: 1px solid {p.line}; padding: 4px 8px; }}
    QComboBox, QDoubleSpinBox, QSpinBox {{
        background: {p.surface}; border: 1px solid {p.outline}; border-radius: 8px; min-height: 30px;
        padding: 0 8px; selection-background-color: {p.primary}; selection-color: {p.on_primary}; }}
    QAbstractSpinBox QLineEdit {{
        background: transparent; border: none; border-radius: 0; padding: 0 0 0 8px; min-height: 0; }}
    QComboBox:focus, QDoubleSpinBox:focus, QSpinBox:focus {{ border: 2px solid {p.primary}; padding: 0 7px; }}
    QComboBox:disabled, QDoubleSpinBox:disabled, QSpinBox:disabled {{ color: {p.muted}; }}
    QComboBox::drop-down {{ subcontrol-position: right center; width: 24px; border: none; }}
    QComboBox::down-arrow {{ image: url("{down}"); width: 16px; height: 16px; }}
    QComboBox QAbstractItemView {{ background: {p.surface}; border: 1px solid {p.outline}; padding: 4px; }}
    QSpinBox::up-button, QDoubleSpinBox::up-button {{
        subcontrol-position: top right; width: 24px; height: 15px; border: none; }}
    QSpinBox::down-button, QDoubleSpinBox::down-button {{
        subcontrol-position: bottom right; width: 24px; height: 15px; border: none; }}
    QSpinBox::up-arrow, QDoubleSpinBox::up-arrow {{ image: url("{up}"); width: 12px; height: 12px; }}
    QSpinBox::down-arrow, QDoubleSpinBox::down-arrow {{ image: url("{down}"); width: 12px; height: 12px; }}
    QCheckBox {{ spacing: 8px; min-height: 24px; }}
    QCheckBox::indicator {{
        width: 18px; height: 18px; background: {p.surface}; border: 2px solid {p.outline}; border-radius: 5px; }}
    QCheckBox::indicator:checked {{ background: {p.primary}; border-color: {p.primary}; image: url("{check}"); }}
    QCheckBox::indicator:focus {{ border-color: {p.primary}; }}
    QProgressBar {{ background: {p.raised}; border: none; border-radius: 4px; max-height: 8px; }}
    QProgressBar::chunk {{ background: {p.primary}; border-radius: 4px; }}
    QPushButton[isSmall="true"] {{ min-height: 30px; border-radius: 12px; padding: 0 8px; }}
    QPushButton[isDanger="true"] {{ background: transparent; border: 2px solid {p.danger}; color: {p.danger}; }}
    QLineEdit[isSmall="true"] {{ min-height: 30px; border-radius: 12px; padding: 0 12px; }}
    QTabBar::tab {{ padding: 6px 12px; color: {p.muted}; background: transparent; border: none; }}
    QTabBar::tab:selected {{ color: {p.ink}; font-weight: 600; border-bottom: 2px solid {p.primary}; }}
    QTabBar::tab:focus {{ border: 1px solid {p.primary}; }}
    QTabWidget::pane {{ border: none; border-top: 1px solid {p.line}; }}
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
