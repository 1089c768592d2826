"""Does the embedded learner beat the best published online figures, under their own protocol?

The protocol of the PROS-N-KONS paper: x and y scaled to [0, 1], Gaussian of bandwidth 8, regularization
1, the paper's curvature (gradient), at most 100 atoms, rows permuted. Our target is y - 1/2 with bound
1/2; a squared loss is the same in both units.

And do the first-order methods of the same table reproduce, in their own units (y in [0, 1], no projection in
the way)? The paper does not tell their step; a constant of 0.1 comes nearest on all four sets together, and
rows with a step of their own show that what is left of NOGD's differences is the step.

NONS-ALD under its own protocol: y in [0, 1], bound 1, a tolerance of 25/T, A_0 = I; x in [-1, 1], but in
[0, 1] on cpusmall, where the printed number of atoms is that of [0, 1]. And SkeGD's adversarial stream: 500
rows of german, each ten times in a row, labels flipped in every second block; mistakes in place of a loss.
Bandwidth and step of its paper are not at hand, and mistakes depend on both more than on the method: what is
printed is the range over a grid of them, no setting chosen by its result. It reproduces nothing.
"""

from __future__ import annotations

import itertools
import statistics
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks.contenders import play, squared_loss
from benchmarks.measuring import blas_threads
from benchmarks.reporting import Report, below
from benchmarks.settings import Settings
from benchmarks.streams import BOUND, Stream, reals
from benchmarks.subjects import embedded
from kons import Gaussian, Squared, SquaredHinge
from kons.compilation import wall_clock
from kons.evaluation import OnlineLinear
from kons.recipes import con_kons, fogd, nogd, nons_ald, pros_n_kons, skegd


class Best(NamedTuple):
    """The least published online loss of a set, whose it is, and its seconds where printed."""

    loss: float
    algorithm: str
    seconds: str


BEST = {
    "parkinson": Best(0.04896, "NOGD", "-"),
    "cpusmall": Best(0.02269, "CON-KONS", "7.40"),
    "cadata": Best(0.02850, "CON-KONS", "18.45"),
    "casp": Best(0.06773, "PROS-N-KONS", "40.73"),
}
PERMUTATIONS = 3
#: What the same table prints of the methods of first order, with 30 frequencies or 30 points.
FIRST_ORDER = {
    "FOGD": {"parkinson": 0.04909, "cpusmall": 0.02577, "cadata": 0.04097, "casp": 0.08021},
    "NOGD": {"parkinson": 0.04896, "cpusmall": 0.02559, "cadata": 0.03983, "casp": 0.07844},
}


class Dependence(NamedTuple):
    """What NONS-ALD's paper prints of a set, and its protocol there."""

    loss: float
    atoms: int
    seconds: str
    bandwidth: float
    low: float
    """The least value of a scaled feature; the largest is 1."""


NONS_ALD = {
    "calhousing14k": Dependence(0.02215, 29, "0.59", 4.0, -1.0),
    "elevators": Dependence(0.00284, 28, "0.71", 8.0, -1.0),
    "cpusmall": Dependence(0.00703, 43, "0.62", 2.0, 0.0),
}
#: Mistakes that are printed of a method on the adversarial stream, if it is among them.
ADVERSARIAL: dict[Any, tuple[float, str] | None] = {
    fogd: (0.375, "FOGD"),
    nogd: (0.309, "NOGD"),
    pros_n_kons: (0.276, "PROS-N-KONS"),
    skegd: (0.166, "SkeGD"),
    con_kons: None,
    nons_ald: None,
}
BANDWIDTHS, STEPS = (0.5, 1.0, 2.0, 4.0), (0.01, 0.1, 1.0)
STEP, BUDGET, FAR = 0.1, 30, 10.0
#: Where NOGD's printed figure lies between those of the steps: found by it, and so no reproduction of it.
STEP_OF_SET = {"parkinson": 0.118, "cpusmall": 0.115, "cadata": 0.155, "casp": 0.08}
protocol = partial(embedded, bandwidth=8.0, regularization=1.0, second_order="gradient")


def run(settings: Settings) -> Report:
    table, figures, notes = [], [], []
    for name, best in BEST.items():
        losses, linear, seconds, atoms = [], [], [], []
        for seed in range(PERMUTATIONS):
            streams, missing = reals([name], settings, seed)
            for stream in streams:
                loss, size, took = replay(stream)
                losses.append(loss)
                atoms.append(size)
                seconds.append(took)
                linear.append(squared_loss(play(partial(OnlineLinear, bound=BOUND), stream), stream.y))
        notes += missing
        if losses:
            mean = statistics.mean(losses)
            table.append(
                [
                    name,
                    "embedded",
                    f"{mean:.5f}",
                    f"{max(losses) - min(losses):.5f}",
                    max(atoms),
                    statistics.median(seconds),
                    f"{best.loss:.5f}",
                    best.algorithm,
                    f"{mean - best.loss:+.5f}",
                    best.seconds,
                    f"{statistics.mean(linear):.5f}",
                ]
            )
            figures.append(below(best.loss, name, mean, f"mean squared loss, {PERMUTATIONS} permutations"))
    table += first_order(settings) + dependence(settings) + adversarial(settings)
    return Report(
        question="Is the loss below the best published online figure, under the published protocol?",
        data="x, y in [0, 1] (ours y - 1/2, bound 1/2), bandwidth 8, regularization 1, gradient",
        columns=(
            *("set", "ours", "loss", "spread", "atoms", "s", "published", "by", "difference", "its s"),
            "online linear (VAW)",
        ),
        table=table,
        figures=figures,
        notes=[*notes, "published seconds are of another machine (10 Xeon cores); ours of one thread."],
    )


def first_order(settings: Settings) -> list[list[object]]:
    """Rows of the table for FOGD and NOGD: at one step for all sets, and for NOGD at one for each."""
    rows: list[list[object]] = []
    for algorithm, step in (("FOGD", STEP), ("NOGD", STEP), ("NOGD", None)):
        for name, value in FIRST_ORDER[algorithm].items():
            losses, seconds = [], []
            for seed in range(PERMUTATIONS):
                for stream in reals([name], settings, seed)[0]:
                    given: dict[str, Any] = {"bound": FAR, "step_size": step or STEP_OF_SET[name]}
                    if algorithm == "FOGD":
                        learner = fogd(Gaussian(8.0), Squared(), dimension=2 * BUDGET, seed=seed, **given)
                    else:
                        learner = nogd(Gaussian(8.0), Squared(), max_atoms=BUDGET, **given)
                    start = wall_clock()
                    losses.append(float(learner.advance(stream.X, stream.y + 0.5).loss.mean()))
                    seconds.append(wall_clock() - start)
            if losses:
                mean, spread = statistics.mean(losses), max(losses) - min(losses)
                own = [f"{mean:.5f}", f"{spread:.5f}", BUDGET, statistics.median(seconds)]
                difference = f"{mean - value:+.5f}"
                ours = algorithm.lower() + ("" if step else f", step {STEP_OF_SET[name]:g}")
                rows.append([name, ours, *own, f"{value:.5f}", algorithm, difference, "-", "-"])
    return rows


def dependence(settings: Settings) -> list[list[object]]:
    """Rows of the table for NONS-ALD."""
    rows: list[list[object]] = []
    for name, one in NONS_ALD.items():
        losses, atoms, seconds = [], [], []
        for seed in range(PERMUTATIONS):
            for stream in reals([name], settings, seed)[0]:
                X = stream.X if one.low == 0.0 else 2.0 * stream.X - 1.0
                learner = nons_ald(Gaussian(one.bandwidth), Squared(), tolerance=25.0 / len(X))
                start = wall_clock()
                losses.append(float(learner.advance(X, stream.y + 0.5).loss.mean()))
                seconds.append(wall_clock() - start)
                atoms.append(learner.size)
        if losses:
            mean, spread = statistics.mean(losses), max(losses) - min(losses)
            own = [f"{mean:.5f}", f"{spread:.5f}", max(atoms), statistics.median(seconds)]
            by, difference = f"NONS-ALD, {one.atoms} atoms", f"{mean - one.loss:+.5f}"
            rows.append([name, "nons_ald", *own, f"{one.loss:.5f}", by, difference, one.seconds, "-"])
    return rows


def adversarial(settings: Settings) -> list[list[object]]:
    """Rows of the table for SkeGD's stream: the share of mistakes, least and largest over the grid."""
    rows: list[list[object]] = []
    streams = reals(["german"], settings)[0]
    for stream in streams:
        X, y = np.repeat(stream.X[:500], 10, axis=0), np.repeat(np.sign(stream.y[:500]), 10)
        y[np.arange(len(y)) // 10 % 2 == 1] *= -1.0
        for make, published in ADVERSARIAL.items():
            steps = STEPS if make in (fogd, nogd, skegd) else (None,)
            mistakes, seconds, atoms = [], [], []
            for bandwidth, step in itertools.product(BANDWIDTHS, steps):
                given = {} if step is None else {"step_size": step}
                learner = make(Gaussian(bandwidth), SquaredHinge(), **given)
                start = wall_clock()
                trace = learner.advance(X, y)
                seconds.append(wall_clock() - start)
                atoms.append(learner.size)
                mistakes.append(float(np.mean(np.where(trace.prediction < 0.0, -1.0, 1.0) != y)))
            value, by = published or (0.058, "the last label")
            found = f"{min(mistakes):.3f} to {max(mistakes):.3f}"
            own = [found, f"{len(mistakes)} settings", max(atoms), statistics.median(seconds)]
            inside = "inside" if min(mistakes) <= value <= max(mistakes) else "outside"
            rows.append(["german", make.__name__, *own, f"{value:.3f}", by, inside, "-", "-"])
    return rows


def replay(stream: Stream) -> tuple[float, int, float]:
    """Mean squared loss, atoms and seconds."""
    learner = protocol()
    with blas_threads(1):
        start = wall_clock()
        trace = learner.advance(stream.X, stream.y)
        seconds = wall_clock() - start
    return float(trace.loss.mean()), learner.size, seconds
