"""The registry of dictionaries: a line each, for ``kons learners`` and for those who choose by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from kons.dictionaries import (
    KORS,
    SQUEAK,
    FrequentDirections,
    KernelPCA,
    LinearDependence,
    RowSampling,
    UniformSample,
)

__all__ = ["DICTIONARIES", "DictionaryRecipe"]


class DictionaryRecipe(NamedTuple):
    """What a dictionary is made by, and what to know before choosing it."""

    make: Callable[..., Any]
    description: str
    cost: str
    """Of a row, with B atoms and d features."""
    unsuited: str
    """Where another one is better."""
    reference: str


#: Every dictionary by its name: ``DICTIONARIES[name].make(...)``.
DICTIONARIES: dict[str, DictionaryRecipe] = {
    "kors": DictionaryRecipe(
        KORS,
        "rows by ridge leverage, decided once",
        "B^2",
        "long streams on which B is to stop growing",
        "Calandriello, Lazaric, Valko, ICML 2017",
    ),
    "squeak": DictionaryRecipe(
        SQUEAK,
        "rows by ridge leverage, weighed anew and forgotten; merges over many machines",
        "(B + 64)^3/64",
        "decisions that must be final",
        "Calandriello, Lazaric, Valko, AISTATS 2017",
    ),
    "row_sampling": DictionaryRecipe(
        RowSampling,
        "rows of numbers by online leverage, decided once; no kernel",
        "d^2",
        "kernels; fewer rows than some 100 d",
        "Cohen, Musco, Pachocki, APPROX 2016",
    ),
    "uniform": DictionaryRecipe(
        UniformSample,
        "a fixed number of rows, all alike; merges exactly",
        "1",
        "directions that few rows have",
        "Vitter, ACM TOMS 1985",
    ),
    "linear_dependence": DictionaryRecipe(
        LinearDependence,
        "rows outside the span of those before; no coins",
        "B^2",
        "rare rows that are noise; weights",
        "Engel, Mannor, Meir, IEEE TSP 2004",
    ),
    "frequent_directions": DictionaryRecipe(
        FrequentDirections,
        "the strongest directions of rows of numbers, at a bounded error; merges",
        "B d",
        "flat spectra; kernels",
        "Liberty, KDD 2013",
    ),
    "kernel_pca": DictionaryRecipe(
        KernelPCA,
        "the strongest directions of D random features of a kernel; merges",
        "D (B + d)",
        "components weaker than rows/sqrt(D)",
        "Ghashami, Perry, Phillips, AISTATS 2016",
    ),
}
