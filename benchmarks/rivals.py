"""What do River, scikit-learn and the trivial predictors reach on raw streams, and at what time a row?

Nothing is tuned; who plays and how is told in ``rival_models``, the sets in ``raw_streams``. Times are
CPU times, and beside each stands its ratio to River's scaler | linear (or logistic), measured on the same
rows just before and after: this ratio travels from one run, and one machine, to the next.

River's forests, and scikit-learn row by row, take half an hour: they play with ``--slow``. What was once
played is kept in the file of ``--cache``; it counts only for the same rows and versions of the libraries.
"""

from __future__ import annotations

import platform
import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import river
import sklearn

from benchmarks import cache as cache_file
from benchmarks.contenders import DIVERGED
from benchmarks.measuring import blas_threads
from benchmarks.raw_streams import SETS, RawStream, load
from benchmarks.reporting import Figure, Report
from benchmarks.rival_models import entries, reference
from benchmarks.settings import Settings
from benchmarks.streams import QUICK_ROWS

__all__ = ["SETS", "Result", "best_of_river", "forest", "load", "reference", "results", "run"]

LIMIT = 240.0  # CPU seconds that one rival may take on one set
PROTOCOL = 1  # raise it when ``rival_models`` or ``raw_streams`` change what is played


@dataclass(frozen=True)
class Result:
    """One rival on one set: its loss over ``rows`` rows (all, if time was not up), and its time."""

    name: str
    loss: float
    microseconds_per_row: float
    relative_time: float  # to River's scaler | linear in the same run
    rows: int
    family: str


def results(
    folder: Path | None,
    name: str,
    *,
    cache: Path | None = None,
    slow: bool = True,
    rows: int | None = None,
    told: Callable[[Result], None] = lambda result: None,
) -> list[Result]:
    """Every rival on the set NAME, or on its first ``rows``; none where there is no file.

    Without ``slow`` the slow ones are left out, unless they are in the cache. ``told`` hears of each as
    it is played.
    """
    stream = load(folder, name)
    if stream is None:
        return []
    if rows is not None:
        stream = stream.first(rows)
    key = f"{name}, {len(stream.y)} rows, {stream.digest()}; {_versions()}; protocol {PROTOCOL}"
    known = cache_file.read(cache).get(key, {})
    found = []
    for rival, entry in entries(stream).items():
        if rival in known:
            found.append(Result(**known[rival]))
        elif slow or not entry.slow:
            result = _play(rival, stream)
            cache_file.remember(cache, key, rival, asdict(result))
            told(result)
            found.append(result)
    return found


def best_of_river(found: list[Result], rows: int) -> Result:
    """The smallest loss of River's learners that played all rows, with or without lags."""
    return min((r for r in found if r.family == "river" and r.rows == rows), key=lambda r: r.loss)


def forest(found: list[Result]) -> Result | None:
    """The fastest of the ways ARF(10) played without lags; None where none did."""
    ways = [r for r in found if "ARF(10)" in r.name and "lags" not in r.name]
    return min(ways, key=lambda r: r.relative_time, default=None)


def _play(rival: str, stream: RawStream) -> Result:
    entry = entries(stream)[rival]
    with blas_threads(1):
        before = reference(stream)
        prediction, seconds = entry.play(stream, LIMIT)
        after = reference(stream)
    microseconds = seconds / len(prediction) * 1e6
    return Result(
        name=rival,
        loss=stream.loss(prediction),
        microseconds_per_row=microseconds,
        relative_time=microseconds / statistics.mean([before, after]),
        rows=len(prediction),
        family=entry.family,
    )


def _versions() -> str:
    return (
        f"Python {platform.python_version()}, River {river.__version__}, "
        f"scikit-learn {sklearn.__version__}, NumPy {np.__version__}"
    )


def run(settings: Settings) -> Report:
    rows = QUICK_ROWS if settings.quick else None
    found, notes = {}, []
    for name in SETS:
        of_set = results(
            settings.folder, name, cache=settings.cache, slow=settings.slow, rows=rows, told=_tell(name)
        )
        if of_set:
            found[name] = of_set
        else:
            notes.append(f"{name}: no file, skipped.")
    table = [
        [
            name,
            r.name,
            r.loss if r.loss < DIVERGED else "diverges",
            r.microseconds_per_row,
            r.relative_time,
            r.rows,
        ]
        for name, of_set in found.items()
        for r in of_set
    ]
    figures = []
    for name, of_set in found.items():
        best = best_of_river(of_set, max(r.rows for r in of_set))
        figures.append(Figure(f"{name}: best of River", best.loss, best.name))
        trees = forest(of_set)
        if trees is not None:
            figures.append(
                Figure(f"{name}: time of ARF(10)", trees.relative_time, "in times of River's scaler | linear")
            )
    if not settings.slow:
        notes.append("River's forests and scikit-learn take about a ms a row: --slow, and --cache FILE.")
    return Report(
        question="What do others reach on raw streams, and at what time a row?",
        data="raw columns, in file order where that is time, else permuted; lags: the last two targets",
        columns=("set", "rival", "loss or error", "us a row", "x scaler | linear", "rows"),
        table=table,
        figures=figures,
        notes=[
            *notes,
            f"fewer rows than the set has: {LIMIT:g} s were over, the loss is theirs.",
        ],
        details={name: [asdict(r) for r in of_set] for name, of_set in found.items()},
    )


def _tell(name: str) -> Callable[[Result], None]:
    """What was just played, on a line: it may take an hour."""
    return lambda r: print(f"  {name}: {r.name}: {r.loss:.4f}, {r.microseconds_per_row:,.0f} us", flush=True)
