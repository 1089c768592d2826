"""Compiled loops: Numba, cached on disk where it can be, announced where they take time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba.core import event

from kons.errors import announce

__all__ = ["compiled", "compiled_sums"]

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


class _Announcer(event.Listener):
    """Says once that a pause is a compilation. Code loaded from the disk cache raises no event."""

    def __init__(self) -> None:
        self.told = False

    def on_start(self, event: Any) -> None:
        module = event.data["dispatcher"].py_func.__module__
        if not self.told and module.startswith("kons."):
            self.told = True
            announce("kons: compiling its numerical loops, once per installation (a few seconds) ...")

    def on_end(self, event: Any) -> None:
        pass


event.register("numba:compile", _Announcer())  # type: ignore[no-untyped-call]
