"""``kons inspect``: what is in the file of a model."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kons.cli.files import find_model, open_model
from kons.cli.screen import Sheet, print_json
from kons.learners import Scaled
from kons.learners.protocol import as_learner

__all__ = ["describe", "show"]

MOST_SHOWN = 12  # features, or classes, in the table for people


def show(path: Path, *, json: bool) -> int:
    """Print what is known of a model."""
    document = describe(path)
    if json:
        print_json(document)
        return 0
    sheet = Sheet()
    sheet.say()
    sheet.table("nt", [((name, "bold"), words) for name, words in _lines(document)])
    sheet.say()
    return 0


def describe(path: Path) -> dict[str, Any]:
    """What JSON can hold of a model."""
    thing, told = open_model(path)
    learner = as_learner(thing)
    core = learner.core
    document: dict[str, Any] = {
        "file": str(find_model(path)),
        "bytes": os.path.getsize(find_model(path)),
        "what": told.get("what"),
        "format_version": told.get("version"),
        "written_by": told.get("written_by"),
        "learner": told.get("learner"),
        "source": told.get("source"),
        "target": _of_plan(told, "target"),
        "task": _of_plan(told, "task") or ("classification" if learner.labelled else None),
        "rows_learned": learner.rows_seen,
        "atoms": learner.size,
        "loss": told.get("loss"),
        "loss_name": told.get("loss_name"),
        "parameters": {name: _plain(value) for name, value in _parameters(core).items()},
        "warming_up": learner.warming_up,
        "scaling": _scaling(thing, told),
        "relevances": _relevances(learner, told),
        "experts": learner.shares or None,
        "classes": list(learner.classes) if learner.labelled else None,
        "features": _features(told),
        "lags": [f"{name} {back} back" for name, back in _of_plan(told, "lags") or []],
        "horizon": _of_plan(told, "horizon"),
    }
    return document


def _parameters(core: Any) -> dict[str, Any]:
    return {"value": repr(core)} if core.lacks("parameters") else core.parameters()


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, (bool, int, float, str)) else repr(value)


def _of_plan(told: dict[str, Any], name: str) -> Any:
    plan = told.get("plan")
    return plan.get(name) if isinstance(plan, dict) else None


def _features(told: dict[str, Any]) -> list[str] | None:
    from kons.streams import Plan

    plan = told.get("plan")
    return list(Plan.from_dict(plan).features) if isinstance(plan, dict) else None


def _scaling(thing: Any, told: dict[str, Any]) -> dict[str, Any] | None:
    """What the warm-up found: of each feature its median and spread, of the target its centre and reach."""
    if not isinstance(thing, Scaled) or thing.warming_up:
        return None
    state = thing.state()
    features = state["features"]
    found: dict[str, Any] = {"warmup": thing.warmup}
    if not thing.labelled:
        found["target"] = dict(zip(("centre", "reach"), state["target"].tolist(), strict=True))
    if isinstance(features, dict):
        medians, spreads = features["medians"].tolist(), features["spreads"].tolist()
        names = _features(told) or [f"x{i}" for i in range(len(medians))]
        found["features"] = {
            name: {"median": median, "spread": spread}
            for name, median, spread in zip(names, medians, spreads, strict=True)
        }
    return found


def _relevances(learner: Any, told: dict[str, Any]) -> dict[str, float] | None:
    """How much each feature counts, by name, where the learner finds that out."""
    values = learner.relevances if learner.rows_seen else None
    if values is None:
        return None
    names = _features(told) or [f"x{i}" for i in range(len(values))]
    return dict(zip(names, values.tolist(), strict=True))


def _lines(document: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(name, words) for people; what is not known is left out."""
    yield "file", f"{document['file']}, {document['bytes'] / 1e6:.2g} MB"
    yield "written by", f"{document['written_by']}, format {document['format_version']}"
    yield "what", _join(document["what"], document["learner"] and f"as --learner {document['learner']}")
    if document["target"]:
        yield "predicts", _join(f"{document['target']!r}", document["task"])
        yield "learned from", _join(document["source"], f"{document['rows_learned']:,} rows")
        loss = document["loss"]
        yield "loss then", f"{document['loss_name']} {loss:.4g}" if loss is not None else "not known"
    elif document["rows_learned"] is not None:
        yield "learned from", f"{document['rows_learned']:,} rows"
    if document["atoms"] is not None:
        yield "atoms", f"{document['atoms']:,}"
    if document["warming_up"]:
        yield "warm-up", "not over yet: it predicts the mean, or the most frequent label"
    if document["classes"] is not None:
        yield "classes", _some([str(label) for label in document["classes"]])
    if document["features"] is not None:
        yield f"{len(document['features']):,} columns", _some(document["features"])
    if document["lags"]:
        yield "lags", _some(document["lags"])
    if document["horizon"]:
        yield "horizon", f"{document['horizon']:,} rows ahead"
    yield "parameters", ", ".join(f"{name}={value}" for name, value in document["parameters"].items())
    yield from _scales(document["scaling"])
    if document["relevances"] is not None:
        yield "relevance", _some(_ranked(document["relevances"], ".2g"))
    if document["experts"] is not None:
        yield "experts", _some(_ranked(document["experts"], ".2f"), "; ")


def _scales(scaling: dict[str, Any] | None) -> Iterator[tuple[str, str]]:
    if scaling is None:
        return
    if "target" in scaling:
        known = ", ".join(f"{name} {value:.6g}" for name, value in scaling["target"].items())
        yield "target", f"{known} (from the first {scaling['warmup']:,} rows)"
    if "features" in scaling:
        each = [
            f"{name} {scale['median']:.4g} +- {scale['spread']:.3g}"
            for name, scale in scaling["features"].items()
        ]
        yield "scales", _some(each)


def _join(*parts: Any) -> str:
    return ", ".join(str(part) for part in parts if part)


def _ranked(amounts: dict[str, float], form: str) -> list[str]:
    """Names with their amounts, the largest first."""
    return [f"{name} {amounts[name]:{form}}" for name in sorted(amounts, key=lambda name: -amounts[name])]


def _some(names: list[str], between: str = ", ") -> str:
    more = f" and {len(names) - MOST_SHOWN:,} more (--json has all)" if len(names) > MOST_SHOWN else ""
    return between.join(names[:MOST_SHOWN]) + more
