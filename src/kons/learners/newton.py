"""The family of second-order learners: one update, rows of choices.

======================  =================  ==========================  ====================
learner                 A lives in         who enters                  a row costs
======================  =================  ==========================  ====================
``KONS``                the feature space  every point                 O(t^2)
``SketchedKONS``        the feature space  a coin, by leverage         O(t*d + B^2)
``... weighted=True``   the feature space  the coin, weighted 1/p      O(t*d + B^2)
``EmbeddedKONS``        a span of B atoms  every point, projected      O(B^2)
``SlidingWindow``       the feature space  the last N points           O(N^2)
``FunctionalGradient``  nowhere: A = I     nobody; f keeps B points    O(B)
======================  =================  ==========================  ====================
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.arrays import (
    Matrix,
    Vector,
    as_row_values,
    as_scalar,
    require_flag,
    require_integer,
    require_scale,
    require_word,
)
from kons.core.coins import Coins
from kons.core.ledger import (
    ALL,
    CAPPED,
    CURVATURES,
    HESSIAN,
    NONE,
    UPDATES,
    Ledger,
    Rules,
    new_ledger,
)
from kons.core.replay import Slopes
from kons.core.threads import single_threaded_blas
from kons.errors import ConfigurationError, NumericalError, TargetError, notice
from kons.kernels import Kernel
from kons.learners.stream import Outputs, StreamConsumer
from kons.learners.trace import Trace
from kons.losses import Hinge, Loss, Squared
from kons.state import Inners, Number, fields
from kons.step_sizes import StepSize, as_step_size, for_loss

__all__ = ["NewtonLearner"]

# Rows predicted at a time, so that memory does not grow with the rows asked for.
PREDICTED_BLOCK = 1024
#: Columns of a trace: what each function has, and what each A.
OF_FUNCTIONS = ("prediction", "slope")
OF_MATRICES = ("weight", "inverse_form", "leverage")


class NewtonLearner(StreamConsumer):
    """Predict, see the answer, take a Newton step: the verbs that every learner shares.

    Not to be used directly. A subclass says where A lives (:meth:`_learn_block`, :meth:`_raw_scores`)
    and who enters it (its rules).
    """

    units = "scaled"
    multi_output = True
    STATE = fields(
        _outputs=Outputs(),
        _log_determinant=Number(at_least=0.0),
        _online_effective_dimension=Number(at_least=0.0),
        _coins=Inners(),
    )

    def __init__(
        self,
        kernel: Kernel,
        loss: Loss,
        *,
        bound: float,
        regularization: float = 1.0,
        step_size: Any = None,
        second_order: str = "gradient",
        updates: str = "all",
    ) -> None:
        super().__init__(kernel)
        if not isinstance(loss, Loss):
            raise ConfigurationError(
                f"loss is {loss!r}, expected an instance from kons.losses, such as Squared(); "
                "bring your own as kons.losses.CustomLoss(value, slope)."
            )
        self.loss: Loss = loss
        self.task: str = "regression" if isinstance(loss, Squared) else "classification"
        self.bound: float = require_scale(bound, "bound")
        self.regularization: float = require_scale(regularization, "regularization")
        self.step_size: StepSize = self._usual_step() if step_size is None else as_step_size(step_size)
        curvature = _curvature(second_order, loss)
        self.second_order: str | None = second_order
        self.updates = updates
        if updates == "margins" and not (self.shares_dictionary and (curvature, loss) == (NONE, Hinge())):
            raise ConfigurationError(
                'updates="margins" is of hinge slopes, projected on a span: it needs EmbeddedKONS with '
                f'Hinge() and second_order="none", not {self.name} with {loss!r} and "{second_order}".'
            )
        squares = curvature == HESSIAN and isinstance(loss, Squared)
        self._rules = Rules(
            bound=self.bound,
            regularization=self.regularization,
            curvature=curvature,
            projects=not squares and curvature < CAPPED,
            updates=_updates(updates, loss, self.bound),
        )
        #: Whether all functions have the same A: its weights know no target.
        self._shares_matrix = squares and self._rules.updates == ALL
        self._coins: tuple[Coins, ...] = ()
        self._log_determinant = 0.0
        self._online_effective_dimension = 0.0

    # ---- learning

    def advance(self, X: Any, y: Any, block_size: int | None = None, sample_weight: Any = None) -> Trace:
        """Predict, then learn, each row of X in order; all of them or, after an error, none.

        Parameters
        ----------
        X, y:
            Rows of features (or a sequence of objects, if the kernel takes objects), and targets: (n,), or
            (n, k) for k functions, whose losses add up. The first row says which, for good.
        block_size:
            At most this many rows are replayed at a time; the library may cut smaller. It changes
            predictions only by rounding; what the update itself makes of rounding, where regularization is
            tiny, is told in docs/departures.md.
        sample_weight:
            One non-negative number c per row: its loss becomes c times the loss, which scales the
            slope and the weight in A by c. With c = 0 a row is predicted, and projected where it clips,
            which happens before its loss is seen.
        """
        points = self._as_points(X)
        targets = self._as_outputs(y, len(points))
        self.loss.check_targets(targets, self.bound)
        rows = new_ledger(targets.size // len(points), len(points))
        rows["target"] = targets.T
        if sample_weight is not None:
            rows["scale"] = as_row_values(sample_weight, len(points), name="sample_weight", minimum=0.0)
        limit = len(points)
        if block_size is not None:
            limit = require_integer(block_size, "block_size", at_least=1)
        rows["step_size"] = self._step_sizes(len(points))
        with self._all_or_nothing():
            self._begin(targets.shape[1:])
            self._learn(points, rows, self._derivatives(), limit)
            losses = rows["scale"] * self.loss.value(rows["prediction"], rows["target"])
        return self._trace(rows, losses.sum(axis=0))

    def learn_one(self, x: Any, y: Any) -> None:
        """Learn one row: a block of one."""
        points = self._as_point(x)
        target = np.asarray(self._as_output(y))
        self.loss.check_targets(target, self.bound)
        rows = new_ledger(target.size, 1)
        rows["target"] = target.reshape(-1, 1)
        rows["step_size"] = self._step_sizes(1)
        with self._all_or_nothing():
            self._begin(target.shape)
            self._learn(points, rows, self._derivatives(), None)
        self._last_row = rows["prediction"], rows["novelty"]

    def learn_slope(self, x: Any, slope: float, curvature: float | None = None) -> None:
        """The paper's own protocol: the adversary's loss is new in each row, only its slope is seen.

        Call ``predict_one(x)`` for the prediction the slope belongs to. ``curvature`` is the row's
        sigma_t of Assumption 2, used as its step size; without it the learner's ``step_size`` is.

        >>> from kons import KONS, Linear, Squared
        >>> learner = KONS(Linear(), Squared())
        >>> learner.learn_slope([1.0, 0.0], slope=-1.0, curvature=0.5)
        >>> round(learner.predict_one([1.0, 0.0]), 4)
        0.6667
        """
        if self._rules.curvature == HESSIAN:
            raise ConfigurationError('learn_slope sees no second derivative: use second_order="gradient".')
        if self._rules.updates != ALL:
            raise ConfigurationError(f'learn_slope sees no targets: use updates="all", not "{self.updates}".')
        if self._outputs:
            raise ConfigurationError(
                f"learn_slope is of one target, and rows have had {self._outputs}: make a learner for each."
            )
        points = self._as_point(x)
        g = as_scalar(slope, name="slope")
        rows = new_ledger(1, 1)
        if curvature is None:
            rows["step_size"] = self._step_sizes(1)
        else:
            rows["step_size"] = as_row_values([curvature], 1, name="curvature", minimum=0.0)
        with self._all_or_nothing():
            self._begin(())
            self._learn(points, rows, lambda _prediction, _target: (g, 0.0), None)

    # ---- predicting

    def predict(self, X: Any) -> Vector | Matrix:
        """The clipped scores of the current function, each row as if it came next. Changes nothing.

        (n,), or (n, k) where rows have k targets.
        """
        points = self._as_points(X)
        blocks = [
            self._raw_scores(points[start : start + PREDICTED_BLOCK])
            for start in range(0, len(points), PREDICTED_BLOCK)
        ]
        scores = np.concatenate(blocks)
        return self._clipped(scores if self._outputs else scores[:, 0])

    def predict_one(self, x: Any) -> Any:
        """The clipped score of one row: a number, or an array of k where rows have k targets."""
        scores = self._clipped(self._raw_scores(self._as_point(x))[0])
        return scores if self._outputs else float(scores[0])

    def _clipped(self, scores: Vector | Matrix) -> Vector | Matrix:
        if not np.isfinite(scores).all():
            raise no_finite_score(self.kernel)
        return np.clip(scores, -self.bound, self.bound)

    # ---- looking

    @property
    def labelled(self) -> bool:
        """Never: of targets -1 and +1 it predicts scores, which :class:`~kons.Classifier` makes labels."""
        return False

    @property
    def log_determinant(self) -> float:
        """``sum log(1 + w*q)``: log det(A/alpha), the potential of the regret bound, over all A there are.

        The two differ where A loses what it had: restarts, forgetting, replacement.
        """
        return self._log_determinant

    @property
    def online_effective_dimension(self) -> float:
        """``sum_t tau_tt``, the sum of the leverages at the time each point was met."""
        return self._online_effective_dimension

    # ---- inside

    def _tells_afterwards(self, y: Any = 0.0) -> bool:
        return self._outputs == 0 or (self._outputs is None and isinstance(y, float))

    def _said(self) -> tuple[float, float]:
        prediction, novelty = self._last_row
        return prediction.item(0), novelty.item(0) if "novelty" in self._extra_columns else 0.0

    #: Rows that are replayed at a time, at most.
    _block = 256

    def _learn_rows(self, points: Any, rows: Ledger, derivatives: Slopes, limit: int | None) -> None:
        """Predict and learn in order, filling the ledgers (K, n), in blocks of at most ``limit`` rows.

        None: a single row, without touching the limits on threads.
        """
        start, block = 0, min(limit or 1, self._block)
        with single_threaded_blas(limit is not None):
            while start < len(points):
                part = slice(start, start + block)
                start += self._learn_block(points[part], rows[:, part], derivatives)

    @abstractmethod
    def _learn_block(self, block: Any, ledgers: Ledger, derivatives: Slopes) -> int:
        """:meth:`_learn_rows` of the first of few rows, one at least; returns how many those were."""

    @abstractmethod
    def _raw_scores(self, points: Any) -> Matrix:
        """The predictions before they are clipped, (n, K). Changes nothing."""

    def _make_functions(self, count: int) -> Any:
        """Become K functions, where one has been that has learned nothing."""
        raise ConfigurationError(
            f"{self.name} keeps points by their one target, and y has {count}: make a learner for each."
        )

    def _usual_step(self) -> StepSize:
        """What a step size of None stands for."""
        _tell_of_flat_loss(self.loss, self.bound)
        return for_loss(self.loss, self.bound)

    def _require_forward(self, forward: Any) -> bool:
        """A flag that only the squared loss with its Hessian may have."""
        word = self._curvature_word
        if require_flag(forward, "forward") and not (
            self._rules.curvature == HESSIAN and isinstance(self.loss, Squared)
        ):
            raise ConfigurationError(
                "forward=True is the Azoury-Warmuth-Vovk prediction of the squared loss: it needs Squared() "
                f'and {word}="hessian", not {self.loss!r} and "{getattr(self, word)}".'
            )
        return bool(forward)

    def _begin(self, outputs: tuple[int, ...]) -> None:
        """The first row says how many targets there are: () one number, (K,) a row of K."""
        if self._outputs is None:
            if outputs:
                self._make_functions(*outputs)
            self._outputs = sum(outputs)

    def _learn(self, points: Any, rows: Ledger, derivatives: Slopes, limit: int | None) -> None:
        for field, coins in zip(("uniform", "sampler_uniform"), self._coins, strict=False):
            rows[field] = coins.draw(len(points))
        self._learn_rows(points, rows, derivatives, limit)
        self._count(points, int(np.count_nonzero(rows["kept"].any(axis=0))))
        rows = rows[:1] if self._shares_matrix else rows
        self._log_determinant += float(np.sum(np.log1p(rows["weight"] * rows["inverse_form"])))
        self._online_effective_dimension += float(np.sum(rows["leverage"]))

    def _facts(self) -> dict[str, str]:
        return {
            "online effective dimension": f"{self.online_effective_dimension:.3g}",
            "log det(A/alpha)": f"{self.log_determinant:.3g}",
        }

    def _derivatives(self) -> Slopes:
        loss = self.loss
        if loss.code is not None:
            return loss.code
        if self._rules.curvature == HESSIAN:
            return lambda p, y: (float(loss.slope(p, y)), float(loss.second_derivative(p, y)))
        return lambda p, y: (float(loss.slope(p, y)), 0.0)

    def _step_sizes(self, rows: int) -> Vector:
        first = self._rows_seen + 1
        return self.step_size(np.arange(first, first + rows))

    def _trace(self, rows: Ledger, losses: Vector) -> Trace:
        kept: NDArray[np.bool_] = np.any(rows["kept"], axis=0)
        each = self._outputs and not self._shares_matrix
        of_functions = {name: rows[name].T if self._outputs else rows[name][0] for name in OF_FUNCTIONS}
        names = (*OF_MATRICES, *self._extra_columns)
        of_matrices = {name: rows[name].T if each else rows[name][0] for name in names}
        return Trace(
            loss=losses,
            kept=kept,
            size=self._sizes(kept),
            rounding_clips=int(np.count_nonzero(rows["clipped"])),
            **{name: column.copy() for name, column in (of_functions | of_matrices).items()},
        )

    #: The parameter that says which curvature.
    _curvature_word = "second_order"
    #: Prediction and novelty in the ledger of the last row that came alone.
    _last_row: tuple[Any, Any] = (np.zeros(1), np.zeros(1))
    #: Columns of the ledger that this learner's traces show besides.
    _extra_columns: tuple[str, ...] = ()

    @property
    def trace_columns(self) -> tuple[str, ...]:
        """Columns of its traces besides prediction, loss, kept and size."""
        return (*OF_FUNCTIONS[1:], *OF_MATRICES, *self._extra_columns)


def no_finite_score(kernel: Kernel) -> NumericalError:
    return NumericalError(
        f"f(x) is not a finite number. Likely causes: (a) {kernel!r} returned NaN or infinity; (b) the "
        "features are too large for it; (c) the steps are: lower step_size or the sample weights."
    )


def _tell_of_flat_loss(loss: Loss, bound: float) -> None:
    """Theorem 1: a constant step size sigma beats 1/(L C sqrt(t)) from about 1/(2 sigma L C)^2 rows on."""
    sigma, L = loss.curvature(bound), loss.lipschitz(bound)
    if sigma > 0.0 and 1e9 * (2.0 * sigma * L * bound) ** 2 < 1.0:
        notice(
            f"flat {loss!r}",
            f"{loss!r} has almost no curvature on [-{bound:g}, {bound:g}] (sigma = {sigma:.1e}): with the "
            "default step size learning is slow for the first billion rows. Lower bound, or give step_size.",
        )


def _curvature(second_order: Any, loss: Loss) -> int:
    """The rule that the word stands for; refuses other words, and losses that cannot follow it."""
    curvature = CURVATURES[require_word(second_order, "second_order", CURVATURES)]
    if curvature == HESSIAN and not loss.has_second_derivative:
        raise ConfigurationError(
            f'second_order="hessian" needs a second derivative and {loss!r} has none: '
            "give it one, or use Squared, Logistic or SquaredHinge."
        )
    return curvature


def _updates(updates: Any, loss: Loss, bound: float) -> int:
    """The rule that the word stands for; mistakes are of labels -1 and +1."""
    rule = UPDATES[require_word(updates, "updates", UPDATES)]
    if rule != ALL:
        try:
            loss.check_targets([-1.0, 1.0], bound)
        except TargetError as error:
            raise ConfigurationError(
                f'updates="{updates}" is of the targets -1 and +1, which {loss!r} with bound={bound:g} does '
                "not take: use Hinge, or Squared with a bound of at least 1."
            ) from error
    return rule
