"""Forecaster: the next H steps of a series from every row on, by one model in one pass."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, Vector, as_targets, require_integer, require_number
from kons.errors import ConfigurationError, InputError
from kons.forecasting.combining import Combination, passed
from kons.forecasting.days_off import DaysOff
from kons.forecasting.features import Asked, alike, base_records
from kons.forecasting.grid import BASES, EARLIEST, Gaps, Grid, Incoming, Y, mean_of, steps_of, too_early
from kons.learners import AutoKONS
from kons.learners.protocol import described
from kons.state import Count, Flag, Inner, Inners, Part, fields
from kons.stored import Stored
from kons.tables.records import Records, is_table, records_of

__all__ = ["Forecaster", "Path", "Paths"]

UNITS = {"s": 1, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}
DAY, WEEK = 86_400_000_000, 604_800_000_000
# Of so many of the last paths it is asked whether the model is ahead of the season.
JUDGED = 72


class Paths(NamedTuple):
    """The forecasts of origins whose whole path has passed, one row each."""

    origin: NDArray[np.int64]
    """The number of the step; of time, ``moments`` says when."""
    prediction: Matrix
    """Of h = 1 .. H steps after it."""
    target: Matrix
    """What came; NaN where nothing did."""
    lower: Matrix
    upper: Matrix
    seasonal: Matrix
    """The same place one season before, or the last value: what a forecast has to be better than."""
    last: Matrix
    """The value at the origin again."""


class Path(NamedTuple):
    """The forecast beyond the last row."""

    prediction: Vector
    lower: Vector
    upper: Vector
    time: NDArray[np.datetime64] | None
    """When; None where steps are rows."""


class Forecaster(Part):
    """The next ``horizon`` steps of a series, from every row on.

    ::

        path(t)[h] = c_h + w_h^T g_h(t),          h = 1 .. H
        bases        AutoKONS, one for each lead L = H, H/2, H/4, ..., 1, and one of lead H for what deviates
                     from the last days of this kind: y(s) from what is known L steps before: columns known
                     ahead, the calendar of s, the same place in earlier seasons, levels, other columns
        correction   EmbeddedKONS with H targets over one dictionary and one A: what the nearest base misses,
                     from last errors, the bases along the path and the other columns at the origin t
        maps         linear, one for each phase of the shortest season, from its last values to the path
        c_h, g_h     the mean of the bases with L >= h; how each, the corrected one and the map deviate from
                     it, and the last errors; w_h by the second-order update of stacking, one for each h

    Until that has once been better, over 72 paths, than the same place one season before, the latter is said.
    So it is one pass, and a row costs log2(H) + 2 AutoKONS and one EmbeddedKONS, some milliseconds.
    Nothing is learned before it has happened: a base learns targets L steps late, the rest paths that have
    passed whole.

    With ``time`` rows lie on steps of ``step``: missing ones are gaps, which are not learned, and of
    several rows in one step the last counts. Without, every row is a step.

    Not for a series whose columns are known at the predicted time (weather that is measured there): use
    ``delay`` of an evaluation for that, nor for many series at once.

    Parameters
    ----------
    horizon:
        H: how many steps ahead; or a stretch of time, ``"24h"``, with ``time``.
    time:
        The column of time. Its hour, weekday and day of the year are known ahead.
    step:
        From row to row: ``"1h"``, ``"15min"``, ``"1d"``; with ``time``.
    known_ahead:
        Columns that are known of the steps to be predicted: holidays, prices that are set, plans.
    seasons:
        Steps after which the series comes again; by default those of a day and a week, if there are such.
    level:
        Of the intervals: the share of targets that they should hold, each horizon by itself.
    effort, seed:
        Of :class:`kons.AutoKONS`.

    Examples
    --------
    >>> import numpy as np
    >>> hours = np.arange(24 * 60)
    >>> when = np.datetime64("2024-01-01T00") + hours.astype("timedelta64[h]")
    >>> y = 100 + 30 * np.sin(hours / 24 * 2 * np.pi) + 5 * (hours // 24 % 7)
    >>> model = Forecaster("24h", time="when", step="1h")
    >>> paths = model.advance([{"when": t} for t in when], y)
    >>> paths.prediction.shape[1], bool(np.abs(paths.prediction - paths.target)[-100:].mean() < 2.0)
    (24, True)
    >>> ahead = model.path()
    >>> str(ahead.time[0]), bool(abs(ahead.prediction[0] - 120) < 3.0)
    ('2024-03-01T00:00:00.000000', True)
    """

    STATE = fields(
        grid=Inner(),
        days_off=Inner(),
        open=Gaps(None, None),
        bases=Inners(),
        combination=Inner(),
        done=Count(at_least=EARLIEST),
        said=Gaps(None, None),
        judged=Gaps(None, 2),
        trusted=Flag(),
        rows_seen=Count(),
    )
    horizon: int | str
    time: str | int | None
    step: str | None
    level: float
    known_ahead: list[str]
    seasons: list[int] | None
    effort: str
    seed: int

    def __init__(
        self,
        horizon: int | str,
        *,
        time: Any = None,
        step: str | None = None,
        known_ahead: Sequence[Any] = (),
        seasons: Sequence[int] | None = None,
        level: float = 0.9,
        effort: str = "normal",
        seed: int = 0,
    ) -> None:
        self.horizon, self.time, self.step, self.level = horizon, time, step, level
        self.known_ahead, self.seasons = list(known_ahead), None if seasons is None else list(seasons)
        self.effort, self.seed = effort, seed
        require_number(level, "level", above=0.0, below=1.0)
        if (time is None) != (step is None):
            raise ConfigurationError("time and step belong together: time='when', step='1h'.")
        width = 1 if step is None else duration(step, "step")
        steps = _in_steps(horizon, width, timed=step is not None)
        if seasons is None:
            seasons = [
                span // width for span in (DAY, WEEK) if step and not span % width and span >= 2 * width
            ]
        chosen = sorted({require_integer(season, "seasons", at_least=2) for season in seasons})
        self.asked: Asked = Asked(steps, tuple(chosen), tuple(known_ahead), time, width)
        self.grid: Grid = Grid(len(self.asked.looks))
        self.days_off: DaysOff = DaysOff(self.asked)
        # The last row, which another one of the same step may replace: its step, and its row of the grid.
        self.open: Matrix = np.empty((0, 0))
        #: One for each lead, and one of the longest for what deviates from days of the same kind.
        self.bases: list[AutoKONS] = [
            AutoKONS(delay=lead - 1, effort=effort, seed=seed)  # type: ignore[arg-type]
            for lead in self.asked.looks
        ]
        self.combination: Combination = Combination(self.asked, level, seed)
        #: Origins before this step have been predicted, and those of the chunk before it not yet learned.
        self.done: int = EARLIEST
        #: Of these: what was said, lower and upper ends, and what the model said, four paths in a row.
        self.said: Matrix = np.empty((0, 4 * steps))
        #: Mean squared errors of the last origins: of the model, and of one season before.
        self.judged: Matrix = np.empty((0, 2))
        #: Whether the model has been the better one.
        self.trusted: bool = False
        #: Rows that came.
        self.rows_seen: int = 0

    # ---- learning

    def advance(self, X: Any, y: Any) -> Paths:
        """Take rows in order of time; returns the paths that they complete, each predicted as of its origin.

        X is a frame, records or a list of dicts; of an array, columns are numbers. How rows are cut into
        calls does not matter. After an error nothing has changed.
        """
        records = self._records(X)
        targets = as_targets(y, len(records))
        mark = self.mark()
        try:
            return self._advance(records, targets)
        except BaseException:
            self.restore(mark)
            raise

    def _advance(self, records: Records, y: Vector) -> Paths:
        if not self.rows_seen and len(records):
            self._begin(records)
        incoming = self._with_open(self.grid.read(records, self._steps(records), y))
        self.rows_seen += len(records)
        self.open = np.empty((0, 0))
        if len(incoming.steps):
            self.open = np.concatenate(
                [incoming.steps[-1:, None].astype(np.float64), incoming.rows[-1:]], axis=1
            )
        closed = Incoming(incoming.steps[:-1], incoming.rows[:-1])
        self.grid.append(closed)
        self.days_off.write(self.grid, closed.steps)
        if len(closed.steps):
            if self.done == EARLIEST:
                self.done = int(closed.steps[0])
            for place in range(len(self.bases)):
                self._follow(place, closed)
        parts = []
        H = self.asked.horizon
        while self.done > EARLIEST and (end := (self.done // H + 1) * H) + H <= self.grid.next:
            parts.append(self._chunk(np.arange(self.done, end)))
            self.done = end
        self.grid.forget(self.asked.reach)
        return _joined(parts, H)

    def _follow(self, place: int, closed: Incoming) -> None:
        """One base, along rows."""
        base, lead = self.bases[place], self.asked.looks[place]
        before, reference = base.rows_seen, self._reference(place, closed.steps)
        records = base_records(self.grid, closed.steps, self.asked, lead)
        trace = base.advance(records, closed.rows[:, Y] - reference)
        said = np.array(trace.prediction, dtype=np.float64) + reference
        said[: max(0, lead - before)] = np.nan  # predicted before any target was known
        self.grid.put(BASES + place, closed.steps, said)

    def _reference(self, place: int, steps: NDArray[np.int64]) -> Any:
        """What a base learns the difference from."""
        if place < len(self.asked.leads):
            return 0.0
        return alike(self.grid, steps, self.asked, self.asked.looks[place])

    def _chunk(self, steps: NDArray[np.int64]) -> Paths:
        """Predict the origins of a chunk, whose paths have passed, and learn those of the one before.

        Chunks are H steps at multiples of H. What was known at its first origin are the paths of the chunk
        before the last: so it is predicted by a model that has learned no later ones.
        """
        H, grid = self.asked.horizon, self.grid
        origins = steps[~np.isnan(grid.at(Y, steps))]
        last = grid.at(Y, origins)[:, None] * np.ones(H)
        seasonal, modelled = self._seasonal(origins, last), self.combination.paths(grid, origins)
        prediction = modelled if self.trusted else seasonal
        lower, upper = self.combination.ends(grid, origins, prediction)
        before = steps[0] // H * H - H + np.arange(H)
        before = before[~np.isnan(grid.at(Y, before))]
        if len(before) and len(before) == len(self.said):
            self._learn(before)
        self.said = np.concatenate([prediction, lower, upper, modelled], axis=1)
        return Paths(origins, prediction, passed(grid, origins, H), lower, upper, seasonal, last)

    def _learn(self, origins: NDArray[np.int64]) -> None:
        """The origins of the last chunk, of whose paths it is known what was said."""
        H = self.asked.horizon
        said, lower, upper, modelled = np.split(self.said, 4, axis=1)
        self.combination.learn(self.grid, origins, said, lower, upper)
        target = passed(self.grid, origins, H)
        seasonal = self._seasonal(origins, self.grid.at(Y, origins)[:, None] * np.ones(H))
        both = [mean_of((each - target) ** 2) for each in (modelled, seasonal)]
        self.judged = np.concatenate([self.judged, np.stack(both, axis=1)])[-JUDGED:]
        known = self.judged[~np.isnan(self.judged).any(axis=1)]
        self.trusted = self.trusted or bool(len(known) and known[:, 0].mean() < known[:, 1].mean())

    def _seasonal(self, origins: NDArray[np.int64], last: Matrix) -> Matrix:
        H, lags = self.asked.horizon, self.asked.lags
        if not lags:
            return last
        steps = (origins[:, None] + np.arange(1, H + 1) - lags[0][0]).ravel()
        found = self.grid.at(Y, steps).reshape(len(origins), H)
        return np.where(np.isnan(found), last, found)

    @property
    def last_step(self) -> int | None:
        """The number of the last row's step; None before the first."""
        return int(self.open[0, 0]) if len(self.open) else None

    # ---- the path beyond the last row

    def path(self, ahead: Any = None, level: float | None = None) -> Path:
        """The forecast beyond the last row; ``ahead`` has the known columns of these steps. Changes nothing.

        A column or a step that ``ahead`` lacks is a gap. ``level`` is that of the intervals, by default the
        forecaster's own, which corrects itself; other levels take their part of that.
        """
        if level is not None:
            require_number(level, "level", above=0.0, below=1.0)
        if not self.rows_seen:
            raise InputError("no row has come yet: there is nothing to go on from.")
        H, asked = self.asked.horizon, self.asked
        mark = self.mark()
        try:
            last = self._with_open(
                Incoming(np.empty(0, dtype=np.int64), np.empty((0, self.grid.rows.shape[1])))
            )
            self.grid.append(last)
            origin = int(last.steps[-1])
            steps = origin + np.arange(H + 1)
            future = Incoming(steps[1:], np.full((H, self.grid.rows.shape[1]), np.nan))
            if ahead is not None:
                future = self._ahead(ahead, origin)
            self.grid.append(future)
            self.days_off.write(self.grid, np.append(last.steps, future.steps))
            now = float(self.grid.at(Y, steps[:1])[0])
            for place, (base, lead) in enumerate(zip(self.bases, asked.looks, strict=True)):
                inside = steps[: lead + 1]
                reference = self._reference(place, inside) + np.zeros(len(inside))
                # Of the targets to come none is looked at: these are last targets of no step so near.
                recent = base.following().before([now - reference[0], *[0.0] * lead])
                records = base_records(self.grid, inside, asked, lead)
                self.grid.put(BASES + place, inside, base.predict(records, recent_targets=recent) + reference)
            at = np.array([origin])
            seasonal = self._seasonal(at, self.grid.at(Y, at)[:, None] * np.ones(H))
            prediction = self.combination.paths(self.grid, at) if self.trusted else seasonal
            lower, upper = self.combination.ends(self.grid, at, prediction, level)
        finally:
            self.restore(mark)
        times = None if asked.time is None else (steps[1:] * asked.step).view("datetime64[us]")
        return Path(prediction[0], lower[0], upper[0], times)

    def _ahead(self, ahead: Any, origin: int) -> Incoming:
        """The columns known ahead of the next H steps."""
        H, records = self.asked.horizon, self._records(ahead)
        steps = self._steps(records) if self.asked.time is not None else origin + 1 + np.arange(len(records))
        inside = (steps > origin) & (steps <= origin + H)
        if not inside.any():
            raise InputError(
                f"none of the {len(steps):,} rows known ahead lies in the {H:,} steps behind the last row: "
                "give rows of these, or none."
            )
        given = self.grid.read(records.take(inside), steps[inside], np.full(int(inside.sum()), np.nan))
        rows = np.full((H, self.grid.rows.shape[1]), np.nan)
        rows[given.steps - origin - 1] = given.rows
        for name in self.grid.kinds:
            if name not in self.asked.known_ahead:
                rows[:, self.grid.place(name)] = np.nan
        return Incoming(origin + 1 + np.arange(H), rows)

    # ---- rows as they come

    def _records(self, X: Any) -> Records:
        if not is_table(X):
            X = np.asarray(X, dtype=np.float64)
        return records_of(X)

    def _begin(self, records: Records) -> None:
        """The first rows say which columns there are."""
        kinds = {name: records.kind_at(name, row) for name, row in records.first_new((), 0).items()}
        if self.time is not None and kinds.pop(self.time, None) != "date":
            raise InputError(f"X has no column {self.time!r} of dates: give its name as time.")
        for name in self.known_ahead:
            if name not in kinds:
                raise InputError(f"X has no column {name!r}, which is known ahead: there are {list(kinds)}.")
        self.grid.begin({name: "text" if kind == "text" else "number" for name, kind in kinds.items()})

    def _steps(self, records: Records) -> NDArray[np.int64]:
        if self.time is None:
            return self.rows_seen + np.arange(len(records))
        return steps_of(records.values(self.time, "date"), self.asked.step)

    def _with_open(self, incoming: Incoming) -> Incoming:
        """Rows behind the one that is still open, or in its place."""
        if not len(self.open):
            return incoming
        step = self.open[:, 0].astype(np.int64)
        if len(incoming.steps) and incoming.steps[0] < step[0]:
            raise too_early(0)
        if len(incoming.steps) and incoming.steps[0] == step[0]:
            return incoming
        rows = np.concatenate([self.open[:, 1:], incoming.rows])
        return Incoming(np.concatenate([step, incoming.steps]), rows)

    # ---- files

    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments by name."""
        names = ("horizon", "time", "step", "known_ahead", "seasons", "level", "effort", "seed")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def from_state(cls, parameters: dict[str, Any], state: dict[str, Any]) -> Self:
        """The inverse of :meth:`parameters` and :meth:`state`: it goes on bit for bit."""
        model = cls(**parameters)
        model.load_state(Stored(state, cls.__name__))
        return model

    def __repr__(self) -> str:
        return described(type(self).__name__, self.parameters())


def duration(text: Any, name: str) -> int:
    """Microseconds of a stretch of time.

    >>> duration("15min", "step") // 1_000_000
    900
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|min|h|d|w)", text.strip()) if isinstance(text, str) else None
    if match is None or not (found := round(float(match[1]) * UNITS[match[2]] * 1e6)):
        raise ConfigurationError(f"{name} is {text!r}, expected a stretch of time: 30s, 15min, 1h, 1d, 1w.")
    return found


def _in_steps(horizon: Any, width: int, *, timed: bool) -> int:
    if not isinstance(horizon, str):
        return require_integer(horizon, "horizon", at_least=1, at_most=1000)
    if horizon.strip().isdigit():
        return _in_steps(int(horizon), width, timed=timed)
    if not timed:
        raise ConfigurationError(
            f"horizon is {horizon!r}, and rows have no time: give time and step, or a number."
        )
    steps, rest = divmod(duration(horizon, "horizon"), width)
    if rest or not steps:
        raise ConfigurationError(f"horizon is {horizon!r}, expected a multiple of the step.")
    return require_integer(steps, "horizon", at_least=1, at_most=1000)


def _joined(parts: Sequence[Paths], horizon: int) -> Paths:
    if not parts:
        none = np.empty((0, horizon))
        return Paths(np.empty(0, dtype=np.int64), *[none] * 6)
    return Paths(*(np.concatenate(each) for each in zip(*parts, strict=True)))
