"""Simulated sensors, a learner for each, and a live table of those that are predicted worst.

::

    python -m kons.spark.example                      until Ctrl-C, on the cores of this machine
    python -m kons.spark.example --master spark://HOST:PORT --sensors 5000 --rows 20

Each sensor has a curve of its own over temperature and hour. One in ten is loud, which nobody can predict.
From the fifth micro-batch on sensor 7 measures with an offset, which its learner has learned some rows later.
"""

from __future__ import annotations

import argparse
import math
import shutil
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from kons.spark.session import session
from kons.spark.streams import keyed

__all__ = ["main", "readings"]

WORST = 10
OFFSET_AT = 4
ROW = "{:>8} {:>8} {:>12} {:>12} {:>8}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Start it; see ``--help``."""
    told = argparse.ArgumentParser(prog="python -m kons.spark.example", description=__doc__.split("\n")[0])
    told.add_argument("--master", help="of Spark; all cores of this machine if not given")
    told.add_argument("--sensors", type=int, default=40)
    told.add_argument("--rows", type=int, default=12, help="of each sensor in a micro-batch (12)")
    told.add_argument("--batches", type=int, help="stop after so many; at Ctrl-C if not given")
    asked = told.parse_args(arguments)
    folder, table = tempfile.mkdtemp(prefix="kons-sensors-"), _Table()
    try:
        with session(asked.master) as spark:
            answer = keyed(
                readings(spark, asked.sensors, asked.rows), key="sensor", target="load", order="hour"
            )
            query = answer.writeStream.foreachBatch(table.show).option("checkpointLocation", folder).start()
            while not query.awaitTermination(0.2) and table.batches != asked.batches:
                pass
            query.stop()
    except KeyboardInterrupt:
        print()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def readings(spark: SparkSession, sensors: int, rows: int) -> DataFrame:
    """So many rows of each sensor in a micro-batch; one that is repeated has the same."""
    rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", sensors * rows).load()
    sensor, hour = F.col("value") % sensors, F.floor(F.col("value") / sensors)

    def uniform(which: int) -> Any:
        """In (-1/2, 1/2), by the number of the row."""
        return F.pmod(F.xxhash64("value", F.lit(which)), F.lit(1 << 20)) / float(1 << 20) - 0.5

    turn = 2.0 * math.pi * hour / 24.0
    degrees = 15.0 + 10.0 * F.sin(turn) + 8.0 * uniform(0)
    noise = F.when(sensor % 10 == 3, 12.0).otherwise(1.0) * (uniform(1) + uniform(2))
    offset = F.when((sensor == 7) & (hour >= OFFSET_AT * rows), 25.0).otherwise(0.0)
    load = 20.0 + F.sin(sensor) * (degrees - 18.0) + 6.0 * F.cos(turn + sensor) + noise + offset
    return rate.select(
        hour.alias("hour"),
        F.format_string("s%d", sensor).alias("sensor"),
        (hour % 24).alias("o_clock"),
        degrees.alias("degrees"),
        load.alias("load"),
    )


class _Table:
    """Of all sensors so far, those with the largest losses in the last micro-batch."""

    def __init__(self) -> None:
        self.batches = 0
        self._sums: dict[str, tuple[int, float]] = {}

    def show(self, frame: DataFrame, batch: int) -> None:
        """For ``foreachBatch``."""
        inside = F.col("load").between(F.col("lower"), F.col("upper")).cast("double")
        last = frame.groupBy("sensor").agg(
            F.count("loss").alias("rows"), F.avg("loss").alias("loss"), F.avg(inside).alias("inside")
        )
        found = last.collect()
        for one in found:
            rows, loss = self._sums.get(one.sensor, (0, 0.0))
            self._sums[one.sensor] = rows + one.rows, loss + one.rows * (one.loss or 0.0)
        if sys.stdout.isatty():
            print("\033[H\033[J", end="")
        rows = sum(rows for rows, _ in self._sums.values())
        print(f"micro-batch {batch}: {rows:,} rows of {len(self._sums):,} sensors so far; the worst now:\n")
        print(ROW.format("sensor", "rows", "loss now", "loss so far", "inside"))
        for one in sorted(found, key=lambda one: -(one.loss or 0.0))[:WORST]:
            rows, loss = self._sums[one.sensor]
            share = f"{one.inside or 0.0:.0%}"
            print(ROW.format(one.sensor, f"{rows:,}", f"{one.loss:.3g}", f"{loss / max(rows, 1):.3g}", share))
        print(flush=True)
        self.batches += 1


if __name__ == "__main__":
    main()
