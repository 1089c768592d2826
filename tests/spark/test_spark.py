"""On a master with two workers: what one process says, bit for bit. `make test` runs this file only."""

import datetime as dt
from itertools import pairwise

import pandas as pd
import pytest
from pyspark.errors import StreamingQueryException
from sensors import SCHEMA, one_process, sensors, write_in_order

from kons import AutoKONS
from kons.errors import ConfigurationError
from kons.spark import keyed, learners_in, write_once

SAID = ["prediction", "lower", "upper", "loss", "novelty"]


def run(spark, folder, parts, buckets, **options):
    """A stream of files, one a micro-batch, and what came out."""
    incoming = folder / "in"
    write_in_order(parts, incoming)
    stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(incoming))
    answer = keyed(stream, key="sensor", target="y", order="t", buckets=buckets, **options)
    query = (
        answer.writeStream.foreachBatch(write_once(str(folder / "out")))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(300)
    return spark.read.parquet(str(folder / "out")).toPandas()


@pytest.mark.parametrize(("buckets", "cuts"), [(2, (120,)), (5, (50, 51))])
def test_a_key_is_learned_as_in_one_process_bit_for_bit(spark, tmp_path, buckets, cuts):
    frame = sensors(180, 6)
    places = [0, *cuts, len(frame)]
    shuffled = [frame[a:b].sample(frac=1.0, random_state=1) for a, b in pairwise(places)]
    found = run(spark, tmp_path, shuffled, buckets)
    said, own = one_process(frame)
    assert sorted(found["t"]) == list(range(180))
    assert found["skipped"].isna().all()
    for row in found.to_dict("records"):
        assert tuple(row[name] for name in SAID) == said[row["t"]]
    met = set()
    for bucket in learners_in(spark, str(tmp_path / "checkpoint")):
        for key in bucket.keys:
            met.add(key)
            x = {"load": 0.3, "day": "tue"}
            assert bucket.predict_one({"sensor": key} | x) == own[key].predict_one(x)
    assert met == set(own)


def test_a_batch_frame_is_a_single_micro_batch(spark):
    frame = sensors(80, 3)
    frame["sensor"] = frame["sensor"].str[1:].astype(int)
    rows = spark.createDataFrame(frame).repartition(3)
    found = keyed(rows, key="sensor", target="y", order="t").toPandas()
    said, _ = one_process(frame)
    assert {row["t"]: tuple(row[name] for name in SAID) for row in found.to_dict("records")} == said


def test_broken_rows_are_counted_and_the_query_goes_on(spark, tmp_path):
    frame = sensors(60, 2)
    frame.loc[[40, 41], "sensor"] = None
    frame.loc[42, "y"] = float("inf")
    found = run(spark, tmp_path, [frame[:30], frame[20:]], 3)
    assert len(found) == 70
    reasons = found.groupby(found["skipped"].fillna("").str[:4])["t"].count().to_dict()
    assert {name: reasons.pop(name) for name in ("", "late", "no k")} == {"": 57, "late": 10, "no k": 2}
    assert list(reasons.values()) == [1]
    said, _ = one_process(frame.drop(index=[40, 41, 42]))
    learned = found[found["skipped"].isna()]
    assert {row["t"]: row["prediction"] for row in learned.to_dict("records")} == {
        t: one[0] for t, one in said.items()
    }
    with pytest.raises(StreamingQueryException, match="buckets is 5, and the state of this query was made"):
        run(spark, tmp_path, [frame], 5)


def test_moments_far_away_are_gaps_and_large_whole_numbers_stay_as_they_are(spark):
    days = [dt.datetime(2024, 1, 1 + i) for i in range(8)]
    days[3], days[4] = dt.datetime(9999, 12, 31, 1, 2, 3, 4), None
    numbers = [2**63 - 1, -(2**63), None, 2**62 + 1, 2**62 + 3, 5, 6, 7]
    rows = [
        (None if i == 2 else 2**60 + i, "a", day, day, number, float(i))
        for i, (day, number) in enumerate(zip(days, numbers, strict=True))
    ]
    schema = "t long, k string, day timestamp, plain timestamp_ntz, number long, y double"
    found = keyed(spark.createDataFrame(rows, schema), key="k", target="y", order="t").collect()
    assert {row.t: (row.day, row.plain, row.number) for row in found} == {row[0]: row[2:5] for row in rows}
    assert [row.skipped for row in found if row.t is None] == ["no order"]
    own = AutoKONS("regression", effort="tiny")
    for row in sorted((row for row in found if row.t is not None), key=lambda row: row.t):
        day = None if row.day is None or row.day.year > 2262 else pd.Timestamp(row.day)
        x = {"day": day, "plain": day, "number": row.number}
        assert (row.skipped, row.prediction) == (None, own.predict_one(x))
        own.learn_one(x, row.y)


def test_what_cannot_be_is_refused_before_anything_runs(spark):
    frame = spark.createDataFrame(sensors(5, 2))
    good = {"key": "sensor", "target": "y", "order": "t"}
    for changes, said in (
        ({"key": "senzor"}, "key is 'senzor', and the frame has the columns t, sensor"),
        ({"key": "load"}, "key 'load' is double, expected text or whole numbers"),
        ({"order": "day"}, "order 'day' is string, expected numbers, dates or times"),
        ({"learner": "automatic"}, "learner is 'automatic'"),
        ({"buckets": 0}, "buckets is 0"),
    ):
        with pytest.raises(ConfigurationError, match=said):
            keyed(frame, **good | changes)
    with pytest.raises(ConfigurationError, match="'loss', which is added here"):
        keyed(frame.withColumnRenamed("load", "loss"), **good)
