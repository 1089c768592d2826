"""A saved model from the command line: the file itself, or the folder of the run that made it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kons.errors import FileError, as_word
from kons.files import about, load
from kons.runs.folder import MODEL

__all__ = ["find", "opened"]


def find(path: Path) -> Path:
    """The file of a model; a run's folder has it as ``model.kons``."""
    if not path.is_dir():
        return path
    if (path / MODEL).is_file():
        return path / MODEL
    unfinished = (path / "checkpoint.kons").is_file()
    hint = (
        f"finish its run first (kons resume {as_word(path)})"
        if unfinished
        else "expected the file of a model"
    )
    raise FileError(f"{path} is a folder without {MODEL}: {hint}.")


def opened(path: Path) -> tuple[Any, dict[str, Any]]:
    """The model, and what was told about it when it was saved."""
    path = find(path)
    return load(path), about(path)
