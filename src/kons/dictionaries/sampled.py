"""Dictionaries of rows that a coin chose: SQUEAK and a uniform sample, which drop rows, and row sampling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from kons.arrays import Matrix, Vector, require_integer, require_number, require_scale
from kons.core.coins import Coins
from kons.core.ledger import SKETCH, Rules, new_ledger
from kons.core.quadratic import SquareSum
from kons.core.replay import sample
from kons.core.storage import PointStore
from kons.core.thinning import ThinnedSample
from kons.errors import ConfigurationError
from kons.kernels import Kernel, Linear
from kons.learners.dictionary import BLOCK, Dictionary
from kons.policies import Leverage, require_leverage
from kons.state import Count, Inner, fields

__all__ = ["SQUEAK", "RowSampling", "UniformSample"]


class Thinned(Dictionary):
    """A sample in which each row's one coin decides for ever: see :mod:`kons.core.thinning`."""

    STATE = fields(_kept=None, _sample=Inner(), _coins=Inner())

    def __init__(self, kernel: Kernel, seed: int) -> None:
        super().__init__(kernel)
        self.seed: int = require_integer(seed, "seed", at_least=0)
        self._sample, self._coins = ThinnedSample(kernel), Coins(self.seed)

    @property
    def weights(self) -> Vector:
        """``w/p`` of each atom."""
        return self._sample.weights

    def _point_stores(self) -> Sequence[PointStore]:
        return (self._sample.points,)


class Mergeable(Thinned):
    """A sample whose coins may be asked again under another probability, so that two are one."""

    def _join(self, a: Thinned, b: Thinned) -> None:
        # A coin in both: two rows have the same one with probability 2^-53.
        met = np.intersect1d(a._sample.columns[1], b._sample.columns[1])
        if len({self.seed, a.seed, b.seed}) < 3 or len(met):
            raise ConfigurationError(
                f"the seeds are {a.seed}, {b.seed} and {self.seed}, expected three that differ, and rows "
                "that are in one dictionary alone: coins must not be tossed twice. Give each part of the "
                "rows a seed of its own, and each merge one more."
            )
        for one in (a, b):
            self._sample.join(one._sample)


class SQUEAK(Mergeable):
    """Choose landmarks by ridge leverage, and forget those that later rows made superfluous.

    ::

        estimate = (1 + eps) w phi^T (A^I)^-1 phi,      A^I = alpha*I + sum (w/p) phi phi^T
        p <- min(p, max(min(beta*estimate, 1), gamma)),      kept while u < p          every ``period`` rows

    New rows enter with p = 1. With enough oversampling and high probability A^I is within a factor 1 +- eps
    of the sum over all rows, and the number of atoms follows the effective dimension of the rows so far,
    not its sum over time as KORS's does. :func:`kons.dictionaries.merge` makes one dictionary of two.

    Memory is B points with three numbers each: no matrix.

    :cost: (B + period)^3/period
    :not for: decisions that must be final when a row is seen, as those of KORS are
    :reference: Calandriello, Lazaric, Valko, AISTATS 2017 (SQUEAK and DISQUEAK)

    Parameters
    ----------
    kernel, regularization, policy, seed:
        As of :class:`kons.KORS`. ``Leverage("theory")`` is KORS's constant; the theorem of SQUEAK has a
        larger.
    period:
        Rows between two re-weighings, at absolute row numbers; 1 is the algorithm as printed.

    Notes
    -----
    Where this departs from the print: (1) one coin a row, with p = beta*estimate, instead of ``beta`` copies
    of it with a binomial number of survivors: the same mean, and no more variance; (2) one uniform for the
    whole life of a row, which is the same law; (3) re-weighing once a period, which merges an exact
    dictionary.

    Examples
    --------
    >>> import numpy as np
    >>> from kons import Gaussian
    >>> from kons.dictionaries import SQUEAK
    >>> X = np.random.default_rng(0).normal(size=(2000, 2))
    >>> dictionary = SQUEAK(Gaussian(2.0), regularization=0.1)
    >>> dictionary.update(X)
    >>> Z = dictionary.transform(X)
    >>> bool(dictionary.size < 120), bool(abs(Z @ Z.T - Gaussian(2.0).gram(X)).max() < 0.05)
    (True, True)
    """

    def __init__(
        self,
        kernel: Kernel,
        *,
        regularization: float = 1.0,
        policy: Leverage = Leverage(),  # noqa: B008 - frozen
        period: int = 64,
        seed: int = 0,
    ) -> None:
        super().__init__(kernel, seed)
        self.regularization: float = require_scale(regularization, "regularization")
        self.policy: Leverage = require_leverage(policy)
        self.period: int = require_integer(period, "period", at_least=1)

    def _take(self, points: Any, weights: Vector) -> None:
        uniforms, start = self._coins.draw(len(points)), 0
        while start < len(points):
            left = self.period - (self._rows_seen + start) % self.period
            rows = slice(start, start + left)
            self._sample.append(points[rows], weights[rows], uniforms[rows])
            start += left
            if start <= len(points):
                self._reweigh(self.regularization, 1.0 + self.policy.distortion)

    def _reweigh(self, regularization: float, factor: float) -> None:
        estimates = factor * self._sample.masses(regularization)
        wanted = np.minimum(self.policy.beta * estimates, 1.0)
        self._sample.thin(np.maximum(wanted, self.policy.floor))

    def _join(self, a: Thinned, b: Thinned) -> None:
        super()._join(a, b)
        # A = alpha*I + S over both. From (1 -+ eps)(alpha*I + S_a) of each follows, with eps*alpha*I added,
        # (1 - eps) A <= A^I + eps*alpha*I <= (1 + 3 eps) A: an over-estimate, at most (1+3eps)/(1-eps) too
        # large.
        eps = self.policy.distortion
        self._reweigh((1.0 + eps) * self.regularization, 1.0 + 3.0 * eps)


class UniformSample(Mergeable):
    """A fixed number of rows, each with the same probability, of all so far.

    ::

        kept: the rows with the ``max_atoms`` smallest coins,      weight = w * rows / atoms

    The sum over the atoms is unbiased. Where a row enters it costs max_atoms, which happens
    max_atoms*log(T/max_atoms) times. Merging is exact, in any order. No accuracy in the sense of KORS holds.

    :cost: 1
    :not for: directions that few rows have: a uniform sample misses them
    :reference: Vitter, ACM TOMS 1985 (reservoirs); Williams, Seeger, NIPS 2001 (as landmarks)

    Examples
    --------
    >>> import numpy as np
    >>> from kons import Gaussian
    >>> from kons.dictionaries import UniformSample
    >>> dictionary = UniformSample(Gaussian(), max_atoms=50)
    >>> dictionary.update(np.random.default_rng(0).normal(size=(1000, 2)))
    >>> dictionary.size, float(dictionary.weights.sum())
    (50, 1000.0)
    """

    STATE = fields(_weighed=Count())

    def __init__(self, kernel: Kernel, *, max_atoms: int = 100, seed: int = 0) -> None:
        super().__init__(kernel, seed)
        self.max_atoms: int = require_integer(max_atoms, "max_atoms", at_least=1)
        self._weighed = 0
        """Rows with a weight so far."""

    @property
    def weights(self) -> Vector:
        """``w * rows / atoms`` of each atom."""
        return np.asarray(self._sample.columns[0] * (self._weighed / max(len(self._sample), 1)))

    def _take(self, points: Any, weights: Vector) -> None:
        self._weighed += int(np.count_nonzero(weights))
        below = self._sample.columns[2, 0] if len(self._sample) == self.max_atoms else 1.0
        self._sample.append(points, weights, self._coins.draw(len(points)), below)
        self._limit()

    def _limit(self) -> None:
        if len(self._sample) > self.max_atoms:
            next_smallest = np.partition(self._sample.columns[1], self.max_atoms)[self.max_atoms]
            self._sample.thin(next_smallest)

    def _join(self, a: Any, b: Any) -> None:
        super()._join(a, b)
        self._weighed = a._weighed + b._weighed
        below = min((one.columns[2, 0] for one in (a._sample, b._sample) if len(one)), default=1.0)
        self._sample.thin(below)
        self._limit()


class RowSampling(Thinned):
    """Keep rows of a matrix by their online leverage, so that the sum of squares is kept; for ever or never.

    ::

        estimate = min((1 + eps) w x^T (S + lambda*I)^-1 x, 1),     lambda = delta/eps
        p = min(c*estimate, 1),      S <- S + (w/p) x x^T with probability p

    With ``c = 8 log(d)/eps^2`` and probability 1 - 1/d, for rows A of d features,
    ``(1 - eps) A^T A - delta*I <= S <= (1 + eps) A^T A + delta*I``, and the rows kept are
    O(d log(d) log(eps |A|^2/delta)/eps^2).

    2 d^2 numbers beside the rows; d^3/3 more for a block of which some are kept.

    :cost: d^2
    :not for: kernels; fewer rows than some c*d, which are all kept
    :reference: Cohen, Musco, Pachocki, APPROX 2016

    Parameters
    ----------
    distortion, additive:
        eps in (0, 1), and delta.
    oversampling:
        c; ``"theory"`` is that of the theorem.

    Examples
    --------
    >>> import numpy as np
    >>> from kons.dictionaries import RowSampling
    >>> A = np.random.default_rng(0).normal(size=(5000, 4))
    >>> dictionary = RowSampling(distortion=0.5, additive=10.0)
    >>> dictionary.update(A)
    >>> S = (dictionary.atoms.T * dictionary.weights) @ dictionary.atoms
    >>> ratios = np.linalg.eigvals(np.linalg.solve(A.T @ A, S)).real
    >>> dictionary.size < 2000, bool(0.5 < ratios.min()), bool(ratios.max() < 1.5)
    (True, True, True)
    """

    STATE = fields(_sum=Inner(sizes=lambda _, sizes: {"size": sizes["width"] or 0}))

    def __init__(
        self,
        *,
        distortion: float = 0.5,
        additive: float = 1.0,
        oversampling: float | Literal["theory"] = "theory",
        seed: int = 0,
    ) -> None:
        super().__init__(Linear(), seed)
        self.distortion: float = require_number(distortion, "distortion", at_least=1e-6, below=1.0)
        self.additive: float = require_scale(additive, "additive")
        if oversampling != "theory":
            oversampling = require_number(oversampling, "oversampling", above=0.0)
        self.oversampling = oversampling
        self._sum = SquareSum(self.additive / self.distortion)

    def _take(self, points: Matrix, weights: Vector) -> None:
        width = points.shape[1]
        self._sum.extend(width - len(self._sum))
        beta = self.oversampling
        rules = Rules(
            bound=1.0,
            regularization=self.additive / self.distortion,
            entry=SKETCH,
            oversampling=8.0 * math.log(max(width, 2)) / self.distortion**2 if beta == "theory" else beta,
            distortion=self.distortion,
            counts_itself=False,
        )
        rows = new_ledger(len(points))
        rows["feature_weight"], rows["uniform"] = weights, self._coins.draw(len(points))
        rows["self_kernel"] = np.einsum("ij,ij->i", points, points)
        for start in range(0, len(points), BLOCK):
            block, some = points[start : start + BLOCK], rows[start : start + BLOCK]
            with np.errstate(over="ignore", invalid="ignore"):  # the coins refuse what is no number
                V = self._sum.whiten(block)
                sample(some, rules, V @ V.T, np.array([0.0, np.trace(self._sum.S)]))
            if (some["sampler_weight"] > 0.0).any():
                self._sum.take_in(block, some["sampler_weight"])
        self._sample.append(points, weights, rows["uniform"], rows["probability"])

    def _widened(self, columns: int) -> None:
        self._sum.extend(columns)
