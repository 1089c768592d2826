"""Does the suite notice faults? ``python -m tools.faults`` puts mutants into the sources and runs the tests.

A sample of mutants is drawn with a fixed seed (:mod:`tools.mutants`); each is put into a copy of the
checkout (:mod:`tools.trees`) and the tests that can reach it are run (:mod:`tools.reach`), nearest
and fastest first, until one fails. What no test notices is printed. What is known already, for this
state of the sources and tests, is not run again.

The drawn list is written to ``mutants.json``: with ``--mutants`` the same faults are put into another
checkout, given by ``--suite``, to compare two suites.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from queue import SimpleQueue

from tools.mutants import Mutant, draw, package_of
from tools.reach import Reach, survey
from tools.references import References
from tools.trees import Outcome, Tree, digest

__all__ = ["main"]

ENOUGH = 0.9  # of the mutants are to be caught
NOTICED_NOTHING = 0, 5  # pytest's exit codes: all passed, there was no test
FIRST = 20  # fast tests before all the others
FAST = 2.0  # seconds
START, COMPILING = 60.0, 240.0  # seconds a run is allowed besides three times what its tests took


@dataclass(frozen=True)
class Result:
    """What became of a mutant in a state of sources and tests."""

    mutant: str
    suite: str
    caught: bool
    how: str
    witness: str
    tests: int
    reaching: int
    budget: float
    seconds: float

    def holds(self, budget: float) -> bool:
        """Whether a run with this budget would tell no more."""
        return self.caught or self.tests == self.reaching or self.budget >= budget


class Trial:
    """All mutants against one state of the sources and tests."""

    def __init__(self, suite: Path, out: Path, workers: int, budget: float) -> None:
        self.name, self.out, self.budget = digest(suite), out, budget
        home = out / self.name
        self.trees = []
        for n in range(workers):
            (home / str(n)).mkdir(parents=True, exist_ok=True)
            self.trees.append(Tree(suite, home / str(n)))
        root = self.trees[0].root
        files = [(path.relative_to(root).as_posix(), path) for path in (root / "src").rglob("*.py")]
        self.texts = {file: path.read_text(encoding="utf-8") for file, path in files}
        survey(self.trees, home / "survey", _say)
        for tree in self.trees[1:]:
            tree.take_cache(self.trees[0])
        self.references = References(root)
        self.reach = Reach(root, home / "survey", self.references)
        self.results = {found.mutant: found for found in self._stored() if found.suite == self.name}

    def run(self, mutants: list[Mutant]) -> None:
        """Run what is not known; a test that fails without a mutant too is no witness, and is left out."""
        todo = [m for m in mutants if m.key not in self.results or not self.results[m.key].holds(self.budget)]
        while todo:
            self._run_all(todo, len(mutants))
            witnesses = {self.results[m.key].witness for m in mutants}
            unsound = self._unsound(sorted(name for name in witnesses if "::" in name))
            self.reach.excluded |= unsound
            todo = [m for m in mutants if self.results[m.key].witness in unsound]
            for mutant in todo:
                del self.results[mutant.key]

    def line(self, mutant: Mutant) -> int | None:
        """The number of the line of a mutant; ``None`` if it cannot be applied to these sources."""
        text = self.texts.get(mutant.file, "")
        place = mutant.place(text)
        return None if place is None else text.count("\n", 0, place) + 1

    def _run_all(self, mutants: list[Mutant], total: int) -> None:
        free: SimpleQueue[Tree] = SimpleQueue()
        for tree in self.trees:
            free.put(tree)

        def work(mutant: Mutant) -> Result:
            tree = free.get()
            try:
                return self._try(tree, mutant)
            finally:
                free.put(tree)

        begun = time.monotonic()
        with ThreadPoolExecutor(len(self.trees)) as pool:
            try:
                waiting = [pool.submit(work, mutant) for mutant in mutants]
                for n, future in enumerate(as_completed(waiting), 1):
                    result = future.result()
                    self._store(result)
                    left = (time.monotonic() - begun) / n * (len(mutants) - n)
                    caught = sum(found.caught for found in self.results.values())
                    _say(f"{total - len(mutants) + n}/{total}, {caught} caught, {left / 60:.0f} min left")
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                for tree in self.trees:
                    tree.stop()
                raise

    def _try(self, tree: Tree, mutant: Mutant) -> Result:
        line = self.line(mutant)
        text = mutant.apply(self.texts[mutant.file])
        assert line is not None
        assert text is not None
        chosen, reaching = self.reach.choice(mutant.file, line, self.budget)
        stale = self.references.stale(mutant.file, line)
        result = Result(mutant.key, self.name, False, "", "", len(chosen), reaching, self.budget, 0.0)
        with tree.changed(mutant.file, text):
            for chunk in self._chunks(chosen):
                expected = sum(self.reach.durations[test] for test in chunk)
                limit = 3.0 * expected + START + (COMPILING if stale else 0.0)
                outcome = tree.run(_files(chunk), chunk, stops=True, limit=limit, stale=stale)
                result = replace(result, seconds=round(result.seconds + outcome.seconds, 1))
                if outcome.code not in NOTICED_NOTHING:
                    witness = (outcome.failed or [""])[0]
                    return replace(result, caught=True, how=_how(outcome), witness=witness)
        return result

    def _chunks(self, tests: list[str]) -> Iterator[list[str]]:
        first = [test for test in tests if self.reach.durations[test] <= FAST][:FIRST]
        later = [test for test in tests if test not in set(first)]
        for chunk in (first, later):
            files = _files(chunk)  # together: their fixtures are made once
            if chunk:
                yield sorted(chunk, key=lambda test: files.index(test.partition("::")[0]))

    def _unsound(self, witnesses: list[str]) -> set[str]:
        """Those that fail without any mutant."""
        if not witnesses:
            return set()
        _say(f"running the {len(witnesses)} tests that caught something without a mutant")
        found = set(self.trees[0].run(_files(witnesses), witnesses).failed)
        for test in sorted(found):
            _say(f"left out, it fails without a mutant: {test}")
        return found

    def _stored(self) -> Iterator[Result]:
        path = self.out / "results.jsonl"
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                yield Result(**json.loads(line))

    def _store(self, result: Result) -> None:
        self.results[result.mutant] = result
        with (self.out / "results.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(result)) + "\n")


def report(mutants: list[Mutant], trial: Trial, say: Callable[[str], None]) -> float:
    """Print the table and the survivors; returns the share that was caught."""
    placed = [mutant for mutant in mutants if trial.line(mutant)]
    say(f"\n{'package':<20}{'drawn':>7}{'caught':>8}{'%':>6}")
    rows = [(package, [m for m in placed if package_of(m.file) == package]) for package in _packages(placed)]
    for package, group in [*rows, ("all", placed)]:
        caught = sum(trial.results[mutant.key].caught for mutant in group)
        say(f"{package:<20}{len(group):>7}{caught:>8}{100 * caught / max(1, len(group)):>6.0f}")
    for mutant in mutants:
        if mutant not in placed:
            say(f"\ncould not be applied: {mutant.file}, {mutant.definition}\n    {mutant.shown()}")
        elif not (result := trial.results[mutant.key]).caught:
            say(f"\nsurvived: {mutant.file}:{trial.line(mutant)} ({mutant.definition}; {mutant.operator})")
            say(f"    {mutant.shown()}\n    {result.tests} of {result.reaching} tests that reach it")
    return caught / max(1, len(placed))


def main(arguments: list[str] | None = None) -> int:
    """The command line: 0 if enough mutants are caught."""
    parser = argparse.ArgumentParser(prog="python -m tools.faults", description=__doc__.partition("\n")[0])
    parser.add_argument("--suite", type=Path, default=Path(), help="a checkout: its sources and its tests")
    parser.add_argument("--mutants", type=Path, help="a list drawn before; without it one is drawn")
    parser.add_argument("--out", type=Path, default=Path("build/faults"), help="where results are kept")
    parser.add_argument("--count", type=int, default=200, help="mutants to draw")
    parser.add_argument("--least", type=int, default=5, help="of them in each package")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--budget", type=float, default=90.0, help="seconds of tests a mutant, as surveyed")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--fresh", action="store_true", help="forget all results and surveys")
    given = parser.parse_args(arguments)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it; tests do not
    suite, out = given.suite.resolve(), given.out.resolve()
    if given.mutants:
        mutants = [Mutant(**found) for found in json.loads(given.mutants.read_text(encoding="utf-8"))]
    else:
        mutants = draw(suite, given.count, given.least, given.seed)
    if given.fresh:
        shutil.rmtree(out / digest(suite), ignore_errors=True)
        (out / "results.jsonl").unlink(missing_ok=True)
    out.mkdir(parents=True, exist_ok=True)
    text = json.dumps([asdict(mutant) for mutant in mutants], indent=1)
    (out / "mutants.json").write_text(text, encoding="utf-8")
    trial = Trial(suite, out, given.workers, given.budget)
    for test in sorted(trial.reach.failed):
        _say(f"left out, it fails without a mutant: {test}")
    try:
        trial.run([mutant for mutant in mutants if trial.line(mutant)])
    except KeyboardInterrupt:
        _say("stopped; the same command goes on from here")
        return 130
    return 0 if report(mutants, trial, print) >= ENOUGH else 1


def _files(tests: list[str]) -> list[str]:
    return list(dict.fromkeys(test.partition("::")[0] for test in tests))


def _packages(mutants: list[Mutant]) -> list[str]:
    return sorted({package_of(mutant.file) for mutant in mutants})


def _how(outcome: Outcome) -> str:
    if outcome.timed_out:
        return "time"
    return {1: "test", 2: "import", 4: "import"}.get(outcome.code, f"exit {outcome.code}")


def _say(text: str) -> None:
    print(f"faults: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
