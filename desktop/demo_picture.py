"""The picture of a conversation: both tracks over time, with what happened when."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QGuiApplication, QImage, QPainter, QPen

from audio.ports import Samples
from orchestrator.contracts.errors import PartFailed

_WIDTH, _HEIGHT = 1600, 560
_MARGIN = 60
_USER, _CHARACTER = QColor("#2f3f9e"), QColor("#b26a00")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A moment of the user's or the character's track; `tag` tells marks of the same text apart."""

    at_s: float
    text: str
    is_user: bool
    tag: str = ""


def draw_timeline(path: Path, stereo: Samples, rate_hz: int, marks: Sequence[Mark]) -> None:
    """Draw both channels (user left, character right) with their marks as a PNG. Raises `PartFailed`."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    application = QGuiApplication.instance() or QGuiApplication(["mynah"])
    image = QImage(_WIDTH, _HEIGHT, QImage.Format.Format_RGB32)
    image.fill(QColor("#faf7f0"))
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setFont(QFont("sans-serif", 10))
    length_s = len(stereo) / rate_hz
    scale = (_WIDTH - 2 * _MARGIN) / max(length_s, 0.1)
    rows = ((0, "user", _USER, 170.0), (1, "Mynah", _CHARACTER, 390.0))
    for channel, name, colour, middle in rows:
        _draw_track(painter, stereo[:, channel], middle, colour)
        painter.setPen(QPen(colour))
        painter.drawText(QPointF(8.0, middle + 4.0), name)
    _draw_axis(painter, length_s, scale)
    for number, mark in enumerate(sorted(marks, key=lambda m: m.at_s)):
        _draw_mark(painter, mark, _MARGIN + mark.at_s * scale, number)
    painter.end()
    if not image.save(str(path)):
        raise PartFailed("picture_failed", f"cannot write {path}")
    del application


def _draw_track(painter: QPainter, samples: Samples, middle: float, colour: QColor) -> None:
    columns = _WIDTH - 2 * _MARGIN
    size = max(1, len(samples) // columns)
    peaks = (
        np.abs(samples[: size * columns]).reshape(-1, size).max(axis=1)
        if len(samples) >= size * columns
        else np.abs(samples)
    )
    loudest = max(float(peaks.max(initial=0.0)), 0.05)
    painter.setPen(QPen(colour, 1.0))
    for x, peak in enumerate(peaks):
        height = 70.0 * float(peak) / loudest
        painter.drawLine(QPointF(_MARGIN + x, middle - height), QPointF(_MARGIN + x, middle + height))


def _draw_axis(painter: QPainter, length_s: float, scale: float) -> None:
    painter.setPen(QPen(QColor("#5a5a5a"), 1.0))
    base = _HEIGHT - 40.0
    painter.drawLine(QPointF(_MARGIN, base), QPointF(_WIDTH - _MARGIN, base))
    for second in range(int(length_s) + 1):
        x = _MARGIN + second * scale
        painter.drawLine(QPointF(x, base), QPointF(x, base + 6.0))
        painter.drawText(QRectF(x - 20.0, base + 8.0, 40.0, 20.0), int(Qt.AlignmentFlag.AlignCenter), f"{second} s")


def _draw_mark(painter: QPainter, mark: Mark, x: float, number: int) -> None:
    colour = _USER if mark.is_user else _CHARACTER
    top, bottom = (95.0, 245.0) if mark.is_user else (315.0, 465.0)
    painter.setPen(QPen(colour, 1.5, Qt.PenStyle.DashLine))
    painter.drawLine(QPointF(x, top), QPointF(x, bottom))
    painter.drawText(QPointF(x + 3.0, top - 4.0 - 14.0 * (number % 3)), f"{mark.text} {mark.at_s:.2f} s")
