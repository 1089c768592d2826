"""How each column is read, decided once from the first rows and kept for the whole stream.

A column is of numbers if at least half of its first values are: the others are bad cells. What becomes of a
column then is up to the encoder (:mod:`kons.tables.features`). Left out are texts that are different in
every row, and whole numbers that only count the rows, if there is something else. A column that the first
rows leave empty is what its first values are, when they come.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

from kons.arrays import LONGEST_DELAY
from kons.errors import ConfigurationError, InputError
from kons.streams.wording import listed
from kons.tables.cells import (
    FALSE,
    MISSING_NUMBERS,
    PLAIN,
    STYLES,
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
    number_style,
    said_missing,
)
from kons.tables.moments import EPOCHS, ORDERS, date_order, epoch_unit, says_time

__all__ = ["Column", "Plan", "lag_pairs", "make_plan"]

Task = Literal["regression", "classification"]
#: Rows from which on whole numbers that only grow by one are taken for the number of the row.
COUNTED = 10
#: Different whole numbers from which on, none coming twice, they are said to look like identifiers.
IDENTIFIERS = 50
IDENTIFIER_LIKE = "whole numbers of which none comes twice, perhaps identifiers (categorical, or drop): "

#: Styles in which a whole number is just its digits.
WITHOUT_SIGNS = (PLAIN, NumberStyle(","))

Column = ColumnFormat


@dataclass(frozen=True)
class Plan:
    """Everything that turns rows of a source into records and targets; as a dict it fits into JSON.

    >>> from kons.streams import Plan, open_stream
    >>> plan = open_stream([({"color": c}, i) for i, c in enumerate(["red", "blue", "red"])], quiet=True).plan
    >>> plan.columns[0].kind, Plan.from_dict(plan.to_dict()) == plan
    ('text', True)
    """

    target: str | None
    """None: rows of features only, whose targets are 0."""
    task: Task
    target_kind: Kind
    columns: tuple[Column, ...]
    """Those that become features, in order."""
    extras: tuple[Column, ...] = ()
    """Those read for a lag or for the order in time only."""
    late: tuple[Column, ...] = ()
    """Those that the first rows leave empty, read as text until they have values."""
    lags: tuple[tuple[str, int], ...] = ()
    horizon: int = 0
    time: str | None = None
    target_style: NumberStyle = PLAIN
    na_values: tuple[str, ...] = ()
    more_targets: tuple[Column, ...] = ()
    """Numbers that are predicted beside the target: rows of several have y of shape (n, k)."""

    @property
    def targets(self) -> tuple[str, ...]:
        """The names of all that is predicted."""
        return tuple(column.name for column in self.target_columns)

    @property
    def target_columns(self) -> tuple[Column, ...]:
        """All that is predicted, as columns to read."""
        return self.more_targets if self.target is None else (self.target_column, *self.more_targets)

    @property
    def lag_names(self) -> tuple[str, ...]:
        """What the lags are called."""
        return tuple(f"{name} lag {back}" for name, back in self.lags)

    @property
    def target_column(self) -> Column:
        """The target as a column to read."""
        assert self.target is not None
        return Column(self.target, self.target_kind, style=self.target_style, na_values=self.na_values)

    def read(self, *, with_target: bool = True) -> tuple[Column, ...]:
        """All columns that are read, each once."""
        return (*self.columns, *self.late, *self.extras, *(self.target_columns if with_target else ()))

    def resolve(self, column: Column, texts: Sequence[str | None]) -> Column | None:
        """What a late column is by some of its values; None while there is none."""
        return _described(column, texts, None, typed=False, category=False)

    def with_late(self, resolved: Mapping[str, Column]) -> Plan:
        """With late columns that have had values since."""
        late = tuple(column for column in self.late if column.name not in resolved)
        return replace(self, columns=(*self.columns, *resolved.values()), late=late)

    def with_gaps(self, na_values: Sequence[str]) -> Plan:
        """With more texts that mean a gap."""
        gaps = tuple(dict.fromkeys([*self.na_values, *na_values]))

        def told(columns: tuple[Column, ...]) -> tuple[Column, ...]:
            return tuple(replace(column, na_values=gaps) for column in columns)

        columns, extras, late, more = map(told, (self.columns, self.extras, self.late, self.more_targets))
        return replace(self, columns=columns, extras=extras, late=late, na_values=gaps, more_targets=more)

    def to_dict(self) -> dict[str, Any]:
        """The plan as a tree of plain values, for a file."""
        return asdict(self)

    @classmethod
    def from_dict(cls, tree: Mapping[str, Any]) -> Plan:
        """The inverse of :meth:`to_dict`."""
        try:
            given = dict(tree)
            for part in ("columns", "extras", "late", "more_targets"):
                given[part] = tuple(
                    map(_column_of, tree.get(part, ()) if part == "more_targets" else tree[part])
                )
            given["lags"] = tuple((name, back) for name, back in tree["lags"])
            given["target_style"] = NumberStyle(**tree["target_style"])
            given["na_values"] = tuple(tree["na_values"])
            plan = cls(**given)
            if not plan._is_sound():
                raise ValueError
        except (TypeError, KeyError, ValueError, AttributeError):
            raise ConfigurationError("plan is not one that to_dict() of a stream's plan has made.") from None
        return plan

    def _is_sound(self) -> bool:
        """Whether all that a file says is such as :func:`make_plan` makes it."""
        read = self.read()
        names = [column.name for column in read]
        back = [rows for _, rows in self.lags]
        return (
            all(map(_is_column, read))
            and len(set(names)) == len(names)
            and self.task in get_args(Task)
            and not (self.more_targets and self.task == "classification")
            and all(column.kind in ("number", "flag") for column in self.more_targets)
            and {name for name, _ in self.lags} <= {*names}
            and all(type(rows) is int and 0 <= rows <= LONGEST_DELAY for rows in (*back, self.horizon))
            and 0 not in back
            and (self.time is None or self.time in names)
        )


def _is_column(column: Column) -> bool:
    return (
        type(column.name) is str
        and column.kind in get_args(Kind)
        and (column.order in ORDERS or column.order in EPOCHS)
        and column.style in STYLES
        and type(column.style.signs) is bool
        and all(type(text) is str for text in column.na_values)
    )


def _column_of(tree: Mapping[str, Any]) -> Column:
    """A column as it stands in a plan's tree."""
    more = {"style": NumberStyle(**tree["style"]), "na_values": tuple(tree["na_values"])}
    return Column(**{**tree, **more})


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
        if not 1 <= number <= LONGEST_DELAY or isinstance(back, bool) or number != float(back):
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
    target: str | None,
    columns: Sequence[str] | None,
    drop: Sequence[str],
    time: str | None,
    lags: Sequence[tuple[str, int]],
    horizon: int,
    task: str,
    typed: bool,
    named: bool = True,
    delimiter: str = ",",
    texts: Sequence[str] = (),
    categories: Sequence[str] = (),
    numeric: Sequence[str] = (),
    na_values: Sequence[str] = (),
    ordered: Mapping[str, Sequence[Any]] | None = None,
    more_targets: Sequence[str] = (),
    early: bool = False,
) -> tuple[Plan, list[str]]:
    """The plan for a source whose first rows hold these cells, and what was chosen, in words.

    ``more_targets`` are predicted beside the target: all of them numbers. Without a ``target`` there is none.
    ``typed``: texts are texts, even where they are whole numbers. ``named``: columns have names of their
    own; those of an array are all meant. ``texts`` and ``numeric``: columns that are text, or numbers, for
    sure. ``categories``: text that is taken, too, though it be different in every row. ``early``: the rows
    are those that have come, and of few of them nothing is concluded: no column is left out, and two numbers
    are no labels.
    """
    targets = () if target is None else (target, *more_targets)
    for name in targets:
        if name in drop:
            raise ConfigurationError(
                f"column {name!r} is the target: it cannot be dropped as well (drop, or id, which is no "
                "input)."
            )
    rows, in_order = max(map(len, cells.values()), default=0), cells if ordered is None else ordered
    told = _Told(rows)
    few = early and rows < IDENTIFIERS
    if early:
        told.say("columns are as in the first rows, since no more came")
    if na_values:
        is_said = said_missing(na_values)
        cells = {name: [None if is_said(cell) else cell for cell in own] for name, own in cells.items()}
    decimal = None if typed or delimiter == "," else _decimal(cells)

    def unread(name: str) -> Column:
        return Column(name, "text", na_values=tuple(na_values))

    def described(name: str) -> Column | None:
        if name in numeric:
            read = [cell for cell in cells[name] if number_style([cell]) is not None]
            return replace(unread(name), kind="number", style=number_style(read, decimal=decimal) or PLAIN)
        is_text = name in texts or name in categories
        return _described(unread(name), cells[name], decimal, typed=typed, category=is_text)

    target_kind: Kind
    others = [_as_number_target(source, name, described(name)) for name in more_targets]
    if target is None:
        task, target_kind, style = "regression", "number", PLAIN
    else:
        answer = described(target)
        style = PLAIN if answer is None else answer.style
        target_kind = _target_kind(source, target, answer, cells[target], typed=typed)
        if task == "regression" and answer is not None and answer.kind == "flag":
            target_kind = "flag"  # yes and no as 1 and 0, as true and false are
        if more_targets:
            if task == "classification":
                raise ConfigurationError(
                    f"{listed(targets)} are {len(targets)} targets, and labels are learned one at a time: "
                    "run each by itself, and drop the others."
                )
            answer = _as_number_target(source, target, answer)
            task, target_kind = "regression", answer.kind
        mixed = target_kind == "number" and _some_text(cells[target], style)
        if mixed and task == "classification":
            target_kind = "text"  # labels, of which most look like numbers: 12, 13, 3x
        if task == "auto":
            task, reason = _task(cells[target], target_kind, style, few=few)
            if task == "classification":
                told.say(f"task: classification, since {target!r} {reason}")
        elif task == "regression" and target_kind == "text":
            raise ConfigurationError(
                f"column {target!r} holds text: its task is classification. "
                "Where numbers are needed, write two labels as 0 and 1."
            )

    if more_targets and "target" not in cells and any(name == "target" for name, _ in lags):
        raise ConfigurationError(f"lag: there are several targets, {listed(targets)}: call one by its name.")
    if target is None and "target" not in cells and any(name == "target" for name, _ in lags):
        raise ConfigurationError("lag: there is no target whose earlier values could be inputs.")
    lags = [
        ((target or name) if name == "target" and name not in cells else name, back) for name, back in lags
    ]
    chosen = list(names) if columns is None else [name for name in names if name in set(columns)]
    left_out, features, late, counters = set(drop), [], [], []
    for name in chosen:
        if name in targets or name in left_out:
            continue
        column = described(name)
        if column is None:
            told.note("empty so far, and taken when it has values: ", name)
            late.append(unread(name))
        elif name == time and column.kind == "number":
            told.note("left out, the order in time, which only grows: ", name)
        elif (
            column.kind == "text"
            and columns is None
            and name not in categories
            and not few
            and _all_different(cells[name])
        ):
            told.note("left out, text that is different in every row: ", name)
        elif (named and columns is None and name not in numeric and not few) and _counts_rows(
            column, in_order[name]
        ):
            counters.append(column)
        else:
            if named and name not in numeric and _looks_like_identifiers(column, cells[name]):
                told.note(IDENTIFIER_LIKE, name)
            told.becomes(column)
            features.append(column)
    if not features and not lags and not late:
        features = counters  # there is nothing else to predict from
    else:
        for column in counters:
            told.note("left out, the number of the row (numeric keeps it): ", column.name)
    extras = []
    for name in dict.fromkeys([name for name, _ in lags] + ([time] if time else [])):
        column = next((c for c in features if c.name == name), None) or (
            Column(name, target_kind, style=style) if name == target else described(name)
        )
        kinds = ("number", "date") if name == time else ("number", "flag")
        if column is None or column.kind not in kinds:
            what = "an order in time needs dates or numbers" if name == time else "a lag needs numbers"
            raise ConfigurationError(f"{source}, column {name!r}: {what}, and it holds something else.")
        if column not in features and name not in targets:
            extras.append(column)
    if time in targets:
        raise ConfigurationError(f"column {time!r} is the target: it cannot give the order in time.")
    if not features and not lags and not late:
        reason = "".join(f" ({text})" for text in told.notes() if "left out" in text)
        purpose = "look at" if target is None else f"predict {target!r} from"
        raise InputError(f"{source} has no column left to {purpose}{reason}.")
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
        late=tuple(late),
        lags=tuple(lags),
        horizon=horizon,
        time=time,
        target_style=style,
        na_values=tuple(na_values),
        more_targets=tuple(others),
    )
    for column in (*features, *plan.target_columns):
        told.written(column)
    return plan, told.notes()


def _as_number_target(source: str, name: str, column: Column | None) -> Column:
    """One of several targets, which are numbers, or yes and no as 1 and 0."""
    if column is None or column.kind not in ("number", "flag"):
        what = "is empty in the first rows" if column is None else f"holds {column.kind}"
        raise ConfigurationError(
            f"{source}, column {name!r} {what}, and each of several targets is a number: predict it by "
            "itself."
        )
    return column


class _Told:
    """The choices, gathered: one line a kind of choice, however many columns it met."""

    def __init__(self, rows: int) -> None:
        self._look = f"in the first {rows:,} row{'s' * (rows != 1)}"
        self._said: list[str] = []
        self._groups: dict[str, list[str]] = {}

    def say(self, text: str) -> None:
        self._said.append(text)

    def note(self, what: str, name: str) -> None:
        self._groups.setdefault(what, []).append(name)

    def becomes(self, column: Column) -> None:
        words = {
            "flag": "true and false as 1 and 0: ",
            "text": "text, by its levels: ",
            "date": f"dates ({column.order}): ",
        }
        if column.kind in words:
            self.note(words[column.kind], column.name)

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
        self.note(f"{', '.join(words)}: ", column.name)

    def notes(self) -> list[str]:
        return [
            *self._said,
            *(f"{what}{listed(names)} ({self._look})" for what, names in self._groups.items()),
        ]


def _described(
    column: Column, cells: Sequence[Any], decimal: str | None, *, typed: bool, category: bool
) -> Column | None:
    """A column that is text as yet, by its first cells; None if there is nothing in it that can be used."""
    # What may be a category, "-" or "none", is a gap where all else is a number, a date or a flag.
    present = [cell for cell in cells if not is_missing(cell) and not _is_no_number(cell)]
    if not present:
        return None
    half = len(present) / 2
    if all(isinstance(cell, str) for cell in present):
        flags = TRUE | FALSE
        if all(cell.strip().casefold() in flags for cell in present):
            return replace(column, kind="flag")
        style = None if category else number_style(present, decimal=decimal)
        if style is not None and not (typed and _may_be_names(present)):
            return _numbers(column, present, style)
        order = None if category else date_order(present)
        return column if order is None else replace(column, kind="date", order=order)
    if all(is_flag(cell) for cell in present):
        return replace(column, kind="flag")
    if category:
        return column
    if (style := number_style(present)) is not None:
        return _numbers(column, present, style)
    if sum(is_date(cell) for cell in present) >= half:
        return replace(column, kind="date", order="year first")
    return column if sum(isinstance(cell, str) for cell in present) >= half else None


def _may_be_names(texts: Sequence[str]) -> bool:
    """Whether only digits alone look like numbers: postal codes, labels, where a source has numbers, too."""
    return number_style([text for text in texts if not text.strip().isdecimal()]) is None


def _is_no_number(cell: Any) -> bool:
    return isinstance(cell, str) and cell.strip().casefold() in MISSING_NUMBERS


def _counts_rows(column: Column, cells: Sequence[Any]) -> bool:
    """Whether the column only says which row it is, as a plain whole number."""
    if column.kind != "number" or column.style not in WITHOUT_SIGNS or len(cells) < COUNTED:
        return False
    first = _value(cells[0], column.style)
    if first is None or not first.is_integer():
        return False
    return all(_value(cell, column.style) == first + i for i, cell in enumerate(cells))


def _looks_like_identifiers(column: Column, cells: Sequence[Any]) -> bool:
    """Whether whole numbers, of which none comes twice, are perhaps names."""
    if column.kind != "number" or len(cells) < IDENTIFIERS:
        return False
    seen: set[float] = set()
    for cell in cells:
        value = _value(cell, column.style)
        if value is None or not value.is_integer() or value in seen:
            return False
        seen.add(value)
    return True


def _all_different(cells: Sequence[Any]) -> bool:
    present = [cell.strip() for cell in cells if isinstance(cell, str) and not is_missing(cell)]
    return len(present) > 1 and len(set(present)) == len(present)


def _numbers(column: Column, present: Sequence[Any], style: NumberStyle) -> Column:
    """A column of numbers, which may be moments if its name says so."""
    if style in WITHOUT_SIGNS and says_time(column.name):
        values = [value for cell in present if (value := _value(cell, style)) is not None]
        unit = epoch_unit(column.name, values) if len(values) == len(present) else None
        if unit is not None:
            return replace(column, kind="date", order=unit)
    return replace(column, kind="number", style=style)


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
    return any(not is_number_text(text, style) and not _is_no_number(text) for text in texts)


def _task(cells: Sequence[Any], kind: Kind, style: NumberStyle, *, few: bool) -> tuple[str, str]:
    if kind == "text":
        return "classification", "holds text"
    if kind == "flag":
        return "classification", "holds true and false"
    values = {_value(cell, style) for cell in cells if not is_missing(cell)} - {None}
    if len(values) == 2 and not few:
        low, high = sorted(v for v in values if v is not None)
        return "classification", f"has just two values in the first {len(cells):,} row(s): {low:g}, {high:g}"
    return "regression", ""


def _value(cell: Any, style: NumberStyle) -> float | None:
    try:
        value = converter("number", style=style)(cell)
    except BadCell:
        return None
    return None if value is None else float(value)
