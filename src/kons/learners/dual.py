"""DualGradient: gradient descent over a budget of points, those that go being kept as random features."""

from __future__ import annotations

from typing import Any

import numpy as np

from kons.arrays import MOST_FEATURES, MOST_POINTS, Integers, Matrix, Vector, require_integer
from kons.core.feature_maps import Fourier
from kons.core.ledger import Ledger
from kons.core.replay import Derivatives
from kons.kernels import Kernel
from kons.learners.functional import FunctionalGradient
from kons.losses import Loss
from kons.policies import Budget
from kons.state import Array, Inner, fields

__all__ = ["DualGradient"]


class DualGradient(FunctionalGradient):
    """Gradient descent in function space, over the latest large points and random features of all others.

    ::

        f(x) = sum_{i in budget} theta_i k(x_i, x) + w^T z(x),      z(x)^T z(x') = k(x, x') or about so
        learn    f <- (1 - eta*lambda) f - eta*g k(x, .)
                 with more than B points, that of the least norm goes: w <- w + theta_i z(x_i)

    What a removal takes from f, z gives back to 1/sqrt(D). O(B d + D d) a row, whatever t is. Not for
    accuracy: as many atoms in ``EmbeddedKONS`` have a curvature.

    Parameters
    ----------
    kernel, loss, bound, step_size, decay:
        As in :class:`kons.FunctionalGradient`; the kernel has random Fourier features.
    max_points:
        B.
    dimension:
        D, an even number.
    seed:
        Of the features.

    Examples
    --------
    >>> import numpy as np
    >>> from kons import DualGradient, Gaussian, Squared
    >>> x = np.random.default_rng(0).uniform(-3, 3, size=(2000, 1))
    >>> learner = DualGradient(Gaussian(0.5), Squared(), step_size=0.2, max_points=20, dimension=200)
    >>> trace = learner.advance(x, np.sin(x).ravel())
    >>> bool(trace.loss[-500:].mean() < 0.02), learner.size
    (True, 20)

    References
    ----------
    Le, Nguyen, Nguyen, Phung: Dual Space Gradient Descent for Online Learning, NIPS 2016.
    """

    STATE = fields(_map=Inner(), _w=Array("dimension"), _features=Array("size", "dimension"))

    def __init__(
        self,
        kernel: Kernel,
        loss: Loss,
        *,
        bound: float = 1.0,
        step_size: Any = None,
        decay: float = 0.0,
        max_points: int = 100,
        dimension: int = 400,
        seed: int = 0,
    ) -> None:
        self.max_points = require_integer(max_points, "max_points", at_least=1, at_most=MOST_POINTS)
        given = {"bound": bound, "step_size": step_size, "decay": decay, "seed": seed}
        super().__init__(kernel, loss, budget=Budget(self.max_points, "features"), **given)
        self.dimension = require_integer(dimension, "dimension", at_least=2, at_most=MOST_FEATURES)
        self._map = Fourier(kernel, self.dimension, self.seed)
        #: Those of the points that went, and of each that is there.
        self._w: Vector = np.zeros(self.dimension)
        self._features: Matrix = np.empty((0, self.dimension))

    def _learn_block(self, block: Any, rows: Ledger, derivatives: int | Derivatives) -> None:
        if not self._map.frequencies.shape[1]:
            self._map.start(block.shape[1])
        self._features = np.vstack([self._features, self._map.features(block)])
        super()._learn_block(block, rows, derivatives)

    def _replay(
        self, rows: Ledger, derivatives: int | Derivatives, members: Integers, count: int, *matrices: Matrix
    ) -> int:
        Z, of_block = self._features, self._features[count:]
        Q, gone = np.column_stack([of_block @ Z.T, of_block @ self._w]), np.append(np.zeros(len(Z)), 1.0)
        count = super()._replay(rows, derivatives, members, count, *matrices, Q, gone)
        self._w = gone[-1] * self._w + gone[:-1] @ Z
        self._features = Z[members[:count]]
        return count

    def _raw_scores(self, points: Any) -> Matrix:
        scores = super()._raw_scores(points)
        if self._rows_seen:
            scores += (self._map.features(points) @ self._w)[:, None]
        return scores

    def _widened(self, columns: int) -> None:
        self._map.widen(columns)
