"""On a master with two workers: a saved model as a column; parts of the rows as all of them."""

import numpy as np
import pandas as pd
import pytest
from sensors import sensors

import kons
from kons import AutoKONS, Gaussian, Linear
from kons.dictionaries import SQUEAK
from kons.errors import ConfigurationError
from kons.policies import Leverage
from kons.spark import dictionary, fit_embedded, score


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
