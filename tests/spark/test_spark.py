"""On a master with two workers: what one process says, bit for bit; parts of the rows as all of them."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sensors import SCHEMA, one_process, sensors

import kons
from kons import AutoKONS, Gaussian, Linear
from kons.dictionaries import SQUEAK
from kons.errors import ConfigurationError
from kons.policies import Leverage
from kons.spark import dictionary, fit_embedded, keyed, learners_in, score, write_once

SAID = ["prediction", "lower", "upper", "loss", "novelty"]


def run(spark, folder, parts, buckets, **options):
    """A stream of files, one a micro-batch, and what came out."""
    incoming = folder / "in"
    incoming.mkdir(parents=True)
    for i, part in enumerate(parts):
        part.to_parquet(incoming / f"{i:03d}.parquet", index=False)
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


def test_a_saved_model_is_a_column(spark, tmp_path):
    frame = sensors(120, 2)
    model, records = AutoKONS("regression", effort="tiny"), frame.drop(columns=["t", "y"]).to_dict("records")
    model.advance(records, frame["y"].to_numpy())
    kons.save(model, tmp_path / "model.kons")
    rows = spark.createDataFrame(frame)
    columns = ["sensor", "load", "day"]
    scored = rows.withColumn("p", score(rows, str(tmp_path / "model.kons"), columns=columns)).toPandas()
    expected = model.predict(records)
    assert np.abs(scored.sort_values("t")["p"].to_numpy() - expected).max() <= 1e-9 * np.ptp(expected)
    with pytest.raises(ConfigurationError, match="'lod', and the frame has t, sensor"):
        score(rows, model, columns=["lod"])


def points(rows):
    X = np.random.default_rng(3).normal(size=(rows, 2))
    return X, np.sin(2 * X[:, 0]) * X[:, 1]


def test_dictionaries_of_partitions_are_merged_up_a_tree(spark):
    X, _ = points(4000)
    frame = spark.createDataFrame(spark.sparkContext.parallelize(X.tolist(), 5), "a double, b double")
    eps = 0.5
    given = {"regularization": 10.0, "policy": Leverage(50.0, distortion=eps)}
    found = dictionary(frame, Linear(), columns=["a", "b"], **given)
    assert (dictionary(frame, Linear(), columns=["a", "b"], **given).atoms == found.atoms).all()
    assert found.rows_seen == 4000
    alone = SQUEAK(Linear(), **given)
    alone.update(X)
    assert found.size < 2 * alone.size < 1000  # in theory (1 + 3 eps)/(1 + eps) times
    # Theorem 2: the eigenvalues of A^-1 A^I are within eps of 1. The features are the rows themselves.
    ridge = 10.0 * np.eye(2)
    root = np.linalg.inv(np.linalg.cholesky(ridge + X.T @ X))
    kept = found.atoms.T @ (found.atoms * found.weights[:, None])
    apart = np.abs(np.linalg.eigvalsh(root @ (ridge + kept) @ root.T) - 1.0).max()
    assert 1e-3 < apart < eps


@pytest.mark.parametrize("parts", [1, 7])
def test_a_ridge_of_partitions_is_that_of_all_rows_and_goes_on_online(spark, tmp_path, parts):
    X, y = points(100_300)
    old, new = slice(100_000), slice(100_000, None)
    pd.DataFrame({"a": X[old, 0], "b": X[old, 1], "y": y[old]}).to_parquet(tmp_path / "rows.parquet")
    frame = spark.read.parquet(str(tmp_path / "rows.parquet")).repartition(parts)
    kernel, alpha = Gaussian(0.5), 1e-3
    atoms = np.array([(a, b) for a in np.linspace(-2, 2, 6) for b in np.linspace(-2, 2, 6)])
    learner = fit_embedded(frame, kernel, columns=["a", "b"], target="y", atoms=atoms, regularization=alpha)
    L = np.linalg.cholesky(kernel.gram(atoms))
    Z = np.linalg.solve(L, kernel.evaluate(X, atoms).T).T

    def ridge(rows):
        tall = np.vstack([np.sqrt(2.0) * Z[rows], np.sqrt(alpha) * np.eye(36)])
        told = np.concatenate([np.sqrt(2.0) * y[rows], np.zeros(36)])
        return Z[old] @ np.linalg.lstsq(tall, told, rcond=None)[0]

    assert learner.rows_seen == 100_000
    assert np.abs(learner.predict(X[old]) - ridge(old)).max() < 1e-8 * np.ptp(y)
    kons.save(learner, tmp_path / "ridge.kons")
    again = kons.load(tmp_path / "ridge.kons")
    again.advance(X[new], y[new])
    assert np.abs(again.predict(X[old]) - ridge(slice(None))).max() < 1e-8 * np.ptp(y)


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
