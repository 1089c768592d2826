"""What all estimators share: rows as scikit-learn checks them, seeds, files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.validation import _check_y, validate_data

from kons.arrays import Matrix, as_points
from kons.errors import FileError, InputError
from kons.learners.labels import object_array
from kons.stored import Stored
from kons.tables import TypedRecords, is_table, records_of

__all__ = ["Saved", "checked_rows", "checked_table", "seed_of"]


class Saved(BaseEstimator):  # type: ignore[misc]
    """Files: the features that ``fit`` met, and what a subclass has learned of them."""

    _fitted = ""
    """The attribute that ``fit`` makes."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def state(self) -> dict[str, Any]:
        """What was learned, beside the parameters, for :func:`kons.save`. A copy."""
        if not hasattr(self, self._fitted):
            return {"fitted": None}
        if repr(self._fresh()) != repr(getattr(self, self._fitted)):
            raise FileError(
                "its parameters were changed by set_params after it was fitted, and do not describe what was "
                "learned: fit it again, or set them back, before it is saved."
            )
        names = getattr(self, "feature_names_in_", None)
        features = {"width": int(self.n_features_in_), "names": None if names is None else [*map(str, names)]}
        return {"fitted": features | self._learned()}

    @classmethod
    def from_state(cls, parameters: dict[str, Any], state: dict[str, Any]) -> Self:
        """The inverse of ``get_params(deep=False)`` and :meth:`state`: it goes on bit for bit."""
        estimator = cls(**parameters)
        outer = Stored(state, cls.__name__)
        fitted = outer.take("fitted")
        outer.finish()
        if fitted is None:
            return estimator
        stored = Stored(fitted, f"{cls.__name__}, fitted")
        width = estimator.n_features_in_ = stored.integer("width", at_least=1)
        names = stored.take("names")
        if names is not None:
            if not isinstance(names, list) or [type(name) for name in names] != [str] * width:
                raise stored.error(f"names are not a text for each of {width} features")
            estimator.feature_names_in_ = object_array(names)
        estimator._load(stored)
        learned = getattr(estimator, cls._fitted)
        encoder = learned.encoder
        seen = learned._width if encoder is None else len(encoder.columns)
        if encoder is not None and not encoder.unnamed:  # some columns may never have had a value
            seen = width if set(encoder.columns) <= set(names or ()) else seen
        if seen not in (None, width):
            raise stored.error(f"what was learned has other features than {width}")
        stored.finish()
        return estimator

    def _fresh(self) -> Any:
        """What would learn now, by the parameters."""
        raise NotImplementedError

    def _learned(self) -> dict[str, Any]:
        raise NotImplementedError

    def _load(self, stored: Stored) -> None:
        """Take what :meth:`_learned` said."""
        raise NotImplementedError


def checked_rows(estimator: Any, X: Any, y: Any = "no_validation", **more: Any) -> Any:
    """X, and y if there is one, as scikit-learn checks them; sparse rows are made dense, which is told."""
    checked = validate_data(estimator, X, y, accept_sparse=("csr", "csc"), dtype=np.float64, **more)
    if isinstance(y, str) and y == "no_validation":
        return _dense(checked)
    return _dense(checked[0]), checked[1]


def _dense(X: Any) -> Matrix:
    return X if type(X) is np.ndarray else as_points(X)


def checked_table(estimator: Any, X: Any, y: Any = "no_validation", *, reset: bool, **more: Any) -> Any:
    """As :func:`checked_rows`, with gaps; the rows of a frame as records, their columns known by name."""
    asked = isinstance(y, str) and y == "no_validation"
    known = None if reset else getattr(estimator, "feature_names_in_", None)
    if not _has_names(X) or (known is None and not reset):
        checked = checked_rows(estimator, X, y, reset=reset, ensure_all_finite="allow-nan", **more)
        rows = checked if asked else checked[0]
        if known is not None:  # scikit-learn has told that they have no names: by their places
            columns = {name: np.ascontiguousarray(rows[:, i]) for i, name in enumerate(known.tolist())}
            rows = TypedRecords(columns, dict.fromkeys(columns, "number"), len(rows))
        return rows if asked else (rows, checked[1])
    if known is not None and set(X.columns) == set(known):
        X = X[list(known)]  # in another order they are the same columns
    validate_data(estimator, X, y, reset=reset, skip_check_array=True)
    encoder = None if reset else estimator.model_.encoder
    records = records_of(X, None if encoder is None else encoder.columns)
    if not len(records):
        raise InputError("X has 0 sample(s), while a minimum of 1 is required: pass some rows.")
    if asked:
        return records
    kind = {name: more[name] for name in ("y_numeric", "multi_output") if name in more}
    targets = _check_y(y, **kind, estimator=estimator)
    check_consistent_length(X, targets)
    return records, targets


def _has_names(X: Any) -> bool:
    """Whether it is a frame whose columns are called something; numbers are places, as in arrays."""
    if isinstance(X, (Mapping, list, tuple)) or not is_table(X) or hasattr(X, "column_names"):
        return False
    return all(isinstance(name, str) for name in X.columns)


def seed_of(random_state: Any) -> int:
    """None is 0: what was not asked for does not vary."""
    if random_state is None:
        return 0
    if isinstance(random_state, (int, np.integer)):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))
