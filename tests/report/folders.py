"""Run folders as `kons run --out` and `kons compare --out` leave them, made from seeded numbers."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

VERSIONS = {"kons": "0.4.0", "python": "3.12.1", "numpy": "2.1.0", "scipy": "1.14.0", "numba": "0.61.0"}


def write_documents(folder: Path, run: dict[str, Any], summary: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.json").write_text(json.dumps(run), encoding="utf-8")
    (folder / "summary.json").write_text(json.dumps(summary), encoding="utf-8")


def write_trace(folder: Path, columns: dict[str, np.ndarray], cuts: list[int]) -> None:
    """One file per stretch between the cuts; shares, if any, at every 64th row."""
    (folder / "trace").mkdir(parents=True, exist_ok=True)
    columns = dict(columns)
    shares = columns.pop("shares", None)
    rows = len(columns["loss"])
    edges = [0, *cuts, rows]
    for i, (start, stop) in enumerate(pairwise(edges)):
        part = {name: values[start:stop] for name, values in columns.items()}
        if shares is not None:
            at = np.arange(-(-start // 64) * 64, stop, 64)
            part["share_rows"], part["shares"] = at, shares[at]
        np.savez(folder / "trace" / f"{i:06d}.npz", first=start, **part)


def run_document(target: str, features: list[str], source: str, **settings: Any) -> dict[str, Any]:
    return {
        "format": 1,
        "kind": "run",
        "command": [
            "kons",
            "run",
            f"data/{source}",
            "--target",
            target,
            "--seed",
            "7",
            "--out",
            "runs/first",
        ],
        "settings": {
            "source": f"data/{source}",
            "learner": "embedded",
            "parameters": {"max_atoms": 200, "second_order": "hessian", "forgetting": 1.0},
            "task": "regression",
            "scale": "auto",
            "seed": 7,
            "delay": 0,
            "window": 1000,
            "lag": None,
            "horizon": 0,
            **settings,
        },
        "source": {
            "name": source,
            "fingerprint": {"size": 1_234_567, "mtime": 1_700_000_000, "digest": "9f2c1a"},
            "rows_estimate": 12_000,
        },
        "features": features,
        "target": target,
        "versions": VERSIONS,
        "threads": 2,
        "started": "2026-01-05T10:12:00+00:00",
    }


def regression(
    folder: Path,
    rows: int = 12_000,
    *,
    target: str = "price",
    features: list[str] | None = None,
    experts: list[str] | None = None,
    scale: float = 10.0,
    worse: bool = False,
    source: str = "houses.csv",
) -> dict[str, np.ndarray]:
    """A drifting stream: at two thirds of the rows the function changes, and a new region opens."""
    rng = np.random.default_rng(3)
    features = features or ["area", "rooms", "distance", "year", "income", "noise"]
    t = np.arange(rows)
    drift = t >= 2 * rows // 3
    target_values = 100 + scale * (
        np.sin(t / 19) + 0.6 * np.sin(t / 7.3) + 0.8 * drift + 0.15 * rng.normal(size=rows)
    )
    settling = (
        0.25 + 1.6 * np.exp(-t / (0.03 * rows)) + 1.8 * drift * np.exp(-(t - 2 * rows // 3) / (0.03 * rows))
    )
    error = settling * rng.normal(size=rows) * scale * (1.8 if worse else 0.45)
    prediction = target_values + error
    if rows > 100:
        prediction[rows // 4] += 9 * scale  # one row far out: no thinning may hide it
    half = 1.645 * scale * (1.8 if worse else 0.45) * np.where(drift, 0.6 + 0.4 * settling, settling)
    lower, upper = prediction - half, prediction + half
    lower[: min(20, rows)] = upper[: min(20, rows)] = np.nan
    novelty = np.minimum(
        1.0, 0.004 * rng.gamma(1.2, size=rows) + 1.5 * np.exp(-t / (0.02 * rows)) * rng.uniform(size=rows)
    )
    novelty += drift * np.exp(-(t - 2 * rows // 3) / (0.008 * rows)) * 0.5 * rng.uniform(size=rows)
    weight, inverse = np.full(rows, 2.0), novelty / 3
    means = np.cumsum(target_values) / (t + 1)
    previous = np.append(0.0, target_values[:-1])
    columns = {
        "target": target_values,
        "prediction": prediction,
        "lower": lower,
        "upper": upper,
        "loss": (prediction - target_values) ** 2,
        "baseline_constant": (np.append(0.0, means[:-1]) - target_values) ** 2,
        "baseline_linear": (target_values - 100 - 0.35 * scale * rng.normal(size=rows) - 0.3 * drift * scale)
        ** 2
        * 0.4
        + 2,
        "baseline_persistence": (previous - target_values) ** 2 + 3,
        "leverage": weight * inverse / (1 + weight * inverse),
        "novelty": novelty,
        "size": np.minimum(200, np.cumsum(novelty > 0.05)),
        "weight": weight,
        "inverse_form": inverse,
        "slope": 2 * (prediction - target_values),
    }
    if experts:
        strength = np.stack(
            [1.5 * np.sin(t / rows * 5 + 1.7 * i) - 0.2 * i for i in range(len(experts))], axis=1
        )
        columns["shares"] = np.exp(strength) / np.exp(strength).sum(axis=1, keepdims=True)
        columns["expert"] = columns["shares"].argmax(axis=1)
    loss = float(np.mean(columns["loss"]))
    known = np.isfinite(lower)
    covered = (
        float(np.mean((lower <= target_values)[known] & (target_values <= upper)[known]))
        if known.any()
        else None
    )
    summary = {
        "rows": rows,
        "learner": "auto" if experts else "embedded",
        "task": "regression",
        "loss": loss,
        "loss_name": "mean squared error",
        "metrics": {
            "mse": loss,
            "rmse": loss**0.5,
            "mae": float(np.mean(np.abs(prediction - target_values))),
            "r2": 1 - loss / max(float(np.var(target_values)), 1e-9),
        },
        "baselines": {
            name: float(np.mean(columns[f"baseline_{name}"]))
            for name in ("constant", "linear", "persistence")
        },
        "coverage": covered,
        "interval_level": 0.9,
        "atoms": int(columns["size"][-1]),
        "max_atoms": 200,
        "effective_dimension": float(np.sum(columns["leverage"])),
        "log_determinant": float(np.sum(np.log1p(weight * inverse))),
        "targets_clipped": 3,
        "seconds": 0.61,
        "learner_seconds": 0.25,
        "microseconds_per_row": 21.3,
        "rows_skipped": 2,
        "notes": ["column 'date' became hour, weekday and day of year as sine and cosine"],
        "target_unit_range": [float(target_values.min()), float(target_values.max())],
        "features": features,
        "relevances": {name: 0.8**i * 3.1 for i, name in enumerate(features)} if experts else None,
        "experts": [
            {"name": name, "share": float(columns["shares"][-1, i])} for i, name in enumerate(experts)
        ]
        if experts
        else None,
        "settings": {},
        "versions": VERSIONS,
        "classes": None,
        "resumed": 1,
        "certificate": None,
    }
    run = run_document(target, features, source, **({"learner": "auto", "parameters": {}} if experts else {}))
    write_documents(folder, run, summary)
    write_trace(folder, columns, [cut for cut in (rows // 5, rows // 2) if 0 < cut < rows])
    return columns


def classification(
    folder: Path, rows: int = 6_000, *, classes: list[Any] | None = None, target: str = "direction"
) -> dict[str, np.ndarray]:
    classes = ["DOWN", "UP"] if classes is None else classes
    rng = np.random.default_rng(5)
    t = np.arange(rows)
    actual = (
        ((np.sin(t / 40) + 0.4 * rng.normal(size=rows) + 1) / 2 * len(classes))
        .clip(0, len(classes) - 1)
        .astype(int)
    )
    wrong = rng.uniform(size=rows) < 0.06 + 0.3 * np.exp(-t / 300)
    predicted = np.where(wrong, (actual + 1) % len(classes), actual)
    previous = np.append(0, actual[:-1])
    columns = {
        "target": actual,
        "prediction": predicted,
        "lower": np.full(rows, np.nan),
        "upper": np.full(rows, np.nan),
        "loss": (actual != predicted).astype(float),
        "baseline_constant": (actual != 1 % len(classes)).astype(float),
        "baseline_linear": (rng.uniform(size=rows) < 0.2).astype(float),
        "baseline_persistence": (previous != actual).astype(float),
        "novelty": rng.gamma(1.5, size=rows) * (0.02 + np.exp(-t / 200)),
        "size": np.minimum(100, 1 + t // 12),
        "leverage": 1.0 / (20 + t),
        "weight": np.full(rows, 0.25),
        "inverse_form": 4.0 / (20 + t),
    }
    summary = {
        "rows": rows,
        "learner": "embedded",
        "task": "classification",
        "loss": float(np.mean(columns["loss"])),
        "loss_name": "error rate",
        "metrics": {
            "error_rate": float(np.mean(columns["loss"])),
            "log_loss": 0.231,
            "auc": 0.962,
            "f1": 0.921,
        },
        "baselines": {
            name: float(np.mean(columns[f"baseline_{name}"]))
            for name in ("constant", "linear", "persistence")
        },
        "coverage": None,
        "interval_level": None,
        "atoms": 100,
        "max_atoms": 100,
        "effective_dimension": 5.7,
        "log_determinant": 5.8,
        "seconds": 0.4,
        "microseconds_per_row": 32.0,
        "rows_skipped": 0,
        "notes": [],
        "relevances": None,
        "experts": None,
        "classes": classes,
        "resumed": 0,
        "certificate": None,
    }
    run = run_document(target, ["a", "b"], "electricity.csv.gz", task="classification")
    write_documents(folder, run, summary)
    write_trace(folder, columns, [rows // 3])
    return columns


def tiny(folder: Path) -> None:
    """Three rows: nothing to average, nothing to draw a window of."""
    columns = {
        "target": np.array([1.0, 2.0, 3.0]),
        "prediction": np.array([0.0, 1.0, 2.5]),
        "lower": np.full(3, np.nan),
        "upper": np.full(3, np.nan),
        "loss": np.array([1.0, 1.0, 0.25]),
        "baseline_constant": np.array([1.0, 1.0, 2.25]),
        "baseline_linear": np.array([1.0, 1.0, 1.0]),
        "baseline_persistence": np.array([1.0, 1.0, 1.0]),
        "size": np.array([1, 2, 3]),
        "novelty": np.array([np.nan, np.nan, np.nan]),
    }
    summary = {
        "rows": 3,
        "learner": "embedded",
        "task": "regression",
        "loss": 0.75,
        "loss_name": "mean squared error",
        "metrics": {"mse": 0.75},
        "baselines": {"constant": 17 / 12, "linear": 1.0, "persistence": 1.0},
        "atoms": 3,
        "microseconds_per_row": 400.0,
    }
    write_documents(folder, run_document("y", ["x"], "tiny.csv"), summary)
    write_trace(folder, columns, [])


def bare(folder: Path, rows: int = 200) -> None:
    """Only what a run must write: no baselines, intervals, dictionary, versions or command."""
    rng = np.random.default_rng(0)
    columns = {"target": rng.normal(size=rows), "prediction": rng.normal(size=rows)}
    columns["loss"] = (columns["target"] - columns["prediction"]) ** 2
    write_documents(folder, {"format": 1, "kind": "run", "target": "y"}, {"rows": rows, "loss": 2.0})
    write_trace(folder, columns, [])


def comparison(folder: Path, *, target: str = "price", names: list[str] | None = None) -> dict[str, Any]:
    names = names or ["embedded", "sketched", "pros_n_kons", "nons_ald", "auto"]
    losses = [12.3, 19.5, 16.0, 15.8, 9.1, 30.0, 31.0, 32.0, 33.0, 34.0][: len(names)]
    costs = [21.0, 160.0, 55.0, 30.0, 240.0, 10.0, 500.0, 600.0, 700.0, 800.0][: len(names)]
    rows = np.arange(100, 12_001, 100)
    learners = [
        {
            "name": name,
            "loss": loss,
            "metrics": {"mse": loss},
            "atoms": 100 + 10 * i,
            "microseconds_per_row": cost,
            "curve": {"row": rows.tolist(), "loss": (loss * (1 + 8 * np.exp(-rows / 900))).tolist()},
        }
        for i, (name, loss, cost) in enumerate(zip(names, losses, costs, strict=True))
    ]
    run = {**run_document(target, ["area", "rooms"], "houses.csv"), "kind": "compare"}
    run["command"] = ["kons", "compare", "data/houses.csv", "--target", target, "--learners", ",".join(names)]
    summary = {
        "rows": 12_000,
        "task": "regression",
        "loss_name": "mean squared error",
        "baselines": {"constant": 88.0, "linear": 20.9, "persistence": 35.0},
        "frontier": ["embedded", "auto"],
        "learners": learners,
    }
    write_documents(folder, run, summary)
    return summary
