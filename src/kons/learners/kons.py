"""Exact KONS: the kernel online Newton step (Algorithm 1)."""

from __future__ import annotations

from typing import Any, Literal

from kons.kernels import Kernel
from kons.learners.expansion import ExpansionLearner
from kons.losses import Loss

__all__ = ["KONS"]


class KONS(ExpansionLearner):
    """The kernel online Newton step, exactly: every point enters the preconditioner.

    ::

        predict  y_hat = clip(f(x), -C, C)
        learn    f <- f - (h/q + g/(1 + w*q)) A^-1 phi(x)      h = f(x) - y_hat,  q = phi^T A^-1 phi
                 A <- A + w phi phi^T                          w = eta*g^2,  A_0 = alpha*I

    which is the online Newton step with the oblique projection of Eq. 1, in function space. Its
    regret against the best function with values in [-C, C] grows with the log-determinant of A
    (Theorem 1), that is as d_eff * log T for losses with curvature.

    Costs O(t^2) time a row and t^2/2 numbers of memory in all, replayed in blocks at about the cost
    of one Cholesky factorization. Do not use it beyond some ten thousand rows: use
    ``SketchedKONS``, whose cost is a choice.

    Parameters
    ----------
    kernel, loss:
        From :mod:`kons.kernels` and :mod:`kons.losses`.
    bound:
        C: predictions are clipped to [-C, C]; squared-loss targets must lie inside. The curvature
        constant grows as 1/C^2, so centre the targets and use their real range.
    regularization:
        alpha: A starts as alpha*I.
    step_size:
        eta: a number, a function of t = 1, 2, ..., or None for the paper's choice, the loss's
        curvature constant or, where that is 0, 1/(L*C*sqrt(t)).
    second_order:
        ``"gradient"`` is the paper's w = eta*g^2. ``"hessian"`` takes w = l'', the second derivative
        of the loss; with the squared loss this is online kernel ridge regression with
        lambda = regularization/2: nothing is projected, only the output is clipped. It usually
        predicts better; the regret theorems are about ``"gradient"``. ``"capped"`` takes
        ``w = max(0, eta - 1/q)``, as little as makes q at most 1/eta, and predicts f/max(1, eta*q) (NAROW).
        ``"none"`` is first order: f moves by eta*g/alpha, nothing enters A.
    updates:
        ``"mistakes"``: only rows on the wrong side, y*f <= 0, are learned and kept, with targets -1 and +1,
        as perceptrons do; ``"all"`` learns every row.
    forward:
        Predict as if the row had been seen already with target 0, ``f/(1 + 2q)`` (Azoury-Warmuth-Vovk), at
        O(t^2) a prediction; for the squared loss with ``second_order="hessian"``.

    Examples
    --------
    >>> import numpy as np
    >>> from kons import KONS, Gaussian, Squared
    >>> x = np.random.default_rng(0).uniform(0, 6, size=(300, 1))
    >>> learner = KONS(Gaussian(bandwidth=0.5), Squared(), bound=1.0, regularization=0.1)
    >>> trace = learner.advance(x, np.sin(x).ravel())
    >>> bool(trace.loss[-50:].mean() < 0.01)
    True
    >>> round(learner.predict_one([1.5]), 1)
    1.0

    References
    ----------
    Calandriello, Lazaric, Valko: Second-Order Kernel Online Convex Optimization with Adaptive
    Sketching, ICML 2017, Algorithm 1 (as corrected in docs/departures.md).
    """

    def __init__(
        self,
        kernel: Kernel,
        loss: Loss,
        *,
        bound: float = 1.0,
        regularization: float = 1.0,
        step_size: Any = None,
        second_order: Literal["gradient", "hessian", "capped", "none"] = "gradient",
        updates: Literal["all", "mistakes"] = "all",
        forward: bool = False,
    ) -> None:
        super().__init__(
            kernel,
            loss,
            bound=bound,
            regularization=regularization,
            step_size=step_size,
            second_order=second_order,
            updates=updates,
        )
        self.forward: bool = self._require_forward(forward)
        self._rules = self._rules._replace(forward=self.forward)
        self._make_functions(1)
