"""One dictionary of two: what runs at the inner nodes of a tree over many machines."""

from __future__ import annotations

from typing import TypeVar

from kons.dictionaries.sampled import Thinned
from kons.errors import ConfigurationError
from kons.learners.dictionary import Dictionary

__all__ = ["merge"]

Made = TypeVar("Made", bound=Dictionary)


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
    tosses = isinstance(a, Thinned)
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
