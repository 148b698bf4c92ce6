"""Arithmetic on rows of scores. Arrays are float32: scores (rows, items) or (items,), unit vectors (rows, width)."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Matrix: TypeAlias = npt.NDArray[np.float32]


def to_scale(cosine: Any, scale: str) -> Any:
    """Convert cosines to the scale of the settings; `angular` = 1 - sqrt(2 - 2cos)/2."""
    if scale != "angular":
        return cosine
    return 1.0 - np.sqrt(np.maximum(0.0, 2.0 - 2.0 * np.minimum(cosine, 1.0))) / 2.0


def unit(rows: Matrix) -> Matrix:
    """Return the rows at length 1; a row of zeros stays."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(norms == 0, 1, norms), dtype=np.float32)


def mean_of_best(scores: Matrix) -> Matrix:
    """Return per row the mean of its two highest values (of one, if there is only one)."""
    if scores.shape[1] < 2:
        return np.asarray(scores[:, 0] if scores.shape[1] else np.zeros(len(scores)), dtype=np.float32)
    two = np.partition(scores, scores.shape[1] - 2, axis=1)[:, -2:]
    mean = two.mean(axis=1)
    return np.asarray(np.where(np.isfinite(mean), mean, two.max(axis=1)), dtype=np.float32)


def best_places(scores: Matrix, k: int) -> list[int]:
    """Return the places of the `k` highest scores, highest first; equal ones in their order."""
    count = min(k, scores.size)
    if count <= 0:
        return []
    if count < scores.size:
        edge = np.partition(scores, scores.size - count)[scores.size - count]
        candidates = np.flatnonzero(scores >= edge)
    else:
        candidates = np.arange(scores.size)
    return sorted((int(i) for i in candidates), key=lambda i: (-float(scores[i]), i))[:count]


class Groups:
    """Which items belong to which label; labels in the order they first come."""

    def __init__(self, labels: tuple[str, ...]) -> None:
        self.names = list(dict.fromkeys(labels))
        places = {name: i for i, name in enumerate(self.names)}
        self.ids = np.array([places[label] for label in labels], dtype=np.int64)
        self.members = [np.flatnonzero(self.ids == i) for i in range(len(self.names))]
        self._order = np.concatenate(self.members) if self.members else np.zeros(0, dtype=np.int64)
        self._sizes = np.array([len(group) for group in self.members], dtype=np.int64)
        self._starts = np.concatenate(([0], np.cumsum(self._sizes)[:-1])).astype(np.int64)
        self._owners = np.repeat(np.arange(len(self._sizes)), self._sizes)

    def __len__(self) -> int:
        """Number of labels."""
        return len(self.names)

    def best(self, scores: Matrix) -> Matrix:
        """Return per label the best of one sentence's scores."""
        return np.asarray(np.maximum.reduceat(scores[self._order], self._starts), dtype=np.float32)

    def best_two(self, scores: Matrix) -> Matrix:
        """Return per label the mean of its two best of one sentence's scores."""
        ordered = scores[self._order]
        first = np.maximum.reduceat(ordered, self._starts)
        # Of equal best ones only the first is taken out, so that the second is the same again.
        hits = np.flatnonzero(np.repeat(first, self._sizes) == ordered)
        _, firsts = np.unique(self._owners[hits], return_index=True)
        rest = ordered.copy()
        rest[hits[firsts]] = -np.inf
        second = np.maximum.reduceat(rest, self._starts)
        return np.asarray(np.where(np.isfinite(second), (first + second) / 2, first), dtype=np.float32)

    def best_of_rows(self, scores: Matrix) -> Matrix:
        """Return per row and label the best score."""
        return np.stack([scores[:, group].max(axis=1) for group in self.members], axis=1)

    def best_two_of_rows(self, scores: Matrix) -> Matrix:
        """Return per row and label the mean of the two best scores."""
        return np.stack([mean_of_best(scores[:, group]) for group in self.members], axis=1)
