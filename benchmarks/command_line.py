"""What does ``kons run`` cost on a file, beside the learner alone on the same rows in memory?

Processor time of ``kons run FILE``, with and without ``--out``, over that of ``advance`` on the array: the
same learner in the same ``Scaled``, in one process and in turn. What the command does besides: it reads
and checks the text, plays three baselines, counts metrics and intervals, and with ``--out`` writes a line
and a trace per row and checkpoints. Without the report, which costs a second whatever the rows are.

The same of a table half text, beside ``advance`` on the rows as the encoder makes them. Then the rise of
resident memory in a fresh process, at ten times as many rows.
"""

from __future__ import annotations

import contextlib
import gc
import io
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measuring import MEGABYTE, blas_threads, rise_of_memory
from benchmarks.reporting import Figure, Report, at_most
from benchmarks.settings import Settings
from kons.compilation import cpu_clock
from kons.recipes import for_task

GOAL, HALF_TEXT, FLAT = 1.5, 2.5, 1.25
FEATURES = 10


def run(settings: Settings) -> Report:
    rows = 20_000 if settings.quick else 100_000
    with tempfile.TemporaryDirectory() as folder, blas_threads(1):
        file, X, y = write_rows(Path(folder), rows)
        contenders: dict[str, Callable[[], Any]] = {
            "advance": lambda: for_task("regression", "embedded").advance(X, y),
            "kons run": lambda: command(file),
            "kons run --out": lambda: command(file, Path(folder) / "out"),
        }
        texts, encoded, answers = write_half_text(Path(folder), rows)
        contenders |= {
            "advance, half text": lambda: for_task("regression", "embedded").advance(encoded, answers),
            "kons run, half text": lambda: command(texts),
        }
        for contender in contenders.values():
            contender()
        seconds = alternate(contenders, settings.rounds)
        (small, _), (large, share) = (rise_of_memory(prepare, folder, count) for count in (rows, 10 * rows))
    ratios = {
        name: statistics.median(a / b for a, b in zip(times, seconds[f"advance{kind}"], strict=True))
        for name, times in seconds.items()
        for kind in [", half text" if name.endswith("half text") else ""]
    }
    table = [
        [name, statistics.median(times), 1e6 * statistics.median(times) / rows, ratios[name]]
        for name, times in seconds.items()
    ]
    return Report(
        question=f"What does kons run cost on a CSV file of {rows:,} rows, beside advance in memory?",
        data=f"synthetic, {rows:,} x {FEATURES}, as CSV; embedded learner, 200 atoms, one thread",
        columns=("how", "processor s", "us a row", "over advance"),
        table=table,
        figures=[
            at_most(GOAL, "kons run / advance", ratios["kons run"], "median of alternating rounds"),
            at_most(HALF_TEXT, "half text: kons run / advance", ratios["kons run, half text"], "the same"),
            Figure("kons run --out / advance", ratios["kons run --out"], "with predictions and trace"),
            at_most(0.05, "checkpoints", share, f"part of the time of a run of {10 * rows:,} rows"),
            at_most(FLAT, "memory, 10 x rows", large / small, "rise of resident memory, over that of 1 x"),
            Figure("memory, MB", large / MEGABYTE, f"rise at {10 * rows:,} rows, in a fresh process"),
        ],
    )


def alternate(contenders: dict[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    """Processor seconds of each, in turn: other processes do not count."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, contender in contenders.items():
            gc.collect()
            start = cpu_clock()
            contender()
            times[name].append(cpu_clock() - start)
    return times


def write_rows(folder: Path, rows: int) -> tuple[Path, np.ndarray, np.ndarray]:
    """The rows as a file, and as the arrays that the file holds."""
    import pyarrow
    from pyarrow import csv

    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, FEATURES))
    y = 100.0 + 5.0 * np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=rows)
    X, y = X.round(7), y.round(5)
    names = [*(f"x{i}" for i in range(FEATURES)), "y"]
    file = folder / f"{rows}.csv"
    csv.write_csv(pyarrow.table(dict(zip(names, [*X.T, y], strict=True))), file)
    return file, X, y


def write_half_text(folder: Path, rows: int) -> tuple[Path, np.ndarray, np.ndarray]:
    """A file of five columns of numbers and five of text; the rows of its last width as arrays."""
    import pyarrow
    from pyarrow import csv

    from kons.streams import open_stream

    rng = np.random.default_rng(0)
    N, T = rng.normal(size=(rows, 5)).round(7), rng.integers(0, [3, 5, 8, 12, 20], size=(rows, 5))
    y = 100.0 + 5.0 * np.sin(N[:, 0]) + T[:, 0] + 0.3 * T[:, 4] + 0.1 * rng.normal(size=rows)
    columns = {f"x{i}": values for i, values in enumerate(N.T)}
    columns |= {f"t{i}": [f"level {code}" for code in codes] for i, codes in enumerate(T.T.tolist())}
    file = folder / f"{rows} half text.csv"
    csv.write_csv(pyarrow.table(columns | {"y": y.round(5)}), file)
    blocks = list(open_stream(file, "y", quiet=True))
    wide = [block for block in blocks if block.X.shape[1] == blocks[-1].X.shape[1]]
    return file, np.concatenate([block.X for block in wide]), np.concatenate([block.y for block in wide])


def command(file: Path, out: Path | None = None) -> None:
    """``kons run`` in this process, without the report."""
    from kons.cli import main

    arguments = ["run", str(file), "--target", "y", "--learner", "embedded", "--quiet", "--json"]
    if out is not None:
        shutil.rmtree(out, ignore_errors=True)
        arguments += ["--out", str(out)]
    before = sys.modules.get("jinja2")
    sys.modules["jinja2"] = None  # type: ignore[assignment]
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            assert main(arguments) == 0
    finally:
        del sys.modules["jinja2"]
        if before is not None:
            sys.modules["jinja2"] = before


def prepare(folder: str, rows: int) -> Callable[[], float]:
    """In the fresh process: the file, and a small run so that all is imported; a run is the task."""
    from kons.runs import Run
    from kons.runs import Settings as Asked

    small, _, _ = write_rows(Path(folder), 3000)
    command(small, Path(folder) / "small")
    file, _, _ = write_rows(Path(folder), rows)

    def task() -> float:
        """The part of the time that checkpoints took."""
        asked = Asked(str(file), "y", learner="embedded")
        run = Run.start(asked, Path(folder) / f"run of {rows}", quiet=True)
        run.go()
        return run.checkpoint_seconds / run.seconds

    return task
