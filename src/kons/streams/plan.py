"""What becomes of each column, decided once from the first rows and kept for the whole stream.

=====================  ==================================================================
a column of            becomes
=====================  ==================================================================
numbers                itself, as float64
true and false         1 and 0 (yes and no as well)
dates and times        sine and cosine of hour, weekday and time of year
text                   a one-hot of 8 columns, by a hash (`kons.encoding.HashedOneHot`)
all different text     nothing: it is left out, and so is a column without any value
=====================  ==================================================================

A column is of numbers if at least half of its first values are: the others are bad cells. Constant columns
are kept; they may vary later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np

from kons.encoding import HashedOneHot, parts_that_vary
from kons.errors import ConfigurationError, InputError
from kons.streams.cells import (
    FALSE,
    MISSING_NUMBERS,
    PLAIN,
    TRUE,
    BadCell,
    ColumnFormat,
    Kind,
    NumberStyle,
    converter,
    is_date,
    is_flag,
    is_missing,
    is_number_text,
    is_real,
    number_style,
)
from kons.streams.dates import NOT_A_TIME, date_order, epoch_unit, says_time, stamp
from kons.streams.wording import listed, nearest, shortened

__all__ = ["Column", "Plan", "lag_pairs", "make_plan"]

Task = Literal["regression", "classification"]
WIDTH = 8


@dataclass(frozen=True)
class Column(ColumnFormat):
    """A column of the source, how it is read, and what becomes of it."""

    parts: tuple[str, ...] = ()
    """Which parts of its dates become features."""
    salt: int = 0
    """Of the hash of its texts."""

    @property
    def features(self) -> tuple[str, ...]:
        """The names of what it becomes."""
        if self.kind == "text":
            return tuple(f"{self.name}#{i}" for i in range(WIDTH))
        if self.kind == "date":
            return tuple(f"{self.name} {part} {wave}" for part in self.parts for wave in ("sin", "cos"))
        return (self.name,)


@dataclass(frozen=True)
class Plan:
    """Everything that turns rows of a source into X and y; as a dict it fits into JSON.

    >>> from kons.streams import Plan, open_stream
    >>> plan = open_stream([({"color": c}, i) for i, c in enumerate(["red", "blue", "red"])], quiet=True).plan
    >>> plan.columns[0].kind, len(plan.features), Plan.from_dict(plan.to_dict()) == plan
    ('text', 8, True)
    """

    target: str
    task: Task
    target_kind: Kind
    columns: tuple[Column, ...]
    """Those that become features, in order."""
    extras: tuple[Column, ...] = ()
    """Those read for a lag or for the order in time only."""
    lags: tuple[tuple[str, int], ...] = ()
    horizon: int = 0
    time: str | None = None
    target_style: NumberStyle = PLAIN
    na_values: tuple[str, ...] = ()

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the columns of X."""
        own = tuple(name for column in self.columns for name in column.features)
        return own + tuple(f"{name} lag {back}" for name, back in self.lags)

    @property
    def target_column(self) -> Column:
        """The target as a column to read."""
        return Column(self.target, self.target_kind, style=self.target_style, na_values=self.na_values)

    def read(self, *, with_target: bool = True) -> tuple[Column, ...]:
        """All columns that are read, each once."""
        return (*self.columns, *self.extras, *((self.target_column,) if with_target else ()))

    def to_dict(self) -> dict[str, Any]:
        """The plan as a tree of plain values, for a file."""
        return asdict(self)

    @classmethod
    def from_dict(cls, tree: Mapping[str, Any]) -> Plan:
        """The inverse of :meth:`to_dict`."""
        try:
            columns, extras = (
                tuple(
                    Column(
                        **{
                            **c,
                            "name": str(c["name"]),
                            "style": NumberStyle(**c["style"]),
                            "na_values": tuple(c["na_values"]),
                            "parts": tuple(c["parts"]),
                            "salt": int(c["salt"]),
                        }
                    )
                    for c in tree[part]
                )
                for part in ("columns", "extras")
            )
            plan = cls(
                **{
                    **tree,
                    "columns": columns,
                    "extras": extras,
                    "lags": tuple((str(name), int(back)) for name, back in tree["lags"]),
                    "horizon": int(tree["horizon"]),
                    "target_style": NumberStyle(**tree["target_style"]),
                    "na_values": tuple(tree["na_values"]),
                }
            )
        except (TypeError, KeyError, ValueError, AttributeError):
            raise ConfigurationError("plan is not one that to_dict() of a stream's plan has made.") from None
        kinds = {column.kind for column in plan.read()}
        if not kinds <= {"number", "flag", "date", "text"} or plan.task not in (
            "regression",
            "classification",
        ):
            raise ConfigurationError("plan is not one that to_dict() of a stream's plan has made.")
        return plan


def lag_pairs(lag: Any) -> list[tuple[str, int]]:
    """(column, rows back) of ``"target:1,24"``, of a list of such, or of ``{"target": [1, 24]}``."""
    if lag is None:
        return []
    pairs: list[tuple[str, Any]] = []
    if isinstance(lag, Mapping):
        for name, backs in lag.items():
            pairs += [(name, back) for back in ([backs] if isinstance(backs, int) else backs)]
    else:
        for text in [lag] if isinstance(lag, str) else lag:
            name, colon, backs = str(text).rpartition(":")
            if not colon:
                raise ConfigurationError(f"lag is {text!r}, expected a column and rows back: 'target:1,24'.")
            pairs += [(name.strip(), back) for back in backs.split(",")]
    out = []
    for name, back in pairs:
        try:
            number = int(back)
        except (TypeError, ValueError):
            number = 0
        if not 1 <= number <= 1_000_000 or isinstance(back, bool) or number != float(back):
            raise ConfigurationError(
                f"the lag of {name!r} is {back!r}, expected a whole number of rows back, at least 1: "
                "what this row's target will be is not known yet."
            )
        out.append((str(name), number))
    return list(dict.fromkeys(out))


def make_plan(
    source: str,
    names: Sequence[str],
    cells: Mapping[str, Sequence[Any]],
    *,
    target: str,
    columns: Sequence[str] | None,
    drop: Sequence[str],
    time: str | None,
    lags: Sequence[tuple[str, int]],
    horizon: int,
    task: str,
    typed: bool,
    delimiter: str = ",",
    categories: Sequence[str] = (),
    na_values: Sequence[str] = (),
) -> tuple[Plan, list[str]]:
    """The plan for a source whose first rows hold these cells, and what was chosen, in words.

    ``typed``: texts are texts, even where they look like numbers. ``categories``: columns of text for sure.
    """
    for name in (target, *(columns or ()), *drop, *((time,) if time else ())):
        if name not in cells:
            raise ConfigurationError(f"{source} has no column {shortened(name)!r}{nearest(name, names)}")
    if target in drop:
        raise ConfigurationError(f"column {target!r} is the target: it cannot be dropped as well.")
    rows = len(cells[target])
    told = _Told(rows)
    unknown = {text.strip().casefold() for text in na_values}
    if unknown:
        cells = {
            name: [None if str(cell).strip().casefold() in unknown else cell for cell in column]
            for name, column in cells.items()
        }
    decimal = None if typed or delimiter == "," else _decimal(cells)

    def described(name: str) -> Column | None:
        found = _described(name, cells[name], decimal, typed=typed, category=name in categories)
        return None if found is None else replace(found, na_values=tuple(na_values))

    answer = described(target)
    style = PLAIN if answer is None else answer.style
    target_kind = _target_kind(source, target, answer, cells[target], typed=typed)
    if task == "regression" and answer is not None and answer.kind == "flag":
        target_kind = "flag"  # yes and no as 1 and 0, as true and false are
    mixed = not typed and target_kind == "number" and _some_text(cells[target], style)
    if mixed and task == "classification":
        target_kind = "text"  # labels, of which most look like numbers: 12, 13, 3x
    if task == "auto":
        task, reason = _task(cells[target], target_kind, style)
        if task == "classification":
            told.say(f"task: classification, since {target!r} {reason}")
    elif task not in ("regression", "classification"):
        raise ConfigurationError(f"task is {task!r}, expected 'auto', 'regression' or 'classification'.")
    elif task == "regression" and target_kind == "text":
        raise ConfigurationError(
            f"column {target!r} holds text: its task is classification. "
            "Where numbers are needed, write two labels as 0 and 1."
        )

    lags = [(target if name == "target" and name not in cells else name, back) for name, back in lags]
    chosen = list(names) if columns is None else [name for name in names if name in set(columns)]
    left_out, features = set(drop), []
    for name in chosen:
        if name == target or name in left_out:
            continue
        column = described(name)
        if column is None:
            told.left_out("no number, date or text in", name)
        elif name == time and column.kind == "number":
            told.left_out("the order in time, which only grows:", name)
        elif column.kind == "text" and columns is None and _all_different(cells[name]):
            told.left_out("text that is different in every row:", name)
        else:
            told.becomes(column)
            features.append(column)
    extras = []
    for name in dict.fromkeys([name for name, _ in lags] + ([time] if time else [])):
        if name not in cells:
            raise ConfigurationError(f"{source} has no column {shortened(name)!r}{nearest(name, names)}")
        column = next((c for c in features if c.name == name), None) or (
            Column(target, target_kind, style=style) if name == target else described(name)
        )
        kinds = ("number", "date") if name == time else ("number", "flag")
        if column is None or column.kind not in kinds:
            what = "order in time needs dates or numbers" if name == time else "lag needs numbers"
            raise ConfigurationError(f"{source}, column {name!r}: a {what}, and it holds something else.")
        if column not in features and name != target:
            extras.append(column)
    if time == target:
        raise ConfigurationError(f"column {target!r} is the target: it cannot give the order in time.")
    if not features and not lags:
        reason = "".join(f" ({text})" for text in told.notes() if "left out" in text)
        raise InputError(f"{source} has no column left to predict {target!r} from{reason}.")
    if lags:
        told.say(
            f"lags added: {listed([f'{name} {back} back' for name, back in lags])}; "
            "the first rows, without such a past, are skipped"
        )
    plan = Plan(
        target=target,
        task="regression" if task == "regression" else "classification",
        target_kind=target_kind,
        columns=tuple(features),
        extras=tuple(extras),
        lags=tuple(lags),
        horizon=horizon,
        time=time,
        target_style=style,
        na_values=tuple(na_values),
    )
    for column in (*features, plan.target_column):
        told.written(column)
    return plan, told.notes()


class _Told:
    """The choices, gathered: one line a kind of choice, however many columns it met."""

    def __init__(self, rows: int) -> None:
        self._look = f"in the first {rows:,} row{'s' * (rows != 1)}"
        self._said: list[str] = []
        self._groups: dict[str, list[str]] = {}

    def say(self, text: str) -> None:
        self._said.append(text)

    def left_out(self, reason: str, name: str) -> None:
        self._groups.setdefault(f"left out, {reason} ", []).append(name)

    def becomes(self, column: Column) -> None:
        if column.kind == "flag":
            self._groups.setdefault("true and false as 1 and 0: ", []).append(column.name)
        elif column.kind == "text":
            self._groups.setdefault(f"text as a one-hot of {WIDTH} columns, by a hash: ", []).append(
                column.name
            )
        elif column.kind == "date":
            parts = " and ".join(column.parts) or "nothing, since it never varies"
            order = f"dates ({column.order}) as sine and cosine of {parts}: "
            self._groups.setdefault(order, []).append(column.name)

    def written(self, column: Column) -> None:
        style = column.style
        if column.kind != "number" or style == PLAIN:
            return
        words = ["decimals are written with a comma"] if style.decimal == "," else []
        if style.thousands:
            signs = {" ": "a space", "'": "an apostrophe", ",": "a comma", ".": "a point"}
            words.append(f"thousands are written with {signs[style.thousands]}")
        if style.signs:
            words.append("currency, percent and parentheses are left away")
        self._groups.setdefault(f"{', '.join(words)}: ", []).append(column.name)

    def notes(self) -> list[str]:
        return [
            *self._said,
            *(f"{what}{listed(names)} ({self._look})" for what, names in self._groups.items()),
        ]


def _described(
    name: str, cells: Sequence[Any], decimal: str | None, *, typed: bool, category: bool
) -> Column | None:
    """The column by its first cells; None if there is nothing in it that can be used."""
    present = [cell for cell in cells if not is_missing(cell)]
    if not present:
        return None
    half = len(present) / 2
    if all(isinstance(cell, str) for cell in present):
        folded = {cell.strip().casefold() for cell in present[:1000]}
        if folded <= TRUE | FALSE and (folded & TRUE or folded & FALSE):
            return Column(name, "flag")
        style = None if typed or category else number_style(present, decimal=decimal)
        if style is not None:
            return _numbers(name, present, style)
        order = None if category else date_order(present)
        if order is not None:
            return _dated(name, [stamp(cell, order) for cell in present], order)
        return _text(name, present)
    if all(is_flag(cell) for cell in present):
        return Column(name, "flag")
    if sum(is_real(cell) or is_flag(cell) for cell in present) >= half:
        return _numbers(name, present, PLAIN)
    if sum(is_date(cell) for cell in present) >= half:
        return _dated(name, [stamp(cell, "year first") for cell in present], "year first")
    if sum(isinstance(cell, str) for cell in present) >= half:
        return _text(name, [cell for cell in present if isinstance(cell, str)])
    return None


def _text(name: str, present: Sequence[str]) -> Column:
    frequent = [text for text, _ in Counter(cell.strip() for cell in present).most_common()]
    return Column(name, "text", salt=HashedOneHot.without_clashes(frequent, WIDTH).salt)


def _dated(name: str, moments: Sequence[int | None], order: str) -> Column:
    known = np.array([m for m in moments if m is not None and m != NOT_A_TIME], dtype=np.int64)
    parts = ("hour",) if order == "time only" else parts_that_vary(known.view("datetime64[us]"))
    return Column(name, "date", order=order, parts=parts)


def _all_different(cells: Sequence[Any]) -> bool:
    present = [cell.strip() for cell in cells if isinstance(cell, str) and not is_missing(cell)]
    return len(present) > 1 and len(set(present)) == len(present)


def _numbers(name: str, present: Sequence[Any], style: NumberStyle) -> Column:
    """A column of numbers, which may be moments if its name says so."""
    number = Column(name, "number", style=style)
    if style != PLAIN or not says_time(name):
        return number
    values = [value for cell in present if (value := _value(cell, style)) is not None]
    unit = epoch_unit(name, values) if len(values) == len(present) else None
    if unit is None:
        return number
    return _dated(name, [stamp(value, unit) for value in values], unit)


def _decimal(cells: Mapping[str, Sequence[Any]]) -> str | None:
    """A comma, where some column holds numbers only if it is the decimal sign."""
    for column in cells.values():
        texts = [cell for cell in column if isinstance(cell, str) and "," in cell]
        style = number_style(texts) if texts else None
        if style is not None and style.decimal == ",":
            return ","
    return None


def _target_kind(
    source: str, target: str, column: Column | None, cells: Sequence[Any], *, typed: bool
) -> Kind:
    if column is None:
        raise InputError(
            f"{source}, column {target!r}: the target has no value {'' if typed else 'that can be read '}"
            f"in the first {len(cells):,} row(s)."
        )
    if column.kind == "date":
        raise InputError(f"{source}, column {target!r} holds dates: a target must be numbers or labels.")
    if column.kind == "flag" and any(
        isinstance(cell, str) and cell.strip().casefold() in ("yes", "no") for cell in cells
    ):
        return "text"  # the labels people know
    return column.kind


def _some_text(cells: Sequence[Any], style: NumberStyle) -> bool:
    texts = (cell for cell in cells if isinstance(cell, str))
    return any(
        not is_number_text(text, style) and text.strip().casefold() not in MISSING_NUMBERS for text in texts
    )


def _task(cells: Sequence[Any], kind: Kind, style: NumberStyle) -> tuple[str, str]:
    if kind == "text":
        return "classification", "holds text"
    if kind == "flag":
        return "classification", "holds true and false"
    values = {_value(cell, style) for cell in cells if not is_missing(cell)} - {None}
    if len(values) == 2:
        low, high = sorted(v for v in values if v is not None)
        return "classification", f"has just two values in the first {len(cells):,} row(s): {low:g}, {high:g}"
    return "regression", ""


def _value(cell: Any, style: NumberStyle) -> float | None:
    try:
        value = converter("number", style=style)(cell)
    except BadCell:
        return None
    return None if value is None else float(value)
