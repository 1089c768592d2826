"""Reasons of a learner: what a row is set beside, and which rows that were kept are like it."""

from __future__ import annotations

from typing import Any

import numpy as np

from kons.arrays import Matrix, Vector
from kons.errors import InputError
from kons.learners.noticing import NoticesEvents
from kons.learners.reasons import Explanation, explain
from kons.scaling import RobustScaling
from kons.tables import Records

__all__ = ["GivesReasons"]


class GivesReasons(NoticesEvents):
    """Learners that say why, by the rows they keep a sample of."""

    # Of who reads tables.
    _records: Any
    _look: Any
    _lacks_values: Any
    _filled: Any
    allows_missing: bool

    def explain(
        self,
        x: Any,
        *,
        label: Any = None,
        output: int = 0,
        recent_targets: Any = True,
        paths: int = 16,
        similar: int = 5,
    ) -> Explanation:
        """Why a row is predicted as it is: what each of its columns adds to the prediction for a typical row.

        Shapley values (:mod:`kons.learners.reasons`) against the row of medians and commonest levels of a
        sample of the rows learned; for classes, of the log-odds of ``label`` (None: the predicted one). They
        are exact up to 8 columns that differ from the typical row; beyond, a mean over ``paths`` random
        orders of them and their reverses, with standard errors. Changes nothing.

        It costs 2^d predictions in one block, beyond 8 columns 2 paths (d - 1). Not for kernels on objects.
        ``similar`` rows that were kept come with it. Where rows have several targets, ``output`` is the
        number of one. A learner that looks at the last targets takes the row as coming next, and has them as
        one column more; with ``recent_targets=False`` away from the stream, as ``predict`` does.

        >>> import numpy as np
        >>> from kons import EmbeddedKONS, Linear, Squared
        >>> X = np.random.default_rng(0).uniform(-1, 1, size=(200, 2))
        >>> model = EmbeddedKONS(Linear(), Squared(), second_order="hessian", regularization=1e-6)
        >>> trace = model.advance(X, 0.5 * X[:, 0])
        >>> reasons = model.explain([0.8, 0.3])
        >>> bool(abs(reasons.contributions[0] - 0.5 * (0.8 - reasons.typical[0])) < 1e-3)
        True
        >>> bool(abs(reasons.baseline + sum(reasons.contributions.values()) - reasons.prediction) < 1e-12)
        True
        """
        return explain(self, x, label, output, recent_targets, paths, similar)

    def _beside_typical(self, x: Any, points: Matrix) -> tuple[Any, Any, Any, list[Any], dict[Any, Any]]:
        """A row and the typical one as ``predict`` takes them, the first as it is learned; whose features
        these are; the typical one for people.
        """
        encoder, records = self._encoder, self._records(x)
        if encoder is None:
            gaps = self._lacks_values(x) and self.allows_missing
            own = self._as_point(self._filled(x) if gaps else x)[0]
            shown = self._typical(points)
            return own, np.array([*shown.values()]), own, list(range(len(own))), shown
        shown = self._typical(points)
        learned = self._as_points(x if records is None else self._look(records))
        if len(learned) != 1:
            raise InputError(f"x has {len(learned)} rows, expected one.")
        if encoder.unnamed and records is not None:
            own = np.array([records.values(name, "number")[0] for name in encoder.columns])
            typical = np.array([np.nan if value is None else value for value in shown.values()])
            return own, typical, learned[0], list(encoder.columns), shown
        typical = encoder.look(Records.of([shown]))[0]
        return learned[0], typical, learned[0], encoder.owners, shown

    def _typical(self, points: Matrix) -> dict[Any, Any]:
        """The medians of these rows and their commonest levels, by column."""
        if self._encoder is None:
            return dict(enumerate(np.median(points, axis=0).tolist()))
        typical: dict[Any, Any] = self._encoder.typical(points)
        return typical

    def _shown(self, point: Vector) -> dict[Any, Any]:
        """A row as it is learned, by column."""
        return dict(enumerate(point.tolist())) if self._encoder is None else self._encoder.decode(point)

    def _kept_rows(self) -> tuple[Matrix, Any]:
        """Rows that were learned and are there still, and their targets."""
        return self._sampled_rows()

    def _similarities(self, points: Matrix, x: Vector) -> Vector:
        """How like a row these are: 1 for the same."""
        kernel = self.kernel
        likeness: Vector
        if kernel is not None and kernel.is_resolved:
            sizes = kernel.evaluate_diagonal(points) * kernel.evaluate_diagonal(x[None])
            likeness = kernel.evaluate(points, x[None])[:, 0] / np.sqrt(np.maximum(sizes, 1e-300))
        else:
            scaling = RobustScaling.fit(points)
            apart = np.abs(scaling.transform(points) - scaling.transform(x[None]))
            likeness = np.exp(-apart.mean(axis=1))
        return likeness
