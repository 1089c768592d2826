"""What can be said on the command line: one function a command, its parameters the options.

Commands import what they run inside their bodies: ``kons --help`` must not wait for NumPy or Numba.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from cyclopts import App, CycloptsError, Parameter, validators

from kons import __version__
from kons.cli import USAGE, _fail

__all__ = ["app", "dispatch"]

app = App(
    name="kons",
    help="Second-order online learning with kernels.\n\nStart with: kons demo",
    version=__version__,
    help_format="plaintext",
)


def dispatch(arguments: Sequence[str]) -> int:
    """Run one command; wrong usage is one line on standard error."""
    try:
        command, bound, *_ = app.parse_args(list(arguments), print_error=False, exit_on_error=False)
    except CycloptsError as error:
        return _fail(f"{error} Try: kons --help", USAGE)
    result = command(*bound.args, **bound.kwargs)
    return result if isinstance(result, int) else 0


@app.command
def demo(
    *,
    rows: Annotated[int, Parameter(validator=validators.Number(gte=10, lte=20_000))] = 5000,
    seed: Annotated[int, Parameter(validator=validators.Number(gte=0))] = 0,
    json: Annotated[bool, Parameter(negative=())] = False,
    quiet: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Predict a chaotic series one step ahead, beside the trivial baselines.

    Parameters
    ----------
    rows
        How many rows to predict and learn, 10 to 20000. Exact KONS keeps rows^2/2 numbers.
    seed
        Which stretch of the Mackey-Glass series.
    json
        Print one JSON object instead of the tables.
    quiet
        No progress bar and no notices.
    """
    from kons.cli import demo, screen

    with screen.notices(quiet=quiet) as console:
        outcome = demo.run(rows, seed, console, quiet=quiet)
    if json:
        demo.print_json(outcome)
    else:
        demo.print_tables(outcome)
    return 0
