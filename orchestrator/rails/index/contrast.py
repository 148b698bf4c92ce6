"""How much nearer a sentence is to a label than to small talk.

Small models squeeze all cosines of one language into a narrow band, so the mean of that language is taken out first.
A label's score is the mean of its two best examples, plus a share of what a linear classifier over all sentences says.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from orchestrator.rails.index.opinion import MOST_WIDE, Opinion
from orchestrator.rails.index.scores import Groups, Matrix, mean_of_best, unit

LANGUAGES = ("en", "zh")
TOLERATED = 0.03
"""Share of small talk that a calibrated threshold lets through."""
_LEAST_LIFT, _MOST_LIFT = 0.03, 0.25
_LEAST_WITH_OPINION, _MOST_WITH_OPINION = -0.1, 0.4
"""Bounds of a threshold: with few examples all small talk lies far below them, but so does much else."""
_SHARE = 0.3
"""Weight of the classifier beside the nearest examples, chosen by five-fold cross-validation over the shipped ones."""
_ENOUGH = 10
"""Fewer sentences of a language do not make a threshold."""


class Contrast:
    """Scores of labels beside small talk, and the lift over it that calibrated thresholds ask for, per language.

    `talk` is the background, of which the first `ordinary` rows calibrate. Without any (or `is_raw`), vectors are
    taken as they are.
    """

    def __init__(
        self,
        groups: Groups,
        items: Matrix,
        talk: Matrix,
        languages: tuple[Sequence[str], Sequence[str]],
        *,
        ordinary: int,
        is_raw: bool,
    ) -> None:
        self._groups = groups
        self._is_raw = is_raw or not len(talk)
        self._means: dict[str, Matrix] = {}
        of_items, of_talk = (np.array(names, dtype=str) for names in languages)
        for language in LANGUAGES:
            rows = np.concatenate([items[of_items == language], talk[of_talk == language]]) if not self._is_raw else ()
            if len(rows):
                self._means[language] = np.asarray(np.mean(rows, axis=0), dtype=np.float32)
        self._items = self._centred(items, languages[0])
        self._talk = self._centred(talk, languages[1])
        self._opinion: Opinion | None = None
        if not self._is_raw and len(items) and items.shape[1] <= MOST_WIDE:
            classes = np.concatenate([groups.ids, np.full(len(talk), len(groups), dtype=np.int64)])
            self._opinion = Opinion(np.concatenate([self._items, self._talk]), classes, len(groups) + 1)
        self.thresholds = self._calibrated(of_talk[:ordinary])

    def _centred(self, rows: Matrix, languages: Sequence[str]) -> Matrix:
        if self._is_raw or not len(rows):
            return rows
        default = next(iter(self._means.values()))
        return unit(rows - np.stack([self._means.get(name, default) for name in languages]))

    def _calibrated(self, ordinary: npt.NDArray[np.str_]) -> dict[str, float]:
        """Return per language the lift that all but a few per cent of the small talk itself stays below."""
        bounds = (_LEAST_LIFT, _MOST_LIFT) if self._opinion is None else (_LEAST_WITH_OPINION, _MOST_WITH_OPINION)
        found = dict.fromkeys(LANGUAGES, _LEAST_LIFT)
        if not len(ordinary) or not len(self._items):
            return found
        best, talk = self.talk_left_out()
        lifts = (best.max(axis=1) - talk)[: len(ordinary)]
        for language in LANGUAGES:
            own = lifts[ordinary == language]
            if len(own) >= _ENOUGH:
                found[language] = float(np.clip(np.quantile(own, 1 - TOLERATED), *bounds))
        return found

    def of(self, vector: Matrix, language: str) -> tuple[Matrix, float]:
        """Return the scores of all labels for one sentence's vector, and that of small talk."""
        row = self._centred(vector[None, :], [language])[0]
        best = self._groups.best_two(self._items @ row)
        talk = float(mean_of_best((self._talk @ row)[None, :])[0]) if len(self._talk) else 0.0
        if self._opinion is not None:
            said = _SHARE * self._opinion.of(row)
            best, talk = best + said[:-1], talk + float(said[-1])
        return best, talk

    def items_left_out(self) -> tuple[Matrix, Matrix]:
        """Return per item the scores of all labels, and that of small talk, as if it were no example."""
        among = self._items @ self._items.T
        np.fill_diagonal(among, -np.inf)
        return self._with_opinion(among, self._items @ self._talk.T, slice(0, len(self._items)))

    def talk_left_out(self) -> tuple[Matrix, Matrix]:
        """Return the same per sentence of small talk, as if it did not stand there."""
        among = self._talk @ self._talk.T
        np.fill_diagonal(among, -np.inf)
        return self._with_opinion(self._talk @ self._items.T, among, slice(len(self._items), None))

    def _with_opinion(self, scores: Matrix, talk: Matrix, rows: slice) -> tuple[Matrix, Matrix]:
        best = self._groups.best_two_of_rows(scores)
        best = np.where(np.isfinite(best), best, -1.0)
        beside = mean_of_best(talk) if talk.shape[1] else np.zeros(len(scores), dtype=np.float32)
        if self._opinion is None:
            return best, beside
        said = _SHARE * self._opinion.left_out[rows]
        return best + said[:, :-1], beside + said[:, -1]
