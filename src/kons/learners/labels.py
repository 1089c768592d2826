"""Class labels of any kind, numbered in order of first appearance."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Integers
from kons.errors import InputError
from kons.state import Field, Sizes
from kons.stored import Stored

__all__ = [
    "Codes",
    "KnownLabels",
    "Labels",
    "as_label",
    "as_labels",
    "object_array",
    "stored_labels",
]

Codes = Integers
#: Types of labels that are plain Python values already.
PLAIN = frozenset({str, int, bool})


class Labels:
    """The labels known so far, whose codes are 0, 1, 2, ...; -1 stands for any other, and for None.

    >>> labels = Labels()
    >>> labels.learn(["no", "yes", "no"]).tolist(), labels.known
    ([0, 1, 0], ['no', 'yes'])
    >>> labels.find(["yes", "perhaps"]).tolist()
    [1, -1]
    >>> labels.decode([1, -1]).tolist()
    ['yes', None]
    """

    def __init__(self, known: Iterable[Any] = ()) -> None:
        self.known: list[Any] = []
        self._codes: dict[Any, int] = {}
        for label in known:
            self._add(label)

    def __len__(self) -> int:
        return len(self.known)

    def code(self, label: Any) -> int | None:
        """The code of a label, or None if it is new."""
        return self._codes.get(label)

    def find(self, labels: Any) -> Codes:
        """The codes of labels, -1 for those not known. Changes nothing."""
        values = labels.tolist() if isinstance(labels, np.ndarray) else labels
        code = self._codes.get
        try:
            return np.array([code(label, -1) for label in values], dtype=np.int64)
        except TypeError:  # a label that cannot be looked up: refused where labels are learned
            return np.full(len(values), -1, dtype=np.int64)

    def learn(self, labels: Any, closed: bool = False) -> Codes:
        """The codes of labels; new ones get the next, or are refused. So are None and NaN."""
        codes = self.find(labels)
        if codes.min(initial=0) < 0:
            plain = as_labels(labels, len(codes))
            if closed:
                new = next(label for label in plain if label not in self._codes)
                raise InputError(f"y holds {new!r}, which is not among classes={self.known!r}.")
            for label in plain:
                self._add(label)
            codes = self.find(plain)
        return codes

    def decode(self, codes: Any) -> NDArray[Any]:
        """The labels of codes, as an array of objects."""
        return object_array([*self.known, None])[np.asarray(codes, dtype=np.int64)]

    @property
    def positive(self) -> int:
        """Of the first two labels, the code of the larger: True, 1, "yes"; of two alike, of the second.

        >>> Labels(["yes", "no"]).positive, Labels([2, "10"]).positive, Labels([1, "1"]).positive
        (0, 0, 1)
        """
        if len(self) < 2:
            return 1
        first, second = self.known[:2]
        try:
            return 0 if first > second else 1
        except TypeError:
            return 0 if str(first) > str(second) else 1

    def truncate(self, count: int) -> None:
        """Forget the labels behind the first ``count``."""
        for label in self.known[count:]:
            del self._codes[label]
        del self.known[count:]

    def _add(self, label: Any) -> None:
        if label not in self._codes:
            self._codes[label] = len(self.known)
            self.known.append(label)


class KnownLabels(Field):
    """An attribute that is :class:`Labels`, which only grow; their number is the symbol ``classes``."""

    undoes = True

    def save(self, part: Any, name: str) -> Any:
        return list(getattr(part, name).known)

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        labels = Labels(stored_labels(stored, key))
        sizes["classes"] = len(labels)
        return labels

    def mark(self, part: Any, name: str) -> Any:
        return len(getattr(part, name))

    def restore(self, part: Any, name: str, mark: Any) -> None:
        getattr(part, name).truncate(mark)


def as_label(value: Any, name: str = "y") -> Any:
    """A label as a plain Python value; None, NaN and what cannot be looked up are refused."""
    if type(value) in PLAIN:
        return value
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, (np.datetime64, np.timedelta64)):
        pass  # those in nanoseconds would become whole numbers
    elif isinstance(value, np.generic):
        value = value.item()
        value = float(value) if isinstance(value, np.floating) else value  # a long double stays one
    elif isinstance(value, str):
        value = str(value)
    if value is None or (isinstance(value, numbers.Real) and value != value):
        raise InputError(f"{name} is {value!r}, expected a class label: drop the row, or name its class.")
    try:
        hash(value)
        missing = not bool(value == value)  # NaT, NA
    except TypeError:
        missing = True
    if missing:
        raise InputError(
            f"{name} is {value!r} ({type(value).__name__}), expected a label such as text or a number."
        )
    return value


def as_labels(y: Any, rows: int, name: str = "y") -> list[Any]:
    """One label per row, as a list of plain Python values."""
    if isinstance(y, (str, bytes, Mapping, Set)):
        raise InputError(f"{name} is a {type(y).__name__}, expected a sequence of labels, one per row.")
    if isinstance(y, np.ma.MaskedArray) and np.ma.is_masked(y):
        raise InputError(f"{name} has masked values, expected labels: drop those rows first.")
    if hasattr(y, "to_pylist") and not hasattr(y, "columns"):  # of Arrow, whose own values no file can hold
        y = y.to_pylist()
    shape: tuple[int, ...] = tuple(getattr(y, "shape", (rows,)))
    if len(shape) == 2 and shape[1] == 1:
        y = np.asarray(y)[:, 0]
    elif len(shape) != 1:
        raise InputError(f"{name} has shape {shape}, expected one label per row: ({rows},).")
    try:
        # Lists of NumPy's own make plain values fastest; dates stay what they are.
        values = list(y.tolist() if isinstance(y, np.ndarray) and y.dtype.kind in "biufUS" else y)
    except TypeError:
        raise InputError(f"{name} is a {type(y).__name__}, expected a sequence of labels.") from None
    if len(values) != rows:
        raise InputError(f"{name} has {len(values)} label(s), X has {rows} row(s): expected one per row.")
    if isinstance(y, np.ndarray) and (y.dtype.kind in "biuU" or (y.dtype.kind == "f" and _plain(y))):
        return values  # nothing to refuse among them
    return [
        value if type(value) in PLAIN else as_label(value, f"{name}[{i}]") for i, value in enumerate(values)
    ]


def _plain(y: NDArray[Any]) -> bool:
    """Whether floats become plain Python's, none of them NaN."""
    return y.dtype.itemsize <= 8 and not bool(np.isnan(y).any())


def stored_labels(stored: Stored, name: str) -> list[Any]:
    """Labels that were saved, all different."""
    values = stored.items(name)
    try:
        labels = [as_label(value, name) for value in values]
    except InputError as error:
        raise stored.error(str(error).rstrip(".")) from error
    if len(Labels(labels)) != len(labels):
        raise stored.error(f"{name} are not all different")
    return labels


def object_array(labels: list[Any]) -> NDArray[Any]:
    """Labels as an array of objects, tuples among them."""
    array = np.empty(len(labels), dtype=object)
    for i, label in enumerate(labels):  # an assignment at once would unpack tuples
        array[i] = label
    return array
