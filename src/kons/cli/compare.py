"""``kons compare``: several learners on the same rows, and which are worth their time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kons.arrays import require_number
from kons.cli.files import require_picture, save_picture
from kons.cli.run import with_report
from kons.cli.screen import RunBar, Sheet, notices, print_json
from kons.cli.stopping import Stopping
from kons.cli.values import assignments
from kons.errors import ConfigurationError, InputError
from kons.recipes import RECIPES
from kons.report.comparison import draw_frontier, read_entries
from kons.report.folder import RunFolder
from kons.report.numbers import columns_of, count, number, plural
from kons.report.words import loss_name, loss_texts
from kons.runs import Settings
from kons.runs import compare as compare_learners
from kons.runs.comparison import Contender
from kons.runs.folder import require_place
from kons.runs.settings import require_learner
from kons.runs.waiting import Waiting
from kons.streams import Stream

__all__ = ["DEFAULT", "contenders", "seconds_for", "start"]

#: Who is compared where nobody is named.
DEFAULT = ("auto", "embedded")
#: The name that stands for all learners, and the seconds that each of them may take.
ALL, SECONDS = "all", 60.0


def contenders(names: Sequence[str], shared: dict[str, Any]) -> dict[str, Contender]:
    """Learners as they are typed: ``embedded``, or ``embedded:max_atoms=50`` with parameters of its own.

    ``all`` is every learner of the registry. What is ``shared`` goes to those that take it; somebody must.

    >>> list(contenders(["kons", "embedded:max_atoms=50"], {"bandwidth": 2.0}).values())[1].parameters
    {'bandwidth': 2.0, 'max_atoms': 50}
    """
    if not names:
        raise ConfigurationError(f"--learners is missing: give some of {', '.join(RECIPES)}, as a,b,c.")
    found: dict[str, Contender] = {}
    used: set[str] = set()
    for typed in [name for each in names for name in (RECIPES if each == ALL else [each])]:
        learner, *own = typed.split(":")
        require_learner(learner, rivals=True)
        takes = RECIPES[learner].accepts if learner in RECIPES else ()
        common = {name: value for name, value in shared.items() if name in takes}
        used |= common.keys()
        if typed in found:
            raise ConfigurationError(f"--learners has {typed} twice.")
        found[typed] = Contender(learner, common | assignments(own, "--learners"))
    if unused := shared.keys() - used:
        raise ConfigurationError(f"--set {min(unused)}: none of the learners takes it.")
    return found


def seconds_for(names: Sequence[str] | None, seconds: float | None) -> float | None:
    """What each learner may take; None: no limit.

    >>> seconds_for(["all"], None), seconds_for(["embedded"], None)
    (60.0, None)
    """
    if seconds is not None:
        return require_number(seconds, "--seconds", above=0.0)
    return SECONDS if names is not None and ALL in names else None


def start(
    settings: Settings,
    learners: dict[str, Contender],
    out: Path | None,
    *,
    drawn: Path | None,
    seconds: float | None = None,
    force: bool,
    json: bool,
    quiet: bool,
    command: Sequence[str] = (),
) -> int:
    """Compare, and say how it went; returns the exit code."""
    if out is not None:
        require_place(out, force=force, source=settings.source)
    if drawn is not None:
        require_picture(drawn, force=force)
    waiting = Waiting()
    with notices(quiet=quiet) as console, Stopping() as stopping:
        stopping.is_idle = lambda: waiting.now
        with RunBar(console, f"{len(learners)} learners", quiet=quiet, what="best loss") as bar:
            result = compare_learners(
                settings, learners, bar, stopping.asked, seconds=seconds, quiet=quiet, waiting=waiting
            )
        files: list[str] = []
        if out is not None:
            result.write(out, force=force, command=["kons", *command])
            files = ["summary.json", *with_report(out)]
        summary = result.summary()
        known = RunFolder(Path(), {}, summary)
        if drawn is not None:
            made = draw_frontier(known)
            if made is None:
                raise InputError("--picture: no learner has a finite loss, so there is nothing to draw.")
            save_picture(made.figure, drawn, force=force)
    if json:
        print_json(summary)
    else:
        _print(known, result.stream, out, files, drawn)
    return stopping.exit_code if result.was_stopped else 0


def _print(
    known: RunFolder, stream: Stream, out: Path | None, files: Sequence[str], drawn: Path | None
) -> None:
    sheet, entries = Sheet(), read_entries(known)
    stopped = ", stopped before the end" if known.summary["stopped"] else ""
    columns = columns_of(len(stream.columns), len(stream.features))
    told = f"{known.task}, {plural(known.rows, 'row')}, {columns}{stopped}"
    sheet.title(f"{stream.source}, predicting {known.target!r}", told)
    losses = loss_texts(known, [entry.loss for entry in entries])
    quarters = loss_texts(known, [entry.last_quarter for entry in entries])
    paused = any(entry.pause is not None for entry in entries)
    rows = [
        (
            (entry.name, "dim" if entry.rank is None else "bold" if entry.on_frontier else ""),
            text,
            "" if entry.last_quarter is None else quarter,
            "" if entry.cost is None else number(entry.cost),
            *(["" if entry.pause is None else number(1e3 * entry.pause)] if paused else []),
            "" if entry.atoms is None else count(entry.atoms),
            "baseline" if entry.rank is None else "frontier" if entry.on_frontier else "",
        )
        for entry, text, quarter in zip(entries, losses, quarters, strict=True)
    ]
    longest = ("max ms",) if paused else ()
    heads = ("learner", loss_name(known), "last 1/4", "us/row", *longest, "atoms")
    sheet.table("t" + "v" * (len(heads) - 1) + "d", rows, heads)
    sheet.say(("\nlast 1/4: the loss of the last quarter of the rows. Times are CPU times.", "dim"))
    if paused:
        sheet.say(("max ms: the longest step, one row predicted and one learned.", "dim"))
    sheet.say(("frontier: no other learner is both better and faster.", "dim"))
    sheet.notes(known.texts("notes"))
    if out is not None:
        sheet.say(f"\nSaved in {out}: {', '.join(files)}.")
    if drawn is not None:
        sheet.say(f"\nPicture: {drawn}")
    sheet.say()
