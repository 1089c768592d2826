"""The last steps of a run, and what becomes of one that was killed between them."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any

from kons.files import write_file
from kons.runs.folder import CHECKPOINT, PREDICTIONS, RUN, SUMMARY, read_json, told
from kons.runs.lines import completed

__all__ = ["complete_predictions", "require_finished"]


def complete_predictions(folder: Path, summary: dict[str, Any]) -> None:
    """Give all lines of the predictions a column for each class: some may have come after the first block.

    After the summary, and never before: a checkpoint knows the length of the file as it was written.
    """
    classes, path = summary.get("classes"), folder / PREDICTIONS
    if not classes or not path.exists():
        return
    with told(path), path.open("rb") as file:
        head = file.readline()
        file.seek(0)
        if next(iter(completed([head], classes))) == head:
            return

        def write(out: IO[bytes]) -> None:
            out.writelines(completed(file, classes))

        write_file(path, write)


def require_finished(folder: Path) -> dict[str, Any] | None:
    """The summary of a run that is finished; what a kill kept it from writing is written. Else None."""
    if not (folder / SUMMARY).exists() or (folder / CHECKPOINT).exists():
        return None
    if read_json(folder, RUN).get("kind") != "run":
        return None
    summary = read_json(folder, SUMMARY)
    complete_predictions(folder, summary)
    return summary
