"""``kons predict``: a saved model on another file, read as the one that it learned from."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, require_number
from kons.cli.files import open_model, require_place
from kons.cli.screen import notices
from kons.errors import ConfigurationError, announce
from kons.evaluation.held_out import HeldOut
from kons.evaluation.result import LOSS_NAMES
from kons.files import write_file
from kons.learners.labels import object_array
from kons.learners.learner import Learner
from kons.learners.protocol import as_learner
from kons.learners.units import LARGEST_TARGET
from kons.report.numbers import number, percent, plural
from kons.runs.lines import as_table, by_target, id_column, shares_by_class
from kons.runs.raw_cells import RawCells
from kons.streams import Plan, open_stream
from kons.streams.stream import Stream
from kons.streams.wording import listed

__all__ = ["Predicting", "write"]


class Predicting:
    """A model along a file, of which it learns nothing; what it is good for is in ``figures``."""

    classes: list[Any] | None

    def __init__(
        self,
        model: Path,
        source: str,
        reading: dict[str, Any],
        *,
        recent: bool,
        id: str | None = None,
        positive: str | None = None,
        explain: bool = False,
        level: float | None = None,
    ) -> None:
        thing, told = open_model(model)
        self.learner: Learner = as_learner(thing)
        if self.learner.lacks("predict"):
            raise ConfigurationError(f"{model} holds a {told['what']}, which predicts nothing.")
        self._explains = explain
        #: Whether it says how new rows are, and predicts nothing.
        self.judges: bool = _plan_of(told, model).target is None
        if self.judges and (level is not None or explain or positive is not None):
            raise ConfigurationError(
                f"{model} predicts nothing: leave out --level, --explain and --positive."
            )
        self._level = None if level is None else require_number(level, "--level", above=0.0, below=1.0)
        if level is not None and self.learner.lacks("predict_interval"):
            raise ConfigurationError(f"--level: {self.learner.core.name} has no intervals; leave it out.")
        if explain and self.learner.lacks("explain"):
            raise ConfigurationError(f"--explain: {self.learner.core.name} gives no reasons; leave it out.")
        plan = _plan_of(told, model)
        if recent and not self.learner.looks_back and not plan.lags:
            raise ConfigurationError(
                f"--continue: {self.learner.core.name} takes no last targets, and has no lags; leave it out."
            )
        if recent and (outputs := self.learner.outputs):
            raise ConfigurationError(
                f"--continue: the model predicts {outputs} targets, of which none follows rows that it "
                "has not learned: leave it out, or learn them (kons run --model)."
            )
        self._horizon = plan.horizon
        # The last rows are predicted, too, whose targets do not come; their order matters for lags only.
        asked = replace(plan, horizon=0, time=plan.time if plan.lags else None)
        past = _past_of(told, plan, model) if recent else None
        self.stream: Stream = open_stream(source, plan=asked, past=past, quiet=True, **reading).to_predict()
        self.stream.live = not self.stream.resumable
        self.classes = self.learner.classes if self.stream.task == "classification" else None
        if not recent:
            self._say_who_answers()
        self._following = None
        if recent and self.learner.looks_back:
            # What a horizon keeps back while the model learns is known to the rows behind the last target.
            self._following = self.learner.following(max(0, self.learner.delay - plan.horizon))
        self._cells = None if id is None else RawCells(self.stream, id)
        names = self.stream.targets
        self.figures: HeldOut = HeldOut(self.stream.task, positive=positive)
        #: Of several targets: those of each; the ones above are the first's.
        self.each: list[HeldOut] = [self.figures, *(HeldOut("regression") for _ in names[1:])]
        self.rows: int = 0
        """Rows that were predicted; those without a known target are not scored."""
        self._too_large, self._largest = 0, 0.0
        self._waiting: list[tuple[NDArray[Any], Matrix | None]] = []

    def _say_who_answers(self) -> None:
        learner = self.learner
        if learner.looks_back and learner.rows_seen:
            shares, away = learner.shares, list(learner.answers_away)
            all_ = len(shares[0] if isinstance(shares, list) else shares)
            hint = "" if learner.outputs else " --continue takes the rows as coming next, with all."
            announce(
                f"answered without last targets, by {len(away)} of {plural(all_, 'expert')}: "
                f"{'; '.join(away)}.{hint}"
            )

    def __iter__(self) -> Iterator[dict[str, NDArray[Any]]]:
        """What it says of some rows after others, as columns of a table."""
        for block in self.stream.records():
            shares, options = None, {}
            if self._following is not None:
                options = {"recent_targets": self._following.before(block.y)}
            if self.classes is not None and not self.learner.lacks("predict_proba"):
                shares = self.learner.predict_proba(block.records, **options)
            prediction = np.asarray(self.learner.predict(block.records, **options))
            columns = {"line": block.lines}
            if self._cells is not None:
                columns |= id_column(self._cells, block.lines)
            self.rows += len(block.lines)
            if self.judges:
                yield columns | {"novelty": np.asarray(self.learner.novelty(block.records))}
                continue
            told = {"prediction": prediction} | self._sure(block.records, options)
            if prediction.ndim == 2:
                self._score_each(block.y, prediction)
                outputs = range(prediction.shape[1])
                reasons = (
                    [self._reasons(block.records, output=k) for k in outputs] if self._explains else [{}]
                )
                told |= {name: np.stack([each[name] for each in reasons], axis=1) for name in reasons[0]}
                yield columns | by_target(told, self.stream.targets)
                continue
            self._score(block.y, prediction, shares)
            by_class = {} if shares is None else shares_by_class(shares, self.classes or ())
            reasons_for = {} if not self._explains else self._reasons(block.records, **options)
            yield columns | told | by_class | reasons_for

    def _sure(self, records: Any, options: dict[str, Any]) -> dict[str, NDArray[Any]]:
        """Columns that say how sure it is: the ends of intervals, empty where unknown, or labels."""
        if self._level is None:
            return {}
        if self.classes is None:
            ends = self.learner.predict_interval(records, self._level, **options)
            ends = np.where(np.isinf(ends), np.nan, ends)
            return {"lower": ends[..., 0], "upper": ends[..., 1]}
        named = self.learner.predict_set(records, self._level, **options)
        return {"set": object_array([" ".join(map(str, labels)) for labels in named])}

    def _reasons(self, records: Any, recent_targets: Any = None, output: int = 0) -> dict[str, NDArray[Any]]:
        """What each column adds to the prediction for a typical row: of a label, to its log-odds."""
        found = []
        for i in range(len(records)):
            recent = False if recent_targets is None else recent_targets[i : i + 1]
            row = records.take(np.array([i]))
            found.append(self.learner.explain(row, output=output, recent_targets=recent, similar=0))
        names = found[0].contributions
        columns = {f"because_{name}": [each.contributions[name] for each in found] for name in names}
        columns = {"typical": [each.baseline for each in found], **columns}
        return {name: np.array(values) for name, values in columns.items()}

    def _score(self, y: NDArray[Any], prediction: NDArray[Any], shares: Matrix | None) -> None:
        """Compare with the targets that are known, each of so many rows later as the model looks ahead."""
        if self._waiting:
            earlier, shares_then = self._waiting.pop()
            prediction = np.concatenate([earlier, prediction])
            shares = None if shares is None else np.concatenate([shares_then, shares])
        y = y[max(0, len(y) + self._horizon - len(prediction)) :]
        due = np.array([i for i, value in enumerate(y.tolist()) if self._counts(value)], dtype=int)
        if self._horizon:
            self._waiting = [(prediction[len(y) :], None if shares is None else shares[len(y) :])]
        given = None if shares is None else np.nan_to_num(shares[due])
        self.figures.record(y[due], prediction[due], given, self.classes or ())

    def _score_each(self, Y: Matrix, predictions: Matrix) -> None:
        """Of several targets: those that are known of a row count, each by itself."""
        for figures, y, prediction in zip(self.each, Y.T, predictions.T, strict=True):
            due = np.array([i for i, value in enumerate(y.tolist()) if self._counts(value)], dtype=int)
            figures.record(y[due], prediction[due], None, ())

    def _counts(self, target: Any) -> bool:
        """Whether a prediction can be compared with it."""
        too_large = self.classes is None and abs(target) > LARGEST_TARGET
        self._too_large += too_large
        self._largest = max(self._largest, target, key=abs) if too_large else self._largest
        return target is not None and target == target and not too_large

    @property
    def unread(self) -> str:
        """What could not be read, in words; empty, where everything was."""
        told, (rows, first) = [], self.stream.broken
        if rows:
            told.append(
                f"{plural(rows, 'row')} could not be read as a whole, and {'is' if rows == 1 else 'are'} "
                f"predicted from what could be: {first.rstrip('.')}."
            )
        if self.stream.odd_text:
            told.append(f"{self.stream.source}, {self.stream.odd_text}.")
        early, first_early = self.stream.disordered
        if early:
            told.append(
                f"{plural(early, 'row')} {'is' if early == 1 else 'are'} earlier than the one before, and "
                f"lags are of rows as they stand in the file: {first_early.rstrip('.')}."
            )
        if self._too_large:
            told.append(
                f"{plural(self._too_large, 'target')} not scored, whose square is no number "
                f"(the largest: {self._largest:g})."
            )
        if left := sum(self.stream.skipped.values()):
            told.append(f"{plural(left, 'row')} left out, as asked for.")
        elif bad := self.stream.bad_cells:
            told.append(
                f"cells taken for gaps: {listed([f'{name} {n.number:,}' for name, n in bad.items()])}."
            )
        return " ".join(told)

    @property
    def document(self) -> dict[str, Any]:
        """The figures, as JSON can hold them; of several targets those of each, with the sum of losses."""
        if len(self.each) == 1:
            return self._figures_of(self.figures, self.stream.target)
        each = [self._figures_of(*one) for one in zip(self.each, self.stream.targets, strict=True)]
        whole = {name: each[0][name] for name in ("task", "rows", "skipped")}
        return whole | {
            "target": self.stream.target,
            "loss": sum(one["loss"] for one in each),
            "loss_name": "summed squared error",
            "targets": each,
        }

    def _figures_of(self, figures: HeldOut, target: str) -> dict[str, Any]:
        return {
            "task": self.stream.task,
            "target": target,
            "rows": figures.rows,
            "skipped": self.rows - figures.rows + sum(self.stream.skipped.values()),
            "loss": figures.loss,
            "loss_name": LOSS_NAMES[self.stream.task],
            "metrics": figures.figures(),
            "constant": figures.constant,
            "positive": figures.positive,
        }

    @property
    def sentence(self) -> str:
        """The figures for people."""
        return " ".join(self._said_of(*one) for one in zip(self.each, self.stream.targets, strict=True))

    def _said_of(self, figures: HeldOut, target: str) -> str:
        shown = percent if self.classes is not None else number
        without = self.rows - figures.rows - self._too_large
        left = f" ({plural(without, 'row')} had none)" if without else ""
        return (
            f"{target!r} is there in {plural(figures.rows, 'row')}{left}: "
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
    level: float | None,
    reading: dict[str, Any],
    force: bool,
    quiet: bool,
    explain: bool = False,
) -> int:
    """Predict every row of a source; a CSV on standard output, or whole or not at all in ``out``."""
    if out is not None:
        require_place("--out", out, force=force)
    with notices(quiet=quiet):
        told: dict[str, Any] = {"id": id, "explain": explain, "level": level}
        predicting = Predicting(model, source, reading, recent=recent, **told)
        if out is None:
            _write(predicting, sys.stdout.buffer)
        else:
            write_file(out, lambda file: _write(predicting, file))
        if predicting.unread:
            announce(predicting.unread)
        if predicting.figures.rows:
            announce(predicting.sentence)
    return 0


def _plan_of(told: dict[str, Any], model: Path) -> Plan:
    if not isinstance(told.get("plan"), dict):
        raise ConfigurationError(
            f"{model} does not know which columns it learned from: expected the model of a kons run --out. "
            "In Python, kons.load(...).predict(X) takes the numbers themselves."
        )
    return Plan.from_dict(told["plan"])


def _past_of(told: dict[str, Any], plan: Plan, model: Path) -> dict[str, Any]:
    """What the lags of rows that come next need, by column."""
    past = told.get("past")
    if not isinstance(past, dict) or not {name for name, _ in plan.lags} <= past.keys():
        raise ConfigurationError(
            f"--continue: {model} does not hold the last values that its lags need: run it again."
        )
    return past


def _write(predicting: Predicting, file: Any) -> None:
    for block, columns in enumerate(predicting):
        file.write(as_table(columns, header=block == 0))
        if predicting.stream.live:
            file.flush()
