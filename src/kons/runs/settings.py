"""What a run is asked for, as plain values that a JSON file can hold."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from typing import Any, Literal

from kons.arrays import require_delay, require_integer
from kons.errors import ConfigurationError, InputError, announce
from kons.evaluation import RIVALS, Prequential, Several
from kons.files import about, load
from kons.keyed import Keyed
from kons.learners.detection import novelty_learner
from kons.learners.events import as_kinds
from kons.learners.protocol import as_learner
from kons.recipes import RECIPES, Recipe, for_task, warmup_for
from kons.recipes.algorithms import UNLIMITED
from kons.streams import Block, Stream, open_stream

__all__ = ["READING", "Engine", "Settings", "require_learner"]

#: What evaluates a learner along a stream, of one target or of several.
Engine = Prequential | Several
# What the plan of an earlier run has decided already, of how a source is read.
DECIDED = ("columns", "drop", "categorical", "numeric", "time", "lag", "horizon")
#: How a source is read: arguments of :func:`kons.streams.open_stream` that the settings may hold.
READING = (*DECIDED, "na_values", "missing", "on_bad_row", "header", "format", "delimiter", "encoding")
# Long files go in larger blocks, where a row costs the same at their end: a block costs something by itself.
LONG, LARGE_BLOCK = 16_384, 2048
# Learners of keys that are awake: some 0.3 MB each.
LIVE = 512
NOVELTY_TAKES = tuple(inspect.signature(novelty_learner).parameters)
# What has a place of its own in the settings.
PLACED = ("seed", "delay")


@dataclass(frozen=True)
class Settings:
    """The same settings on the same source give the same predictions.

    >>> Settings("prices.csv", "price", parameters={"max_atoms": 100}).learner
    'auto'
    """

    source: str
    target: str | None = None
    learner: str = "auto"
    parameters: dict[str, Any] = field(default_factory=dict)
    """Of the learner, by name: some of its recipe's ``accepts``."""
    task: str = "auto"
    scale: Literal["auto", "none"] = "auto"
    seed: int = 0
    delay: int = 0
    """How many rows late targets become known; a horizon comes on top."""
    window: int = 1000
    rows: int | None = None
    """Only the first so many rows."""
    shuffle: bool = False
    """Take the rows in an order that the seed decides."""
    key: str | None = None
    """A column that says whose row it is: each has a learner of its own."""
    id: str | None = None
    """A column that predictions are named by."""
    no_target: bool = False
    """Nothing is predicted: how new each row is, by :func:`kons.learners.detection.novelty_learner`."""
    positive: str | None = None
    """Of two labels, the one that F1, precision and recall are about."""
    class_weight: str | None = None
    """"balanced": rows of rare labels count more."""
    model: str | None = None
    """A saved model to go on with, which stays as it is; the learner and its parameters are then its own."""
    events: str | None = None
    """A file for what is noticed, a line of JSON each."""
    fail_on: list[str] = field(default_factory=list)
    """Kinds of events, or severities, after which a run counts as failed."""
    reading: dict[str, Any] = field(default_factory=dict)
    """How the source is read, by the names in :data:`READING`."""

    def __post_init__(self) -> None:
        for name, least in (("seed", 0), ("window", 1)):
            require_integer(getattr(self, name), name, at_least=least)
        require_delay(self.delay)
        if self.rows is not None:
            require_integer(self.rows, "rows", at_least=1)
        told = (self.target, self.key, self.id, self.positive, self.class_weight, self.model, self.events)
        texts = (self.source, self.learner, self.task, self.scale, *(text or "" for text in told))
        if not all(isinstance(text, str) for text in texts) or not (
            isinstance(self.shuffle, bool) and isinstance(self.no_target, bool)
        ):
            raise ConfigurationError("source, target, learner, task, scale, key, id and positive are text.")
        if not isinstance(self.parameters, dict) or not isinstance(self.reading, dict):
            raise ConfigurationError("parameters and reading are dicts.")
        if self.key is not None:
            self._require_key_alone(self.key)
        if self.no_target:
            self._require_no_target()
        as_kinds(self.fail_on)
        if unknown := self.reading.keys() - set(READING):
            raise ConfigurationError(f"there is no way of reading called {min(unknown)!r}.")

    def _require_no_target(self) -> None:
        """Refuse what needs something to predict."""
        names = ("target", "learner", "key", "task", "scale", "delay", "window", "positive", "class_weight")
        defaults = {field.name: field.default for field in fields(self)}
        taken = [name for name in names if getattr(self, name) != defaults[name]]
        if taken or self.reading.get("horizon"):
            name = (*taken, "horizon")[0].replace("_", "-")
            raise ConfigurationError(f"no_target goes with no {name}: leave one of them out.")

    def _require_key_alone(self, key: str) -> None:
        """Refuse what counts rows over all keys, or is not known of a learner per key."""
        others = {name: self.reading.get(name) for name in ("lag", "horizon", "drop", "numeric")}
        others |= {"drop": key in (self.reading.get("drop") or ()), "delay": self.delay}
        others |= {"numeric": key in (self.reading.get("numeric") or ()), "model": self.model}
        others |= {"class_weight": self.class_weight, "events": self.events, "fail_on": self.fail_on}
        if taken := [name for name, value in others.items() if value]:
            raise ConfigurationError(f"key {key!r} goes with no {taken[0].replace('_', '-')}: leave it out.")
        if key in (self.target, self.id):
            raise ConfigurationError(f"key {key!r} is the target, or the id, too: name another column.")

    def continued(self) -> tuple[Any, Mapping[str, Any]]:
        """The saved model to go on with, and the plan by which its rows were read."""
        assert self.model is not None
        plan = about(self.model).get("plan")
        if not isinstance(plan, dict):
            raise ConfigurationError(
                f"model {self.model} does not know which columns it learned from: give that of a kons run."
            )
        decided = [name for name in DECIDED if name in self.reading] + ["task"] * (self.task != "auto")
        if decided:
            raise ConfigurationError(f"model {self.model} has decided {decided[0]} already: leave it out.")
        learner = load(self.model)
        if as_learner(learner).encoder is None and not isinstance(learner, Keyed):
            raise ConfigurationError(f"model {self.model} has no encoder: expected that of a kons run.")
        return learner, plan

    def open(self, *, plan: Mapping[str, Any] | None = None, quiet: bool = False) -> Stream:
        """The stream; with the plan of an earlier run, read as it was then."""
        reading = dict(self.reading)
        if self.id is not None and plan is None:
            reading["drop"] = [*reading.get("drop", ()), self.id]
        if self.key is not None and plan is None:
            reading["categorical"] = [*reading.get("categorical", ()), self.key]
        if self.shuffle:
            reading["shuffle"] = self.seed
        if plan is None:
            target = () if self.no_target else self.target
            return open_stream(self.source, target, task=self.task, quiet=quiet, **reading)
        reading = {name: value for name, value in reading.items() if name not in DECIDED}
        if self.model is not None and plan.get("lags"):  # its rows came before
            reading["past"] = about(self.model).get("past")
        return open_stream(self.source, self.target, plan=plan, quiet=quiet, **reading)

    def found_from(self, there: Any) -> Settings:
        """A relative name is relative to the folder where the run was started, if it is still there."""
        if not isinstance(there, str):
            return self
        model = None if self.model is None else _found_from(there, self.model)
        return replace(self, source=_found_from(there, self.source), model=model)

    def blocks(self, stream: Stream, start: int = 0, learner: Any = None) -> Iterator[Block]:
        """Its blocks from row ``start`` on, up to the limit on rows, for a learner that has learned some.

        See :meth:`Stream.blocks`.
        """
        told = None if learner is None else as_learner(learner)
        encoder = None if told is None else told.encoder
        most = None if told is None else told.core.max_atoms
        if most is not None and most < UNLIMITED and (self.rows_of(stream) or 0) >= LONG:
            stream.block_size = LARGE_BLOCK
        if isinstance(learner, Keyed):
            return keyed_blocks(stream, str(learner.key), start, self.rows)
        classes = told.classes if told is not None and encoder is not None and told.labelled else ()
        return stream.blocks(start, late=self.delay, encoder=encoder, classes=classes, stop=self.rows)

    def rows_of(self, stream: Stream) -> int | None:
        """About how many rows the run will see, if that is known."""
        known = [count for count in (self.rows, stream.total_rows) if count is not None]
        return min(known, default=None) if stream.total_rows is not None or self.rows else None

    def part_read(self, stream: Stream, rows: int) -> float | None:
        """The part of the source that was read with these rows, if that is known."""
        if total := self.rows_of(stream):
            return min(1.0, rows / total)
        return stream.bytes_done / stream.bytes_total if stream.bytes_total else None

    def make_engine(
        self, stream: Stream, learner: Any, *, baselines: bool = True, pauses: bool = False
    ) -> Engine:
        """What evaluates a learner along the stream."""
        choices: dict[str, Any] = {
            "delay": stream.total_delay(self.delay),
            "window": self.window,
            "baselines": baselines,
            "positive": self.positive if stream.task == "classification" else None,
            "class_weight": self.class_weight,
            "pauses": pauses,
        }
        if self.no_target:
            choices |= {"baselines": False, "intervals": None}
        if len(stream.targets) > 1:
            return Several(learner, len(stream.targets), **choices)
        return Prequential(learner, stream.task, **choices)

    def require_memory(self, stream: Stream) -> None:
        """Refuse an exact learner on more rows than the machine can hold; say so if they are many."""
        rows = self.rows_of(stream)
        if not self.recipe.exact or rows is None:
            return
        needed, there = 4.0 * rows**2, memory_of_machine()
        if there is not None and needed > 0.8 * there:
            raise ConfigurationError(
                f"{self.learner!r} keeps rows^2/2 numbers, for about {rows:,} rows {needed / 1e9:,.0f} GB, "
                f"and there are {there / 1e9:,.0f} GB: use --learner embedded, or fewer rows (--rows "
                f"{int((0.4 * there / 4.0) ** 0.5):d})."
            )
        if needed > 1e9:
            announce(
                f"{self.learner!r} keeps rows^2/2 numbers: about {needed / 1e9:.1f} GB at the end, and every "
                "row costs more than the one before."
            )

    @property
    def recipe(self) -> Recipe:
        """The learner's entry in the registry."""
        require_learner(self.learner)
        return RECIPES[self.learner]

    @property
    def kind(self) -> str:
        """The learner's name, for people."""
        return "novelty" if self.no_target else self.learner

    def make_learner(self, stream: Stream) -> Any:
        """A fresh learner in the units of the stream."""
        takes = NOVELTY_TAKES if self.no_target else self.recipe.accepts
        known = [name for name in takes if name not in PLACED]
        for name in self.parameters:
            if name not in known:
                raise ConfigurationError(
                    f"{self.kind!r} takes no parameter {name!r}{_hint(name, known, 'It takes')}"
                )
        parameters = dict(self.parameters)
        if "warmup" in takes:
            parameters = {"warmup": warmup_for(self.rows_of(stream)), **parameters}
        if self.no_target:
            return novelty_learner(**parameters)
        if self.key is not None:
            parameters = {"effort": "tiny", **parameters} if "effort" in takes else parameters
        if "delay" in takes:  # it keeps targets back by itself
            parameters["delay"] = stream.total_delay(self.delay)
        kind: Any = stream.task
        try:
            learner = for_task(kind, self.learner, scale=self.scale, seed=self.seed, **parameters)
        except (TypeError, AttributeError, InputError) as error:  # a word where an object is expected
            raise ConfigurationError(
                f"{self.learner!r} cannot be made of {_listed(self.parameters)} ({error})."
            ) from None
        return learner if self.key is None else Keyed(learner, self.key, live=LIVE)

    def to_dict(self) -> dict[str, Any]:
        """What JSON can hold, without a level for ``reading``."""
        own = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "reading"}
        return {**own, **self.reading}

    @classmethod
    def from_dict(cls, values: Any) -> Settings:
        """The inverse of :meth:`to_dict`."""
        own = {field.name for field in fields(cls)} - {"reading"}
        if not isinstance(values, dict) or "source" not in values or values.keys() - own - set(READING):
            raise ConfigurationError("the settings in run.json are not those of a run: was it edited?")
        reading = {name: value for name, value in values.items() if name in READING}
        return cls(**{name: value for name, value in values.items() if name in own}, reading=reading)


def keyed_blocks(stream: Stream, key: str, start: int = 0, stop: int | None = None) -> Iterator[Block]:
    """Blocks of records as dicts: each key's learner has an encoder of its own."""
    for raw in stream.records(stop):
        rows, first = raw.records.dicts(), max(0, start - raw.first)
        for line, row in zip(raw.lines.tolist(), rows, strict=True):
            if row.get(key) is None:
                raise InputError(
                    f"{stream.reader.where(line)}: the key {key!r} has no value, expected one in every row."
                )
        if first < len(rows):
            records: Any = rows[first:]
            yield Block(raw.first + first, records, raw.y[first:], raw.lines[first:])


def require_learner(name: str, *, rivals: bool = False) -> None:
    """Refuse a name that is not in the registry, nor, where ``rivals`` are taken, one of them."""
    if name in RECIPES or (rivals and name in RIVALS):
        return
    if name in RIVALS:
        raise ConfigurationError(
            f"{name!r} is a model of another library, which is compared and not kept: use "
            f"kons compare FILE --learners auto,{name}."
        )
    known = [*RECIPES, *(RIVALS if rivals else ())]
    raise ConfigurationError(f"there is no learner {name!r}{_hint(name, known, 'There are')}")


def _found_from(there: str, here: str) -> str:
    first = os.path.join(there, here)
    same = os.path.exists(here) and (not os.path.exists(first) or os.path.samefile(here, first))
    return here if same else first


def memory_of_machine() -> int | None:
    """Bytes of memory, where the system tells."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _hint(name: str, known: Iterable[str], there_are: str) -> str:
    names = list(known)
    near = get_close_matches(name.casefold(), names, n=1)
    meant = f": did you mean {near[0]!r}?" if near else "."
    return f"{meant} {there_are} {', '.join(names)}."


def _listed(parameters: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in parameters.items())
