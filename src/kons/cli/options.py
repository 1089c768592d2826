"""The options that several commands share, each said once: what it means, its limits, its default."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Group, Parameter, Token, validators

from kons.cli.values import names

__all__ = [
    "DASH", "Certifying", "Columns", "Continue", "Counting", "Effort", "Evaluating", "FewRows", "Flag",
    "Forecasting", "Id", "Json", "Learning", "Model", "Names", "Natural", "Positive", "Quiet", "Reading",
    "Serving", "Source", "Spark", "Target", "Texts", "asked",
]  # fmt: skip

# Standard input is "-", which looks like an option; no argument can hold a zero byte.
DASH = "\0-"


def _whole(_: Any, tokens: Sequence[Token]) -> int:
    """A whole number; cyclopts alone would take 10.5 as 10."""
    text = tokens[0].value
    try:
        return int(text)
    except ValueError:
        raise ValueError(f'expected a whole number, not "{text}".') from None


def _file(_: Any, tokens: Sequence[Token]) -> str:
    return tokens[0].value.replace(DASH, "-")


def _names(_: Any, tokens: Sequence[Token]) -> list[str]:
    return names(token.value for token in tokens)


Flag = Annotated[bool, Parameter(negative=(), show_default=False)]
Natural = Annotated[int, Parameter(converter=_whole, validator=validators.Number(gte=0))]
Counting = Annotated[int, Parameter(converter=_whole, validator=validators.Number(gte=1))]
FewRows = Annotated[int, Parameter(converter=_whole, validator=validators.Number(gte=10, lte=20_000))]
Positive = Annotated[float, Parameter(validator=validators.Number(gt=0))]
Texts = Annotated[list[str] | None, Parameter(negative=())]
Names = Annotated[list[str] | None, Parameter(converter=_names, negative=())]
Source = Annotated[str, Parameter(converter=_file, help="The file, or - for standard input.")]
Model = Annotated[Path, Parameter(help="A model.kons, or the folder of its run.")]
Target = Annotated[str | None, Parameter(help="The column to predict.")]
Effort = Annotated[
    str | None,
    Parameter(help="Of auto: low, normal or high; tiny: models of at most 100 kB for ten columns."),
]
Id = Annotated[str | None, Parameter(help="A column that predictions are named by; it is no input.")]
Continue = Annotated[
    Flag,
    Parameter(
        name="--continue",
        help="Take the rows as coming next in the stream, with the last targets; targets there become such.",
    ),
]
Json = Annotated[Flag, Parameter(help="Print one JSON object instead of tables.")]
Quiet = Annotated[Flag, Parameter(help="No progress bar and no notices.")]
READING = Group("Reading the file", sort_key=10)


@Parameter(name="*")
@dataclass(frozen=True)
class Evaluating:
    """How learners are evaluated along a stream."""

    task: Literal["auto", "regression", "classification"] = "auto"
    """Default: text, true and false, or two distinct values are classes."""
    scale: Literal["auto", "none"] = "auto"
    """none leaves the columns as they are."""
    seed: Natural = 0
    """Of a learner's coins, where it tosses some, and of --shuffle."""
    delay: Natural = 0
    """Targets become known so many rows late."""
    window: Counting = 1000
    """Windowed metrics are over the last so many rows."""
    rows: Counting | None = None
    """Only the first so many rows. Default: all."""
    shuffle: Flag = False
    """Take the rows in an order that --seed decides: for a file sorted by its target."""
    positive: str | None = None
    """Of two labels, the one that F1, precision and recall are about. Default: the rarer one."""
    class_weight: Literal["balanced"] | None = None
    """balanced: rows of rare labels count more."""


@Parameter(name="*", group=READING)
@dataclass(frozen=True)
class Reading:
    """How a file is read."""

    missing: Literal["fill", "skip", "error"] = "fill"
    """A gap is filled from what the model has learned, its row is skipped, or it is an error."""
    on_bad_row: Literal["gap", "skip", "error"] = "gap"
    """A cell that cannot be read is a gap, its row is skipped, or it is an error."""
    na_values: Names = None
    """Texts or numbers that mean a gap, besides the usual ones: -999,unknown."""
    header: Annotated[bool | None, Parameter(negative="--no-header", show_default=False)] = None
    """Whether the first line has the columns' names. Default: not if all are numbers; then c1, c2, ..."""
    format: str = "auto"
    """csv, tsv, parquet, jsonl, libsvm or arff. Default: by name and content."""
    delimiter: str | None = None
    """Of text files, if not comma, semicolon, tab, bar or spaces."""
    encoding: str | None = None
    """Of text files, if neither UTF-8 nor marked as UTF-16: latin-1, ..."""


@Parameter(name="*", group=READING)
@dataclass(frozen=True)
class Columns:
    """What of a file is learned from; a model knows it already."""

    columns: Names = None
    """Columns to use: a,b or given several times. Default: all."""
    drop: Names = None
    """Columns to leave out."""
    categorical: Names = None
    """Columns that are names, though they look like numbers."""
    numeric: Names = None
    """Columns that are numbers, though they look like something else, or like row numbers."""
    time: str | None = None
    """A column by which the rows must be in order."""
    lag: Texts = None
    """Earlier values as inputs, without a look ahead: target:1,24 or wind:1."""


@Parameter(name="*", group=Group("Forecasting", sort_key=9))
@dataclass(frozen=True)
class Forecasting:
    """The next steps of a series, from every row on."""

    horizon: str | None = None
    """Predict all of the next so many rows, or so much time: 24, 24h."""
    known_ahead: Names = None
    """Columns that are known of the rows to come, besides their time: holidays, plans."""
    season: Names = None
    """Rows after which the series comes again. Default: those of a day and a week, by the time column."""


@Parameter(name="*", group=Group("On many machines", sort_key=11))
@dataclass(frozen=True)
class Spark:
    """Where a learner for each key runs."""

    engine: Literal["here", "spark"] = "here"
    """spark: the files of a folder, by --key and --time, to --out; kons resume learns new ones."""
    master: str | None = None
    """Of Spark: spark://HOST:PORT or local[2]. Default: by its own settings, else all cores here."""
    buckets: Counting | None = None
    """So many values hold the learners of all keys. Default: 64."""
    files_per_batch: Counting | None = None
    """So many files are learned between two checkpoints; what is older then is late. Default: all."""


@Parameter(name="*", group=Group("Learning, fixed when a service begins", sort_key=9))
@dataclass(frozen=True)
class Learning:
    """What decides what becomes of a record."""

    task: Literal["auto", "regression", "classification"] | None = None
    """Default: auto, by the first label: text, true and false are classes."""
    level: Positive | None = None
    """Of the intervals. Default: 0.9."""
    pending: Counting | None = None
    """So many rows wait for their labels at most. Default: 10,000."""
    remember: Counting | None = None
    """So many ids are remembered, and learned once. Default: a million."""
    days: Positive | None = None
    """For so many days. Default: 7."""
    columns: Counting | None = None
    """So many columns at most. Default: 1,000."""


@Parameter(name="*", group=Group("Serving", sort_key=10))
@dataclass(frozen=True)
class Serving:
    """What clients may."""

    token_file: Path | None = None
    """A file with the token that clients need; or the variable KONS_TOKEN."""
    read_token_file: Path | None = None
    """A file with one for looking only; or KONS_READ_TOKEN."""
    names: Annotated[Names, Parameter(name="--allow-host")] = None
    """Names that the service is called by, besides localhost and numbers."""
    queue: Counting = 1000
    """So many records wait at most, then 429 is answered."""
    body: Annotated[Counting, Parameter(name="--max-body")] = 1 << 20
    """Bytes of a request at most."""
    snapshot_every: Counting = 50_000
    """Records between snapshots."""
    keep_log: Flag = False
    """Keep the log that a snapshot makes needless."""
    source: Annotated[str | None, Parameter(name="--from")] = None
    """A broker to take rows and labels from, too: mqtt://HOST:PORT/TOPIC or nats://HOST:PORT/SUBJECT."""


def asked(*options: Reading | Columns) -> dict[str, Any]:
    """What is not the default, as open_stream takes it."""
    given = ((field, getattr(part, field.name)) for part in options for field in fields(part))
    return {field.name: value for field, value in given if value != field.default}


@Parameter(name="*")
@dataclass(frozen=True)
class Certifying:
    """What is certified, and with which learner."""

    target: Target = None
    drop: Names = None
    """Columns to leave out: a,b or given several times."""
    loss: Literal["squared", "logistic", "squared-hinge"] | None = None
    """What is summed. Default: logistic if the target has two values, else squared."""
    bandwidth: Positive | None = None
    """Of the Gaussian kernel, on scaled features. Default: the median distance between rows."""
    regularization: Positive = 1.0
    """The ridge alpha."""
    max_atoms: Counting | None = None
    """At most so many points span the embedded learner's function. Default: 200."""
    rows: Counting | None = None
    """Only the first so many rows. Default: all."""
    learner: Literal["embedded", "kons", "sketched"] = "embedded"
    """embedded costs the same for every row; kons is exact and keeps rows^2/2 numbers."""
    seed: Natural = 0
    """Of the sketched learner's coins."""
    picture: Path | None = None
    """Where loss, hindsight and bound over time are drawn: .svg, .png or .pdf. Default: nowhere."""
    force: Flag = False
    """Let --picture replace a file."""
