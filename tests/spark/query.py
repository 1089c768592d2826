"""A driver of its own, for tests that kill it: ``query.py MASTER FOLDER`` follows FOLDER/in to its end.

At the end the learners of each bucket are in FOLDER/models, as files.
"""

import sys
from pathlib import Path

from sensors import SCHEMA

import kons
from conftest import session
from kons.spark import keyed, learners_in, write_once


def main(master, folder):
    write = write_once(f"{folder}/out")

    def tell_and_write(frame, batch):
        print("batch", batch, flush=True)  # whoever waits for it may kill somebody now
        write(frame, batch)

    with session(master) as spark:
        stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(f"{folder}/in")
        answer = keyed(stream, key="sensor", target="y", order="t", buckets=3)
        query = answer.writeStream.foreachBatch(tell_and_write).option(
            "checkpointLocation", f"{folder}/checkpoint"
        )
        query.trigger(availableNow=True).start().awaitTermination()
        Path(folder, "models").mkdir()
        for i, bucket in enumerate(learners_in(spark, f"{folder}/checkpoint")):
            kons.save(bucket, Path(folder, "models", f"{i}.kons"))


if __name__ == "__main__":
    main(*sys.argv[1:])
