"""BLAS threads: one for small products, all of them only where the matrices are large.

On blocks this small, two BLAS threads that compete for a busy core run many times slower than one.
The limit is a property of the process, so only block replay sets it; predictions and the row loop
never do, which keeps them safe from several threads.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["single_threaded_blas"]


@functools.cache
def _controller() -> Any:
    return ThreadpoolController()


_lock = threading.Lock()
_depth = 0
_limiter: Any = None


def _take_control() -> None:
    """Let any thread set the limit next.

    From version 3.8 on threadpoolctl ignores all threads but the first one that did; our own lock and count
    keep them from fighting.
    """
    for library in _controller().lib_controllers:
        clear = getattr(library, "clear_controlling_thread", None)
        if clear is not None:
            clear(force=True)


@contextmanager
def single_threaded_blas(active: bool = True) -> Iterator[None]:
    """Run the body with one BLAS thread; the last of several bodies at once gives the threads back."""
    global _depth, _limiter
    if not active:
        yield
        return
    with _lock:
        if _depth == 0:
            _take_control()
            _limiter = _controller().limit(limits=1, user_api="blas")
        _depth += 1
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if _depth == 0:
                _take_control()  # the thread that set the limit need not be the last to leave
                _limiter.restore_original_limits()
                _limiter = None
                _take_control()
