"""BLAS threads: one for small products, all of them only where the matrices are large.

On blocks this small, two BLAS threads that compete for a busy core run many times slower than one.
The limit is a property of the process, so only block replay sets it; predictions and the row loop
never do, which keeps them safe from several threads. In a second thread threadpoolctl (3.8) ignores the
limit, and rightly: OpenBLAS may hang if it changes while another thread is inside a product. Who learns in
worker threads should set OPENBLAS_NUM_THREADS=1.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["blas_has_threads", "single_threaded_blas"]


@functools.cache
def _controller() -> Any:
    return ThreadpoolController()


def blas_has_threads() -> bool:
    """Whether there is anything to limit: to ask takes 1 us, to limit 10."""
    return any(each.get_num_threads() != 1 for each in _blas())


@functools.cache
def _blas() -> list[Any]:
    return [each for each in _controller().lib_controllers if each.user_api == "blas"]


_lock = threading.Lock()
_depth = 0
_limiter: Any = None


@contextmanager
def single_threaded_blas(active: bool = True) -> Iterator[None]:
    """Run the body with one BLAS thread; the last of several bodies at once gives the threads back."""
    global _depth, _limiter
    if not active:
        yield
        return
    with _lock:
        if _depth == 0 and blas_has_threads():
            _limiter = _controller().limit(limits=1, user_api="blas")
        _depth += 1
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if _depth == 0 and _limiter is not None:
                _limiter.restore_original_limits()
                _limiter = None
