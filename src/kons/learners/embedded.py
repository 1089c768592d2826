"""EmbeddedKONS: the second-order update in the span of an adaptive dictionary, at constant cost."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy import ndarray

from kons.arrays import (
    FLOAT64,
    Matrix,
    Vector,
    as_outputs,
    as_scalar,
    require_integer,
    require_number,
    require_word,
)
from kons.core.coins import Coins
from kons.core.embedding import Embedding
from kons.core.entry import DEPENDENT
from kons.core.function import cross_gram
from kons.core.ledger import (
    ALL,
    CAPPED,
    SPAN_DEPENDENCE,
    SPAN_FIXED,
    SPAN_LEVERAGE,
    TOTALS,
    Ledger,
)
from kons.core.one_row import PLAIN, REFUSED, TAKEN, OneRow, predict
from kons.core.quadratic import Quadratic, SquareSum
from kons.core.replay import NO_MATRIX, Slopes, follow_all, replay
from kons.core.storage import PointStore, copied
from kons.core.threads import single_threaded_blas
from kons.errors import ConfigurationError, NumericalError
from kons.kernels import Kernel
from kons.learners.newton import no_finite_score
from kons.learners.record import TOGETHER, Record
from kons.learners.waiting import IN_ONE_PIECE, CountsLater
from kons.losses import Loss, Squared
from kons.policies import Dependence, Fixed, Leverage
from kons.state import Field, Inner, Inners, Number, Sizes, fields
from kons.step_sizes import Constant
from kons.stored import Stored

__all__ = ["EmbeddedKONS"]

# Fewer rows than this are learned one by one: a block's overhead in Python is that of some rows.
FEWEST_IN_BLOCK = 6
# A coin may choose a point that the span all but holds: its coordinate would carry next to nothing, and be in
# the way of points farther off (see kons.core.entry.independent).
LEAST_OUTSIDE = 1e-4
# Coordinates in the span of no atoms.
NOWHERE = np.empty(0)
# The form between a single row and those behind it.
ALONE = np.zeros((1, 1))
#: Running totals that belong to the dictionary, not to a function.
OF_DICTIONARY = [TOTALS.sampler_trace, TOTALS.free_slots]


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


class _Quadratics(Inners):
    """As many as the number of targets, which was loaded before, asks for."""

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        if part.outputs:
            part._make_functions(part.outputs)
        return super().load(stored, key, part, name, sizes)


class EmbeddedKONS(CountsLater):
    """The kernel online Newton step in the span of at most ``max_atoms`` points.

    ::

        z(x) = L^-1 k_D(x),   L L^T = K_D          coordinates of the projection of phi(x) on the span
        f(x) = z(x)^T u,      A = alpha*I + sum w z z^T

    and the update of :class:`kons.KONS` on z. Every row is learned; the dictionary only decides where. A
    new atom appends a coordinate and changes nothing that was learned. A row costs O(B^2) with B atoms,
    whatever t is: this is the learner to run all day. Use exact ``KONS`` to check a theorem on some
    thousand rows.

    With y of shape (n, k) there are k functions over the one dictionary: who becomes an atom depends on
    points and coins alone. Under the squared loss with ``second_order="hessian"`` the weights in A do not
    depend on targets, so there is one A for all, and a target more costs O(B) a row. With ``"gradient"``, and
    with other losses, they do: there are k of them, O(B^2) each; no bound on their curvature that all could
    share is put in their place. (Who is replaced in a full dictionary, with ``when_full="replace"``, depends
    on all functions.)

    Parameters
    ----------
    kernel, loss, bound, regularization, step_size, second_order:
        As in :class:`kons.KONS`. ``second_order="hessian"`` is what usually predicts best.
    updates:
        As in :class:`kons.KONS`; with ``"mistakes"`` only mistakes become atoms, for one target a row.
        ``"margins"`` also learns right rows within the margin, as far as their projection helps, and makes no
        atoms of them (Projectron++).
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
        _quadratics=_Quadratics(),
        _sampler=Inner(),
        _candidate_novelty=Number(at_least=0.0),
        _candidate=_Candidate(),
    )
    _extra_columns: tuple[str, ...] = ("novelty",)
    shares_dictionary: bool = True
    questions: tuple[str, ...] = ("predict", "predict_one", "novelty")
    multi_output: bool

    def __init__(
        self,
        kernel: Kernel,
        loss: Loss,
        *,
        bound: float = 1.0,
        regularization: float = 1.0,
        step_size: Any = None,
        second_order: Literal["gradient", "hessian", "none"] = "gradient",
        updates: Literal["all", "mistakes", "margins"] = "all",
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
            updates=updates,
        )
        self.max_atoms: int = require_integer(max_atoms, "max_atoms", at_least=1)
        self.on_growth: str = require_word(on_growth, "on_growth", ("carry", "restart"))
        self.forward: bool = self._require_forward(forward)
        if updates == "margins" and not isinstance(policy, Dependence):
            raise ConfigurationError(f'updates="margins" needs policy=Dependence(...), not {policy!r}.')
        if self._rules.curvature == CAPPED:
            raise ConfigurationError('second_order="capped" is of a whole expansion: use KONS.')
        # Who becomes an atom then depends on targets: several cannot share a dictionary.
        self.multi_output = self.shares_dictionary = self._rules.updates == ALL
        self.forgetting: float = require_number(forgetting, "forgetting", above=0.0, at_most=1.0)
        self.seed: int = require_integer(seed, "seed", at_least=0)
        self.policy = policy
        self._coins = (Coins(self.seed),)
        self._embedding = Embedding(kernel)
        # One with K outputs, or K with one: see the class.
        self._quadratics = [Quadratic(self.regularization, self.forgetting, free_slots=self.max_atoms)]
        self._sampler: SquareSum | None = None
        self._rules = self._rules._replace(forward=self.forward, restarts=on_growth == "restart")
        self._follow(policy)
        # The most novel row since the last replacement, and how much of it lay outside the span.
        self._candidate: Any = None
        self._candidate_novelty = 0.0
        self._replaces = isinstance(policy, Dependence) and policy.when_full == "replace"
        self._in_blocks = self._replaces or self.loss.code is None
        #: Targets of single rows up to this need no further check.
        self._plain_targets = self.bound if isinstance(loss, Squared) and not self._in_blocks else -1.0
        self._packed = self._rules.packed
        self._constant_step = self.step_size.value if isinstance(self.step_size, Constant) else None
        self._one_row: OneRow | None = None
        self._record = None

    def _follow(self, policy: Any) -> None:
        """Turn the policy into rules; a fixed dictionary is there from the start."""
        first = self._quadratics[0]
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
            first.totals[TOTALS.free_slots] = 0
            first.reset(len(self._embedding))
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

    def novelty(self, X: Any) -> Vector | Matrix:
        """How new each point is: ``phi^T A^-1 phi`` with its part outside the span, which A holds as alpha.

        k(x,x)/alpha for a point unlike anything seen, near 0 in regions seen often. (n, k) where each of k
        targets has an A of its own.
        """
        points = self._as_points(X)
        Z = self._embedding.coordinates(points)
        outside = self._embedding.sound_residual(self.kernel.evaluate_diagonal(points), Z)
        novelties = [part.inverse_forms(Z) + outside / self.regularization for part in self._quadratics]
        return np.stack(novelties, axis=1) if self._outputs and not self._shares_matrix else novelties[0]

    def _novelties(self, points: Any) -> Any:
        return self.novelty(points)

    def _row_of(self, x: Any) -> Matrix:
        prediction = np.reshape(np.asarray(self.predict_one(x), dtype=np.float64), (1, -1))
        size = self.kernel.evaluate_diagonal([x] if self.accepts == "objects" else np.atleast_2d(x))
        inside, z = np.zeros(1), NOWHERE
        if self._one_row is not None and len(self._embedding):  # it was just predicted
            works = self._one_row.works
            inside, z = works[:, -1], works[0, : len(self._embedding)]
        novelty = inside + np.maximum(size - z @ z, 0.0) / self.regularization
        row: Matrix = self._laid_out(prediction, novelty[None])[0]
        return row

    def _said(self) -> tuple[float, float]:
        prediction, novelty = self._last_row
        return prediction.item(0), novelty.item(0)

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        super()._loaded(stored, sizes)
        most = 0 if isinstance(self.policy, Fixed) else self.max_atoms - len(self._embedding)
        first = self._quadratics[0]
        if self._free_slots() > most or first.rows != self._rows_seen:
            raise stored.error(
                f"{first.rows} rows and {self._free_slots()} free slots in the span do not fit "
                f"{self._rows_seen} rows and {len(self._embedding)} of {self.max_atoms} atoms"
            )
        for other in self._quadratics[1:]:
            if (other.rows, other.pending) != (first.rows, first.pending):
                raise stored.error("a function is at another row than the first")
            other.totals[OF_DICTIONARY] = first.totals[OF_DICTIONARY]
        self._arrays_changed()

    # ---- several functions

    def arrange(self, functions: Sequence[int], signs: Sequence[float] | None = None) -> None:
        """The functions become these of those there are, by number, each times a sign.

        Rows have a target for each from then on. A function may come more than once: its copies then differ
        by what they are taught. A new learner has one, that is 0.

        >>> from kons import EmbeddedKONS, Gaussian, Squared
        >>> learner = EmbeddedKONS(Gaussian(), Squared(), second_order="hessian")
        >>> learner.learn_one([0.0], [1.0])
        >>> learner.arrange([0, 0], [1.0, -1.0])
        >>> learner.predict_one([0.0]).round(3)
        array([ 0.667, -0.667])
        """
        signs = [1.0] * len(functions) if signs is None else signs
        if self._shares_matrix:
            self._quadratics[0].choose(functions, signs)
        else:
            used: set[int] = set()
            chosen = []
            for number, sign in zip(functions, signs, strict=True):
                part = self._quadratics[number]
                if number in used or sign < 0.0:  # in a mark there may be the very same
                    part = copy.deepcopy(part)
                    part.choose([0], [sign])
                else:
                    used.add(number)
                chosen.append(part)
            self._quadratics = chosen
        self._outputs = len(functions)
        self._arrays_changed()

    def _make_functions(self, count: int) -> None:
        if not self.multi_output:
            super()._make_functions(count)
        self.arrange([0] * count)

    def _restored(self) -> None:
        self._arrays_changed()

    # ---- one row at a time: the same update without the overhead of blocks

    def predict_one(self, x: Any) -> Any:
        """The clipped score of one row. What it found of x, ``learn_one`` on the same row reuses."""
        rows, value = self._one_row, math.nan
        if (
            rows is not None
            and type(x) is ndarray
            and x.dtype is FLOAT64
            and (rows.gapless or x.strides == IN_ONE_PIECE)
        ):
            try:
                value, works = predict(rows.address, x), rows.works
            except TypeError:  # not in one piece: to look before takes less than to fail
                rows.gapless = False
        if value != value:
            point = self._as_point(x)
            if not len(self._embedding):
                return np.zeros(self._outputs) if self._outputs else 0.0
            rows, given, _ = self._as_given(point)
            value, works = rows.predict(given)
        if not self._outputs:
            if value != value:
                raise no_finite_score(self.kernel)
            return value
        of_each = slice(-1 - self._quadratics[0].outputs, -1)
        return np.array([self._clipped_score(f, work) for work in works for f in work[of_each].tolist()])

    def _clipped_score(self, value: float, work: Matrix) -> float:
        if self.forward:
            value /= 1.0 + 2.0 * work.item(-1)
        if -self.bound <= value <= self.bound:
            return value
        if not math.isfinite(value):
            raise no_finite_score(self.kernel)
        return math.copysign(self.bound, value)

    def learn_one(self, x: Any, y: Any) -> None:
        """Learn one row: a block of one."""
        # The first row tells how many targets there are.
        if self._in_blocks or (self._outputs is None and not isinstance(y, float)):
            super().learn_one(x, y)
            return
        point = self._as_point(x)
        rows, given, self_kernel = self._as_given(point)
        if self._outputs:
            targets = self._as_floats(y)
            for target in targets:
                self.loss.check_targets(target, self.bound)
            rows.targets[:] = targets
        else:
            target = as_scalar(y, name="y")
            self.loss.check_targets(target, self.bound)
            rows.targets[0] = target
        self._learn_given(point, rows, given, self_kernel, None)

    def _learn_and_count(self, x: Any, y: Any) -> bool:
        rows, record = self._one_row, self._record
        if (
            rows is None
            or x.dtype is not FLOAT64
            or x.strides != IN_ONE_PIECE
            or len(x) != rows.columns
            or not isinstance(y, float)
            or not -self._plain_targets <= y <= self._plain_targets
            or ((record is None or self._followed_elsewhere) and not self.inside)
            or self._encoder is not None
        ):
            return False
        rows.targets[0] = y
        self._learn_given(None, rows, x, 1.0, record)
        self._let_rows_wait()
        return True

    def _learn_given(
        self, point: Any, rows: OneRow, given: Vector, self_kernel: float, record: Record | None
    ) -> None:
        """Learn a row, with the targets that are there, and write it down; no point: it is what is given."""
        eta = self._constant_step or self.step_size(self._rows_seen + 1)
        coins, uniform, works = self._coins[0], 0.0, rows.works
        if self._sampler is None:
            coins.pass_one()
        else:
            uniform = coins.draw_one()
        place = 0 if record is None else record.address + record.step * record.count
        try:
            outcome, logarithms, leverages = rows.learn(given, 1.0, eta, uniform, self_kernel, place)
        except NumericalError:
            coins.take_back_one()
            raise
        if outcome == REFUSED:
            coins.take_back_one()
            self._as_point(given)  # it says which of its values is none
        if not self._rows_seen:
            self._outputs = self._outputs or 0
            self._count(point[:0], 0)
        self._rows_seen += 1
        if record is not None:
            record.count += 1
        self._last_row = rows.said
        self._log_determinant += logarithms
        self._online_effective_dimension += leverages
        if outcome == TAKEN:
            self._kept += 1
        elif outcome != PLAIN:
            self._kept += bool(rows.ledger["entered"][0])
            self._grow_by_point(given[None] if point is None else point, rows, works)
        if record is not None and record.count == TOGETHER:
            self._look_at_held()
        if rows.held is not None:
            rows.let_interrupts_go()

    def _as_floats(self, y: Any) -> Sequence[float]:
        """Several targets of one row, at the least cost where they are Python's own numbers."""
        if (
            type(y) is list
            and len(y) == self._outputs
            and all(type(v) is float and math.isfinite(v) for v in y)
        ):
            return y
        targets: list[float] = as_outputs([y], 1, self._outputs)[0].tolist()
        return targets

    def _as_given(self, point: Any) -> tuple[OneRow, Vector, float]:
        """Single rows, a block of one as they take it, for any kernel, and k(x,x)."""
        rows, width = self._one_row, len(point[0]) if self.accepts == "vectors" else 0
        if rows is None or rows.columns not in (-1, width):  # there is no atom, and the last row was refused
            parts = self._embedding, self._quadratics, self._sampler
            self._one_row = rows = OneRow(*parts, self._packed, self.loss.code, width)
        if rows.columns >= 0:
            given = point[0].view(FLOAT64)  # one that was pickled has a dtype of its own
        else:
            given = self._embedding.coordinates_of_one(point) if len(self._embedding) else NOWHERE
        return rows, given, float(self.kernel.evaluate_diagonal(point)[0])

    def _grow_by_point(self, point: Any, rows: OneRow, works: Matrix) -> None:
        """The row that was just learned became an atom, or its coin let it into the sample."""
        Z = works[:1, : len(self._embedding)]
        if rows.ledger["entered"][0]:
            self._embedding.append_one(point, Z[0], rows.pivot)
            if self._sampler is None and self.on_growth == "carry":
                rows.entered()
                return
            Z = np.hstack([Z, [[rows.pivot]]])
        self._grow_around(rows.ledger[:1], Z)

    def _arrays_changed(self) -> None:
        """What is known of single rows is of arrays that were replaced, or of rows before others."""
        self._one_row = None

    # ---- blocks

    def _learn_rows(self, points: Any, rows: Ledger, derivatives: Slopes, limit: int | None) -> None:
        count = len(points)
        with single_threaded_blas(limit is not None):
            start = 0
            while start < count:
                stop = start + min(self._quadratics[0].rows_left, count - start, limit or 1)
                if stop - start < FEWEST_IN_BLOCK and isinstance(derivatives, int):
                    stop = start + 1
                    self._learn_in_place(points[start:stop], rows[:, start:stop])
                else:
                    stop = start + self._learn_block(points[start:stop], rows[:, start:stop], derivatives)
                start = stop

    def _learn_in_place(self, point: Any, rows: Ledger) -> None:
        """One row of longer ledgers."""
        row, given, self_kernel = self._as_given(point)
        works = row.works
        ledger = rows[: len(works), 0]
        row.ledger[:], row.targets[:] = ledger, rows["target"][:, 0]
        scale, eta, uniform = (float(rows[0, 0][name]) for name in ("scale", "step_size", "uniform"))
        outcome, _, _ = row.learn(given, scale, eta, uniform, self_kernel)
        row.let_interrupts_go()
        ledger[:] = row.ledger
        if outcome not in (PLAIN, TAKEN):
            self._grow_by_point(point, row, works)
        if self._shares_matrix:
            follow_all(rows[0], rows[1:], self._packed, works[0, -len(rows) : -1, None].copy(), ALONE)
        if self._replaces:
            self._consider(point, rows[0])

    def _learn_block(self, block: Any, ledgers: Ledger, derivatives: Slopes) -> int:
        """Replay up to the end of the period, or up to a restart; returns how many rows that were."""
        self._arrays_changed()
        rows, sampler, first = ledgers, self._sampler, ledgers[0]
        rows["self_kernel"] = self.kernel.evaluate_diagonal(block)
        Z = self._embedding.coordinates(block)
        rows["norm2"] = np.einsum("ij,ij->i", Z, Z)
        R = self._outside(block, first, Z)
        T = self._coefficients(first, Z, R)
        N = NO_MATRIX if sampler is None else sampler.forms(Z, R)
        blocks = [part.meet(Z) for part in self._quadratics]
        for part, row, met in zip(self._quadratics[1:], rows[1:], blocks[1:], strict=False):
            # Copies: a replay uses up its matrices.
            others = {"N": N.copy(), "R": R.copy(), "T": T.copy()}
            replay(derivatives, row, self._rules, met.f[0], met.M, part.totals, **others)
        f, M = blocks[0].f, blocks[0].M
        learned = replay(derivatives, first, self._rules, f[0], M, self._quadratics[0].totals, N=N, R=R, T=T)
        Z, entered = Z[:learned], np.flatnonzero(first["entered"][:learned])
        new = np.empty((0, learned))
        if len(entered):
            # Coordinate i of the block's rows from its own row on; those before have nothing there.
            new = np.triu(R[:learned, :learned])[entered]
            self._embedding.append(block, entered, Z[entered], new[:, entered])
            Z = np.hstack([Z, new.T])
        rows = rows[:, :learned]
        by_quadratic = rows[None] if self._shares_matrix else rows[:, None]
        for part, own, met in zip(self._quadratics, by_quadratic, blocks, strict=True):
            follow_all(own[0], own[1:], self._packed, met.f[1:], met.M)
            if len(entered):
                part.extend(len(entered))
            part.absorb(own, met, new)
        if len(entered) or sampler is not None:
            self._grow_around(rows[0], Z)
        if self._replaces:
            self._consider(block, rows[0])
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
        outside = self._embedding.sound_difference(rows["self_kernel"], rows["norm2"], Z)
        R.ravel()[:: len(R) + 1] = outside
        return R

    def _coefficients(self, rows: Ledger, Z: Any, R: Any) -> Any:
        """T of :mod:`kons.core.replay`, for those points of the block that may become atoms."""
        if self._free_slots() == 0:
            return NO_MATRIX
        outside = np.flatnonzero(np.diagonal(R) > self._rules.tolerance * rows["self_kernel"])
        if not len(outside):
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
        if entered and self.on_growth == "restart":
            for part in self._quadratics:
                part.reset(len(self._embedding))
        self._arrays_changed()

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
        if self._quadratics[0].at_period_end:
            if self._candidate_novelty > self._rules.tolerance:
                self._replace(self._candidate)
            self._candidate, self._candidate_novelty = None, 0.0

    def _replace(self, candidate: Any) -> None:
        """Drop the atom that f misses least, project what was learned on the rest, add the candidate.

        Among several functions, the one that misses it most counts.
        """
        costs = [self._embedding.removal_cost(u) for u in self._weights()]
        least = int(np.argmin(np.max(costs, axis=0)))
        smaller, Q = self._embedding.without(least)
        tolerance = self._rules.tolerance
        if not len(smaller.extend(candidate, tolerance, tolerance)):
            return  # it all but depends on the others: what was learned stays where it is
        self._embedding = smaller
        for part in self._quadratics:
            part.project(Q)
            part.extend(1)
        self._arrays_changed()

    # ---- inside

    def _free_slots(self) -> int:
        return int(self._quadratics[0].totals[TOTALS.free_slots])

    def _weights(self) -> list[Vector]:
        """u of each function."""
        return [np.ascontiguousarray(u) for part in self._quadratics for u in part.u.T]

    def _raw_scores(self, points: Any) -> Matrix:
        if self.forward:
            Z = self._embedding.coordinates(points)
            divisors = 1.0 + 2.0 * self._quadratics[0].inverse_forms(Z)
            return np.stack([(Z @ u) / divisors for u in self._weights()], axis=1)
        K = cross_gram(self.kernel, points, self._embedding.atoms)
        return np.stack([K @ self._embedding.dual(u) for u in self._weights()], axis=1)

    def _point_stores(self) -> Sequence[PointStore]:
        return (self._embedding.atoms,)

    def _widened(self, columns: int) -> None:
        if self._candidate is not None:
            self._candidate = np.pad(self._candidate, ((0, 0), (0, columns)))
        self._arrays_changed()
