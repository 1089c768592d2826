"""Which tests can notice a change of a line: a survey of the suite, and a choice within a budget.

The survey runs every test once, with coverage kept test by test. Compiled functions are invisible
to coverage: such a function is reached by the tests that run a Python function which names it, or
names a compiled function that does. So is what runs in other processes: the tests of a module's own
folder or name that start some may reach all of it.
"""

from __future__ import annotations

import functools
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from coverage import CoverageData

from tools.references import Lines, References
from tools.trees import Tree

__all__ = ["Reach", "survey"]

GROUPS = 16  # of test files; a group is a process, and what is done is not done again


def survey(trees: list[Tree], home: Path, say: Callable[[str], None]) -> None:
    """Run the suite once, in the first tree, and leave what was seen in a folder."""
    home.mkdir(exist_ok=True)
    root = trees[0].root
    files = sorted((root / "tests").rglob("test_*.py"), key=lambda path: -path.stat().st_size)
    names = [str(path.relative_to(root)) for path in files]
    groups = (
        [["src"], *(names[n::GROUPS] for n in range(GROUPS))] if len(names) > GROUPS else [["src", *names]]
    )
    done: list[int] = []

    def run(n: int) -> None:
        target = home / f"{n}.json"
        if not target.exists():
            outcome = Tree(root, root.parent).run(groups[n], record=target, cover=True)
            if not target.exists():
                raise RuntimeError(f"the survey of {groups[n]} broke off:\n{outcome.tail}")
        done.append(n)
        say(f"survey: {len(done)}/{len(groups)} groups of tests")

    with ThreadPoolExecutor(len(trees)) as pool:
        list(pool.map(run, range(len(groups))))


class Reach:
    """What a survey found."""

    def __init__(self, root: Path, home: Path, references: References) -> None:
        self.root, self.references = root, references
        self.durations: dict[str, float] = {}
        self.failed: list[str] = []
        self._users: dict[str, list[str]] = defaultdict(list)  # of a fixture
        self._data = []
        for path in sorted(home.glob("*.json")):
            found = json.loads(path.read_text(encoding="utf-8"))
            self.durations |= found["durations"]
            self.failed += found["failed"]
            for test, fixtures in found["fixtures"].items():
                for fixture in fixtures:
                    self._users[fixture].append(test)
            data = CoverageData(str(path.with_suffix(".coverage")))
            data.read()
            self._data.append(data)
        self.excluded = set(self.failed)

    def tests(self, file: str, line: int) -> list[str]:
        """The tests that reach a line, those of the mirrored folder if none is seen to."""
        found: set[str] = set()
        for where in self.references.reached_through(file, line):
            found |= self._running(where)
        whole = {name for name in {_file(test) for test in found} if self._shares(name)}
        whole |= self.references.tests_naming(file, line)
        whole |= {name for name in map(_file, self.durations) if _kinship(file, name) and self._starts(name)}
        found |= {test for test in self.durations if _file(test) in whole}
        found -= self.excluded
        if not found:
            found = {test for test in self.durations if _kinship(file, test)} - self.excluded
        return sorted(found)

    def choice(self, file: str, line: int, budget: float) -> tuple[list[str], int]:
        """Tests to run within a time, the nearest and fastest first, and how many reach the line.

        Of a test with many parameters one is taken, then of the next, before a second of the first.
        """
        tests = self.tests(file, line)
        seen: Counter[str] = Counter()
        variant = {}
        for test in sorted(tests, key=self.durations.__getitem__):
            name = test.partition("[")[0]
            variant[test] = seen[name]
            seen[name] += 1
        order = sorted(tests, key=lambda test: (-_kinship(file, test), variant[test], self.durations[test]))
        near = [test for test in order if _kinship(file, test)]
        far = [test for test in order if not _kinship(file, test)]
        chosen: dict[str, None] = {}
        left = budget
        for group, kept_back in ((near, budget / 3), (far, 0.0), (near, 0.0)):
            for test in group:
                if test not in chosen and self.durations[test] <= left - kept_back:
                    chosen[test] = None
                    left -= self.durations[test]
        return list(chosen), len(tests)

    def _running(self, where: Lines) -> set[str]:
        by_line = self._by_line(where.file)
        contexts = {name for line in range(where.first, where.last + 1) for name in by_line.get(line, ())}
        found = set()
        for context in contexts:
            found.update(self._users[context] if context.startswith("fixture:") else [context])
        return found & self.durations.keys()

    @functools.cache  # noqa: B019  there is one of it, for as long as the tool runs
    def _by_line(self, file: str) -> dict[int, set[str]]:
        found: dict[int, set[str]] = defaultdict(set)
        for data in self._data:
            for line, contexts in data.contexts_by_lineno(str(self.root / file)).items():
                found[line].update(contexts)
        return found

    @functools.cache  # noqa: B019
    def _shares(self, file: str) -> bool:
        """Whether the tests of a file share what one of them has computed."""
        return "functools.cache" in (self.root / file).read_text(encoding="utf-8")

    @functools.cache  # noqa: B019
    def _starts(self, file: str) -> bool:
        """Whether the tests of a file start processes."""
        return (self.root / file).suffix == ".py" and "subprocess" in (self.root / file).read_text(
            encoding="utf-8"
        )


def _file(test: str) -> str:
    return test.partition("::")[0]


@functools.cache
def _kinship(file: str, test: str) -> int:
    """How many names of folders and module a source file and a test file share."""
    ours = {word for part in Path(file).with_suffix("").parts[2:] for word in part.split("_")}
    theirs = set(re.split(r"[/_.]", _file(test)))
    return len(ours & theirs)
