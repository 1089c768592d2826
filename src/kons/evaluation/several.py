"""An evaluation on rows of several targets: the learner learns them together, each is scored by itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from kons.arrays import Matrix, as_outputs, as_points
from kons.compilation import cpu_clock, wall_clock
from kons.errors import ConfigurationError
from kons.evaluation.delay import Delayed
from kons.evaluation.order import TargetOrder
from kons.evaluation.prequential import Prequential, Scored
from kons.evaluation.result import Evaluation
from kons.learners import Trace
from kons.learners.learner import Interleaved, Learner
from kons.learners.protocol import as_learner
from kons.state import Inner, Inners, Number, Part, Sizes, fields
from kons.stored import Stored
from kons.streams import Block

__all__ = ["Several"]


class Several(Part):
    """As :class:`Prequential`, of a learner whose rows have k targets; O(k) times its baselines and metrics.

    Losses are sums over the targets, each in its own units squared; :attr:`Evaluation.targets` has each by
    itself, which is what to look at where units differ.

    >>> import numpy as np
    >>> from kons.evaluation import Several
    >>> from kons.recipes import for_task
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> engine = Several(for_task("regression", "embedded", warmup=50), 2)
    >>> engine.advance((X, 10.0 * X)).prediction.shape
    (300, 2)
    >>> [one.rows for one in engine.result().targets]
    [300, 300]
    """

    STATE = fields(
        engines=Inners(),
        _late=Inner(),
        _seconds=Number(at_least=0.0),
        _learner_seconds=Number(at_least=0.0),
    )
    task = "regression"
    learner: Learner
    engines: list[Prequential]

    def __init__(self, learner: Any, targets: int, *, delay: int = 0, **choices: Any) -> None:
        self.learner, self._learner = learner, as_learner(learner)
        if not self._learner.multi_output:
            raise ConfigurationError(
                f"{self._learner.core.name} learns one target a row: use AutoKONS, EmbeddedKONS, KONS or "
                "SketchedKONS, or evaluate it on each target."
            )
        for name in ("pauses", "class_weight", "positive"):
            if choices.pop(name, None):
                raise ConfigurationError(f"{name} is not for rows of several targets: leave it out.")
        self.engines = [Prequential(learner, "regression", delay=delay, **choices) for _ in range(targets)]
        self.delay = delay
        self._late = Delayed(self._learner, delay)
        self._seconds = self._learner_seconds = 0.0

    @property
    def rows(self) -> int:
        """How many rows were predicted."""
        return self.engines[0].rows

    @property
    def loss(self) -> float:
        """The mean over all rows so far of the squared errors, summed over targets."""
        return sum(engine.loss for engine in self.engines)

    @property
    def learner_seconds(self) -> float:
        """CPU seconds of the learner so far."""
        return self._learner_seconds

    @property
    def notes(self) -> list[str]:
        """What is worth knowing, once."""
        return list(dict.fromkeys(note for engine in self.engines for note in engine.notes))

    @property
    def target_order(self) -> TargetOrder:
        """Of the first target."""
        return self.engines[0].target_order

    def advance(self, block: Block | tuple[Any, Any]) -> Scored:
        """Predict the rows of a block, score each target, and learn what has become known.

        Of what is returned, ``target``, ``prediction``, ``lower`` and ``upper`` are (n, k).
        """
        started = wall_clock()
        X, y = block[1:3] if isinstance(block, Block) else block
        X = as_points(X) if self._learner.accepts == "vectors" else X
        Y: Matrix = as_outputs(y, len(X), len(self.engines))
        if isinstance(block, Block) and block.encoder is not None and self._learner.encoder is None:
            self._learner.take_encoder(block.encoder)
        clock = cpu_clock()
        (found, *_), known = self._late.play(X, Y, self.rows)
        self._learner_seconds += cpu_clock() - clock
        if found["prediction"].ndim == 1:  # no row was learned yet: a number for all targets
            found = replace(found, prediction=np.repeat(found["prediction"][:, None], Y.shape[1], axis=1))
        each = []
        for k, engine in enumerate(self.engines):
            scale = None if found.scale is None else found.scale[:, k].copy()
            said = Trace(
                kept=found.kept, size=found.size, prediction=found["prediction"][:, k].copy(), scale=scale
            )
            targets, its = Y[:, k].copy(), known._replace(targets=known.targets[:, k].copy())
            each.append(engine.score(X, targets, targets, Interleaved(said, None, []), its))
        if isinstance(block, Block) and block.growth is not None:
            self._learner.grow(block.growth)
            self._late.queue.widen(block.growth.earlier)
            for engine in self.engines:
                engine.widen(block.growth.earlier)
        losses = np.sum([one.loss for one in each], axis=0)
        self._seconds += wall_clock() - started
        lower, upper = (np.stack([getattr(one, name) for one in each], axis=1) for name in ("lower", "upper"))
        return each[0]._replace(
            target=Y,
            prediction=found["prediction"],
            lower=lower,
            upper=upper,
            loss=losses,
            trace=found if found.loss is not None else replace(found, loss=losses),
            baseline_losses={
                name: np.sum([one.baseline_losses[name] for one in each], axis=0)
                for name in each[0].baseline_losses
            },
        )

    def finish(self) -> None:
        """The stream has ended: the learner learns the rows whose targets came too late."""
        self._late.finish()
        for engine in self.engines:
            engine.finish()

    def result(self) -> Evaluation:
        """What is known so far; the evaluations of the targets are in the order of y's columns."""
        each = [engine.result() for engine in self.engines]
        first = each[0]
        sums = ("loss", *first.baselines, *(f"running_{name}" for name in ("loss", *first.baselines)))
        return replace(
            first,
            loss=sum(one.loss for one in each),
            metrics={name: float(np.mean([one.metrics[name] for one in each])) for name in first.metrics},
            baselines={name: sum(one.baselines[name] for one in each) for name in first.baselines},
            last_quarter={name: sum(one.last_quarter[name] for one in each) for name in first.last_quarter},
            curves={
                name: (np.sum if name in sums else np.mean)([one.curves[name] for one in each], axis=0)
                for name in first.curves
            },
            coverage=None if first.coverage is None else float(np.mean([one.coverage for one in each])),
            order=None,
            seconds=self._seconds,
            learner_seconds=self._learner_seconds,
            notes=self.notes,
            targets=each,
        )

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        if len({engine.rows for engine in self.engines}) > 1:
            raise stored.error("its targets are at different rows")
        self._late.require_rows(self.rows, lambda value: isinstance(value, np.ndarray), stored)
