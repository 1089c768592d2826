"""One page about a run, from the files it left behind: nothing is learned again, nothing is fetched.

::

    folder             what is in the files, checked
    thinning           curves of any length, as a few hundred points that keep every spike
    history            one pass over the trace: all that the page draws or lists
    numbers            rounded to what they mean
    words              the headline, what to try, what is worth knowing
    proof              why there is no certificate, and the command that gives one
    pictures, drawing  by matplotlib, in the colours of the page
    run, comparison    the sections of the two kinds of page
    page, templates/   everything put together, with settings, source and versions (jinja2)

The same folder gives the same bytes: no clock, no chance, no machine.
"""

from __future__ import annotations

from pathlib import Path

from kons.files import write_bytes

__all__ = ["REPORT", "render", "write_report"]

REPORT = "report.html"


def render(folder: Path | str) -> str:
    """The report of a run folder, or of a folder of ``kons compare``, as one self-contained HTML page.

    Costs one pass over the trace in constant memory, and about a second for the pictures. Needs the
    ``report`` extra (jinja2 and matplotlib).
    """
    from kons.report.page import page

    return page(Path(folder))


def write_report(folder: Path | str) -> Path:
    """Write :func:`render` as ``report.html`` into the folder, whole or not at all; returns its path."""
    from kons.runs.folder import require_own

    path, page = Path(folder) / REPORT, render(folder)
    require_own(Path(folder))
    write_bytes(path, page.encode())
    return path
