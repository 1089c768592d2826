"""Who is at work: views are refitted, experts come, move and go.

At decisions, on rows that were kept:

- every view in use is refitted (scaling, metric, bandwidth, regularization) and kept if it was better;
- experts move to a view that is clearly better: new atoms, all kept rows learned again;
- experts whose predictions add nothing to the vote are retired, and what they cost is given on.

Experts with a finite memory besides take new atoms, from the rows they remember, once in a memory's length.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from kons.arrays import Matrix
from kons.learners.auto.aggregation import Aggregation
from kons.learners.auto.chunks import LONGEST, SETTLED, doubled
from kons.learners.auto.fence import Fence
from kons.learners.auto.history import History
from kons.learners.auto.panel import Panel, recruit
from kons.learners.auto.roles import (
    BASELINES,
    LAST,
    MEAN,
    STEADY,
    first_roles,
    stored_roles,
)
from kons.learners.auto.rows import Layout
from kons.learners.auto.view import SCALINGS, Fixed, Seen, View
from kons.learners.auto.views import Views
from kons.learners.auto.waiting import Waiting
from kons.stored import Stored

__all__ = ["Moment", "Staff"]

# Rows that views are compared with when there are many.
COMPARED_ROWS = 1024
# Before SETTLED experts move to every new view; then only to one whose error is smaller by this part.
BETTER = 0.03
# From here on every row is learned at the end of its chunk only, where the memory is endless.
LIVE_ROWS = 512
# From where on experts of a series may be retired, and from where on steady ones.
EARLY, LATE = 512, 4096
# A vote counts that is worth this part of the best one's: weaker experts neither move nor grow.
COUNTS = 0.1
# An expert must lower the loss by this part of what a further weight costs; to be sure takes so many rows.
SMALL_VOTE, SURE = 0.5, 2048
# Weights that are not further apart are equal.
TIE = 1e-6
# How many times max_atoms an expert may take that others left room for, and from what growth it pays.
MOST_GROWN, MORE = 1.75, 1.1


class Moment(NamedTuple):
    """What is known at the end of a chunk."""

    rows: int
    layout: Layout
    outputs: int
    flags: int
    """Classes that the last targets are told apart in."""
    fence: Fence
    error: float
    """The usual squared error of the vote."""

    def believed(self, rows: Matrix) -> Matrix:
        """Those that are learned from, as experts are shown them."""
        return self.layout.shown(rows[self.layout.believed(rows, self.fence) > 0.0], self.fence)


class Staff:
    """The experts on their seats, what they see, and their vote."""

    def __init__(
        self,
        history: History,
        waiting: Waiting,
        *,
        classes: bool,
        max_atoms: int,
        experts: int,
        seed: int,
        fixed: Fixed,
    ) -> None:
        self._history, self._waiting = history, waiting
        self._seed, self._fixed = seed, fixed
        self._max_atoms = max_atoms
        linear = fixed.kernel is None
        #: All that may ever be at work, in the order of their numbers.
        self.roster = first_roles(experts, linear=linear, classes=classes)
        self.panel = Panel(self.roster)
        self.voting = self._new_voting()
        self.views = Views(fixed)
        #: The column of the expert with the largest weight; that of the mean before any has begun.
        self.leader = MEAN

    def _new_voting(self) -> Aggregation:
        """Of the mean, the last target and all experts.

        The last target starts with no weight: on rows in no order it is worth nothing; on others no expert
        follows as fast. Where targets become known ``delay`` rows late, regret grows as delay + 1 (Joulani,
        Gyorgy, Szepesvari 2013), and the prior with it.
        """
        return Aggregation(len(self.panel) + BASELINES, 1.0 + self._waiting.delay, doubted=[LAST])

    @property
    def number_of_leader(self) -> int:
        """In the order of the baselines and the roster, for good."""
        if self.leader == MEAN:
            return MEAN
        return self.roster.index(self.panel.seats[self.leader - BASELINES].role) + BASELINES

    # ---- the end of a chunk

    def review(self, now: Moment, *, decides: bool, refit: bool) -> None:
        """Do what is due, and let experts start the next chunk: those that stay."""
        old = self.panel.experts
        if decides and now.rows >= SETTLED:  # their fits are looked at
            self.panel.end_chunk(refit, old)
            old = []
        if decides:
            self._decide(now)
        elif now.rows > SETTLED and doubled(now.rows):
            self._retire(now)
        for i, seat in enumerate(self.panel.seats):
            memory = seat.role.memory
            if memory and not decides and now.rows % _renewal(memory) == 0 and seat.expert is not None:
                self._recruit(i, now, self._remembered(memory, now), self._max_atoms)
        self.panel.end_chunk(refit, old)
        # Who has not begun repeats the others, and no weight says whether it leads.
        begun = [i + BASELINES for i, seat in enumerate(self.panel.seats) if seat.expert is not None]
        weights = self.voting.weights
        largest = max((weights[i] for i in begun), default=0.0)
        # Who began together said the same so far: rounding must not decide.
        self.leader = next((i for i in begun if weights[i] >= largest - TIE), MEAN)

    def _decide(self, now: Moment) -> None:
        random = np.random.default_rng([self._seed, now.rows])
        kept = now.believed(self._history.sampled())
        some = kept
        if now.rows >= SETTLED:  # rows that no view was chosen by
            some = now.believed(self._history.last(min(now.rows // 2, COMPARED_ROWS)))
        if not len(kept) or not len(some):
            return
        if now.rows >= EARLY and doubled(now.rows):
            self._retire(now)
        before = self.views.refit(
            kept,
            some,
            layout=now.layout,
            outputs=now.outputs,
            flags=now.flags,
            rows=now.rows,
            roles=self.panel.roles,
            random=random,
        )
        # On rows in order, atoms are chosen anew from all of them; else only a better view is worth the work.
        exchangeable, seen = now.rows > SETTLED and self._exchangeable, Seen(kept, now.layout)
        counting = self._counting()
        room = self._room(now, len(counting))
        for i, seat in enumerate(self.panel.seats):
            key = self.views.key(seat.role)
            view = self.views.current.get(key)
            if now.rows < seat.role.start or view is None:
                continue
            if exchangeable and seat.expert is not None and seat.view is not None:
                better = key in before and view.error < (1.0 - BETTER) * before[key]
                grown = seat.role.kernel != "linear" and room > MORE * len(seat.expert.atoms)
                moves = (i in counting and (better or grown)) or (seat.role == STEADY and better)
                if view.features == seat.view.features and not moves:
                    continue
            memory = seat.role.memory
            learned = self._remembered(memory, now) if memory else seen
            self._recruit(i, now, learned, room if i in counting and not memory else self._max_atoms)

    def _remembered(self, memory: int, now: Moment) -> Seen:
        """The rows that an expert with a finite memory starts from."""
        return Seen(now.believed(self._history.last(3 * memory // 2)), now.layout)

    def _recruit(self, i: int, now: Moment, kept: Seen, max_atoms: int) -> None:
        """A new expert on seat i, in the current view, that has learned the rows that are kept, if any."""
        role = self.panel.seats[i].role
        if not len(kept.rows):
            return
        self.panel.seats[i] = recruit(
            role,
            self.views.current[self.views.key(role)],
            kept,
            outputs=now.outputs,
            max_atoms=max_atoms,
            fixed=self._fixed,
            live=now.rows < LIVE_ROWS,
            random=np.random.default_rng([self._seed, now.rows, i]),
        )

    @property
    def _exchangeable(self) -> bool:
        """Whether rows come in no order, as far as experts can tell."""
        return not any(role.memory for role in self.panel.roles)

    def _counting(self) -> set[int]:
        """The seats whose vote is worth some work, beside that of the seat worth most."""
        costs = [self.voting.removal_cost([i + BASELINES]) for i in range(len(self.panel))]
        return {i for i, cost in enumerate(costs) if cost >= COUNTS * max(costs)}

    def _room(self, now: Moment, count: int) -> int:
        """Atoms of each of so many that count: to them is given on what others cost that were retired."""
        if now.rows < SETTLED or not self._exchangeable:
            return self._max_atoms
        others = len(self.panel) - count
        # An expert's cost grows with the square of its atoms.
        shares = math.sqrt(max(len(self.roster) - others, count) / count)
        return int(self._max_atoms * min(shares, MOST_GROWN))

    def _retire(self, now: Moment) -> None:
        """Experts go whose vote is so small that without it the loss would have been the same.

        The bar is that of the Bayesian information criterion, log(n)/n of the loss for each weight, halved;
        lower while few rows are known. Those of a series go together: on rows in no order none of them is of
        use, on others they help each other.
        """
        vote = self.voting
        bar = SMALL_VOTE * math.log(max(vote.memory, 2.0)) * now.error
        series = [i + BASELINES for i, role in enumerate(self.panel.roles) if role.of_series]
        if series and vote.removal_cost(series) < min(1.0, now.rows / SURE) * bar * len(series):
            self._remove(series)
        while now.rows >= LATE:
            roles = self.panel.roles
            steady = [i + BASELINES for i, role in enumerate(roles) if not role.memory and role != STEADY]
            costs = [vote.removal_cost([i]) for i in steady]
            if not costs or min(costs) > bar:
                return
            self._remove([steady[int(np.argmin(costs))]])

    def _remove(self, columns: list[int]) -> None:
        self.voting.remove(columns)
        self.panel.remove(columns)
        self._waiting.remove_experts(columns)

    # ---- going back, and on from a file

    def mark(self) -> Any:
        """Where everybody stands, for :meth:`restore`."""
        return self.leader, self.panel.mark(), self.voting.mark(), self.views.mark()

    def restore(self, mark: Any) -> None:
        """Go back to an earlier mark, bit for bit."""
        self.leader, panel, voting, views = mark
        self.panel.restore(panel)
        self.voting.restore(voting)
        self.views.restore(views)

    def state(self) -> dict[str, Any]:
        """Everything the next row depends on. A copy."""
        used = [*self.views.current.values(), *(seat.view for seat in self.panel.seats)]
        views = list({id(view): view for view in used if view is not None}.values())
        places = {id(view): place for place, view in enumerate(views)}
        return {
            "leader": self.leader,
            "voting": self.voting.state(),
            "roles": [tuple(role) for role in self.panel.roles],
            "all_views": [view.state() for view in views],
            "views": [(lags, name, places[id(view)]) for (lags, name), view in self.views.current.items()],
            "better": [self.views.better[False], self.views.better[True]],
            "experts": self.panel.state(views),
        }

    def load_state(self, stored: Stored, width: int, outputs: int) -> None:
        """Take what :meth:`state` saved, of rows of so many features, into a staff that has seen nothing."""
        self.panel = Panel(stored_roles(stored, "roles", self.roster))
        self.voting = self._new_voting()
        self.leader = stored.integer("leader", at_most=len(self.panel) + BASELINES - 1)
        if self.leader == LAST:
            raise stored.error("the last target leads, which is no expert")
        self.voting.load_state(stored.inner("voting"))
        views = [
            View.from_stored(inner, inner.integer("columns", at_least=1))
            for inner in stored.inners("all_views")
        ]
        for lags, name, place in stored.tuples("views", bool, str, int):
            if name not in SCALINGS or not 0 <= place < len(views):
                raise stored.error(f"there is no view {name!r} at place {place}")
            _require_fit(views[place], lags, width, stored)
            self.views.current[lags, name] = views[place]
        better = stored.items("better", 2)
        if not all(isinstance(name, str) and name in SCALINGS for name in better):
            raise stored.error(f"there are no scalings {better}")
        self.views.better = {False: better[0], True: better[1]}
        self.panel.load_state(stored.items("experts", len(self.panel)), views, outputs, self._fixed)
        for seat in self.panel.seats:
            if seat.view is not None:
                _require_fit(seat.view, seat.role.lags, width, stored)


def _require_fit(view: View, lags: bool, width: int, stored: Stored) -> None:
    columns = Layout.columns_seen(view.features, lags, view.flags)
    if view.features > width or view.metric.shape[-1] != columns:
        raise stored.error(f"a view has {view.metric.shape[-1]} columns, expected {columns}")


def _renewal(memory: int) -> int:
    """Rows after which an expert with this memory takes new atoms: 1.5 times its length, in whole chunks."""
    return max(1, round(1.5 * memory / LONGEST)) * LONGEST
