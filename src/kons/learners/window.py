"""SlidingWindow: kernel ridge regression over the last rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from kons.arrays import MOST_POINTS, Integers, Matrix, Vector, require_integer
from kons.core.ledger import Ledger
from kons.core.replay import Derivatives, check_sound
from kons.core.window import slide, solve_lower, solve_upper
from kons.kernels import Kernel
from kons.learners.budgeted import BudgetedExpansion
from kons.losses import Squared
from kons.state import Array, Lower, fields

__all__ = ["SlidingWindow"]


class SlidingWindow(BudgetedExpansion):
    """Kernel ridge regression over the last N rows, exactly: what is older is forgotten at once.

    ::

        f = argmin  sum_{last N rows} (y - f(x))^2 + (alpha/2) |f|^2

    The factor of the window loses its oldest point by rotations, so that nothing cancels. Costs O(N^2) a row,
    N^2/2 numbers of memory. Not where the past stays true: ``EmbeddedKONS`` learns every row for ever at the
    same cost, and with ``forgetting`` fades it smoothly.

    Parameters
    ----------
    kernel, bound, regularization:
        As in :class:`kons.KONS`, with the squared loss and its Hessian.
    window:
        N, the rows that count. One with the sample weight 0 is not among them.

    Examples
    --------
    >>> import numpy as np
    >>> from kons import Gaussian, SlidingWindow
    >>> x = np.random.default_rng(0).uniform(-3, 3, size=(600, 1))
    >>> y = np.where(np.arange(600) < 300, 1.0, -1.0) * np.sin(x).ravel()  # it turns round
    >>> trace = SlidingWindow(Gaussian(0.5), window=100, regularization=0.1).advance(x, y)
    >>> bool(trace.loss[300:310].mean() > 0.5), bool(trace.loss[400:].mean() < 0.01)
    (True, True)

    References
    ----------
    Van Vaerenbergh, Via, Santamaria: A sliding-window kernel RLS algorithm and its application to nonlinear
    channel identification, ICASSP 2006.
    """

    STATE = fields(
        _targets=Array("size"),
        _roots=Array("size", at_least=0.0),
        _L=Lower("size", written=""),
    )

    def __init__(
        self, kernel: Kernel, *, window: int = 200, bound: float = 1.0, regularization: float = 1.0
    ) -> None:
        given = {"bound": bound, "regularization": regularization}
        super().__init__(kernel, Squared(), second_order="hessian", **given)
        self.window: int = require_integer(window, "window", at_least=1, at_most=MOST_POINTS)
        self._rules = self._rules._replace(budget=self.window)
        self._shares_matrix = False
        self._targets: Vector = np.empty(0)
        self._roots: Vector = np.empty(0)
        self._L: Matrix = np.empty((0, 0))

    @property
    def coefficients(self) -> Vector:
        """Those of :attr:`points` in f."""
        theta = self._roots * self._targets
        solve_lower(self._L, len(theta), theta)
        solve_upper(self._L, len(theta), theta)
        return self._roots * theta

    def _replay(
        self, block: Any, rows: Ledger, derivatives: int | Derivatives, members: Integers, K: Matrix
    ) -> int:
        most, count = min(len(members), self.window), len(members) - len(rows)
        targets, roots, L = np.zeros(len(members)), np.zeros(len(members)), np.zeros((most, most))
        targets[:count], roots[:count], L[:count, :count] = self._targets, self._roots, self._L
        count = check_sound(slide(rows, self._rules.packed, members, targets, roots, count, L, K), rows)
        self._targets, self._roots = targets[:count].copy(), roots[:count].copy()
        self._L = np.tril(L[:count, :count])
        return count
