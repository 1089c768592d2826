"""Rows of simulated sensors, and what one process says of them, a learner for each."""

import os

import numpy as np
import pandas as pd

from kons import AutoKONS

SCHEMA = "t long, sensor string, load double, day string, y double"


def sensors(rows, keys, seed=0):
    rng = np.random.default_rng(seed)
    which, load, heat = rng.integers(keys, size=rows), rng.normal(size=rows), rng.normal(size=rows)
    return pd.DataFrame(
        {
            "t": np.arange(rows),
            "sensor": [f"s{k}" for k in which],
            "load": load,
            "day": np.where(heat > 0, "mon", "tue"),
            "y": np.sin(load) + which * (heat > 0),
        }
    )


def one_process(frame):
    """Prediction, lower, upper, loss and novelty of each row, by ``t``; and the learners."""
    own, said = {}, {}
    for row in frame.to_dict("records"):
        learner = own.setdefault(row["sensor"], AutoKONS("regression", effort="tiny"))
        x = {name: row[name] for name in ("load", "day")}
        prediction = learner.predict_one(x)
        lower, upper = learner.predict_interval_one(x)
        novelty = learner.novelty([x])[0]
        said[row["t"]] = prediction, lower, upper, (prediction - row["y"]) ** 2, novelty
        learner.learn_one(x, row["y"])
    return said, own


def write_in_order(parts, folder):
    """Files behind those that are there, each a second younger: Spark takes them by their milliseconds."""
    folder.mkdir(parents=True, exist_ok=True)
    for i, part in enumerate(parts, len(list(folder.iterdir()))):
        part.to_parquet(folder / f"{i:03d}.parquet", index=False)
        os.utime(folder / f"{i:03d}.parquet", (1_700_000_000 + i,) * 2)
