"""``kons score``: how good a saved model is on rows that it has not learned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kons.cli.predict import Predicting
from kons.cli.screen import Sheet, notices, print_json
from kons.errors import ConfigurationError, InputError, announce
from kons.report.folder import RunFolder
from kons.report.numbers import number, percent, plural
from kons.report.words import meaning

__all__ = ["show"]


def show(
    model: Path,
    source: str,
    *,
    recent: bool,
    positive: str | None,
    reading: dict[str, Any],
    json: bool,
    quiet: bool,
) -> int:
    """Print the figures; returns the exit code."""
    with notices(quiet=quiet):
        predicting = Predicting(model, source, reading, recent=recent, positive=positive)
        stream = predicting.stream
        if predicting.judges:
            raise ConfigurationError(f"{model} was learned without a target: there is nothing to score.")
        if not stream.has_target:
            raise InputError(
                f"the target {stream.target!r} is needed to score, and {stream.source} has no such column."
            )
        for _ in predicting:
            pass
        if predicting.unread:
            announce(predicting.unread)
        about = predicting.figures.positive
        if positive is not None and str(about) != positive:
            found = "" if about is None else f"; the figures are about {str(about)!r}"
            announce(f"--positive {positive}: no such label{found}.")
    document = predicting.document
    if not document["rows"]:
        raise InputError(f"{stream.source} has no row with a target {stream.target!r}: nothing to score.")
    if json:
        print_json(document)
        return 0
    sheet = Sheet()
    left = f", {plural(document['skipped'], 'row')} left out" if document["skipped"] else ""
    told = f"{document['task']}, {plural(document['rows'], 'row')}{left}"
    sheet.title(f"{stream.source}, scoring {stream.target!r}", told)
    known = RunFolder(Path(), {}, document)
    name = "error_rate" if document["task"] == "classification" else "mse"
    if "targets" in document:
        parts = ("rmse", "mae", "r2")
        lines = [
            [one["target"], *(number(one["metrics"][key]) for key in parts), number(one["constant"] ** 0.5)]
            for one in document["targets"]
        ]
        sheet.table("nvvvv", lines, ("target", *parts, "rmse of best constant"), indent=2)
        sheet.say()
        return 0
    rows = [
        (key.replace("_", " "), _shown(key, value), meaning(known, key))
        for key, value in document["metrics"].items()
    ]
    rows.append(("best constant", _shown(name, document["constant"]), f"{document['loss_name']} of it"))
    sheet.table("nvd", rows, indent=2)
    sheet.say()
    return 0


def _shown(name: str, value: float) -> str:
    return percent(value, exact=True) if name == "error_rate" else number(value)
