"""A picture on disk: whole or not at all, and never over a file that is already there unless told so."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from kons.errors import ConfigurationError, InputError, MissingExtraError

__all__ = ["require_place", "save"]

SUFFIXES = (".svg", ".png", ".pdf")


def require_place(path: Path, *, force: bool) -> None:
    """Refuse, before anything is computed, what could not be saved in the end."""
    if path.suffix.lower() not in SUFFIXES:
        raise ConfigurationError(f"--picture {path}: the name must end in {', '.join(SUFFIXES)}.")
    if not path.parent.is_dir():
        raise ConfigurationError(f"--picture {path}: there is no folder {path.parent}.")
    if path.is_dir():
        raise ConfigurationError(f"--picture {path}: is a folder.")
    if os.path.lexists(path) and not force:
        raise ConfigurationError(f"--picture {path}: is already there; --force replaces it.")
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise MissingExtraError("--picture", "plot") from None


def save(plot: Callable[[Any], Any], path: Path, *, force: bool) -> None:
    """Let ``plot`` draw on axes: into a temporary file beside the place, moved there when it is whole."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("xb") as file:
            _draw(plot, file, path.suffix.lower()[1:])
            file.flush()
            os.fsync(file.fileno())
        require_place(path, force=force)  # somebody may have put a file there meanwhile
        os.replace(temporary, path)
    except OSError as error:
        raise InputError(f"--picture {path}: cannot be written ({error.strerror or error}).") from None
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _draw(plot: Callable[[Any], Any], file: Any, kind: str) -> None:
    # A figure of its own, not pyplot's: no window system is asked for.
    import matplotlib
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.2), layout="constrained")
    plot(figure.subplots())
    with matplotlib.rc_context({"svg.hashsalt": "kons"}):
        metadata = {} if kind == "png" else {"Date" if kind == "svg" else "CreationDate": None}
        figure.savefig(file, format=kind, dpi=150, metadata=metadata)
