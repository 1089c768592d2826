"""What does a smaller sketch save, and what does it cost?

Sketched-KONS over a range of floors, beside exact KONS on the same rows, with one BLAS thread for all.
Each round uses a seed of its own; seconds are medians over the rounds, everything else means.

The paper promises, against floor 1: time x floor^2 (the factors; every kernel evaluation stays), and a
regret bound / floor (Theorem 3). Two measured figures stand beside the second promise: the cumulative
loss above that of exact KONS, and R_G, the term of the regret bound that the floor divides
(``Trace.gain``).
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

from benchmarks.measuring import alternate, blas_threads
from benchmarks.reporting import RESULTS, Figure, Report
from benchmarks.settings import Settings
from benchmarks.sketched_replay import casp, evaluate_pairs
from benchmarks.streams import Stream
from benchmarks.subjects import exact, sketched
from benchmarks.tradeoff_picture import PICTURE, draw
from kons.learners.newton import NewtonLearner

FLOORS = (1.0, 0.3, 0.1, 0.03, 0.01)
COLUMNS = (
    "floor",
    "seconds",
    "x floor 1",
    "promised",
    "kept",
    "mean loss",
    "loss - exact",
    "R_G / exact",
    "promised",
)


@dataclass
class Runs:
    """The runs of one learner, one entry per round; floor None is exact KONS."""

    stream: Stream
    floor: float | None
    kept: list[int] = field(default_factory=list)
    loss: list[float] = field(default_factory=list)
    gain: list[float] = field(default_factory=list)

    def __call__(self) -> None:
        """One more run, with the next seed."""
        seed = len(self.kept)
        learner: NewtonLearner = exact() if self.floor is None else sketched(self.floor, seed)
        trace = learner.advance(self.stream.X, self.stream.y)
        self.kept.append(learner.size)
        self.loss.append(float(trace.loss.sum()))
        self.gain.append(trace.gain)


def run(settings: Settings) -> Report:
    rows = 3_000 if settings.quick else 8_000
    stream = casp(settings.folder, rows)
    reference = Runs(stream, None)
    sketches = {str(floor): Runs(stream, floor) for floor in FLOORS}
    with blas_threads(1):
        times = alternate(
            {"kernel": lambda: evaluate_pairs(stream.X), "exact": reference, **sketches}, rounds=3
        )
    seconds = {name: statistics.median(of_rounds) for name, of_rounds in times.items()}
    exact_loss, exact_gain = reference.loss[0], reference.gain[0]
    outcomes = [
        {
            "floor": runs.floor,
            "seconds": seconds[name],
            "kept": statistics.mean(runs.kept),
            "mean_loss": statistics.mean(runs.loss) / rows,
            "excess": [loss - exact_loss for loss in runs.loss],
            "growth": [gain / exact_gain for gain in runs.gain],
        }
        for name, runs in sketches.items()
    ]
    details = {
        "rows": rows,
        "data": f"{stream.origin}, {rows:,} x {stream.X.shape[1]}",
        "kernel_seconds": seconds["kernel"],
        "exact_seconds": seconds["exact"],
        "floors": outcomes,
    }
    # A quick run is no picture for the documents.
    draw(details, RESULTS / PICTURE.name if settings.quick else PICTURE)
    return Report(
        question=f"What does a smaller sketch save and cost, over {rows:,} rows?",
        data=f"{details['data']}; one BLAS thread",
        columns=COLUMNS,
        table=[
            [
                each["floor"],
                each["seconds"],
                each["seconds"] / outcomes[0]["seconds"],
                each["floor"] ** 2,
                round(each["kept"]),
                each["mean_loss"],
                statistics.mean(each["excess"]),
                statistics.mean(each["growth"]),
                1.0 / each["floor"],
            ]
            for each in outcomes
        ],
        figures=[
            Figure(
                "exact KONS, seconds", seconds["exact"], "every point kept, one factor where floor 1 has two"
            ),
            Figure("exact KONS, mean loss", exact_loss / rows, "where 'loss - exact' is counted from"),
            Figure("kernel alone, seconds", seconds["kernel"], "no floor can bring the time below this"),
        ],
        notes=["'promised' is time x floor^2, then regret bound / floor, both against floor 1."],
        details=details,
    )
