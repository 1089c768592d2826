"""What does a learner per key cost: a row over 1, 100 and 10,000 keys, memory, to save and load a record?"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable

import numpy as np

from benchmarks.measuring import MEGABYTE, rise_of_memory
from benchmarks.reporting import Report, at_most
from benchmarks.settings import Settings
from benchmarks.subjects import warm_up
from kons import AutoKONS, Keyed
from kons.keyed.record import pack, unpack

KEYS = (1, 100, 10_000)
BLOCK = 1000
GOAL = 1.0


def run(settings: Settings) -> Report:
    rows = 2_000 if settings.quick else 20_000
    table = []
    for keys in KEYS:
        keys = min(keys, rows // 2)
        rise, seconds = rise_of_memory(prepare, keys, rows)
        table.append(
            [keys, rows, 1e6 * seconds / rows, 1e3 * seconds / (rows / BLOCK) / min(keys, BLOCK), rise]
        )
    records = [record(count) for count in (20, 100, 1000)]
    return Report(
        question="What does a learner per key cost, idle ones parked in a folder?",
        data=f"synthetic, {rows:,} rows, two columns; keys in turn; a fresh process each",
        columns=("keys", "rows", "us a row", "ms a key and block", "rise, MB"),
        table=[[*row[:-1], row[-1] / MEGABYTE] for row in table],
        figures=[
            at_most(GOAL, "save, ms", max(save for _, save, _ in records), "one record, the dearest"),
            at_most(GOAL, "load, ms", max(load for _, _, load in records), "one record, the dearest"),
        ],
        notes=[
            f"records of 20, 100 and 1,000 rows: {', '.join(f'{size:,}' for size, _, _ in records)} bytes"
        ],
    )


def prepare(keys: int, rows: int) -> Callable[[], float]:
    """In the fresh process: the rows, of each key as many; the task says how many seconds of CPU it took."""
    X = np.random.default_rng(0).normal(size=(rows, 2))
    y = np.sin(X[:, 0])
    records = [{"key": i % keys, "a": a, "b": b} for i, (a, b) in enumerate(X.tolist())]
    warm_up()

    def follow() -> float:
        began = time.process_time()
        with tempfile.TemporaryDirectory() as folder:
            keyed = Keyed(AutoKONS(effort="tiny"), "key", folder=folder, live=256)
            for start in range(0, rows, BLOCK):
                keyed.advance(records[start : start + BLOCK], y[start : start + BLOCK])
            keyed.close()
            assert len(keyed) == keys
        return time.process_time() - began

    return follow


def record(count: int) -> tuple[int, float, float]:
    """Bytes of a learner after so many rows, and milliseconds to save and to load it."""
    X = np.random.default_rng(0).normal(size=(count, 2))
    one = AutoKONS(effort="tiny")
    one.advance([{"a": a, "b": b} for a, b in X.tolist()], np.sin(X[:, 0]))
    data, given = pack(one.state()), one.parameters()
    saving = min(_timed(lambda: pack(one.state())) for _ in range(30))
    return len(data), saving, min(_timed(lambda: AutoKONS.from_state(given, unpack(data))) for _ in range(30))


def _timed(call: Callable[[], object]) -> float:
    began = time.process_time()
    call()
    return 1e3 * (time.process_time() - began)
