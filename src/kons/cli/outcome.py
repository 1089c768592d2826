"""The outcome of a run for people: one sentence, the learner beside the baselines, what is worth knowing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kons.cli.screen import Cell, Sheet
from kons.learners.events import Event
from kons.report.folder import RunFolder
from kons.report.history import History
from kons.report.novelty import headline as of_novelty
from kons.report.novelty import most_novel
from kons.report.numbers import columns_of, count, duration, number, percent, plural
from kons.report.run import beside, each_target, worst_keys
from kons.report.words import Command, headline, meaning, plain, remark, suggestions, worth_knowing
from kons.streams.wording import listed

__all__ = ["print_outcome"]

MOST_LABELS = 8
MOST_RELEVANT = 3
SHOWN_LETTERS = 58  # of the cells of a row
MOST_EVENTS = 10
#: Of a column: bad cells beyond this share are said before anything else.
MANY_BAD = 0.05


def print_outcome(summary: dict[str, Any], source: str, folder: Path | None, files: Sequence[str]) -> None:
    """The summary of a run on standard output; fits 80 columns."""
    sheet = Sheet()
    known = RunFolder(Path(), {}, summary)
    if "novelty" in summary:
        _print_novelty(sheet, known, source)
        _say_where(sheet, folder, files)
        return
    told = [summary["task"], plural(summary["rows"], "row"), _columns(summary)]
    told += [f"targets {count(summary['delay'])} rows late"] if summary["delay"] else []
    told += ["stopped before the end"] if summary["stopped"] else []
    sheet.title(f"{source}, predicting {known.target!r}", ", ".join(told))
    _say_bad(sheet, summary)
    sheet.say(f"{plain(headline(known))} {remark(known)}".rstrip())
    sheet.say()
    losses = beside(known, summary["learner"])
    rows: list[list[Cell]] = [
        [(cell, "bold" if row[0].endswith("(this run)") else "") for cell in row] for row in losses.rows
    ]
    sheet.table("n" + "v" * (len(losses.heads) - 1), rows, losses.heads, indent=2)
    sheet.say()
    span = min(summary["window"], summary["rows"])
    late = summary["rows"] > span and not known.targets
    heads = ("", "all rows", f"last {span:,}", "") if late else ()
    if known.targets:
        each = each_target(known)
        sheet.table("nvvvvv", each.rows, each.heads, indent=2)
        sheet.say()
    if summary.get("keys"):
        worst = worst_keys(known)
        sheet.table("nvvv", worst.rows, worst.heads, indent=2)
        sheet.say()
    metrics = () if known.targets else _metrics(known, late=late)
    sheet.table("nvvd", (*metrics, *_facts(summary)), heads, indent=2)
    history = History(summary["rows"], summary["window"])
    sheet.notes([plain(note) for note in worth_knowing(known, history)])
    if tried := suggestions(known):
        sheet.say(("\nWhat to try", "bold"))
        for sentence in tried:
            sheet.listed(["".join(part for part in sentence if not isinstance(part, Command))])
            for part in sentence:
                if isinstance(part, Command):
                    sheet.command(part)
    _say_where(sheet, folder, files)


def _say_bad(sheet: Sheet, summary: dict[str, Any]) -> None:
    """Columns of which much cannot be read."""
    for bad in summary["bad_cells"]:
        if bad["share"] > MANY_BAD:
            sheet.say(
                (f"{percent(bad['share'])} of {bad['column']!r} cannot be read", "bold"),
                f" and count as gaps: {'; '.join(bad['examples'])}. Is it of another kind "
                "(--categorical, --numeric), or does a text mean a gap (--na-values)?\n",
            )


def _columns(summary: dict[str, Any]) -> str:
    features = summary["features"]
    return columns_of(len(summary.get("columns", features)), len(features))


def _say_where(sheet: Sheet, folder: Path | None, files: Sequence[str]) -> None:
    if folder is not None:
        sheet.say(f"\nSaved in {folder}: {', '.join(files)}.")
    sheet.say()


def _print_novelty(sheet: Sheet, known: RunFolder, source: str) -> None:
    """Of a run without a target: the most novel rows, and the events."""
    summary = known.summary
    told = [plural(summary["rows"], "row"), _columns(summary)]
    told += ["stopped before the end"] if summary["stopped"] else []
    sheet.title(f"{source}, how new its rows are", ", ".join(told))
    _say_bad(sheet, summary)
    sheet.say(plain(of_novelty(known)))
    sheet.say()
    if (rows := most_novel(known, SHOWN_LETTERS)).rows:
        sheet.table("vvt", rows.rows, rows.heads, indent=2)
        sheet.say()
    noticed = [Event(**event) for event in summary["events"]]
    last = [(str(event), f"{event.time or ''}") for event in noticed[-MOST_EVENTS:]]
    if last:
        earlier = len(noticed) - len(last)
        sheet.table(
            "nd", last, [f"events{f', the last of {count(len(noticed))}' if earlier else ''}", ""], indent=2
        )
        sheet.say()
    sheet.table("nvvd", _facts(summary), indent=2)
    sheet.notes([plain(note) for note in worth_knowing(known, History(summary["rows"], 1))])


def _metrics(known: RunFolder, *, late: bool) -> Iterator[tuple[str, str, str, str]]:
    """Along the stream, whatever the headline is."""
    summary = known.summary
    for name, value in summary["online"]["metrics"].items():
        shown = percent if name == "error_rate" else number
        last = summary["windowed"].get(name)
        yield name.replace("_", " "), shown(value), shown(last) if late else "", meaning(known, name)


def _facts(summary: dict[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    if parameters := summary["settings"]["parameters"]:
        yield "set", "", "", ", ".join(f"{name}={value}" for name, value in parameters.items())
    if summary.get("coverage") is not None:
        meaning = f"of the targets lay inside their {percent(summary['interval_level'])} interval"
        yield "coverage", percent(summary["coverage"]), "", meaning
    limit = f", at most {count(summary['max_atoms'])}" if summary["max_atoms"] else ""
    whose = ", by all experts together" if summary.get("experts") else ""
    yield "atoms", count(summary["atoms"]), "", f"points kept{limit}{whose}"
    if summary.get("experts"):
        there = {expert["name"]: expert["share"] for expert in summary["experts"] if expert["share"]}
        leads = max(there, key=lambda name: there[name] or 0.0, default="none")
        yield "experts", "", "", f"led by {leads}"
    if summary.get("relevances"):
        yield "relevance", "", "", _most_relevant(summary["relevances"])
    speed = round(summary["rows"] / summary["seconds"]) if summary["seconds"] else 0
    cost = number(summary["microseconds_per_row"], 2)
    whole = f"{duration(summary['seconds'])}, {count(speed)} rows/s"
    yield "time", "", "", f"{whole}; the learner alone {cost} us/row"
    if summary.get("classes") is not None:
        yield "classes", count(len(summary["classes"])), "", listed(summary["classes"], MOST_LABELS)


def _most_relevant(relevances: dict[str, float | None]) -> str:
    known = sorted(((value, name) for name, value in relevances.items() if value is not None), reverse=True)
    shown = [f"{name} {number(value, 2)}" for value, name in known[:MOST_RELEVANT]]
    return ", ".join(shown) + (" ..." if len(known) > MOST_RELEVANT else "")
