"""The selection step: feature maps are refitted, experts fitted and pruned.

At selection steps, on rows that were kept:

- every feature map in use is refitted (scaling, metric, bandwidth, regularization) and kept if it was better;
- experts are fitted in it: new atoms, all kept rows learned again;
- experts that add nothing to stacking are pruned, and what they cost is spent on the atoms of others.

Besides, Gaussian experts with a finite memory take new atoms, from the rows they remember, once in a memory's
length; as long as there are several of them, their scaling and metric follow the stream, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Vector
from kons.learners.auto.effort import Settings
from kons.learners.auto.feature_map import SCALINGS, CachedFeatures, FeatureMap
from kons.learners.auto.feature_maps import FeatureMaps, Search
from kons.learners.auto.pool import ExpertPool, Slot, fit_expert, searched_on
from kons.learners.auto.reservoir import Reservoir
from kons.learners.auto.rows import ChunkEnd, Layout
from kons.learners.auto.schedule import (
    CHUNK,
    EARLY,
    LATE,
    LONGEST,
    SETTLED,
    fits,
    follows,
    is_selection_step,
    last_step,
    may_recall,
    may_recall_some,
    prunes,
    searches_on,
    seeks_others,
)
from kons.learners.auto.spec import (
    BASELINES,
    LAST,
    MEAN,
    STEADY,
    TREND,
    ExpertSpec,
    first_specs,
    has_trend,
    sentinel_of,
    stored_specs,
)
from kons.learners.auto.stacking import Stacking
from kons.state import Inner, Inners, Part, fields
from kons.stored import Stored

__all__ = ["Selection"]

# An expert counts that is worth this part of the best one in stacking: weaker ones neither move nor grow.
COUNTS = 0.1
# How many times max_atoms an expert may take that others left room for: its cost grows as the square.
MOST_GROWN = 1.5


class Selection(Part):
    """The expert pool, its feature maps and its stacking."""

    STATE = fields(pool=Inner(), stackings=Inners(), feature_maps=Inner())  # what is taken back

    def __init__(self, settings: Settings, reservoir: Reservoir) -> None:
        self._reservoir = reservoir
        self._seed, self._fixed = settings.seed, settings.fixed
        self._max_atoms, self._neighbours = settings.effort.max_atoms, settings.effort.neighbours
        self._in_turn, self._targets = settings.effort.in_turn, settings.targets
        #: All that may ever be at work, in the order of their numbers.
        self.all_specs: list[ExpertSpec] = first_specs(
            settings.effort.experts,
            given_kernel=settings.fixed.kernel is not None,
            classes=settings.classes,
        )
        self.pool: ExpertPool = ExpertPool(self.all_specs)
        self.stackings: list[Stacking] = self._new_stackings()
        self.feature_maps: FeatureMaps = FeatureMaps(settings.fixed, settings.effort.knots)
        #: The short memory that is always there, to tell when others would be of use.
        self.sentinel: ExpertSpec | None = sentinel_of(self.all_specs)
        #: The column of the expert with the largest weight, over all targets; that of the mean before any
        #: has begun.
        self.leader: int = MEAN

    def _new_stackings(self) -> list[Stacking]:
        """Of the mean, the last target and all experts, for each target.

        The last target starts with no weight: on rows in no order it is worth nothing; on others no expert
        follows as fast. So does the trend, which is of use beside others only.
        """
        return [Stacking(len(self.pool) + BASELINES, doubted=[LAST, TREND]) for _ in range(self._targets)]

    @property
    def columns(self) -> list[int]:
        """The baselines and the experts at work, in the order of their numbers."""
        return [MEAN, LAST, TREND, *(self.all_specs.index(spec) + BASELINES for spec in self.pool.specs)]

    def spread(self, F: NDArray[np.float64]) -> NDArray[np.float64]:
        """Predictions of those at work in columns by their numbers; of those pruned, the mean of targets."""
        by_number = np.repeat(F[:, [MEAN]], len(self.all_specs) + BASELINES, axis=1)
        by_number[:, self.columns] = F
        return by_number

    @property
    def number_of_leader(self) -> int:
        """In the order of the baselines and all specs: it never changes."""
        if self.leader == MEAN:
            return MEAN
        return self.all_specs.index(self.pool.slots[self.leader - BASELINES].spec) + BASELINES

    # ---- the end of a chunk

    def end_chunk(self, now: ChunkEnd, *, at_once: bool, refit: bool) -> None:
        """Let experts start the next chunk, and do what is due; ``at_once`` a whole selection is."""
        self.pool.end_chunk(refit, rare=now.rare)
        if prunes(now.rows):
            self._prune(now)
        step = is_selection_step(now.rows)
        # Where a class is rare nothing is searched for, and each of its rows counts: all is done at once.
        self._select(now, at_once or (step and (now.rare or not self._in_turn)))
        if not (at_once or now.rare):
            self._follow(now)
        for i, slot in enumerate(self.pool.slots):
            memory, old = slot.spec.memory, slot.expert
            # A linear expert has no atoms that could be far from the last rows.
            renewed = memory and slot.spec.kernel == "gaussian" and now.rows % _renewal(memory) == 0
            if renewed and old is not None and not (step or at_once):
                self._fit(i, now, self._remembered(memory, now), self._max_atoms)
            if slot.spec.kernel == "neighbours" and not memory and old is not None and not at_once:
                self._search_on(i, now)
        self._fit_recalled(now)
        if now.rows >= EARLY and now.rows % LONGEST == 0:
            self._recall(now)
        # An expert that is not fitted repeats the others, and its weight says nothing.
        begun = [i + BASELINES for i, slot in enumerate(self.pool.slots) if slot.expert is not None]
        weights = self.weights
        largest = max((weights[i] for i in begun), default=0.0)
        # Experts fitted together have equal weights so far: rounding must not decide.
        self.leader = next((i for i in begun if weights[i] >= largest - 1e-6), MEAN)

    @property
    def weights(self) -> Vector:
        """Of each expert in the stacking, the mean over the targets."""
        total: Vector = np.sum([stacking.weights for stacking in self.stackings], axis=0)
        return total / len(self.stackings)

    def _costs(self, now: ChunkEnd, each: Callable[[Stacking], Any]) -> Any:
        """What removals cost, in usual errors of each target, the mean over them."""
        usual = zip(self.stackings, np.maximum(now.errors, 1e-300).tolist(), strict=True)
        # A target that never changed asks for nothing, unless all are such ones.
        judges = [pair for pair in usual if not pair[0].is_fixed] or [(self.stackings[0], 1.0)]
        with np.errstate(over="ignore"):
            return np.mean([each(stacking) / error for stacking, error in judges], axis=0)

    def _select(self, now: ChunkEnd, at_once: bool) -> None:
        """A selection, or the part of one that is due."""
        step = is_selection_step(now.rows)
        first = others = True
        fitted = [True for _ in self.pool.specs]
        if not at_once:
            in_turn = self._in_turn and not now.rare
            first, others = in_turn and step, in_turn and seeks_others(now.rows)
            numbers = (self.all_specs.index(spec) for spec in self.pool.specs)
            fitted = [in_turn and fits(now.rows, number) for number in numbers]
        if not (first or others or any(fitted)):
            return
        random = np.random.default_rng([self._seed, now.rows])
        kept = now.believed(self._reservoir.sampled())
        some = kept
        if now.rows >= SETTLED:  # rows that no feature map was chosen by
            some = now.believed(self._reservoir.last(min(now.rows // 2, SETTLED)))
        if not len(kept) or not len(some):
            return
        search = Search(now, kept, some, self.pool, random)
        if first:
            self.feature_maps.refit_best(search, anew=step)
        if others:
            self.feature_maps.refit_others(search)
        seen, counting = CachedFeatures(kept, now.layout), self._counting(now)
        room = self._room(now, len(counting))
        for i, slot in enumerate(self.pool.slots):
            memory, known = slot.spec.memory, self.feature_maps.key(slot.spec) in self.feature_maps.current
            # Where a class is rare the logistic expert is needed as soon as another one.
            start = CHUNK if slot.spec.logistic and now.rare else slot.spec.start
            settled = now.rows >= SETTLED and not at_once and slot.expert is not None
            if fitted[i] and known and now.rows >= start and (i in counting or not settled):
                learned = self._remembered(memory, now) if memory else seen
                self._fit(i, now, learned, room if i in counting and not memory else self._max_atoms)

    @property
    def _in_order(self) -> bool:
        """Whether the order of rows matters, as far as experts with a finite memory can tell."""
        return any(spec.memory and spec != self.sentinel for spec in self.pool.specs)

    def _follow(self, now: ChunkEnd) -> None:
        """Where the stream moves, so may scaling and metric: those of short memories are of its last rows.

        Of these two thirds to find them and one to judge. Experts that remember everything keep theirs.
        """
        for lags in (False, True):
            key = lags, self.feature_maps.better[lags]
            maps = (
                self.feature_maps.key(spec)
                for spec in self.pool.specs
                if spec.memory and spec.kernel == "gaussian"
            )
            if not (follows(now.rows, lags=lags) and self._in_order and key in maps):
                continue
            rows = now.believed(self._reservoir.last(3 * SETTLED // 2))
            cut = 2 * len(rows) // 3
            if cut < CHUNK:
                continue
            random = np.random.default_rng([self._seed, now.rows])
            before, last = (Search(now, part, part, self.pool, random) for part in (rows[:cut], rows[cut:]))
            self.feature_maps.follow(lags, before, last)

    def _remembered(self, memory: int, now: ChunkEnd) -> CachedFeatures:
        """The rows that an expert with a finite memory starts from."""
        return CachedFeatures(now.believed(self._reservoir.last(3 * memory // 2)), now.layout)

    def _fit(self, i: int, now: ChunkEnd, kept: CachedFeatures, max_atoms: int) -> None:
        """A new expert in slot i, in the current feature map, fitted to the rows that are kept, if any."""
        spec = self.pool.slots[i].spec
        if not len(kept.rows):
            return
        self.pool.slots[i] = fit_expert(
            spec,
            self.feature_maps.current[self.feature_maps.key(spec)],
            kept,
            outputs=now.outputs,
            max_atoms=max_atoms,
            neighbours=self._neighbours,
            fixed=self._fixed,
            live=now.rows < EARLY,
            random=np.random.default_rng([self._seed, now.rows, i]),
            like=self._like(spec) if spec.memory else None,
            before=self.pool.slots[i],
            other=self.feature_maps.current.get(self.feature_maps.key(spec._replace(alternative=True))),
            steady=self.pool.steady,
        )

    def _search_on(self, i: int, now: ChunkEnd) -> None:
        """Neighbours that count go on with their search, if it is their turn, while all rows are kept."""
        number, all_kept = self.all_specs.index(self.pool.specs[i]), now.rows <= self._reservoir.sample
        if not (searches_on(now.rows, number) and all_kept and self._in_turn) or now.rare:
            return
        if i not in self._counting(now):
            return
        kept = CachedFeatures(now.believed(self._reservoir.sampled()), now.layout)
        if len(kept.rows):
            self.pool.slots[i] = searched_on(
                self.pool.slots[i],
                kept,
                outputs=now.outputs,
                neighbours=self._neighbours,
                fixed=self._fixed,
                random=np.random.default_rng([self._seed, now.rows, i]),
                steady=self.pool.steady,
            )

    def _like(self, spec: ExpertSpec) -> Slot | None:
        """The slot of the same kernel and features that remembers everything."""
        same = (slot for slot in self.pool.slots if slot.spec[:2] == spec[:2] and not slot.spec.memory)
        return next(same, None)

    def _counting(self, now: ChunkEnd) -> set[int]:
        """The slots worth some work: those whose removal costs a tenth of what that of the best one costs."""
        costs = self._removal_costs(now)
        return set(np.flatnonzero(costs >= COUNTS * costs.max(initial=0.0)).tolist())

    def _room(self, now: ChunkEnd, count: int) -> int:
        """Atoms of each of so many that count: to them is given on what others cost that were pruned.

        Not where rows come in an order that matters, as far as experts with a finite memory can tell.
        """
        if now.rows < SETTLED or self._in_order:
            return self._max_atoms
        others = len(self.pool) - count
        # An expert's cost grows with the square of its atoms.
        shares = math.sqrt(max(len(self.all_specs) - others, count) / count)
        return int(self._max_atoms * min(shares, MOST_GROWN))

    def _prune(self, now: ChunkEnd) -> None:
        """Remove experts without which the loss of stacking would have been the same.

        The bar is that of the Bayesian information criterion, log(n)/n of the loss for each weight, halved;
        lower before 2,048 rows. Those of a series go together: on rows in no order none of them is of
        use, on others they help each other. The sentinel stays, to tell when they would be of use again.
        """
        bar = 0.5 * math.log(max(self.stackings[0].memory, 2.0))
        specs = self.pool.specs
        series = [i + BASELINES for i in self._of_series]
        needless = min(1.0, now.rows / 2048) * bar * len(series)
        moves = self._leads(now) or self._drifts(now, 2.0)
        if series and not moves and self._removal_cost(now, series) < needless:
            self._remove(series)
        elif self._in_order and not moves and self._order_tells_nothing(now):
            self._remove([i for i in series if specs[i - BASELINES].memory])
        while now.rows >= LATE:
            specs = self.pool.specs
            needed = [spec for spec in specs if spec == STEADY or (spec.logistic and now.rare)]
            steady = [i for i, spec in enumerate(specs) if not spec.memory and spec not in needed]
            costs = self._removal_costs(now)[steady]
            if costs.min(initial=np.inf) > bar:
                return
            self._remove([steady[int(np.argmin(costs))] + BASELINES])

    def _order_tells_nothing(self, now: ChunkEnd) -> bool:
        """Whether the rows so far came in no order that matters, however much stacking makes of it.

        Short memories, and the Gaussian expert with last targets, all err more than the best of the others:
        by a hundredth of the usual error, lest rounding decide. As one voice more among many they may still
        be worth something, but less than more atoms for others that cost as much. (Neighbours with last
        targets are left out: what columns count there is searched for, and may be found better by chance.)
        """
        errors: Vector = self._costs(now, Stacking.errors)[BASELINES:]
        told, others = [np.inf], [np.inf]
        for slot, error in zip(self.pool.slots, errors.tolist(), strict=True):
            spec = slot.spec
            if slot.expert is not None and (spec.memory or not spec.lags or spec.kernel == "gaussian"):
                (told if spec.of_series else others).append(error)
        margin = 0.01 * self.stackings[0].memory
        return now.rows >= LATE and min(told) > min(others) + margin

    @property
    def _of_series(self) -> list[int]:
        """The slots of a series, but for the sentinel."""
        specs = enumerate(self.pool.specs)
        return [i for i, spec in specs if spec.of_series and spec != self.sentinel]

    def _drifts(self, now: ChunkEnd, bar: float) -> bool:
        """Whether the sentinel is of use beside the long memories: of a function that stays, they know more.

        The bar is four times that of pruning for others to stay, eight times for them to come back: at four,
        atoms other than those of the long memories were worth as much on some sets where nothing moves.
        """
        specs = self.pool.specs
        if self.sentinel not in specs:
            return False
        place = specs.index(self.sentinel)
        cost = self._removal_cost(now, [place + BASELINES])
        bar *= math.log(max(self.stackings[0].memory, 2.0))
        return self.pool.slots[place].expert is not None and bar <= cost < np.inf

    @property
    def compared(self) -> tuple[int, int] | None:
        """The columns of the short memory that stays, and of the long one, once both have begun."""
        begun = {s.spec: i + BASELINES for i, s in enumerate(self.pool.slots) if s.expert is not None}
        if self.sentinel in begun and STEADY in begun:
            return begun[self.sentinel], begun[STEADY]
        return None

    def _leads(self, now: ChunkEnd) -> bool:
        """Whether of some target the short memory was clearly better lately than the long one."""
        return any(s.leads(e) for s, e in zip(self.stackings, now.errors.tolist(), strict=True))

    def _removal_costs(self, now: ChunkEnd) -> Vector:
        """Of each slot alone; of the neighbours that tell a trend, of both."""
        costs: Vector = self._costs(now, Stacking.removal_costs)[BASELINES:]
        for i, spec in enumerate(self.pool.specs):
            if has_trend(spec):
                costs[i] = self._removal_cost(now, [TREND, i + BASELINES])
        return costs

    def _removal_cost(self, now: ChunkEnd, columns: list[int]) -> float:
        return float(self._costs(now, lambda stacking: stacking.removal_cost(columns)))

    def _recall(self, now: ChunkEnd) -> None:
        """Bring the experts of a series back where there is drift.

        All of them, if no short memory was left; else drift alone does not say that those that left would be
        of use: neighbours left, came back and were fitted anew every 4,096 rows, for nothing.
        """
        if self._in_order and not may_recall_some(now.rows):
            return
        specs, known = self.pool.specs, self.feature_maps.current
        gone = [spec for spec in self.all_specs if spec.of_series and spec not in specs]
        gone = [spec for spec in gone if self.feature_maps.key(spec) in known]
        if gone and (self._leads(now) or (may_recall(now.rows) and self._drifts(now, 4.0))):
            for stacking in self.stackings:
                stacking.add(len(gone))
            self.pool.slots.extend(Slot(spec) for spec in gone)

    def _fit_recalled(self, now: ChunkEnd) -> None:
        """Three at a time start from the last rows."""
        if now.rows < EARLY:
            return
        recalled = [
            i
            for i, slot in enumerate(self.pool.slots)
            if slot.expert is None
            and slot.spec.of_series
            and slot.spec.start < last_step(now.rows)
            and self.feature_maps.key(slot.spec) in self.feature_maps.current
        ]
        for i in recalled[:3]:
            memory = self.pool.slots[i].spec.memory
            self._fit(i, now, self._remembered(memory or SETTLED, now), self._max_atoms)

    def _remove(self, columns: list[int]) -> None:
        for stacking in self.stackings:
            stacking.remove(columns)
        self.pool.remove(columns)

    # ---- on from a file

    def state(self) -> dict[str, Any]:
        """Everything the next row depends on. A copy."""
        used = [*self.feature_maps.current.values(), *(slot.feature_map for slot in self.pool.slots)]
        maps = list({id(each): each for each in used if each is not None}.values())
        places = {id(each): place for place, each in enumerate(maps)}
        return {
            "leader": self.leader,
            "stacking": [one.state() for one in self.stackings]
            if self._targets > 1
            else self.stackings[0].state(),
            "specs": [tuple(spec) for spec in self.pool.specs],
            "all_feature_maps": [each.state() for each in maps],
            "feature_maps": [
                (lags, name, places[id(each)]) for (lags, name), each in self.feature_maps.current.items()
            ],
            "better": [self.feature_maps.better[False], self.feature_maps.better[True]],
            "experts": self.pool.state(maps),
        }

    def load_state(self, stored: Stored, **sizes: Any) -> None:
        """Take what :meth:`state` saved, of rows of so many features, into one that has seen nothing."""
        width, outputs = sizes["width"], sizes["outputs"]
        specs = stored_specs(stored, "specs", self.all_specs)
        if specs != self.all_specs:
            self.pool = ExpertPool(specs)
            self.stackings = self._new_stackings()
        self.leader = stored.integer("leader", at_most=len(self.pool) + BASELINES - 1)
        if self.leader in (LAST, TREND):
            raise stored.error("what leads is no expert")
        several = self._targets > 1
        saved = stored.inners("stacking", self._targets) if several else [stored.inner("stacking")]
        of_earlier_versions = "lead" not in saved[0]
        for stacking, its in zip(self.stackings, saved, strict=True):
            stacking.load_state(its)
        feature_maps = [
            FeatureMap.from_stored(inner, inner.integer("columns", at_least=1))
            for inner in stored.inners("all_feature_maps")
        ]
        for lags, name, place in stored.tuples("feature_maps", bool, str, int):
            if name not in SCALINGS or not 0 <= place < len(feature_maps):
                raise stored.error(f"there is no feature map {name!r} at place {place}")
            self._require_fit(feature_maps[place], lags, width, stored)
            self.feature_maps.current[lags, name] = feature_maps[place]
        better = stored.items("better", 2)
        if not all(isinstance(name, str) and name in SCALINGS for name in better):
            raise stored.error(f"there are no scalings {better}")
        self.feature_maps.better = {False: better[0], True: better[1]}
        entries = stored.items("experts", len(self.pool))
        self.pool.load_state(entries, feature_maps, outputs, self._fixed, self._neighbours, self._targets)
        for slot in self.pool.slots:
            if slot.feature_map is not None:
                self._require_fit(slot.feature_map, slot.spec.lags, width, stored)
        for stacking in self.stackings if of_earlier_versions else ():
            stacking.begin_comparison(self.compared)
        stored.finish()

    def _require_fit(self, feature_map: FeatureMap, lags: bool, width: int, stored: Stored) -> None:
        layout = Layout(width, False, self._targets)
        columns, found = (
            layout.width_of(feature_map.features, lags, feature_map.flags),
            feature_map.metric.shape[-1],
        )
        if feature_map.features > width or found != columns:
            raise stored.error(f"a feature map has {found} columns, expected {columns}")


def _renewal(memory: int) -> int:
    """Rows after which an expert with this memory takes new atoms: 1.5 times its length, in whole chunks."""
    return max(1, round(1.5 * memory / LONGEST)) * LONGEST
