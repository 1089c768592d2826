"""Dictionaries that decide once, when a row is seen: online row sampling, and linear dependence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from kons.arrays import Matrix, Vector, require_integer, require_number, require_scale
from kons.core.coins import Coins
from kons.core.embedding import Embedding
from kons.core.entry import DEPENDENT
from kons.core.ledger import SKETCH, Rules, new_ledger
from kons.core.quadratic import Quadratic
from kons.core.replay import sample
from kons.core.storage import GrowingArray, PointStore, VectorStore, take
from kons.kernels import Kernel, Linear
from kons.learners.dictionary import BLOCK, Dictionary
from kons.state import Growing, Inner, Points, fields

__all__ = ["LinearDependence", "RowSampling"]

NO_ATOMS: Matrix = np.empty((0, 0))


class RowSampling(Dictionary):
    """Keep rows of a matrix by their online leverage, so that the sum of squares is kept; for ever or never.

    ::

        estimate = min((1 + eps) w x^T (S + lambda*I)^-1 x, 1),     lambda = delta/eps
        p = min(c*estimate, 1),      S <- S + (w/p) x x^T with probability p

    With ``c = 8 log(d)/eps^2`` and probability 1 - 1/d, for rows A of d features,
    ``(1 - eps) A^T A - delta*I <= S <= (1 + eps) A^T A + delta*I``, and the rows kept are
    O(d log(d) log(eps |A|^2/delta)/eps^2).

    2 d^2 numbers beside the rows.

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

    STATE = fields(
        _kept=None,
        _rows=Points("atoms"),
        _weights=Growing("atoms", at_least=0.0),
        _sum=Inner(sizes=lambda _, sizes: {"size": sizes["width"] or 0}),
        _coins=Inner(),
    )

    def __init__(
        self,
        *,
        distortion: float = 0.5,
        additive: float = 1.0,
        oversampling: float | Literal["theory"] = "theory",
        seed: int = 0,
    ) -> None:
        super().__init__(Linear())
        self.distortion: float = require_number(distortion, "distortion", at_least=1e-6, below=1.0)
        self.additive: float = require_scale(additive, "additive")
        if oversampling != "theory":
            oversampling = require_number(oversampling, "oversampling", above=0.0)
        self.oversampling = oversampling
        self.seed: int = require_integer(seed, "seed", at_least=0)
        self._rows, self._weights, self._coins = VectorStore(), GrowingArray(), Coins(self.seed)
        self._sum = Quadratic(self.additive / self.distortion)

    @property
    def atoms(self) -> Matrix:
        """The rows kept, in the order they came. A copy."""
        return self._rows.copy()

    @property
    def weights(self) -> Vector:
        """``w/p`` of each row kept. A copy."""
        return self._weights.view.copy()

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
        start = 0
        while start < len(points):
            part = slice(start, start + self._sum.rows_left)
            block, some = self._sum.meet(np.ascontiguousarray(points[part])), rows[part]
            sample(some, rules, block.M, self._sum.totals)
            some["weight"], some["inverse_form"] = some["sampler_weight"], some["sampler_inverse_form"]
            self._sum.absorb(some[None], block, NO_ATOMS)
            start = part.stop
        chosen = np.flatnonzero(rows["weight"] > 0.0)
        self._rows.append_rows(points, chosen)
        self._weights.append(rows["weight"][chosen])

    def _point_stores(self) -> Sequence[PointStore]:
        return (self._rows,)

    def _widened(self, columns: int) -> None:
        self._sum.extend(columns)


class LinearDependence(Dictionary):
    """Keep each row that is not, to a tolerance, in the span of those kept before it.

    ::

        kept iff  k(x,x) - |projection of phi(x) on the span|^2  >  tolerance * k(x,x)

    No coins. Every row lies within ``sqrt(tolerance * k(x,x))`` of the span, unless ``max_atoms`` was
    reached; on a compact set the number of atoms is finite. B^2/2 numbers with B atoms. Atoms weigh 1: they
    span the rows, and do not stand for how many there were.

    :cost: B^2
    :not for: rare rows that are noise, each of which becomes an atom; weights
    :reference: Engel, Mannor, Meir, IEEE TSP 2004

    Examples
    --------
    >>> import numpy as np
    >>> from kons import Gaussian
    >>> from kons.dictionaries import LinearDependence
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(1000, 2))
    >>> dictionary = LinearDependence(Gaussian(1.0), tolerance=1e-2)
    >>> dictionary.update(X)
    >>> Z = dictionary.transform(X)
    >>> dictionary.size < 30, bool((1 - np.sum(Z**2, axis=1)).max() <= 1e-2)
    (True, True)
    """

    STATE = fields(_kept=None, _embedding=Inner())
    max_atoms: int | None

    def __init__(self, kernel: Kernel, *, tolerance: float = 1e-4, max_atoms: int | None = None) -> None:
        super().__init__(kernel)
        self.tolerance: float = require_number(tolerance, "tolerance", at_least=0.0, below=1.0)
        self.max_atoms = None if max_atoms is None else require_integer(max_atoms, "max_atoms", at_least=1)
        self._embedding = Embedding(kernel)

    @property
    def atoms(self) -> Any:
        """The points kept, in the order they came. A copy."""
        return self._embedding.atoms.copy()

    @property
    def weights(self) -> Vector:
        """1 for each atom."""
        return np.ones(len(self._embedding))

    def _span(self) -> Embedding:
        return self._embedding

    def _take(self, points: Any, weights: Vector) -> None:
        points = take(points, np.flatnonzero(weights > 0.0))
        most = math.inf if self.max_atoms is None else self.max_atoms
        tolerance = max(self.tolerance, DEPENDENT)
        for start in range(0, len(points), BLOCK):
            if len(self._embedding) < most:
                self._embedding.extend(points[start : start + BLOCK], tolerance, tolerance)
        if self.max_atoms is not None and len(self._embedding) > self.max_atoms:
            # The factor is triangular: the first atoms do not know of those behind them.
            self._embedding.factor.truncate(self.max_atoms)
            self._embedding.atoms.truncate(self.max_atoms)

    def _point_stores(self) -> Sequence[PointStore]:
        return (self._embedding.atoms,)
