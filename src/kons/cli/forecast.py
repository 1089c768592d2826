"""``kons run --horizon`` and the path beyond the last row, ``kons predict --continue``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from kons.arrays import require_number
from kons.cli import fail, options
from kons.cli.files import find_model, open_model, require_place
from kons.cli.run import with_report
from kons.cli.screen import RunBar, Sheet, notices, print_json
from kons.cli.stopping import Stopping
from kons.errors import ConfigurationError, announce
from kons.files import write_file
from kons.report.folder import RunFolder
from kons.report.forecast import by_horizon, headline
from kons.report.numbers import duration, number, plural
from kons.report.words import left_out, plain
from kons.runs.folder import require_place as require_folder
from kons.runs.forecast import Asked, ForecastRun, ahead_columns, is_forecast, is_forecaster, rows_ahead
from kons.runs.lines import as_table
from kons.runs.run import Stopped
from kons.runs.settings import Settings

__all__ = ["is_forecast", "is_forecaster", "resume", "start", "write"]

FILES = ("predictions.csv", "summary.json", "model.kons")


def start(
    settings: Settings,
    asked: options.Forecasting,
    out: Path | None,
    *,
    force: bool,
    json: bool,
    quiet: bool,
    command: Sequence[str] = (),
) -> int:
    """Forecast along a file; returns the exit code."""
    if out is not None:
        require_folder(out, force=force, source=settings.source)
    told = None
    if settings.model is None:
        told = Asked(str(asked.horizon), tuple(asked.known_ahead or ()), _seasons(asked.season))
    elif asked != options.Forecasting():
        raise ConfigurationError(
            "--model has its own horizon: leave out --horizon, --known-ahead and --season."
        )
    with notices(quiet=quiet) as console, Stopping() as stopping:
        command = ["kons", *command]
        run = ForecastRun.start(settings, told, out, force=force, command=command, quiet=quiet)
        return _go(run, console, stopping, json=json, quiet=quiet)


def resume(folder: Path, *, json: bool, quiet: bool) -> int:
    """The forecast in a folder, from its last checkpoint on; returns the exit code."""
    with notices(quiet=quiet) as console, Stopping() as stopping:
        run = ForecastRun.resume(folder)
        announce(f"continuing after {run.rows:,} rows.")
        return _go(run, console, stopping, json=json, quiet=quiet)


def _go(run: ForecastRun, console: Console, stopping: Stopping, *, json: bool, quiet: bool) -> int:
    try:
        with RunBar(console, Path(run.stream.source).name, quiet=quiet) as bar:
            found = run.go(bar, stopping.asked)
    except Stopped as stopped:
        return fail(str(stopped), stopping.exit_code)
    out = None if run.folder is None else run.folder.path
    files = [*FILES, *with_report(out)] if out is not None else []
    if json:
        print_json(found.summary)
    else:
        _print(found.summary, found.stream.source, out, files)
    return stopping.exit_code if found.was_stopped else 0


def write(
    model: Path,
    source: str | None,
    out: Path | None,
    *,
    id: str | None,
    recent: bool,
    reading: dict[str, Any],
    force: bool,
    quiet: bool,
    level: float | None = None,
) -> int:
    """The path beyond the last row as CSV; ``source`` has the columns known ahead, if there are any."""
    if not recent:
        raise ConfigurationError(
            f"{model} forecasts from its last row on: kons predict MODEL --continue; rows that came since "
            "are learned by kons run --model."
        )
    if id is not None:
        raise ConfigurationError("--id is not for a forecast: its lines are named by their time.")
    if out is not None:
        require_place("--out", out, force=force)
    if level is not None:
        require_number(level, "--level", above=0.0, below=1.0)
    with notices(quiet=quiet):
        thing, told = open_model(find_model(model))
        ahead = rows_ahead(thing, told.get("plan"), source, reading, level)
        table = as_table(ahead_columns(thing, ahead), header=True)
        if out is None:
            sys.stdout.buffer.write(table)
        else:
            write_file(out, lambda file: file.write(table))
    return 0


def _seasons(texts: Sequence[str] | None) -> tuple[int, ...] | None:
    try:
        return None if texts is None else tuple(int(text) for text in texts)
    except ValueError:
        raise ConfigurationError(
            f"--season is {','.join(texts or ())!r}, expected whole numbers of rows."
        ) from None


def _print(summary: dict[str, Any], source: str, out: Path | None, files: Sequence[str]) -> None:
    sheet, known = Sheet(), RunFolder(Path(), {}, summary)
    steps = (
        f"{summary['steps']} steps of {summary['step']}"
        if summary["step"]
        else plural(summary["steps"], "row")
    )
    sheet.title(f"{source}, forecasting {known.target!r}", f"{plural(summary['rows'], 'row')}, {steps} ahead")
    sheet.say(plain(headline(known)))
    sheet.say()
    table = by_horizon(known, most=8)
    sheet.table("n" + "v" * (len(table.heads) - 1), table.rows, table.heads, indent=2)
    cost = number(summary["microseconds_per_row"], 2)
    sheet.say(f"\n  {duration(summary['seconds'])}; {cost} us a row, all horizons together")
    sheet.notes([*map(plain, left_out(known)), *known.texts("notes")])
    if out is not None:
        sheet.say(f"\nSaved in {out}: {', '.join(files)}. The next steps: kons predict {out} --continue")
    sheet.say()
