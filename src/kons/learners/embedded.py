"""EmbeddedKONS: the second-order update in the span of an adaptive dictionary, at constant cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from kons.arrays import Vector, as_scalar, require_flag, require_integer, require_number
from kons.core.coins import Coins
from kons.core.embedding import Embedding
from kons.core.entry import DEPENDENT
from kons.core.function import cross_gram
from kons.core.ledger import (
    SPAN_DEPENDENCE,
    SPAN_FIXED,
    SPAN_LEVERAGE,
    TOTALS,
    Ledger,
    new_ledger,
)
from kons.core.quadratic import Quadratic, SquareSum
from kons.core.quadratic_loops import PLAIN, outside_of
from kons.core.replay import NO_MATRIX, Derivatives, replay
from kons.core.storage import PointStore, copied
from kons.core.threads import single_threaded_blas
from kons.errors import ConfigurationError, NumericalError
from kons.kernels import Kernel
from kons.learners.newton import NewtonLearner, no_finite_score
from kons.losses import Loss, Squared
from kons.policies import Dependence, Fixed, Leverage
from kons.state import Field, Inner, Inners, Number, Sizes, fields
from kons.step_sizes import Constant
from kons.stored import Stored

__all__ = ["EmbeddedKONS"]

FLOAT64 = np.dtype(np.float64)
# Fewer rows than this are learned one by one: a block's overhead in Python is that of some rows.
FEWEST_IN_BLOCK = 6
# A coin may choose a point that the span all but holds: its coordinate would carry next to nothing, and be in
# the way of points farther off (see kons.core.entry.independent).
LEAST_OUTSIDE = 1e-4
#: Of the row that was met last, its bytes and what was found of it: none.
NOT_MET: tuple[bytes | None, list[Vector]] = (None, [])


class _Candidate(Field):
    """The point that may replace an atom, as a block of one; None if none is more than 0 new."""

    def save(self, part: Any, name: str) -> Any:
        candidate = getattr(part, name)
        return None if candidate is None else copied(candidate)

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        if part._candidate_novelty == 0.0:
            stored.nothing(key)
            return None
        if part.kernel.accepts == "objects":
            return copied(stored.items(key, 1))
        return stored.array(key, 1, sizes["width"])


class EmbeddedKONS(NewtonLearner):
    """The kernel online Newton step in the span of at most ``max_atoms`` points.

    ::

        z(x) = L^-1 k_D(x),   L L^T = K_D          coordinates of the projection of phi(x) on the span
        f(x) = z(x)^T u,      A = alpha*I + sum w z z^T

    and the update of :class:`kons.KONS` on z. Every row is learned; the dictionary only decides where. A
    new atom appends a coordinate and changes nothing that was learned. A row costs O(B^2) with B atoms,
    whatever t is: this is the learner to run all day. Use exact ``KONS`` to check a theorem on some
    thousand rows.

    Parameters
    ----------
    kernel, loss, bound, regularization, step_size, second_order:
        As in :class:`kons.KONS`. ``second_order="hessian"`` is what usually predicts best.
    policy:
        Who becomes an atom: :class:`~kons.policies.Dependence`, :class:`~kons.policies.Leverage` (KORS's
        coin on unscaled features, with ``regularization`` as its ridge) or :class:`~kons.policies.Fixed`.
    max_atoms:
        The dictionary's cap.
    on_growth:
        ``"carry"`` keeps what was learned when an atom comes. ``"restart"`` throws it away, as PROS-N-KONS
        does: the row itself is still predicted by the old function, and not learned.
    forward:
        Predict as if the row had been seen already with target 0, ``f/(1 + 2q)`` (Azoury-Warmuth-Vovk);
        for the squared loss with ``second_order="hessian"``.
    forgetting:
        Below 1, the past is discounted by this factor a row, in steps at every 32nd row, and never below
        ``alpha*I``: for streams that drift. 0.999 remembers about a thousand rows.
    seed:
        Of the coins; each row uses one uniform number, whatever the policy.

    Examples
    --------
    >>> import numpy as np
    >>> from kons import EmbeddedKONS, Gaussian, Squared
    >>> x = np.random.default_rng(0).uniform(-3, 3, size=(5000, 1))
    >>> learner = EmbeddedKONS(Gaussian(0.5), Squared(), second_order="hessian", max_atoms=50)
    >>> trace = learner.advance(x, np.sin(x).ravel())
    >>> bool(trace.loss[-1000:].mean() < 1e-4), bool(learner.size <= 50)
    (True, True)

    References
    ----------
    Calandriello, Lazaric, Valko: Efficient Second-Order Online Kernel Learning with Adaptive Embedding,
    NIPS 2017; Engel, Mannor, Meir: The Kernel Recursive Least-Squares Algorithm, 2004 (linear dependence).
    """

    STATE = fields(
        _embedding=Inner(binds="size"),
        _span=Inner(),
        _riders=Inners(),
        _sampler=Inner(),
        _candidate_novelty=Number(at_least=0.0),
        _candidate=_Candidate(),
    )
    _extra_columns: tuple[str, ...] = ("novelty",)
    shares_dictionary = True
    questions = ("predict", "predict_one", "novelty")

    def __init__(
        self,
        kernel: Kernel,
        loss: Loss,
        *,
        bound: float = 1.0,
        regularization: float = 1.0,
        step_size: Any = None,
        second_order: Literal["gradient", "hessian"] = "gradient",
        policy: Dependence | Leverage | Fixed = Dependence(),  # noqa: B008 - frozen
        max_atoms: int = 200,
        on_growth: Literal["carry", "restart"] = "carry",
        forward: bool = False,
        forgetting: float = 1.0,
        seed: int = 0,
    ) -> None:
        super().__init__(
            kernel,
            loss,
            bound=bound,
            regularization=regularization,
            step_size=step_size,
            second_order=second_order,
        )
        self.max_atoms = require_integer(max_atoms, "max_atoms", at_least=1)
        if on_growth not in ("carry", "restart"):
            raise ConfigurationError(f'on_growth is {on_growth!r}, expected "carry" or "restart".')
        self.on_growth = on_growth
        self.forward = require_flag(forward, "forward")
        if self.forward and not (self._rules.hessian and isinstance(loss, Squared)):
            raise ConfigurationError(
                "forward=True is the Azoury-Warmuth-Vovk prediction of the squared loss: "
                f'it needs Squared() and second_order="hessian", not {loss!r} and "{second_order}".'
            )
        self.forgetting = require_number(forgetting, "forgetting", above=0.0, at_most=1.0)
        self.seed = require_integer(seed, "seed", at_least=0)
        self.policy = policy
        self._coins = (Coins(self.seed),)
        self._embedding = Embedding(kernel)
        self._span = Quadratic(self.regularization, self.forgetting)
        # What other targets on the same rows have learned in the same dictionary: kons.learners.problems.
        self._riders: list[Quadratic] = []
        self._sampler: SquareSum | None = None
        self._rules = self._rules._replace(forward=self.forward, restarts=on_growth == "restart")
        self._follow(policy)
        # The most novel row since the last replacement, and how much of it lay outside the span.
        self._candidate: Any = None
        self._candidate_novelty = 0.0
        self._replaces = isinstance(policy, Dependence) and policy.when_full == "replace"
        self._row = new_ledger(1)
        self._packed = self._rules.packed
        self._constant_step = self.step_size.value if isinstance(self.step_size, Constant) else None
        self._hot: _Hot | None = None
        self._last: tuple[bytes | None, list[Vector]] = NOT_MET
        self._dictionary_changed()

    def _follow(self, policy: Any) -> None:
        """Turn the policy into rules; a fixed dictionary is there from the start."""
        self._span.totals[TOTALS.free_slots] = self.max_atoms
        if isinstance(policy, Dependence):
            tolerance = max(float(policy.tolerance), DEPENDENT)
            self._rules = self._rules._replace(entry=SPAN_DEPENDENCE, tolerance=tolerance)
        elif isinstance(policy, Leverage):
            self._rules = self._rules._replace(
                entry=SPAN_LEVERAGE,
                tolerance=LEAST_OUTSIDE,
                oversampling=policy.beta,
                distortion=float(policy.distortion),
                floor=float(policy.floor),
            )
            self._sampler = SquareSum(self.regularization)
            self._extra_columns = (*self._extra_columns, "leverage_estimate", "probability")
        elif isinstance(policy, Fixed):
            self._rules = self._rules._replace(entry=SPAN_FIXED)
            atoms = self._as_points(policy.atoms)
            self._embedding.extend(atoms)
            self._span.reset(len(self._embedding))
            self._span.totals[TOTALS.free_slots] = 0
            self._count(atoms[:0], len(self._embedding))
        else:
            raise ConfigurationError(
                f"policy is {policy!r}, expected Dependence(...), Leverage(...) or Fixed(atoms) "
                "from kons.policies."
            )

    # ---- looking

    @property
    def atoms(self) -> Any:
        """The points whose span the function lives in, in the order they entered. A copy."""
        return self._embedding.atoms.copy()

    def novelty(self, X: Any) -> Vector:
        """How new each point is: ``phi^T A^-1 phi`` with its part outside the span, which A holds as alpha.

        k(x,x)/alpha for a point unlike anything seen, near 0 in regions seen often.
        """
        points = self._as_points(X)
        Z = self._embedding.coordinates(points)
        outside = self._embedding.sound_residual(self.kernel.evaluate_diagonal(points), Z)
        novelty: Vector = self._span.inverse_forms(Z) + outside / self.regularization
        return novelty

    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments by name."""
        return super().parameters() | {
            "second_order": self.second_order,
            "policy": self.policy,
            "max_atoms": self.max_atoms,
            "on_growth": self.on_growth,
            "forward": self.forward,
            "forgetting": self.forgetting,
            "seed": self.seed,
        }

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        super()._loaded(stored, sizes)
        most = 0 if isinstance(self.policy, Fixed) else self.max_atoms - len(self._embedding)
        if self._free_slots() > most or self._span.rows != self._rows_seen:
            raise stored.error(
                f"{self._span.rows} rows and {self._free_slots()} free slots in the span do not fit "
                f"{self._rows_seen} rows and {len(self._embedding)} of {self.max_atoms} atoms"
            )
        self._dictionary_changed()

    def _restored(self) -> None:
        self._dictionary_changed()

    # ---- one row at a time: the same update without the overhead of blocks

    def predict_one(self, x: Any) -> float:
        """The clipped score of one row. What it found of x, ``learn_one`` on the same row reuses."""
        return self._clipped_score(self._meet_row(x)[1][0])

    def _clipped_score(self, work: Vector) -> float:
        """Of a row that was met."""
        value, q = float(work[-2]), float(work[-1])
        if self.forward:
            value /= 1.0 + 2.0 * q
        if not math.isfinite(value):
            raise no_finite_score(self.kernel)
        return min(max(value, -self.bound), self.bound)

    def learn_one(self, x: Any, y: Any) -> None:
        """Learn one row: a block of one."""
        code = self.loss.code
        if code is None or self._replaces:
            super().learn_one(x, y)
            return
        point, works, self_kernel = self._meet_row(x)
        if type(y) is not float or not math.isfinite(y):
            y = as_scalar(y, name="y")
        self.loss.check_targets(y, self.bound)
        eta = self._constant_step or self.step_size(self._rows_seen + 1)
        uniform = self._coins[0].draw_one()
        span, row, size = self._span, self._row, len(self._span)
        sampler = NO_MATRIX if self._sampler is None else self._sampler.L
        self._last = NOT_MET
        try:
            outcome, mass = span.learn_row(
                code,
                row,
                self._packed,
                sampler,
                y,
                1.0,
                eta,
                uniform,
                self_kernel,
                self._embedding.squared_coefficients,
                works[0],
            )
        except NumericalError:
            self._coins[0].take_back_one()
            raise
        if outcome != PLAIN:
            self._grow_by_point(point, row, works[0][:size])
        if self._width is None:
            self._count(point, len(span) - size)
        else:
            self._rows_seen += 1
            self._kept += len(span) - size
        self._log_determinant += math.log1p(mass)
        self._online_effective_dimension += mass / (1.0 + mass)

    def _meet_row(self, x: Any) -> tuple[Any, list[Vector], float]:
        """x as a block of one, what every function needs to learn it, and k(x,x); what was last met is kept.

        Each work is as :meth:`~kons.core.quadratic.Quadratic.meet_row` has it.
        """
        plain = type(x) is np.ndarray and x.dtype is FLOAT64 and x.ndim == 1
        known, works = self._last
        if plain and known is not None and x.tobytes() == known:
            return x[None], works, 1.0  # only a Gaussian kernel's points are remembered
        hot, self._last = self._hot, NOT_MET
        if hot is None:
            point = self._as_point(x)
            z = self._embedding.coordinates_of_one(point)
            works = [span.meet_row(z) for span in self._spans]
            return point, works, float(self.kernel.evaluate_diagonal(point)[0])
        # Machine code for strides may round differently.
        if not (plain and x.shape == hot.shape and x.flags.c_contiguous):
            x = self._as_point(x)[0]
        first = self._span.meet_gaussian_row(hot.rate, x, hot.atoms, hot.inverse)
        if first[-2] != first[-2]:
            x = self._as_point(x)[0]  # it says what is wrong with x, if that is it
        works = [first]
        if self._riders:
            works += [span.meet_row(first[: len(self._span)]) for span in self._riders]
        self._last = x.tobytes(), works
        return x[None], works, 1.0

    def _grow_by_point(self, point: Any, row: Ledger, z: Vector) -> None:
        entered = np.flatnonzero(row["entered"])
        new = np.array([[outside_of(row, z)]] if len(entered) else np.empty((0, 1)))
        self._embedding.append(point, entered, z[None][entered], new)
        self._grow_around(row, np.hstack([z[None], new.reshape(1, -1)]))

    def _dictionary_changed(self) -> None:
        """Look up anew what the row loop reads: only a Gaussian kernel and one panel are compiled in."""
        self._last = NOT_MET
        self._hot = None
        rate = self.kernel.squared_exponential_rate
        factor, atoms = self._embedding.factor, self._embedding.atoms.view
        if rate is not None and not self.forward and 0 < len(atoms) <= factor.height:
            self._hot = _Hot(rate, atoms, factor.first_inverse, atoms.shape[1:])

    # ---- blocks

    def _learn_rows(
        self, points: Any, rows: Ledger, derivatives: int | Derivatives, limit: int | None
    ) -> None:
        self._learn_problems(points, [rows], derivatives, limit)

    def _learn_problems(
        self, points: Any, ledgers: Sequence[Ledger], derivatives: int | Derivatives, limit: int | None
    ) -> None:
        """Learn the same rows with other targets each: a ledger per span, in the one dictionary."""
        count, self._last = len(ledgers[0]), NOT_MET
        with single_threaded_blas(limit is not None):
            start = 0
            while start < count:
                stop = start + min(self._span.rows_left, count - start, limit or 1)
                if stop - start < FEWEST_IN_BLOCK and isinstance(derivatives, int):
                    stop = start + 1
                    self._learn_in_place(
                        derivatives, points[start:stop], [rows[start:stop] for rows in ledgers]
                    )
                else:
                    stop = start + self._learn_block(
                        points[start:stop], [rows[start:stop] for rows in ledgers], derivatives
                    )
                start = stop

    def _learn_in_place(self, code: int, point: Any, ledgers: Sequence[Ledger]) -> None:
        """One row of longer ledgers."""
        self_kernel = float(self.kernel.evaluate_diagonal(point)[0])
        z = self._embedding.coordinates_of_one(point)
        sampler = NO_MATRIX if self._sampler is None else self._sampler.L
        for span, row in zip(self._spans, ledgers, strict=True):
            target, scale, eta, uniform = (
                float(row[name][0]) for name in ("target", "scale", "step_size", "uniform")
            )
            outcome, _ = span.learn_row(
                code,
                row,
                self._packed,
                sampler,
                target,
                scale,
                eta,
                uniform,
                self_kernel,
                self._embedding.squared_coefficients,
                span.meet_row(z),
            )
        # Who enters depends on points and coins, not on targets: every span says the same.
        if outcome != PLAIN:
            self._grow_by_point(point, ledgers[0], z)
        if self._replaces:
            self._consider(point, ledgers[0])

    def _learn_block(self, block: Any, ledgers: Sequence[Ledger], derivatives: int | Derivatives) -> int:
        """Replay up to the end of the period, or up to a restart; returns how many rows that were."""
        sampler, rows = self._sampler, ledgers[0]
        rows["self_kernel"] = self.kernel.evaluate_diagonal(block)
        Z = self._embedding.coordinates(block)
        rows["norm2"] = np.einsum("ij,ij->i", Z, Z)
        for other in ledgers[1:]:
            other["self_kernel"], other["norm2"] = rows["self_kernel"], rows["norm2"]
        R = self._outside(block, rows, Z)
        T = self._coefficients(rows, Z, R)
        N = NO_MATRIX if sampler is None else sampler.forms(Z, R)
        blocks = [span.meet(Z) for span in self._spans]
        for span, ledger, met in zip(self._riders, ledgers[1:], blocks[1:], strict=True):
            # Copies: a replay uses up its matrices.
            others = {"N": N.copy(), "R": R.copy(), "T": T.copy()}
            replay(derivatives, ledger, self._rules, met.f[0], met.M, span.totals, **others)
        f, M, totals = blocks[0].f[0], blocks[0].M, self._span.totals
        learned = replay(derivatives, rows, self._rules, f, M, totals, N=N, R=R, T=T)
        Z, entered = Z[:learned], np.flatnonzero(rows["entered"][:learned])
        new = np.empty((0, learned))
        if len(entered):
            # Coordinate i of the block's rows from its own row on; those before have nothing there.
            new = np.triu(R[:learned, :learned])[entered]
            self._embedding.append(block, entered, Z[entered], new[:, entered])
            Z = np.hstack([Z, new.T])
        for span, ledger, met in zip(self._spans, ledgers, blocks, strict=True):
            if len(entered):
                span.extend(len(entered))
            span.absorb(ledger[:learned], met, new)
        if len(entered) or sampler is not None:
            self._grow_around(rows[:learned], Z)
        if self._replaces:
            self._consider(block, rows[:learned])
        return learned

    def _outside(self, block: Any, rows: Ledger, Z: Any) -> Any:
        """R, what the span leaves of the kernel between the block's points.

        Only its diagonal where no point can enter: that spares a frozen dictionary the m x m kernel.
        """
        frozen = self._sampler is None and self._free_slots() == 0
        if frozen:
            R = np.zeros((len(rows), len(rows)))
        else:
            R = np.ascontiguousarray(self.kernel.evaluate(block, block))
            R -= Z @ Z.T
        np.fill_diagonal(R, self._embedding.sound_residual(rows["self_kernel"], Z))
        return R

    def _coefficients(self, rows: Ledger, Z: Any, R: Any) -> Any:
        """T of :mod:`kons.core.replay`, for those points of the block that may become atoms."""
        outside = np.flatnonzero(np.diagonal(R) > self._rules.tolerance * rows["self_kernel"])
        if not len(outside) or self._free_slots() == 0:
            return NO_MATRIX
        theta = self._embedding.coefficients(Z[outside])
        T = np.zeros_like(R)
        T[np.ix_(outside, outside)] = theta @ theta.T
        return T

    def _grow_around(self, rows: Ledger, Z: Any) -> None:
        """Let the rest follow a dictionary that grew, or whose sample did; Z in all coordinates."""
        entered = int(np.count_nonzero(rows["entered"]))
        if self._sampler is not None:
            self._sampler.extend(entered)
            chosen = np.flatnonzero(rows["sampler_weight"] > 0.0)
            if len(chosen):
                self._sampler.take_in(Z[chosen], rows["sampler_weight"][chosen])
        if entered:
            if self.on_growth == "restart":
                for span in self._spans:
                    span.reset(len(self._embedding))
            self._dictionary_changed()

    def _consider(self, block: Any, rows: Ledger) -> None:
        """Replacement: remember the most novel row, and let it in at the end of the period."""
        if self._free_slots():
            return
        outside = (rows["novelty"] - rows["inverse_form"]) * self.regularization
        eligible = ~rows["entered"] & (rows["self_kernel"] > 0.0)
        outside = np.divide(outside, rows["self_kernel"], out=np.zeros(len(rows)), where=eligible)
        most = int(np.argmax(outside))
        if outside[most] > self._candidate_novelty:
            self._candidate_novelty = float(outside[most])
            self._candidate = block[most : most + 1]
            if isinstance(block, np.ndarray):
                self._candidate = self._candidate.copy()
        if self._span.at_period_end:
            if self._candidate_novelty > self._rules.tolerance:
                self._replace(self._candidate)
            self._candidate, self._candidate_novelty = None, 0.0

    def _replace(self, candidate: Any) -> None:
        """Drop the atom that f misses least, project what was learned on the rest, add the candidate.

        Among several functions, the one that misses it most counts.
        """
        costs = [self._embedding.removal_cost(span.u[:, 0]) for span in self._spans]
        least = int(np.argmin(np.max(costs, axis=0)))
        smaller, Q = self._embedding.without(least)
        tolerance = self._rules.tolerance
        if not len(smaller.extend(candidate, tolerance, tolerance)):
            return  # it all but depends on the others: what was learned stays where it is
        self._embedding = smaller
        for span in self._spans:
            span.project(Q)
            span.extend(1)
        self._dictionary_changed()

    # ---- inside

    def _free_slots(self) -> int:
        return int(self._span.totals[TOTALS.free_slots])

    @property
    def _spans(self) -> list[Quadratic]:
        return [self._span, *self._riders]

    def _raw_scores(self, points: Any) -> Vector:
        return self._raw_scores_in(points, [self._span])[0]

    def _raw_scores_in(self, points: Any, spans: Sequence[Quadratic]) -> list[Vector]:
        """The scores of functions over the same dictionary, before they are clipped."""
        if self.forward:
            Z = self._embedding.coordinates(points)
            return [(Z @ span.u[:, 0]) / (1.0 + 2.0 * span.inverse_forms(Z)) for span in spans]
        K = cross_gram(self.kernel, points, self._embedding.atoms)
        return [K @ self._embedding.dual(span.u[:, 0]) for span in spans]

    def _point_stores(self) -> Sequence[PointStore]:
        return (self._embedding.atoms,)

    def _widened(self, columns: int) -> None:
        if self._candidate is not None:
            self._candidate = np.pad(self._candidate, ((0, 0), (0, columns)))
        self._dictionary_changed()


class _Hot(NamedTuple):
    """What the compiled row loop reads of a Gaussian dictionary."""

    rate: float
    atoms: Any
    inverse: Any
    shape: tuple[int, ...]
