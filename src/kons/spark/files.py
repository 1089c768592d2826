"""Files as a stream of Spark's, each cell read as kons reads it: by the plan made of the first file.

Spark cuts the files and hands on their cells, of CSV as text. What a cell means (gaps, decimal commas, dates)
the plan says, as in ``kons run``, so that a model learned here reads the same files anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
)

from kons.spark.session import quoted
from kons.streams import Plan
from kons.streams.arrow import column_of
from kons.streams.chunks import Chunk, Tally, Texts, Values, sound
from kons.tables.cells import ColumnFormat
from kons.tables.moments import NOT_A_TIME

__all__ = ["BROKEN", "PLACE", "planned", "raw_csv", "raw_parquet"]

#: A line that is no row, as it stands, and what rows are sorted by.
BROKEN, PLACE = "kons broken", "kons place"
KINDS: dict[str, DataType] = {
    "number": DoubleType(),
    "flag": BooleanType(),
    "date": TimestampNTZType(),
    "text": StringType(),
}


def raw_csv(
    spark: SparkSession,
    folder: Path,
    names: list[str],
    columns: list[str],
    options: Mapping[str, Any],
    most: int | None,
) -> DataFrame:
    """Files of a folder, by name, as text; a line with another number of fields is there as a whole."""
    schema = StructType([StructField(name, StringType()) for name in [*columns, BROKEN]])
    stream = spark.readStream.schema(schema).options(
        quote='"', escape='"', mode="PERMISSIVE", columnNameOfCorruptRecord=BROKEN, **options
    )
    return _of(stream, names, most).csv(_literal(str(folder)))


def raw_parquet(spark: SparkSession, folder: Path, names: list[str], most: int | None) -> DataFrame:
    """Files of a folder, by name, with the types of the first."""
    # Spark has no nanoseconds, which is how pandas writes moments: they come as whole numbers.
    spark.conf.set("spark.sql.legacy.parquet.nanosAsLong", "true")
    schema = spark.read.parquet(_literal(str(folder / names[0]))).schema
    frame: DataFrame = _of(spark.readStream.schema(schema), names, most).parquet(_literal(str(folder)))
    for field in pq.read_schema(folder / names[0]):
        if str(field.type).startswith("timestamp[ns"):
            frame = frame.withColumn(field.name, F.expr(f"timestamp_micros({quoted(field.name)} div 1000)"))
    return frame.withColumn(BROKEN, F.lit(None).cast("string"))


def planned(frame: DataFrame, plan: Plan, *, whole: bool = False) -> DataFrame:
    """The columns that the plan reads; a cell that cannot be read is null, and of a broken line all are.

    ``whole``: labels that are whole numbers; others are none.
    """
    wanted = plan.read()
    kinds = [KINDS[column.kind] for column in wanted]
    if whole:
        kinds = [
            LongType() if column.name == plan.target else kind
            for column, kind in zip(wanted, kinds, strict=True)
        ]
    fields = [StructField(column.name, kind) for column, kind in zip(wanted, kinds, strict=True)]
    told = [column.name for column in wanted]
    selected = frame.select(*(F.col(quoted(name)).alias(f"c{i}") for i, name in enumerate([*told, BROKEN])))
    return selected.mapInArrow(
        _reading(wanted, plan.target if whole else None),
        StructType([*fields, StructField(BROKEN, StringType())]),
    )


def _of(stream: Any, names: list[str], most: int | None) -> Any:
    if len(names) == 1:
        stream = stream.option("pathGlobFilter", _literal(names[0]))
    return stream if most is None else stream.option("maxFilesPerTrigger", most)


def _literal(name: str) -> str:
    """A name, of which Spark reads each letter as it is."""
    return re.sub(r"([*?\[\]{}\\])", r"\\\1", name)


def _reading(
    wanted: tuple[ColumnFormat, ...], whole: str | None
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            broken = batch.column(len(wanted))
            lines = np.arange(batch.num_rows, dtype=np.int64)
            columns = {one.name: column_of(batch.column(i), one)[0] for i, one in enumerate(wanted)}
            chunk = sound(Chunk(lines, columns), wanted, lambda line: f"row {line}", Tally("gap"))
            known = np.array(broken.is_null().to_pylist(), dtype=bool)
            arrays = [_as_arrow(chunk.columns[one.name], one.kind, known) for one in wanted]
            if whole is not None:
                place = [one.name for one in wanted].index(whole)
                labels = np.asarray(chunk.columns[whole])
                there = known & (np.floor(labels) == labels)
                arrays[place] = pa.array(np.where(there, labels, 0.0).astype(np.int64), mask=~there)
            yield pa.RecordBatch.from_arrays([*arrays, broken.cast(pa.string())], names=[*columns, BROKEN])

    return read


def _as_arrow(values: Values, kind: str, known: Any) -> Any:
    """Nothing where nothing is there, or the whole line is none."""
    if isinstance(values, Texts):
        codes = np.where(known, values.codes, -1)
        places = pa.array(np.maximum(codes, 0), mask=codes < 0)
        return pa.DictionaryArray.from_arrays(places, pa.array(list(values.values), pa.string())).cast(
            pa.string()
        )
    gaps = ~known | (values == NOT_A_TIME if kind == "date" else np.isnan(values))
    if kind == "date":
        return pa.array(values, mask=gaps).cast(pa.timestamp("us"))
    return pa.array(values == 1.0 if kind == "flag" else values, mask=gaps)
