"""Everything kons can complain about.

::

    KonsError
    ├── InputError (ValueError)            the data handed in
    │   ├── TargetError                    a target the loss or the bound cannot take
    │   └── MissingValueError              NaN, where values that are not known are not taken
    ├── ConfigurationError (ValueError)    a parameter, or two that do not fit together
    ├── NumericalError (ArithmeticError)   a kernel or loss that breaks its own contract
    ├── FileError (ValueError)             a saved file or state that cannot be written or trusted
    └── MissingExtraError (ImportError)    an optional dependency that is not installed

    KonsWarning (UserWarning)              a notice, told once per kind

Every error is raised before the learner changes, or after it was put back: a learner that raised
is exactly the learner it was. Messages say what was seen, what was expected and what to do.
"""

from __future__ import annotations

import logging
import os
import shlex
import subprocess
import warnings
from os import PathLike

__all__ = [
    "ConfigurationError",
    "FileError",
    "InputError",
    "KonsError",
    "KonsWarning",
    "MissingExtraError",
    "MissingValueError",
    "NumericalError",
    "TargetError",
    "announce",
    "notice",
]

logger: logging.Logger = logging.getLogger("kons")

told: set[str] = set()
"""The kinds of notices this process has given. Emptied, all are given again: in a long-lived server, say."""


class KonsError(Exception):
    """The root of the tree: ``except KonsError`` catches all that kons raises on purpose."""


class InputError(KonsError, ValueError):
    """The data cannot be learned from as it stands: shape, type, NaN, infinity, emptiness."""


class TargetError(InputError):
    """A target outside what the loss, or its bound, can take."""


class MissingValueError(InputError):
    """NaN among the features, for a learner or a way in that does not take it."""


class ConfigurationError(KonsError, ValueError):
    """A parameter outside its range, or two parts that do not fit together.

    ``parameter`` names the one with which the message begins: the command line puts its dashes before it.
    """

    def __init__(self, message: str = "", *, parameter: str | None = None) -> None:
        super().__init__(message)
        self.parameter = parameter


class NumericalError(KonsError, ArithmeticError):
    """A kernel that is not positive definite, or a loss that returned nonsense."""


class FileError(KonsError, ValueError):
    """A file that cannot be written, or one (or a state) that is damaged, forged or of something else."""


class MissingExtraError(KonsError, ImportError):
    """An optional dependency is absent; the message holds the line that installs it."""

    what: str
    extra: str

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an optional dependency. Install it: pip install 'kons[{extra}]'")
        self.what, self.extra = what, extra

    def __reduce__(self) -> tuple[type[MissingExtraError], tuple[str, str]]:
        return type(self), (self.what, self.extra)


class KonsWarning(UserWarning):
    """A notice about a choice made for the user. Each kind is told once per process."""


def notice(kind: str, message: str) -> None:
    """Warn with :class:`KonsWarning`, once per ``kind`` and process, and log every time."""
    logger.info(message)
    if kind not in told:
        told.add(kind)
        warnings.warn(message, KonsWarning, stacklevel=3)


def as_word(path: str | PathLike[str]) -> str:
    """A path in a command to be typed: in quotes if a shell would take it apart."""
    return subprocess.list2cmdline([str(path)]) if os.name == "nt" else shlex.quote(str(path))


def announce(message: str) -> None:
    """Tell the user about a pause. Goes to the ``kons`` logger, visible unless it is configured away."""
    logger.warning(message)
