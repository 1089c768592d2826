"""Dictionaries without coins: linear dependence, frequent directions, and kernel PCA on random features."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from kons.arrays import MOST_FEATURES, Matrix, Vector, require_integer, require_number
from kons.core.embedding import Embedding
from kons.core.entry import DEPENDENT
from kons.core.feature_maps import Columns, FeatureMap, Fourier
from kons.core.frequent_directions import FrequentDirections as Sketch
from kons.core.storage import PointStore, take
from kons.kernels import Kernel, Linear
from kons.learners.dictionary import BLOCK, Dictionary
from kons.state import Inner, fields

__all__ = ["FrequentDirections", "KernelPCA", "LinearDependence"]


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


class FrequentDirections(Dictionary):
    """The directions in which the rows are largest, with their squares, at a bounded error.

    ::

        0 <= A^T A - sum weight v v^T <= error * I,      error <= |A - A_k|_F^2/(max_atoms - k) for every k

    for rows ``sqrt(w) x`` of A. Atoms are orthonormal directions v, the strongest first. No coins; merging
    keeps the bound. 2*max_atoms*d numbers. Nothing is centred.

    :cost: B d
    :not for: flat spectra, whose error is of the size of the squares themselves; kernels
    :reference: Liberty, KDD 2013; Ghashami, Liberty, Phillips, Woodruff, SIAM J. Computing 2016

    Examples
    --------
    >>> import numpy as np
    >>> from kons.dictionaries import FrequentDirections
    >>> A = np.random.default_rng(0).normal(size=(1000, 20)) * 0.5 ** np.arange(20)
    >>> dictionary = FrequentDirections(max_atoms=6)
    >>> dictionary.update(A)
    >>> kept = (dictionary.atoms.T * dictionary.weights) @ dictionary.atoms
    >>> dictionary.size, bool(np.linalg.norm(A.T @ A - kept, 2) <= dictionary.error < 2.0)
    (6, True)
    """

    STATE = fields(
        _kept=None, _map=Inner(), _sketch=Inner(sizes=lambda part, _: {"width": part._map.size or None})
    )
    _map: FeatureMap
    max_atoms: int

    def __init__(self, max_atoms: int = 50) -> None:
        super().__init__(Linear())
        self._begin(max_atoms, Columns(Linear()))

    def _begin(self, max_atoms: int, features: FeatureMap) -> None:
        self.max_atoms = require_integer(max_atoms, "max_atoms", at_least=1)
        self._map, self._sketch = features, Sketch(self.max_atoms)

    @property
    def atoms(self) -> Matrix:
        """Orthonormal directions, as rows, the strongest first. A copy."""
        return self._singular()[1][: self.max_atoms].copy()

    @property
    def weights(self) -> Vector:
        """The square of the rows along each direction. A copy."""
        return np.asarray(self._singular()[0][: self.max_atoms] ** 2)

    @property
    def error(self) -> float:
        """By how much the sum over the atoms may be too small along any direction."""
        values = self._singular()[0]
        return self._sketch.removed + float(np.sum(values[self.max_atoms : self.max_atoms + 1] ** 2))

    def transform(self, X: Any) -> Matrix:
        """The coordinates of each row along the directions."""
        points = self._as_points(X)
        if not len(self._sketch):
            return np.empty((len(points), 0))
        return self._map.features(points) @ self._singular()[1][: self.max_atoms].T

    def _singular(self) -> tuple[Vector, Matrix]:
        return self._found_once(self._sketch.singular)

    def _take(self, points: Matrix, weights: Vector) -> None:
        if self._width is None:
            self._map.start(points.shape[1])
        rows = np.flatnonzero(weights > 0.0)
        self._sketch.update(np.sqrt(weights[rows])[:, None] * self._map.features(points[rows]))

    def _join(self, a: Any, b: Any) -> None:
        width = a._width or b._width
        if width is not None:
            self._map.start(width)
        for one in (a, b):
            self._sketch.merge(one._sketch)

    def _point_stores(self) -> Sequence[PointStore]:
        return ()

    def _widened(self, columns: int) -> None:
        before = self._map.size
        self._map.widen(columns)
        if self._map.size > before:
            self._sketch.widen(self._map.size - before)


class KernelPCA(FrequentDirections):
    """Kernel principal components of a stream: frequent directions of random Fourier features.

    ::

        z(x) = sqrt(2/D) (cos(Wx), sin(Wx)),      z^T z' = k(x, x') + O(1/sqrt(D)),      A = rows z

    with the bound of :class:`FrequentDirections` on top: nothing grows with the stream. Weights are the
    squares along the components, and estimate the largest eigenvalues of the kernel matrix. 2*max_atoms*D
    numbers. Nothing is centred.

    :cost: D (B + d)
    :not for: components weaker than rows/sqrt(D), which are noise of the features
    :reference: Ghashami, Perry, Phillips, AISTATS 2016; Rahimi, Recht, NIPS 2007 (the features)

    Parameters
    ----------
    kernel:
        Gaussian, Laplace, Matern or RationalQuadratic.
    dimension:
        D, even.
    seed:
        Of the features: two dictionaries can be merged if it is the same.

    Examples
    --------
    >>> import numpy as np
    >>> from kons import Gaussian
    >>> from kons.dictionaries import KernelPCA
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> dictionary = KernelPCA(Gaussian(2.0), max_atoms=10, dimension=1000)
    >>> dictionary.update(X)
    >>> exact = np.linalg.eigvalsh(Gaussian(2.0).gram(X))[::-1]
    >>> bool((abs(dictionary.weights[:3] / exact[:3] - 1) < 0.2).all())
    True
    """

    def __init__(self, kernel: Kernel, *, max_atoms: int = 20, dimension: int = 500, seed: int = 0) -> None:
        Dictionary.__init__(self, kernel)
        self.dimension: int = require_integer(dimension, "dimension", at_least=2, at_most=MOST_FEATURES)
        self.seed: int = require_integer(seed, "seed", at_least=0)
        self._begin(max_atoms, Fourier(kernel, self.dimension, self.seed))
