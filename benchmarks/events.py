"""Are breaks noticed, creeping before it has done harm, and quiet streams left in peace?

A *break* counts where the loss of the model as it was, frozen there, over the 500 rows behind it is at least
twice that of the 500 before. It is noticed if an alarm is raised within 200 rows. On *creeping* streams a
model is frozen at row 2,000; an alarm behind row 500 should come before the end of the first window of 1,000
rows in which the frozen one has twice its loss. On *quiet* streams every alarm is a false one. Streams are
those of ``benchmarks.drift``, without those that make a turn in 400,000 rows: 16,000 of these are quiet.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.drift.streams import Moving, made_up
from benchmarks.reporting import Figure, Report, at_most
from benchmarks.settings import Settings
from kons.recipes import for_task

BREAKS: dict[str, tuple[int, ...]] = {
    "function_changes": (6_000, 12_000),
    "other_columns_matter": (8_000,),
    "level_and_scale_of_target": (5_000, 10_000),
    "column_comes_to_life": (6_000,),
    "two_functions_in_turn": tuple(range(2_000, 16_000, 2_000)),
    "bursts_of_noise": tuple(range(1_800, 15_000, 2_000)),
    "clouds_exchange_places": tuple(range(3_000, 16_000, 3_000)),
    "class_goes_and_returns": (11_000,),
    "labels_swap": (5_000, 10_000, 15_000),
    "thresholds_change": (4_000, 8_000, 12_000),
    "one_quarter_swaps": (8_000,),
}
SPAN, SOON, FROZEN, WINDOW, EARLIEST = 500, 200, 2_000, 1_000, 500
QUIET = 20_000


def losses(predictions: Any, y: Any, classes: bool) -> np.ndarray:
    """Of each row: squared error, or whether the label was missed."""
    return np.asarray(predictions != y if classes else (predictions - y) ** 2, dtype=np.float64)


def alarms(model: Any) -> list[int]:
    """Rows at which one began, or an event became one."""
    return [event.row for event in model.events if event.severity == "alarm"]


def play_breaks(moving: Moving, learner: str) -> list[tuple[bool, int | None]]:
    """Of each break whether it doubles the loss of the frozen model, and when it is noticed."""
    X, y = np.ascontiguousarray(moving.stream.X), moving.stream.y
    model = for_task(moving.stream.task, learner)
    told: list[int] = []
    model.on_event = lambda event: told.append(event.last) if event.severity == "alarm" else None
    before, found = np.empty(0), []
    edges = [0, *(row for row in BREAKS[moving.name] if row + SPAN <= len(X)), len(X)]
    for start, stop in pairwise(edges):
        if start:
            rows = slice(start, start + SPAN)
            frozen = losses(model.predict(X[rows]), y[rows], moving.classes).mean()
            found.append((start, bool(frozen >= 2.0 * before[-SPAN:].mean())))
        trace = model.advance(X[start:stop], y[start:stop])
        before = losses(trace.prediction, y[start:stop], moving.classes)
    delays = [
        min((row - start for row in told if start <= row < start + SOON), default=None) for start, _ in found
    ]
    return [(doubled, delay) for (_, doubled), delay in zip(found, delays, strict=True)]


def play_creeping(moving: Moving, learner: str) -> tuple[int | None, int | None]:
    """Where the frozen model has twice its loss, and the first alarm; None: nowhere."""
    X, y = np.ascontiguousarray(moving.stream.X), moving.stream.y
    model = for_task(moving.stream.task, learner)
    usual = losses(model.advance(X[:FROZEN], y[:FROZEN]).prediction, y[:FROZEN], moving.classes)[
        -WINDOW:
    ].mean()
    answers = losses(model.predict(X[FROZEN:]), y[FROZEN:], moving.classes)
    means = np.convolve(answers, np.ones(WINDOW) / WINDOW, mode="valid")
    doubled = FROZEN + WINDOW + int(np.argmax(means >= 2.0 * usual)) if (means >= 2.0 * usual).any() else None
    model.advance(X[FROZEN:], y[FROZEN:])
    return doubled, min((row for row in alarms(model) if row >= EARLIEST), default=None)


def play_quiet(seed: int, classes: bool, learner: str, rows: int) -> int:
    """False alarms."""
    random = np.random.default_rng([seed, classes])
    X = random.uniform(-1.5, 1.5, size=(rows, 4))
    y = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * random.normal(size=rows)
    if classes:
        y = ((np.hypot(X[:, 0], X[:, 1]) < 1.1) ^ (random.uniform(size=rows) < 0.1)).astype(np.float64)
    model = for_task("classification" if classes else "regression", learner)
    model.advance(X, y)
    return len(alarms(model))


def run(settings: Settings) -> Report:
    """Breaks, creeping and quiet streams, for auto and for one learner with one kernel."""
    rows, seeds = (None, 10) if not settings.quick else (6_000, 2)
    table, figures = [], []
    for learner in ("auto", "embedded"):
        broken: list[int | None] = []
        early: list[bool] = []
        for moving in made_up(rows):
            if moving.name in BREAKS:
                delays = [delay for doubled, delay in play_breaks(moving, learner) if doubled]
                broken += delays
                seen = [delay for delay in delays if delay is not None]
                table.append([learner, moving.name, len(delays), len(seen), max(seen, default=-1)])
            elif moving.kind == "creeping" and "slowly" not in moving.name:
                doubled, first = play_creeping(moving, learner)
                if doubled is not None:
                    early.append(first is not None and first < doubled)
                    table.append([learner, moving.name, doubled, -1 if first is None else first, early[-1]])
        length = QUIET if not settings.quick else 4_000
        false = [
            play_quiet(seed, classes, learner, length) for seed in range(seeds) for classes in (False, True)
        ]
        noticed = sum(delay is not None for delay in broken) / max(len(broken), 1)
        figures += [
            Figure(f"breaks, {learner}", noticed, f"of {len(broken)}", "at least 0.95", noticed >= 0.95),
            Figure(
                f"creeping, {learner}",
                float(np.mean(early or [0.0])),
                f"of {len(early)}, before twice the loss",
            ),
            at_most(
                10.0,
                f"false, {learner}",
                sum(false) / 2.0,
                f"alarms in {seeds} seeds of {length:,} quiet rows",
            ),
        ]
    return Report(
        question="Are breaks noticed, creeping before it has done harm, and quiet streams left in peace?",
        data="streams of benchmarks.drift; quiet ones of numbers and of classes",
        columns=(
            "learner",
            "stream",
            "breaks, or twice the loss at",
            "noticed, or first alarm",
            "latest, or early",
        ),
        table=table,
        figures=figures,
    )
