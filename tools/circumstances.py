"""The circumstances that the tests must pass in, how a process is put into one, and whether it then is."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

__all__ = ["CIRCUMSTANCES", "NUMERICAL", "Circumstance", "facts", "place", "start", "why_not"]

ROOT = Path(__file__).parents[1]

# Where rounding, the order of sums or the number of threads could change what is asserted.
NUMERICAL = (
    "tests/core",
    "tests/kernels",
    "tests/learners",
    "tests/paper",
    "tests/theory",
    "tests/contracts",
    "tests/evaluation",
    "tests/checks",
    "tests/adapters",
    "tests/cli/test_cli_certify.py",
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests").glob("test_*.py")),
)
# Where files, processes and who owns them matter.
SURROUNDINGS = ("tests/cli", "tests/files", "tests/runs")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class Circumstance:
    """What is particular about a run of the tests."""

    name: str
    wants: Mapping[str, object]
    """What :func:`facts` must find: OpenBLAS and Numba do not say when a name means nothing to them."""
    scope: tuple[str, ...] = NUMERICAL
    """Folders and files of tests; none for all there are."""
    environment: Mapping[str, str] = field(default_factory=dict)
    ignored: tuple[signal.Signals, ...] = ()
    folder: str | None = None
    """The name of the folder that a copy of the project is put into; without one it is run where it is."""
    never_root: bool = False
    """Started by root, it runs as nobody."""


def kernels(name: str) -> Circumstance:
    """OpenBLAS as on that processor."""
    return Circumstance(name, {"kernels": name}, environment={"OPENBLAS_CORETYPE": name})


def threads(number: int, name: str) -> Circumstance:
    """BLAS with so many threads."""
    return Circumstance(name, {"threads": number}, environment={"OPENBLAS_NUM_THREADS": str(number)})


CIRCUMSTANCES = {
    circumstance.name: circumstance
    for circumstance in (
        *map(kernels, ("Haswell", "Zen", "Sandybridge", "Nehalem", "Prescott", "SkylakeX")),
        Circumstance("generic", {"loops": "generic"}, environment={"NUMBA_CPU_NAME": "generic"}),
        threads(1, "one-thread"),
        threads(2, "two-threads"),
        Circumstance("root", {"root": True}, (*NUMERICAL, *SURROUNDINGS)),
        Circumstance(
            "not-root", {"root": False}, (*NUMERICAL, *SURROUNDINGS), folder="kons", never_root=True
        ),
        Circumstance("SIGINT-ignored", {"ignored": ["SIGINT"]}, (), ignored=(signal.SIGINT,)),
        Circumstance("odd-folder", {"folder": "kons à côté"}, (), folder="kons à côté"),
    )
}
# Set outside, they would make a row something else than what it says. A number of threads does not.
VARIABLES = {"OPENBLAS_CORETYPE", "NUMBA_CPU_NAME"}


def nobody() -> tuple[int, int]:
    """The user and the group of someone who owns nothing."""
    try:
        found = pwd.getpwnam("nobody")
    except KeyError:
        return 65534, 65534
    return found.pw_uid, found.pw_gid


def as_nobody() -> list[str]:
    """What to write before a command. Where Python is in a closed folder, nobody may read everything."""
    user, group = nobody()
    command = ["setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups"]
    if all(folder.stat().st_mode & 0o001 for folder in Path(sys.base_prefix, "x").parents):
        return command
    return [*command, "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]


def _steps_down(circumstance: Circumstance) -> bool:
    return circumstance.never_root and os.geteuid() == 0


@contextmanager
def place(circumstance: Circumstance) -> Iterator[Path]:
    """The folder to run in: the project's own, or a copy that belongs to whoever runs there."""
    if circumstance.folder is None:
        yield ROOT
        return
    with TemporaryDirectory(prefix="kons-") as scratch:
        copy = Path(scratch) / circumstance.folder
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".?*", "__pycache__", "build", "dist"))
        (copy / "build" / "tmp").mkdir(parents=True)
        if _steps_down(circumstance):
            for path in (Path(scratch), *Path(scratch).rglob("*")):
                os.chown(path, *nobody())
        yield copy


def start(
    circumstance: Circumstance, where: Path, arguments: Sequence[str], **options: Any
) -> subprocess.Popen[str]:
    """Python, as it runs here, with these arguments in that folder, under the circumstance."""
    environment = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    paths = [str(where / "src"), environment.get("PYTHONPATH", "")]
    environment |= {**circumstance.environment, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    if where != ROOT:
        # Machine code is kept by the path of its source, so that a copy compiles anew.
        environment |= {
            "NUMBA_CACHE_DIR": str(where / "build" / "numba"),
            "TMPDIR": str(where / "build" / "tmp"),
            "HOME": str(where),
        }
    elif "NUMBA_CPU_NAME" in environment and "NUMBA_CACHE_DIR" in environment:
        environment["NUMBA_CACHE_DIR"] += "-" + environment["NUMBA_CPU_NAME"]
    return subprocess.Popen(
        [*(as_nobody() if _steps_down(circumstance) else []), sys.executable, *arguments],
        cwd=where,
        env=environment,
        preexec_fn=_listener(circumstance.ignored),
        text=True,
        encoding="utf-8",
        errors="replace",
        **options,
    )


def _listener(ignored: Sequence[signal.Signals]) -> Callable[[], None]:
    """Signals for a child and its children: whoever runs the matrix in the background ignores some."""

    def listen() -> None:
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)

    return listen


# Kernels with instructions that the processor lacks end the process here, not in the midst of the tests.
PROBE = f"""
import json, os, signal
import numpy, scipy.linalg, threadpoolctl
from numba.core.registry import cpu_target

def ignores(name):
    return signal.getsignal(getattr(signal, name)) == signal.SIG_IGN

A = numpy.random.default_rng(0).normal(size=(300, 300))
scipy.linalg.cholesky(A @ A.T + numpy.eye(300))
blas = [each for each in threadpoolctl.threadpool_info() if each["user_api"] == "blas"]
print(json.dumps({{
    "kernels": " and ".join(sorted({{each.get("architecture", "unknown") for each in blas}})),
    "threads": max((each["num_threads"] for each in blas), default=0),
    "loops": cpu_target.target_context.codegen().magic_tuple()[1],
    "ignored": [each for each in {[each.name for each in SIGNALS]} if ignores(each)],
    "root": os.geteuid() == 0,
    "folder": os.path.basename(os.getcwd()),
}}))
"""


def facts(circumstance: Circumstance, where: Path) -> dict[str, Any]:
    """What a process finds there, or why it ended: the last line that it said."""
    try:
        process = start(circumstance, where, ["-c", PROBE], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except OSError as error:
        return {"ended": str(error)}
    said, complained = process.communicate()
    if process.returncode != 0:
        last = complained.strip().rpartition("\n")[2]
        return {"ended": f"Python ended with code {process.returncode}. {last}".strip()}
    found: dict[str, Any] = json.loads(said)
    return found


def why_not(circumstance: Circumstance, found: Mapping[str, Any], plainly: Mapping[str, Any]) -> str:
    """Why this machine cannot show the circumstance, "" if it does; ``plainly`` are the facts without any."""
    if "ended" in found:
        return str(found["ended"])
    for fact, wanted in circumstance.wants.items():
        if found[fact] == wanted:
            continue
        # OpenBLAS has one set of kernels under several names: Prescott's answer to Katmai. They are their own
        # if neither the processor chooses them without being asked nor another row asks for them.
        if fact == "kernels" and found[fact] not in {*CIRCUMSTANCES, plainly.get(fact), "unknown"}:
            continue
        return f"{fact} asked for: {wanted}, found: {found[fact]}"
    return ""
