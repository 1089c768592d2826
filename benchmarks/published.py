"""Does the embedded learner beat the best published online figures, under their own protocol?

The protocol of the PROS-N-KONS paper: x and y scaled to [0, 1], Gaussian of bandwidth 8, regularization
1, the paper's curvature (gradient), at most 100 atoms, rows permuted. Our target is y - 1/2 with bound
1/2; a squared loss is the same in both units.

And do the first-order methods of the same table reproduce, in their own units (y in [0, 1], no projection in
the way)? With the settings of their authors' published program: 15 frequencies for each of 30 points, of
30 points 6 directions, a constant step, no step for rows that err by less than 0.1. Its one step of NOGD is
not that of all sets: rows with a step three times as long show that.

NONS-ALD under its own protocol: y in [0, 1], bound 1, a tolerance of 25/T, A_0 = I; x in [-1, 1], but in
[0, 1] on cpusmall, where the printed number of atoms is that of [0, 1].

And SkeGD's table of german and its adversarial streams: 500 rows of german, each ten or twenty times in a
row, labels flipped in every second block; mistakes in place of a loss. Columns as they are, hinge loss,
budget 100, the bandwidth of the best kernel alignment on a grid. The steps are not at hand: on the permuted
rows 0.2, that of NOGD's authors, where there is one; on the adversarial streams several for each method, and
for PROS-N-KONS, whose step the loss says, two ridges.
"""

from __future__ import annotations

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
from kons import Gaussian, Hinge, Squared, SquaredHinge
from kons.compilation import wall_clock
from kons.evaluation import OnlineLinear
from kons.losses import CustomLoss
from kons.recipes import RECIPES, fogd, nogd, nons_ald


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
#: Mistakes that SkeGD's paper prints of german, 20 permutations, and of blocks of 10 and of 20 equal rows.
GERMAN = {"rbp": 0.38924, "forgetron": 0.38387, "projectron": 0.37008, "projectron_plus": 0.35396}
GERMAN |= {"bogd": 0.33985, "nogd": 0.29881, "skegd": 0.27932}
ADVERSARIAL = {"fogd": (0.37493, 0.32433), "nogd": (0.30918, 0.26737), "skegd": (0.16578, 0.07266)}
ADVERSARIAL |= {"b_kons": (0.27633, 0.17737)}
ORDERS, MOST, GRID = 20, 100, 2.0 ** np.arange(-5.0, 7.5, 0.5)
STEPS = tuple({"step_size": step} for step in (0.05, 0.1, 0.3))
RIDGES = tuple({"regularization": alpha} for alpha in (1.0, 20.0))
BUDGET, FAR = 30, 10.0
#: Of the authors' program: frequencies for a point, directions, the error that is none, and steps. Theirs are
#: of half the slope, and FOGD's of features that are sqrt(frequencies) times as long as ours.
FREQUENCIES, RANK, ZONE = 15 * BUDGET, BUDGET // 5, 0.1
FOGD_STEP, NOGD_STEP, LONGER = 0.5 * 6e-4 * FREQUENCIES, 0.5 * 0.1, 3.0


def zone_value(p: Any, y: Any) -> Any:
    return np.maximum((p - y) ** 2 - ZONE**2, 0.0)


def zone_slope(p: Any, y: Any) -> Any:
    return np.where(np.abs(p - y) > ZONE, 2.0 * (p - y), 0.0)


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
    table += first_order(settings) + dependence(settings) + german(settings)
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
    """Rows of the table for FOGD and NOGD, and for NOGD at a longer step."""
    rows: list[list[object]] = []
    loss = CustomLoss(zone_value, zone_slope, lipschitz=2.0 * FAR, curvature=0.0)
    for algorithm, step in (("FOGD", FOGD_STEP), ("NOGD", NOGD_STEP), ("NOGD", LONGER * NOGD_STEP)):
        for name, value in FIRST_ORDER[algorithm].items():
            losses, seconds = [], []
            for seed in range(PERMUTATIONS):
                for stream in reals([name], settings, seed)[0]:
                    given: dict[str, Any] = {"bound": FAR, "step_size": step}
                    if algorithm == "FOGD":
                        learner = fogd(Gaussian(8.0), loss, dimension=2 * FREQUENCIES, seed=seed, **given)
                    else:
                        learner = nogd(Gaussian(8.0), loss, max_atoms=BUDGET, rank=RANK, **given)
                    start = wall_clock()
                    predictions = learner.advance(stream.X, stream.y + 0.5).prediction
                    seconds.append(wall_clock() - start)
                    losses.append(float(np.mean((predictions - stream.y - 0.5) ** 2)))
            if losses:
                mean, spread = statistics.mean(losses), max(losses) - min(losses)
                own = [f"{mean:.5f}", f"{spread:.5f}", BUDGET, statistics.median(seconds)]
                ours = f"{algorithm.lower()}, step {step:g}"
                rows.append([name, ours, *own, f"{value:.5f}", algorithm, f"{mean - value:+.5f}", "-", "-"])
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


def german(settings: Settings) -> list[list[object]]:
    """Rows of the table for SkeGD's paper: the share of mistakes, on permuted rows and on equal ones."""
    if settings.folder is None or not (file := settings.folder / "german.csv.gz").exists():
        return []
    data = np.loadtxt(file, delimiter=",", skiprows=1)
    # Raw columns: how the paper scales them is not printed, and no other scaling came near its figures.
    X, y, rows = data[:, :-1], np.sign(data[:, -1]), []
    kernel = Gaussian(aligned(X, y))
    for name, printed in GERMAN.items():
        given = {"step_size": 0.2} if name in ("nogd", "skegd") else {}
        given |= {"max_atoms" if "max_atoms" in RECIPES[name].parameters else "max_points": MOST}
        found = []
        for seed in range(ORDERS):
            order = np.random.default_rng(seed).permutation(len(X))
            coins = {"seed": seed} if "seed" in RECIPES[name].parameters else {}
            found.append(mistakes(name, kernel, X[order], y[order], **given, **coins))
        rows.append(_mistaken("german", name, found, printed))
    for length, printed_of in zip((10, 20), zip(*ADVERSARIAL.values(), strict=True), strict=True):
        blocks, labels = np.repeat(X[:500], length, axis=0), np.repeat(y[:500], length)
        labels[np.arange(len(labels)) // length % 2 == 1] *= -1.0
        for name, printed in zip(ADVERSARIAL, printed_of, strict=True):
            for choice in RIDGES if name == "b_kons" else STEPS:
                given: dict[str, Any] = choice | ({} if name == "fogd" else {"max_atoms": MOST})
                label = f"{name}, " + ", ".join(f"{word} {value:g}" for word, value in choice.items())
                found = [mistakes(name, kernel, blocks, labels, **given)]
                rows.append(_mistaken(f"german, {length} equal", label, found, printed))
    return rows


def aligned(X: np.ndarray, y: np.ndarray) -> float:
    """The bandwidth whose kernel lies nearest to ``y y^T``."""
    squares = ((X[:, None] - X) ** 2).sum(axis=-1)

    def alignment(bandwidth: float) -> float:
        K = np.exp(-squares / (2.0 * bandwidth**2))
        return float(y @ K @ y / np.linalg.norm(K))

    return float(max(GRID, key=alignment))


def mistakes(name: str, kernel: Gaussian, X: np.ndarray, y: np.ndarray, **given: Any) -> float:
    """The share of wrong signs; a method without the hinge loss's step has its square."""
    recipe = RECIPES[name]
    loss = recipe.own_loss or (SquaredHinge() if name == "b_kons" else Hinge())
    predictions = recipe.made_of(kernel, loss, **given).advance(X, y).prediction
    return float(np.mean(np.where(predictions > 0.0, 1.0, -1.0) != y))


def _mistaken(of: str, name: str, found: list[float], printed: float) -> list[object]:
    mean = statistics.mean(found)
    own = [f"{mean:.3f}", f"{max(found) - min(found):.3f}", MOST, "-"]
    return [of, name, *own, f"{printed:.3f}", "SkeGD's paper", f"{mean - printed:+.3f}", "-", "-"]


def replay(stream: Stream) -> tuple[float, int, float]:
    """Mean squared loss, atoms and seconds."""
    learner = protocol()
    with blas_threads(1):
        start = wall_clock()
        trace = learner.advance(stream.X, stream.y)
        seconds = wall_clock() - start
    return float(trace.loss.mean()), learner.size, seconds
