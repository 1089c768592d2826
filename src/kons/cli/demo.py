"""``kons demo``: exact KONS on a chaotic series, beside what any learner must beat."""

from __future__ import annotations

import dataclasses
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from rich.console import Console
from rich.progress import Progress

from kons.arrays import Matrix, Vector
from kons.cli.screen import Cell, Sheet, notices, print_json, progress_bar
from kons.errors import as_word
from kons.evaluation import Baseline, OnlineLinear, Persistence, RunningMean
from kons.kernels import Gaussian
from kons.learners import KONS
from kons.losses import Squared
from kons.streams import mackey_glass

__all__ = ["Outcome", "run", "start"]

BANDWIDTH, BOUND, REGULARIZATION = 0.7, 1.0, 1.0
BLOCK = 384  # what the learner replays at a time; smaller blocks would slow it down
WARM_UP = 3

Curvature = Literal["gradient", "hessian"]
CURVATURES: dict[Curvature, str] = {
    "gradient": "the paper's learner",
    "hessian": "online kernel ridge",
}


@dataclass(frozen=True)
class LearnerSize:
    """What is left of a learner: not its points, so that two need not be in memory together."""

    points: int
    online_effective_dimension: float
    log_determinant: float
    rows_per_second: float


@dataclass(frozen=True)
class Entry:
    """One line of the table: a predictor, and how it fared."""

    name: str
    note: str
    loss: float
    late_loss: float
    size: LearnerSize | None = None

    @classmethod
    def of(cls, name: str, note: str, losses: Vector, size: LearnerSize | None = None) -> Entry:
        """From one loss a row; late is the last fifth."""
        return cls(name, note, float(losses.mean()), float(losses[-_late(len(losses)) :].mean()), size)


@dataclass(frozen=True)
class Outcome:
    """All that the demo found out."""

    rows: int
    seed: int
    lags: int
    learners: dict[str, Entry]
    baselines: dict[str, Entry]

    @property
    def best_baseline(self) -> float:
        """The mean loss of the best baseline, by which the ratios are taken."""
        return min(entry.loss for entry in self.baselines.values())


def start(rows: int, seed: int, *, json: bool, quiet: bool) -> int:
    """Run the demo and print what it found; returns the exit code."""
    with notices(quiet=quiet) as console:
        outcome = run(rows, seed, console, quiet=quiet)
    if json:
        print_json(_document(outcome))
    else:
        _print(outcome)
    return 0


def run(rows: int, seed: int, console: Console, *, quiet: bool = False) -> Outcome:
    """Predict, then learn, every row: the two curvatures of KONS and the three baselines."""
    X, y = mackey_glass(rows, seed=seed)
    _warm_up(X, y)
    learners: dict[str, Entry] = {}
    with progress_bar(console, quiet=quiet) as bar:
        for second_order, note in CURVATURES.items():
            name = f"KONS, {second_order}"
            losses, size = _replay(_learner(second_order), X, y, bar, name)
            learners[second_order] = Entry.of(name, note, losses, size)
    candidates: dict[str, tuple[str, Callable[[], Baseline]]] = {
        "linear": ("online linear regression (VAW)", lambda: OnlineLinear(bound=BOUND)),
        "persistence": ("the last value again", Persistence),
        "constant": ("the mean so far", RunningMean),
    }
    baselines = {}
    for name, (note, make) in candidates.items():
        trace = make().advance(X, y)
        assert trace.loss is not None
        baselines[name] = Entry.of(name, note, trace.loss)
    return Outcome(rows, seed, X.shape[1], learners, baselines)


def _document(outcome: Outcome) -> dict[str, Any]:
    """What JSON can hold. Only ``rows_per_second`` changes from run to run."""
    learners = {
        second_order: {
            "loss": entry.loss,
            "late_loss": entry.late_loss,
            "ratio_to_best_baseline": entry.loss / outcome.best_baseline,
            **({} if entry.size is None else dataclasses.asdict(entry.size)),
        }
        for second_order, entry in outcome.learners.items()
    }
    return {
        "stream": "mackey_glass",
        "rows": outcome.rows,
        "seed": outcome.seed,
        "lags": outcome.lags,
        "bandwidth": BANDWIDTH,
        "bound": BOUND,
        "regularization": REGULARIZATION,
        "learners": learners,
        "baselines": {
            name: {"loss": entry.loss, "late_loss": entry.late_loss}
            for name, entry in outcome.baselines.items()
        },
    }


def _print(outcome: Outcome) -> None:
    """The tables for people, on standard output; fits 80 columns."""
    sheet = Sheet()
    sheet.say(
        ("\nMackey-Glass, one step ahead", "bold"),
        f": {outcome.rows:,} rows of {outcome.lags} past values, seed {outcome.seed}.\n"
        "Each row is predicted before it is learned.\n"
        f"Gaussian kernel of bandwidth {BANDWIDTH:g}, regularization {REGULARIZATION:g}: "
        "picked on this series.\n",
    )
    losses: list[tuple[Cell, ...]] = []
    for entry in (*outcome.learners.values(), *outcome.baselines.values()):
        ratio = entry.loss / outcome.best_baseline
        bold = "bold green" if entry.size is not None and ratio < 1.0 else ""
        losses.append((entry.name, entry.note, (_number(entry.loss), bold), _number(entry.late_loss),
                       (f"{ratio:.2f}", bold)))  # fmt: skip
    heads = ("predictor", "", "all rows", f"last {_late(outcome.rows):,}", "x best")
    sheet.table("ndvvv", losses, heads)
    sheet.say(("Mean squared loss. x best: relative to the best baseline, below 1 is better.\n", "dim"))
    sizes = [
        (
            entry.name,
            f"{entry.size.points:,} points kept",
            f"{entry.size.online_effective_dimension:.1f}",
            f"{entry.size.log_determinant:.1f}",
            f"{float(f'{entry.size.rows_per_second:.2g}'):,.0f}",
        )
        for entry in outcome.learners.values()
        if entry.size is not None
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
        (f"{kons} demo --rows 10000 --seed {outcome.seed + 1}", "another, longer stretch"),
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


def _number(loss: float) -> str:
    """Five decimals, so that the points stand under each other; an exponent where they would be 0."""
    return f"{loss:.0e}" if 0.0 < loss < 5e-6 else f"{loss:.5f}"


def _learner(second_order: Curvature) -> KONS:
    return KONS(
        Gaussian(BANDWIDTH),
        Squared(),
        bound=BOUND,
        regularization=REGULARIZATION,
        second_order=second_order,
    )


def _replay(learner: KONS, X: Matrix, y: Vector, bar: Progress, name: str) -> tuple[Vector, LearnerSize]:
    """The loss of each row; fed in blocks, so that the bar moves."""
    task = bar.add_task(name, total=len(y), facts="")
    losses = np.empty(len(y))
    start = time.perf_counter()
    for first in range(0, len(y), BLOCK):
        block = slice(first, first + BLOCK)
        losses[block] = learner.advance(X[block], y[block]).loss
        done = learner.rows_seen
        speed = done / max(time.perf_counter() - start, 1e-9)
        loss = losses[:done].mean()
        bar.update(
            task, completed=done, facts=f"{speed:7,.0f} rows/s  loss {loss:.5f}  {learner.size:6,} points"
        )
    return losses, LearnerSize(
        learner.size, learner.online_effective_dimension, learner.log_determinant, speed
    )


def _warm_up(X: Matrix, y: Vector) -> None:
    """Compile, or load, the loops before the clock runs."""
    _learner("gradient").advance(X[:WARM_UP], y[:WARM_UP])
    OnlineLinear().advance(X[:WARM_UP], y[:WARM_UP])


def _late(rows: int) -> int:
    return max(rows // 5, 1)
