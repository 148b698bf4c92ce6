"""Pictures of widgets as numbers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from PySide6.QtGui import QImage


def pixels(image: QImage) -> npt.NDArray[np.int16]:
    """Return the picture as (height, width, 3) of 0..255, red first."""
    plain = image.convertToFormat(QImage.Format.Format_RGBX8888)
    raw = np.frombuffer(bytes(plain.constBits()), dtype=np.uint8)
    return raw.reshape(plain.height(), plain.bytesPerLine() // 4, 4)[:, : plain.width(), :3].astype(np.int16)
