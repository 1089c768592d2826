"""``kons run``, ``resume`` and ``report``: a learner along a person's file, a summary and a page."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from rich.console import Console

from kons.cli import NOTICED, fail, perhaps_unread
from kons.cli.outcome import print_outcome
from kons.cli.screen import RunBar, Sheet, notices, print_json
from kons.cli.stopping import Stopping
from kons.errors import KonsError, MissingExtraError, announce, as_word
from kons.learners.events import Event
from kons.runs import Run, Settings, Stopped
from kons.runs.folder import changed, require_finished
from kons.runs.run import failures_in

__all__ = ["report", "resume", "start", "with_report"]

#: Events that are named where a run fails on them.
MOST_TOLD = 3
FILES = ("predictions.csv", "summary.json", "model.kons", "trace/")


def start(
    settings: Settings,
    out: Path | None,
    *,
    force: bool,
    json: bool,
    quiet: bool,
    command: Sequence[str] = (),
) -> int:
    """A new run; returns the exit code."""
    with notices(quiet=quiet) as console, Stopping() as stopping:
        run = Run.start(settings, out, force=force, command=["kons", *command], quiet=quiet)
        return _go(run, console, stopping, json=json, quiet=quiet)


def resume(folder: Path, *, json: bool, quiet: bool) -> int:
    """The run in a folder, from its last checkpoint on; returns the exit code."""
    with notices(quiet=quiet) as console, Stopping() as stopping:
        if (summary := require_finished(folder)) is not None:
            return _finished(folder, summary, json=json)
        run = Run.resume(folder)
        announce(f"continuing after {run.engine.rows:,} rows.")
        return _go(run, console, stopping, json=json, quiet=quiet)


def _finished(folder: Path, summary: dict[str, Any], *, json: bool) -> int:
    """Nothing is left to do but what a kill at the very end may have left."""
    from kons.report import REPORT

    files = [name for name in FILES if (folder / name).exists()]
    announce(f"the run in {folder} is finished.")
    files += [REPORT] if (folder / REPORT).exists() else with_report(folder)
    with perhaps_unread():
        if json:
            print_json(summary)
        else:
            asked = summary.get("settings")
            source = asked.get("source", folder) if isinstance(asked, dict) else folder
            name = "standard input" if source == "-" else str(source)
            try:
                print_outcome(summary, name, folder, files)
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
                raise changed(folder) from None
    return _told_of(failures_in(summary))


def _go(run: Run, console: Console, stopping: Stopping, *, json: bool, quiet: bool) -> int:
    stopping.is_idle = lambda: run.waiting.now
    name = Path(run.stream.source).name
    try:
        what = "error rate" if run.stream.task == "classification" else "loss"
        what = what if run.novelties is None else "median novelty"
        with RunBar(console, name, quiet=quiet, what=what) as bar:
            summary = run.go(bar, stopping.asked)
    except Stopped as stopped:
        return fail(str(stopped), stopping.exit_code)
    except KeyboardInterrupt:
        return fail(_at_once(run), stopping.exit_code)
    folder = None if run.folder is None else run.folder.path
    files = list(FILES)
    if folder is not None:
        files += with_report(folder)
    with nullcontext() if folder is None else perhaps_unread():
        if json:
            print_json(summary)
        else:
            print_outcome(summary, run.stream.source, folder, files)
    return _told_of(run.failures) or (stopping.exit_code if run.was_stopped else 0)


def _told_of(failures: Sequence[Event]) -> int:
    """Name the events that a run fails on; the exit code, 0 where there are none."""
    if not failures:
        return 0
    told, more = "; ".join(map(str, failures[:MOST_TOLD])), len(failures) - MOST_TOLD
    return fail(f"{told}{f'; and {more} more' if more > 0 else ''}.", NOTICED)


def _at_once(run: Run) -> str:
    if run.folder is None or not run.stream.resumable:
        return "stopped."
    return f"stopped at once. Continue with: kons resume {as_word(run.folder.path)}"


def report(folder: Path, *, quiet: bool) -> int:
    """Write report.html of a folder again and say where it is; returns the exit code."""
    from kons.report import write_report

    with notices(quiet=quiet):
        path = write_report(folder)
    if not quiet:
        Sheet().say(str(path), soft_wrap=True)
    return 0


def with_report(folder: Path) -> list[str]:
    """Write report.html; if it cannot be, say why. A run is not worth less without it."""
    from kons.report import REPORT, write_report

    try:
        write_report(folder)
    except MissingExtraError as error:
        announce(f"no {REPORT}: {error}, then: kons report {as_word(folder)}")
        return []
    except KonsError as error:
        announce(f"no {REPORT}: {error}")
        return []
    return [REPORT]
