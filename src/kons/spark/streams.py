"""A learner per key, on streaming and batch frames."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.streaming.state import GroupStateTimeout
from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    NumericType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from kons.arrays import require_integer
from kons.errors import ConfigurationError
from kons.files import from_bytes, to_bytes
from kons.keyed import Keyed
from kons.keyed.bucket import LARGEST, Answer, Bucket, Plan
from kons.learners.auto import AutoKONS
from kons.learners.protocol import as_learner
from kons.spark.session import quoted

__all__ = ["keyed", "learners_in"]

#: Columns that rows have on their way: the key as text, its bucket, and what rows are sorted by.
KEY, BUCKET, ORDER = "__kons_key", "__kons_bucket", "__kons_order"
#: What pandas would lose goes beside it, as text: moments far away, whole numbers that a null makes floats.
FAR = "__kons_far"
MOMENTS, WIDE = ("1678-01-01", "2262-01-01"), (-(2**53), 2**53)
#: For no whole number that rows are sorted by.
NO_PLACE = -(2**63)
ADDED = Answer._fields
BUCKETS = 64
#: A bucket without keys to which one row in so many goes, too. It refuses another number of buckets: keys
#: would go to some that have no state yet, and begin anew without a word.
WATCH, WATCHED = -1, 8
WHOLE: tuple[type[DataType], ...] = (ByteType, ShortType, IntegerType, LongType)
FEATURES: tuple[type[DataType], ...] = (
    NumericType,
    StringType,
    BooleanType,
    DateType,
    TimestampType,
    TimestampNTZType,
)


def keyed(
    frame: DataFrame,
    *,
    key: str,
    target: str,
    order: str,
    learner: Any = "auto",
    effort: str = "tiny",
    features: Sequence[str] | None = None,
    buckets: int | None = None,
    idle: float | None = None,
    largest: int = LARGEST,
) -> DataFrame:
    """A learner for each key: the frame with what was predicted of each row before it was learned.

    Added are ``prediction``, ``lower`` and ``upper`` (nine times in ten the target is between them),
    ``loss``, ``novelty``, and ``skipped``: null, or why a row was not learned; see
    :class:`~kons.keyed.bucket.Bucket`. A key sees its rows only, in ``order``, without these columns and the
    target; whatever the buckets and micro-batches, its predictions and its learner are bit for bit those of
    ``predict_one`` and ``learn_one`` over its rows in one process. In a stream an older row that comes in a
    later batch is late. A call of a worker is a bucket of keys, whose learners are one value in Spark's
    state store; a row costs what it costs anywhere, and a key with rows in a micro-batch some milliseconds.
    Not for one key with most of the rows: a learner is serial.

    Parameters
    ----------
    frame:
        Rows, in a stream or at once.
    key:
        A column of text or whole numbers.
    target:
        Numbers; text, booleans, or anything with a learner of labels, are labels.
    order:
        What rows are sorted by: numbers, dates or times.
    learner:
        ``"auto"`` is :class:`~kons.AutoKONS`; or any that :class:`~kons.Keyed` takes.
    effort:
        Of ``"auto"``.
    features:
        The columns that are learned from; all others of numbers, text, flags, dates and times if not given.
    buckets:
        64 if not given. Fixed for as long as a checkpoint lives.
    idle:
        In units of ``order`` (of times, seconds): a key that is silent for longer begins anew.
    largest:
        Bytes of the state of a bucket.
    """
    types = {field.name: field.dataType for field in frame.schema.fields}
    for name, column in (("key", key), ("target", target), ("order", order)):
        if column not in types:
            raise ConfigurationError(
                f"{name} is {column!r}, and the frame has the columns {', '.join(types)}.", parameter=name
            )
    if not isinstance(types[key], (*WHOLE, StringType)):
        raise ConfigurationError(
            f"key {key!r} is {types[key].simpleString()}, expected text or whole numbers."
        )
    if taken := [name for name in types if name in (*ADDED, KEY, BUCKET, ORDER)]:
        raise ConfigurationError(f"the frame has a column {taken[0]!r}, which is added here: rename it.")
    made = _learner(learner, effort, types[target])
    labelled = bool(as_learner(made).labelled)
    if not labelled and not isinstance(types[target], (NumericType, BooleanType)):
        raise ConfigurationError(f"target {target!r} is {types[target].simpleString()}, expected numbers.")
    sorted_by, unit = _order(order, types[order])
    used = (key, target, order)
    fit = [name for name in types if name not in used and isinstance(types[name], FEATURES)]
    if wrong := [name for name in features or () if name not in fit]:
        raise ConfigurationError(f"features names {wrong[0]!r}, expected some of {', '.join(fit)}.")
    plan = Plan(
        learner=to_bytes(made),
        key=key,
        target=target,
        features=tuple(fit if features is None else features),
        columns=tuple((name, kind.simpleString()) for name, kind in types.items()),
        buckets=require_integer(BUCKETS if buckets is None else buckets, "buckets", at_least=1),
        idle=None if idle is None else float(idle) * unit,
        largest=require_integer(largest, "largest", at_least=1),
        whole=labelled and isinstance(types[target], WHOLE),
    )
    Bucket(plan, 0)  # a learner that Keyed does not take is refused here, not by a worker
    kinds = [types[target] if labelled else DoubleType(), *[DoubleType()] * 4, StringType()]
    # On the way columns have plain names: PySpark looks into those with points.
    plain = _plain_names(plan)
    sent, far = _sent(types, plain)
    answer = StructType(
        [
            *(StructField(name, kind) for name, kind in zip(plain, types.values(), strict=True)),
            *(StructField(name, kind) for name, kind in zip(ADDED, kinds, strict=True)),
            *(StructField(FAR + name, StringType()) for name in far),
        ]
    )
    prepared = frame.select(
        *sent,
        F.col(quoted(key)).cast("string").alias(KEY),
        sorted_by.alias(ORDER),
        *far.values(),
    )
    # Spark's hash of the text is the same on all machines and in all sessions.
    bucket = F.pmod(F.xxhash64(KEY), F.lit(plan.buckets)).cast("int")
    if not frame.isStreaming:
        grouped = prepared.withColumn(BUCKET, bucket).groupBy(BUCKET)
        return _arrived(grouped.applyInPandas(_batch(plan), answer), types, plain, far)
    watched = F.pmod(F.xxhash64(KEY, ORDER), F.lit(WATCHED)) == 0
    places = F.when(watched, F.array(bucket, F.lit(WATCH))).otherwise(F.array(bucket))
    grouped = prepared.withColumn(BUCKET, F.explode(places)).groupBy(BUCKET)
    answered = grouped.applyInPandasWithState(
        _stream(plan), answer, "learners binary", "append", GroupStateTimeout.NoTimeout
    )
    return _arrived(answered, types, plain, far)


def learners_in(spark: SparkSession, checkpoint: str) -> Iterator[Keyed]:
    """The learners of a stopped query, bucket by bucket, from its checkpoint: ``kons.save`` writes each.

    A key is known here by its text.
    """
    values = spark.read.format("statestore").load(checkpoint).select("value.*")
    for row in values.toLocalIterator():
        data = next(field for field in _flat(row) if isinstance(field, (bytes, bytearray)))
        if len(learners := Bucket.learners_in(bytes(data))):
            yield learners


def _flat(row: Any) -> Iterator[Any]:
    for field in row:
        if isinstance(field, tuple):
            yield from _flat(field)
        else:
            yield field


def _sent(types: dict[str, DataType], plain: list[str]) -> tuple[list[Any], dict[str, Any]]:
    """The columns on their way, and what cannot go it, by the names of their columns."""
    sent, far = [], {}
    for (name, kind), short in zip(types.items(), plain, strict=True):
        column = F.col(quoted(name))
        if isinstance(kind, (TimestampType, TimestampNTZType, LongType)):
            ends = WIDE if isinstance(kind, LongType) else MOMENTS
            near = column.between(*(F.lit(end).cast(kind) for end in ends))
            far[short] = F.when(~near, column.cast("string")).alias(FAR + short)
            column = F.when(near, column)
        sent.append(column.alias(short))
    return sent, far


def _arrived(answered: DataFrame, types: dict[str, DataType], plain: list[str], far: Any) -> DataFrame:
    """The columns as they were given, and what was added."""
    columns = [
        F.coalesce(F.col(short), F.col(FAR + short).cast(kind)) if short in far else F.col(short)
        for short, kind in zip(plain, types.values(), strict=True)
    ]
    return answered.select(*(c.alias(name) for c, name in zip(columns, types, strict=True)), *ADDED)


def _batch(plan: Plan) -> Callable[[Any, pd.DataFrame], pd.DataFrame]:
    def follow(number: Any, rows: pd.DataFrame) -> pd.DataFrame:
        return _followed(Bucket(plan, int(number[0])), rows)

    return follow


def _stream(plan: Plan) -> Callable[..., Iterator[pd.DataFrame]]:
    def follow(number: Any, parts: Iterator[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
        bucket = Bucket(plan, int(number[0]), bytes(state.get[0]) if state.exists else None)
        if bucket.number == WATCH:
            for _ in parts:
                pass
            state.update((bucket.to_bytes(),))
            return
        answered = _followed(bucket, pd.concat(list(parts), ignore_index=True))
        state.update((bucket.to_bytes(),))
        yield answered

    return follow


def _followed(bucket: Bucket, rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with what their learners say, before each was learned."""
    plan = bucket.plan
    names, plain_names = [name for name, _ in plan.columns], _plain_names(plan)
    far = rows[[name for name in rows if name.startswith(FAR)]]
    rows = rows.rename(columns=dict(zip(plain_names, names, strict=True)))
    cells = rows[[*plan.features, plan.target]].to_dict("records")
    for short, (name, kind) in zip(plain_names, plan.columns, strict=True):
        if kind == "bigint" and name in (*plan.features, plan.target):  # a moment far away is a gap
            for i, text in enumerate(far[FAR + short]):
                cells[i] |= {name: int(text)} if isinstance(text, str) else {}
    targets = [_plain(x.pop(plan.target)) for x in cells]
    if plan.whole:  # pandas has them as floats where one of them is null
        targets = [y if y is None or y != y else int(y) for y in targets]
    plain = [{name: _plain(value) for name, value in x.items()} for x in cells]
    answers = pd.DataFrame(
        bucket.follow(zip(rows[KEY].tolist(), _places(rows[ORDER]), plain, targets, strict=True)),
        columns=list(ADDED),
        index=rows.index,
        dtype=object,
    )
    numbers = [*ADDED[1:-1], *([] if bucket.keyed.labelled else [ADDED[0]])]
    answers[numbers] = answers[numbers].astype("float64")
    answered = pd.concat([rows[names], answers, far], axis=1)
    answered.columns = [*plain_names, *ADDED, *far]
    return answered


def _places(order: pd.Series) -> list[Any]:
    """What rows are sorted by, None where there is nothing."""
    places = order.tolist()
    return [None if place == NO_PLACE else place for place in places] if order.dtype.kind == "i" else places


def _plain_names(plan: Plan) -> list[str]:
    return [f"c{i}" for i in range(len(plan.columns))]


def _plain(value: Any) -> Any:
    """A cell as Python has it: decimals are numbers, and what is no time is nothing."""
    return None if value is pd.NaT else float(value) if isinstance(value, Decimal) else value


def _learner(learner: Any, effort: str, target: DataType) -> Any:
    if isinstance(learner, str):
        if learner != "auto":
            raise ConfigurationError(f'learner is {learner!r}, expected "auto" or a learner of kons.')
        labels = isinstance(target, (StringType, BooleanType))
        return AutoKONS("classification" if labels else "regression", effort=effort)  # type: ignore[arg-type]
    return from_bytes(to_bytes(learner))


def _order(name: str, kind: DataType) -> tuple[Any, int]:
    """What rows are sorted by as a number, and how much of it is one of ``idle``."""
    column = F.col(quoted(name))
    if isinstance(kind, (TimestampType, TimestampNTZType)):
        return _whole(F.unix_micros(column.cast("timestamp"))), 1_000_000
    if isinstance(kind, DateType):
        return _whole(F.unix_date(column)), 1
    if isinstance(kind, WHOLE):
        return _whole(column), 1
    if isinstance(kind, NumericType) and not isinstance(kind, DecimalType):
        return column.cast("double"), 1
    raise ConfigurationError(f"order {name!r} is {kind.simpleString()}, expected numbers, dates or times.")


def _whole(column: Any) -> Any:
    return F.coalesce(column.cast("long"), F.lit(NO_PLACE))
