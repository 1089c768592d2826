"""What the last digits of a run depend on besides its settings: versions, and the number of threads."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version

import kons
from kons.core.threads import blas_threads, set_blas_threads

__all__ = ["blas_threads", "using_threads", "versions"]


@cache
def versions() -> dict[str, str]:
    """Of everything that decides about last digits."""
    return {
        "kons": kons.__version__,
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "scipy", "numba")},
        "platform": f"{sys.platform} {platform.machine()}",
    }


@contextmanager
def using_threads(threads: int) -> Iterator[None]:
    """As many BLAS threads as that: a sum of another number of parts is rounded otherwise."""
    if threads == blas_threads():
        yield
        return
    before = set_blas_threads(threads)
    try:
        yield
    finally:
        set_blas_threads(before)
