"""What do ten targets cost, and what do they lose by what they share?

Processor time of ``advance`` on the same rows with ten targets, over that with one. Learners under the
squared loss with the Hessian predict what ten of them would, as tests say; the experts of ``auto`` have one
metric and atoms for all, so there each target's loss is compared with that of a model by itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.measuring import blas_threads
from benchmarks.reporting import Report, at_most
from benchmarks.settings import Settings
from kons import AutoKONS
from kons.arrays import Matrix
from kons.recipes import for_task

TARGETS = 10
ROWS = {"embedded": 8000, "pkawv": 8000, "ridge": 3000}
AUTO_ROWS = 4000


def run(settings: Settings) -> Report:
    random = np.random.default_rng(0)
    X = random.normal(size=(max(ROWS.values()), 8))
    Y = np.sin(X @ random.normal(size=(8, TARGETS)))
    table, figures = [], []
    with blas_threads(1):
        for name, rows in ROWS.items():
            rows = rows // 4 if settings.quick else rows
            make = partial(for_task, "regression", name, warmup=200)
            one, ten = (_spent(make, X[:rows], y[:rows], settings.rounds) for y in (Y[:, 0], Y))
            table.append([name, rows, 1e6 * one / rows, 1e6 * ten / rows])
            figures.append(at_most(1.5, name, ten / one, "time with ten targets over that with one"))
        rows = AUTO_ROWS // 4 if settings.quick else AUTO_ROWS
        Y = _related(X, random)
        one, ten = (_spent(AutoKONS, X[:rows], y[:rows], settings.rounds) for y in (Y[:, 0], Y))
        table.append(["auto", rows, 1e6 * one / rows, 1e6 * ten / rows])
        figures.append(at_most(2.5, "auto", ten / one, "time with ten targets over that with one"))
        together = _losses(X[:rows], Y[:rows])
        apart = [_losses(X[:rows], y[:rows])[0] for y in np.split(Y, TARGETS, axis=1)]
        ratios = together / np.array(apart)
        what = "loss over that of models by themselves, "
        figures.append(at_most(1.05, "auto", float(np.exp(np.log(ratios).mean())), what + "geometric mean"))
        figures.append(at_most(1.05, "auto", float(ratios.max()), what + "the worst target"))
    return Report(
        question="What do ten targets cost, and what do they lose by what they share?",
        data="8 columns, ten sines of projections; auto: ten noisy mixtures of three functions",
        columns=("learner", "rows", "us a row, one target", f"us a row, {TARGETS}"),
        table=table,
        figures=figures,
        notes=[],
    )


def _related(X: Matrix, random: np.random.Generator) -> Matrix:
    """Ten mixtures of three functions, each with noise and in units of its own."""
    hidden = np.sin(2.0 * X[:, 0]) * X[:, 1], np.abs(X[:, 2]) + X[:, 0], np.tanh(3.0 * X[:, 1])
    mixed = np.stack(hidden, axis=1) @ random.normal(size=(3, TARGETS))
    noisy: Matrix = mixed + 0.2 * random.normal(size=mixed.shape)
    return noisy * 10.0 ** np.arange(-5.0, 5.0)


def _spent(make: Callable[[], Any], X: Matrix, y: Any, rounds: int) -> float:
    times = []
    for _ in range(rounds):
        learner = make()
        started = time.process_time()
        learner.advance(X, y)
        times.append(time.process_time() - started)
    return float(np.median(times))


def _losses(X: Matrix, Y: Matrix) -> Any:
    errors = (np.asarray(AutoKONS().advance(X, Y).prediction) - Y) ** 2
    return errors[1:].mean(axis=0)  # nothing is known before the first row
