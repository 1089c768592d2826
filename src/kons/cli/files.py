"""Files that commands write, whole or not at all and over no other unless told so; and models they read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, Any

from kons.errors import ConfigurationError, FileError, MissingExtraError, as_word
from kons.files import about, load, write_file
from kons.runs.folder import MODEL

__all__ = ["find_model", "open_model", "require_picture", "require_place", "save_picture"]

SUFFIXES = (".svg", ".png", ".pdf")


def require_place(option: str, path: Path, *, force: bool) -> None:
    """Refuse, before anything is computed, what could not be written, or a file that is there."""
    if path.is_dir():
        raise ConfigurationError(f"{option} {path}: is a folder, expected the name of a file.")
    if os.path.lexists(path) and not force:
        raise ConfigurationError(f"{option} {path}: is already there; --force replaces it.")
    if not path.absolute().parent.is_dir():
        raise ConfigurationError(f"{option} {path}: there is no folder {path.parent}.")


def require_picture(path: Path, *, force: bool) -> None:
    """The same for a picture, which also needs a name that says its kind, and matplotlib."""
    if path.suffix.lower() not in SUFFIXES:
        raise ConfigurationError(f"--picture {path}: the name must end in {', '.join(SUFFIXES)}.")
    require_place("--picture", path, force=force)
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise MissingExtraError("--picture", "plot") from None


def save_picture(figure: Any, path: Path, *, force: bool) -> None:
    """Write a matplotlib figure: the same bytes for the same figure."""
    import matplotlib

    kind = path.suffix.lower()[1:]
    metadata = {} if kind == "png" else {"Date" if kind == "svg" else "CreationDate": None}

    def draw(stream: IO[bytes]) -> None:
        with matplotlib.rc_context({"svg.hashsalt": "kons"}):
            figure.savefig(stream, format=kind, dpi=150, metadata=metadata)
        require_picture(path, force=force)  # somebody may have put a file there meanwhile

    write_file(path, draw)


def find_model(path: Path) -> Path:
    """The file of a model; a run's folder has it as ``model.kons``."""
    if not path.is_dir():
        return path
    if (path / MODEL).is_file():
        return path / MODEL
    hint = "expected the file of a model"
    if (path / "checkpoint.kons").is_file():
        hint = f"finish its run first (kons resume {as_word(path)})"
    raise FileError(f"{path} is a folder without {MODEL}: {hint}.")


def open_model(path: Path) -> tuple[Any, dict[str, Any]]:
    """The model, and what was told about it when it was saved."""
    path = find_model(path)
    return load(path), about(path)
