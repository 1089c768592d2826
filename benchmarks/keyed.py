"""A learner per key: us a row over 1, 100 and 10,000 keys, memory, milliseconds to load and save."""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np

from kons import AutoKONS, Keyed
from kons.keyed.record import pack, unpack


def main(rows: int = 20_000) -> None:
    """Print the figures."""
    learner, rng = AutoKONS(effort="tiny"), np.random.default_rng(0)
    X, block = rng.normal(size=(rows, 4)), 1000
    for keys in (1, 100, 10_000):
        which = rng.integers(keys, size=rows)
        records = [
            {"key": k, "a": a, "b": b} for k, (a, b, *_) in zip(which.tolist(), X.tolist(), strict=True)
        ]
        with tempfile.TemporaryDirectory() as folder:
            keyed = Keyed(learner, "key", folder=folder, live=256)
            began = time.process_time()
            for start in range(0, rows, block):
                keyed.advance(records[start : start + block], np.sin(X[start : start + block, 0]))
            took = time.process_time() - began
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            print(
                f"{keys:6,} keys: {1e6 * took / rows:7.0f} us a row, {memory} MB at most, {keyed.awake} awake"
            )
            keyed.close()
    for count in (20, 100, 1000):
        one = AutoKONS(effort="tiny")
        one.advance(X[:count], np.sin(X[:count, 0]))
        record, given = pack(one.state()), one.parameters()
        saving = min(_timed(lambda: pack(one.state())) for _ in range(30))  # noqa: B023
        loading = min(_timed(lambda: AutoKONS.from_state(given, unpack(record))) for _ in range(30))  # noqa: B023
        print(f"{count:6,} rows: {len(record):7,} bytes, save {saving:.2f} ms, load {loading:.2f} ms")


def _timed(call: Callable[[], object]) -> float:
    began = time.process_time()
    call()
    return 1e3 * (time.process_time() - began)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
