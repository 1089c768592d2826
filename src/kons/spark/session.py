"""A session of Spark's with the settings that learners in its state store want."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from kons.errors import ConfigurationError

__all__ = ["SETTINGS", "line_of", "quoted", "session"]

_STATE = "spark.sql.streaming.stateStore"
#: Of SQL, for any session: RocksDB's store, of which a micro-batch writes what changed.
SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "true",  # as the columns of files are
    f"{_STATE}.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    f"{_STATE}.rocksdb.changelogCheckpointing.enabled": "true",
}
# Of a session of our own: one thread a process, and a quiet standard error.
OWN = {
    "spark.executorEnv.OPENBLAS_NUM_THREADS": "1",
    "spark.log.level": "ERROR",
    "spark.ui.showConsoleProgress": "false",
}


@contextmanager
def session(master: str | None = None, name: str = "kons") -> Iterator[SparkSession]:
    """The active session, or one of its own, on a master or as Spark's own settings say, which is stopped.

    Its partitions are as many as there are cores.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    active = SparkSession.getActiveSession()
    builder = SparkSession.builder.appName(name)
    for key, value in (OWN | ({} if master is None else {"spark.master": master})).items():
        builder = builder.config(key, value)
    try:
        spark = active or builder.getOrCreate()
        for key, value in SETTINGS.items():
            spark.conf.set(key, value)
        spark.conf.set("spark.sql.shuffle.partitions", str(spark.sparkContext.defaultParallelism))
    except Exception as error:
        raise ConfigurationError(
            f"Spark could not be started ({line_of(error)}): is Java 17 or newer installed, and is master "
            f"{master or 'not given, and'} as Spark knows it?"
        ) from error
    try:
        yield spark
    finally:
        if active is None:
            spark.stop()


def quoted(name: str) -> str:
    """The name of a column as Spark takes it, whatever letters it has.

    >>> quoted("a.b`c")
    '`a.b``c`'
    """
    return "`" + name.replace("`", "``") + "`"


def line_of(error: BaseException) -> str:
    """The first line of what Spark says that means something."""
    lines = [line.strip(" :") for line in str(error).splitlines() if line.strip()]
    told = lines[1:2] if lines and lines[0].startswith("An error occurred while calling") else lines
    return (told or [type(error).__name__])[0][:300]
