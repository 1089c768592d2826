"""What an evaluation found, as numbers, a table, a frame and a picture."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Vector
from kons.errors import ConfigurationError, MissingExtraError
from kons.learners import Trace
from kons.learners.protocol import as_learner

__all__ = ["Evaluation"]

LOSS_NAMES = {"regression": "mean squared error", "classification": "error rate"}


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A learner beside its baselines, over a whole stream and along it. :func:`kons.evaluate` makes one.

    >>> import numpy as np
    >>> from kons import evaluate
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(2000, 2))
    >>> result = evaluate("embedded", (X, 100 + 5 * np.sin(3 * X[:, 0])))
    >>> result.rows, sorted(result.metrics), sorted(result.baselines)
    (2000, ['mae', 'medae', 'mse', 'r2', 'rmse'], ['constant', 'linear', 'persistence'])
    >>> bool(result.loss < min(result.baselines.values()))
    True
    """

    rows: int
    task: str
    learner: Any
    """As it is after the stream."""
    loss: float
    """The mean squared error in units of the target, or the error rate; over all rows but the first
    ``delay`` + 1, which were predicted before any target was known and are in no figure."""
    metrics: dict[str, float]
    """Over the same rows. NaN where one is not defined."""
    baselines: dict[str, float]
    """The same ``loss`` of ``constant``, ``persistence`` and ``linear`` on the same rows."""
    checkpoints: NDArray[np.int64] = field(repr=False)
    """The curves' points: how many rows had come. At most 513 of them."""
    curves: dict[str, Vector] = field(repr=False)
    """By name: windowed ``loss``, metrics, ``coverage`` and the baselines' losses; ``running_...`` of
    the losses over all rows so far; ``atoms``."""
    last_quarter: dict[str, float] = field(default_factory=dict)
    """Of ``loss`` and of each baseline, over the last quarter of the rows (to a 256th of all)."""
    baseline_metrics: dict[str, dict[str, float]] = field(default_factory=dict)
    """Of two labels: AUC and average precision of the baselines, by their names. ``constant`` ranks by the
    share of a label so far, ``persistence`` by 1 or 0."""
    coverage: float | None = None
    """The share of rows inside their prediction interval; None for classes."""
    level: float | None = None
    """The share that was aimed at."""
    atoms: int = 0
    delay: int = 0
    window: int = 1000
    seconds: float = 0.0
    """Spent in the evaluation, the learner included; not in reading the stream."""
    learner_seconds: float = 0.0
    """CPU time of the learner itself, of all its threads, to predict and to learn."""
    longest_pause: float | None = None
    """CPU seconds of the longest step, one row predicted and one learned; None where rows came in blocks."""
    classes: list[Any] | None = None
    positive: Any = None
    """Of two labels, the one that F1, precision, recall and average precision are about."""
    away: dict[str, float] | None = None
    """The metrics without last targets, over ``away_rows`` rows, see :mod:`kons.evaluation.away`: what
    ``predict`` reaches away from the stream. None for a learner that never looks back, unless the stream is
    sorted."""
    away_rows: int = 0
    order: str | None = None
    """Where the rows are sorted by their target: ``ascending``, ``descending`` or, of labels, ``blocks``. All
    figures but ``away`` then are about the order more than about the learner."""
    notes: list[str] = field(default_factory=list)
    trace: Trace | None = field(default=None, repr=False)
    """Of all rows, if it was asked for."""
    targets: list[Evaluation] | None = field(default=None, repr=False)
    """Of y of shape (n, k): the evaluation of each target. Here losses, the baselines' too, are then sums
    over targets, metrics and coverage their means."""

    @property
    def microseconds_per_row(self) -> float:
        """CPU time that the learner itself took, to predict and to learn."""
        return 1e6 * self.learner_seconds / self.rows

    @property
    def windowed(self) -> dict[str, Vector]:
        """The learner's metrics over the last ``window`` rows, at each of the ``checkpoints``."""
        return {name: self.curves[name] for name in ("loss", *self.metrics)}

    @property
    def best_baseline(self) -> str | None:
        """The name of the baseline with the least loss, or None if there are none."""
        known = {name: loss for name, loss in self.baselines.items() if not math.isnan(loss)}
        return min(known, key=known.__getitem__) if known else None

    def to_frame(self, library: str | None = None) -> Any:
        """A row per checkpoint: ``row``, then the curves. pandas if it is installed, else polars.

        ``library="pandas"`` or ``"polars"`` chooses.
        """
        if library not in (None, "pandas", "polars"):
            raise ConfigurationError(f'library is {library!r}, expected "pandas" or "polars".')
        columns = {"row": self.checkpoints, **self.curves}
        for name in ("pandas", "polars") if library is None else (library,):
            try:
                module: Any = __import__(name)
            except ImportError:
                continue
            return module.DataFrame(columns)
        raise MissingExtraError("Evaluation.to_frame", "frames")

    def plot(self, ax: Any = None) -> Any:
        """Windowed loss along the stream, the baselines beside it; returns the axes."""
        if ax is None:
            try:
                from matplotlib.figure import Figure
            except ImportError:
                raise MissingExtraError("Evaluation.plot", "plot") from None
            ax = Figure(figsize=(8.0, 4.0), layout="constrained").add_subplot()
        for name in self.baselines:
            ax.plot(self.checkpoints, self.curves[name], linewidth=1.0, alpha=0.7, label=name)
        ax.plot(self.checkpoints, self.curves["loss"], linewidth=1.8, color="black", label=self.learner_name)
        positive = all((self.curves[name] > 0.0).all() for name in ("loss", *self.baselines))
        if self.task == "regression" and positive:
            ax.set_yscale("log")
        ax.set_xlabel("rows")
        ax.set_ylabel(f"{self.loss_name}, last {self.window:,} rows")
        ax.legend(frameon=False)
        return ax

    @property
    def learner_name(self) -> str:
        """The learner in a word: the one inside, if it was wrapped."""
        return str(as_learner(self.learner).core.name)

    def _table(self) -> tuple[str, list[tuple[str, str, str]]]:
        """A heading, and lines of a name, a number, a remark."""
        late = f", targets {self.delay:,} rows late" if self.delay else ""
        order = {None: "", "blocks": ", in blocks of labels"}.get(
            self.order, f", sorted by target ({self.order})"
        )
        head = f"{self.task} over {self.rows:,} rows{late}{order}"
        lines = [(self.learner_name, _number(self.loss), self.loss_name)]
        if self.away is not None:
            name = "mse" if self.task == "regression" else "error_rate"
            if name in self.away:
                lines.append(("  without last targets", _number(self.away[name]), f"{self.away_rows:,} rows"))
        for name, loss in sorted(self.baselines.items(), key=lambda item: item[1]):
            ratio = f"the learner has {self.loss / loss:.3g} x this" if loss > 0.0 else ""
            lines.append((f"  {name}", _number(loss), ratio))
        shown = {n: v for n, v in self.metrics.items() if n not in ("mse", "error_rate")}
        for name, value in shown.items():
            last = f"{_number(self.curves[name][-1])} over the last {min(self.window, self.rows):,} rows"
            beside = {key: found[name] for key, found in self.baseline_metrics.items() if name in found}
            last += "".join(f"; {key} {_number(found)}" for key, found in beside.items())
            lines.append((name, _number(value), last if self.targets is None else f"mean of targets; {last}"))
        if self.coverage is not None and self.level is not None:
            lines.append(("coverage", _number(self.coverage), f"aimed at {self.level:g}"))
        lines.append(("atoms", f"{self.atoms:,}", ""))
        lines.append(("time", f"{self.seconds:.3g} s", f"learner {self.microseconds_per_row:.3g} us a row"))
        if self.longest_pause is not None:
            lines.append(
                ("longest pause", f"{1e3 * self.longest_pause:.3g} ms", "one row predicted, one learned")
            )
        return head, lines

    @property
    def loss_name(self) -> str:
        """What ``loss`` is, in words."""
        return LOSS_NAMES[self.task] if self.targets is None else "summed squared error"

    def __repr__(self) -> str:
        head, lines = self._table()
        widths = [max(len(line[i]) for line in lines) for i in (0, 1)]
        body = [f"  {a:<{widths[0]}}  {b:>{widths[1]}}  {c}".rstrip() for a, b, c in lines]
        return "\n".join([head, *body, *(f"  ({note})" for note in self.notes)])

    def _repr_html_(self) -> str:
        head, lines = self._table()
        rows = "".join(
            f"<tr><th style='text-align:left'>{escape(a.strip())}</th>"
            f"<td style='text-align:right'>{escape(b)}</td><td style='text-align:left'>{escape(c)}</td></tr>"
            for a, b, c in lines
        )
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return f"<table><caption>{escape(head)}</caption>{rows}</table>{notes}"


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4g}"
