"""What the service tells of its model, for people and for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kons import __version__
from kons.serve.fold import Fold
from kons.serve.monitor import WINDOW

if TYPE_CHECKING:
    from kons.serve.folder import ServiceFolder
    from kons.serve.writer import Writer

__all__ = ["facts_of", "live_of"]

RECENT, EVENTS, RELEVANT = 200, 20, 12


def facts_of(fold: Fold, folder: ServiceFolder) -> dict[str, Any]:
    """What the model is, and what it has learned."""
    learner = fold.learner
    encoder = learner.encoder
    columns = {} if encoder is None else {str(name): column.kind for name, column in encoder.columns.items()}
    return {
        "learner": learner.core.name,
        "task": ("classification" if learner.labelled else "regression") if fold.decided else None,
        "target": folder.about["target"],
        "rows": learner.rows_seen or 0,
        "points": learner.size,
        "columns": columns,
        "classes": list(learner.classes) if learner.labelled else None,
        "pending": learner.queue.pending,
        "records": fold.number,
        "level": folder.settings.level,
        "kons": __version__,
        **({} if folder.settings.key is None else _of_keys(learner)),
    }


def _of_keys(learner: Any) -> dict[str, Any]:
    """How many there are, and those predicted worst."""
    worst = [one._asdict() | {"constant": _finite(one.constant)} for one in learner.worst()]
    return {"key": learner.key, "keys": len(learner), "awake": learner.awake, "worst": worst}


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def live_of(fold: Fold, *, writer: Writer) -> dict[str, Any]:
    """How it is doing: what the live page shows."""
    told = facts_of(fold, writer.folder) | {"state": writer.state, "window": WINDOW}
    relevances = fold.learner.column_relevances
    several = isinstance(relevances, list)
    shown = {} if relevances is None or several else {str(name): value for name, value in relevances.items()}
    largest = sorted(shown.items(), key=lambda item: -item[1])[:RELEVANT]
    return told | {
        "counts": counts_of(fold, writer),
        "losses": fold.monitor.losses(),
        "loss_name": "error rate" if fold.learner.labelled else "mean squared error",
        "coverage": fold.monitor.coverage,
        "relevances": {name: value for name, value in largest if np.isfinite(value)},
        "recent": fold.monitor.recent(RECENT),
        "events": [{"number": number, **event} for number, event in list(fold.events)[-EVENTS:]],
    }


def counts_of(fold: Fold, writer: Writer) -> dict[str, int]:
    """What came, and what became of it; the first five since the beginning, the others since the start."""
    queue = fold.learner.queue
    return {**fold.counts, "dropped": queue.dropped, "remembered": len(fold.ids), **writer.counts}
