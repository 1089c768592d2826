"""Whoever is killed, at whatever batch: predictions and learners are those of a run in which nobody was.

One query loses a Python worker, an executor, a daemon of a worker and its driver, each in a batch of its own.
"""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import pytest
from sensors import one_process, sensors, write_in_order
from spark_found import PATIENCE

import effort
import kons
from kons import AutoKONS, Keyed

SAID = ["prediction", "lower", "upper", "loss", "novelty"]
BATCHES = 6
VICTIMS = ["python worker", "executor", "worker daemon", "driver"]


def children(cluster, word):
    """Of the two workers: processes whose command has this word."""
    found = []
    for worker in cluster.workers:
        for process in psutil.Process(worker.process.pid).children(recursive=True):
            with suppress(psutil.Error):  # it ended meanwhile
                if any(word in part for part in process.cmdline()):
                    found.append(process)
    return found


def kill(cluster, victim, driver):
    """Kill one of them, as kill -9 does."""
    if victim == "driver":
        driver.kill()
        gone = children(cluster, "CoarseGrainedExecutorBackend")
        assert not psutil.wait_procs(gone, timeout=PATIENCE)[1]
    elif victim == "worker daemon":
        lost = cluster.workers.pop(0)
        executors = psutil.Process(lost.process.pid).children(recursive=True)
        lost.process.kill()
        assert not psutil.wait_procs(executors, timeout=PATIENCE)[1]
        lost.stop()
        cluster.workers.append(cluster.start_worker(2))
    else:
        word = {"python worker": "pyspark.daemon", "executor": "CoarseGrainedExecutorBackend"}[victim]
        while not (processes := children(cluster, word)):  # behind another kill it may still be starting
            with suppress(subprocess.TimeoutExpired):
                pytest.fail(f"no {victim} was there, and the driver ended with {driver.wait(0.1)}")
        processes[-1].send_signal(signal.SIGKILL)


@pytest.fixture
def start(cluster, tmp_path):
    """What starts a driver; none is left for the next test, whatever becomes of this one."""
    drivers = []
    yield lambda: drivers.append(started(cluster, tmp_path)) or drivers[-1]
    for driver in drivers:
        driver.kill()
        driver.communicate()


def started(cluster, folder):
    script = Path(__file__).parent / "query.py"
    return subprocess.Popen(
        [sys.executable, script, cluster.url, folder],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | cluster.environment,
    )


def keyed_in_one_process(frame, keys):
    """The learners of these keys after all rows, in the order in which a bucket learns them."""
    learners = Keyed(AutoKONS("regression", effort="tiny"), "sensor", live=1)
    for part in np.array_split(np.arange(len(frame)), BATCHES):
        rows = frame.iloc[part].sort_values(["sensor", "t"])
        for row in rows[rows["sensor"].isin(keys)].to_dict("records"):
            learners.learn_one({name: row[name] for name in ("sensor", "load", "day")}, row["y"])
    return learners


@pytest.mark.parametrize("seed", range(20) if effort.is_soak() else [0])
def test_nothing_is_lost_and_nothing_is_twice(cluster, start, tmp_path, seed):
    rng = np.random.default_rng(seed)
    frame = sensors(120, 4, seed)
    parts = np.array_split(np.arange(len(frame)), BATCHES)
    write_in_order((frame.iloc[part] for part in parts), tmp_path / "in")
    victims = dict(zip(rng.choice(np.arange(BATCHES), 4, replace=False).tolist(), VICTIMS, strict=True))
    driver = start()
    while victims:
        at = next((int(line.split()[1]) for line in driver.stdout if line.startswith("batch ")), None)
        assert at is not None, driver.communicate()[1][-3000:]
        if (victim := victims.pop(at, None)) is not None:
            kill(cluster, victim, driver)
        if victim == "driver":
            driver.communicate()
            driver = start()
    errors = driver.communicate(timeout=PATIENCE)[1]
    assert driver.returncode == 0, errors[-3000:]
    assert not cluster.others()
    found = pd.read_parquet(tmp_path / "out").to_dict("records")
    said, _ = one_process(frame)
    assert len(found) == 120
    assert {row["t"]: tuple(row[name] for name in SAID) for row in found} == said
    met = []
    for file in (tmp_path / "models").iterdir():
        learners = kons.load(file)
        met += learners.keys
        assert learners.to_bytes() == keyed_in_one_process(frame, learners.keys).to_bytes()
    assert sorted(met) == ["s0", "s1", "s2", "s3"]
