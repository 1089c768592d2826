"""The options that several commands share, each said once: what it means, its limits, its default."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Group, Parameter, Token, validators

__all__ = [
    "DASH",
    "Certifying",
    "Counting",
    "Effort",
    "Evaluating",
    "Flag",
    "Json",
    "Model",
    "Names",
    "Natural",
    "Positive",
    "Quiet",
    "Reading",
    "Rereading",
    "Source",
    "Target",
    "Texts",
    "whole",
]

# Standard input is "-", which looks like an option; no argument can hold a zero byte.
DASH = "\0-"


def whole(_: Any, tokens: Sequence[Token]) -> int:
    """A whole number; cyclopts alone would take 10.5 as 10."""
    text = tokens[0].value
    try:
        return int(text)
    except ValueError:
        raise ValueError(f'expected a whole number, not "{text}".') from None


def _file(_: Any, tokens: Sequence[Token]) -> str:
    return tokens[0].value.replace(DASH, "-")


Flag = Annotated[bool, Parameter(negative=(), show_default=False)]
Natural = Annotated[int, Parameter(converter=whole, validator=validators.Number(gte=0))]
Counting = Annotated[int, Parameter(converter=whole, validator=validators.Number(gte=1))]
Positive = Annotated[float, Parameter(validator=validators.Number(gt=0))]
Names = Annotated[list[str] | None, Parameter(negative=())]
Source = Annotated[str, Parameter(converter=_file, help="The file, or - for standard input.")]
Model = Annotated[Path, Parameter(help="A model.kons, or the folder of its run.")]
Target = Annotated[str | None, Parameter(help="The column to predict.")]
Effort = Annotated[
    str | None, Parameter(help="Of auto: tiny (models of at most 100 kB for ten columns) or normal.")
]
Json = Annotated[Flag, Parameter(help="Print one JSON object instead of tables.")]
Quiet = Annotated[Flag, Parameter(help="No progress bar and no notices.")]
Texts = Annotated[list[str] | None, Parameter(name="--set", negative=())]
READING = Group("Reading the file", sort_key=10)


@Parameter(name="*")
@dataclass(frozen=True)
class Evaluating:
    """How learners are evaluated along a stream.

    Parameters
    ----------
    task
        Default: text, true and false, or two distinct values are classes.
    scale
        none leaves the columns as they are.
    seed
        Of a learner's coins, where it tosses some.
    delay
        Targets become known so many rows late.
    window
        Windowed metrics are over the last so many rows.
    rows
        Only the first so many rows. Default: all.
    """

    task: Literal["auto", "regression", "classification"] = "auto"
    scale: Literal["auto", "none"] = "auto"
    seed: Natural = 0
    delay: Natural = 0
    window: Counting = 1000
    rows: Counting | None = None


@Parameter(name="*", group=READING)
@dataclass(frozen=True)
class Rereading:
    """How another file is read by a model that knows its columns.

    Parameters
    ----------
    missing
        A missing value is an error, its row is skipped, or it is the mean so far.
    on_bad_row
        A row that cannot be read is an error, or is skipped and counted.
    format
        csv, tsv, parquet, jsonl, libsvm or arff. Default: by name and content.
    delimiter
        Of text files, if not comma, semicolon, tab or bar.
    encoding
        Of text files, if not UTF-8: latin-1, utf-16, ...
    """

    missing: Literal["error", "skip", "mean"] = "error"
    on_bad_row: Literal["error", "skip"] = "error"
    format: str = "auto"
    delimiter: str | None = None
    encoding: str | None = None

    def asked(self) -> dict[str, Any]:
        """What is not the default, as open_stream takes it."""
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        return {f.name: given[f.name] for f in fields(self) if given[f.name] != f.default}


@Parameter(name="*", group=READING)
@dataclass(frozen=True)
class Reading(Rereading):
    """How a file is read.

    Parameters
    ----------
    columns
        Columns to use: a,b or given several times. Default: all.
    drop
        Columns to leave out.
    time
        A column by which the rows must be in order.
    lag
        Earlier values as inputs, without a look ahead: target:1,24 or wind:1.
    horizon
        Predict the target so many rows ahead.
    """

    columns: Names = None
    drop: Names = None
    time: str | None = None
    lag: Names = None
    horizon: Natural = 0

    def asked(self) -> dict[str, Any]:
        """What is not the default, as open_stream takes it."""
        from kons.cli.values import names

        given = super().asked()
        return {name: names(value) if name in ("columns", "drop") else value for name, value in given.items()}


@Parameter(name="*")
@dataclass(frozen=True)
class Certifying:
    """What is certified, and with which learner.

    Parameters
    ----------
    drop
        Columns to leave out: a,b or given several times.
    loss
        What is summed. Default: logistic if the target has two values, else squared.
    bandwidth
        Of the Gaussian kernel, on scaled features. Default: the median distance between rows.
    regularization
        The ridge alpha.
    max_atoms
        At most so many points span the embedded learner's function. Default: 200.
    rows
        Only the first so many rows. Default: all.
    learner
        embedded costs the same for every row; kons is exact and keeps rows^2/2 numbers.
    seed
        Of the sketched learner's coins.
    picture
        Where loss, hindsight and bound over time are drawn: .svg, .png or .pdf. Default: nowhere.
    force
        Let --picture replace a file.
    """

    target: Target = None
    drop: Names = None
    loss: Literal["squared", "logistic", "squared-hinge"] | None = None
    bandwidth: Positive | None = None
    regularization: Positive = 1.0
    max_atoms: Counting | None = None
    rows: Counting | None = None
    learner: Literal["embedded", "kons", "sketched"] = "embedded"
    seed: Natural = 0
    picture: Path | None = None
    force: Flag = False
