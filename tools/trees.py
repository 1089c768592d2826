"""Copies of a checkout in which pytest is run: one a worker, each with machine code of its own.

Numba keeps machine code by the path and time of a function's file, and does not look at what that
function calls from other files. So a file that was changed gets its old time back with its old
text, and a mutant that compiled code may depend on runs with a cache from which everything that
could depend on it has been left out (:meth:`Tree.run`).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Outcome", "Tree", "digest"]

LEFT_OUT = ".git", ".venv", "build", "dist", "results", "__pycache__", ".*_cache", ".hypothesis"
OPTIONS = "--tb=line", "--hypothesis-seed=0"
MEMORY = 8 << 30  # of a process: a mutant may well allocate for ever


def digest(checkout: Path) -> str:
    """A name for the state of the sources and the tests of a checkout."""
    found = hashlib.sha1()
    for folder in ("src", "tests"):
        for path in sorted((checkout / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                found.update(str(path.relative_to(checkout)).encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:12]


@dataclass
class Outcome:
    """How a run of pytest ended."""

    code: int
    seconds: float
    timed_out: bool = False
    record: dict[str, object] = field(default_factory=dict)
    tail: str = ""

    @property
    def failed(self) -> list[str]:
        """The tests that failed."""
        found = self.record.get("failed", [])
        return [str(name) for name in found] if isinstance(found, list) else []


class Tree:
    """One copy, with room for one run at a time."""

    def __init__(self, checkout: Path, home: Path) -> None:
        self.root, self.cache = home / "tree", home / "numba"
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False
        if self.root.exists():  # from a run that was stopped, perhaps in the middle of a mutant
            for path in (checkout / "src").rglob("*.py"):
                copy = self.root / path.relative_to(checkout)
                if copy.read_bytes() != path.read_bytes():
                    shutil.copy2(path, copy)
        else:
            ignored = shutil.ignore_patterns(*LEFT_OUT)
            shutil.copytree(checkout, self.root, ignore=ignored)
        self.cache.mkdir(exist_ok=True)

    @contextmanager
    def changed(self, file: str, text: str) -> Iterator[None]:
        """With another text in one file."""
        path = self.root / file
        before, times = path.read_bytes(), path.stat()
        path.write_text(text, encoding="utf-8")
        try:
            yield
        finally:
            path.write_bytes(before)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    def take_cache(self, other: Tree) -> None:
        """The machine code that another tree has, under the names it has for the files of this one."""
        if not any(other.cache.iterdir()):
            return
        for folder in {path.parent for path in (self.root / "src").rglob("*.py")}:
            theirs = other.cache / _cache_name(other.root / folder.relative_to(self.root))
            ours = self.cache / _cache_name(folder)
            if theirs.exists() and not ours.exists():
                shutil.copytree(theirs, ours)

    def run(
        self,
        files: Iterable[str],
        tests: list[str] | None = None,
        *,
        stops: bool = False,
        limit: float | None = None,
        stale: Iterable[str] | None = None,
        record: Path | None = None,
        cover: bool = False,
    ) -> Outcome:
        """Run pytest on files, or on some of their tests; if it ``stops``, until one fails.

        With ``stale`` files, on a copy of the cache without what was compiled from them.
        """
        with tempfile.TemporaryDirectory(prefix="faults-") as scratch:
            cache = self.cache if stale is None else self._cache_without(stale)
            record = record or Path(scratch, "record.json")
            environment = {
                **{name: value for name, value in os.environ.items() if not name.startswith("FAULTS_")},
                "PYTHONPATH": os.pathsep.join(
                    [str(self.root / "src"), str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
                ),
                "PYTHONHASHSEED": "0",
                "NUMBA_CACHE_DIR": str(cache),
                "HYPOTHESIS_STORAGE_DIRECTORY": str(Path(scratch, "hypothesis")),
                "TMPDIR": scratch,
                "OPENBLAS_NUM_THREADS": "1",
                "FAULTS_RECORD": str(record),
                # Python tells bytecode from its source by size and second: a mutant may have both of these.
                "PYTHONDONTWRITEBYTECODE": "1",
            }
            if cover:
                environment |= {"FAULTS_COVER": str(self.root / "src"), "COVERAGE_CORE": "ctrace"}
            if tests is not None:
                environment |= {"FAULTS_TESTS": str(Path(scratch, "tests.json"))}
                Path(scratch, "tests.json").write_text(json.dumps(tests), encoding="utf-8")
            command = [sys.executable, "-m", "pytest", "-q", "-p", "recorder", "-p", "no:cacheprovider"]
            command += [*OPTIONS, *(["-x"] if stops else []), *files]
            with Path(scratch, "said").open("w+b") as said:
                outcome = self._wait(command, environment, said.fileno(), limit)
                said.seek(0)
                outcome.tail = said.read()[-2000:].decode(errors="replace")
            if record.exists():
                outcome.record = json.loads(record.read_text(encoding="utf-8"))
            return outcome

    def stop(self) -> None:
        """End the run under way, and every later one."""
        self._stopped = True
        if self._process:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def _wait(self, command: list[str], env: dict[str, str], said: int, limit: float | None) -> Outcome:
        if self._stopped:
            raise InterruptedError
        begun = time.monotonic()
        self._process = process = subprocess.Popen(
            command,
            cwd=self.root,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        _limit_memory(process.pid)
        timed_out = False
        try:
            process.wait(limit)
        except subprocess.TimeoutExpired:
            timed_out = True
        finally:  # also what a test has started and a failure has left behind
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if self._stopped:
            raise InterruptedError
        return Outcome(process.returncode, time.monotonic() - begun, timed_out)

    def _cache_without(self, stale: Iterable[str]) -> Path:
        target = self.cache.with_name("numba-mutant")
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(self.cache, target, copy_function=os.link)  # Numba only ever replaces files
        for file in stale:
            path = self.root / file
            for kept in (target / _cache_name(path.parent)).glob(f"{path.stem}.*"):
                kept.unlink()
        return target


def _cache_name(folder: Path) -> str:
    """The folder in which Numba keeps machine code of the files of a folder."""
    from numba.core.caching import _CacheLocator

    return str(_CacheLocator.get_suitable_cache_subpath(str(folder / "any.py")))  # type: ignore[no-untyped-call]


def _limit_memory(process: int) -> None:
    with suppress(ImportError, AttributeError, ProcessLookupError):  # Linux only
        import resource

        resource.prlimit(process, resource.RLIMIT_DATA, (MEMORY, MEMORY))
