"""Single rows that are learned in machine code, and counted when somebody looks.

A row in the span of a dictionary takes some microseconds, and Python as long to count it: rows seen, coins passed,
totals, the rows of the period, the lines of the record. So rows that come one by one wait in the table of
:class:`kons.core.one_row.OneRow`, and the attributes that do not know of them are away meanwhile. Who reads one
of these has all rows counted first: nobody ever sees a number that is behind.
"""

from __future__ import annotations

from typing import Any

from kons.arrays import FLOAT64
from kons.core.interruption import HeldInterrupts
from kons.core.one_row import ENTERED, FULL, PLAIN, OneRow, learn_alone
from kons.learners.newton import NewtonLearner
from kons.learners.record import TOGETHER, Record

__all__ = ["IN_ONE_PIECE", "CountsLater"]

#: Of a row that lies in one piece: machine code for others may round differently.
IN_ONE_PIECE = (FLOAT64.itemsize,)

#: What a row by itself changes, besides the arrays of :class:`OneRow`.
COUNTING = (
    *("_rows_seen", "_kept", "_coins", "_log_determinant", "_online_effective_dimension"),
    *("_embedding", "_quadratics", "_record"),
)


class _Counted:
    """An attribute of which rows that wait may know more; found only where the learner's own is away."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, learner: Any, _: Any = None) -> Any:
        if learner is None:
            return self
        with learner._turn:
            learner.count_rows()
            try:
                return vars(learner)[self.name]
            except KeyError:
                raise AttributeError(f"{learner.name} has no {self.name} yet") from None


class CountsLater(NewtonLearner):
    """A learner whose single rows may wait to be counted."""

    #: Where rows wait, while some may.
    _waiting: OneRow | None = None
    _uncounted: dict[str, Any] | None = None
    _one_row: OneRow | None

    def _learn_waiting(self, x: Any, y: Any) -> bool:
        """Learn a row where others wait, which was just predicted; False: nothing was done."""
        waiting = self._waiting
        if waiting is None or self._encoder is not None or self._followed_elsewhere:
            return False
        if not waiting.gapless and x.strides != IN_ONE_PIECE:
            return False
        try:
            outcome = learn_alone(waiting.address, x, y)
        except TypeError:  # not in one piece: to look before takes less than to fail
            waiting.gapless = False
            return False
        if outcome == PLAIN:
            return True
        if outcome == FULL:
            self.count_rows()
            return True
        if outcome != ENTERED:
            return False  # what is wrong with it the next door says
        self.count_rows()
        self._rows_seen += 1
        self._kept += 1
        self._coins[0].pass_one()
        if self._record is not None:
            self._record.count += 1
        waiting.count_entered()
        self._grow_by_point(x[None], waiting, waiting.works)
        self._look_at_full()
        waiting.let_interrupts_go()
        return True

    def _let_rows_wait(self, rows: OneRow, bound: float, step_size: float) -> None:
        """From now on rows with targets up to a bound are counted later."""
        record: Record | None = self._record
        line = (0, 0, -1) if record is None else record.room
        sums = self._log_determinant, self._online_effective_dimension
        rows.let_rows_wait(bound, step_size, sums, *line)
        own = vars(self)
        self._uncounted = {name: own[name] for name in COUNTING}
        self._waiting = rows
        for name in COUNTING:
            del own[name]

    def count_rows(self) -> None:
        """Count the rows that wait, if any do: from then on all is as if each had been counted at once."""
        if self._uncounted is None:
            return
        with HeldInterrupts():
            rows, own = self._waiting, vars(self)
            own.update(self._uncounted)
            self._uncounted = self._waiting = None
            assert rows is not None
            learned, taken, self._log_determinant, self._online_effective_dimension = rows.count_rows()
            self._rows_seen += learned
            self._kept += taken
            self._coins[0].pass_some(learned)
            if self._record is not None:
                self._record.count += learned
            rows.end_full_period()
            rows.let_interrupts_go()
        self._look_at_full()

    def _look_at_full(self) -> None:
        if self._record is not None and self._record.count == TOGETHER:
            self._look_at_held()

    def restore(self, mark: Any) -> None:
        """Go back to an earlier mark, bit for bit."""
        self.count_rows()
        super().restore(mark)

    def __getstate__(self) -> Any:
        """For copies and pickles."""
        with self._turn:
            self.count_rows()
            return object.__getstate__(self)

    def _grow_by_point(self, point: Any, rows: OneRow, works: Any) -> None:
        """The row that was just learned became an atom."""
        raise NotImplementedError


for _name in COUNTING:
    setattr(CountsLater, _name, _Counted(_name))
