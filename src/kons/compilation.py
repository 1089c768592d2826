"""Compiled loops: Numba, cached on disk where it can be, announced where they take time, and never counted.

What a row costs must not depend on whether an installation is new: clocks that time learning are
:func:`wall_clock` and :func:`cpu_clock`, which stand still while Numba compiles.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar, cast

import numba
import numba.extending
from numba.core import event

from kons.errors import announce

__all__ = ["compiled", "compiled_sums", "cpu_clock", "matrix_at", "wall_clock"]

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile a loop over float64 arrays; the machine code is kept on disk for the next process.

    A read-only installation with a read-only home has nowhere to keep it: it is then compiled anew
    in each process. The GIL is released, so that predictions from several threads overlap.
    """
    return _compile(function)


def compiled_sums(function: Function) -> Function:
    """As :func:`compiled`, for scalar products: sums may be reordered, so that they vectorize.

    The order is fixed by the machine code: the same arrays give the same bits.
    """
    return _compile(function, fastmath={"reassoc", "contract", "nsz"})


def _compile(function: Function, **options: Any) -> Function:
    options |= {"nogil": True, "error_model": "numpy"}
    try:
        return cast(Function, numba.njit(cache=True, **options)(function))
    except RuntimeError:  # Numba found no place for its cache
        return cast(Function, numba.njit(**options)(function))


@numba.extending.intrinsic
def _numbers_at(_: Any, address: Any) -> Any:
    kind = numba.types.CPointer(numba.types.float64)  # type: ignore[no-untyped-call]

    def convert(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(kind))

    return kind(numba.types.int64), convert


@compiled
def matrix_at(address: int, rows: int, columns: int) -> Any:
    """The contiguous array of float64 that begins at an address (``array.ctypes.data``); in loops only.

    For loops over many arrays of many sizes, which would otherwise be as many arguments. Whoever wrote the
    address down keeps the array alive.
    """
    return numba.carray(_numbers_at(address), (rows, columns))  # type: ignore[attr-defined, call-arg]


class _Compilations(event.Listener, threading.local):
    """Says once that a pause is a compilation, and takes its time; code from the disk cache is none.

    Each thread has its own time: others go on meanwhile.
    """

    told: ClassVar[bool] = False

    def __init__(self) -> None:
        self.depth = 0  # one function's compilation may begin another's
        self.began = self.cpu_began = 0.0
        self.seconds = self.cpu_seconds = 0.0

    def on_start(self, event: Any) -> None:
        module = event.data["dispatcher"].py_func.__module__
        if not _Compilations.told and module.startswith("kons."):
            _Compilations.told = True
            announce("kons: compiling its numerical loops, once per installation (a few seconds) ...")
        if self.depth == 0:
            self.began, self.cpu_began = time.perf_counter(), time.process_time()
        self.depth += 1

    def on_end(self, event: Any) -> None:
        self.depth -= 1
        if self.depth == 0:
            self.seconds += time.perf_counter() - self.began
            self.cpu_seconds += time.process_time() - self.cpu_began


_compilations = _Compilations()
event.register("numba:compile", _compilations)  # type: ignore[no-untyped-call]


def wall_clock() -> float:
    """A clock as :func:`time.perf_counter`, less the time that this thread has spent compiling."""
    return time.perf_counter() - _compilations.seconds


def cpu_clock() -> float:
    """As :func:`wall_clock`, of :func:`time.process_time`."""
    return time.process_time() - _compilations.cpu_seconds
