"""The ``kons`` command. Needs the extra ``cli``; without it, the command prints the line that installs it.

Exit codes: 0 done, 1 a run that failed, 2 wrong usage. Results go to standard output; the progress
bar, notices and errors to standard error. Nothing heavy is imported before a command needs it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from kons.errors import KonsError, MissingExtraError, logger

__all__ = ["FAILED", "USAGE", "main"]

FAILED, USAGE = 1, 2
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line (default: ``sys.argv``) and return its exit code. Never a traceback.

    >>> from kons.cli import main
    >>> main(["--version"])
    0.1.0
    0
    """
    try:
        import rich  # noqa: F401 - only the commands need it, but the answer should come at once

        from kons.cli.app import dispatch
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.split(".")[0] == "kons":
            raise
        return _fail(str(MissingExtraError("The command line", "cli")), USAGE)
    try:
        return dispatch(sys.argv[1:] if arguments is None else list(arguments))
    except KonsError as error:
        return _fail(str(error))
    except KeyboardInterrupt:
        return _fail("stopped.", INTERRUPTED)
    except MemoryError:
        return _fail("out of memory: exact KONS keeps rows^2/2 numbers; use fewer rows.")
    except BrokenPipeError:
        # Whoever read our output has left; flushing the rest at exit would complain again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except Exception as error:
        logger.debug("the command failed", exc_info=True)
        return _fail(f"unexpected {type(error).__name__}: {error} (a bug: please report it)")


def _fail(message: str, code: int = FAILED) -> int:
    print("kons: " + " ".join(message.split()), file=sys.stderr)
    return code
