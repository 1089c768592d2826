"""``kons demo``: the main job, on an untidy table that is made on the spot."""

from __future__ import annotations

import contextlib
from pathlib import Path

from kons.cli import run
from kons.cli.files import require_place
from kons.cli.screen import Sheet
from kons.cli.theory_demo import as_typed
from kons.errors import as_word
from kons.files import write_file
from kons.runs import Settings
from kons.streams.untidy import untidy_table

__all__ = ["start"]

FOLDER = Path("kons-demo")


def start(rows: int, seed: int, out: Path | None, *, json: bool, quiet: bool) -> int:
    """Write a table, run the default learner along it, and say what to look at; returns the exit code."""
    folder = FOLDER if out is None else out
    table, place = folder / "rentals.csv", folder / "run"
    if out is not None:
        require_place("--out", table, force=False)
    with contextlib.suppress(FileExistsError):
        folder.mkdir(parents=True)
    write_file(table, lambda file: file.write(untidy_table(rows, seed).encode()))
    settings = Settings(str(table), "rentals", seed=seed)
    kons = as_typed("kons")
    if not (quiet or json):
        sheet = Sheet()
        sheet.say(
            (f"\n{table}", "bold"),
            f": {rows:,} hours of bicycle rentals, made up.\n"
            "Dates, text, prices with a sign, gaps, a column that is empty at first,\n"
            "and a drift two thirds of the way. What is run:\n",
        )
        sheet.command(f"{kons} run {as_word(table)} --target rentals --out {as_word(place)}")
    code = run.start(settings, place, force=out is None, json=json, quiet=quiet)
    if code == 0 and not (quiet or json):
        sheet = Sheet()
        if (page := place / "report.html").exists():
            sheet.say(("Look at it", "bold"), f"  open {as_word(page)} in a browser")
        sheet.say(("Your own", "bold"), "    the same command with your file and your column:")
        sheet.command(f"{kons} run FILE --target COLUMN --out FOLDER")
        sheet.say(("The paper", "bold"), "   exact KONS on a chaotic series, with what the theory is about:")
        sheet.command(f"{kons} demo --theory")
        sheet.say()
    return code
