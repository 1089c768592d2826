"""How much each column counts among neighbours: steps that make the errors of rows left out smaller.

::

    e_i(s, alpha) = f_i - y_i          f_i the fit to the neighbours of row i among all others
    step          = -(J^T V J + r I)^-1 J^T V e       in log s and log alpha, J = de/d(log s, log alpha)
    V             = diag(w_i/sqrt|e_i|),              r = 4 mean(v_i |e_i|^2)

It is ridge regression of the errors on how they change (Levenberg, Marquardt), of sum w |e|^1.5: of squares a
few rows decide. Columns start from what the Gaussian expert learned of them, in each scaling, or from where
the last search ended, whichever errs less; each step is taken on other rows than the one before, so that what
is chance in one is not followed twice. A scale may change by e^(+-1) a step; the prior r lets it by e^(+-1/2)
where one row tells as much as there is noise.

Reference: Marquardt: An algorithm for least-squares estimation of nonlinear parameters, SIAM J. 1963.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, Vector
from kons.core.ridge import Ridge
from kons.learners.auto.feature_map import median_length
from kons.learners.auto.metric_learning import MOST_ROTATED
from kons.learners.auto.nearest import Rescaled
from kons.learners.auto.neighbours import Neighbours, leave_out
from kons.learners.auto.schedule import EARLY

__all__ = ["Rows", "Setting", "fit_neighbours"]


class Setting(NamedTuple):
    """What neighbours are found by."""

    scaling: int
    """Its place among the candidates."""
    sizes: Vector
    """The scale of each column."""
    regularization: float


class Rows:
    """Rows in several scalings, of which some are left out."""

    candidates: list[Matrix]
    weights: Vector

    def __init__(
        self, candidates: Sequence[Matrix], Y: Matrix, weights: Vector, random: np.random.Generator
    ) -> None:
        columns = candidates[0].shape[1]
        last = slice(max(len(Y) - 32 * 5120 // max(columns, 32), 0), None)  # distances cost O(columns)
        self.candidates, self.Y, self.weights = [each[last] for each in candidates], Y[last], weights[last]
        self.random = random
        #: As neighbours keep them; leaves of each scaling, once they are needed.
        roots = np.sqrt(self.weights)[:, None]
        self._values = np.hstack([self.Y * roots**2, roots**2])
        self._leaves: dict[int, Rescaled] = {}
        deviations = self.Y - np.average(self.Y, axis=0, weights=self.weights)
        self.few: bool = len(self.Y) < 2048
        #: Of the targets.
        self.deviation: float = float(np.sqrt(np.mean(np.sum(deviations**2, axis=1))))

    def draw(self, count: int) -> NDArray[np.int64]:
        return np.sort(self.random.permutation(len(self.Y))[:count])

    def left_out(
        self, setting: Setting, places: NDArray[np.int64], slopes: bool
    ) -> tuple[Matrix, NDArray[np.float64]]:
        """Errors at some rows, each predicted by all others, and how they change with the setting."""
        which, sizes = setting.scaling, setting.sizes
        if which not in self._leaves:  # those of the first sizes serve the next ones, too
            self._leaves[which] = Rescaled(self.candidates[which], self._values, sizes)
        rows, U = self._leaves[which], self.candidates[which][places] * sizes
        outputs = self.Y.shape[1]
        errors, room = np.empty((len(U), outputs)), np.empty((len(U), outputs * slopes, len(sizes) + 1))
        leave_out(U, rows.places[places], rows.kept(sizes), setting.regularization, errors, room)
        return errors, room

    def step(self, setting: Setting, *, fixed: bool) -> Setting:
        """The setting after one step; the regularization stays, in units of distance, if it is ``fixed``."""
        # Many small steps: each is a way along what the last one found. Where many rows were stepped along
        # before, fewer tell enough, and a step costs as much as all rows kept, for each of its own.
        places = self.draw(128 if self.few else 64)
        errors, slopes = (found / self.deviation for found in self.left_out(setting, places, True))
        # Weights of 1e-300 have no slopes that are numbers.
        slopes = np.where(np.isfinite(slopes).all(axis=(1, 2), keepdims=True), slopes, 0.0)
        sizes = np.maximum(np.sqrt(np.sum(errors**2, axis=1)), 1e-3)  # what is less is as good as nothing
        weights = self.weights[places] / self.weights[places].max()
        roots = np.sqrt(weights / np.sqrt(sizes))[:, None]
        weighted = roots * errors
        prior = 4.0 * float(np.mean(np.sum(weighted**2, axis=1)) + np.mean((1e-3 * roots) ** 2))
        ridge = Ridge(prior * np.eye(slopes.shape[2] - fixed), 1, online=False, period=1)
        J = roots[:, :, None] * slopes[:, :, : slopes.shape[2] - fixed]
        ridge.add_past(J.reshape(-1, J.shape[2]), -weighted.reshape(-1, 1))
        ridge.fit()
        # In whole parts of 1/256, lest rounding move every row by the last bit of single precision.
        factors = np.exp(np.rint(256.0 * np.clip(ridge.coefficients()[:, 0], -1.0, 1.0)) / 256.0)
        columns = len(setting.sizes)
        alpha = setting.regularization * float(factors[columns] if not fixed else 1.0)
        return setting._replace(sizes=setting.sizes * factors[:columns], regularization=alpha)


def fit_neighbours(
    candidates: Sequence[Matrix],
    sizes: Vector | None,
    Y: Matrix,
    weights: Vector,
    most: int,
    regularization: float | None,
    random: np.random.Generator,
    units: Vector | float = 1.0,
    before: Setting | None = None,
    trend: Matrix | None = None,
) -> tuple[Setting, Neighbours]:
    """What is best for rows in several scalings, and the expert.

    The search starts from columns of these ``sizes`` or, where that is better or there are none, from what
    was found ``before``. A ``regularization`` that is given is in units of the median distance of two rows.
    Of labels of few rows, and beyond 128 columns, nothing is searched for but the scaling. Errors are added
    up in these ``units``. The ``trend`` of the rows is kept behind their targets.
    """
    rows = Rows(candidates, Y / units, weights, random)
    places = rows.draw(128 if rows.few else 192)
    others = np.roll(places, len(places) // 2)

    def unit(which: int, sizes: Vector) -> float:
        U = rows.candidates[which] * sizes
        return median_length(U[places] - U[others], absolute=True)

    def error(setting: Setting) -> float:
        errors = rows.left_out(setting, places, False)[0]
        return float(rows.weights[places] @ np.sum(errors**2, axis=1) ** 0.75)

    ratio = 0.1 / 3.16 if regularization is None else regularization
    starts = [] if before is None else [before]
    if sizes is not None:
        starts = [*(Setting(i, sizes, ratio * unit(i, sizes)) for i in range(len(candidates))), *starts]
    best = starts[0]
    if len(starts) > 1:
        # What is better by less than a thousandth, or by what is rounding beside the targets, is not better.
        rounding = 1e-9 * float(rows.weights[places] @ np.sum(rows.Y[places] ** 2, axis=1) ** 0.75)
        least = error(best)
        for other in starts[1:]:
            if (tried := error(other)) < 0.999 * least - rounding:
                best, least = other, tried
    # Labels of few rows tell too little for a search.
    enough = len(Y) >= EARLY or np.size(units) == Y.shape[1]
    if enough and len(best.sizes) <= MOST_ROTATED and rows.deviation > 0.0:
        for _ in range(8):
            best = rows.step(best, fixed=regularization is not None)
            if regularization is not None:
                best = best._replace(regularization=ratio * unit(best.scaling, best.sizes))
    U = candidates[best.scaling] * best.sizes
    told, trends = (Y, 0) if trend is None else (np.hstack([Y, trend]), trend.shape[1])
    expert = Neighbours(U.shape[1], Y.shape[1], most, best.regularization, np.size(units), trends)
    expert.learn_past(U, told, np.sqrt(weights))
    return best, expert
