"""A first-order kernel method on the same stream: what a learner without curvature would have lost."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

from kons.arrays import require_number, require_scale
from kons.core.ledger import Ledger
from kons.core.replay import Slopes
from kons.kernels import Kernel
from kons.learners.expansion import ExpansionLearner
from kons.losses import Loss
from kons.step_sizes import InverseSqrt, StepSize, as_step_size, for_descent

__all__ = ["KernelGradientDescent"]


class KernelGradientDescent(ExpansionLearner):
    """Online gradient descent in the kernel's function space: the step of KONS with A = I.

    ::

        predict  y_hat = clip(f(x), -C, C)                     h = f(x) - y_hat,  g = loss'(y_hat)
        learn    f <- f - (h/k(x,x) + eta_t*g) k(x, .)         eta_t = c/sqrt(t)

    The first term projects f on the functions with a value in [-C, C] at x, as KONS does in its own norm.
    Nothing is known of directions already learned, so a step must serve the strongest and the weakest
    alike: in general the regret grows as sqrt(T), also where the loss is curved.

    Costs O(t) kernel evaluations a row and keeps every point with a nonzero step. It is here to be compared
    with. Do not use it to predict: ``EmbeddedKONS`` costs less on long streams and has nothing to tune.

    Parameters
    ----------
    kernel, loss, bound:
        As in :class:`kons.KONS`.
    step:
        c of eta_t = c/sqrt(t); or a function of t = 1, 2, ... or a step size from :mod:`kons.step_sizes`,
        used as it is. None is c = C/L, for kernels with k(x,x) = 1; divide by k(x,x) for others.

    Examples
    --------
    >>> import numpy as np
    >>> from kons import Gaussian, Squared
    >>> from kons.evaluation import KernelGradientDescent
    >>> x = np.random.default_rng(0).uniform(-3, 3, size=(2000, 1))
    >>> learner = KernelGradientDescent(Gaussian(0.5), Squared(), step=1.0)
    >>> trace = learner.advance(x, np.sin(x).ravel())
    >>> bool(trace.loss[-500:].mean() < 0.01)
    True

    References
    ----------
    Kivinen, Smola, Williamson: Online learning with kernels, IEEE Transactions on Signal Processing 52, 2004
    (NORMA, here with a projection and without its weight decay); Zinkevich, ICML 2003 (the step).
    """

    def __init__(
        self,
        kernel: Kernel,
        loss: Loss,
        bound: float = 1.0,
        *,
        step: float | StepSize | Callable[[int], float] | None = None,
    ) -> None:
        size = _step_size(step, loss, require_scale(bound, "bound")) if isinstance(loss, Loss) else None
        super().__init__(kernel, loss, bound=bound, regularization=1.0, step_size=size)
        self.step = step
        self.second_order: str | None = None  # it has no A to speak of
        self._make_functions(1)

    def _learn_rows(self, points: Any, rows: Ledger, derivatives: Slopes, limit: int | None) -> None:
        # A step of eta*g is the Newton step on eta times the loss while nothing enters A = I (w = 0).
        scale, steps = rows["scale"].copy(), rows["step_size"].copy()
        rows["scale"] *= steps
        rows["step_size"] = 0.0
        super()._learn_rows(points, rows, derivatives, limit)
        rows["scale"] = scale
        if steps.all():
            rows["slope"] /= steps  # the loss need not be asked again
        else:
            rows["slope"] = scale * self.loss.slope(rows["prediction"], rows["target"])
        rows["kept"] = rows["coefficient"] != 0.0


def _step_size(step: Any, loss: Loss, bound: float) -> StepSize:
    if step is None:
        return for_descent(loss, bound, "step")
    if isinstance(step, numbers.Real):
        return InverseSqrt(1.0 / require_number(step, "step", above=0.0), 1.0)
    return as_step_size(step)
