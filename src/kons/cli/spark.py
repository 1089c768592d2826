"""``kons run --engine spark``: a learner for each key of many files, on many machines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kons.cli import perhaps_unread
from kons.cli.screen import Sheet, notices, print_json
from kons.report.folder import RunFolder
from kons.report.numbers import count, duration, number, percent, plural
from kons.report.run import worst_keys
from kons.runs import Settings, on_spark
from kons.runs.on_spark import Machines, is_on_spark

__all__ = ["Machines", "is_on_spark", "resume", "start"]


def start(
    settings: Settings,
    machines: Machines,
    out: Path | None,
    *,
    force: bool,
    json: bool,
    quiet: bool,
    command: Sequence[str] = (),
) -> int:
    """A new run; returns the exit code."""
    with notices(quiet=quiet):
        summary = on_spark.start(settings, machines, out, force=force, command=["kons", *command])
    assert out is not None  # else it was refused
    return _told(summary, out, json=json)


def resume(folder: Path, *, json: bool, quiet: bool) -> int:
    """The run in a folder, with what has come since; returns the exit code."""
    with notices(quiet=quiet):
        summary = on_spark.resume(folder)
    return _told(summary, folder, json=json)


def _told(summary: dict[str, Any], folder: Path, *, json: bool) -> int:
    with perhaps_unread():
        if json:
            print_json(summary)
        else:
            _print(summary, folder)
    return 0


def _print(summary: dict[str, Any], folder: Path) -> None:
    sheet, known = Sheet(), RunFolder(folder, {}, summary)
    told = [summary["task"], plural(summary["rows"], "row"), plural(summary["keys"]["count"], "key")]
    sheet.title(f"{summary['settings']['source']}, predicting {known.target!r}, on Spark", ", ".join(told))
    shown = percent if summary["task"] == "classification" else number
    sheet.say(f"Learned from {plural(summary['learned'], 'row')}; {summary['loss_name']} "
              f"{shown(summary['loss'])}, each row predicted before it was learned.")  # fmt: skip
    sheet.say()
    worst = worst_keys(known)
    sheet.table("nvvv", worst.rows, worst.heads, indent=2)
    if summary["skipped"]:
        sheet.say()
        rows = [(reason, count(rows)) for reason, rows in summary["skipped"].items()]
        sheet.table("tv", rows, ["not learned", "rows"], indent=2)
    speed = count(round(summary["rows"] / summary["seconds"]))
    sheet.say(f"\n{duration(summary['seconds'])}, {speed} rows/s, Spark's start included.")
    sheet.say(f"Saved in {folder}: {', '.join(summary['files'])}.")
    sheet.say()
