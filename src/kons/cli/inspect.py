"""``kons inspect``: what is in the file of a model."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from kons.cli.files import find_model, open_model
from kons.cli.screen import Sheet, print_json
from kons.errors import ConfigurationError
from kons.learners import Scaled
from kons.learners.protocol import as_learner
from kons.report.folder import as_number, as_text
from kons.streams import Plan

__all__ = ["show"]

MOST_SHOWN = 12  # features, or classes, in the table for people


def show(path: Path, *, json: bool) -> int:
    """Print what is known of a model."""
    document = _describe(path)
    if json:
        print_json(document)
        return 0
    sheet = Sheet()
    sheet.say()
    sheet.table("nt", [((name, "bold"), words) for name, words in _lines(document)])
    sheet.say()
    return 0


def _describe(path: Path) -> dict[str, Any]:
    """What JSON can hold of a model."""
    path = find_model(path)
    thing, told = open_model(path)
    learner, plan = as_learner(thing), dict[str, Any]()
    with suppress(ConfigurationError):  # of a model that is no run's, or that somebody has changed
        plan = Plan.from_dict(told["plan"]).to_dict() if "plan" in told else {}
    features = learner.feature_names
    relevances = learner.relevances if learner.rows_seen else None
    by_column = learner.column_relevances
    if relevances is not None and learner.encoder is not None and isinstance(by_column, dict):
        relevances = {str(name): float(value) for name, value in by_column.items()}
    elif relevances is not None:
        relevances = _by_name(features, np.atleast_2d(relevances)[0].tolist())  # several targets share them
    core = learner.core
    parameters = {"value": repr(core)} if core.lacks("parameters") else core.parameters()
    return {
        "file": str(path),
        "bytes": os.path.getsize(path),
        "what": told.get("what"),
        "format_version": told.get("version"),
        "written_by": told.get("written_by"),
        "learner": told.get("learner") and as_text(told["learner"]),
        "source": told.get("source") and as_text(told["source"]),
        "target": ", ".join([plan["target"], *(column["name"] for column in plan.get("more_targets", ()))])
        if plan.get("target")
        else None,
        "task": plan.get("task") or ("classification" if learner.labelled else None),
        "rows_learned": learner.rows_seen,
        "atoms": learner.size,
        "loss": as_number(told.get("loss")),
        "loss_name": told.get("loss_name") and as_text(told["loss_name"]),
        "parameters": {name: _plain(value) for name, value in parameters.items()},
        "warming_up": learner.warming_up,
        "scaling": _scaling(thing, features),
        "relevances": relevances,
        "experts": _named_by_target(learner.shares) or None,
        "classes": list(learner.classes) if learner.labelled else None,
        "features": features,
        "lags": [f"{name} {back} back" for name, back in plan.get("lags") or []],
        "horizon": plan.get("horizon"),
    }


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, (bool, int, float, str)) else repr(value)


def _by_name(features: list[str] | None, values: list[Any]) -> dict[str, Any]:
    return dict(zip(features or [f"x{i}" for i in range(len(values))], values, strict=True))


def _named_by_target(found: Any) -> Any:
    """Amounts by name; of several targets the list of them in one."""
    if not isinstance(found, list):
        return found
    return {f"y{k}: {name}": value for k, each in enumerate(found) for name, value in each.items()}


def _scaling(thing: Any, names: list[str] | None) -> dict[str, Any] | None:
    """What the warm-up found: of each feature its median and spread, of the target its centre and reach."""
    if not isinstance(thing, Scaled) or thing.warming_up:
        return None
    state = thing.state()
    features = state["features"]
    found: dict[str, Any] = {"warmup": thing.warmup}
    if not thing.labelled:
        found["target"] = dict(zip(("centre", "reach"), state["target"].tolist(), strict=True))
    if isinstance(features, dict):
        pairs = zip(features["medians"].tolist(), features["spreads"].tolist(), strict=True)
        found["features"] = _by_name(names, [{"median": m, "spread": spread} for m, spread in pairs])
    return found


def _lines(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(name, words) for people; what is not known is left out."""
    rows, scaling = found["rows_learned"], found["scaling"] or {}
    yield "file", f"{found['file']}, {found['bytes'] / 1e6:.2g} MB"
    yield "written by", f"{found['written_by']}, format {found['format_version']}"
    yield "what", _join(found["what"], found["learner"] and f"as --learner {found['learner']}")
    if found["target"]:
        yield "predicts", _join(repr(found["target"]), found["task"])
    if rows is not None:
        yield "learned from", _join(found["source"], f"{rows:,} rows")
    if found["loss"] is not None:
        yield "loss then", f"{found['loss_name']} {found['loss']:.4g}"
    if found["atoms"] is not None:
        yield "atoms", f"{found['atoms']:,}"
    if found["warming_up"]:
        yield "warm-up", "not over yet: it predicts the mean, or the most frequent label"
    if found["classes"] is not None:
        yield "classes", _some([str(label) for label in found["classes"]])
    if found["features"] is not None:
        yield f"{len(found['features']):,} features", _some(found["features"])
    if found["lags"]:
        yield "lags", _some(found["lags"])
    if found["horizon"]:
        yield "horizon", f"{found['horizon']:,} rows ahead"
    yield "parameters", ", ".join(f"{name}={value}" for name, value in found["parameters"].items())
    if "target" in scaling:
        each = ((name, np.ravel(value)) for name, value in scaling["target"].items())
        known = ", ".join(f"{name} {_some([f'{part:.6g}' for part in value], ' ')}" for name, value in each)
        yield "target", f"{known} (from the first {scaling['warmup']:,} rows)"
    if "features" in scaling:
        each = scaling["features"].items()
        yield "scales", _some([f"{name} {s['median']:.4g} +- {s['spread']:.3g}" for name, s in each])
    if found["relevances"] is not None:
        yield "relevance", _some(_ranked(found["relevances"], ".2g"))
    if found["experts"] is not None:
        yield "experts", _some(_ranked(found["experts"], ".2f"), "; ")


def _join(*parts: Any) -> str:
    return ", ".join(str(part) for part in parts if part)


def _ranked(amounts: dict[str, float], form: str) -> list[str]:
    """Names with their amounts, the largest first."""
    return [f"{name} {amounts[name]:{form}}" for name in sorted(amounts, key=lambda name: -amounts[name])]


def _some(names: list[str], between: str = ", ") -> str:
    more = f" and {len(names) - MOST_SHOWN:,} more (--json has all)" if len(names) > MOST_SHOWN else ""
    return between.join(names[:MOST_SHOWN]) + more
