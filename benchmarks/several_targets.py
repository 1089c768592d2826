"""What do ten targets cost, where one A serves all of them?

Processor time of ``advance`` on the same rows with ten targets, over that with one; learners under the
squared loss with the Hessian. What is predicted is that of ten learners, as tests say.
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks.measuring import blas_threads
from benchmarks.reporting import Report, at_most
from benchmarks.settings import Settings
from kons.recipes import for_task

TARGETS = 10
ROWS = {"embedded": 8000, "pkawv": 8000, "ridge": 3000}


def run(settings: Settings) -> Report:
    random = np.random.default_rng(0)
    X = random.normal(size=(max(ROWS.values()), 8))
    Y = np.sin(X @ random.normal(size=(8, TARGETS)))
    table, figures = [], []
    with blas_threads(1):
        for name, rows in ROWS.items():
            rows = rows // 4 if settings.quick else rows
            spent: dict[int, list[float]] = {1: [], TARGETS: []}
            for _ in range(settings.rounds):
                for count, times in spent.items():
                    learner = for_task("regression", name, warmup=200)
                    started = time.process_time()
                    learner.advance(X[:rows], Y[:rows, 0] if count == 1 else Y[:rows])
                    times.append(time.process_time() - started)
            one, ten = (float(np.median(times)) for times in spent.values())
            table.append([name, rows, 1e6 * one / rows, 1e6 * ten / rows])
            figures.append(at_most(1.5, name, ten / one, "time with ten targets over that with one"))
    return Report(
        question="What do ten targets cost?",
        data="8 columns, ten sines of projections",
        columns=("learner", "rows", "us a row, one target", f"us a row, {TARGETS}"),
        table=table,
        figures=figures,
        notes=[],
    )
