"""A table with named columns, column by column, as the dicts of its rows would be read."""

from __future__ import annotations

from typing import Any

import numpy as np

from kons.arrays import Matrix, Vector
from kons.errors import InputError
from kons.river.values import as_number, as_text, as_value

__all__ = ["Table"]


class Table:
    """The columns of a frame, read when they are asked for: of pandas, or of any library narwhals knows.

    >>> import pandas as pd
    >>> Table(pd.DataFrame({"a": [1.0, None], "b": ["red", "blue"]})).numbers("a")
    array([ 1., nan])
    """

    def __init__(self, X: Any) -> None:
        self._pandas = hasattr(X, "iloc") and hasattr(X, "columns")
        if not self._pandas:
            X = _by_narwhals(X)
        self._frame = X
        self.names: list[Any] = list(X.columns)
        self._columns = {n: X.iloc[:, i] if self._pandas else X[n] for i, n in enumerate(self.names)}
        self._read: dict[tuple[str, Any], Any] = {}
        if len(self._columns) < len(self.names):
            twice = next(name for name in self.names if self.names.count(name) > 1)
            raise InputError(f"X has the column {twice!r} more than once, expected each name once.")

    def __len__(self) -> int:
        return len(self._frame)

    def __contains__(self, name: Any) -> bool:
        return name in self._columns

    # ---- columns

    def numbers(self, name: Any) -> Vector:
        """A column of numbers, NaN where one is missing."""
        key = ("numbers", name)
        if key not in self._read:
            plain = self._plain(name)
            if plain is None:
                found = [as_number(value, name) for value in self._values(name)]
                plain = np.array([np.nan if number is None else number for number in found], np.float64)
            self._read[key] = plain
        column: Vector = self._read[key]
        return column

    def texts(self, name: Any) -> list[str | None]:
        """A column of text, None where it is missing."""
        key = ("texts", name)
        if key not in self._read:
            self._read[key] = [as_text(value, name) for value in self._values(name)]
        column: list[str | None] = self._read[key]
        return column

    def first_value(self, name: Any, start: int) -> int:
        """The first row from ``start`` on in which a column is not missing; the number of rows if none is."""
        plain = self._plain(name)
        if plain is not None:
            known = np.flatnonzero(~np.isnan(plain[start:]))
            return start + int(known[0]) if len(known) else len(self)
        values = self._values(name)
        return next((i for i in range(start, len(self)) if as_value(values[i], name) is not None), len(self))

    def row(self, row: int) -> dict[Any, Any]:
        """One row as a dict."""
        return {name: self._values(name)[row] for name in self.names}

    # ---- what goes back

    def series(self, values: list[Any], kind: str | None = None) -> Any:
        """One value per row, as a series of the frame's own library."""
        if self._pandas:
            import pandas as pd

            return pd.Series(values, index=self._frame.index, dtype=kind)
        import narwhals as nw

        made = nw.new_series("prediction", values, backend=nw.get_native_namespace(self._frame))
        return made.to_native()

    def frame(self, values: Matrix, names: list[Any]) -> Any:
        """Some numbers per row, as a frame of that library; names are text where it has no others."""
        if self._pandas:
            import pandas as pd

            return pd.DataFrame(values, index=self._frame.index, columns=names)
        import narwhals as nw

        columns = {str(name): values[:, i] for i, name in enumerate(names)}
        return nw.from_dict(columns, backend=nw.get_native_namespace(self._frame)).to_native()

    # ---- inside

    def _plain(self, name: Any) -> Vector | None:
        """A column that the frame says is of numbers; None if it says something else."""
        key = ("plain", name)
        if key not in self._read:
            column = self._columns[name]
            numbers: Any = None
            if self._pandas:
                if getattr(column.dtype, "kind", "O") in "biuf":
                    numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
            elif column.dtype.is_float() or column.dtype.is_integer():
                numbers = np.array([np.nan if v is None else v for v in self._values(name)], np.float64)
            if numbers is not None and np.isinf(numbers).any():
                as_value(float(numbers[np.isinf(numbers)][0]), name)  # says so
            self._read[key] = numbers
        return self._read[key]  # type: ignore[no-any-return]

    def _values(self, name: Any) -> list[Any]:
        key = ("values", name)
        if key not in self._read:
            column = self._columns[name]
            self._read[key] = column.tolist() if self._pandas else column.to_list()
        values: list[Any] = self._read[key]
        return values


def _by_narwhals(X: Any) -> Any:
    try:
        import narwhals as nw

        return nw.from_native(X, eager_only=True)
    except (ImportError, TypeError):
        raise InputError(
            f"X is a {type(X).__name__}, expected a frame, such as pandas.DataFrame, with one row per "
            "example: for one example there are learn_one and predict_one."
        ) from None
