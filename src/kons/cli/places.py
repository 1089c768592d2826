"""Where a command may put a file: looked at before anything is computed."""

from __future__ import annotations

import os
from pathlib import Path

from kons.errors import ConfigurationError

__all__ = ["require_place"]


def require_place(option: str, path: Path, *, force: bool) -> None:
    """Refuse what could not be written in the end, and a file that is already there unless told so."""
    if path.is_dir():
        raise ConfigurationError(f"{option} {path}: is a folder, expected the name of a file.")
    if os.path.lexists(path) and not force:
        raise ConfigurationError(f"{option} {path}: is already there; --force replaces it.")
    if not path.absolute().parent.is_dir():
        raise ConfigurationError(f"{option} {path}: there is no folder {path.parent}.")
