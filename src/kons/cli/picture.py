"""A picture on disk: whole or not at all, and never over a file that is already there unless told so."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any

from kons.cli import places
from kons.errors import ConfigurationError, MissingExtraError
from kons.files import write_file

__all__ = ["require_place", "save"]

SUFFIXES = (".svg", ".png", ".pdf")


def require_place(path: Path, *, force: bool) -> None:
    """Refuse, before anything is computed, what could not be saved in the end."""
    if path.suffix.lower() not in SUFFIXES:
        raise ConfigurationError(f"--picture {path}: the name must end in {', '.join(SUFFIXES)}.")
    places.require_place("--picture", path, force=force)
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise MissingExtraError("--picture", "plot") from None


def save(figure: Any, path: Path, *, force: bool) -> None:
    """Write a matplotlib figure; the file is there when it is whole, and the same for the same figure."""
    import matplotlib

    kind = path.suffix.lower()[1:]
    metadata = {} if kind == "png" else {"Date" if kind == "svg" else "CreationDate": None}

    def draw(stream: IO[bytes]) -> None:
        with matplotlib.rc_context({"svg.hashsalt": "kons"}):
            figure.savefig(stream, format=kind, dpi=150, metadata=metadata)
        require_place(path, force=force)  # somebody may have put a file there meanwhile

    write_file(path, draw)
