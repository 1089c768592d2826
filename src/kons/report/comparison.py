"""The sections of a comparison's report: who is best, at what cost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kons.report import pictures, words
from kons.report.drawing import Picture
from kons.report.folder import RunFolder, as_number, as_text, or_infinite
from kons.report.numbers import column, count, number, plural
from kons.report.pictures import Point
from kons.report.shown import Shown, Table
from kons.report.thinning import Line

__all__ = ["Entry", "describe_comparison", "draw_frontier", "read_entries"]

MOST_POINTS = 600  # of a curve


@dataclass(frozen=True)
class Entry:
    """A predictor of a comparison; None where something is not known."""

    name: str
    loss: float | None
    cost: float | None = None
    """Microseconds a row."""
    atoms: float | None = None
    on_frontier: bool = False
    """No other learner beats it in both loss and time."""
    curve: Line | None = None
    rank: int | None = None
    """Among the learners; None for a baseline."""
    last_quarter: float | None = None
    """The loss of the last quarter of the rows."""
    pause: float | None = None
    """CPU seconds of the longest step, where rows came one by one."""


def read_entries(folder: RunFolder) -> list[Entry]:
    """Learners and baselines, the least loss first."""
    frontier = folder.summary.get("frontier")
    best = set(map(as_text, frontier)) if isinstance(frontier, list) else set()
    learners = folder.entries("learners")
    learners.sort(key=lambda entry: (or_infinite(as_number(entry.get("loss"))), as_text(entry.get("name"))))
    entries = [
        Entry(
            name := as_text(entry.get("name", "learner")),
            as_number(entry.get("loss")),
            as_number(entry.get("microseconds_per_row")),
            as_number(entry.get("atoms")),
            name in best,
            _curve(entry.get("curve")),
            rank,
            as_number(entry.get("last_quarter")),
            as_number(entry.get("longest_pause")),
        )
        for rank, entry in enumerate(learners, 1)
    ]
    baselines, quarters = folder.numbers("baselines"), folder.numbers("baselines_last_quarter")
    names = words.baseline_names(folder.task).items()
    entries += [
        Entry(label, baselines[key], last_quarter=quarters.get(key))
        for key, label in names
        if key in baselines
    ]
    return sorted(entries, key=lambda entry: or_infinite(entry.loss))


def describe_comparison(folder: RunFolder) -> dict[str, Any]:
    """What the page of a comparison shows."""
    name, entries = words.loss_name(folder), read_entries(folder)
    learners = [entry for entry in entries if entry.rank is not None]
    caption = (
        f"By loss, the baselines among them; {plural(folder.rows, 'row')}, one pass. *: on the frontier."
    )
    shown = [Shown("In figures", caption, table=_ranking(folder, entries))]
    if picture := draw_frontier(folder):
        caption = (
            "Down is better, left is cheaper. On the frontier nothing else is both. Numbered as in the table."
        )
        shown.append(Shown("Loss against time", caption, picture))
    lines = [(entry.name, entry.curve) for entry in learners if entry.curve is not None]
    if lines:
        drawn = min(len(lines), pictures.MOST_CURVES)
        caption = f"The {name} over all rows up to each row."
        caption += f" The best {drawn} of {len(lines)}." if drawn < len(lines) else ""
        picture = pictures.curves(lines, name, part=folder.task == "classification")
        shown.append(Shown("Over time", caption, picture))
    else:
        shown.append(Shown("Over time", "No curves: summary.json holds none."))
    found = replace(words.verdict(folder), loss=learners[0].loss if learners else None)
    return {
        "title": f"{folder.target} \N{MIDDLE DOT} kons compare",
        "headline": _headline(folder, learners, found),
        "kind": found.kind,
        "notes": [[note] for note in folder.texts("notes")],
        "sections": [("How they compare", shown)],
    }


def draw_frontier(folder: RunFolder) -> Picture | None:
    """Loss against time; None where no learner has both."""
    points = [
        Point(f"{entry.rank} {entry.name}", entry.cost, entry.loss, entry.on_frontier)
        for entry in read_entries(folder)
        if entry.loss is not None and entry.cost is not None and entry.cost > 0.0
    ]
    if not points:
        return None
    found, trivial = words.verdict(folder), None
    if found.best is not None and found.best_loss is not None:
        trivial = words.baseline_names(folder.task)[found.best], found.best_loss
    return pictures.frontier(points, trivial, words.loss_name(folder), part=folder.task == "classification")


def _headline(folder: RunFolder, learners: list[Entry], found: words.Verdict) -> list[str]:
    if found.loss is None:
        return ["Nothing to compare: no learner of this run has a finite loss."]
    name, target = words.Code(learners[0].name), words.Code(folder.target)
    loss = f"{words.loss_name(folder)} {words.loss_text(folder, found.loss)}"
    end = words.compared(folder, found, learners[0].cost)
    return [name, " predicts ", target, f" best: {loss}", *end]


def _ranking(folder: RunFolder, entries: list[Entry]) -> Table:
    """The learners in order, numbered, with the baselines in their places among them."""
    losses = [entry.loss for entry in entries]
    first = next((entry.loss for entry in entries if entry.rank == 1), None)
    ratios = [loss / first if first and loss is not None else None for loss in losses]
    quarters = words.loss_texts(folder, [entry.last_quarter for entry in entries])
    texts = zip(words.loss_texts(folder, losses), column(ratios, 3, by_least=True), quarters, strict=True)
    cells = [
        [
            str(entry.rank or ""),
            f"{'' if entry.rank else 'baseline: '}{entry.name}{' *' if entry.on_frontier else ''}",
            text,
            ratio,
            "" if entry.last_quarter is None else quarter,
            "" if entry.cost is None else number(entry.cost, 2),
            "" if entry.pause is None else number(1e3 * entry.pause, 2),
            "" if entry.atoms is None else count(entry.atoms),
        ]
        for entry, (text, ratio, quarter) in zip(entries, texts, strict=True)
    ]
    heads = ["", "learner", words.loss_name(folder), "times the best", "last quarter"]
    heads += ["microseconds a row", "longest pause, ms", "points kept"]
    # What nobody has is no column: of blocks there are no pauses.
    shown = [at for at in range(len(heads)) if at < 4 or any(row[at] for row in cells)]
    return Table(
        [heads[at] for at in shown], [[row[at] for at in shown] for row in cells], [at != 1 for at in shown]
    )


def _curve(found: Any) -> Line | None:
    """The running loss of a learner, thinned; None where there is none."""
    rows, losses = (found.get("row"), found.get("loss")) if isinstance(found, dict) else (None, None)
    if not (isinstance(rows, list) and isinstance(losses, list)):
        return None
    pairs = [
        (row, loss)
        for raw, value in zip(rows, losses, strict=False)
        if (row := as_number(raw)) is not None and (loss := as_number(value)) is not None
    ]
    table = np.array(pairs[:: -(-len(pairs) // MOST_POINTS) or 1], dtype=np.float64).reshape(-1, 2)
    return (table[:, 0], table[:, 1]) if len(table) else None
