"""The sections of a run's report."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from kons.report import pictures, words
from kons.report.folder import RunFolder, as_number, as_text, or_infinite
from kons.report.history import PER_TARGET, History, read_history
from kons.report.numbers import column, count, duration, number, percent, plural
from kons.report.proof import proof
from kons.report.shown import Bar, Shown, Table

__all__ = ["beside", "describe_run", "each_target", "events", "memory", "worst_keys"]

MOST_BARS = 20
MOST_LABELS = 10
MOST_TARGETS = 12  # with a picture
MOST_LETTERS = 160  # of the cells of a row


def describe_run(folder: RunFolder) -> dict[str, Any]:
    """What the page of a run shows."""
    history = read_history(folder)
    context: dict[str, Any] = {
        "title": f"{folder.target} \N{MIDDLE DOT} kons report",
        "headline": words.headline(folder),
        "kind": words.verdict(folder).kind if folder.rows >= words.TOO_FEW else "unknown",
        "notes": words.worth_knowing(folder, history),
    }
    if not folder.rows:
        return context
    return context | {
        "remark": words.remark(folder),
        "cards": _cards(folder),
        "suggestions": words.suggestions(folder),
        "sections": [
            ("How good it is", _losses(folder, history)),
            ("Predicted against actual", _recent(folder, history)),
            ("What it keeps", memory(folder, history)),
            ("What happened", events(folder)),
            ("What was new", _novelty(folder, history)),
            ("What it leans on", _reliance(folder, history)),
        ],
        "proof": proof(folder) if not folder.targets else None,
    }


def _cards(folder: RunFolder) -> list[tuple[str, str, str]]:
    found = words.verdict(folder)
    over = f"over {plural(folder.rows, 'row')}"
    away = words.without_last_targets(folder)
    if folder.summary.get("headline") == "without last targets" and away is not None:
        over = f"without last targets, over {plural(away[1], 'row')}"
    cards = [(words.loss_name(folder), words.loss_text(folder, found.loss), over)]
    if away is not None and folder.summary.get("headline") != "without last targets":
        cards.append(("without last targets", words.loss_text(folder, away[0]), "as kons predict does"))
    if found.best is not None:
        trivial = words.baseline_names(folder.task)[found.best]
        change = found.change.removesuffix(" as much")
        theirs = f"{trivial}: {words.loss_text(folder, found.best_loss)}"
        cards.append(("against the best baseline", change, theirs))
    held, level = folder.number("coverage"), folder.number("interval_level")
    if held is not None:
        asked = f"asked for: {percent(level)}" if level is not None else "of the targets"
        cards.append(("inside the interval", percent(held), asked))
    atoms, most = folder.number("atoms"), folder.number("max_atoms")
    if atoms is not None:
        cards.append(("points kept", count(atoms), f"at most {count(most)}" if most else ""))
    cost, seconds = folder.number("microseconds_per_row"), folder.number("seconds")
    if cost is not None:
        value, unit = duration(cost * 1e-6).split(" ", 1)
        cards.append((f"{unit} a row", value, f"{duration(seconds)} in all" if seconds is not None else ""))
    return cards


def _losses(folder: RunFolder, history: History) -> list[Shown]:
    part = folder.task == "classification"
    name = words.loss_name(folder)
    unit = "" if part else f" ({folder.target}, squared)"
    learner = as_text(folder.summary.get("learner") or "learner")
    names = {"learner": learner, **words.baseline_names(folder.task)}
    shown = [
        Shown(
            "Over all rows so far",
            f"The {name} over all rows up to each row, every row predicted before it was learned. Lower is "
            "better. The very first rows may lie outside.",
            pictures.losses(history.running, names, f"{name}{unit}", "over all rows so far", part=part),
        )
    ]
    windowed = history.windowed.get("learner")
    if history.window >= 5 and windowed is not None and len(windowed[0]) >= 3:
        over = f"over the last {plural(history.window, 'row')}"
        caption = (
            "The same over a window that moves along: what changes over time shows here. Long curves are "
            "thinned to their least and largest values, so no spike is lost."
        )
        picture = pictures.losses(history.windowed, names, f"{name}{unit}", over, part=part)
        shown.append(Shown(over.capitalize(), caption, picture))
    else:
        shown.append(
            Shown("Over the last rows", f"{plural(folder.rows, 'row')} are too few for a windowed curve.")
        )
    shown.append(Shown("In figures", "", table=beside(folder, learner)))
    if folder.group("keys"):
        caption = "The mean loss of each key's own learner, beside that of the mean of its targets so far."
        shown.append(Shown("The worst keys first", caption, table=worst_keys(folder)))
    if folder.targets:
        caption = "Its root mean squared error, in its own units, beside that of the best trivial predictor."
        return [*shown, Shown("Each target by itself", caption, table=each_target(folder))]
    other = _measures(folder)
    return [*shown, Shown("Other measures of this run", "", table=other)] if other else shown


def beside(folder: RunFolder, name: str) -> Table:
    """The loss of the learner, with and without last targets, and of the baselines, least first.

    And how many times that of the headline it is.
    """
    along = as_number(folder.group("online").get("loss"))
    losses: dict[str, float | None] = {"learner": folder.number("loss") if along is None else along}
    losses |= folder.numbers("baselines")
    names = {"learner": f"{name} (this run)", **words.baseline_names(folder.task)}
    if (away := words.without_last_targets(folder)) is not None:
        names["away"], losses["away"] = f"{name}, without last targets", away[0]
    keys = sorted((key for key in names if key in losses), key=lambda key: or_infinite(losses[key]))
    own = folder.number("loss")
    ratios = [loss / own if own and (loss := losses[key]) is not None else None for key in keys]
    columns = [
        [names[key] for key in keys],
        words.loss_texts(folder, [losses[key] for key in keys]),
        column(ratios, 3, by_least=True),
    ]
    heads = ["predictor", words.loss_name(folder), "times this run's"]
    figures = {"learner": folder.group("online").get("metrics"), **folder.group("baseline_metrics")}
    figures["away"] = folder.group("without_last_targets").get("metrics")
    known = {key: found for key, found in figures.items() if isinstance(found, dict)}
    for name, head in (("auc", "AUC"), ("average_precision", "av. precision")):
        values = [as_number(known.get(key, {}).get(name)) for key in keys]
        if any(value is not None for value in values):
            heads.append(head)
            columns.append([number(value) for value in values])
    return Table(
        heads, [list(row) for row in zip(*columns, strict=True)], [False, *[True] * (len(heads) - 1)]
    )


def each_target(folder: RunFolder) -> Table:
    """The figures of each of several targets."""
    rows = []
    for entry in folder.entries("targets"):
        metrics, losses, last = (
            {key: as_number(value) for key, value in (entry.get(name) or {}).items()}
            for name in ("metrics", "baselines", "windowed")
        )
        known = {key: loss for key, loss in losses.items() if loss is not None}
        best = min(known, key=known.__getitem__, default=None)
        names = words.baseline_names(folder.task)
        held = as_number(entry.get("coverage"))
        rows.append(
            [
                as_text(entry.get("name", "")),
                number(metrics.get("rmse")),
                number(last.get("rmse")),
                "" if best is None else f"{number(known[best] ** 0.5)} ({names.get(best, best)})",
                number(metrics.get("r2")),
                "" if held is None else percent(held),
            ]
        )
    span = min(int(folder.number("window") or 0), folder.rows)
    heads = ["target", "rmse", f"last {count(span)}", "best trivial", "r2", "inside"]
    return Table(heads, rows, [False, *[True] * 5])


def worst_keys(folder: RunFolder) -> Table:
    """Of a learner per key, those that are predicted worst."""
    keys = folder.group("keys")
    rows = [
        [
            as_text(one.get("key", "")),
            count(one.get("rows") or 0),
            number(as_number(one.get("loss"))),
            number(as_number(one.get("constant"))),
        ]
        for one in keys.get("worst") or ()
    ]
    heads = [f"worst of {count(keys.get('count') or 0)} keys", "rows", "loss", "of its mean"]
    return Table(heads, rows, [False, True, True, True])


def _measures(folder: RunFolder) -> Table | None:
    known = [
        [words.meaning(folder, key), number(value)]
        for key, value in folder.numbers("metrics").items()
        if key not in ("mse", "error_rate")
    ]
    return Table(["measure", "value"], known, [False, True]) if known else None


def _recent(folder: RunFolder, history: History) -> list[Shown]:
    recent = history.recent
    rows = len(recent["row"])
    if folder.task == "classification":
        right = int(np.sum(recent["target"] == recent["prediction"]))
        caption = f"The last {plural(rows, 'row')}: {count(right)} right."
        picture = pictures.recent_labels(recent, folder.classes, folder.target) if folder.classes else None
        if picture is None:
            caption += " There are too many classes for a picture." if folder.classes else ""
        shown = [Shown("The last rows", caption, picture), _confusion(folder, history)]
        shown += _reliability(history)
    else:
        level = folder.number("interval_level")
        said = f"The last {plural(rows, 'row')}."
        known = np.isfinite(recent["lower"]) & np.isfinite(recent["upper"]) & np.isfinite(recent["target"])
        inside = known & (recent["lower"] <= recent["target"]) & (recent["target"] <= recent["upper"])
        if known.any():
            held = folder.number("coverage")
            said += f" The interval held {count(int(inside.sum()))} of {plural(int(known.sum()), 'target')}"
            said += f" ({percent(inside.sum() / known.sum())}); over the whole run {percent(held)}."
        else:
            said += " No interval: the run wrote none (it needs some residuals first)."
        asked = None if level is None else percent(level)
        names = folder.targets or [folder.target]
        shown = [
            Shown(
                "The last rows" if not folder.targets else f"The last rows of {name}",
                said if not k else "",
                pictures.recent_values(_of_target(recent, k), name, asked),
            )
            for k, name in enumerate(names[:MOST_TARGETS])
        ]
    worst = _listed(folder, history.worst, "loss", "squared error")
    if worst:
        caption = "The rows that cost most, with their cells; predictions.csv has all, by the same line."
        if folder.group("worst_reasons"):
            caption += " Because of: what columns add to the prediction for a typical row, at the end."
        shown.append(Shown("Worst predicted", caption, table=worst))
    return shown


def _reliability(history: History) -> list[Shown]:
    tenths = history.reliability
    if tenths is None or not tenths[:, 0].sum():
        return []
    rows = tenths[:, 0].sum()
    gap = float(np.abs(tenths[:, 1] - tenths[:, 2]).sum() / rows)
    caption = (
        "How often the predicted label was right, by the probability that it was given; on the dashed line "
        f"a label that has a probability of 80 % is right in 80 % of the rows. On average {percent(gap)} off."
    )
    return [Shown("Are probabilities right?", caption, pictures.reliability(tenths))]


def _of_target(recent: dict[str, Any], k: int) -> dict[str, Any]:
    """The last rows of one of several targets: ``target.1`` and so on in a trace."""
    own = {name: recent[f"{name}.{k}"] for name in PER_TARGET if f"{name}.{k}" in recent}
    return {**recent, **own}


def _confusion(folder: RunFolder, history: History) -> Shown:
    title = "Which label for which"
    counts = history.confusion
    if counts is None or not counts.sum():
        return Shown(title, "Not shown: summary.json names no classes.")
    order = np.argsort(-counts.sum(axis=1), kind="stable")[:MOST_LABELS]
    labels = [folder.classes[i] for i in order.tolist()]
    rows = []
    for i in order.tolist():
        total = int(counts[i].sum())
        found = percent(counts[i, i] / total) if total else ""
        rows.append([folder.classes[i], *(count(counts[i, j]) for j in order.tolist()), found])
    caption = (
        "A line for each actual label, a column for each prediction; at the end, how often it was right."
    )
    if len(order) < len(counts):
        caption += f" The {len(order)} most frequent of {plural(len(counts), 'label')}."
    return Shown(
        title, caption, table=Table(["actual", *labels, "right"], rows, [False] + [True] * (len(labels) + 1))
    )


def memory(folder: RunFolder, history: History) -> list[Shown]:
    """How many points are kept, and how much there was to learn."""
    most = folder.number("max_atoms")
    dimension, determinant = folder.number("effective_dimension"), folder.number("log_determinant")
    if history.size is None:
        shown = [Shown("Dictionary", "The trace has no column size: this learner keeps no dictionary, or was "
                       "written by an older version.")]  # fmt: skip
    else:
        caption = "How many points span the learned function. The cost of a row grows with its square."
        if history.leaders is not None:
            caption = "How many points span the functions of all experts together."
        picture = pictures.size(history.size, None if most is None else int(most))
        shown = [Shown("Dictionary", caption, picture)]
    if history.effective_dimension is None and history.log_determinant is None:
        caption = "The trace has no leverage, weight and inverse form: this learner does not compute them."
        shown.append(Shown("How much there was to learn", caption))
        return shown
    caption = (
        "The online effective dimension adds up how much of each row was not yet explained; it flattens when "
        "the stream holds nothing new. The log-determinant is the volume learned, and bounds it from above."
    )
    if history.leaders is not None:
        caption += " Both are the leading expert's."
    ends = [
        f"{name} {number(value)}"
        for name, value in (("effective dimension", dimension), ("log det", determinant))
        if value is not None
    ]
    caption += f" At the end: {', '.join(ends)}." if ends else ""
    picture = pictures.complexity(history.effective_dimension, history.log_determinant)
    shown.append(Shown("How much there was to learn", caption, picture))
    return shown


def events(folder: RunFolder) -> list[Shown]:
    """The time line of events, and the last of them in words."""
    known = []
    for entry in folder.entries("events"):
        row, size = as_number(entry.get("row")), as_number(entry.get("size"))
        often, last = as_number(entry.get("count")), as_number(entry.get("last"))
        if row is not None and last is not None:
            columns = entry.get("columns")
            of = ", ".join(map(as_text, columns)) if isinstance(columns, list) else ""
            told = as_text(entry.get("kind", "")), as_text(entry.get("severity", ""))
            known.append((row, last, *told, of, size, often, as_text(entry.get("time") or "")))
    if not known:
        return [Shown("Events", "None: nothing out of the ordinary was noticed.")]
    alarms = sum(event[3] == "alarm" for event in known)
    caption = (
        f"{plural(len(known), 'event')}, {plural(alarms, 'alarm')} among them, by the row they began at."
    )
    marks = [pictures.Mark(row, last, kind, severity == "alarm") for row, last, kind, severity, *_ in known]
    listed = sorted(known, key=lambda event: (event[3] != "alarm", -event[1]))[:MOST_BARS]
    rows = [
        [count(row), time, severity, kind, of, number(size, 3), count(often or 1)]
        for row, _, kind, severity, of, size, often, time in listed
    ]
    heads = ["row", "time", "severity", "what", "of", "size", "times"]
    numbers = [True, False, False, False, False, True, True]
    if not any(event[-1] for event in known):
        heads, numbers = [heads[0], *heads[2:]], [numbers[0], *numbers[2:]]
        rows = [[row[0], *row[2:]] for row in rows]
    table = Table(heads, rows, numbers)
    return [
        Shown("Time line", caption, pictures.time_line(marks, folder.rows)),
        Shown("Which", "Alarms first, the latest first.", table=table),
    ]


def _novelty(folder: RunFolder, history: History) -> list[Shown]:
    if history.novelty is None:
        missing = "Not measured: --learner embedded tells how new each row was, others do not."
        return [Shown("Novelty", missing)]
    caption = (
        "How far each row lay from what had been seen before it, as the kernel sees it: high where the "
        "stream goes somewhere new, near 0 where it repeats itself."
    )
    shown = [Shown("Novelty", caption, pictures.novelty(history.novelty, history.most_novel))]
    table = _listed(folder, history.most_novel, "novelty", "novelty")
    if table:
        start = history.novel_from
        caption = f"From row {count(start)} on, since at the start every row is new. " if start else ""
        caption += "By the line of the source, as in predictions.csv."
        shown.append(Shown("Most novel rows", caption, table=table))
    return shown


def _listed(folder: RunFolder, rows: list[dict[str, float]], by: str, name: str) -> Table | None:
    if not rows or (by == "loss" and folder.task == "classification"):
        return None
    targets, predictions = [row["target"] for row in rows], [row["prediction"] for row in rows]
    numeric = folder.task != "classification"
    labels = {float(code): label for code, label in enumerate(folder.classes)}
    both = [*targets, *predictions]
    shown = column(both) if numeric else [labels.get(code, "unknown") for code in both]
    amounts = column([row[by] for row in rows], 3)
    by_line = all(np.isfinite(row.get("line", np.nan)) for row in rows)
    place = "line" if by_line else "row"
    cells = [[count(row[place]), shown[i], shown[len(rows) + i], amounts[i]] for i, row in enumerate(rows)]
    table = Table([place, folder.target, "predicted", name], cells, [True, numeric, numeric, True])
    if folder.targets:  # it is of all of them, which stand among the cells
        cells = [[row[0], row[-1]] for row in cells]
        table = Table([place, name], cells, [True, True])
    known = folder.group("worst_cells")
    if by != "loss" or not by_line or not known:
        return table
    asked = folder.settings.get("id")
    for row, found in zip(rows, cells, strict=True):
        raw = known.get(str(int(row["line"])))
        raw = {as_text(key): as_text(value) for key, value in raw.items()} if isinstance(raw, dict) else {}
        if asked:
            found.insert(1, raw.pop(as_text(asked), ""))
        raw.pop(folder.target, None)
        found.append(_shortened(", ".join(f"{key} {value}" for key, value in raw.items())))
    heads, numbers = [*table.heads, "cells"], [*table.numbers, False]
    if reasons := folder.group("worst_reasons"):
        for row, found in zip(rows, cells, strict=True):
            told = reasons.get(str(int(row["line"])))
            pairs = told.items() if isinstance(told, dict) else ()
            found.append(_shortened(", ".join(f"{as_text(key)} {_signed(value)}" for key, value in pairs)))
        heads, numbers = [*heads, "because of"], [*numbers, False]
    if asked:
        heads.insert(1, as_text(asked))
        numbers.insert(1, False)
    return Table(heads, cells, numbers)


def _signed(value: Any) -> str:
    known = as_number(value)
    return "" if known is None else f"{'+' if known >= 0.0 else '-'}{number(abs(known), 2)}"


def _shortened(text: str) -> str:
    return text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 3]}..."


def _reliance(folder: RunFolder, history: History) -> list[Shown]:
    """Relevances and experts: only some learners have them."""
    shown = []
    relevances = folder.numbers("relevances")
    bars = _bars(relevances.items())
    if bars:
        caption = "How strongly each column moves the prediction, over its usual range; the largest is 1."
        if len(relevances) > len(bars):
            caption += f" The first {len(bars)} of {plural(len(relevances), 'column')}."
        shown.append(Shown("Columns that matter", caption, bars=bars))
    else:
        shown.append(
            Shown("Columns that matter", "Not known: relevances are learned by --learner auto only.")
        )
    experts = folder.entries("experts")
    names = [as_text(expert.get("name", f"expert {i}")) for i, expert in enumerate(experts)]
    if history.shares is not None:
        caption = (
            "Who had how much say, over time, and below who led: where the leader changes, the stream did."
        )
        if history.shares.what == "lead":
            caption = "Who led how often: the run is too short to show weights over time."
        picture = pictures.shares(history.shares, names, history.leaders)
        shown.append(Shown("Experts over time", caption, picture))
    shares = (as_number(expert.get("share")) for expert in experts)
    present = [(name, share) for name, share in zip(names, shares, strict=True) if share is not None]
    final = _bars([(name, share) for name, share in present if share != 0.0], parts=True)
    if final:
        gone = sum(share == 0.0 for _, share in present)
        caption = "Their weights in the prediction; a negative one takes back what others say too loudly."
        caption += f" {plural(gone, 'expert')} had been retired." if gone else ""
        shown.append(Shown("Experts at the end", caption, bars=final))
    if not experts and history.shares is None:
        shown.append(Shown("Experts", "None: --learner auto combines several, this learner is one."))
    return shown


def _bars(amounts: Iterable[tuple[str, float]], *, parts: bool = False) -> list[Bar]:
    known = sorted(amounts, key=lambda pair: -abs(pair[1]))
    largest = abs(known[0][1]) if known else 0.0
    if largest <= 0.0:
        return []
    return [
        Bar(name, percent(value) if parts else number(value / largest, 2), abs(value) / largest)
        for name, value in known[:MOST_BARS]
    ]
