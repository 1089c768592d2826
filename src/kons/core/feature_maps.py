"""Explicit features: maps z with ``z(x)^T z(x') = k(x, x')``, or about so, in R^D.

============  =======================================================  ==================  =============
map           z(x)                                                     error of the kernel  a point costs
============  =======================================================  ==================  =============
``columns``   (sqrt(c), x)                                             none                O(d)
``fourier``   sqrt(2/D) (cos(Wx), sin(Wx)), W drawn                    O(1/sqrt(D))        O(D d)
``fastfood``  the same, W = S H G P H B in blocks, H of Walsh-Hadamard  O(1/sqrt(D))        O(D log d)
``span``      L^-1 k_D(x), the projection on the span of atoms         outside the span    O(B^2)
``sketch``    of B points that are a uniform sample, in two sketches   of both sketches    O(B^2)
============  =======================================================  ==================  =============

A map knows its width from the first row on. What it draws, it draws then, a column at a time from the seed:
a column that joins later is the one that would have been drawn at the start.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, Vector
from kons.compilation import compiled
from kons.core.embedding import Embedding
from kons.core.entry import DEPENDENT
from kons.errors import ConfigurationError
from kons.kernels import Gaussian, Kernel, Laplace, Linear, Matern, Polynomial, RationalQuadratic
from kons.state import Array, Inner, Part, Sizes, Whole, fields
from kons.stored import Stored

__all__ = ["MAPS", "Columns", "Fastfood", "FeatureMap", "Fourier", "Sketch", "Span", "Taken"]

# Rows looked at together while atoms may still join: each atom among them costs a look at those behind it.
FEW = 32
# Angles beyond have less than half of their digits behind the turns: their waves are rounding, which blocks
# and rows do not share, and are left out. The kernel is 0 between such points and all others.
FARTHEST = 2.0**27


class Taken(NamedTuple):
    """Points that were looked at, as they are learned."""

    Z: Matrix
    entered: bool = False
    """The last of them became an atom."""
    projection: Matrix | None = None
    """By which weights go over into those of the features that hold behind the last of them."""


class FeatureMap(Part):
    """What all maps share. Not to be used directly."""

    size = 0
    """D, the number of features."""

    def start(self, width: int) -> None:
        """The first row has so many columns."""

    def widen(self, columns: int) -> None:
        """Rows have so many columns more, in which those before were 0."""
        raise NotImplementedError

    def features(self, X: Any) -> Matrix:
        """``z`` of each point, as the rows of an (m, D) array."""
        raise NotImplementedError

    def take(self, X: Any, coins: Vector) -> Taken:
        """``z`` of the first points, one at least: each with its coin."""
        return Taken(self.features(X))


class Columns(FeatureMap):
    """The columns themselves, behind the square root of a kernel's offset if it has one."""

    constant: NDArray[np.float64]
    size: int

    def __init__(self, kernel: Kernel) -> None:
        if not (isinstance(kernel, Linear) or (isinstance(kernel, Polynomial) and kernel.degree == 1)):
            raise ConfigurationError(
                f"the features of {kernel!r} are not the columns: those of Linear() are, and with a constant "
                'those of Polynomial(degree=1). Choose one of these, or features="fourier".'
            )
        self.constant = np.sqrt([kernel.offset] if isinstance(kernel, Polynomial) else [])

    def start(self, width: int) -> None:
        self.size = len(self.constant) + width

    def widen(self, columns: int) -> None:
        self.size += columns

    def features(self, X: Any) -> Matrix:
        return np.hstack([np.tile(self.constant, (len(X), 1)), X])

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        if sizes.get("width") is not None:
            self.start(sizes["width"])


class Fourier(FeatureMap):
    """Random Fourier features (Rahimi, Recht, NIPS 2007): frequencies from the kernel's spectral density.

    Cosine and sine of each of D/2 frequencies, so that |z| = 1 exactly. A Gaussian kernel has normal
    frequencies; those of Matern (Student) and the rational quadratic (gamma) are normal times a random
    length; those of Laplace are Cauchy, each column by itself.

    >>> from kons import Gaussian
    >>> map = Fourier(Gaussian(), dimension=2000)
    >>> map.start(2)
    >>> Z = map.features(np.array([[0.0, 0.0], [1.0, 1.0]]))
    >>> bool(abs(Z[0] @ Z[1] - np.exp(-1.0)) < 0.1), (Z**2).sum(axis=1).round(9).tolist()
    (True, [1.0, 1.0])
    """

    STATE = fields(frequencies=Array("halves", "width"))
    kernel: Gaussian | Laplace | Matern | RationalQuadratic
    size: int
    seed: int

    def __init__(self, kernel: Kernel, dimension: int, seed: int = 0) -> None:
        if not isinstance(kernel, (Gaussian, Laplace, Matern, RationalQuadratic)):
            raise ConfigurationError(
                f"{kernel!r} has no random Fourier features here: expected Gaussian, Laplace, Matern or "
                "RationalQuadratic."
            )
        if dimension % 2:
            raise ConfigurationError(f"dimension is {dimension}, expected an even number: cosines and sines.")
        self.kernel, self.size, self.seed = kernel, dimension, seed
        self.frequencies: Matrix = np.empty((dimension // 2, 0))

    def start(self, width: int) -> None:
        self.frequencies = self.frequencies[:, :0]
        self.widen(width)

    def widen(self, columns: int) -> None:
        now = self.frequencies.shape[1]
        drawn = [self._column(column) for column in range(now, now + columns)]
        self.frequencies = np.ascontiguousarray(np.column_stack([self.frequencies, *drawn]))

    def _column(self, column: int) -> Vector:
        rng, count = np.random.default_rng([self.seed, 1 + column]), self.size // 2
        width = self.kernel._width()
        if isinstance(self.kernel, Laplace):
            return rng.standard_cauchy(count) / width
        return rng.standard_normal(count) * self._lengths(count) / width

    def _lengths(self, count: int) -> Vector:
        """By which a normal frequency is multiplied, all of its columns alike."""
        rng, kernel = np.random.default_rng([self.seed, 0]), self.kernel
        if isinstance(kernel, Matern):
            freedom = 2.0 * kernel.smoothness
            return np.sqrt(freedom / rng.chisquare(freedom, count))
        if isinstance(kernel, RationalQuadratic):
            return np.sqrt(rng.gamma(kernel.mixture, 1.0 / kernel.mixture, count))
        return np.ones(count)

    def features(self, X: Any) -> Matrix:
        return self._waves(X @ self.frequencies.T)

    def _waves(self, angles: Matrix) -> Matrix:
        Z = np.empty((len(angles), self.size))
        far = np.abs(angles) > FARTHEST
        with np.errstate(invalid="ignore"):  # of infinity; f is then refused
            np.cos(angles, out=Z[:, : self.size // 2])
            np.sin(angles, out=Z[:, self.size // 2 :])
        Z *= np.sqrt(2.0 / self.size)
        if far.any():
            Z[np.hstack([far, far])] = 0.0
        return Z

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        if len(self.frequencies) != self.size // 2:
            raise stored.error(f"{len(self.frequencies)} frequencies, expected {self.size // 2}")


class Fastfood(Fourier):
    """Fastfood (Le, Sarlos, Smola, ICML 2013): frequencies by products of diagonal and Hadamard matrices.

    ::

        W = S H G P H B / (bandwidth sqrt(n))       in blocks of n rows, n a power of 2, for n columns

    B random signs, P a permutation, G normal, S lengths of normal vectors over |G|: O(D log n) a point, and
    O(D) numbers, where dense frequencies are O(D d). For few columns (below some 30) those are faster.

    >>> from kons import Gaussian
    >>> map = Fastfood(Gaussian(), dimension=2048)
    >>> map.start(32)
    >>> Z = map.features(np.array([np.zeros(32), np.full(32, 0.25)]))
    >>> bool(abs(Z[0] @ Z[1] - np.exp(-1.0)) < 0.1)
    True
    """

    STATE = fields(
        frequencies=None,
        signs=Array("blocks", "n"),
        order=Whole("blocks", "n", below="n"),
        normals=Array("blocks", "n"),
        scales=Array("blocks", "n"),
    )
    signs: Matrix
    normals: Matrix
    scales: Matrix

    def __init__(self, kernel: Kernel, dimension: int, seed: int = 0) -> None:
        super().__init__(kernel, dimension, seed)
        if isinstance(kernel, Laplace):
            raise ConfigurationError(f"{kernel!r} has no direction alike: Fastfood is for others.")
        self.signs = self.normals = self.scales = np.empty((0, 0))
        self.order: NDArray[np.int64] = np.empty((0, 0), np.int64)
        self._width = 0

    def start(self, width: int) -> None:
        n = 1 << (width - 1).bit_length()
        self.signs = self.normals = self.scales = np.empty((0, n))
        self.order, self._width = np.empty((0, n), np.int64), 0
        self.widen(width)

    def widen(self, columns: int) -> None:
        self._width += columns
        while len(self.signs) * self.signs.shape[1] < self._width * self._blocks:
            self._draw()

    @property
    def _blocks(self) -> int:
        """Of frequencies."""
        return int(-(-(self.size // 2) // self.signs.shape[1]))

    def _draw(self) -> None:
        """W of n columns more, all blocks of it."""
        shape = blocks, n = self._blocks, self.signs.shape[1]
        rng = np.random.default_rng([self.seed, 1 + len(self.signs) // blocks])
        signs, normals = rng.choice([-1.0, 1.0], shape), rng.standard_normal(shape)
        lengths = np.sqrt(rng.chisquare(n, shape)) * self._lengths(blocks * n).reshape(shape)
        # H G P H B has rows of the length sqrt(n) |G|.
        scales = lengths / np.sqrt(n * np.sum(normals**2, axis=1, keepdims=True)) / self.kernel._width()
        self.signs, self.normals = np.vstack([self.signs, signs]), np.vstack([self.normals, normals])
        self.scales = np.vstack([self.scales, scales])
        order = rng.permuted(np.tile(np.arange(n), (blocks, 1)), axis=1)
        self.order = np.vstack([self.order, order])

    def features(self, X: Any) -> Matrix:
        (drawn, n), blocks = self.signs.shape, self._blocks
        columns = np.zeros((len(X), drawn // blocks * n))
        columns[:, : X.shape[1]] = X
        V = np.repeat(columns.reshape(len(X), -1, n), blocks, axis=1) * self.signs
        transform(V.reshape(-1, n))
        V = np.take_along_axis(V, self.order[None], axis=2) * self.normals
        transform(V.reshape(-1, n))
        angles = (V * self.scales).reshape(len(X), -1, blocks * n).sum(axis=1)
        return self._waves(angles[:, : self.size // 2])

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        self._width, (drawn, n) = sizes.get("width") or 0, self.signs.shape
        if self._width and (n == 0 or n & (n - 1) or drawn != -(-self._width // n) * self._blocks):
            raise stored.error(f"{self.signs.shape} signs do not fit {self._width} columns")


@compiled
def transform(V: Matrix) -> None:
    """The Walsh-Hadamard transform of each row, in place; rows are as long as a power of 2."""
    n = V.shape[1]
    for i in range(V.shape[0]):
        half = 1
        while half < n:
            for start in range(0, n, 2 * half):
                for j in range(start, start + half):
                    a, b = V[i, j], V[i, j + half]
                    V[i, j], V[i, j + half] = a + b, a - b
            half *= 2


class Span(FeatureMap):
    """Coordinates in the span of atoms: :mod:`kons.core.embedding`. Points that lie outside it become atoms.

    ``tolerance``: the least part of k(x,x) that must. Behind the first row that finds it full, as many
    ``directions`` are left as a ``rank`` says, those in which the atoms are largest; None: all.
    """

    STATE = fields(embedding=Inner(binds="size"), directions=Array(None, None))

    embedding: Embedding
    max_atoms: int
    rank: int | None

    def __init__(self, kernel: Kernel, max_atoms: int, tolerance: float, rank: int | None = None) -> None:
        self.embedding, self.max_atoms, self.rank = Embedding(kernel), max_atoms, rank
        self.tolerance: float = max(tolerance, DEPENDENT)
        self.directions: Matrix = np.empty((0, 0))

    @property
    def size(self) -> int:  # type: ignore[override]
        """The number of directions, or of atoms."""
        return len(self.directions) or len(self.embedding)

    def widen(self, columns: int) -> None:
        """Its owner widens the atoms."""

    def features(self, X: Any) -> Matrix:
        Z = self.embedding.coordinates(X)
        return Z @ self.directions.T if len(self.directions) else Z

    def take(self, X: Any, coins: Vector) -> Taken:
        if len(self.embedding) >= self.max_atoms:
            return self._take_when_full(X, coins)
        X = X[:FEW]
        Z = self.features(X)
        self_kernels = self.embedding.kernel.evaluate_diagonal(X)
        rho = self.embedding.sound_residual(self_kernels, Z)
        for row in np.flatnonzero(rho > self.tolerance * self_kernels):
            point = X[row : row + 1]
            if len(self.embedding.extend(point, self.tolerance, self.tolerance)):
                return Taken(np.vstack([np.pad(Z[:row], ((0, 0), (0, 1))), self.features(point)]), True)
        return Taken(Z)

    def _take_when_full(self, X: Any, coins: Vector) -> Taken:
        if self.rank is None or len(self.directions):
            return Taken(self.features(X))
        return Taken(self.features(X[:1]), projection=self._turn(np.eye(len(self.embedding))))

    def _turn(self, carried: Matrix) -> Matrix:
        """Find the directions anew; by which weights follow, if ``carried`` takes them to all coordinates."""
        atoms = self.embedding.coordinates(self.embedding.atoms.view)
        self.directions = np.ascontiguousarray(self._directions(atoms))
        return np.asarray(np.linalg.pinv(self.directions.T) @ carried)

    def _directions(self, atoms: Matrix) -> Matrix:
        """Of atoms with these coordinates."""
        return np.asarray(np.linalg.svd(atoms)[2][: self.rank])

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        atoms = stored.counted(len(self.embedding), "atoms", at_most=self.max_atoms)
        if self.directions.shape not in ((0, 0), (min(self.rank or 0, atoms), atoms)):
            raise stored.error(f"{self.directions.shape} directions of {atoms} atoms, of rank {self.rank}")


class Sketch(Span):
    """The kernel matrix of a sample of the rows in two sketches (Zhang, Liao, ICML 2019, as known here).

    ::

        Phi_pm = S_p^T K S_m,    Phi_pp = S_p^T K S_p          K between the B points that are kept
        F = argmin |Phi_pm F Phi_pm^T - Phi_pp|_F of rank k,    z(x)^T z(x') = k_m(x)^T F k_m(x')

    S_m takes m of the points, S_p adds them up in s sums: each is in one of the first s/2 and in one of the
    others, with a random sign over sqrt(2), so that S_p S_p^T is I on average. The points are those with the
    B least coins of the rows that do not depend on them, the m those with the least among these: uniform
    samples. The digits of its coin say in which sums a point is. Before there are B, z is that of a span.

    ::

        Pi = P P^+ with P = S_p^T Z_m,    F = Phi_pm^+ [Pi Phi_pp Pi]_k Phi_pm^+T

    of coordinates Z_m in the span of the m. A replacement, of some B log(T/B), costs O(B^3).
    """

    STATE = fields(coins=Array("size", at_least=0.0))

    def __init__(
        self, kernel: Kernel, max_atoms: int, tolerance: float, rank: int | None, columns: int, dimension: int
    ) -> None:
        most = min(columns, dimension, max_atoms)
        super().__init__(kernel, max_atoms, tolerance, most if rank is None else min(rank, most))
        if dimension % 2:
            raise ConfigurationError(
                f"dimension is {dimension}, expected an even number: sums in two halves."
            )
        self.columns: int = columns
        self.dimension: int = dimension
        self.coins: Vector = np.empty(0)

    @property
    def sums(self) -> Matrix:
        """S_p, a row for each of the points."""
        digits, half = (self.coins * 2.0**53).astype(np.int64), self.dimension // 2
        S = np.zeros((len(digits), 2, half))
        for block in range(2):
            digits, place = np.divmod(digits, 2 * half)
            S[np.arange(len(S)), block, place // 2] = (1.0 - 2.0 * (place % 2)) / np.sqrt(2.0)
        return S.reshape(-1, self.dimension)

    def take(self, X: Any, coins: Vector) -> Taken:
        taken = super().take(X, coins)
        if taken.entered:
            self.coins = np.append(self.coins, coins[len(taken.Z) - 1])
        return taken

    def _take_when_full(self, X: Any, coins: Vector) -> Taken:
        largest = int(np.argmax(self.coins))
        chosen = np.flatnonzero(coins < self.coins[largest])
        if not len(self.directions) or not len(chosen):
            return super()._take_when_full(X, coins)
        row = slice(chosen[0], chosen[0] + 1)
        Z = self.features(X[: row.stop])
        smaller, Q = self.embedding.without(largest)
        if not len(smaller.extend(X[row], self.tolerance, self.tolerance)):
            return Taken(Z)  # it all but depends on the others
        carried = np.pad(Q @ self.directions.T, ((0, 1), (0, 0)))
        self.embedding, self.coins = smaller, np.append(np.delete(self.coins, largest), coins[row])
        return Taken(Z, projection=self._turn(carried))

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        super()._loaded(stored, sizes)
        if not (self.coins < 1.0).all():
            raise stored.error(f"a coin is {self.coins.max():g}, expected less than 1")

    def _directions(self, atoms: Matrix) -> Matrix:
        chosen = np.argsort(self.coins)[: self.columns]
        basis = np.linalg.qr(atoms[chosen].T)[0]  # of the span of the m: Z_m = atoms @ basis
        Y = self.sums.T @ atoms  # Phi_pp = Y Y^T
        P = Y @ basis
        inverse = np.linalg.pinv(P)
        W, s, _ = np.linalg.svd(P @ (inverse @ Y), full_matrices=False)
        return np.asarray((s[: self.rank, None] * W.T[: self.rank]) @ inverse.T @ basis.T)


#: Maps by their words, and what each takes besides a kernel.
MAPS: dict[str, tuple[Callable[..., FeatureMap], tuple[str, ...]]] = {
    "columns": (Columns, ()),
    "fourier": (Fourier, ("dimension", "seed")),
    "fastfood": (Fastfood, ("dimension", "seed")),
    "span": (Span, ("max_atoms", "tolerance", "rank")),
    "sketch": (Sketch, ("max_atoms", "tolerance", "rank", "columns", "dimension")),
}
