"""Talking to the fork server: command lines in processes that can be killed, without waiting for imports."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np


@contextmanager
def fork_server():
    server = subprocess.Popen(
        [sys.executable, str(Path(__file__).parent / "fork_server.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "NO_COLOR": "1", "COLUMNS": "100"},
    )
    assert server.stdout.readline() == "ready\n"

    def ask(*arguments, **how):
        server.stdin.write(json.dumps({"arguments": [str(a) for a in arguments], **how}) + "\n")
        server.stdin.flush()
        return json.loads(server.stdout.readline())

    with server:  # which closes its standard input, and so ends it
        yield ask


def whole_trace(folder):
    """All columns of the trace in order; fails if a row is missing or there twice."""
    parts, expected = [], 0
    for path in sorted((folder / "trace").glob("*.npz")):
        with np.load(path, allow_pickle=False) as archive:
            part = {name: archive[name] for name in archive.files}
        assert int(part.pop("first")) == expected
        expected += len(part["loss"])
        parts.append(part)
    names = parts[0] if parts else ()  # a forecast has none
    return {name: np.concatenate([part[name] for part in parts]) for name in names}


def summary_of(folder):
    """summary.json without what a clock decides."""
    found = json.loads((folder / "summary.json").read_text())
    for name in ("seconds", "learner_seconds", "microseconds_per_row", "resumed"):
        found.pop(name, None)
    return found
