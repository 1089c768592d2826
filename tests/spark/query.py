"""A driver of its own, for tests that kill it: ``query.py MASTER FOLDER`` follows FOLDER/in to its end."""

import sys

from sensors import SCHEMA

from conftest import session
from kons.spark import keyed, write_once


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


if __name__ == "__main__":
    main(*sys.argv[1:])
