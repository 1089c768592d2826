"""CapyMOA's forests of ten trees, in an environment of their own: they need Java 17 and an older pandas.

``--capymoa PYTHON`` (or ``make bench CAPYMOA=python``) names the Python of it::

    python3 -m venv moa && moa/bin/pip install capymoa==0.15.0

What that Python is given, and what it answers, are files in a temporary folder: see ``moa_process``.
"""

from __future__ import annotations

import functools
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

FORESTS = {"classification": ("SRP", "ARF"), "regression": ("SOKNL", "ARF")}
PROCESS = Path(__file__).with_name("moa_process.py")


class Played(NamedTuple):
    """Predictions of all rows, NaN where nothing could be said yet, and CPU seconds."""

    prediction: np.ndarray
    seconds: float


@functools.cache
def found(python: str | None) -> tuple[str | None, str]:
    """The version of CapyMOA there, and nothing; or None, and a sentence why its forests are left out."""
    if python is None:
        return None, "CapyMOA's forests are left out: --capymoa PYTHON names a Python that has them."
    try:
        return _ask(python).strip().splitlines()[-1], ""
    except (OSError, RuntimeError, IndexError) as error:
        return None, f"CapyMOA's forests are left out: {error}"


def play(python: str, forest: str, X: np.ndarray, y: np.ndarray, task: str) -> Played:
    """One forest over the rows in order, each predicted before it is learned."""
    labels, codes = np.unique(y, return_inverse=True)
    classes = task == "classification"
    with tempfile.TemporaryDirectory() as folder:
        rows, said = Path(folder, "rows.npz"), Path(folder, "said.npz")
        np.savez(rows, X=X, y=codes if classes else y, task=task, forest=forest)
        _ask(python, str(rows), str(said))
        with np.load(said, allow_pickle=False) as answer:
            prediction, seconds = answer["prediction"], float(answer["seconds"])
    if prediction.shape != y.shape:
        raise RuntimeError(f"CapyMOA's {forest} predicted {prediction.shape} of {len(y)} rows")
    if classes:
        silent = np.isnan(prediction)
        prediction = labels[np.where(silent, 0.0, prediction).astype(int)].astype(float)
        prediction[silent] = np.nan
    return Played(prediction, seconds)


def _ask(python: str, *arguments: str) -> str:
    """What the process prints. Isolated: neither this folder nor PYTHONPATH is where it imports from."""
    command = [python, "-I", str(PROCESS), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise RuntimeError(f"{python}: {said[-1]}")
    return done.stdout
