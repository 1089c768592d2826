"""Sketched-KONS: the kernel online Newton step with an adaptive sketch (Algorithm 3)."""

from __future__ import annotations

from typing import Any

from kons.arrays import require_flag, require_integer
from kons.core.coins import Coins
from kons.core.ledger import SKETCH
from kons.errors import ConfigurationError
from kons.kernels import Kernel
from kons.learners.expansion import ExpansionLearner
from kons.losses import Loss
from kons.policies import Leverage, require_leverage

__all__ = ["SketchedKONS"]


class SketchedKONS(ExpansionLearner):
    """KONS that lets a point into the preconditioner only if its coin comes up.

    ::

        estimate = (1 + eps) r/(1 + r),    r = wbar phi^T (A^I)^-1 phi,   wbar = eta*g^2     (Eq. 4)
        p = max(min(beta*estimate, 1), gamma),     z = 1 with probability p                 (line 9)
        A <- A + z wbar phi phi^T,                 A^I <- A^I + z (wbar/p) phi phi^T

    All else is exact KONS. A point outside A keeps its coefficient in the function. Costs
    O(t*d + B^2) a row with B points inside, so t*gamma <= B; the regret grows by at most
    1/max(gamma, beta*tau_min) (Theorem 3). Use exact ``KONS`` where some thousand rows are all there is.

    Parameters
    ----------
    kernel, loss, bound, regularization, step_size:
        As in :class:`kons.KONS`. A loss without curvature needs an explicit step size: Theorem 3 says
        nothing about it.
    policy:
        :class:`kons.policies.Leverage`: beta, eps and gamma.
    shared_coins:
        True: the sketch and KORS use one coin, and KORS weighs by the floored p, which Corollary 1
        needs. False: KORS runs by itself, with its own coins and without the floor, as the text of
        Algorithm 3 says.
    weighted:
        True: A takes ``z wbar/p`` instead, the unbiased variant of the paper's Discussion. *Warning:*
        its regret is small only in expectation. A point kept against long odds enters with a weight
        far above 1/eta, which the bound charges as drift (R_D); nothing caps it.
    seed:
        Each row uses exactly one number of ``numpy.random.default_rng(seed)``, in stream order,
        whether it is needed or not: the same seed gives the same coins, whatever the blocks.

    Examples
    --------
    >>> import numpy as np
    >>> from kons import Gaussian, SketchedKONS, Squared
    >>> from kons.policies import Leverage
    >>> x = np.random.default_rng(0).uniform(-3, 3, size=(2000, 1))
    >>> learner = SketchedKONS(Gaussian(0.5), Squared(), policy=Leverage(floor=0.05), seed=1)
    >>> trace = learner.advance(x, np.sin(x).ravel())
    >>> bool(learner.size < 400), bool(trace.loss[-500:].mean() < 0.02)
    (True, True)

    References
    ----------
    Calandriello, Lazaric, Valko, ICML 2017, Algorithm 3 (as corrected in docs/departures.md).
    """

    _extra_columns = ("leverage_estimate", "probability")

    def __init__(
        self,
        kernel: Kernel,
        loss: Loss,
        *,
        bound: float = 1.0,
        regularization: float = 1.0,
        step_size: Any = None,
        policy: Leverage = Leverage(floor=0.1),  # noqa: B008 - frozen
        shared_coins: bool = True,
        weighted: bool = False,
        seed: int = 0,
    ) -> None:
        super().__init__(kernel, loss, bound=bound, regularization=regularization, step_size=step_size)
        if step_size is None and loss.curvature(self.bound) <= 0.0:
            raise ConfigurationError(
                f"{loss!r} has no curvature on [-{bound:g}, {bound:g}], and Sketched-KONS has no "
                "default step size without: give step_size, or use KONS."
            )
        self.policy: Leverage = require_leverage(policy)
        self.shared_coins: bool = require_flag(shared_coins, "shared_coins")
        self.weighted: bool = require_flag(weighted, "weighted")
        self.seed: int = require_integer(seed, "seed", at_least=0)
        self._rules = self._rules._replace(
            entry=SKETCH,
            shared_coins=self.shared_coins,
            weighted=self.weighted,
            oversampling=policy.beta,
            distortion=float(policy.distortion),
            floor=float(policy.floor),
        )
        coins = Coins(self.seed)
        self._coins = (coins,) if self.shared_coins else (coins, coins.spawn())
        self._make_functions(1)

    @property
    def atoms(self) -> Any:
        """The points inside A, in the order they entered, of one target. A copy."""
        if len(self._expansions) > 1:
            raise ConfigurationError(
                f"each of {len(self._expansions)} targets has an A and points of its own: for one dictionary "
                "use EmbeddedKONS, for the points of one target a SketchedKONS of it alone."
            )
        return self._expansions[0].function.inside.copy()
