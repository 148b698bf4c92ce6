"""A linear classifier over all sentences of an index: what a label's examples have in common, not only the nearest."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from orchestrator.rails.index.scores import Matrix

_RIDGE = 1.0
"""Penalty on the weights, chosen by five-fold cross-validation over the shipped sentences."""
MOST_WIDE = 1024
"""Widest vectors it is made for: the system to solve has this many rows."""


class Opinion:
    """Ridge regression onto one column per class (Hoerl and Kennard 1970), solved once when built.

    Rows count less the more of them a class has (1/√n), so that an intent of few examples is heard beside small talk.
    """

    def __init__(self, rows: Matrix, classes: npt.NDArray[np.int64], count: int) -> None:
        targets = np.eye(count, dtype=np.float32)[classes]
        sizes = np.maximum(targets.sum(axis=0), 1.0)
        weights = (1.0 / np.sqrt(sizes))[classes]
        weights = (weights / weights.mean()).astype(np.float32)[:, None]
        self._mean = np.asarray((targets * weights).sum(axis=0) / weights.sum(), dtype=np.float32)
        weighted = rows * weights
        inverse = np.linalg.inv(weighted.T @ rows + _RIDGE * np.eye(rows.shape[1], dtype=np.float32))
        self._weights = np.asarray(inverse @ (weighted.T @ (targets - self._mean)), dtype=np.float32)
        influence = ((rows @ inverse) * weighted).sum(axis=1, keepdims=True)
        residuals = targets - self.of(rows)
        self.left_out = np.asarray(targets - residuals / np.maximum(1.0 - influence, 1e-3), dtype=np.float32)
        """What each row would get if it had not been learned from, float32 (rows, classes): residual / (1 - h)."""

    def of(self, rows: Matrix) -> Matrix:
        """Return the score of every class, near 1 for the one it belongs to; `rows` may be one vector."""
        return np.asarray(rows @ self._weights + self._mean, dtype=np.float32)
