"""The sections of a comparison's report: who is best, at what cost."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from kons.report import pictures
from kons.report.folder import RunFolder, as_number, as_text
from kons.report.history import Line
from kons.report.numbers import column, count, duration, number, percent, plural
from kons.report.pictures import Point
from kons.report.shown import Shown, Table
from kons.report.words import Code, Verdict, baseline_names, loss_name, loss_text, loss_texts, plain, verdict

__all__ = ["describe_comparison"]


def describe_comparison(folder: RunFolder) -> dict[str, Any]:
    part = folder.task == "classification"
    name = loss_name(folder)
    entries = folder.summary.get("learners")
    learners = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    learners.sort(key=lambda entry: (_or_infinite(entry.get("loss")), as_text(entry.get("name"))))
    names = [as_text(entry.get("name", "learner")) for entry in learners]
    points = _points(learners, names)
    said = _comparison_headline(folder, learners, names)
    caption = (
        f"By loss, the baselines among them; {plural(folder.rows, 'row')}, one pass. *: on the frontier."
    )
    shown = [Shown("In figures", caption, table=_ranking(folder, learners, names, points))]
    found = verdict(folder)
    trivial = None
    if found.best is not None and found.best_loss is not None:
        trivial = baseline_names(folder.task)[found.best], found.best_loss
    if points:
        caption = (
            "Down is better, left is cheaper. On the frontier nothing else is both. Numbered as in the table."
        )
        shown.append(Shown("Loss against time", caption, pictures.frontier(points, trivial, name, part=part)))
    lines = [(label, line) for entry, label in zip(learners, names, strict=True) if (line := _curve(entry))]
    if lines:
        drawn = min(len(lines), pictures.COLOURS)
        caption = f"The {name} over all rows up to each row."
        caption += f" The best {drawn} of {len(lines)}." if drawn < len(lines) else ""
        shown.append(Shown("Over time", caption, pictures.curves(lines, name, part=part)))
    else:
        shown.append(Shown("Over time", "No curves: summary.json holds none."))
    return {
        "title": f"{folder.target} \N{MIDDLE DOT} kons compare",
        "headline": said,
        "description": plain(said),
        "remark": "",
        "kind": Verdict(_first_loss(learners), found.best, found.best_loss).kind,
        "cards": [],
        "suggestions": [],
        "notes": [[note] for note in folder.notes],
        "sections": [("How they compare", shown)],
        "proof": None,
    }


def _or_infinite(value: Any) -> float:
    known = as_number(value)
    return math.inf if known is None else known


def _first_loss(learners: list[dict[str, Any]]) -> float | None:
    return as_number(learners[0].get("loss")) if learners else None


def _comparison_headline(folder: RunFolder, learners: list[dict[str, Any]], names: list[str]) -> list[str]:
    first = _first_loss(learners)
    if first is None:
        return ["Nothing to compare: no learner of this run has a finite loss."]
    words = [
        Code(names[0]),
        " predicts ",
        Code(folder.target),
        f" best: {loss_name(folder)} {loss_text(folder, first)}",
    ]
    found = verdict(folder)
    if found.best is not None and found.best_loss is not None:
        trivial = baseline_names(folder.task)[found.best]
        beside = f"the best trivial predictor ({trivial}, {loss_text(folder, found.best_loss)})"
        if first < found.best_loss:
            words.append(f", {percent(1.0 - first / found.best_loss)} less than {beside}")
        else:
            words.append(f"; {beside} is no worse")
    cost = as_number(learners[0].get("microseconds_per_row"))
    return [*words, f", at {duration(cost * 1e-6)} a row." if cost is not None else "."]


def _points(learners: list[dict[str, Any]], names: list[str]) -> list[Point]:
    """In the order of the table; on the frontier unless another is as good in both and better in one."""
    known = [
        (name, cost, loss)
        for name, entry in zip(names, learners, strict=True)
        if (cost := as_number(entry.get("microseconds_per_row"))) and cost > 0.0
        and (loss := as_number(entry.get("loss"))) is not None
    ]  # fmt: skip
    return [
        Point(
            name, cost, loss, not any(c <= cost and e <= loss and (c, e) != (cost, loss) for _, c, e in known)
        )
        for name, cost, loss in known
    ]


def _ranking(
    folder: RunFolder, learners: list[dict[str, Any]], names: list[str], points: list[Point]
) -> Table:
    """The learners in order, numbered, with the baselines in their places among them."""
    best = {point.name for point in points if point.best}
    first = _first_loss(learners)
    rows: list[tuple[float | None, list[str]]] = []
    for rank, (name, entry) in enumerate(zip(names, learners, strict=True), 1):
        cost, atoms = as_number(entry.get("microseconds_per_row")), as_number(entry.get("atoms"))
        mark = f"{name} *" if name in best else name
        costs = ["" if cost is None else number(cost, 2), "" if atoms is None else count(atoms)]
        rows.append((as_number(entry.get("loss")), [str(rank), mark, *costs]))
    for key, label in baseline_names(folder.task).items():
        loss = as_number(folder.group("baselines").get(key))
        if loss is not None:
            rows.append((loss, ["", f"baseline: {label}", "", ""]))
    rows.sort(key=lambda row: math.inf if row[0] is None else row[0])
    losses = [loss for loss, _ in rows]
    ratios = column(
        [loss / first if first and loss is not None else None for loss in losses], 3, by_least=True
    )
    cells = [
        [rank, name, text, ratio, *costs]
        for (_, (rank, name, *costs)), text, ratio in zip(
            rows, loss_texts(folder, losses), ratios, strict=True
        )
    ]
    heads = ["", "learner", loss_name(folder), "times the best", "microseconds a row", "points kept"]
    return Table(heads, cells, [True, False, True, True, True, True])


def _curve(entry: dict[str, Any]) -> Line | None:
    curve = entry.get("curve")
    if not isinstance(curve, dict):
        return None
    rows, losses = curve.get("row"), curve.get("loss")
    if not (isinstance(rows, list) and isinstance(losses, list)):
        return None
    pairs = [
        (row, loss)
        for raw, value in zip(rows, losses, strict=False)
        if (row := as_number(raw)) is not None and (loss := as_number(value)) is not None
    ]
    if not pairs:
        return None
    step = -(-len(pairs) // 600)
    table = np.array(pairs[::step], dtype=np.float64)
    return table[:, 0], table[:, 1]
