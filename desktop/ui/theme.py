"""One palette, one type scale and one grid for the whole window."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontDatabase, QGuiApplication

from desktop import paths

GRID_PX = 8
"""Distances and sizes are multiples of this."""

RADIUS_PX = 8
"""How round the corners of controls and lists in panels are; cards have half as much more."""

THEMES = ("system", "light", "dark")

_FAMILIES = (
    "Inter",
    "Segoe UI",
    "SF Pro Text",
    "PingFang SC",
    "Microsoft YaHei UI",
    "Noto Sans CJK SC",
    "Source Han Sans SC",
    "Noto Sans",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Palette:
    """Colours by their job. Text colours reach a contrast of 4.5 on `background`, `surface` and `raised`."""

    is_dark: bool
    background: str
    surface: str
    raised: str
    ink: str
    muted: str
    outline: str
    line: str
    primary: str
    on_primary: str
    highlight: str
    on_highlight: str
    danger: str
    warning: str
    good: str
    stage_glow: str
    stage_disc: str
    stage_disc_edge: str
    stage_ring: str


LIGHT = Palette(
    is_dark=False,
    background="#f7f4ed",
    surface="#ffffff",
    raised="#ece7da",
    ink="#1b2138",
    muted="#596078",
    outline="#8a8778",
    line="#ddd6c5",
    primary="#34419b",
    on_primary="#ffffff",
    highlight="#ffd466",
    on_highlight="#1b2138",
    danger="#a8231b",
    warning="#7a4d00",
    good="#1d6440",
    stage_glow="#fdf7e6",
    stage_disc="#ffe6a8",
    stage_disc_edge="#fbd27a",
    stage_ring="#34419b",
)

DARK = Palette(
    is_dark=True,
    background="#11141f",
    surface="#1a1f2f",
    raised="#262d43",
    ink="#eef0f8",
    muted="#a4acc4",
    outline="#6b748f",
    line="#2b3249",
    primary="#aebaff",
    on_primary="#11141f",
    highlight="#ffcf5c",
    on_highlight="#1a1608",
    danger="#ff9c92",
    warning="#f6c667",
    good="#84d6a6",
    stage_glow="#1a2138",
    stage_disc="#6f82bd",
    stage_disc_edge="#46568f",
    stage_ring="#ffcf5c",
)


class TypeScale:
    """Text sizes in device-independent pixels, at the scale of letters that was set."""

    def __init__(self) -> None:
        """Begin at 1."""
        self.scale = 1.0

    @property
    def caption_px(self) -> int:
        """Labels and signs."""
        return round(13 * self.scale)

    @property
    def body_px(self) -> int:
        """Running text and controls."""
        return round(15 * self.scale)

    @property
    def state_px(self) -> int:
        """The state line and titles."""
        return round(17 * self.scale)

    @property
    def subtitle_px(self) -> int:
        """What is said."""
        return round(21 * self.scale)


TYPE = TypeScale()


def set_font_scale(scale: float) -> None:
    """Write the window in letters `scale` times as large, 1 to 2. Before the window is built."""
    TYPE.scale = max(1.0, min(2.0, scale))


def font_scale() -> float:
    """Return how much larger letters are than drawn."""
    return TYPE.scale


def px(size: float) -> int:
    """Return `size`, drawn for letters of normal size, at the scale of letters that was set."""
    return round(size * TYPE.scale)


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours, 1 to 21, by the WCAG 2 formula."""

    def luminance(name: str) -> float:
        def linear(value: float) -> float:
            return value / 12.92 if value <= 0.04045 else float(((value + 0.055) / 1.055) ** 2.4)

        colour = QColor(name)
        return 0.2126 * linear(colour.redF()) + 0.7152 * linear(colour.greenF()) + 0.0722 * linear(colour.blueF())

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def font(size_px: int, *, is_bold: bool = False) -> QFont:
    """Return the interface font in `size_px`."""
    made = QFont(QGuiApplication.font())
    made.setPixelSize(size_px)
    made.setWeight(QFont.Weight.DemiBold if is_bold else QFont.Weight.Normal)
    return made


def install_font() -> None:
    """Make the first installed family of the house list the application's font.

    A family that is not installed is not asked for: the font system would search for it on every use.
    """
    installed = set(QFontDatabase.families())
    families = [name for name in _FAMILIES if name in installed]
    if not families:
        return
    made = QFont(QGuiApplication.font())
    made.setFamilies(families)
    made.setPixelSize(TYPE.body_px)
    QGuiApplication.setFont(made)


class Theme(QObject):
    """The palette in use; follows the system unless one is chosen."""

    changed = Signal()

    def __init__(self, choice: str = "system", parent: QObject | None = None) -> None:
        """Start with `choice`: system, light or dark; anything else counts as system."""
        super().__init__(parent)
        self._choice = choice if choice in THEMES else "system"
        self._palette = self._resolve()
        QGuiApplication.styleHints().colorSchemeChanged.connect(self._on_scheme_changed)

    @property
    def choice(self) -> str:
        """What was chosen: system, light or dark."""
        return self._choice

    @property
    def palette(self) -> Palette:
        """The colours in use."""
        return self._palette

    def choose(self, choice: str) -> None:
        """Switch to system, light or dark; anything else counts as system."""
        self._choice = choice if choice in THEMES else "system"
        self._apply()

    def _resolve(self) -> Palette:
        if self._choice == "system":
            is_dark = QGuiApplication.styleHints().colorScheme() == Qt.ColorScheme.Dark
        else:
            is_dark = self._choice == "dark"
        return DARK if is_dark else LIGHT

    def _apply(self) -> None:
        palette = self._resolve()
        if palette != self._palette:
            self._palette = palette
            self.changed.emit()

    def _on_scheme_changed(self) -> None:
        self._apply()


def sign(name: str, p: Palette, *, is_on_primary: bool = False) -> str:
    """Return the file of a small sign in the ink of `p`, or in the ink of its filled controls."""
    ground = "dark" if p.is_dark is not is_on_primary else "light"
    return (paths.assets() / "icons" / f"{name}_on_{ground}.svg").as_posix()


def stylesheet(p: Palette) -> str:
    """Return the style of the window's standard controls."""
    return f"""
    QMainWindow, QWidget#centralPane {{ background: {p.background}; }}
    QWidget {{ color: {p.ink}; font-size: {TYPE.body_px}px; }}
    QToolTip {{ background: {p.raised}; color: {p.ink}; border: 1px solid {p.outline}; padding: 4px 8px; }}
    QLabel {{ background: transparent; }}
    QLabel#appName {{ font-size: {TYPE.body_px}px; font-weight: 600; color: {p.muted}; }}
    QLabel#stateText {{ font-size: {TYPE.state_px}px; font-weight: 600; }}
    QLabel#microphoneText {{ font-size: {TYPE.caption_px}px; font-weight: 600; }}
    QFrame#statePill, QFrame#microphoneSign {{
        background: {p.surface}; border: 1px solid {p.line}; border-radius: 16px; }}
    QFrame#microphoneSign[isOpen="true"] {{ border: 2px solid {p.good}; }}
    QFrame#noticeBar {{ background: {p.surface}; border: 1px solid {p.outline}; border-radius: 12px; }}
    QFrame#noticeBar[severity="error"] {{ border: 2px solid {p.danger}; }}
    QFrame#noticeBar[severity="warning"] {{ border: 2px solid {p.warning}; }}
    QFrame#controlBar {{ background: {p.surface}; border: 1px solid {p.line}; border-radius: 24px; }}
    QLineEdit {{
        background: {p.background}; border: 1px solid {p.outline}; border-radius: 16px;
        padding: 0 16px; min-height: 38px; selection-background-color: {p.primary};
        selection-color: {p.on_primary}; placeholder-text-color: {p.muted}; }}
    QLineEdit:focus {{ border: 2px solid {p.primary}; padding: 0 15px; }}
    QPushButton {{
        background: {p.raised}; border: 2px solid transparent; border-radius: 16px;
        min-height: 36px; padding: 0 15px; font-weight: 600; }}
    QPushButton:hover {{ border-color: {p.outline}; }}
    QPushButton:focus {{ border-color: {p.primary}; }}
    QPushButton:pressed, QPushButton:checked {{ background: {p.primary}; color: {p.on_primary}; }}
    QPushButton:disabled {{ color: {p.muted}; }}
    QPushButton#stopButton {{ background: transparent; border-color: {p.danger}; color: {p.danger}; }}
    QPushButton#stopButton:focus {{ border-color: {p.primary}; background: {p.raised}; }}
    QPushButton#stopButton:pressed {{ background: {p.danger}; color: {p.background}; }}
    QPushButton#sendButton {{ background: {p.primary}; color: {p.on_primary}; padding: 0; }}
    QPushButton#sendButton:focus {{ border: 3px solid {p.highlight}; }}
    QPushButton[isIcon="true"] {{ padding: 0; min-width: {px(36)}px; max-width: {px(36)}px; min-height: {px(36)}px; }}
    QPushButton[isFlat="true"] {{ background: transparent; }}
    QPushButton::menu-indicator {{ image: none; width: 0; }}
    QMenu {{ background: {p.surface}; border: 1px solid {p.outline}; padding: 8px; }}
    QMenu::item {{ padding: 6px 24px 6px 24px; border-radius: 8px; }}
    QMenu::item:selected {{ background: {p.primary}; color: {p.on_primary}; }}
    QMenu::item:disabled {{ color: {p.muted}; }}
    QMenu::indicator:unchecked {{ border: none; }}
    QMenu::indicator {{ width: {px(16)}px; height: {px(16)}px; margin-left: 4px; }}
    QMenu::indicator:checked {{ image: url("{sign("check", p)}"); }}
    QMenu::indicator:checked:selected {{ image: url("{sign("check", p, is_on_primary=True)}"); }}
    QMenu::right-arrow {{ image: url("{sign("right", p)}"); width: {px(12)}px; height: {px(12)}px; margin-right: 4px; }}
    QMenu::right-arrow:selected {{
        image: url("{sign("right", p, is_on_primary=True)}");
        width: {px(12)}px; height: {px(12)}px; margin-right: 4px; }}
    QMenu::separator {{ height: 1px; background: {p.line}; margin: 8px; }}
    """
