"""What an evaluation counts: running metrics, the window of the last rows, curves along the stream."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, Vector
from kons.evaluation.metrics import AUC, Metric, Rows, Total
from kons.evaluation.window import Curves, Stretches, Window
from kons.state import Count, Inner, Inners, Part, Whole, fields

__all__ = ["Scoreboard"]

#: Columns of a regression table: the target, the prediction, inside its interval (0, 1, or -1: none).
NUMBERS = ("target", "prediction", "inside")
#: Columns of a classification table: codes, the probability of the label that came, of that with code 1.
LABELS = ("target", "prediction", "truth", "score")


class Scoreboard(Part):
    """Metrics over all rows and over the last ``window`` rows, of a learner and the losses of baselines.

    Rows come as a table with a row per column of :data:`NUMBERS` or :data:`LABELS`, then the loss, then the
    losses of the baselines. The first ``blind`` rows, predicted before any target was known, are in no
    figure. Curves are at row numbers that do not depend on how rows are cut into tables.
    """

    STATE = fields(
        rows=Count(),
        classes=Count(),
        metrics=Inners(),
        _ranks=Inners(),
        _losses=Inners(),
        _window=Inner(),
        _curves=Inner(),
        _stretches=Inner(),
        _atoms=Count(),
        positive=Count(at_most=1),
        _came=Whole(2),
    )

    def __init__(
        self,
        metrics: Sequence[Metric],
        window: int,
        baselines: Sequence[str],
        *,
        labelled: bool,
        blind: int = 1,
    ) -> None:
        self.metrics: list[Metric] = list(metrics)
        #: So many rows were predicted before any target was known.
        self.blind = blind
        self.baselines: list[str] = list(baselines)
        self.labelled = labelled
        self.rows: int = 0
        self.classes: int = 0
        # What ranks labels, of each baseline in turn.
        self._ranks = [type(metric)() for _ in baselines for metric in self._ranking]
        self._losses = [Total() for _ in ("loss", *baselines)]
        self._window = Window(window, len(LABELS if labelled else NUMBERS) + len(self._losses))
        names = ["loss", *(metric.name for metric in self.metrics), *([] if labelled else ["coverage"])]
        running = (f"running_{name}" for name in ("loss", *baselines))
        self._curves = Curves([*names, *baselines, *running, "atoms"])
        self._stretches = Stretches(len(self._losses))
        self._atoms = 0
        self.positive: int = 1
        """The code of the label that F1 is about."""
        # Rows of the first two labels.
        self._came = np.zeros(2, dtype=np.int64)

    @property
    def scored(self) -> int:
        """Rows that are in the figures."""
        return max(self.rows - self.blind, 0)

    @property
    def _ranking(self) -> list[Metric]:
        return [metric for metric in self.metrics if isinstance(metric, AUC)]

    @property
    def baseline_metrics(self) -> dict[str, dict[str, float]]:
        """Of each baseline, by name: AUC and average precision, as far as they are asked for."""
        found = iter(self._ranks)
        names = [metric.name for metric in self._ranking]
        return {baseline: {name: next(found).value for name in names} for baseline in self.baselines if names}

    @property
    def losses(self) -> list[float]:
        """The mean loss of the learner and of each baseline."""
        return [total.value / self.scored if self.scored else math.nan for total in self._losses]

    @property
    def last_quarter(self) -> dict[str, float]:
        """The mean loss over the last quarter of the rows, of the learner (``loss``) and each baseline."""
        return dict(zip(("loss", *self.baselines), self._stretches.last(0.25), strict=True))

    def record(
        self,
        table: Matrix,
        atoms: NDArray[np.int64],
        positive: int | None = None,
        scores: Sequence[Vector] = (),
    ) -> None:
        """Count rows in, with the number of atoms after each; the positive label is by default the rarer.

        ``scores``: of labels, how probable each baseline found that with code 1.
        """
        count, before = table.shape[1], self.rows
        early = max(min(self.blind - before, count), 0)
        classes = np.zeros(count, dtype=np.int64)
        if self.labelled:
            # Codes are in the order of first appearance: the largest so far counts the labels.
            classes = np.maximum(np.maximum.accumulate(table[0]).astype(np.int64) + 1, self.classes)
        self.classes = int(classes[-1])
        table = table[:, early:]
        self._window.append(table)
        self._stretches.append(table[-len(self._losses) :])
        sums = np.cumsum(table[-len(self._losses) :], axis=1)
        came = self._came[:, None] + np.cumsum(table[0] == np.arange(2)[:, None], axis=1)
        while (row := self._curves.next_row) <= before + count:
            at = row - before - 1 - early  # the last row of the table that counts here
            self._choose_positive(came[:, at] if at >= 0 else self._came, positive)
            running = [
                (total.value + (float(part[at]) if at >= 0 else 0.0)) / max(row - self.blind, 1)
                if row > self.blind
                else math.nan
                for total, part in zip(self._losses, sums, strict=True)
            ]
            seen = self._window.last(back=table.shape[1] - 1 - max(at, -1))
            self._curves.add(self._point(seen, int(classes[at + early]), running, int(atoms[at + early])))
        if table.shape[1]:
            self._came = came[:, -1].copy()
            self._choose_positive(self._came, positive)
            rows = self._rows_of(table, self.classes)
            for metric in self.metrics:
                metric.update(rows)
            ranks = iter(self._ranks)
            for score in scores:
                for _ in self._ranking:
                    next(ranks).update(rows._replace(score=score[early:]))
            for total, part in zip(self._losses, sums, strict=True):
                total.add(float(part[-1]))
        self.rows += count
        self._atoms = int(atoms[-1])

    def _choose_positive(self, came: NDArray[np.int64], asked: int | None) -> None:
        self.positive = asked if asked is not None else int(came[0] >= came[1])

    def _point(self, table: Matrix, classes: int, running: list[float], atoms: int) -> list[float]:
        """What the curves show of a window of rows."""
        length = table.shape[1]
        rows = self._rows_of(table, classes)
        means: list[float] = (table[-len(self._losses) :].sum(axis=1) / (length or math.nan)).tolist()
        values = [means[0], *(metric.over(rows) for metric in self.metrics)]
        if not self.labelled:
            judged = np.count_nonzero(table[2] >= 0.0)
            values.append(np.count_nonzero(table[2] > 0.0) / judged if judged else math.nan)
        return [*values, *means[1:], *running, float(atoms)]

    def _rows_of(self, table: Matrix, classes: int) -> Rows:
        if not self.labelled:
            return Rows(table[0], table[1])
        positive = self.positive if classes > 1 else 1
        return Rows(table[0], table[1], table[2], table[3], positive, max(classes, 2))

    def curves(self) -> tuple[NDArray[np.int64], dict[str, Vector]]:
        """Numbers of rows and values by name, the last row included."""
        rows, table = self._curves.row, self._curves.table()
        if self.rows and (len(rows) == 0 or rows[-1] != self.rows):
            point = self._point(self._window.last(), self.classes, self.losses, self._atoms)
            rows, table = np.append(rows, self.rows), np.vstack([table, point])
        return rows, {name: values.copy() for name, values in zip(self._curves.names, table.T, strict=True)}
