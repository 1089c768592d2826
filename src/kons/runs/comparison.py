"""Several learners on the same rows, in one pass over the source."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from kons.compilation import wall_clock
from kons.errors import ConfigurationError
from kons.evaluation import Evaluation, Prequential
from kons.evaluation.result import LOSS_NAMES
from kons.evaluation.rivals import RIVALS, make_rival
from kons.recipes import RECIPES
from kons.runs.circumstances import blas_threads, versions
from kons.runs.folder import RUN, SUMMARY, FolderWriter
from kons.runs.run import Progress
from kons.runs.settings import Settings
from kons.runs.summary import about_run, finite, skipped
from kons.runs.waiting import Waiting
from kons.streams import Stream

__all__ = ["Comparison", "Contender", "compare"]


# Rows from which on the time that a learner will take is estimated: those of a warm-up are only kept.
FIRST_ESTIMATE = 1500


class Contender(NamedTuple):
    """A learner by its name in the registry, or a rival by that in ``RIVALS``, with parameters."""

    learner: str
    parameters: dict[str, Any]


class Comparison(NamedTuple):
    """What became of each learner, least loss first, and of the baselines."""

    settings: Settings
    stream: Stream
    contenders: dict[str, Contender]
    results: dict[str, Evaluation]
    baselines: dict[str, float]
    was_stopped: bool
    seconds: float
    left_out: dict[str, str]
    """Learners that would have taken too long, or refused to be made, and why."""

    @property
    def frontier(self) -> list[str]:
        """The learners that no other beats in both loss and time, fastest first."""
        best: list[str] = []
        for name in sorted(self.results, key=lambda name: self.results[name].microseconds_per_row):
            if self.results[name].loss < (self.results[best[-1]].loss if best else math.inf):
                best.append(name)
        return best

    def summary(self) -> dict[str, Any]:
        """What JSON can hold."""
        first = next(iter(self.results.values()))
        played = next((found for found in self.results.values() if found.baselines), first)
        document: dict[str, Any] = finite(
            {
                "rows": first.rows,
                "task": first.task,
                "target": self.stream.target,
                "loss_name": LOSS_NAMES[first.task],
                "baselines": self.baselines,
                "baselines_last_quarter": {name: played.last_quarter[name] for name in played.baselines},
                "baseline_metrics": played.baseline_metrics,
                "frontier": self.frontier,
                "learners": [
                    {
                        "name": name,
                        "learner": self.contenders[name].learner,
                        "parameters": self.contenders[name].parameters,
                        "loss": result.loss,
                        "last_quarter": result.last_quarter["loss"],
                        "metrics": result.metrics,
                        "coverage": result.coverage,
                        "atoms": None if self.contenders[name].learner in RIVALS else result.atoms,
                        "microseconds_per_row": result.microseconds_per_row,
                        "longest_pause": result.longest_pause,
                        "curve": {
                            "row": result.checkpoints.tolist(),
                            "loss": result.curves["running_loss"].tolist(),
                        },
                    }
                    for name, result in self.results.items()
                ],
                "seconds": self.seconds,
                **skipped(self.stream),
                "left_out": self.left_out,
                "notes": [*self.stream.notes, *self._told()],
                "settings": self._settings(),
                "versions": versions(),
                "stopped": self.was_stopped,
            }
        )
        return document

    def _told(self) -> list[str]:
        """Who was left out, a line for each reason."""
        reasons: dict[str, list[str]] = {}
        for name, why in self.left_out.items():
            reasons.setdefault(why, []).append(name)
        return [f"{', '.join(names)}: {why}" for why, names in reasons.items()]

    def _settings(self) -> dict[str, Any]:
        asked = self.settings.to_dict()
        return {name: value for name, value in asked.items() if name not in ("learner", "parameters")}

    def write(self, folder: Path, *, force: bool = False, command: Sequence[str] = ()) -> None:
        """``run.json`` and ``summary.json``, for a report."""
        document = about_run("compare", self.stream, self._settings(), command, blas_threads())
        writer = FolderWriter.create(folder, {RUN: document, SUMMARY: self.summary()}, force=force)
        writer.close(finished=True)


def compare(
    settings: Settings,
    contenders: Mapping[str, Contender],
    progress: Callable[[Progress], None] | None = None,
    stop: Callable[[], bool] | None = None,
    *,
    seconds: float | None = None,
    quiet: bool = False,
    waiting: Waiting | None = None,
) -> Comparison:
    """Run several learners, each under a name, over the source of ``settings``.

    With ``seconds``, a learner is left out as soon as it is seen that it would take longer than that, and one
    that cannot be made is left out at once; the one that costs least by its entry in the registry stays.

    Each row is read once, and predicted and learned by each learner. Costs what they cost one after another,
    less the reading. ``stop()`` is looked at after each block, and ends the comparison there; ``waiting``
    says when it waits for rows. Where one is a rival, all are asked row by row, and the longest step of each
    is told: in blocks there are no such steps.
    """
    if not contenders:
        raise ConfigurationError("no learners are given: expected at least one name.")
    rivals = [name for name, contender in contenders.items() if contender.learner in RIVALS]
    if rivals and settings.class_weight is not None:
        raise ConfigurationError(f"class_weight is not for models of other libraries, such as {rivals[0]!r}.")
    stream = settings.open(quiet=quiet)
    engines: dict[str, Prequential] = {}
    left_out: dict[str, str] = {}
    # The first plays the baselines, and stays.
    first = min(contenders, key=lambda name: _rank(contenders[name])) if seconds else next(iter(contenders))
    for name, contender in {first: contenders[first], **contenders}.items():
        if name in rivals:
            made: Any = make_rival(contender.learner, stream.task, seed=settings.seed, **contender.parameters)
        else:
            asked = replace(settings, **contender._asdict())
            try:
                asked.require_memory(stream)
                made = asked.make_learner(stream)
            except ConfigurationError as error:
                if seconds is None or name == first:
                    raise
                tasks = RECIPES[contender.learner].tasks
                left_out[name] = str(error) if stream.task in tasks else f"for {' and '.join(tasks)} only"
                continue
        # The baselines are the same for all.
        engines[name] = settings.make_engine(stream, made, baselines=not engines, pauses=bool(rivals))
    began = wall_clock()
    stopped, waiting = False, waiting or Waiting()
    for block in waiting.blocks(settings.blocks(stream), stop):
        for engine in engines.values():
            engine.advance(block)
        if seconds is not None:
            part = settings.part_read(stream, engines[first].rows)
            for name in [name for name in engines if name != first]:
                needed = _estimate(engines[name], contenders[name], part)
                if needed > seconds:
                    left_out[name] = f"left out, for it takes about {needed:,.0f} s, more than {seconds:g}"
                    del engines[name]
        if progress is not None:
            best = min(engines.values(), key=lambda engine: engine.loss)
            done = settings.part_read(stream, best.rows)
            progress(Progress.of(best, done, wall_clock() - began))
        if stop is not None and stop():
            stopped = True
            break
    for engine in engines.values():
        engine.finish()
    results = {name: engine.result() for name, engine in engines.items()}
    return Comparison(
        settings,
        stream,
        dict(contenders),
        dict(sorted(results.items(), key=lambda item: item[1].loss)),
        next(iter(results.values())).baselines,
        stopped or waiting.was_interrupted,
        wall_clock() - began,
        left_out,
    )


def _rank(contender: Contender) -> tuple[bool, int]:
    """Who costs less, as far as the registry tells."""
    recipe = RECIPES.get(contender.learner)
    return (True, 0) if recipe is None or recipe.in_raw_units else (False, recipe.growth)


def _estimate(engine: Prequential, contender: Contender, part: float | None) -> float:
    """CPU seconds at the end, where this part was read and what a row costs grows as the registry says."""
    recipe = RECIPES.get(contender.learner)
    if not part or engine.rows < FIRST_ESTIMATE:
        return engine.learner_seconds
    return engine.learner_seconds / float(part) ** (1 + (recipe.growth if recipe else 0))
