"""What can be said on the command line: one function a command, its parameters the options.

Commands import what they run inside their bodies: ``kons --help`` must not wait for NumPy or Numba.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, CycloptsError, Parameter, Token, validators

from kons import __version__
from kons.cli import USAGE, _fail

__all__ = ["app", "dispatch"]

app = App(
    name="kons",
    help=(
        "Second-order online learning with kernels.\n\n"
        "Start with: kons demo\n\n"
        "Your own file: kons certify FILE --target COLUMN"
    ),
    version=__version__,
    help_format="plaintext",
)


def _whole(_: Any, tokens: Sequence[Token]) -> int:
    """A whole number; cyclopts alone would take 10.5 as 10."""
    text = tokens[0].value
    try:
        return int(text)
    except ValueError:
        raise ValueError(f'expected a whole number, not "{text}".') from None


Flag = Annotated[bool, Parameter(negative=())]
Natural = Annotated[int, Parameter(converter=_whole, validator=validators.Number(gte=0))]
Counting = Annotated[int, Parameter(converter=_whole, validator=validators.Number(gte=1))]
Positive = Annotated[float, Parameter(validator=validators.Number(gt=0))]


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
    rows: Annotated[int, Parameter(converter=_whole, validator=validators.Number(gte=10, lte=20_000))] = 5000,
    seed: Natural = 0,
    json: Flag = False,
    quiet: Flag = False,
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


@app.command
def certify(
    file: Path,
    /,
    *,
    target: str | None = None,
    drop: Annotated[list[str] | None, Parameter(negative=())] = None,
    loss: Literal["squared", "logistic", "squared-hinge"] | None = None,
    bandwidth: Positive | None = None,
    regularization: Positive = 1.0,
    max_atoms: Counting | None = None,
    rows: Counting | None = None,
    learner: Literal["embedded", "kons", "sketched"] = "embedded",
    seed: Natural = 0,
    picture: Path | None = None,
    force: Flag = False,
    json: Flag = False,
    quiet: Flag = False,
) -> int:
    """How far from the best fixed function is a learner on your file? With a bound proven for the run.

    Reads a CSV file of numbers with a header (comma, semicolon or tab; also .gz), scales it, predicts
    each row before learning it, and compares with the best function in hindsight.

    kons certify houses.csv --target price

    kons certify houses.csv --target price --drop id,agent --picture certificate.svg

    Parameters
    ----------
    file
        The CSV file.
    target
        The column to predict.
    drop
        Columns to leave out: a,b or given several times.
    loss
        What is summed. Default: logistic if the target has two values, else squared.
    bandwidth
        Of the Gaussian kernel, on scaled features. Default: the median distance between rows.
    regularization
        Alpha, the ridge.
    max_atoms
        At most so many points span the embedded learner's function. Default: 200.
    rows
        Only the first so many rows. Default: all.
    learner
        embedded costs the same for every row; kons is exact and keeps rows^2/2 numbers.
    seed
        Of the sketched learner's coins.
    picture
        Where loss, hindsight and bound over time are drawn: .svg, .png or .pdf. Default:
        NAME-certificate.svg here, unless it is there already; none with --json.
    force
        Let --picture replace a file.
    json
        Print one JSON object instead of the tables.
    quiet
        No progress bar and no notices.
    """
    from kons.cli import certify, screen

    if picture is None and not json:
        picture = certify.default_picture(file, force=force)
    request = certify.Request(
        file=file,
        target=target,
        drop=tuple(drop or ()),
        loss=loss,
        bandwidth=bandwidth,
        regularization=regularization,
        max_atoms=max_atoms,
        rows=rows,
        learner=learner,
        seed=seed,
        picture=picture,
        force=force,
    )
    with screen.notices(quiet=quiet) as console:
        outcome = certify.run(request, console, quiet=quiet)
    if json:
        certify.print_json(outcome)
    else:
        certify.print_report(outcome)
    if not outcome.certificate.holds:
        return _fail("the bound does not hold for this run: an assumption is broken.")
    return 0
