"""Single rows that are learned in machine code, and counted when somebody looks.

A row in the span of a dictionary takes some microseconds, and Python as long to count it: rows seen, coins
passed, totals, the rows of the period, the lines of the record. So rows that come one by one wait in the
table of :class:`kons.core.one_row.OneRow`, and the attributes that do not know of them are away meanwhile.
Who reads one of these has all rows counted first: nobody ever sees a number that is behind.

The loops that let a row wait keep the interpreter, so that no thread sees half a row, and take no turn; who
counts closes the table before anything else.
"""

from __future__ import annotations

from typing import Any

from kons.arrays import FLOAT64
from kons.core.interruption import HeldInterrupts
from kons.core.one_row import ENDLESS, PLAIN, REFUSED, OneRow, learn_alone, let_wait, predict_alone
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
    _sampler: Any
    _constant_step: float | None
    _plain_targets: float

    def _predict_alone(self, x: Any) -> Any:
        rows = self._waiting
        if rows is None or x.dtype is not FLOAT64 or not (rows.gapless or x.strides == IN_ONE_PIECE):
            return None
        try:
            score = predict_alone(rows.address, x)
        except TypeError:  # not in one piece: to look before takes less than to fail
            rows.gapless = False
            return None
        return score if score == score else None

    def _learn_alone(self, x: Any, y: Any) -> bool:
        rows = self._waiting
        if (
            rows is None
            or not isinstance(y, float)  # NumPy's, too
            or x.dtype is not FLOAT64
            or not (rows.gapless or x.strides == IN_ONE_PIECE)
        ):
            return False
        try:
            outcome = learn_alone(rows.address, x, y)
        except TypeError:
            rows.gapless = False
            return False
        if outcome == PLAIN:
            return True
        if outcome == REFUSED:  # what is wrong with it the next door says
            return False
        with self._turn:  # a period, or the record, is full
            self.count_rows()
            self._tell_events()
            self._let_rows_wait()
        return True

    def _let_rows_wait(self) -> None:
        """From now on single rows are counted later, if the loops can learn them by themselves."""
        rows, step_size, bound = self._one_row, self._constant_step, self._plain_targets
        if rows is None or not rows.has_room or self._outputs:
            return
        if step_size is None or self._sampler is not None:
            return
        record: Record | None = self._record
        line = (0, 0, ENDLESS) if record is None else record.room
        sums = self._log_determinant, self._online_effective_dimension
        own = vars(self)
        self._uncounted = {name: own[name] for name in COUNTING}
        self._waiting = rows
        for name in COUNTING:
            del own[name]
        let_wait(rows.address, bound, step_size, *sums, *line)

    def count_rows(self) -> None:
        """Count the rows that wait, if any do: from then on all is as if each had been counted at once."""
        if self._uncounted is None:
            return
        with self._turn, HeldInterrupts():
            rows, own = self._waiting, vars(self)
            own.update(self._uncounted or {})
            self._uncounted = self._waiting = None
            if rows is None:  # another thread has
                return
            learned, taken, self._log_determinant, self._online_effective_dimension = rows.count_rows()
            self._rows_seen += learned
            self._kept += taken
            self._coins[0].pass_some(learned)
            if self._record is not None:
                self._record.count += learned
            rows.let_interrupts_go()
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


for _name in COUNTING:
    setattr(CountsLater, _name, _Counted(_name))
