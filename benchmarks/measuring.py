"""Clocks and scales: alternating times, a busy neighbour, and memory in a fresh process."""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import os
import platform
import statistics
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any

import numpy as np
import psutil
import threadpoolctl

from kons.compilation import wall_clock

SAMPLED_EVERY = 0.001  # seconds between two looks at the resident memory
MEGABYTE = 1e6

Times = dict[str, list[float]]


def alternate(
    contenders: Mapping[str, Callable[[], Any]],
    rounds: int,
    around: Mapping[str, Callable[[], AbstractContextManager[Any]]] | None = None,
) -> Times:
    """Seconds of each contender, run in turn ``rounds`` times: A, B, A, B, ...

    Whatever else the machine does then meets both. ``around`` names a context, outside the clock, that
    a contender runs in. Call everything once before, on a small input: compilation is not measured.
    """
    times: Times = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, contender in contenders.items():
            gc.collect()
            with (around or {}).get(name, nullcontext)():
                start = wall_clock()
                contender()
                times[name].append(wall_clock() - start)
    return times


def ratios(times: Times, numerator: str, denominator: str) -> list[float]:
    """One contender's time over another's in the same round, smallest first: their spread is the noise."""
    return sorted(a / b for a, b in zip(times[numerator], times[denominator], strict=True))


def median_ratio(times: Times, numerator: str, denominator: str) -> float:
    """The median of :func:`ratios`."""
    return statistics.median(ratios(times, numerator, denominator))


def rise_of_memory(prepare: Callable[..., Callable[[], Any]], *arguments: Any) -> tuple[float, Any]:
    """Bytes by which the resident memory of a fresh process rises at most during a task; its result.

    ``prepare(*arguments)`` runs in a process of its own, imports, makes the data, warms up on a small
    input and returns the task. The resident memory just before the task is the zero; a thread then
    looks at it every millisecond. Memory that was freed but not yet given back would hide a rise, so
    it is given back first, where the system's allocator can be told to. (The operating system's own
    high-water mark will not do: a new process may inherit its parent's, and it cannot be set back.)
    """
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as fresh:
        return fresh.submit(_watch, prepare, arguments).result()


def _watch(prepare: Callable[..., Callable[[], Any]], arguments: tuple[Any, ...]) -> tuple[float, Any]:
    task = prepare(*arguments)
    _give_back_freed_memory()
    process = psutil.Process()
    before = peak = process.memory_info().rss
    finished = threading.Event()

    def look() -> None:
        nonlocal peak
        while not finished.wait(SAMPLED_EVERY):
            peak = max(peak, process.memory_info().rss)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        result = task()
    finally:
        finished.set()
        watcher.join()
    return float(max(peak, process.memory_info().rss) - before), result


def _give_back_freed_memory() -> None:
    gc.collect()
    with suppress(OSError, TypeError, AttributeError):  # only the GNU C library has it
        ctypes.CDLL(None).malloc_trim(0)


@contextmanager
def busy_core() -> Iterator[None]:
    """Another process that never rests, for as long as the body runs."""
    context = multiprocessing.get_context("spawn")
    spinning = context.Event()
    neighbour = context.Process(target=_spin, args=(spinning,), daemon=True)
    neighbour.start()
    spinning.wait()
    try:
        yield
    finally:
        neighbour.terminate()
        neighbour.join()


def _spin(spinning: Any) -> None:
    spinning.set()
    while True:
        pass


def blas_threads(limit: int | None) -> AbstractContextManager[Any]:
    """At most so many BLAS threads inside, for NumPy and SciPy alike; None leaves them as they are."""
    return threadpoolctl.threadpool_limits(limit, user_api="blas")


def environment() -> dict[str, Any]:
    """What the figures depend on besides the code."""
    pools = [pool["num_threads"] for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"]
    # Something else running shows here before anything is measured.
    busy = psutil.cpu_percent(interval=1.0)
    return {
        "machine": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "cores": os.cpu_count(),
        "blas_threads": max(pools, default=1),
        "busy_percent_before": busy,
    }
