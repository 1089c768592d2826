"""The experts on their seats: who they are, what they see, what they say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, Vector
from kons.kernels import Gaussian, Kernel, Linear, Matern
from kons.learners.auto.expert import SpanRidge
from kons.learners.auto.logistic import SpanLogistic
from kons.learners.auto.roles import BASELINES, LAST, MEAN, Role
from kons.learners.auto.rows import Layout
from kons.learners.auto.view import Fixed, Seen, View, uniform_metric
from kons.stored import Stored

__all__ = ["Panel", "Seat", "recruit"]

# The ridge of linear experts, whose features have size about 1.
LINEAR_REGULARIZATION = 0.1
# The ridge of the logistic loss beside that of the squared: where the latter goes from 0 to 1, logits go from
# about -2 to 2.
LOGISTIC_RIDGE = 1.0 / 16.0


@dataclass
class Seat:
    """A role, and once it has begun its expert and what that one sees."""

    role: Role
    expert: SpanRidge | None = None
    view: View | None = None


class Panel:
    """Seats in order. A view's coordinates are computed once for all experts that share it."""

    def __init__(self, roles: Sequence[Role]) -> None:
        self.seats = [Seat(role) for role in roles]

    def __len__(self) -> int:
        return len(self.seats)

    @property
    def roles(self) -> list[Role]:
        """Of all seats."""
        return [seat.role for seat in self.seats]

    @property
    def experts(self) -> list[SpanRidge]:
        """Those that have begun."""
        return [seat.expert for seat in self.seats if seat.expert is not None]

    @property
    def columns_with_lags(self) -> list[int]:
        """Of F: the last target, and the experts that see it."""
        return [LAST, *(i + BASELINES for i, role in enumerate(self.roles) if role.lags)]

    def play(
        self,
        rows: Matrix,
        learned: Matrix | None,
        Y: Matrix,
        roots: Vector,
        known: NDArray[np.int64],
        layout: Layout,
        F: Matrix,
    ) -> None:
        """Fill in what each expert predicts, from column BASELINES on, and let it learn.

        ``learned`` are the rows with targets Y and roots of weights, None if they are those predicted;
        ``known`` says how many of them are known before each row.
        """
        here, there = Seen(rows, layout), None if learned is None else Seen(learned, layout)
        for i, seat in enumerate(self.seats):
            if seat.expert is None or seat.view is None:
                continue
            lags, visible = seat.role.lags, known + len(seat.expert.K)
            U = here.coordinates(seat.view, lags)
            U_learned = None if there is None else there.coordinates(seat.view, lags)
            F[:, i + BASELINES] = seat.expert.advance(U, U_learned, Y, roots, visible)
        self._fill_up(F, [seat.expert is not None for seat in self.seats])

    def predict(self, rows: Matrix, layout: Layout, F: Matrix, *, lags: bool) -> None:
        """Fill in what each expert would predict, those with last targets only if told. Changes nothing."""
        asked, seen = [], Seen(rows, layout)
        for i, seat in enumerate(self.seats):
            speaks = seat.expert is not None and (lags or not seat.role.lags)
            asked.append(speaks)
            if speaks and seat.expert is not None and seat.view is not None:
                F[:, i + BASELINES] = seat.expert.predict(seen.coordinates(seat.view, seat.role.lags))
        self._fill_up(F, asked)

    def _fill_up(self, F: Matrix, asked: list[bool]) -> None:
        """Who has not spoken repeats the mean of the others; if nobody has, that of the targets."""
        if all(asked):
            return
        spoke = [i + BASELINES for i, said in enumerate(asked) if said]
        silent = [i + BASELINES for i, said in enumerate(asked) if not said]
        F[:, silent] = np.mean(F[:, spoke or [MEAN]], axis=1, keepdims=True)

    def forms(self, column: int, rows: int) -> Vector:
        """``k^T A^-1 k`` of the rows just predicted by the expert of this column of F."""
        expert = self.seats[column - BASELINES].expert if column else None
        return np.zeros(rows) if expert is None else expert.last_forms()

    def end_chunk(self, refit: bool, experts: Sequence[SpanRidge]) -> None:
        """Let those of these that are still there start the next chunk."""
        for expert in self.experts:
            if any(expert is one for one in experts):
                expert.end_chunk(refit)

    def add_output(self) -> None:
        """A class more."""
        for expert in self.experts:
            expert.add_output()

    def remove(self, columns: Sequence[int]) -> None:
        """Without the seats of these columns of F."""
        self.seats = [seat for i, seat in enumerate(self.seats) if i + BASELINES not in columns]

    @property
    def size(self) -> int:
        """The atoms of all experts."""
        return sum(len(expert.atoms) for expert in self.experts)

    # ---- going back, and on from a file

    def mark(self) -> Any:
        """Where they stand, for :meth:`restore`."""
        return [(replace(seat), None if seat.expert is None else seat.expert.mark()) for seat in self.seats]

    def restore(self, mark: Any) -> None:
        """Go back to an earlier mark, bit for bit."""
        self.seats = [replace(seat) for seat, _ in mark]
        for seat, where in mark:
            if seat.expert is not None:
                seat.expert.restore(where)

    def state(self, views: Sequence[View]) -> list[Any]:
        """Everything the next row depends on, besides the roles; views by their place."""
        places = {id(view): place for place, view in enumerate(views)}
        return [
            None
            if seat.expert is None or seat.view is None
            else {
                "view": places[id(seat.view)],
                "bandwidth": _bandwidth(seat.expert.kernel),
                **seat.expert.state(),
            }
            for seat in self.seats
        ]

    def load_state(self, entries: Sequence[Any], views: Sequence[View], outputs: int, fixed: Fixed) -> None:
        """Take what :meth:`state` saved."""
        for seat, entry in zip(self.seats, entries, strict=True):
            if entry is None:
                continue
            stored = Stored(entry, "AutoKONS, an expert")
            view = views[stored.integer("view", at_most=len(views) - 1)]
            bandwidth = stored.number("bandwidth", at_least=1e-150)
            kernel = _kernel(seat.role, bandwidth, fixed)
            seat.expert = _class_of(seat.role).from_stored(stored, kernel, view.metric.shape[-1], outputs)
            seat.view = view


def recruit(
    role: Role,
    view: View,
    kept: Seen,
    *,
    outputs: int,
    max_atoms: int,
    fixed: Fixed,
    live: bool,
    random: np.random.Generator,
) -> Seat:
    """A new expert in a view, that has learned rows in stream order, all with weights above 0.

    Its atoms are some of the rows: of those that it remembers, if its memory is finite.
    """
    rows, layout, scaled = kept.rows, kept.layout, kept.scaled(view, role.lags)
    alpha = view.regularization
    atoms = max_atoms // 2 if role.memory else max_atoms
    if role.kernel == "linear":
        view = View(view.scaling, uniform_metric(scaled.shape[1]), flags=view.flags, features=view.features)
        alpha = fixed.regularization or LINEAR_REGULARIZATION
    if role.logistic and fixed.regularization is None:
        alpha *= LOGISTIC_RIDGE
    U = kept.coordinates(view, role.lags)
    # Atoms of its own: with the same ones a Gaussian and a Matern expert could share their distances, but
    # their errors would cancel less (2 % of the loss on some sets, for some percent of the time).
    places = random.permutation(min(len(U), max(role.memory, atoms)) if role.memory else len(U))
    points = U[np.sort(len(U) - 1 - places[: max(atoms, 1)])]
    if role.kernel == "linear" and U.shape[1] <= max_atoms:
        points = np.eye(U.shape[1])
    Y, weights = layout.outputs(rows, outputs), layout.weights(rows)
    forgetting = 1.0 - 1.0 / role.memory if role.memory else 1.0
    expert = _class_of(role)(
        _kernel(role, view.bandwidth if fixed.bandwidth is None else fixed.bandwidth, fixed),
        points,
        alpha,
        outputs=outputs,
        offset=0.0 if layout.classes else float(np.average(Y[:, 0], weights=weights)),
        forgetting=forgetting,
        live=(live or bool(role.memory) or role.kernel == "linear") and not role.logistic,
    )
    ages = np.arange(len(rows) - 1.0, -1.0, -1.0)
    expert.learn_past(U, Y, np.sqrt(weights * forgetting**ages))
    return Seat(role, expert, view)


def _class_of(role: Role) -> type[SpanRidge]:
    return SpanLogistic if role.logistic else SpanRidge


def _kernel(role: Role, bandwidth: float, fixed: Fixed) -> Kernel:
    if role.kernel == "linear":
        return Linear()
    if fixed.kernel is not None:
        return fixed.kernel.resolved(bandwidth)
    return Gaussian(bandwidth) if role.kernel == "gaussian" else Matern(bandwidth, smoothness=1.5)


def _bandwidth(kernel: Kernel) -> float:
    bandwidth = getattr(kernel, "bandwidth", 1.0)
    return float(bandwidth) if isinstance(bandwidth, (int, float)) else 1.0
