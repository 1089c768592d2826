"""``kons report``: the page of a run that is finished, made again from its files."""

from __future__ import annotations

from pathlib import Path

from kons.cli.screen import Sheet, notices

__all__ = ["write"]


def write(folder: Path, *, quiet: bool) -> int:
    """Write report.html and say where it is."""
    from kons.report import write_report

    with notices(quiet=quiet):
        path = write_report(folder)
    if not quiet:
        Sheet().say(str(path), soft_wrap=True)
    return 0
