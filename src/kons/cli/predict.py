"""``kons predict``: a saved model on another file, read as the one that it learned from."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix
from kons.cli.files import open_model, require_place
from kons.cli.screen import notices
from kons.errors import ConfigurationError, announce
from kons.evaluation.held_out import HeldOut
from kons.evaluation.result import LOSS_NAMES
from kons.files import write_file
from kons.learners.labels import object_array
from kons.learners.protocol import as_learner
from kons.report.numbers import number, percent, plural
from kons.runs.lines import FIXED, as_table, shares_by_class
from kons.runs.raw_cells import RawCells
from kons.streams import Plan, Stream, open_stream
from kons.tables.cells import BadCell, converter

__all__ = ["Predicting", "write"]


class Predicted(NamedTuple):
    """What a model says of some rows."""

    lines: NDArray[np.int64]
    prediction: NDArray[Any]
    probabilities: Matrix | None
    ids: list[Any]


class Predicting:
    """A model along a file, of which it learns nothing; what it is good for is in ``figures``."""

    def __init__(
        self,
        model: Path,
        source: str,
        reading: dict[str, Any],
        *,
        recent: bool,
        id: str | None = None,
        positive: str | None = None,
    ) -> None:
        thing, told = open_model(model)
        self.learner, self._id = as_learner(thing), id
        if self.learner.lacks("predict"):
            raise ConfigurationError(f"{model} holds a {told['what']}, which predicts nothing.")
        if recent and not self.learner.looks_back:
            raise ConfigurationError(
                f"--continue: {self.learner.core.name} takes no last targets; leave it out."
            )
        self.stream = _opened(told.get("plan"), model, source, reading)
        self.classes = self.learner.classes if self.stream.task == "classification" else None
        if not recent:
            self._say_who_answers()
        self._options = {"recent_targets": True} if recent else {}
        plan, columns = self.stream.plan, list(self.stream.reader.columns)
        self.has_target = plan.target in columns and self.stream.resumable
        names = [*([id] if id else []), *([plan.target] if self.has_target else [])]
        self._cells = RawCells(self.stream, names) if names else None
        self.figures = HeldOut(self.stream.task, positive=positive)
        self.without_target = 0
        """Rows of which no target is known."""

    def _say_who_answers(self) -> None:
        learner = self.learner
        if learner.looks_back and learner.rows_seen:
            all_, away = len(learner.shares), list(learner.answers_away)
            announce(
                f"answered without last targets, by {len(away)} of {plural(all_, 'expert')}: "
                f"{'; '.join(away)}. --continue takes the rows as coming next, with all."
            )

    def __iter__(self) -> Iterator[Predicted]:
        for block in self.stream.records():
            shares = None
            if self.classes is not None and not self.learner.lacks("predict_proba"):
                shares = self.learner.predict_proba(block.records, **self._options)
            prediction = np.asarray(self.learner.predict(block.records, **self._options))
            cells = {} if self._cells is None else self._cells.of(block.lines)
            if self.has_target:
                self._score(cells[self.stream.plan.target], prediction, shares)
            yield Predicted(block.lines, prediction, shares, cells.get(self._id or "", []))

    def _score(self, cells: list[Any], prediction: NDArray[Any], shares: Matrix | None) -> None:
        targets = [self._target(cell) for cell in cells]
        known = np.array([target is not None for target in targets], dtype=bool)
        self.without_target += int(np.count_nonzero(~known))
        there = [target for target in targets if target is not None]
        y = np.array(there, dtype=np.float64) if self.classes is None else object_array(there)
        given = None if shares is None else np.nan_to_num(shares[known])
        self.figures.record(y, prediction[known], given, self.classes or ())

    def _target(self, cell: Any) -> Any:
        """A target as the model knows them; None where there is none, or nothing that could be one."""
        plan = self.stream.plan
        try:
            column = plan.target_column
            value = converter(column.kind, style=column.style, na_values=column.na_values)(cell)
        except BadCell:
            return None
        if value is None or self.classes is None or plan.target_kind == "text":
            return value
        return bool(value) if plan.target_kind == "flag" else int(value) if value.is_integer() else value

    @property
    def document(self) -> dict[str, Any]:
        """The figures, as JSON can hold them."""
        figures = self.figures
        return {
            "task": self.stream.task,
            "target": self.stream.target,
            "rows": figures.rows,
            "skipped": self.without_target + sum(self.stream.skipped.values()),
            "loss": figures.loss,
            "loss_name": LOSS_NAMES[self.stream.task],
            "metrics": figures.figures(),
            "constant": figures.constant,
            "positive": figures.positive,
        }

    @property
    def sentence(self) -> str:
        """The figures for people."""
        figures, shown = self.figures, percent if self.classes is not None else number
        left = f" ({plural(self.without_target, 'row')} had none)" if self.without_target else ""
        return (
            f"{self.stream.target!r} is there in {plural(figures.rows, 'row')}{left}: "
            f"{LOSS_NAMES[self.stream.task]} {shown(figures.loss)}, of the best constant "
            f"{shown(figures.constant)}."
        )


def write(
    model: Path,
    source: str,
    out: Path | None,
    *,
    id: str | None,
    recent: bool,
    reading: dict[str, Any],
    force: bool,
    quiet: bool,
) -> int:
    """Predict every row of a source; a CSV on standard output, or whole or not at all in ``out``."""
    if out is not None:
        require_place("--out", out, force=force)
    with notices(quiet=quiet):
        predicting = Predicting(model, source, reading, recent=recent, id=id)
        if out is None:
            _write(predicting, id, sys.stdout.buffer)
        else:
            write_file(out, lambda file: _write(predicting, id, file))
        if predicting.figures.rows:
            announce(predicting.sentence)
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


def _write(predicting: Predicting, id: str | None, file: Any) -> None:
    header = True
    for found in predicting:
        columns: dict[str, Any] = {"line": found.lines}
        if id is not None:
            columns[id if id not in FIXED else f"id_{id}"] = object_array(found.ids)
        columns["prediction"] = found.prediction
        if found.probabilities is not None:
            columns |= shares_by_class(found.probabilities, predicting.classes or ())
        file.write(as_table(columns, header=header))
        header = False
