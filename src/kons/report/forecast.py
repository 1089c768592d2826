"""The page of a forecast: errors by horizon, and the last paths beside one season before."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from kons.arrays import Vector
from kons.report import drawing
from kons.report.drawing import COLOURS, Key, Picture
from kons.report.folder import RunFolder, as_number, as_text
from kons.report.numbers import column, count, number, percent, plural
from kons.report.shown import Shown, Table
from kons.report.words import Code, left_out

__all__ = ["by_horizon", "describe_forecast", "headline"]

NAMES = {"prediction": "forecast", "seasonal": "one season before", "last": "last value again"}
LOOKS = {"prediction": ("c0", "", 2.2), "seasonal": ("c3", "7 3 2 3", 1.5), "last": ("c1", "2 3", 1.5)}


def describe_forecast(folder: RunFolder) -> dict[str, Any]:
    """What the page of a forecast shows."""
    context: dict[str, Any] = {
        "title": f"{folder.target} \N{MIDDLE DOT} kons forecast",
        "headline": headline(folder),
        "kind": _kind(folder),
        "notes": [*left_out(folder), *([note] for note in folder.texts("notes"))],
    }
    if not folder.number("targets_scored"):
        return context
    level = folder.number("level")
    interval = f" The band should hold {percent(level)} of what comes." if level is not None else ""
    shown = [
        Shown(
            "Error by horizon",
            "The root mean squared error of all origins, each predicted by what was known there.",
            _errors(folder),
        ),
        Shown("In figures", "", table=by_horizon(folder)),
    ]
    paths = [
        Shown(
            "The last paths, and the next",
            "Each begins behind its origin (upright line), a horizon after the one before; dashed: one "
            f"season before.{interval} The last one lies beyond the last row.",
            _paths(folder),
        )
    ]
    return context | {"sections": [("How good it is", shown), ("Paths", paths)]}


def headline(folder: RunFolder) -> list[str]:
    """One sentence: how well, beside one season before."""
    loss, trivial = folder.number("loss"), folder.numbers("baselines")
    steps = plural(int(folder.number("steps") or 0), "step")
    if loss is None or not trivial:
        return [
            "Too few rows to judge by: no path of ",
            Code(folder.target),
            f" over {steps} has passed yet.",
        ]
    best = min(trivial, key=lambda name: trivial[name])
    error, theirs = math.sqrt(loss), math.sqrt(trivial[best])
    ratio = f"{number(error / theirs, 2)} times" if theirs else "more than"
    ratio = "as much as" if error == theirs else ratio
    return [
        "Forecasts ",
        Code(folder.target),
        f" over the next {steps} with a root mean squared error of {number(error)}, {ratio} that of "
        f"{'the same place one season before' if best == 'seasonal' else 'the last value again'} "
        f"({number(theirs)}).",
    ]


def by_horizon(folder: RunFolder, most: int = 1000) -> Table:
    """Errors of each horizon, or of some of them."""
    entries = folder.entries("by_horizon")
    if len(entries) > most:
        places = np.unique(np.round(np.geomspace(1, len(entries), most)).astype(int)) - 1
        entries = [entries[i] for i in places.tolist()]
    columns = [column([as_number(entry.get(name)) for entry in entries], 3) for name in NAMES]
    held = [as_number(entry.get("coverage")) for entry in entries]
    inside = ["" if share is None else percent(share) for share in held]
    steps = [count(as_number(entry.get("horizon")) or 0) for entry in entries]
    rows = [list(row) for row in zip(steps, *columns, inside, strict=True)]
    return Table(["steps ahead", *NAMES.values(), "inside"], rows, [True] * 5)


def _kind(folder: RunFolder) -> str:
    loss, trivial = folder.number("loss"), list(folder.numbers("baselines").values())
    if loss is None or not trivial:
        return "unknown"
    return "better" if loss < min(trivial) else "worse"


@drawing.style()
def _errors(folder: RunFolder) -> Picture:
    entries = folder.entries("by_horizon")
    steps = np.array([as_number(entry.get("horizon")) or 0.0 for entry in entries])
    axes, values, keys = drawing.axes(220), [], []
    for name, label in NAMES.items():
        line = _numbers([entry.get(name) for entry in entries])
        values.append(line)
        drawing.line(axes, (steps, line), LOOKS[name])
        keys.append(Key(label, LOOKS[name][0], "line", LOOKS[name][1]))
    axes.set_xlabel("steps ahead")
    drawing.value_axis(axes, values, from_zero=True)
    drawing.title(axes, f"root mean squared error, {drawing.cut(folder.target)}")
    return Picture(axes.figure, "Root mean squared error by horizon.", tuple(keys))


@drawing.style()
def _paths(folder: RunFolder) -> Picture | None:
    paths, ahead = folder.entries("paths"), folder.group("ahead")
    if not paths:
        return None
    start = int(as_number(paths[0].get("origin")) or 0)
    axes, values = drawing.axes(280), []
    season = COLOURS[LOOKS["seasonal"][0]]
    for path in [*paths, ahead]:
        origin = int(as_number(path.get("origin")) or 0) - start
        predicted = _numbers(path.get("prediction"))
        steps = origin + 1.0 + np.arange(len(predicted))
        lower, upper = _numbers(path.get("lower")), _numbers(path.get("upper"))
        axes.fill_between(steps, lower, upper, color=COLOURS["c0"], alpha=0.17, lw=0)
        axes.plot(steps, predicted, color=COLOURS["c0"], lw=2)
        values += [predicted, lower, upper]
        if "target" in path:
            actual, before = _numbers(path.get("target")), _numbers(path.get("seasonal"))
            axes.plot(steps, actual, color=COLOURS["ink"], lw=1.3, marker="o", ms=2.2, alpha=0.85)
            axes.plot(steps, before, color=season, lw=1.3, ls=(0, (4, 2)))
            values += [actual, before]
        axes.axvline(origin + 0.5, color=COLOURS["muted"], lw=0.8, alpha=0.6)
    axes.set_xlabel("steps since the first origin shown")
    drawing.value_axis(axes, values)
    drawing.title(axes, drawing.cut(folder.target))
    keys = (
        *(Key("actual", "ink"), Key("forecast", "c0"), Key("interval", "c0", "area")),
        Key(NAMES["seasonal"], "c3", "line", "7 3"),
    )
    return Picture(axes.figure, f"The last paths of {as_text(folder.target)}, and the next.", keys)


def _numbers(values: Any) -> Vector:
    found = [as_number(value) for value in values] if isinstance(values, list) else []
    return np.array([np.nan if value is None else value for value in found], dtype=np.float64)
