"""The command line: ``python -m benchmarks [--data FOLDER] [--only NAME ...] [--quick] [--slow] ...``."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from benchmarks import (
    accuracy,
    against_trees,
    auto,
    auto_rows,
    command_line,
    contended,
    drift,
    embedded_advance,
    embedded_long,
    embedded_rows,
    embedded_table,
    events,
    exact_replay,
    first_rows,
    forecasting,
    frontier,
    growth,
    intervals,
    keyed,
    memory,
    novelty,
    one_by_one,
    pauses,
    published,
    rare_classes,
    rivals,
    river_adapter,
    robust,
    row_orders,
    serving,
    several_targets,
    sketched_replay,
    time_order,
    tradeoff,
    unseen,
    untidy_tables,
)
from benchmarks.measuring import environment
from benchmarks.reporting import RESULTS
from benchmarks.settings import Settings
from benchmarks.subjects import warm_up

BENCHMARKS = {
    module.__name__.rpartition(".")[2]: module
    for module in (
        exact_replay,
        memory,
        growth,
        contended,
        one_by_one,
        sketched_replay,
        tradeoff,
        embedded_rows,
        embedded_advance,
        embedded_table,
        embedded_long,
        command_line,
        published,
        frontier,
        accuracy,
        time_order,
        rivals,
        auto,
        auto_rows,
        against_trees,
        row_orders,
        pauses,
        first_rows,
        robust,
        drift,
        events,
        unseen,
        intervals,
        keyed,
        novelty,
        untidy_tables,
        rare_classes,
        forecasting,
        several_targets,
        river_adapter,
        serving,
    )
}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Time, memory and accuracy beside others."
    )
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="where NAME.csv.gz files are")
    parser.add_argument("--only", nargs="+", choices=BENCHMARKS, metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--quick", action="store_true", help="small sizes; goals are not judged")
    parser.add_argument("--slow", action="store_true", help="also River's forests, and longer streams")
    parser.add_argument("--cache", type=Path, metavar="FILE", help="JSON that keeps the results of rivals")
    parser.add_argument(
        "--sets", nargs="+", default=(), metavar="NAME", help="only these, of tree_rivals or frontier"
    )
    parser.add_argument("--capymoa", metavar="PYTHON", help="of an environment that has CapyMOA and Java 17")
    arguments = parser.parse_args()
    if arguments.data is not None and not arguments.data.is_dir():
        parser.error(f"--data: {arguments.data} is not a folder")
    if arguments.cache is not None and not arguments.cache.parent.is_dir():
        parser.error(f"--cache: {arguments.cache.parent} is not a folder")
    settings = Settings(
        folder=arguments.data,
        quick=arguments.quick,
        slow=arguments.slow,
        cache=arguments.cache,
        sets=tuple(arguments.sets),
        capymoa=arguments.capymoa,
    )

    where = environment()
    print(", ".join(f"{name.replace('_', ' ')} {value}" for name, value in where.items()))
    if where["busy_percent_before"] > 10.0:
        print("note: something else is running; ratios are medians of alternating runs, but expect noise.")
    if settings.folder is None:
        print("no data folder given: every stream is synthetic, of the shape of the set it stands for.")
    if settings.quick:
        print("quick: sizes are smaller than those the goals speak of.")
    warm_up()
    for name in arguments.only or BENCHMARKS:
        print(f"\n== {name}", flush=True)
        start = time.perf_counter()
        report = BENCHMARKS[name].run(settings)
        report.show(judged=not settings.quick)
        report.save(f"{name}_quick" if settings.quick else name, environment=where, quick=settings.quick)
        print(f"({time.perf_counter() - start:.0f} s)", flush=True)
    print(f"\nsaved as JSON in {RESULTS.parent.name}/{RESULTS.name}/")


if __name__ == "__main__":
    main()
