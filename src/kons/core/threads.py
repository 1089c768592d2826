"""BLAS threads: one for small products, all of them only where the matrices are large.

On blocks this small, two BLAS threads that compete for a busy core run many times slower than one.
Most builds have one number for the whole process: the first block in sets it, the last one out gives it
back, whichever threads they are of. Builds over OpenMP have a number for each thread. Only block replay asks
for that; predictions and the row loop never do.

From 3.8 on threadpoolctl lets a single thread set the process's number, and leaves that of the others as it
is without a word, because OpenBLAS may hang where a number *grows* beyond what it was started with. None
does here: it becomes 1, and then what it was.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["blas_has_threads", "blas_threads", "set_blas_threads", "single_threaded_blas"]


def blas_has_threads() -> bool:
    """Whether there is anything to limit: to ask takes 1 us, to limit 5."""
    return any(each.get_num_threads() != 1 for each in _blas())


def blas_threads() -> int:
    """How many threads a product may use here."""
    return max((each.get_num_threads() for each in _blas()), default=1)


@functools.cache
def _blas() -> list[Any]:
    return [each for each in ThreadpoolController().lib_controllers if each.user_api == "blas"]


def limited_by_thread(library: Any) -> bool:
    """Whether each thread has a number of its own."""
    return getattr(library, "threading_layer", None) == "openmp"


def set_blas_threads(numbers: list[tuple[Any, int]] | int) -> list[tuple[Any, int]]:
    """Set the number of threads, from any thread; what it was, to be set again."""
    if isinstance(numbers, int):
        numbers = [(each, numbers) for each in _blas()]
    asked = [(library, library.get_num_threads(), number) for library, number in numbers]
    changed = [each for each in asked if each[1] != each[2]]
    for library, _, number in changed:
        let_go = getattr(library, "clear_controlling_thread", lambda *, force: None)
        let_go(force=True)
        library.set_num_threads(number)
        let_go(force=True)
    return [(library, before) for library, before, _ in changed]


_lock = threading.Lock()
_inside = 0
_before: list[tuple[Any, int]] = []


@contextmanager
def single_threaded_blas(active: bool = True) -> Iterator[None]:
    """Run the body with one BLAS thread; the last of several bodies at once gives the threads back."""
    global _inside, _before
    if not active:
        yield
        return
    own = set_blas_threads([(each, 1) for each in _blas() if limited_by_thread(each)])
    with _lock:
        if _inside == 0:
            _before = set_blas_threads([(each, 1) for each in _blas() if not limited_by_thread(each)])
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                set_blas_threads(_before)
        set_blas_threads(own)
