"""A saved model as a column of a frame."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.types import DoubleType, StringType

from kons.errors import ConfigurationError
from kons.files import from_bytes, load, to_bytes
from kons.learners.protocol import as_learner
from kons.spark.session import quoted

__all__ = ["score"]

# The model that this worker used last: a query has one, and a worker lives for many tasks.
_loaded: dict[int, Any] = {}


def score(frame: DataFrame, model: Any, *, columns: Sequence[str] | None = None) -> Column:
    """What a model predicts of each row, as a column.

    ``frame.withColumn("prediction", score(frame, model))``. The model is sent to each worker once, and
    loaded there once; rows are asked in Arrow's batches. Labels come as text.

    Parameters
    ----------
    frame:
        The rows.
    model:
        A learner of kons, or the path of a ``.kons`` file.
    columns:
        The model's, in its order; all of the frame if it is not given.
    """
    learner = load(model) if isinstance(model, (str, PathLike)) else model
    names = list(frame.columns if columns is None else columns)
    if missing := [name for name in names if name not in frame.columns]:
        raise ConfigurationError(
            f"columns names {missing[0]!r}, and the frame has {', '.join(frame.columns)}."
        )
    data = to_bytes(learner)
    named = takes_names(learner)
    sent = frame.sparkSession.sparkContext.broadcast(data)
    labelled = as_learner(learner).labelled

    def predict(batches: Iterator[pd.DataFrame]) -> Iterator[pd.Series]:
        model = _model(sent.value)
        for rows in batches:
            given = rows.to_dict("records") if named else rows.to_numpy(dtype=np.float64)
            found = model.predict(given)
            yield pd.Series([str(label) for label in found] if labelled else found)

    column = F.pandas_udf(predict, StringType() if labelled else DoubleType())
    scored: Column = column(F.struct(*[F.col(quoted(name)) for name in names]))
    return scored


def takes_names(learner: Any) -> bool:
    """Whether a learner's rows are dicts of columns, raw, and not arrays."""
    encoder = getattr(learner, "encoder", None)
    return as_learner(learner).accepts == "objects" or (encoder is not None and not encoder.unnamed)


def _model(data: bytes) -> Any:
    digest = zlib.crc32(data)
    if digest not in _loaded:
        _loaded.clear()
        _loaded[digest] = from_bytes(data)
    return _loaded[digest]
