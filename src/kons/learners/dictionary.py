"""What every dictionary shares: rows in, few weighted atoms out, coordinates in their span."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar, cast

from kons.arrays import Matrix, Vector, as_row_values
from kons.core.embedding import Embedding
from kons.core.threads import single_threaded_blas
from kons.errors import ConfigurationError
from kons.learners.stream import StreamConsumer

__all__ = ["BLOCK", "Dictionary", "merge"]

BLOCK = 128
Made = TypeVar("Made", bound="Dictionary")
Found = TypeVar("Found")


class Dictionary(StreamConsumer):
    """Atoms with weights, so that ``sum weight phi phi^T`` over them stands for that over all rows.

    It predicts nothing and sees no targets. A subclass takes rows in by ``_take``.
    """

    supervised = False
    questions: tuple[str, ...] = ("transform",)

    def update(self, X: Any, feature_weight: Any = 1.0) -> None:
        """Take the rows of X in, in order; all of them or, after an error, none.

        ``feature_weight`` is w, one number or one per row: the sum is over ``w phi phi^T``. A row without
        weight counts as one, and changes nothing.
        """
        points = self._as_points(X)
        weights = as_row_values(feature_weight, len(points), name="feature_weight", minimum=0.0)
        with self._all_or_nothing(), single_threaded_blas():
            self._take(points, weights)
            self._count(points, 0)

    @abstractmethod
    def _take(self, points: Any, weights: Vector) -> None:
        """Take rows in; ``_rows_seen`` is still without them."""

    @property
    def atoms(self) -> Any:
        """The points kept, in the order they came. A copy."""
        return self._point_stores()[0].copy()

    @property
    @abstractmethod
    def weights(self) -> Vector:
        """What each atom stands for in the sum. A copy."""

    @property
    def size(self) -> int:
        """How many atoms there are."""
        return len(self.weights)

    def transform(self, X: Any) -> Matrix:
        """Nystrom features: rows z with ``z^T z'`` close to ``k(x, x')``.

        ``z = L^-1 k_D(x)`` with ``L L^T = K_D``: orthonormal coordinates in the span of the atoms. An atom
        that lies in the span of those before it, to rounding, adds no column.
        """
        points = self._as_points(X)
        return self._span().coordinates(points)

    def _span(self) -> Embedding:
        """The coordinates, of the atoms as they are. Costs B^3 after a change."""
        return self._found_once(self._new_span)

    def _new_span(self) -> Embedding:
        assert self.kernel is not None
        atoms, span = self.atoms, Embedding(self.kernel)
        for start in range(0, len(atoms), BLOCK):
            span.extend(atoms[start : start + BLOCK])
        return span

    def _found_once(self, find: Callable[[], Found]) -> Found:
        """What is found of the atoms as they are: again behind more rows, or columns."""
        known: Any = vars(self).get("_found")
        if known is None or known[:2] != (self._rows_seen, self._width):
            with single_threaded_blas():
                self._found = known = (self._rows_seen, self._width, find())
        return cast(Found, known[2])


def merge(a: Made, b: Made, *, seed: int | None = None) -> Made:
    """The dictionary of the rows of both; they stay as they are, and it can go on with rows of its own.

    ``seed`` is that of its own rows' coins, and must be one that no part of the rows had: two parts must
    not toss the same coins. Where no coins are tossed it is left out. The result depends on a and b alone,
    not on which machine merges them; a tree over parts, in any shape, gives a dictionary with the guarantee
    of one. It takes B_a + B_b atoms in and costs their number cubed (SQUEAK), or less.

    >>> import numpy as np
    >>> from kons import Gaussian
    >>> from kons.dictionaries import SQUEAK
    >>> parts = np.random.default_rng(0).normal(size=(4, 500, 2))
    >>> trees = [SQUEAK(Gaussian(2.0), regularization=0.1, seed=1 + i) for i in range(4)]
    >>> for dictionary, X in zip(trees, parts, strict=True):
    ...     dictionary.update(X)
    >>> whole = merge(merge(*trees[:2], seed=5), merge(*trees[2:], seed=6), seed=7)
    >>> whole.rows_seen, whole.size < 100
    (2000, True)
    """
    if type(a) is not type(b) or not hasattr(a, "_join"):
        raise ConfigurationError(
            f"a {type(a).__name__} and a {type(b).__name__} do not merge: expected two dictionaries of one "
            "kind, SQUEAK, UniformSample, FrequentDirections or KernelPCA. KORS and RowSampling decide about "
            "a row when it comes: use SQUEAK where parts are to be merged."
        )
    tosses = hasattr(a, "_coins")
    if tosses is (seed is None):
        expected = "a new one, for the coins of the rows to come" if tosses else "none: it tosses no coins"
        raise ConfigurationError(f"seed is {seed!r}, and of a {type(a).__name__} expected {expected}.")
    settings, others = a.parameters(), b.parameters()
    if tosses:
        settings |= {"seed": seed}
    for name, value in settings.items():
        if others[name] != value and not (tosses and name == "seed"):
            raise ConfigurationError(
                f"{name} is {value!r} in one and {others[name]!r} in the other, expected the same: only "
                "dictionaries that were made alike can be merged."
            )
    if None not in (a._width, b._width) and a._width != b._width:
        raise ConfigurationError(
            f"rows have {a._width} features in one and {b._width} in the other, expected as many."
        )
    merged = type(a)(**settings)
    first, second = sorted((a, b), key=id)  # two merges of the same two wait for each other in one order
    with first._turn, second._turn:
        merged._join(a, b)
        merged._width, merged._rows_seen = a._width or b._width, a.rows_seen + b.rows_seen
    return merged
