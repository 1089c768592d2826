"""What the compiled loops read and write: a ledger with an entry per row, rules, and running totals."""

from __future__ import annotations

import functools
from typing import Annotated, Any, NamedTuple, get_type_hints

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Layout

__all__ = [
    "ALL",
    "CAPPED",
    "CURVATURES",
    "EVERYTHING",
    "GRADIENT",
    "HESSIAN",
    "LEDGER",
    "MARGINS",
    "MISTAKES",
    "NONE",
    "RULES",
    "SKETCH",
    "SPAN_DEPENDENCE",
    "SPAN_FIXED",
    "SPAN_LEVERAGE",
    "TOTALS",
    "UPDATES",
    "Entries",
    "Ledger",
    "PackedRules",
    "Rules",
    "Totals",
    "new_ledger",
]

#: One entry per row of a block: what the update needs, and what it found.
LEDGER = np.dtype(
    [
        # given
        ("target", "f8"),
        ("scale", "f8"),  # the row's sample weight, c
        ("step_size", "f8"),  # eta_t
        ("self_kernel", "f8"),  # k(x, x)
        ("norm2", "f8"),  # |phi|^2 in the space of A: k(x, x), or |z|^2 in a dictionary's span
        ("uniform", "f8"),  # the row's coin
        ("sampler_uniform", "f8"),  # KORS's own coin, where the two are not shared
        # found
        ("prediction", "f8"),  # y_hat
        ("divisor", "f8"),  # of f, to predict by: 1, or 1 + 2q where that is forward
        ("overshoot", "f8"),  # h
        ("slope", "f8"),  # g
        ("feature_weight", "f8"),  # the weight before any coin, wbar
        ("weight", "f8"),  # what entered A
        ("inverse_form", "f8"),  # q
        ("leverage", "f8"),  # w*q/(1 + w*q)
        ("step", "f8"),  # s: f moved by -s A^-1 phi, with A as it stood then
        ("coefficient", "f8"),  # c: over the block, f moved by -sum c A^-1 phi, A from before it
        ("leverage_estimate", "f8"),
        ("probability", "f8"),
        ("kept", "?"),
        ("sampler_weight", "f8"),  # what entered A^I, KORS's weighted sample
        ("sampler_inverse_form", "f8"),
        ("novelty", "f8"),  # q plus what is outside the span, over alpha
        ("entered", "?"),  # the point became an atom of the span
        ("clipped", "?"),  # rounding had pushed q below its exact lower bound
    ]
)

Ledger = NDArray[np.void]
#: A ledger inside a compiled loop, where entries have attributes.
Entries = Annotated[Any, Layout(LEDGER, 1)]


# Who enters, and what it enters.
EVERYTHING = 0  # every row enters A
SKETCH = 1  # a coin lets a row into A
SPAN_FIXED = 2  # every row enters A, which lives in the span of atoms that are given
SPAN_DEPENDENCE = 3  # ... of atoms that were not in the span of those before
SPAN_LEVERAGE = 4  # ... of atoms that a coin chose


# What a row weighs in A, a case each in kons.core.replay.weigh.
GRADIENT = 0  # eta*g^2, the paper's
HESSIAN = 1  # the loss's second derivative
CAPPED = 2  # what makes q at most 1/eta behind the row, max(0, eta - 1/q), pulling f(x) to 0 (NAROW)
NONE = 3  # nothing: f moves by eta*g, first order
#: By their words.
CURVATURES = {"gradient": GRADIENT, "hessian": HESSIAN, "capped": CAPPED, "none": NONE}

# Which rows are learned, a case each in kons.core.replay.weigh.
ALL = 0
MISTAKES = 1  # those on the wrong side, y*f <= 0
MARGINS = 2  # these, and those within the margin as far as their projection on the span helps
#: By their words.
UPDATES = {"all": ALL, "mistakes": MISTAKES, "margins": MARGINS}


class Totals(NamedTuple):
    """Places in the vector of running totals that the compiled loops add to."""

    weighted_trace: int = 0
    sampler_trace: int = 1
    free_slots: int = 2


TOTALS = Totals()


class Rules(NamedTuple):
    """How rows are weighed and who enters, as numbers that the compiled loops can read."""

    bound: float
    regularization: float
    curvature: int = GRADIENT
    """What a row weighs in A: see the constants."""
    projects: bool = True
    """h enters the update; it does not with the Hessian of the squared loss, nor with CAPPED and NONE."""
    updates: int = ALL
    """Which rows are learned: see the constants."""
    forward: bool = False
    """Predict as if the row had been learned with target 0 already (Azoury-Warmuth-Vovk)."""
    entry: int = EVERYTHING
    """Who enters, and what: see the constants."""
    tolerance: float = 0.0
    """The least part of k(x,x) outside the span that makes a new atom."""
    restarts: bool = False
    """A new atom throws away what was learned, and ends the block."""
    shared_coins: bool = True
    weighted: bool = False
    """A takes w/p instead of w."""
    oversampling: float = 1.0
    distortion: float = 0.5
    floor: float = 0.0
    counts_itself: bool = True
    """A leverage is ``r/(1 + r)``, with the row in A; else ``min(r, 1)``, which is more."""
    budget: int = 0
    """Most points of an expansion; 0: no limit."""
    when_full: int = 0
    """Who goes when there are more: see :mod:`kons.core.budget`."""
    decay: float = 0.0
    """lambda: before each row's step f shrinks by 1 - eta*lambda."""
    largest: float = np.inf
    """What coefficients are clipped to where a removal scales them up."""

    @property
    def packed(self) -> NDArray[np.void]:
        """The same as an array of one record: one argument to a compiled loop instead of many."""
        return _packed(self)


_KINDS = {float: "f8", int: "i8", bool: "?"}
RULES = np.dtype([(name, _KINDS[kind]) for name, kind in get_type_hints(Rules).items()])
#: Rules inside a compiled loop: ``rules[0].bound``.
PackedRules = Annotated[Any, Layout(RULES, 1)]


@functools.lru_cache(maxsize=256)
def _packed(rules: Rules) -> NDArray[np.void]:
    return np.array([tuple(rules)], dtype=RULES)


def new_ledger(*shape: int) -> Ledger:
    """A ledger of unit-scale rows: so many of them, or K times as many, one ledger an output."""
    ledger = np.zeros(shape, LEDGER)
    ledger["scale"] = 1.0
    return ledger
