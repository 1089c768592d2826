"""An expert for classes: logistic regression in the span of its atoms.

::

    p_c(x) = 1/(1 + exp(-k(x)^T theta_c)),     k(x) = (k(x, a_1), ..., k(x, a_B), 1)
    A = alpha Q + sum_t w_t k_t k_t^T,         w_t = max over classes c of p_c (1 - p_c)
    Q = blockdiag(K_D, 30)
    theta <- theta + A^-1 sum_t k_t (y_t - p(x_t))^T      over the rows since the last fit

This is the second-order step of :class:`kons.EmbeddedKONS` with the logistic loss and its second derivative,
for many rows at once. The largest curvature serves all classes, so that they share one A: of two classes it
is that of both, of more it makes steps shorter, never too long. The constant hardly moves: what a class has
few rows of is learned where rows are, and far from all of them every class stays in doubt. So are the rows
of a rare class ranked best: most of them lie at the edge of the others.
"""

from __future__ import annotations

import numpy as np

from kons.arrays import Matrix, Vector
from kons.learners.auto.expert import PART, SpanRidge

__all__ = ["SpanLogistic"]

# A row that is beyond doubt still counts so much, that A does not stand still.
LEAST_CURVATURE = 1e-3
# Logits beyond these are as good as certain, 1e-13 from it: below they count as probability 0.
FARTHEST = 30.0
# The first fit: so many steps on a part of the rows, then one on all: second-order steps converge fast.
STEPS = 5
# The logit of a class that no row was of so far, which is 0 as a probability. And what it starts from
# with its first row: a probability of 2 %, for a class that came late is rare.
HIDDEN, FIRST_SEEN = -1e6, -4.0


class SpanLogistic(SpanRidge):
    """Probabilities of classes, one against the rest; O(B^2) a row, learned at the end of chunks.

    Where errors are rare it tells classes apart better than :class:`SpanRidge`, which is as much concerned
    with rows that are far on the right side. Not for a finite memory, nor for numbers. Its c are the
    residuals since the last fit; its ``base`` is theta.

    >>> import numpy as np
    >>> from kons.kernels import Gaussian
    >>> U = np.random.default_rng(0).normal(size=(400, 1))
    >>> Y = np.column_stack([U > 0.3, U <= 0.3]).astype(float)
    >>> expert = SpanLogistic(Gaussian(1.0), U[:20], 0.01, outputs=2)
    >>> expert.learn_past(U, Y, np.ones(400))
    >>> expert.predict(np.array([[0.0], [0.6]])).round(1).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """

    CONSTANT = 30.0
    base: Matrix
    c: Matrix

    def learn_past(self, U: Matrix, Y: Matrix, roots: Vector) -> None:
        """Learn what came before the first chunk; roots are square roots of weights. It is needed once."""
        weights = roots**2
        self.base = np.zeros((len(self), Y.shape[1]))
        self.base[-1, ~(Y[weights > 0.0] > 0.0).any(axis=0)] = HIDDEN
        some = slice(None, None, -(-len(U) // PART) or 1)
        share = float(weights.sum()) / max(float(weights[some].sum()), 1e-300)
        K = self.features(np.ascontiguousarray(U[some]))
        for _ in range(STEPS):
            self._forget()
            self._count(K, Y[some], share * weights[some])
            self.fit()
        if len(U) > PART:
            self._forget()
            for part, K in self._parts(U):
                self._count(K, Y[part], weights[part])
            self.fit()

    def _forget(self) -> None:
        """Before a Newton step from theta to the best fit of some rows: the sums of none."""
        self.S = np.zeros(self.S.shape)
        self.c = -self.prior @ np.where(self.base[-1] <= HIDDEN, 0.0, self.base)

    def _count(self, K: Matrix, Y: Matrix, weights: Vector) -> None:
        P = self.outputs_of(K @ self.base)
        curvature = np.maximum((P * (1.0 - P)).max(axis=1), LEAST_CURVATURE)
        root = np.sqrt(weights * curvature)
        self.add_past(K * root[:, None], (Y - P) * (root / curvature)[:, None])

    def fit(self) -> None:
        """A step, and a new factor."""
        before = self.base
        super().fit()
        self.base = before + self.base
        self.c = np.zeros(self.c.shape)

    def end_period(self, refit: bool = True) -> None:
        """Take the chunk's rows into the sums, and with ``refit`` make a step."""
        K, Y = self._Z[: self.pending], self._Y[: self.pending]
        # The last feature is 1, so that it shows the root of the weight that a row was multiplied by.
        roots = K[:, -1]
        if (roots != 1.0).any():
            used = roots > 0.0
            roots = roots[used]
            K, Y = K[used] / roots[:, None], Y[used] / roots[:, None]
        if len(K):
            first = (self.base[-1] <= HIDDEN) & (Y > 0.0).any(axis=0)
            if first.any():
                self.base = self.base.copy()  # a mark may share it
                self.base[-1, first] = FIRST_SEEN
            self._count(K, Y, roots**2)
        self._next_period()
        if refit:
            self.fit()

    def add_output(self) -> None:
        """One output more, whose targets were all 0."""
        super().add_output()
        self.base[-1, -1] = HIDDEN

    def outputs_of(self, values: Matrix) -> Matrix:
        """Probabilities, of logits."""
        shares: Matrix = 1.0 / (1.0 + np.exp(-np.clip(values, -FARTHEST, FARTHEST)))
        shares[values < -FARTHEST] = 0.0
        return shares
