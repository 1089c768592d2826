"""How well does the default learner predict tables as people have them, and what does the encoder cost?

Files of a folder ``raw`` beside the data, read as ``kons run FILE --target COLUMN`` reads them, nothing else
said: text, dates, gaps. Rows in one fixed permutation, the first 20,000, unless they are in order of time;
the first 50 are not counted. And made-up tables whose answer is known: 30 levels that decide the target,
5,000 levels, levels that differ in how often another column has which, a gap that is the signal, a gap by
chance, text without signal.
"""

from __future__ import annotations

import csv
import gzip
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.reporting import Report, at_most
from benchmarks.settings import Settings
from kons.evaluation import Prequential
from kons.recipes import for_task
from kons.streams import open_stream

ROWS, UNCOUNTED = 20_000, 50


class _File(NamedTuple):
    target: str
    goal: float
    time_ordered: bool = False


FILES = {
    "adult": _File("income_status", 0.142),
    "melbourne": _File("Price", 285_000.0),
    "diamonds": _File("price", 600.0),
    "metro_traffic": _File("traffic_volume", 320.0, time_ordered=True),
}


def run(settings: Settings) -> Report:
    seeds = range(1 if settings.quick else 3)
    table, figures, notes = [], [], []
    for name, file in FILES.items():
        path = None if settings.folder is None else settings.folder / "raw" / f"{name}.csv.gz"
        if path is None or not path.is_file():
            notes.append(f"no raw/{name}.csv.gz: left out")
            continue
        with tempfile.TemporaryDirectory() as folder:
            copy = path if file.time_ordered else _permuted(path, Path(folder))
            played = [play(copy, file.target, seed) for seed in seeds]
        losses = [loss for loss, _, _ in played]
        value = statistics.mean(losses)
        micro, width = statistics.mean(us for _, us, _ in played), played[0][2]
        table.append([name, value, min(losses), max(losses), micro, width])
        figures.append(
            at_most(file.goal, name, value, "error rate, or root mean squared error; mean of seeds")
        )
    for name, (X, y, goal) in made_up(20_000).items():
        loss, micro, width = play((X, y), "y", 0, last=1000)
        table.append([name, loss**2, loss**2, loss**2, micro, width])
        if goal is not None:
            figures.append(at_most(goal, name, loss**2, "mean squared error of the last 1,000 rows"))
    return Report(
        question="Tables as people have them: how well are they predicted?",
        data="files as they are; made-up tables of 20,000 rows",
        columns=("table", "loss", "lowest", "highest", "us a row", "features"),
        table=table,
        figures=figures,
        notes=notes,
    )


def play(source: Any, target: str, seed: int, last: int | None = None) -> tuple[float, float, int]:
    """The error rate or root mean squared error, CPU microseconds a row, and the features at the end."""
    stream = open_stream(source, target, quiet=True)
    learner = for_task(stream.task, "auto", seed=seed)
    engine = Prequential(learner, stream.task, baselines=False, intervals=None)
    started = time.process_time()
    losses = np.concatenate([engine.advance(block).loss for block in stream])
    micro = (time.process_time() - started) / len(losses) * 1e6
    mean = float(losses[-last:].mean() if last else losses[UNCOUNTED:].mean())
    value = mean if stream.task == "classification" else mean**0.5
    return value, micro, len(stream.features)


def made_up(rows: int) -> dict[str, tuple[list[dict[str, Any]], np.ndarray, float | None]]:
    """Tables whose answer is known, with the goal for the mean squared error of the last rows."""
    random = np.random.default_rng(0)
    noise = 0.1 * random.normal(size=rows)
    few, many = random.integers(30, size=rows), random.integers(5000, size=rows)
    effect, effects = random.normal(0.0, 3.0, 30), random.normal(0.0, 3.0, 5000)
    x, absent = random.normal(size=rows), random.random(rows) < 0.3
    tables: dict[str, tuple[list[dict[str, Any]], np.ndarray, float | None]] = {
        "30 levels": ([{"level": f"l{i}"} for i in few], effect[few] + noise, 0.02),
        "5,000 levels": ([{"level": f"l{i}"} for i in many], effects[many] + noise, 6.7),
        "absence is the signal": (
            [{"x": None if gap else value} for value, gap in zip(x, absent, strict=True)],
            np.where(absent, 2.0, np.sin(x)) + noise,
            0.12,
        ),
    }
    chance = [{"x": None if gap else value} for value, gap in zip(x, absent, strict=True)]
    tables["absence by chance"] = chance, np.sin(x) + noise, None
    tables["number alone"] = [{"x": value} for value in x], np.sin(x) + noise, None
    tables["number and text without signal"] = (
        [{"x": value, "text": f"t{i}"} for value, i in zip(x, few, strict=True)],
        np.sin(x) + noise,
        None,
    )
    place = random.integers(300, size=rows)
    kind = np.minimum(place % 4, random.integers(3, size=rows))
    tables["places of unlike kinds"] = (
        [{"place": f"p{i}", "kind": f"k{k}"} for i, k in zip(place, kind, strict=True)],
        effects[place] + 6.0 * kind + noise,
        None,
    )
    return {name: (list(rows), y, goal) for name, (rows, y, goal) in tables.items()}


def _permuted(path: Path, folder: Path) -> Path:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as text:
        header, *rows = list(csv.reader(text))
    copy = folder / f"{path.name.removesuffix('.gz')}"
    with copy.open("w", encoding="utf-8", newline="") as text:
        lines = csv.writer(text)
        lines.writerow(header)
        lines.writerows(rows[i] for i in np.random.default_rng(0).permutation(len(rows))[:ROWS])
    return copy
