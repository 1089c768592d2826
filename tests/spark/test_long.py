"""Hundreds of micro-batches: what Spark keeps on disk and in memory stays as it is."""

from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from sensors import SCHEMA, sensors, write_in_order

from kons.spark import keyed, learners_in, write_once

BATCHES = 300
KEYS = 8


def files_in(folder):
    """How many, and the bytes of the largest; some may go meanwhile.

    Not of the source: which files were read Spark's log of it says for ten minutes.
    """
    sizes = [0]
    for file in Path(folder).rglob("*"):
        with suppress(OSError):
            sizes += [file.stat().st_size] if file.is_file() and "sources" not in file.parts else []
    return len(sizes), max(sizes)


def memory(cluster, word):
    """Resident bytes of the processes of both workers with the word in their command."""
    total = 0
    for worker in cluster.workers:
        for process in psutil.Process(worker.process.pid).children(recursive=True):
            with suppress(psutil.Error):
                if any(word in part for part in process.cmdline()):
                    total += process.memory_info().rss
    return total


@pytest.mark.soak
def test_checkpoint_and_memory_stay_as_they_are(spark, cluster, tmp_path):
    frame = sensors(2 * KEYS * BATCHES, KEYS)
    parts = (frame.iloc[2 * KEYS * i : 2 * KEYS * (i + 1)] for i in range(BATCHES))
    write_in_order(parts, tmp_path / "in")
    write, met = write_once(str(tmp_path / "out")), []

    def write_and_measure(rows, batch):
        write(rows, batch)
        words = ("pyspark.daemon", "CoarseGrainedExecutorBackend")
        met.append((*files_in(tmp_path / "checkpoint"), *(memory(cluster, word) for word in words)))

    stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    answer = keyed(stream, key="sensor", target="y", order="t", buckets=4)
    query = answer.writeStream.foreachBatch(write_and_measure)
    query = (
        query.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    )
    query.awaitTermination()
    state = sum(len(bucket.to_bytes()) for bucket in learners_in(spark, str(tmp_path / "checkpoint")))
    print(met[::20], f"{state:,}")
    assert len(met) == BATCHES
    # Learners still grow, so that old versions of them are counted; how many wait to be removed, which Spark
    # does by the clock, depends on how fast batches are. No file holds more than the state of all keys.
    assert max(largest for _, largest, _, _ in met) <= state
    for which, most in ((0, 1.5), (2, 1.1), (3, 1.25)):
        early, late = (max(one[which] for one in part) for part in (met[50:150], met[200:]))
        assert late <= most * early
