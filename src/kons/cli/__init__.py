"""The ``kons`` command. Needs the extra ``cli``; without it, the command prints the line that installs it.

Exit codes: 0 done, 1 a run that failed, 2 wrong usage, 4 done, and an event of --fail-on was noticed.
Results go to standard output; the progress bar, notices and errors to standard error. Nothing heavy is
imported before a command needs it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from kons.cli.wording import printable, with_flags
from kons.errors import ConfigurationError, KonsError, MissingExtraError, logger

__all__ = ["FAILED", "NOTICED", "USAGE", "fail", "main", "perhaps_unread"]

FAILED, USAGE, NOTICED = 1, 2, 4
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line (default: ``sys.argv``) and return its exit code. Never a traceback.

    >>> from kons.cli import main
    >>> main(["--version"])
    0.1.0
    0
    """
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        closed = [name for name in ("stdout", "stderr") if getattr(sys, name) is None]  # by who started it
        for name in closed:
            setattr(sys, name, nowhere)
        try:
            return _main(arguments)
        finally:
            for name in closed:
                setattr(sys, name, None)


def _main(arguments: Sequence[str] | None) -> int:
    try:
        import rich  # noqa: F401 - only the commands need it, but the answer should come at once

        from kons.cli.app import dispatch
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.split(".")[0] == "kons":
            raise
        return fail(str(MissingExtraError("The command line", "cli")), USAGE)
    try:
        code = dispatch(sys.argv[1:] if arguments is None else list(arguments))
        sys.stdout.flush()  # a full disk should be noticed here, not at exit
        return code
    except ConfigurationError as error:
        return fail(f"--{error}" if error.parameter else str(error), USAGE)
    except KonsError as error:
        return fail(str(error))
    except KeyboardInterrupt as error:
        return fail("stopped.", getattr(error, "exit_code", INTERRUPTED))
    except MemoryError:
        return fail("out of memory: exact KONS keeps rows^2/2 numbers; use fewer rows (--rows).")
    except BrokenPipeError:  # whoever read our output has left
        _give_up_output()
        return FAILED
    except OSError as error:
        _give_up_output()
        where = "the output" if error.filename is None else error.filename
        return fail(f"cannot read or write {where}: {error.strerror or error}.")
    except Exception as error:
        logger.debug("the command failed", exc_info=True)
        return fail(f"unexpected {type(error).__name__}: {error} (a bug: please report it)")


@contextmanager
def perhaps_unread() -> Iterator[None]:
    """Around what is printed of something that is done and saved: it is so, whoever reads on."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        _give_up_output()


def _give_up_output() -> None:
    """If the rest of the output cannot be written now, do not let it complain again at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        with suppress(OSError):  # a standard output that is no file
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, sys.stdout.fileno())
            os.close(null)


def fail(message: str, code: int = FAILED) -> int:
    """One line on standard error; returns the exit code."""
    with suppress(OSError):  # a standard error that is full: the code still says it
        print("kons: " + printable(with_flags(" ".join(message.split()))), file=sys.stderr, flush=True)
    return code
