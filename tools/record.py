"""What a checkout does, to hold another one against it: ``python -m tools.record``.

::

    python -m tools.record write before.npz --source CHECKOUT [--data FOLDER]
    python -m tools.record compare before.npz after.npz

Records are of one machine: sums in another order round differently. So both states of the sources are
recorded on it, in the same hour, each in a process of its own that knows only its own ``src``.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["main"]

ROWS = 1500
SEEDS = range(5)
LARGEST_SET = 20_000
IN_TIME_ORDER = {"bike_hourly", "electricity", "weather_noaa", "chessboard", "classes_move"}
#: Of a column's range: what the paper's learners may differ by.
SAME = 1e-9
COLUMNS = ("prediction", "leverage", "inverse_form", "weight", "slope", "novelty")
DECISIONS = ("kept", "size")


# ---- what is recorded


def streams() -> Iterator[tuple[str, Any, Any]]:
    """Six that are generated, targets within [-1, 1]."""
    from kons import streams as made

    yield "mackey_glass", *made.mackey_glass(ROWS, seed=1)
    yield "logistic_map", *made.logistic_map(ROWS, seed=2)
    yield "friedman", *made.friedman(ROWS, dimension=6, noise=0.1, seed=3)
    yield "drifting", *made.drifting(ROWS, seed=4)
    yield "switching", *made.switching(ROWS, seed=5)
    yield "alternating_labels", *made.alternating_labels(ROWS)


def traces() -> Iterator[tuple[str, Any]]:
    """Of every learner on every stream: numbers and labels, in blocks."""
    from kons import Gaussian, Logistic, Squared
    from kons.recipes import RECIPES, for_task, make

    exact = {"kons", "ridge", "sketched"}
    for stream, X, y in streams():
        for name, recipe in RECIPES.items():
            rows = slice(0, 600 if name in exact else ROWS)
            labels = np.where(y[rows] > np.median(y), 1.0, -1.0)
            if not recipe.in_raw_units:
                yield f"{stream}/{name}", make(name, Gaussian(), Squared()).advance(X[rows], y[rows])
                if name not in ("pkawv", "ridge"):
                    learner = make(name, Gaussian(), Logistic())
                    yield f"{stream}/{name}, logistic", learner.advance(X[rows], labels)
            for task, targets in (("regression", y[rows]), ("classification", labels)):
                if name not in exact and (task == "regression" or name != "pkawv"):
                    model: Any = for_task(task, name)  # type: ignore[arg-type]
                    yield f"{stream}/{name}, {task}", model.advance(X[rows], targets)


def columns_of(name: str, trace: Any) -> Iterator[tuple[str, np.ndarray]]:
    """The numbers of a trace, flat."""
    for column in (*COLUMNS, *DECISIONS, "scores"):
        values = getattr(trace, column, None)
        if values is None:
            continue
        numbers = np.asarray([np.nan if v is None else v for v in np.asarray(values).ravel()], dtype=float)
        yield f"{name}/{column}", numbers


def losses(folder: Path) -> Iterator[tuple[str, float]]:
    """Of AutoKONS with its defaults on every set of a folder: one number a seed."""
    from kons import AutoKONS

    for file in sorted(folder.glob("*.csv.gz")):
        name = file.name.partition(".")[0]
        with gzip.open(file, "rt") as lines:
            header = next(lines).strip().split(",")
            if header[-1] != "target":
                continue
            table = np.loadtxt(lines, delimiter=",")
        if name not in IN_TIME_ORDER:
            table = table[np.random.default_rng(0).permutation(len(table))]
        X, y = np.ascontiguousarray(table[:LARGEST_SET, :-1]), table[:LARGEST_SET, -1].copy()
        classes = len(np.unique(y)) <= 10
        for seed in SEEDS:
            model = AutoKONS("classification" if classes else "regression", seed=seed)
            prediction = np.asarray(model.advance(X, y).prediction)
            if classes:
                loss = float(np.mean([p != label for p, label in zip(prediction, y, strict=True)]))
            else:
                loss = float(np.mean((prediction - y) ** 2)) / float(np.ptp(y)) ** 2
            print(f"    {name}, seed {seed}: {loss:.5f}", file=sys.stderr, flush=True)
            yield f"{name}/{seed}", loss


def model_bytes() -> int:
    """Of AutoKONS with its defaults after 3,000 rows of ten columns."""
    from kons import AutoKONS
    from kons.files import to_bytes
    from kons.streams import friedman

    model = AutoKONS()
    model.advance(*friedman(3000, dimension=10, noise=0.1))
    return len(to_bytes(model))


def lines_of(source: Path) -> dict[str, int]:
    """Lines by package, of modules at the top by ``kons``."""
    found: dict[str, int] = {}
    for file in sorted(source.rglob("*.py")):
        parts = file.relative_to(source).parts
        package = "/".join(parts[:-1]) or "kons"
        found[package] = found.get(package, 0) + len(file.read_text(encoding="utf-8").splitlines())
    return found


def write(out: Path, source: Path, data: Path | None) -> None:
    """Record the sources that this very process imports."""
    arrays: dict[str, Any] = {}
    for name, trace in traces():
        print(f"    {name}", file=sys.stderr, flush=True)
        arrays.update(columns_of(name, trace))
    facts = {
        "bytes": model_bytes(),
        "lines": lines_of(source / "src" / "kons"),
        "losses": {} if data is None else dict(losses(data)),
    }
    np.savez_compressed(out, facts=np.array(json.dumps(facts)), **arrays)


# ---- what two records have in common


def compare(before: Path, after: Path) -> int:
    """Print what differs; 0 if all learners but AutoKONS are the same."""
    old, new = np.load(before), np.load(after)
    different = 0
    worst: dict[str, float] = {}
    for key in sorted(set(old.files) | set(new.files)):
        if key == "facts":
            continue
        learner = key.split("/")[1].partition(",")[0]
        gap = _gap(old.get(key), new.get(key), exactly=key.rpartition("/")[2] in DECISIONS)
        worst[learner] = max(worst.get(learner, 0.0), gap)
        if gap > SAME and learner != "auto":
            different += 1
            print(f"differs: {key}: {gap:.2g} of its range")
    print("\nlearner         largest difference, of a column's range")
    for learner, gap in sorted(worst.items()):
        print(f"{learner:<16}{gap:.1e}")
    facts = [json.loads(str(record["facts"])) for record in (old, new)]
    _print_facts(*facts)
    return 1 if different else 0


def _gap(old: np.ndarray | None, new: np.ndarray | None, *, exactly: bool) -> float:
    if old is None or new is None or old.shape != new.shape or (np.isnan(old) != np.isnan(new)).any():
        return np.inf
    known = ~np.isnan(old)
    if not known.any():
        return 0.0
    gap = float(np.max(np.abs(old[known] - new[known])))
    if exactly:
        return np.inf if gap else 0.0
    return gap / max(float(np.ptp(old[known])), float(np.max(np.abs(old[known]))), 1e-300)


def _print_facts(old: dict[str, Any], new: dict[str, Any]) -> None:
    print(f"\nbytes of a model  {old['bytes']:>10,} -> {new['bytes']:>10,}")
    print("\nlines of           before   after")
    for package in sorted(set(old["lines"]) | set(new["lines"])):
        print(f"{package:<18}{old['lines'].get(package, 0):>7,} {new['lines'].get(package, 0):>7,}")
    print(f"{'all':<18}{sum(old['lines'].values()):>7,} {sum(new['lines'].values()):>7,}")
    sets = sorted(_sets(old) & _sets(new))
    if not sets:
        return
    print("\nset                before     after   ratio")
    ratios = []
    for name in sets:
        a, b = (_mean_loss(facts, name) for facts in (old, new))
        ratios.append(b / a)
        print(f"{name:<16}{a:>9.5f} {b:>9.5f}  {b / a:.3f}")
    print(f"geometric mean of the ratios: {float(np.exp(np.mean(np.log(ratios)))):.4f}")


def _sets(facts: dict[str, Any]) -> set[str]:
    return {key.partition("/")[0] for key in facts["losses"]}


def _mean_loss(facts: dict[str, Any], name: str) -> float:
    return float(np.mean([facts["losses"][f"{name}/{seed}"] for seed in SEEDS]))


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.record", description=__doc__.partition("\n")[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    writing = verbs.add_parser("write", help="record a checkout")
    writing.add_argument("out", type=Path)
    writing.add_argument("--source", type=Path, default=Path(), help="a checkout; this one by default")
    writing.add_argument("--data", type=Path, help="a folder of NAME.csv.gz: AutoKONS's losses there too")
    comparing = verbs.add_parser("compare", help="hold one record against another")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    given = parser.parse_args(arguments)
    if given.verb == "compare":
        return compare(given.before, given.after)
    source = given.source.resolve()
    if os.environ.get("PYTHONPATH") != str(source / "src"):
        environment = {**os.environ, "PYTHONPATH": str(source / "src"), "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, str(Path(__file__).resolve()), *(arguments or sys.argv[1:])]
        return subprocess.run(command, env=environment, check=False).returncode
    write(given.out.resolve(), source, given.data)
    return 0


if __name__ == "__main__":
    sys.exit(main())
