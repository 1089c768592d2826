"""The family of second-order learners over a kernel expansion: one engine, rows of choices.

======================  ============  ==============================  =======================
learner                 curvature     who enters A                    a row costs
======================  ============  ==============================  =======================
``KONS``                eta*g^2, l''  every point                     O(t^2)
``SketchedKONS``        eta*g^2       a coin, by leverage, unweighted  O(t*d + B^2)
``... weighted=True``   eta*g^2 / p   the same coin, weighted 1/p      O(t*d + B^2)
======================  ============  ==============================  =======================
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kons.arrays import (
    Vector,
    as_row_values,
    as_scalar,
    as_targets,
    require_integer,
    require_number,
)
from kons.core.coins import Coins
from kons.core.function import NewtonFunction
from kons.core.replay import Derivatives, Ledger, Rules, new_ledger, replay
from kons.core.sampler import LeverageSampler
from kons.core.threads import single_threaded_blas
from kons.errors import ConfigurationError
from kons.kernels import Kernel
from kons.learners.stream import Restorable, StreamConsumer
from kons.learners.trace import Trace
from kons.losses import Loss
from kons.step_sizes import StepSize, as_step_size, for_loss

__all__ = ["NewtonLearner"]

# Rows replayed at a time: the products per block then run at full speed, while the serial recursion
# inside it, O(m^2) a row, stays a small part. A sketch's products are small, and it recurs twice.
BLOCK = 384
SKETCHED_BLOCK = 128
# Rows predicted at a time, so that memory does not grow with the rows asked for.
PREDICTED_BLOCK = 1024
# Points inside A from which a block's products gain more from a second thread than they risk where
# another process keeps that core busy (measured: 10 % against a factor 2 at 3,000 points).
THREADED_FROM = 4096

_NO_SAMPLE = np.empty((0, 0))


class NewtonLearner(StreamConsumer):
    """Predict, see the answer, take a Newton step: what KONS and its sketches share.

    Not to be used directly. A subclass says who enters (its rules) and, if there are coins, which.
    """

    def __init__(
        self, kernel: Kernel, loss: Loss, *, bound: float, regularization: float, step_size: Any
    ) -> None:
        super().__init__(kernel)
        if not isinstance(loss, Loss):
            raise ConfigurationError(
                f"loss is {loss!r}, expected an instance from kons.losses, such as Squared(); "
                "bring your own as kons.losses.CustomLoss(value, slope)."
            )
        self.loss = loss
        self.bound = require_number(bound, "bound", above=0.0)
        self.regularization = require_number(regularization, "regularization", above=0.0)
        self.step_size: StepSize = (
            for_loss(loss, self.bound) if step_size is None else as_step_size(step_size)
        )
        self._rules = Rules(bound=self.bound, regularization=self.regularization)
        self._function = NewtonFunction(kernel, self.regularization)
        self._sampler: LeverageSampler | None = None
        self._coins: tuple[Coins, ...] = ()
        self._log_determinant = 0.0
        self._online_effective_dimension = 0.0

    # ---- learning

    def advance(self, X: Any, y: Any, block_size: int | None = None, sample_weight: Any = None) -> Trace:
        """Predict, then learn, each row of X in order; all of them or, after an error, none.

        Parameters
        ----------
        X, y:
            Rows of features (or a sequence of objects, if the kernel takes objects), and targets.
        block_size:
            At most this many rows are replayed at a time; the library may cut smaller. Decisions do
            not depend on it, predictions only by rounding.
        sample_weight:
            One non-negative number c per row: its loss becomes c times the loss, which scales the
            slope and the weight in A by c.
        """
        points = self._as_points(X)
        rows = new_ledger(len(points))
        rows["target"] = as_targets(y, len(points))
        self.loss.check_targets(rows["target"], self.bound)
        if sample_weight is not None:
            rows["scale"] = as_row_values(sample_weight, len(points), name="sample_weight", minimum=0.0)
        limit = self._block_rows
        if block_size is not None:
            limit = min(limit, require_integer(block_size, "block_size", at_least=1))
        rows["step_size"] = self._step_sizes(len(points))
        with self._all_or_nothing():
            self._learn(points, rows, self._derivatives(), limit, manages_threads=True)
            losses = rows["scale"] * self.loss.value(rows["prediction"], rows["target"])
        return self._trace(rows, losses)

    def learn_one(self, x: Any, y: Any) -> None:
        """Learn one row: a block of one."""
        points = self._as_point(x)
        rows = new_ledger(1)
        rows["target"] = as_scalar(y, name="y")
        self.loss.check_targets(rows["target"], self.bound)
        rows["step_size"] = self._step_sizes(1)
        with self._all_or_nothing():
            self._learn(points, rows, self._derivatives(), 1)

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
        if self._rules.hessian:
            raise ConfigurationError(
                'learn_slope sees no second derivative: use second_order="gradient".'
            )
        points = self._as_point(x)
        g = as_scalar(slope, name="slope")
        rows = new_ledger(1)
        if curvature is None:
            rows["step_size"] = self._step_sizes(1)
        else:
            rows["step_size"] = as_row_values([curvature], 1, name="curvature", minimum=0.0)
        with self._all_or_nothing():
            self._learn(points, rows, lambda _prediction, _target: (g, 0.0), 1)

    # ---- predicting

    def predict(self, X: Any) -> Vector:
        """The clipped scores of the current function, each row as if it came next. Changes nothing."""
        points = self._as_points(X)
        blocks = [
            self._function.predict(points[start : start + PREDICTED_BLOCK])
            for start in range(0, len(points), PREDICTED_BLOCK)
        ]
        return np.clip(np.concatenate(blocks), -self.bound, self.bound)

    def predict_one(self, x: Any) -> float:
        """The clipped score of one row."""
        value = float(self._function.predict(self._as_point(x))[0])
        return min(max(value, -self.bound), self.bound)

    # ---- looking

    @property
    def log_determinant(self) -> float:
        """``log det(A/alpha)``, the potential of the regret bound."""
        return self._log_determinant

    @property
    def online_effective_dimension(self) -> float:
        """``sum_t tau_tt``, the sum of the leverages at the time each point was met."""
        return self._online_effective_dimension

    def state(self) -> dict[str, Any]:
        """Everything the next row depends on: arrays, numbers, lists of objects. A copy."""
        return {
            "width": self._width,
            "rows_seen": self._rows_seen,
            "kept": self._kept,
            "log_determinant": self._log_determinant,
            "online_effective_dimension": self._online_effective_dimension,
            "function": self._function.state(),
            "sampler": None if self._sampler is None else self._sampler.state(),
            "coins": [coins.mark() for coins in self._coins],
        }

    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments by name."""
        return {
            "kernel": self.kernel,
            "loss": self.loss,
            "bound": self.bound,
            "regularization": self.regularization,
            "step_size": self.step_size,
        }

    # ---- inside

    @property
    def _block_rows(self) -> int:
        return BLOCK if self._sampler is None else SKETCHED_BLOCK

    def _learn(
        self,
        points: Any,
        rows: Ledger,
        derivatives: int | Derivatives,
        block: int,
        manages_threads: bool = False,
    ) -> None:
        for field, coins in zip(("uniform", "sampler_uniform"), self._coins, strict=False):
            rows[field] = coins.draw(len(rows))
        for start in range(0, len(rows), block):
            part = slice(start, start + block)
            with single_threaded_blas(manages_threads and len(self._function.inside) < THREADED_FROM):
                self._learn_block(points[part], rows[part], derivatives)
        self._count(points, int(np.count_nonzero(rows["kept"])))
        mass = rows["weight"] * rows["inverse_form"]
        self._log_determinant += float(np.sum(np.log1p(mass)))
        self._online_effective_dimension += float(np.sum(mass / (1.0 + mass)))

    def _learn_block(self, block: Any, rows: Ledger, derivatives: int | Derivatives) -> None:
        """Blocked replay: the same as its rows one by one, at the speed of matrix products."""
        function, sampler = self._function, self._sampler
        rows["self_kernel"] = self.kernel.evaluate_diagonal(block)
        K_bb = self.kernel.evaluate(block, block)
        np.fill_diagonal(K_bb, rows["self_kernel"])
        K = function.cross_gram(block)
        N, U = (_NO_SAMPLE, _NO_SAMPLE) if sampler is None else sampler.posterior(block, K_bb, K)
        f = function.values(block, K)
        V = function.preconditioner.whiten(K)
        M = function.preconditioner.covariance(K_bb, V)
        traces = np.array(
            [
                function.preconditioner.weighted_trace,
                0.0 if sampler is None else sampler.preconditioner.weighted_trace,
            ]
        )
        replay(derivatives, rows, self._rules, f, M, N, traces)
        if sampler is not None:
            sampler.absorb(block, rows, U, N)
        function.absorb(block, rows, V, M)

    def _parts(self) -> Sequence[Restorable]:
        sampler = () if self._sampler is None else (self._sampler,)
        return (self._function, *sampler, *self._coins)

    def _facts(self) -> dict[str, str]:
        return {
            "online effective dimension": f"{self.online_effective_dimension:.3g}",
            "log det(A/alpha)": f"{self.log_determinant:.3g}",
        }

    def _derivatives(self) -> int | Derivatives:
        loss = self.loss
        if loss.code is not None:
            return loss.code
        if self._rules.hessian:
            return lambda p, y: (float(loss.slope(p, y)), float(loss.second_derivative(p, y)))
        return lambda p, y: (float(loss.slope(p, y)), 0.0)

    def _step_sizes(self, rows: int) -> Vector:
        first = self._rows_seen + 1
        return self.step_size(np.arange(first, first + rows))

    def _trace(self, rows: Ledger, losses: Vector) -> Trace:
        kept_before = self._kept - int(np.count_nonzero(rows["kept"]))
        mass = rows["weight"] * rows["inverse_form"]
        sketched = self._sampler is not None
        return Trace(
            prediction=rows["prediction"].copy(),
            loss=losses,
            slope=rows["slope"].copy(),
            weight=rows["weight"].copy(),
            inverse_form=rows["inverse_form"].copy(),
            leverage=mass / (1.0 + mass),
            kept=rows["kept"].copy(),
            size=kept_before + np.cumsum(rows["kept"]),
            leverage_estimate=rows["leverage_estimate"].copy() if sketched else None,
            probability=rows["probability"].copy() if sketched else None,
            rounding_clips=int(np.count_nonzero(rows["clipped"])),
        )
