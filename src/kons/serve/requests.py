"""What clients send, as records: read strictly, each refusal in words that name the column."""

from __future__ import annotations

import secrets
from typing import Any

import msgspec

from kons.serve.log import Kind, Record
from kons.serve.problems import Problem

__all__ = ["decoded", "record_of", "row_of"]

#: Letters of an id, of a column's name, of a text in a cell.
LONGEST_ID, LONGEST_NAME, LONGEST_TEXT = 200, 200, 4096
#: Whole numbers beyond are taken as floating point, as JSON's are elsewhere.
LARGEST_WHOLE = 2**53
#: Of records by kind: what there has to be, and what there may be besides.
FIELDS: dict[str, tuple[set[str], set[str]]] = {
    "predict": ({"x"}, {"id"}),
    "label": ({"id", "y"}, set()),
    "learn": ({"x", "y"}, {"id"}),
}


def decoded(body: bytes) -> Any:
    """A JSON document."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Problem(400, f"the body is no JSON ({error}).") from None


def record_of(kind: Kind, item: Any) -> Record | Problem:
    """One item as a record, or what is wrong with it; one without an id is given one to be labelled by."""
    try:
        needed, more = FIELDS[kind]
        if not isinstance(item, dict):
            raise Problem(422, f"an item is {_shown(item)}, expected an object with {_named(needed)}.")
        if missing := sorted(needed - item.keys()):
            raise Problem(422, f"{missing[0]!r} is missing: expected an object with {_named(needed)}.")
        if unknown := sorted(item.keys() - needed - more):
            raise Problem(422, f"{unknown[0][:50]!r} is not known: expected {_named(needed | more)}.")
        id = _id(item["id"]) if item.get("id") is not None else None
        if kind == "predict" and id is None:
            id = secrets.token_hex(8)
        if kind == "label" and id is None:
            raise Problem(422, "id is null, expected that of a row that was predicted.")
        x = None if kind == "label" else row_of(item["x"])
        y = None if kind == "predict" else _label(item["y"])
        return Record(kind, id, 0.0, x, y)
    except Problem as problem:
        return problem


def row_of(x: Any) -> Any:
    """A row: an object of numbers, texts, booleans and nulls, or a list of numbers and nulls."""
    if isinstance(x, dict):
        return {_column(name): _cell(value, name) for name, value in x.items()}
    if isinstance(x, list) and x:
        row = [_cell(value, str(i)) for i, value in enumerate(x)]
        for i, value in enumerate(row):
            if isinstance(value, (str, bool)):
                raise Problem(
                    422, f"x[{i}] is {_shown(value)}: name the columns, or send numbers.", column=str(i)
                )
        return row
    raise Problem(422, f"x is {_shown(x)}, expected an object: column -> value.")


def _column(name: str) -> str:
    if not 0 < len(name) <= LONGEST_NAME:
        raise Problem(
            422, f"a column's name has {len(name):,} letters, expected 1 to {LONGEST_NAME}.", column=name[:50]
        )
    return name


def _cell(value: Any, name: str) -> Any:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return _number(value, f"the column {name[:50]!r}", name)
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        raise Problem(
            422,
            f"the column {name[:50]!r} has {len(value):,} letters, at most {LONGEST_TEXT:,}.",
            column=name[:200],
        )
    if value is None or isinstance(value, (str, bool)):
        return value
    raise Problem(
        422,
        f"the column {name[:50]!r} is {_shown(value)}, expected a number, text, true, false or null.",
        column=name[:200],
    )


def _number(value: float, what: str, column: str | None = None) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = float("inf")
    if number - number != 0.0:
        raise Problem(422, f"{what} is no finite number.", column=column)
    return value if abs(value) <= LARGEST_WHOLE else number


def _label(y: Any) -> Any:
    if isinstance(y, list) and y and all(type(value) in (int, float) for value in y):
        return [float(_number(value, "y")) for value in y]
    if type(y) in (int, float):
        return _number(y, "y")
    if isinstance(y, bool) or (isinstance(y, str) and len(y) <= LONGEST_TEXT):
        return y
    raise Problem(422, f"y is {_shown(y)}, expected a number, or a label: text, true or false.")


def _id(id: Any) -> int | str:
    if isinstance(id, str) and 0 < len(id) <= LONGEST_ID:
        return id
    if type(id) is int and -(2**63) <= id < 2**63:
        return id
    raise Problem(422, f"id is {_shown(id)}, expected text of 1 to {LONGEST_ID} letters, or a whole number.")


def _shown(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    kinds = {dict: "an object", list: "a list", str: "text", int: "a number", float: "a number"}
    return kinds[type(value)]


def _named(names: set[str]) -> str:
    return ", ".join(sorted(names))
