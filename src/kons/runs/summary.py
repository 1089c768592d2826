"""What a run says of itself: run.json when it begins, summary.json, one flat object, when it is finished."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kons.evaluation.result import Evaluation
from kons.keyed import Keyed
from kons.learners.protocol import as_learner
from kons.recipes.algorithms import UNLIMITED
from kons.runs.circumstances import versions

if TYPE_CHECKING:
    from kons.runs.run import Run
from kons.streams import Stream
from kons.streams.wording import listed

__all__ = ["about_run", "complaints", "finite", "shares_of", "skipped", "summarize", "without_target"]

# Keys that are named.
WORST = 20
# What a run says that has no target.
WITHOUT_TARGET = (
    *("rows", "learner", "atoms", "max_atoms", "effective_dimension", "log_determinant", "seconds"),
    *("learner_seconds", "microseconds_per_row", "rows_skipped", "skipped", "notes", "columns", "features"),
    *("gaps", "bad_cells", "events", "settings", "versions", "resumed", "stopped"),
)
# Rows that are left out by design: nothing is wrong with them.
EXPECTED = ("no past", "no target yet")


def about_run(
    kind: str, stream: Stream, settings: dict[str, Any], command: Sequence[str], threads: int
) -> dict[str, Any]:
    """run.json: what was asked, of which source, with which versions."""
    return {
        "format": 1,
        "kind": kind,
        "command": list(command),
        "settings": settings,
        "source": {"name": stream.source, "fingerprint": stream.fingerprint()},
        "columns": list(stream.columns),
        "features": list(stream.features),
        "target": stream.target,
        "versions": versions(),
        "threads": threads,
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "started_in": os.getcwd(),
    }


def summarize(run: Run) -> dict[str, Any]:
    """The figures of a run, in units of the target; what is not defined is null."""
    result, learner = run.engine.result(), as_learner(run.engine.learner)
    shares = shares_of(learner)
    experts = [{"name": name, "share": share} for name, share in shares.items()] if shares else None
    # Experts have a dictionary each: what limits one of them does not limit all their points.
    most = learner.core.max_atoms
    if learner.expert_names or (most is not None and most >= UNLIMITED):
        most = None
    online: dict[str, Any] = {"loss": result.loss, "metrics": result.metrics}
    away: dict[str, Any] | None = None
    if result.away is not None:
        loss = result.away["mse" if result.task == "regression" else "error_rate"]
        away = {"loss": loss, "metrics": result.away, "rows": result.away_rows}
    headline = away if result.order is not None and away is not None else online
    document = {
        "rows": result.rows,
        "learner": run.settings.kind,
        "task": result.task,
        "target": run.stream.target,
        "targets": _targets(run.stream.targets, result),
        # Where rows are sorted by their target, figures along them are about the order.
        "headline": "online" if headline is online else "without last targets",
        "loss": headline["loss"],
        "loss_name": result.loss_name,
        "metrics": headline["metrics"],
        "online": online,
        "without_last_targets": away,
        "baselines": result.baselines,
        "baseline_metrics": result.baseline_metrics,
        "scored": max(result.rows - result.delay - 1, 0),
        "order": result.order,
        "positive": result.positive,
        "constant_target": run.engine.target_order.constant,
        "few_values": run.engine.target_order.few_values,
        "coverage": result.coverage,
        "interval_level": result.level,
        "window": result.window,
        "windowed": {name: float(values[-1]) for name, values in result.windowed.items()},
        "delay": result.delay,
        "atoms": result.atoms,
        "max_atoms": most,
        "effective_dimension": learner.online_effective_dimension,
        "log_determinant": learner.log_determinant,
        "targets_clipped": learner.targets_clipped,
        "seconds": run.seconds,
        "learner_seconds": result.learner_seconds,
        "microseconds_per_row": result.microseconds_per_row,
        **skipped(run.stream),
        "notes": [*run.stream.notes, *result.notes, *run.changed_notes, *complaints(run.stream)],
        "columns": list(run.stream.columns),
        "features": list(run.stream.features),
        "relevances": _relevances(learner, run.stream.features),
        "gaps": run.stream.gaps,
        "bad_cells": _bad_cells(run.stream, result.rows),
        "events": [event.as_dict() for event in run.events],
        "experts": experts,
        "settings": run.settings.to_dict(),
        "keys": _keys(run.engine.learner),
        "versions": versions(),
        "classes": run.classes,
        "resumed": run.resumed,
        "stopped": run.was_stopped,
        "certificate": None,
    }
    plain: dict[str, Any] = finite(document)
    return plain


def without_target(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Of the figures those that are not about predictions."""
    return {name: summary[name] for name in WITHOUT_TARGET}


def _targets(names: Sequence[str], result: Evaluation) -> list[dict[str, Any]] | None:
    """The figures of each of several targets, in its own units."""
    if result.targets is None:
        return None
    return [
        {
            "name": name,
            "loss": one.loss,
            "metrics": one.metrics,
            "baselines": one.baselines,
            "windowed": {key: float(values[-1]) for key, values in one.windowed.items()},
            "coverage": one.coverage,
        }
        for name, one in zip(names, result.targets, strict=True)
    ]


def _keys(learner: Any) -> dict[str, Any] | None:
    """Of a learner per key: how many there are, and those that are predicted worst first."""
    if not isinstance(learner, Keyed):
        return None
    return {
        "column": learner.key,
        "count": len(learner),
        "worst": [k._asdict() for k in learner.worst(WORST)],
    }


def skipped(stream: Stream) -> dict[str, Any]:
    """How many rows could not be used, and all that were left out by reason."""
    counts = stream.skipped
    bad = sum(count for reason, count in counts.items() if reason not in EXPECTED)
    return {"rows_skipped": bad, "skipped": counts}


def shares_of(learner: Any) -> dict[str, float]:
    """The weight of each expert by name, in the order of their numbers; 0 of those that are not at work."""
    told = as_learner(learner)
    shares = told.shares
    if not isinstance(shares, Mapping):  # of several targets, each by itself
        return {}
    return {name: float(shares.get(name, 0.0)) for name in told.expert_names}


def complaints(stream: Stream) -> list[str]:
    """The first row left out for each reason, odd text, and gaps."""
    found = [f"skipped, {reason}: {text}" for reason, text in stream.first_skipped.items() if text]
    if stream.odd_text and stream.odd_text not in stream.notes:
        found.append(stream.odd_text)
    if stream.gaps:
        found.append(f"gaps filled: {listed([f'{name} {n:,}' for name, n in stream.gaps.items()])}")
    return found


def _bad_cells(stream: Stream, rows: int) -> list[dict[str, Any]]:
    """Cells that are not what their column holds, and were taken for gaps."""
    return [
        {
            "column": name,
            "count": bad.number,
            "share": bad.number / max(rows, 1),
            "examples": [f"line {line}: {text}" for line, text in bad.examples],
        }
        for name, bad in stream.bad_cells.items()
    ]


def _relevances(learner: Any, features: tuple[str, ...]) -> dict[str, float] | None:
    """By column, its features together; by feature, where columns have no names."""
    if learner.encoder is not None and learner.relevances is not None:
        each = learner.column_relevances
        each = [each] if isinstance(each, dict) else each  # one of each target: the largest counts
        return {str(name): max(float(one[name]) for one in each) for name in each[0]}
    values = learner.relevances
    if values is None:
        return None
    values = np.max(np.atleast_2d(values), axis=0)
    return dict(zip(features, map(float, values), strict=True))


def finite(value: Any) -> Any:
    """A tree that JSON can hold: NaN and infinity become null, labels text."""
    if isinstance(value, dict):
        return {str(key): finite(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(inner) for inner in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (bool, int, str)):
        return value
    return str(value)
