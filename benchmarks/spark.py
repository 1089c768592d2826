"""``kons.spark`` beside plain processes: two workers beside one, keys in a micro-batch, where the time goes.

    python -m benchmarks.spark [--quick]        in an environment with PySpark: make bench-spark

Two executors of one core each, started by Spark as processes of their own. CPU time is that of all processes,
by what the system says of them, so that it means something on a machine that others use, too; walls are
interleaved.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psutil

from benchmarks.reporting import Figure, Report
from benchmarks.subjects import warm_up
from kons import AutoKONS, Keyed
from kons.spark import keyed, streams

SCHEMA = "t long, sensor long, a double, b double, y double"
GIVEN = {"key": "sensor", "target": "y", "order": "t"}
#: Keys and rows of each in a micro-batch.
BATCHES = ((1, 1000), (100, 10), (10_000, 1))
#: Micro-batches, of which the last half count: before, the JVM compiles itself.
PLAYED, LARGE = 8, 2
SHARE = 0.8
#: What the commands of Spark's processes have: the Python workers', the executors' and the driver's.
SPARK = ("pyspark.daemon", "CoarseGrainedExecutorBackend", "SparkSubmit")


def rows_of(keys: int, each: int, first: int = 0) -> pd.DataFrame:
    """So many rows of each key, in turn."""
    rng, rows = np.random.default_rng(first), keys * each
    a, b = rng.normal(size=(2, rows))
    return pd.DataFrame(
        {
            "t": first + np.arange(rows),
            "sensor": np.arange(rows) % keys,
            "a": a,
            "b": b,
            "y": np.sin(a) + 0.1 * b,
        }
    )


def in_one_process(frame: pd.DataFrame) -> float:
    """What a worker does with the rows, without Spark; CPU seconds."""
    began = time.process_time()
    learners = Keyed(AutoKONS(effort="tiny"), "sensor", live=1)
    for row in frame.sort_values(["sensor", "t"])[["sensor", "a", "b", "y"]].to_dict("records"):
        y = row.pop("y")
        learners.predict_one(row)
        learners.predict_interval_one(row)
        learners.novelty([row])
        learners.learn_one(row, y)
    return time.process_time() - began


# ---- two workers beside one


def speed_up(spark: Any, quick: bool) -> Report:
    """Wall time by one and by two, of Spark and of plain processes, interleaved."""
    keys, each = (60, 50) if quick else (200, 50)
    frame = rows_of(keys, each)
    halves = [frame[frame["sensor"] % 2 == i] for i in range(2)]
    spark.conf.set("spark.sql.adaptive.enabled", "false")  # it would make one part of two
    with (
        tempfile.TemporaryDirectory() as folder,
        multiprocessing.get_context("spawn").Pool(2, warm_up) as pool,
    ):
        frame.to_parquet(f"{folder}/rows.parquet", index=False)

        def by_spark(parts: int) -> list[float]:
            before = [processor_times(word) for word in SPARK]
            spark.conf.set("spark.sql.shuffle.partitions", str(parts))
            rows = spark.read.schema(SCHEMA).parquet(folder)
            keyed(rows, **GIVEN, buckets=200).write.format("noop").mode("overwrite").save()
            after = [processor_times(word) for word in SPARK]
            jvm = sum(sum(b.values()) - sum(a.values()) for a, b in zip(before[1:], after[1:], strict=True))
            return [jvm + max(spent - before[0].get(pid, 0.0) for pid, spent in after[0].items())]

        # Each says the CPU seconds of its busiest process; of Spark, those of all JVMs with it, as if they
        # stood in a line.
        played: dict[str, Callable[[], list[float]]] = {
            "plain, 1": lambda: pool.map(in_one_process, [frame], chunksize=1),
            "plain, 2": lambda: pool.map(in_one_process, halves, chunksize=1),
            "Spark, 1": lambda: by_spark(1),
            "Spark, 2": lambda: by_spark(2),
        }
        played["Spark, 2"]()  # its workers start, and compile nothing later
        pool.map(in_one_process, [part[:100] for part in halves], chunksize=1)
        walls: dict[str, list[float]] = {name: [] for name in played}
        busiest: dict[str, list[float]] = {name: [] for name in played}
        for _ in range(2 if quick else 3):
            for name, play in played.items():
                began = time.perf_counter()
                busiest[name].append(max(play()))
                walls[name].append(time.perf_counter() - began)
    figures = []
    for clock, seconds in (("wall", walls), ("CPU", busiest)):
        plain, spark_ = (
            statistics.median(a / b for a, b in zip(seconds[f"{who}, 1"], seconds[f"{who}, 2"], strict=True))
            for who in ("plain", "Spark")
        )
        figures += [
            Figure(f"plain, {clock}", plain, "speed-up of two, median of pairs"),
            Figure(f"Spark, {clock}", spark_, "speed-up of two, median of pairs"),
            Figure(
                f"share, {clock}",
                spark_ / plain,
                "of the plain speed-up",
                f"at least {SHARE}",
                spark_ / plain >= SHARE,
            ),
        ]
    return Report(
        question="How much faster are two workers than one, beside two plain processes on the same cores?",
        data=f"{keys} keys of {each} rows, {1e6 * min(busiest['plain, 1']) / len(frame):.0f} us a row; batch",
        columns=("", "wall s, median", "wall s, least", "CPU s of the busiest"),
        table=[
            [name, statistics.median(each), min(each), statistics.median(busiest[name])]
            for name, each in walls.items()
        ],
        figures=figures,
        notes=[
            "CPU seconds of the busiest are what the wall is where nobody else is there; Spark's have those "
            "of all JVMs, which partly work side by side"
        ],
    )


# ---- keys in a micro-batch, and where the time goes


def processor_time(word: str) -> float:
    """CPU seconds so far of the processes below this one whose command has the word."""
    return sum(processor_times(word).values())


def processor_times(word: str) -> dict[int, float]:
    """The same by process."""
    found = {}
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if any(word in part for part in process.cmdline()):
                told = process.cpu_times()
                found[process.pid] = told.user + told.system
    return found


def watched(accumulator: Any, follow: Callable[..., Any]) -> Callable[..., Iterator[pd.DataFrame]]:
    """A bucket's function that tells how much CPU time it took."""

    def timed(number: Any, parts: Iterator[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
        rows = [pd.concat(list(parts), ignore_index=True)]
        began = time.process_time()
        answer = list(follow(number, iter(rows), state))
        accumulator.add(time.process_time() - began)
        yield from answer

    return timed


def micro_batches(spark: Any, quick: bool) -> Report:
    """Some micro-batches for each number of keys, each of which loads what the one before it made."""
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    table, shares = [], []
    for keys, each in BATCHES:
        if quick and keys > 100:
            keys //= 20
        frames = [rows_of(keys, each, i * keys * each) for i in range(PLAYED if keys < 1000 else LARGE)]
        print(f"... {keys:,} keys", *shares[-1:], file=sys.stderr)
        table.append([keys, each, *by_stream(spark, keys, frames, shares), one_process_ms(keys, frames)])
    for row in table:
        row.append(row[-1] / (1e3 / row[2]) / 2)
    return Report(
        question="What does a row cost in a stream, by keys in a micro-batch, beside one process?",
        data="two executors of a core; two columns; the last half of the micro-batches",
        columns=(
            *(
                "keys",
                "rows each",
                "rows/s",
                "ms a key and batch",
                "CPU ms a row",
                "CPU ms a row, one process",
            ),
            "rate beside 2 processes",
        ),
        table=table,
        notes=shares,
    )


def by_stream(spark: Any, keys: int, frames: list[pd.DataFrame], shares: list[str]) -> tuple[float, ...]:
    """Rows a second, ms a key and micro-batch, CPU ms a row; says where the CPU time went."""
    spent = spark.sparkContext.accumulator(0.0)
    kept = streams._stream
    streams._stream = lambda plan: watched(spent, kept(plan))  # type: ignore[assignment]
    marks: list[tuple[float, ...]] = []

    def look(frame: Any, batch: int) -> None:
        began = time.perf_counter()
        frame.write.format("noop").mode("overwrite").save()
        driver = processor_time("SparkSubmit")
        executors = processor_time("CoarseGrainedExecutorBackend")
        marks.append(
            (time.perf_counter() - began, spent.value, processor_time("pyspark.daemon"), executors, driver)
        )

    try:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "in").mkdir()
            for i, frame in enumerate(frames):
                frame.to_parquet(f"{folder}/in/{i}.parquet", index=False)
            rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(f"{folder}/in")
            query = (
                keyed(rows, **GIVEN, buckets=200 if keys > 1000 else 64)
                .writeStream.foreachBatch(look)
                .option("checkpointLocation", f"{folder}/checkpoint")
                .trigger(availableNow=True)
                .start()
            )
            query.awaitTermination()
            told = query.recentProgress
    finally:
        streams._stream = kept
    half = len(frames) // 2
    count = half * len(frames[0])
    counted = told[len(frames) - half : len(frames)]
    wall = sum(batch["durationMs"]["triggerExecution"] for batch in counted) / 1e3
    ours, python, executors, driver = (
        b - a for a, b in zip(marks[-1 - half][1:], marks[-1][1:], strict=True)
    )
    store = sum(operator["commitTimeMs"] for batch in counted for operator in batch["stateOperators"]) / 1e3
    total = python + executors + driver
    parts = {
        "ours": ours,
        "Arrow, pandas, pipes": python - ours,
        "JVM, executors": executors,
        "JVM, driver": driver,
    }
    shares.append(
        f"{keys:,} keys: CPU {total:.1f} s, of which "
        + ", ".join(f"{name} {100 * part / total:.0f} %" for name, part in parts.items())
        + f"; of {2 * wall:.1f} s of tasks' wall the state store's commits took {store:.1f}"
    )
    return count / wall, 1e3 * wall / half / keys, 1e3 * total / count


def one_process_ms(keys: int, frames: list[pd.DataFrame]) -> float:
    """CPU ms a row of one process that parks all learners between two batches, as Spark does."""
    learners = Keyed(AutoKONS(effort="tiny"), "sensor", live=1)
    spent = []
    for frame in frames:
        began = time.process_time()
        for row in frame.sort_values(["sensor", "t"])[["sensor", "a", "b", "y"]].to_dict("records"):
            y = row.pop("y")
            learners.predict_one(row)
            learners.predict_interval_one(row)
            learners.novelty([row])
            learners.learn_one(row, y)
        learners.park()
        spent.append(time.process_time() - began)
    half = len(frames) // 2
    return 1e3 * sum(spent[-half:]) / (half * len(frames[0]))


def main() -> None:
    """Print both reports."""
    told = argparse.ArgumentParser(prog="python -m benchmarks.spark")
    told.add_argument("--quick", action="store_true", help="small sizes, goals not judged")
    told.add_argument("--only", choices=("speed_up", "micro_batches"))
    asked = told.parse_args()
    from pyspark.sql import SparkSession

    from kons.spark.session import SETTINGS

    warm_up()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join([os.getcwd(), os.environ.get("PYTHONPATH", "")])
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").appName("benchmarks")
    own = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "1g",
        "spark.log.level": "ERROR",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.executorEnv.OPENBLAS_NUM_THREADS": "1",
    }
    for name, value in (own | SETTINGS).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    try:
        for play in (speed_up, micro_batches):
            if asked.only in (None, play.__name__):
                report = play(spark, asked.quick)
                report.show(judged=not asked.quick)
                report.save(f"spark_{play.__name__}")
                print()
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
