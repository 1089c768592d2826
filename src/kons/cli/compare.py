"""``kons compare``: several learners on the same rows, and which are worth their time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.text import Text

from kons.cli import picture
from kons.cli.outcome import listed
from kons.cli.run import print_json, with_report
from kons.cli.screen import RunBar, notices, plain_table, printer, safe
from kons.cli.stopping import Stopping
from kons.cli.values import assignments
from kons.errors import ConfigurationError, InputError
from kons.recipes import RECIPES
from kons.report.comparison import draw_frontier, read_entries
from kons.report.folder import RunFolder
from kons.report.numbers import count, number, plural
from kons.report.words import loss_texts
from kons.runs import Settings
from kons.runs import compare as compare_learners
from kons.runs.comparison import Contender
from kons.runs.folder import require_place
from kons.runs.settings import require_learner
from kons.streams import Stream

__all__ = ["DEFAULT", "contenders", "start"]

#: Who is compared where nobody is named.
DEFAULT = ("auto", "embedded")


def contenders(names: Sequence[str], shared: dict[str, Any]) -> dict[str, Contender]:
    """Learners as they are typed: ``embedded``, or ``embedded:max_atoms=50`` with parameters of its own.

    What is ``shared`` goes to those that take it; somebody must.

    >>> list(contenders(["kons", "embedded:max_atoms=50"], {"bandwidth": 2.0}).values())[1].parameters
    {'bandwidth': 2.0, 'max_atoms': 50}
    """
    if not names:
        raise ConfigurationError(f"--learners is missing: give some of {', '.join(RECIPES)}, as a,b,c.")
    found: dict[str, Contender] = {}
    used: set[str] = set()
    for typed in names:
        learner, *own = typed.split(":")
        require_learner(learner)
        common = {name: value for name, value in shared.items() if name in RECIPES[learner].accepts}
        used |= common.keys()
        if typed in found:
            raise ConfigurationError(f"--learners has {typed} twice.")
        found[typed] = Contender(learner, common | assignments(own, "--learners"))
    if unused := shared.keys() - used:
        raise ConfigurationError(f"--set {min(unused)}: none of the learners takes it.")
    return found


def start(
    settings: Settings,
    learners: dict[str, Contender],
    out: Path | None,
    *,
    drawn: Path | None,
    force: bool,
    json: bool,
    quiet: bool,
    command: Sequence[str] = (),
) -> int:
    """Compare, and say how it went; returns the exit code."""
    if out is not None:
        require_place(out, force=force)
    if drawn is not None:
        picture.require_place(drawn, force=force)
    with notices(quiet=quiet) as console, Stopping() as stopping:
        with RunBar(console, f"{len(learners)} learners", quiet=quiet, what="best loss") as bar:
            result = compare_learners(settings, learners, bar, stopping.asked, quiet=quiet)
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
            picture.save(made.figure, drawn, force=force)
    if json:
        print_json(summary)
    else:
        _print(known, result.stream, out, files, drawn)
    return stopping.exit_code if result.was_stopped else 0


def _print(
    known: RunFolder, stream: Stream, out: Path | None, files: Sequence[str], drawn: Path | None
) -> None:
    console = printer()
    summary = known.summary
    stopped = ", stopped before the end" if summary["stopped"] else ""
    heading = Text(safe(f"{stream.source}, predicting {known.target!r}", console), style="bold")
    columns = plural(len(stream.features), "column")
    told = f": {known.task}, {count(known.rows)} rows, {columns}{stopped}."
    console.print()
    console.print(heading.append(told, style="not bold"))
    console.print()
    entries = read_entries(known)
    table = plain_table()
    table.add_column("learner", overflow="fold")
    table.add_column(summary["loss_name"], justify="right", no_wrap=True)
    table.add_column("us/row", justify="right", no_wrap=True)
    table.add_column("atoms", justify="right", no_wrap=True)
    table.add_column("", style="dim", no_wrap=True)
    for entry, text in zip(entries, loss_texts(known, [entry.loss for entry in entries]), strict=True):
        trivial = entry.rank is None
        table.add_row(
            Text(safe(entry.name, console), style="dim" if trivial else "bold" if entry.on_frontier else ""),
            safe(text, console),
            "" if entry.cost is None else number(entry.cost),
            "" if entry.atoms is None else count(entry.atoms),
            "baseline" if trivial else "frontier" if entry.on_frontier else "",
        )
    console.print(table)
    console.print("\nfrontier: no other learner is both better and faster.", style="dim")
    if summary["notes"]:
        console.print(Text("\nNotes", style="bold"))
        console.print(listed(summary["notes"], console))
    if out is not None:
        console.print(safe(f"\nSaved in {out}: {', '.join(files)}.", console))
    if drawn is not None:
        console.print(safe(f"\nPicture: {drawn}", console))
    console.print()
