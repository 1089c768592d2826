"""``kons demo --theory``: exact KONS on a chaotic series, beside what any learner must beat."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any, Literal

import numpy as np
from rich.console import Console
from rich.progress import Progress

from kons.arrays import Matrix, Vector
from kons.cli.screen import Cell, Sheet, notices, print_json, progress_bar
from kons.compilation import wall_clock
from kons.errors import as_word
from kons.evaluation import Baseline, OnlineLinear, Persistence, RunningMean
from kons.kernels import Gaussian
from kons.learners import KONS
from kons.losses import Squared
from kons.report.numbers import count
from kons.streams import mackey_glass

__all__ = ["run", "start"]

BANDWIDTH, BOUND, REGULARIZATION = 0.7, 1.0, 1.0
BLOCK = 384  # what the learner replays at a time; smaller blocks would slow it down

Curvature = Literal["gradient", "hessian"]
CURVATURES: dict[Curvature, str] = {
    "gradient": "the paper's learner",
    "hessian": "online kernel ridge",
}
BASELINES = {
    "linear": "online linear regression (VAW)",
    "persistence": "the last value again",
    "constant": "the mean so far",
}


def start(rows: int, seed: int, *, json: bool, quiet: bool) -> int:
    """Run the demo and print what it found; returns the exit code."""
    with notices(quiet=quiet) as console:
        document = run(rows, seed, console, quiet=quiet)
    if json:
        print_json(document)
    else:
        _print(document)
    return 0


def run(rows: int, seed: int, console: Console, *, quiet: bool = False) -> dict[str, Any]:
    """Predict, then learn, every row: the two curvatures of KONS and the three baselines.

    Returns what JSON can hold; only ``rows_per_second`` changes from run to run.
    """
    X, y = mackey_glass(rows, seed=seed)
    with progress_bar(console, quiet=quiet) as bar:
        learners = {name: _replay(name, X, y, bar) for name in CURVATURES}
    made: list[Baseline] = [OnlineLinear(bound=BOUND), Persistence(), RunningMean()]
    baselines = {
        name: _losses(baseline.advance(X, y).loss) for name, baseline in zip(BASELINES, made, strict=True)
    }
    best = min(entry["loss"] for entry in baselines.values())
    for entry in (*learners.values(), *baselines.values()):
        entry["ratio_to_best_baseline"] = entry["loss"] / best
    return {
        "stream": "mackey_glass",
        "rows": rows,
        "late_rows": _late(rows),
        "seed": seed,
        "lags": X.shape[1],
        "bandwidth": BANDWIDTH,
        "bound": BOUND,
        "regularization": REGULARIZATION,
        "learners": learners,
        "baselines": baselines,
    }


def _print(found: dict[str, Any]) -> None:
    """The tables for people, on standard output; fits 80 columns."""
    sheet, learners, baselines = Sheet(), found["learners"], found["baselines"]
    sheet.say(
        ("\nMackey-Glass, one step ahead", "bold"),
        f": {found['rows']:,} rows of {found['lags']} past values, seed {found['seed']}.\n"
        "Each row is predicted before it is learned.\n"
        f"Gaussian kernel of bandwidth {BANDWIDTH:g}, regularization {REGULARIZATION:g}: "
        "picked on this series.\n",
    )
    lines = [(f"KONS, {name}", note, learners[name]) for name, note in CURVATURES.items()]
    lines += [(name, note, baselines[name]) for name, note in BASELINES.items()]
    losses: list[tuple[Cell, ...]] = []
    for name, note, entry in lines:
        # Five decimals, so that the points stand under each other; an exponent where they would be 0.
        own, late = (
            f"{v:.0e}" if 0.0 < v < 5e-6 else f"{v:.5f}" for v in (entry["loss"], entry["late_loss"])
        )
        ratio = entry["ratio_to_best_baseline"]
        style = "bold green" if name.startswith("KONS") and ratio < 1.0 else ""
        losses.append((name, note, (own, style), late, (f"{ratio:.2f}", style)))
    heads = ("predictor", "", "all rows", f"last {found['late_rows']:,}", "x best")
    sheet.table("ndvvv", losses, heads)
    sheet.say(("Mean squared loss. x best: relative to the best baseline, below 1 is better.\n", "dim"))
    sizes = [
        (
            f"KONS, {name}",
            f"{entry['points']:,} points kept",
            f"{entry['online_effective_dimension']:.1f}",
            f"{entry['log_determinant']:.1f}",
            count(float(f"{entry['rows_per_second']:.2g}")),
        )
        for name, entry in learners.items()
    ]
    sheet.table("ndvvv", sizes, ("learner", "", "d_onl", "log det", "rows/s"))
    sheet.say((
        "d_onl    online effective dimension: how many directions the rows have filled,\n"
        "         each row weighing eta*slope^2 (gradient) or 2 (hessian)\n"
        "log det  growth of the preconditioner, with which the bound on the regret grows\n",
        "dim",
    ))  # fmt: skip
    sheet.say(("What to try next", "bold"))
    kons = as_typed("kons")
    suggestions = (
        (f"{kons} run FILE --target COLUMN --out FOLDER", "your own file, with a report to forward"),
        (f"{kons} certify FILE --target COLUMN", "a regret certificate for it"),
        (f"{kons} demo --rows 10000 --seed {found['seed'] + 1}", "another, longer stretch"),
        (f'{as_typed("python")} -c "import kons; help(kons.AutoKONS)"', "the learner that chooses by itself"),
    )
    for line, why in suggestions:
        sheet.say((f"  {why}", "dim"))
        sheet.command(line)
    sheet.say()


def as_typed(program: str) -> str:
    """How a person calls a program of this environment from here: its name, or its path if that is needed."""
    beside = Path(sys.executable).parent / program
    found = shutil.which(program)
    if not beside.exists() or (found is not None and Path(found).parent == beside.parent):
        return program
    try:
        return as_word(beside.relative_to(Path.cwd()))
    except ValueError:
        return as_word(beside)


def _learner(curvature: Curvature) -> KONS:
    shared: dict[str, Any] = {"bound": BOUND, "regularization": REGULARIZATION}
    return KONS(Gaussian(BANDWIDTH), Squared(), second_order=curvature, **shared)


def _replay(curvature: Curvature, X: Matrix, y: Vector, bar: Progress) -> dict[str, Any]:
    """How a learner fared, fed in blocks so that the bar moves; its points are not kept."""
    learner, task = _learner(curvature), bar.add_task(f"KONS, {curvature}", total=len(y), facts="")
    losses = np.empty(len(y))
    start = wall_clock()
    for first in range(0, len(y), BLOCK):
        block = slice(first, first + BLOCK)
        losses[block] = learner.advance(X[block], y[block]).loss
        done = learner.rows_seen
        speed = done / max(wall_clock() - start, 1e-9)
        facts = f"{speed:7,.0f} rows/s  loss {losses[:done].mean():.5f}  {learner.size:6,} points"
        bar.update(task, completed=done, facts=facts)
    return {
        **_losses(losses),
        "points": learner.size,
        "online_effective_dimension": learner.online_effective_dimension,
        "log_determinant": learner.log_determinant,
        "rows_per_second": speed,
    }


def _losses(losses: Any) -> dict[str, Any]:
    """The mean over all rows, and over the last fifth."""
    return {"loss": float(losses.mean()), "late_loss": float(losses[-_late(len(losses)) :].mean())}


def _late(rows: int) -> int:
    return max(rows // 5, 1)
