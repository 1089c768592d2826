"""The page of a run without a target: how new its rows were, and what happened to its columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from kons.report import drawing, pictures, words
from kons.report.drawing import COLOURS, Picture
from kons.report.folder import RunFolder, as_number, as_text
from kons.report.history import read_history
from kons.report.numbers import column, count, duration, number, plural
from kons.report.run import events, memory
from kons.report.shown import Shown, Table

__all__ = ["describe_novelty", "headline", "most_novel"]

MOST_LETTERS = 160  # of the cells of a row


def describe_novelty(folder: RunFolder) -> dict[str, Any]:
    """What the page of a run without a target shows."""
    context: dict[str, Any] = {
        "title": "novelty \N{MIDDLE DOT} kons report",
        "headline": headline(folder),
        "kind": "unknown",
    }
    if not folder.rows:
        return context | {"notes": []}
    history, found = read_history(folder), folder.group("novelty")
    notes = words.worth_knowing(folder, history)
    if history.novelty is None:
        return context | {"notes": notes, "sections": [("What happened", events(folder))]}
    listed = {as_number(row.get("row")): row for row in _named(folder)}
    marks = [
        {"row": row, "novelty": as_number(told.get("novelty")) or 0.0} for row, told in listed.items() if row
    ]
    caption = (
        "How far each row lay from what had been seen before it, as the kernel sees it: high where the "
        "stream goes somewhere new, near 0 where it repeats itself. The first rows tell the scales."
    )
    shown = [
        Shown("Along the stream", caption, pictures.novelty(history.novelty, marks)),
        Shown(
            "How often", "Rows by their novelty. Those far to the right are worth a look.", _histogram(folder)
        ),
    ]
    rows = Shown(
        "With their cells", "By the line of the source, as in predictions.csv.", table=most_novel(folder)
    )
    return context | {
        "notes": notes,
        "cards": _cards(folder, found),
        "sections": [
            ("How new each row was", shown),
            ("The most novel rows", [rows]),
            ("What happened", events(folder)),
            ("What it keeps", memory(folder, history)),
        ],
    }


def headline(folder: RunFolder) -> list[str]:
    """One sentence: how new the newest row was, beside the usual."""
    found, first = folder.group("novelty"), (_named(folder) or [{}])[0]
    if not first:
        return [f"{plural(folder.rows, 'row')}: all of them went into the scales, none was judged."]
    typical, most = as_number(found.get("median")), as_number(first.get("novelty"))
    line = count(as_number(first.get("line")))
    return [
        f"The most novel of {plural(int(as_number(found.get('rows')) or 0), 'row')} is in line {line}: "
        f"{number(most, 2)}, where half of the rows have at most {number(typical, 2)}."
    ]


def most_novel(folder: RunFolder, letters: int = MOST_LETTERS) -> Table:
    """The most novel rows, with as many letters of their cells."""
    rows = _named(folder)
    amounts = column([as_number(row.get("novelty")) for row in rows], 3)
    cells = []
    for row, amount in zip(rows, amounts, strict=True):
        raw = row.get("cells")
        told = (
            ", ".join(f"{as_text(k)} {as_text(v)}" for k, v in raw.items()) if isinstance(raw, dict) else ""
        )
        shown = told if len(told) <= letters else f"{told[: letters - 3]}..."
        cells.append([count(as_number(row.get("line"))), amount, shown])
    return Table(["line", "novelty", "cells"], cells, [True, True, False])


def _named(folder: RunFolder) -> list[dict[str, Any]]:
    rows = folder.group("novelty").get("most_novel")
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _cards(folder: RunFolder, found: dict[str, Any]) -> list[tuple[str, str, str]]:
    cards = [
        (name, number(as_number(found.get(key)), 2), note)
        for name, key, note in (
            ("largest novelty", "largest", f"of {plural(int(as_number(found.get('rows')) or 0), 'row')}"),
            ("99 % of the rows", "quantile_99", "at most, or a little more"),
            ("half of the rows", "median", "at most, or a little more"),
        )
    ]
    noticed = folder.entries("events")
    alarms = sum(event.get("severity") == "alarm" for event in noticed)
    cards.append(("events", count(len(noticed)), plural(alarms, "alarm")))
    cost, seconds = folder.number("microseconds_per_row"), folder.number("seconds")
    if cost is not None:
        value, unit = duration(cost * 1e-6).split(" ", 1)
        cards.append((f"{unit} a row", value, f"{duration(seconds)} in all" if seconds is not None else ""))
    return cards


@drawing.style()
def _histogram(folder: RunFolder) -> Picture | None:
    bins = folder.group("novelty").get("histogram")
    told = [[as_number(each.get(key)) or 0.0 for key in ("from", "to", "rows")] for each in bins or ()]
    if not told:
        return None
    low, high, rows = np.array(told).T
    axes = drawing.axes(200)
    axes.bar(low, np.maximum(rows, 0.0), high - low, align="edge", color=COLOURS["c0"], lw=0)
    axes.set_xlabel("novelty, log scale")
    drawing.log_axis(axes, "x", float(low[0]), float(high[-1]))
    axes.set_yscale("symlog", linthresh=1.0)
    axes.set_ylim(0.0, 1.5 * float(rows.max()))
    axes.yaxis.set_major_formatter("{x:,.0f}")
    drawing.title(axes, "rows", logarithmic=True)
    return Picture(axes.figure, "Histogram of the novelty of rows.")
