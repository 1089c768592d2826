"""FeatureLearner: explicit features of a kernel, and a curvature of any kind over them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from kons.arrays import MOST_FEATURES, Matrix, require_integer, require_number, require_word
from kons.core.coins import Coins
from kons.core.descent import DESCENTS, Descent, Settings
from kons.core.feature_maps import MAPS, FeatureMap, Span
from kons.core.ledger import Ledger
from kons.core.newton import Newton, SketchedNewton
from kons.core.replay import Slopes
from kons.core.storage import PointStore
from kons.errors import ConfigurationError
from kons.kernels import Kernel
from kons.learners.newton import NewtonLearner
from kons.losses import Loss
from kons.state import Inner, Inners, fields
from kons.step_sizes import Constant, StepSize, for_descent

__all__ = ["FeatureLearner"]

SKETCHED = "sketched"


class FeatureLearner(NewtonLearner):
    """A linear function of explicit features, learned with or without curvature.

    ::

        f(x) = u^T z(x),    z(x)^T z(x') = k(x, x') or about so
        u <- u - (h/q) A^-1 z,    u <- u - eta A^-1 g z        h and q as in :class:`kons.KONS`

    One row of choices each: *which features* (:mod:`kons.core.feature_maps`) and *which curvature*, A
    (:mod:`kons.core.descent`, :mod:`kons.core.newton`). The named algorithms are in
    :mod:`kons.recipes.explicit`. A row costs what its features cost, and O(D) for D of them, O(D l) sketched,
    O(D^2) with all of A. What the originals do not have is the projection on the functions whose value at x
    is in [-bound, bound]: it never raises the regret against such functions, and whatever the step size, no
    prediction diverges.

    Not for kernels whose features are not explicit: :class:`kons.EmbeddedKONS` has their span.

    Parameters
    ----------
    kernel, loss, bound:
        As in :class:`kons.KONS`.
    features:
        ``"columns"`` of a linear kernel, ``"fourier"`` or ``"fastfood"`` of one of distances, at random;
        ``"span"`` of the first atoms, ``"sketch"`` of a uniform sample's kernel matrix, sketched twice.
    dimension:
        How many random features, or sums of a sketch: an even number.
    max_atoms, tolerance:
        Of the span: points that are not in it, to a part ``tolerance`` of k(x,x), become atoms, up to so
        many.
    rank:
        Of ``"span"`` the directions in which the atoms are largest, so many, and of ``"sketch"``; None: all.
    columns:
        Of ``"sketch"``: how many columns of the kernel matrix it takes.
    curvature:
        ``"none"``, ``"scaled"`` (the largest k(x,x) so far), ``"norm"`` (one number of past slopes) or
        ``"diagonal"`` (one for each coordinate); ``"gradient"``, ``"hessian"`` or ``"sketched"`` (gradient,
        by frequent directions).
    regularization:
        alpha, what A is before the first row; the divisor's least value where it is ``norm`` or ``diagonal``.
    step_size:
        eta, a number or a function of t. Of A with curvature ``gradient`` and ``sketched``, as in
        :class:`kons.KONS`. Else of the step itself: None is ``bound/(L sqrt(t))`` with ``none``, for kernels
        with k(x,x) = 1, and ``scaled``; a constant ``bound/10`` with ``norm`` and ``diagonal``.
    power, discount, momentum:
        Of ``norm`` and ``diagonal``: A takes the sum of squared slopes to this power, with this discount;
        steps follow a mean of slopes with this momentum.
    radius:
        With ``none``, ``scaled`` and ``norm``: u is projected on the ball of this radius. None: it is not.
    directions:
        l of a sketch.
    forward:
        As in :class:`kons.EmbeddedKONS`.
    seed:
        Of random features.

    Examples
    --------
    >>> import numpy as np
    >>> from kons import FeatureLearner, Gaussian, Squared
    >>> x = np.random.default_rng(0).uniform(-3, 3, size=(3000, 1))
    >>> learner = FeatureLearner(Gaussian(0.5), Squared(), features="fourier", dimension=100, step_size=0.5)
    >>> trace = learner.advance(x, np.sin(x).ravel())
    >>> bool(trace.loss[-1000:].mean() < 0.01)
    True
    """

    STATE = fields(
        _map=Inner(),
        # of as many functions as the number of targets, which was loaded before, asks for
        _steps=Inners(make=lambda learner: learner._make_functions()),
    )
    _curvature_word = "curvature"

    def __init__(
        self,
        kernel: Kernel,
        loss: Loss,
        *,
        bound: float = 1.0,
        features: Literal["columns", "fourier", "fastfood", "span", "sketch"] = "columns",
        dimension: int = 400,
        max_atoms: int = 100,
        tolerance: float = 1e-4,
        rank: int | None = None,
        columns: int = 50,
        curvature: Literal["none", "scaled", "norm", "diagonal", "gradient", "hessian", "sketched"] = "none",
        regularization: float = 1.0,
        step_size: Any = None,
        power: float = 0.5,
        discount: float = 1.0,
        momentum: float = 0.0,
        radius: float | None = None,
        directions: int = 10,
        forward: bool = False,
        seed: int = 0,
    ) -> None:
        self.features: str = require_word(features, "features", MAPS)
        known = (*DESCENTS, "gradient", "hessian", SKETCHED)
        self.curvature: str = require_word(curvature, "curvature", known)
        first_order = curvature in DESCENTS
        given = {"bound": bound, "regularization": regularization, "step_size": step_size}
        order = "none" if first_order else "hessian" if curvature == "hessian" else "gradient"
        super().__init__(kernel, loss, **given, second_order=order)
        self.second_order: str | None = None if first_order else self.second_order  # it has no A to speak of
        self.dimension: int = require_integer(dimension, "dimension", at_least=2, at_most=MOST_FEATURES)
        self.max_atoms: int = require_integer(max_atoms, "max_atoms", at_least=1)
        self.tolerance: float = require_number(tolerance, "tolerance", at_least=0.0, below=1.0)
        self.rank: int | None = None if rank is None else require_integer(rank, "rank", at_least=1)
        self.columns: int = require_integer(columns, "columns", at_least=1)
        self.power: float = require_number(power, "power", above=0.0, at_most=1.0)
        self.discount: float = require_number(discount, "discount", above=0.0, at_most=1.0)
        self.momentum: float = require_number(momentum, "momentum", at_least=0.0, below=1.0)
        self.radius: float | None = None if radius is None else require_number(radius, "radius", above=0.0)
        self.directions: int = require_integer(directions, "directions", at_least=1)
        self.forward: bool = self._require_forward(forward)
        self.seed: int = require_integer(seed, "seed", at_least=0)
        if self.radius is not None and (not first_order or curvature == "diagonal"):
            raise ConfigurationError(
                f'radius={self.radius:g} is for curvature="none", "scaled" and "norm", whose norm is that of '
                f'the ball, not for "{curvature}".'
            )
        spans = features in ("span", "sketch")
        if spans and not first_order:
            raise ConfigurationError(
                f'curvature="{curvature}" in the span of atoms is kons.EmbeddedKONS: use that.'
            )
        if self.rank is not None and not spans:
            raise ConfigurationError(
                f'rank={rank} is for features="span" and "sketch", not for "{features}".'
            )
        if (features == "sketch" or rank is not None) and curvature == "diagonal":
            raise ConfigurationError(
                'features="sketch" and a rank turn coordinates, and curvature="diagonal" has a number for '
                'each of them: choose "norm" or "none".'
            )
        self._coins = (Coins(self.seed),)
        self._rules = self._rules._replace(forward=self.forward)
        self._map = self._new_map()
        self._make_functions()

    # ---- looking

    @property
    def weights(self) -> Matrix:
        """u, a column for each function: (D, K). A copy."""
        return np.column_stack([part.u for part in self._steps])

    @property
    def atoms(self) -> Any:
        """The points whose span the function lives in, in the order they entered. A copy."""
        return self._map.embedding.atoms.copy() if isinstance(self._map, Span) else np.empty((0, 0))

    @property
    def removed(self) -> float:
        """What a sketch took off any direction of its sum of squares, at most; 0 of all others."""
        return max(part.sketch.removed for part in self._steps) if self.curvature == SKETCHED else 0.0

    def transform(self, X: Any) -> Matrix:
        """``z`` of each row, (n, D): the features as they are now. Changes nothing.

        >>> from kons import recipes, Squared
        >>> recipes.ogd(Squared()).transform([[2.0, 3.0]])
        array([[1., 2., 3.]])
        """
        points = self._as_points(X)
        if self._rows_seen or self.accepts == "objects":
            return self._map.features(points)
        of_first_row = self._new_map()
        of_first_row.start(points.shape[1])
        return of_first_row.features(points)

    # ---- inside

    def _usual_step(self) -> StepSize:
        """A constant tenth of the bound where A has units of a slope."""
        if self.curvature in ("norm", "diagonal"):
            return Constant(0.1 * self.bound)
        return for_descent(self.loss, self.bound) if self.curvature in DESCENTS else super()._usual_step()

    def _new_map(self) -> FeatureMap:
        made, names = MAPS[self.features]
        return made(self.kernel, **{name: getattr(self, name) for name in names})

    def _make_functions(self, count: int = 0) -> Any:
        count = count or self.outputs or 1
        self._steps: list[Any]
        self._steps = [self._new_steps(each) for each in ([count] if self._shares_matrix else [1] * count)]
        if self._rows_seen:
            self._extend()
        return self._steps

    def _new_steps(self, outputs: int) -> Any:
        if self.curvature == SKETCHED:
            return SketchedNewton(self.regularization, self.directions)
        if self.second_order:
            return Newton(self.regularization, outputs=outputs)
        radius = math.inf if self.radius is None else self.radius
        given = (self.regularization, self.power, self.discount, self.momentum, radius)
        return Descent(Settings(DESCENTS[self.curvature], *given))

    def _learn_rows(self, points: Any, rows: Ledger, derivatives: Slopes, limit: int | None) -> None:
        if not self._rows_seen and self.accepts == "vectors":
            self._map.start(points.shape[1])
        super()._learn_rows(points, rows, derivatives, limit)

    def _learn_block(self, block: Any, ledgers: Ledger, derivatives: Slopes) -> int:
        block = block[: min(part.rows_left for part in self._steps)]
        taken = self._map.take(block, ledgers["uniform"][0, : len(block)])
        self._extend(len(taken.Z[0]))
        rows = ledgers[:, : len(taken.Z)]
        of_each = rows[None] if self._shares_matrix else rows[:, None]
        for part, own in zip(self._steps, of_each, strict=True):
            part.learn(own, taken.Z, self._rules, derivatives)
            if taken.projection is not None:
                part.project(taken.projection)
        rows["kept"][:, -1] = taken.entered
        return len(taken.Z)

    def _extend(self, size: int | None = None) -> None:
        """Let the weights follow the features, so many of them."""
        more = (self._map.size if size is None else size) - len(self._steps[0])
        for part in self._steps if more else ():
            part.extend(more)

    def _raw_scores(self, points: Any) -> Matrix:
        if not self._rows_seen:
            return np.zeros((len(points), self._outputs or 1))
        Z = self._map.features(points)
        with np.errstate(over="ignore", invalid="ignore"):  # a score that is no number is refused
            scores: Matrix = Z @ self.weights
            if self.forward:
                scores /= 1.0 + 2.0 * self._steps[0].inverse_forms(Z)[:, None]
        return scores

    def _point_stores(self) -> Sequence[PointStore]:
        return (self._map.embedding.atoms,) if isinstance(self._map, Span) else ()

    def _widened(self, columns: int) -> None:
        self._map.widen(columns)
        self._extend()
