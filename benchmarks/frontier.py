"""Who wins where: loss against microseconds a row, for every learner of the registry.

Each is made by its name alone, as ``kons compare --learners all`` makes it, and wrapped for raw units; the
trivial baselines stand beside. Methods of first order have their best step size in hindsight, a constant out
of a grid or their own: what they lose, they do not lose by tuning. The grid is played on the first rows, and
climbed on all of them from where it was best there, until both neighbours are worse. Times are those of the
best one, with one BLAS thread, rows in blocks. Learners whose row costs t^2 play the shorter sets alone.

The adversarial stream is SkeGD's: blocks of ten equal rows of *german*, the label turned in every other one.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from benchmarks.frontier_picture import PICTURE, draw
from benchmarks.measuring import blas_threads
from benchmarks.reporting import RESULTS, Figure, Report
from benchmarks.settings import Settings
from benchmarks.streams import Stream, load, real
from kons import FeatureLearner, Gaussian, evaluate
from kons.errors import KonsError
from kons.learners import EmbeddedKONS
from kons.recipes import RECIPES, for_task, warmup_for
from kons.streams import alternating_labels

ROWS, QUICK_ROWS = 20_000, 800
#: First rows, on which all steps of the grid are played.
SCOUTED = 2_000
#: Sets, their task, whether they are in the order of time, and how many columns a stand-in has.
SETS = {
    "cadata": ("regression", False, 8),
    "cpusmall": ("regression", False, 12),
    "parkinson": ("regression", False, 20),
    "elevators": ("regression", False, 18),
    "magic04": ("classification", False, 10),
    "electricity": ("classification", True, 8),
}
ADVERSARIAL = "adversarial german"
BLOCKS, REPEATS = 500, 10
#: Steps, or radii of those that take their step from one, that are tried in hindsight.
STEPS = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
QUICK_STEPS = (0.03, 0.3)
RADII = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
# A learner whose row costs so many powers of t has so many rows at most.
MOST_OF_GROWING = {0: ROWS, 1: ROWS, 2: 10_000}


class Played(NamedTuple):
    """A learner on a set, at its best step."""

    name: str
    family: str
    loss: float
    microseconds: float
    choice: str
    """The step that was best; "" where there is none to choose."""


def run(settings: Settings) -> Report:
    table: list[list[Any]] = []
    notes: list[str] = []
    sets: dict[str, Any] = {}
    with blas_threads(1):
        for name, task, stream in streams(settings, notes):
            played, baselines = play_all(stream, task, settings, notes, name)
            best = frontier(played)
            for each in sorted(played, key=lambda each: each.loss):
                mark = "frontier" if each.name in best else ""
                table.append([name, each.name, each.family, each.loss, each.microseconds, each.choice, mark])
            table += [[name, word, "baseline", loss, "", "", ""] for word, loss in baselines.items()]
            sets[name] = {
                "task": task,
                "rows": len(stream),
                "baselines": baselines,
                "frontier": best,
                "learners": [each._asdict() for each in played],
            }
    # A quick run is no picture for the documents.
    draw(sets, RESULTS / PICTURE.name if settings.quick else PICTURE)
    return Report(
        question="Which learners does no other beat in both loss and time?",
        data="mean squared error of y in [-1/2, 1/2], or error rate; one BLAS thread",
        columns=("set", "learner", "space", "loss", "us/row", "best step", ""),
        table=table,
        figures=[
            Figure(f"{name}, learners", len(found["learners"]), "that are for its task")
            for name, found in sets.items()
        ],
        notes=notes,
        details=sets,
    )


def streams(settings: Settings, notes: list[str]) -> Iterator[tuple[str, str, Stream]]:
    rows = QUICK_ROWS if settings.quick else ROWS
    for name, (task, in_order, features) in SETS.items():
        if settings.sets and name not in settings.sets:
            continue
        stream = real(name, settings.folder, None if in_order else 0)
        if stream is None:
            notes.append(f"{name}: no file, a synthetic set stands for it.")
            stream = load(name, None, rows=rows, features=features)
            if task == "classification":
                stream = Stream(stream.X, np.sign(stream.y), stream.origin)
        yield name, task, stream.first(rows)
    if not settings.sets or "german" in settings.sets:
        yield ADVERSARIAL, "classification", adversarial(settings, notes).first(rows)


def adversarial(settings: Settings, notes: list[str]) -> Stream:
    german = real("german", settings.folder)
    if german is None:
        notes.append("german: no file, a point whose label alternates stands for it.")
        found = alternating_labels(BLOCKS * REPEATS)
        return Stream(np.asarray(found[0]), np.asarray(found[1]), "alternating labels")
    turned = np.where(np.arange(BLOCKS) % 2 == 1, -1.0, 1.0)
    order = np.repeat(np.arange(BLOCKS), REPEATS)
    return Stream(german.X[order], np.sign(german.y[order]) * turned[order], ADVERSARIAL)


def play_all(
    stream: Stream, task: str, settings: Settings, notes: list[str], where: str
) -> tuple[list[Played], dict[str, float]]:
    played = []
    for name, recipe in RECIPES.items():
        if task not in recipe.tasks:
            continue
        if len(stream) > MOST_OF_GROWING[recipe.growth]:
            notes.append(f"{where}: {name} left out, for it costs {recipe.cost} a row.")
            continue
        best = play_at_best(name, task, stream, choices(name, settings))
        if np.isfinite(best.loss):
            played.append(best)
        else:
            notes.append(f"{where}: {name} left out: {best.choice}")
    constant = play("vaw" if task == "regression" else "ogd", task, stream, {}, baselines=True)
    return played, dict(constant.baselines)


def play_at_best(name: str, task: str, stream: Stream, ladder: list[dict[str, float]]) -> Played:
    """At its own step, the first of the ladder, or the best of the others, whichever is better."""

    @functools.cache
    def at(step: int, rows: int) -> Played:
        choice = ladder[step]
        words = ", ".join(f"{key} {value:g}" for key, value in choice.items())
        try:
            found = play(name, task, stream.first(rows), choice)
        except KonsError as error:  # such a step may be refused, or end in numbers without an end
            return Played(name, family(name), np.inf, np.inf, f"{words} {error}".strip())
        loss = found.loss if np.isfinite(found.loss) else np.inf
        return Played(name, family(name), loss, found.microseconds_per_row, words)

    steps, whole = range(1, len(ladder)), len(stream)
    if not steps:
        return at(0, whole)
    best = min(steps, key=lambda step: at(step, min(SCOUTED, whole)).loss)
    for way in (-1, 1):
        while best + way in steps and at(best + way, whole).loss < at(best, whole).loss:
            best += way
    return min(at(0, whole), at(best, whole), key=lambda found: found.loss)


def play(name: str, task: str, stream: Stream, given: dict[str, float], *, baselines: bool = False) -> Any:
    recipe = RECIPES[name]
    warmup = {} if recipe.in_raw_units else {"warmup": warmup_for(len(stream))}
    model = for_task(task, name, **warmup, **given)  # type: ignore[arg-type]
    y = stream.y if task == "regression" else np.where(stream.y > 0.0, "up", "down")
    return evaluate(model, (stream.X, y), baselines=baselines)


def choices(name: str, settings: Settings) -> list[dict[str, float]]:
    """Parameters that are tried: none, and where the method is of first order the grid of its step."""
    recipe = RECIPES[name]
    if recipe.in_raw_units or recipe.hessian or recipe.exact or not is_first_order(name):
        return [{}]
    if "step_size" in recipe.parameters:
        return [{}, *({"step_size": step} for step in (QUICK_STEPS if settings.quick else STEPS))]
    if "radius" in recipe.parameters:
        return [{}, *({"radius": radius} for radius in RADII)]
    return [{}]


def core_of(name: str) -> Any:
    recipe = RECIPES[name]
    return recipe.made_of(Gaussian(), recipe.own_loss or recipe.of_labels)


def is_first_order(name: str) -> bool:
    return core_of(name).second_order in (None, "none")


def family(name: str) -> str:
    """The space that a learner lives in."""
    if RECIPES[name].in_raw_units:
        return "several spans"
    core = core_of(name)
    if isinstance(core, FeatureLearner):
        return {"columns": "columns", "span": "span", "sketch": "span"}.get(core.features, "random features")
    return "span" if isinstance(core, EmbeddedKONS) else "expansion"


def frontier(played: list[Played]) -> list[str]:
    """Those that no other beats in both, fastest first."""
    best: list[Played] = []
    for each in sorted(played, key=lambda each: each.microseconds):
        if not best or each.loss < best[-1].loss:
            best.append(each)
    return [each.name for each in best]
