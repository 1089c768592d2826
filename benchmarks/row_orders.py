"""Is any set behind the best trees by more than chance? Five orders of the rows, and paired differences.

::

    d_k = loss of AutoKONS with seed k - loss of the rival, both on order k        k = 0 .. 4
    mean(d) +- t * sd(d) / sqrt(5),    t = 2.776: the 97.5 % point of Student's t of 4 degrees of freedom

A set is behind where the whole interval lies above 0. Orders are permutations, the first that of
``against_trees``; rows in the order of time have one order, and only the seed of AutoKONS varies. The rival
is the one with the least mean loss over the orders; who is above 1.25 times the best on the first order is
not asked for the others. With ``--cache`` rivals are played once, and a run costs what AutoKONS costs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

from benchmarks import tree_rivals
from benchmarks.against_trees import of_auto
from benchmarks.measuring import blas_threads
from benchmarks.reporting import Figure, Report, at_most
from benchmarks.settings import Settings
from benchmarks.tree_rivals import IN_TIME, Outcome, absent, load, played, streams

ORDERS = 5
IN_THE_RUNNING = 1.25
LEVEL = 0.95
#: So many sets may be behind, none by more than this.
ALLOWED, LARGEST = 3, 1.05


class Interval(NamedTuple):
    """Of the mean difference of pairs; ``low`` above 0 says that the first is larger, not by chance alone."""

    low: float
    mean: float
    high: float


def paired(ours: Sequence[float], theirs: Sequence[float], level: float = LEVEL) -> Interval:
    """The interval of Student's t of the mean of ours - theirs."""
    d = np.asarray(ours) - np.asarray(theirs)
    if len(d) < 2:
        raise ValueError(f"{len(d)} pair(s): an interval needs two")
    reach = student.ppf(0.5 + level / 2, len(d) - 1) * d.std(ddof=1) / math.sqrt(len(d))
    return Interval(float(d.mean() - reach), float(d.mean()), float(d.mean() + reach))


def run(settings: Settings) -> Report:
    orders = range(2 if settings.quick else ORDERS)
    held = at_most if tree_rivals.judged() else lambda limit, *figure: Figure(*figure)
    table, notes, ratios = [], absent(settings), []
    behind, worst, details = {}, {}, {}
    with blas_threads(1):
        for name, _ in streams(settings, notes):
            rivals = of_rivals(name, settings, orders)
            best = min(rivals, key=lambda rival: np.mean([found.loss for found in rivals[rival]]))
            theirs = [found.loss for found in rivals[best]]
            ours = [of_auto(load(name, settings, k), [k]).loss for k in orders]
            interval, unit = paired(ours, theirs), float(np.mean(theirs))
            ratio = float(np.mean(ours)) / unit
            verdict = "behind" if interval.low > 0.0 else "ahead" if interval.high < 0.0 else "level"
            if verdict == "behind":
                behind[name] = ratio
            ratios.append(ratio)
            bounds = [f"{1.0 + bound / unit:.3f}" for bound in (interval.low, interval.high)]
            worst[name] = max(a / b for a, b in zip(ours, theirs, strict=True))
            table.append([name, float(np.mean(ours)), best, unit, ratio, *bounds, worst[name], verdict])
            details[name] = {"AutoKONS": ours, best: theirs, "interval": interval._asdict()}
            print(f"  {name}: {ratio:.3f} ({bounds[0]} to {bounds[1]}) of {best}: {verdict}", flush=True)
    figures = []
    if ratios:
        mean = math.exp(float(np.mean(np.log(ratios))))
        largest = max(behind.values(), default=1.0)
        figures = [
            held(0.75, "loss / best rival, geometric mean", mean, f"{len(ratios)} sets"),
            held(float(ALLOWED), "sets behind", float(len(behind)), ", ".join(behind) or "none"),
            held(LARGEST, "largest ratio of those behind", largest, "1 where none is"),
            # An order on which nothing is found widens the interval until the set counts as level.
            Figure("largest ratio on one order", max(worst.values()), max(worst, key=worst.__getitem__)),
        ]
    return Report(
        question="Is any set behind the best trees by more than chance?",
        data=f"{len(orders)} orders of the rows, or seeds in order of time; raw columns, defaults",
        columns=(
            "set",
            "AutoKONS",
            "best rival",
            "its loss",
            "ratio",
            "from",
            "to",
            "worst order",
            "verdict",
        ),
        table=table,
        figures=figures,
        notes=notes,
        details=details,
    )


def of_rivals(name: str, settings: Settings, orders: Sequence[int]) -> dict[str, list[Outcome]]:
    """Each rival in the running, on every order."""
    first = played(name, load(name, settings), settings)
    if name in IN_TIME:
        return {rival: [found] * len(orders) for rival, found in first.items()}
    limit = IN_THE_RUNNING * min(found.loss for found in first.values())
    near = {rival for rival, found in first.items() if found.loss <= limit}
    others = [played(name, load(name, settings, k), settings, near.__contains__) for k in orders[1:]]
    return {rival: [first[rival], *(found[rival] for found in others)] for rival in near}
