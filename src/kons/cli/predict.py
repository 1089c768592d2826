"""``kons predict``: a saved model on another file, read as the one that it learned from."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from kons.cli.files import open_model, require_place
from kons.cli.screen import notices
from kons.errors import ConfigurationError
from kons.files import write_file
from kons.learners.protocol import as_learner
from kons.runs.lines import as_table
from kons.streams import Plan, Stream, open_stream

__all__ = ["write"]


def write(
    model: Path, source: str, out: Path | None, *, reading: dict[str, Any], force: bool, quiet: bool
) -> int:
    """Predict every row of a source; a CSV on standard output, or whole or not at all in ``out``."""
    if out is not None:
        require_place("--out", out, force=force)
    with notices(quiet=quiet):
        thing, told = open_model(model)
        learner = as_learner(thing)
        if learner.lacks("predict"):
            raise ConfigurationError(f"{model} holds a {told['what']}, which predicts nothing.")
        stream = _opened(told.get("plan"), model, source, reading)
        if out is None:
            _predict(learner, stream, sys.stdout.buffer, reading)
            return 0
        write_file(out, lambda file: _predict(learner, stream, file, reading))
    return 0


def _opened(plan: Any, model: Path, source: str, reading: dict[str, Any]) -> Stream:
    if not isinstance(plan, dict):
        raise ConfigurationError(
            f"{model} does not know which columns it learned from: expected the model of a kons run --out. "
            "In Python, kons.load(...).predict(X) takes the numbers themselves."
        )
    # A horizon is about when targets come, and here they need not come at all.
    asked = replace(Plan.from_dict(plan), horizon=0)
    stream = open_stream(source, plan=asked, quiet=True, **reading)
    if not any(name == asked.target for name, _ in asked.lags):
        stream = stream.without_target()  # it may be empty in rows that are to be predicted
    return stream


def _predict(learner: Any, stream: Stream, file: Any, reading: dict[str, Any]) -> None:
    # Where rows may be left out, their numbers do not say which line of the file they are.
    numbered = bool(stream.plan.lags) or "skip" in reading.values() or reading.get("missing") == "mean"
    header = True
    for block in stream.records():
        columns: dict[str, Any] = {"row": np.arange(block.first, block.first + len(block.lines))}
        columns["prediction"] = np.asarray(learner.predict(block.records))
        if stream.task == "classification" and not learner.lacks("predict_proba"):
            shares = learner.predict_proba(block.records)
            columns |= {f"p({label})": shares[:, i] for i, label in enumerate(learner.classes)}
        if numbered:
            columns["line"] = block.lines
        file.write(as_table(columns, header=header))
        header = False
