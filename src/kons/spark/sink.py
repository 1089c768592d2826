"""A sink in which each micro-batch is once, whatever Spark repeats after a failure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["write_once"]


def write_once(folder: str) -> Callable[[Any, int], None]:
    """For ``foreachBatch``: batch 7 is the Parquet folder ``batch=7``, which a repetition writes anew.

    Spark repeats the batch in which it was killed, with the same number and, of :func:`kons.spark.keyed`,
    the same rows. ``spark.read.parquet(folder)`` reads all, with the number as the column ``batch``.
    """

    def write(frame: Any, batch: int) -> None:
        frame.write.mode("overwrite").parquet(f"{folder}/batch={batch}")

    return write
