"""The tests under other processors, users, signals and folders: ``python -m tools.portability``.

The numerical folders are run under every circumstance, the whole suite under two. What the tests of a row
said is kept in build/portability.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tools.circumstances import CIRCUMSTANCES, NUMERICAL, ROOT, Circumstance, facts, place, start, why_not

LOGS = ROOT / "build" / "portability"
COUNT = re.compile(r"(\d+) (passed|failed|error|skipped)")
BROKEN = re.compile(r"(?:FAILED|ERROR) (.*?)(?: - |$)")


@dataclass
class Outcome:
    """A row of the table."""

    circumstance: Circumstance
    missing: str = ""
    """Why it was not run."""
    code: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def hear(self, line: str) -> None:
        """Take what a line of pytest's output has to say."""
        if broken := BROKEN.match(line):
            self.broken.append(broken[1])
        elif re.search(r" in [\d.]+s\b", line) and (found := COUNT.findall(line)):
            self.counts = {name: int(number) for number, name in found}

    def words(self) -> str:
        """How it went, in a line."""
        if self.missing:
            return "not available here: " + self.missing
        counts = ", ".join(f"{number} {name}" for name, number in self.counts.items())
        return f"{counts or 'nothing counted'} in {self.seconds / 60:.1f} minutes"

    def cells(self) -> list[str]:
        """As it stands in the table."""
        about = [self.circumstance.name, scope_of(self.circumstance)]
        if self.missing:
            return [*about, self.words()]
        failed = self.counts.get("failed", 0) + self.counts.get("error", 0)
        numbers = (self.counts.get("passed", 0), failed, self.counts.get("skipped", 0))
        return [*about, *map(str, numbers), f"{self.seconds / 60:.1f}"]


def scope_of(circumstance: Circumstance) -> str:
    """In a few words."""
    more = [Path(path).name for path in circumstance.scope if path not in NUMERICAL]
    return ", ".join(["numerical", *more]) if circumstance.scope else "whole"


def run(circumstance: Circumstance, pytest: Sequence[str], plainly: Mapping[str, Any]) -> Outcome:
    """Run its tests, if the circumstance can be had here; ``plainly`` are the facts without any."""
    outcome = Outcome(circumstance)
    with place(circumstance) as where:
        outcome.missing = why_not(circumstance, facts(circumstance, where), plainly)
        if outcome.missing:
            return outcome
        LOGS.mkdir(parents=True, exist_ok=True)
        began = time.monotonic()
        arguments = ["-u", *pytest, *circumstance.scope]
        with (
            (LOGS / f"{circumstance.name}.txt").open("w", encoding="utf-8", buffering=1) as log,
            start(circumstance, where, arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as tests,
        ):
            try:
                for line in tests.stdout or ():
                    log.write(line)
                    outcome.hear(line)
                    show_progress(line)
            except BaseException:
                tests.kill()  # Ctrl-C, which not every row listens to
                raise
        outcome.code = tests.returncode
        outcome.seconds = time.monotonic() - began
    if outcome.code and not outcome.broken:
        outcome.broken.append(f"pytest ended with code {outcome.code}")
    return outcome


def show_progress(line: str) -> None:
    """How far it is, on a terminal."""
    if sys.stdout.isatty() and (percent := re.search(r"\[ *\d+%\]", line)):
        print(f"\r{percent[0]} ", end="", flush=True)


def table(outcomes: Iterable[Outcome]) -> str:
    """Aligned; a row that was not run says why in place of its numbers."""
    head = ["circumstance", "scope", "passed", "failed", "skipped", "minutes"]
    rows = [head, *(outcome.cells() for outcome in outcomes)]
    widths = [max(len(row[i]) for row in rows if len(row) == len(head)) for i in range(len(head))]
    widths[:2] = [max(len(row[i]) for row in rows) for i in range(2)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i < 2 or len(row) < len(head) else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=False))
        ).rstrip()
        for row in rows
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line: 1 if any test failed anywhere."""
    parser = argparse.ArgumentParser(prog="python -m tools.portability", description=__doc__)
    parser.add_argument("--only", action="append", choices=CIRCUMSTANCES, metavar="NAME", help="see --list")
    parser.add_argument("--list", action="store_true", help="say what there is, and run nothing")
    parser.add_argument(
        "pytest", nargs="*", default=["-m", "pytest"], help="after --: what Python is told, to run the tests"
    )
    asked = parser.parse_args(arguments)
    chosen = [CIRCUMSTANCES[name] for name in asked.only or CIRCUMSTANCES]
    if asked.list:
        width = max(map(len, CIRCUMSTANCES))
        print("\n".join(f"{each.name.ljust(width)}  {scope_of(each)}" for each in chosen))
        return 0
    outcomes, plainly = [], facts(Circumstance("plainly", {}), ROOT)
    for number, circumstance in enumerate(chosen, 1):
        print(f"==> {number} of {len(chosen)}: {circumstance.name}, {scope_of(circumstance)}", flush=True)
        outcomes.append(run(circumstance, asked.pytest, plainly))
        print("\r" + outcomes[-1].words(), flush=True)
    print("\n" + table(outcomes))
    for outcome in outcomes:
        for name in outcome.broken:
            print(f"{outcome.circumstance.name}: {name}")
    return 1 if any(outcome.broken for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
