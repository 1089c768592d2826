"""``open_stream``: whatever holds rows, as a stream of blocks."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kons.arrays import require_delay, require_integer
from kons.errors import ConfigurationError, InputError, announce
from kons.streams.arff import ArffReader
from kons.streams.bytes import Source
from kons.streams.chunks import OnBadRow, Tally
from kons.streams.delimited import DelimitedReader
from kons.streams.json_lines import JsonLinesReader
from kons.streams.libsvm import LibsvmReader
from kons.streams.memory import FrameReader, PairReader, is_frame, pair_reader
from kons.streams.parquet import ParquetReader
from kons.streams.plan import Plan, lag_pairs, make_plan
from kons.streams.reader import Reader
from kons.streams.shuffled import shuffled
from kons.streams.stream import Stream
from kons.streams.text import TextReader
from kons.streams.wording import listed, nearest, shortened
from kons.tables.cells import is_missing

__all__ = ["FORMATS", "Format", "open_stream", "reader_of", "resolve_column"]

LOOK = 1000
PACKED = (".gz", ".bz2", ".xz", ".zst", ".lz4", ".zip")
SECOND_LOOK = 2_000_000  # rows, for the target alone
LIBSVM = re.compile(rb"[-+]?[\w.]+(?:\s+\d+:[-+\w.]+)+\s*(?:#.*)?$")


class Format(NamedTuple):
    """How files of a kind are read, and how they are known."""

    read: Callable[[Source, str | None], Any]
    """Of an opened file and the delimiter asked for: a :class:`Reader`, or what :func:`open_stream` takes."""
    endings: tuple[str, ...]
    recognises: Callable[[bytes], bool] = lambda head: False
    """Whether a file begins so, where its name does not tell."""


def _looks_like_arff(head: bytes) -> bool:
    text = head.lstrip().lower()
    return text.startswith((b"@relation", b"@attribute")) or (text.startswith(b"%") and b"@relation" in text)


#: File formats by name, in the order in which they are recognised; CSV if nothing else fits. A line here, and
#: a format is known to :func:`open_stream`, ``evaluate`` and the command line.
FORMATS: dict[str, Format] = {
    "csv": Format(DelimitedReader, (".csv",)),
    "tsv": Format(
        lambda source, delimiter: DelimitedReader(source, "\t" if delimiter is None else delimiter),
        (".tsv", ".tab"),
    ),
    "parquet": Format(
        lambda source, _: ParquetReader(source), (".parquet", ".pq"), lambda head: head.startswith(b"PAR1")
    ),
    "jsonl": Format(
        lambda source, _: JsonLinesReader(source),
        (".jsonl", ".ndjson", ".json"),
        lambda head: head.lstrip().startswith((b"{", b"[")),
    ),
    "libsvm": Format(
        lambda source, _: LibsvmReader(source),
        (".libsvm", ".svm", ".svmlight"),
        lambda head: bool(LIBSVM.match(head.lstrip().lower().partition(b"\n")[0])),
    ),
    "arff": Format(lambda source, _: ArffReader(source), (".arff",), _looks_like_arff),
}


def open_stream(
    source: Any,
    target: str | int | Sequence[str | int] | None = None,
    *,
    columns: Sequence[str | int] | None = None,
    drop: Sequence[str | int] = (),
    time: str | int | None = None,
    lag: Any = None,
    horizon: int = 0,
    missing: str = "fill",
    on_bad_row: OnBadRow = "gap",
    na_values: Sequence[Any] = (),
    categorical: Sequence[str | int] = (),
    numeric: Sequence[str | int] = (),
    task: str = "auto",
    format: str = "auto",
    delimiter: str | None = None,
    header: bool | None = None,
    encoding: str | None = None,
    block_size: int = 512,
    plan: Plan | Mapping[str, Any] | None = None,
    past: Mapping[str, Sequence[float]] | None = None,
    shuffle: int | None = None,
    quiet: bool = False,
) -> Stream:
    r"""Open a file, a pipe, a frame, arrays or an iterator as a stream of blocks of numbers.

    Parameters
    ----------
    source
        The path of a CSV or TSV file, Parquet, JSON (lines, or a list of objects), libsvm or ARFF, text also
        packed with gzip, bzip2, xz, zstandard or lz4, or as the only file of a zip archive; ``"-"``, standard
        input; a pandas or polars frame; a pair ``(X, y)``; an iterable of pairs ``(x, y)`` with x a sequence
        of numbers or, as River has them, a dict.
    target
        The column to predict, by its name, or by its place: 9 is the ninth, -1 the last. Arrays, pairs and
        libsvm files know it by themselves. Several, all of them numbers: a list, or ``"a,b"`` where no column
        is called so; y is then (n, k). An empty list: none, and y is 0.
    columns, drop
        The columns to use (else all), and those to leave out, by name or place.
    time
        A column by which the rows must be in order; if it holds dates, they become features too.
    lag
        Earlier values as features: ``"target:1,24"`` or ``{"target": [1, 24], "wind": [1]}``. The first rows,
        which have no such past, are skipped.
    horizon
        Predict the target so many rows ahead. It is then known ``horizon`` rows later: evaluate with a
        delay of ``stream.delay``. The last rows have no target and are left out.
    missing
        ``"fill"``: by what the encoder has learned of the column (:mod:`kons.tables.features`); ``"skip"``
        the row; ``"error"``. A row without a target is skipped, or refused.
    on_bad_row
        What becomes of a cell that is not what its column holds: ``"error"``; ``"skip"`` the row; ``"gap"``:
        it is a missing value, counted in ``stream.bad_cells``, unless it is the target's. A row with a wrong
        number of fields is skipped unless under ``"error"``.
    na_values
        Texts and numbers that mean a missing value, beside the usual ones: ``["unknown", -999]``.
    categorical, numeric
        Columns that are text, or numbers, whatever they look like.
    task
        ``"regression"`` or ``"classification"``; by itself, text, true and false, or two distinct values
        mean classification. If the first targets are all the same, more of them are looked at.
    format
        One of :data:`FORMATS` (csv, tsv, parquet, jsonl, libsvm, arff), if neither the name nor the content
        shows it.
    delimiter, encoding
        For text files, if not comma, semicolon, tab, bar or spaces, or neither UTF-8 nor marked as UTF-16.
        Bytes that are no UTF-8 are else read as Windows-1252, and told (``stream.odd_text``), or an error
        under ``on_bad_row="error"``.
    header
        Whether the first line holds the columns' names; by itself, unless all of them are numbers. Columns
        without names are called c1, c2, ...
    block_size
        Rows in a block.
    plan
        That of another stream, to read a file alike: its columns, encoders, lags, horizon and ``na_values``,
        to which more may be added. The target may then be absent.
    past
        That of a stream with the same plan (``stream.past``), whose rows came before: lags begin with it.
    shuffle
        A seed: the rows of a file come in an order that it decides, by an index of 8 bytes a row. Refused for
        what can only be read from its start.
    quiet
        Do not announce the choices; they stay in ``stream.notes``.

    The kind of a column is decided by the first 1,000 rows, of a pipe in which nothing comes for a second by
    those that have come, see :mod:`kons.streams.plan`; each choice is told
    once. Memory is constant; reading a CSV file costs about 0.2 us a number.

    >>> import pathlib, tempfile
    >>> from kons.streams import open_stream
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "heights.csv")
    ...     _ = file.write_text("age;height\n1;0,75\n2;0,86\n3;0,95\n")
    ...     stream = open_stream(file, "height", quiet=True)
    ...     block = next(iter(stream))
    >>> stream.features, block.X.tolist(), block.y.tolist(), block.lines.tolist()
    (('age',), [[1.0], [2.0], [3.0]], [0.75, 0.86, 0.95], [2, 3, 4])
    """
    if isinstance(source, Stream):
        return source
    _require(missing, "missing", ("fill", "skip", "error"))
    _require(on_bad_row, "on_bad_row", ("gap", "skip", "error"))
    _require(task, "task", ("auto", "regression", "classification"))
    _require(format, "format", ("auto", *FORMATS))
    horizon = require_delay(horizon, "horizon")
    block_size = require_integer(block_size, "block_size", at_least=1)
    asked, dropped = _names(columns, "columns"), _names(drop, "drop") or []
    gaps = _names(na_values, "na_values") or []
    lags = lag_pairs(lag)
    given = plan if plan is None or isinstance(plan, Plan) else Plan.from_dict(plan)
    before = _as_past(past)
    targets = _as_targets(target)
    if given is not None and target is None:
        targets = list(given.targets)
    first = targets[0] if targets else None
    told: Any = {"format": format, "delimiter": delimiter, "header": header, "encoding": encoding}
    reader = reader_of(source, first, known=given is not None, **told)
    if len(targets) == 1 and "," in str(first) and first not in reader.columns:
        targets = [name.strip() for name in str(first).split(",") if name.strip()]
    if shuffle is not None:
        if time is not None or lags or (given is not None and given.lags):
            raise ConfigurationError(
                "shuffled rows have no order in time: leave out shuffle, or time and lag."
            )
        ordered = reader.look(LOOK)  # in another order no column counts the rows
        reader = shuffled(reader, require_integer(shuffle, "shuffle", at_least=0))
    try:
        if given is None or reader.resumable:  # a pipe is not waited for
            cells = reader.look(LOOK)
    except InputError:
        if given is None or not isinstance(reader, TextReader):
            raise  # else its rows say themselves what is wrong, or are predicted all the same
    stream = partial(Stream, missing=missing, on_bad_row=on_bad_row, block_size=block_size)
    if given is not None:
        names = [*reader.columns, *(name for name in given.targets if name not in reader.columns)]
        asks = tuple(resolve_column(names, name, reader.name) for name in targets)
        if asks != given.targets:
            raise ConfigurationError(
                f"target is {', '.join(asks)!r}, and what is gone on with predicts "
                f"{repr(', '.join(given.targets)) if given.targets else 'nothing'}: leave it out."
            )
        given = given.with_gaps(gaps)
        return stream(reader, given, [], with_target=_fits(reader, given, before), past=before)
    names = list(reader.columns)

    def found(word: str | int) -> str:
        return resolve_column(names, word, reader.name)

    if target is not None and not targets:
        chosen = []
        dropped += [] if reader.implied_target is None else [reader.implied_target]
    elif reader.implied_target is not None and (not targets or not isinstance(source, (str, Path))):
        chosen = [reader.implied_target]
    elif targets:
        chosen = list(map(found, targets))
        if len(set(chosen)) < len(chosen):
            raise ConfigurationError(f"target is {', '.join(chosen)!r}: name each column once.")
    else:
        raise ConfigurationError(
            f"target is missing: which column of {reader.name} is to be predicted? "
            f"There are {listed(names)}.",
            parameter="target",
        )
    made, notes = make_plan(
        reader.name,
        names,
        cells,
        target=chosen[0] if chosen else None,
        more_targets=chosen[1:],
        columns=None if asked is None else list(map(found, asked)),
        drop=list(map(found, dropped)),
        time=None if time is None else found(time),
        lags=[(name if name == "target" else found(name), back) for name, back in lags],
        horizon=horizon,
        task=task,
        typed=reader.typed,
        named=reader.named,
        delimiter=reader.delimiter,
        texts=reader.categories,
        categories=list(map(found, _names(categorical, "categorical") or [])),
        numeric=list(map(found, _names(numeric, "numeric") or [])),
        na_values=gaps,
        ordered=None if shuffle is None else ordered,
        early=reader.early,
    )
    notes = [*reader.notes, *([reader.odd_text] if reader.odd_text else []), *notes]
    if task == "auto" and made.task == "regression" and len(made.targets) == 1:
        made, more = _second_look(reader, made, cells[made.targets[0]])
        notes += more
    if not quiet:
        for note in notes:
            announce(f"{reader.name}: {note}.")
    return stream(reader, made, notes)


def resolve_column(names: Sequence[str], word: str | int, source: str = "the source") -> str:
    """The column that is meant: a name, else its place: 9 or c9 is the ninth, -1 the last.

    >>> resolve_column(["age", "2", "height"], "-1"), resolve_column(["age", "2", "height"], "2")
    ('height', '2')
    >>> resolve_column(["age", "height"], 1), resolve_column(["age", "height"], "c2")
    ('age', 'height')
    """
    if str(word) in names:
        return str(word)
    match = re.fullmatch(r"c?([1-9]\d{0,8})|(-[1-9]\d{0,8})", str(word).strip())
    if match is None:
        raise ConfigurationError(f"{source} has no column {shortened(word)!r}{nearest(str(word), names)}")
    place = int(match[1]) - 1 if match[1] else len(names) + int(match[2])
    if not 0 <= place < len(names):
        raise ConfigurationError(
            f"{source} has no column {shortened(word)!r}, by name or by place: there are {len(names):,}, "
            f"{listed(names)}."
        )
    return names[place]


def reader_of(
    source: Any,
    target: str | int | None = None,
    *,
    format: str = "auto",
    delimiter: str | None = None,
    header: bool | None = None,
    encoding: str | None = None,
    known: bool = False,
) -> Reader:
    """The reader that a source needs; ``known``: its columns are, by a plan."""
    if isinstance(source, (str, Path)):
        file = Source(source, encoding, header, known=known)
        read = FORMATS[_format_of(source, file) if format == "auto" else format].read(file, delimiter)
        if isinstance(read, LibsvmReader) and isinstance(target, str):
            read.call_target(target)
        return read if isinstance(read, Reader) else reader_of(read, target)
    target = None if target is None else str(target)
    if is_frame(source):
        return FrameReader(source)
    if isinstance(source, tuple) and len(source) == 2 and not isinstance(source[0], (Mapping, tuple)):
        return pair_reader(*source, target)
    if isinstance(source, (bytes, Mapping)) or not isinstance(source, Iterable):
        raise InputError(
            f"the source is a {type(source).__name__}, expected a path, a frame, a pair (X, y) or an "
            "iterable of pairs (x, y)."
        )
    if hasattr(source, "dtype") and hasattr(source, "shape"):
        raise InputError("the source is an array, expected a pair (X, y).")
    return PairReader(source, target)


def _format_of(path: str | Path, file: Source) -> str:
    """By the ending of its name, else by how it begins."""
    endings = [ending.lower() for ending in Path(path).suffixes]
    endings = endings[:-1] if endings and endings[-1] in PACKED else endings
    for name, kind in FORMATS.items():
        if endings and endings[-1] in kind.endings:
            return name
    head = file.head()
    return next((name for name, kind in FORMATS.items() if kind.recognises(head)), "csv")


def _second_look(reader: Reader, plan: Plan, cells: Sequence[Any]) -> tuple[Plan, list[str]]:
    """Where the first targets are all the same, as in a file sorted by label, find out if there are two."""
    target = plan.target_column
    # Of lists and objects of JSON, which are bad cells, there is no set.
    if (
        len({cell if isinstance(cell, Hashable) else repr(cell) for cell in cells if not is_missing(cell)})
        != 1
    ):
        return plan, []
    first = f"{plan.target!r} is the same in the first {len(cells):,} row(s)"
    if not reader.resumable:
        return plan, [f"task: regression, though {first}: say so if these are labels (task)"]
    seen: set[float] = set()
    rows = 0
    chunks = reader.chunks([target], Tally("skip"))
    for chunk in chunks:
        values: Any = chunk.columns[target.name]
        seen.update(np.unique(values[np.isfinite(values)])[:3].tolist())
        rows += len(values)
        if len(seen) > 2 or rows >= SECOND_LOOK:
            break
    chunks.close()
    if len(seen) != 2:
        return plan, []
    low, high = sorted(seen)
    return replace(plan, task="classification"), [
        f"task: classification, since {first} and has just two values later: {low:g}, {high:g}"
    ]


def _as_past(past: Any) -> dict[str, list[float]]:
    try:
        return {
            str(name): np.array(values, np.float64).ravel().tolist() for name, values in (past or {}).items()
        }
    except (AttributeError, TypeError, ValueError):
        raise ConfigurationError("past is not one that a stream has: numbers by column.") from None


def _fits(reader: Reader, plan: Plan, past: Mapping[str, Sequence[float]]) -> bool:
    """Whether the source has the plan's target; its other columns it must have."""
    names = list(reader.columns)
    absent = [column.name for column in plan.read(with_target=False) if column.name not in names]
    if absent and isinstance(reader, JsonLinesReader):  # an object that lacks a key has a gap there
        reader.columns = [*names, *absent]
        announce(f"{reader.name}: no object has {listed(absent)}: gaps.")
    elif absent:
        seen = f"{shortened(absent[0])!r}{nearest(absent[0], names)}"
        raise ConfigurationError(f"{reader.name} has no column {seen}")
    missing = [name for name in plan.targets if name not in names]
    if not missing:
        return True
    if not past and any(name in missing for name, _ in plan.lags):
        raise ConfigurationError(
            f"{reader.name} has no column {missing[0]!r}, whose earlier values are features (lag). "
            "Give a file that has it, or let its rows come next (past)."
        )
    return False


def _require(value: str, name: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ConfigurationError(f"{name} is {value!r}, expected one of {', '.join(known)}.")


def _as_targets(target: Any) -> list[str | int]:
    if target is None:
        return []
    if isinstance(target, (str, int)):
        return [target]
    try:
        return [name if isinstance(name, int) else str(name) for name in target]
    except TypeError:
        raise ConfigurationError(f"target is {target!r}, expected a column, or a list of them.") from None


def _names(names: Any, what: str) -> list[str] | None:
    if names is None:
        return None
    if isinstance(names, str):
        raise ConfigurationError(f"{what} is {names!r}, expected a list of columns: [{names!r}].")
    return [str(name) for name in names]
