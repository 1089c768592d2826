"""Whoever is killed, at whatever batch: predictions and learners are those of a run in which nobody was."""

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
from sensors import one_process, sensors

import effort

SAID = ["prediction", "lower", "upper", "loss", "novelty"]
BATCHES = 6


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
        assert not psutil.wait_procs(gone, timeout=60)[1]
    elif victim == "worker daemon":
        lost = cluster.workers.pop(0)
        executors = psutil.Process(lost.process.pid).children(recursive=True)
        lost.process.kill()
        assert not psutil.wait_procs(executors, timeout=60)[1]
        lost.stop()
        cluster.workers.append(cluster.start_worker(2))
    else:
        word = {"python worker": "pyspark.daemon", "executor": "CoarseGrainedExecutorBackend"}[victim]
        processes = children(cluster, word)
        processes[-1].send_signal(signal.SIGKILL)


def start(cluster, folder):
    script = Path(__file__).parent / "query.py"
    return subprocess.Popen(
        [sys.executable, script, cluster.url, folder],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | cluster.environment,
    )


@pytest.mark.parametrize("seed", range(20) if effort.is_soak() else [0])
@pytest.mark.parametrize("victim", ["python worker", "executor", "worker daemon", "driver"])
def test_nothing_is_lost_and_nothing_is_twice(cluster, tmp_path, victim, seed):
    frame = sensors(120, 4, seed)
    (tmp_path / "in").mkdir()
    for i, part in enumerate(np.array_split(np.arange(len(frame)), BATCHES)):
        frame.iloc[part].to_parquet(tmp_path / "in" / f"{i}.parquet", index=False)
    at = np.random.default_rng(seed).integers(1, BATCHES - 1)
    driver = start(cluster, tmp_path)
    for line in driver.stdout:
        if line.split() == ["batch", str(at)]:
            kill(cluster, victim, driver)
            break
    if victim == "driver":
        driver.communicate()
        driver = start(cluster, tmp_path)
    errors = driver.communicate(timeout=400)[1]
    assert driver.returncode == 0, errors[-3000:]
    found = pd.read_parquet(tmp_path / "out").to_dict("records")
    said, _ = one_process(frame)
    assert len(found) == 120
    assert {row["t"]: tuple(row[name] for name in SAID) for row in found} == said
