"""What the last digits of a run depend on besides its settings: versions, and the number of threads."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version

import threadpoolctl

import kons

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


def blas_threads() -> int:
    """How many threads the BLAS libraries may use."""
    pools = [pool for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"]
    return max((pool["num_threads"] for pool in pools), default=1)


@contextmanager
def using_threads(threads: int) -> Iterator[None]:
    """As many BLAS threads as that: a sum of another number of parts is rounded otherwise."""
    if threads == blas_threads():
        yield
        return
    with threadpoolctl.threadpool_limits(threads, user_api="blas"):
        yield
