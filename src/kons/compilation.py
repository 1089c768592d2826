"""Compiled loops: Numba, with one signature each, compiled in one go, cached on disk, and never counted.

A loop's annotations are its signature: ``int``, ``float`` and ``bool``, the arrays of :mod:`kons.arrays` and
the records of :mod:`kons.core.ledger`. A call converts what needs no copy (an ``int`` where a ``float`` is
asked for, a writable array where one is only read) and refuses all else: an array in another memory order
would ask for machine code of its own, a second of compiling, so callers hand in contiguous ones.

Where the first loop that is called is not on disk yet, all of the library are compiled then: later learners,
tasks and delays wait for nothing. What a row costs must not depend on whether an installation is new: clocks
that time learning are :func:`wall_clock` and :func:`cpu_clock`, which stand still while Numba compiles, or
reads what it compiled.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, TypeVar, cast, get_args, get_origin, get_type_hints

import numba
import numba.extending
from numba.core import cgutils, config, event, types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher

from kons.arrays import FLOAT32, FLOAT64, Layout
from kons.errors import announce

__all__ = [
    "Loop",
    "address_of",
    "compile_all",
    "compiled",
    "compiled_at_once",
    "compiled_sums",
    "cpu_clock",
    "inlined",
    "inner",
    "inner_sums",
    "matrix_at",
    "move_numbers",
    "pointer_to",
    "singles_at",
    "wall_clock",
]

Function = TypeVar("Function", bound=Callable[..., Any])

#: Where there are compiled loops. Named, because looking for them would import all of the library.
MODULES = (
    "kons.core.budget",
    "kons.core.descent",
    "kons.core.embedding",
    "kons.core.entry",
    "kons.core.exponential",
    "kons.core.factor",
    "kons.core.feature_maps",
    "kons.core.leverage",
    "kons.core.one_row",
    "kons.core.quadratic_loops",
    "kons.core.replay",
    "kons.core.residual_scale",
    "kons.evaluation.intervals",
    "kons.evaluation.second_order",
    "kons.kernels.distances",
    "kons.learners.auto.calibration",
    "kons.learners.auto.doubts",
    "kons.learners.auto.kriging_in_lanes",
    "kons.learners.auto.nearest",
    "kons.learners.auto.neighbours",
    "kons.learners.auto.quantile_scaling",
    "kons.learners.auto.row_loops",
    "kons.learners.auto.stacking",
    "kons.learners.predictive",
    "kons.learners.units",
    "kons.learners.watch",
    "kons.losses.builtin",
    "kons.scaling",
    "kons.tables.levels",
)
# Lines that tell how far it is, on a terminal.
PARTS = 5
# Every loop that was imported, and that Python calls.
_loops: list[Loop] = []
# What sums may be done to.
SUMS = {"reassoc", "contract", "nsz"}


def compiled(function: Function) -> Function:
    """Compile a loop for the types of its annotations; the machine code is kept on disk.

    A read-only installation with a read-only home has nowhere to keep it: it is then compiled anew
    in each process. The GIL is released, so that predictions from several threads overlap.
    """
    return _loop(function)


def compiled_sums(function: Function) -> Function:
    """As :func:`compiled`, for scalar products: sums may be reordered, so that they vectorize.

    The order is fixed by the machine code, so that the same numbers give the same bits, if a loop that sums
    writes no array: else the machine code asks at run time whether the arrays lie apart, and sums one by one
    where small ones are neighbours in memory.
    """
    return _loop(function, fastmath=SUMS)


def compiled_at_once(function: Function) -> Function:
    """As :func:`compiled_sums`, and no other thread runs meanwhile: a short step, without a lock."""
    return _loop(function, fastmath=SUMS, nogil=False)


def inner(function: Function) -> Function:
    """As :func:`compiled`, for what only loops call, whose machine code it is in.

    So there is nothing that takes Python's objects apart, and nothing on disk.
    """
    return _loop(function, Inner)


def inner_sums(function: Function) -> Function:
    """As :func:`compiled_sums`, for what only loops call: see :func:`inner`."""
    return _loop(function, Inner, fastmath=SUMS)


def inlined(function: Function) -> Function:
    """For what few loops call, and calls much itself: written into them, where it is compiled as they are.

    Else all that it calls would be optimized once more, for it alone.
    """
    inlines: Any = numba.njit(inline="always")
    return function if config.DISABLE_JIT else inlines(function)  # type: ignore[attr-defined]


def _loop(function: Function, kind: Any = None, **options: Any) -> Function:
    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        return function
    # Nobody calls the loops from C: a wrapper less to compile.
    options = {"nogil": True} | options
    options |= {"nopython": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    if kind is Inner:
        return cast(Function, Inner(function, targetoptions={**options, "no_cpython_wrapper": True}))
    loop = Loop(function, targetoptions=options)
    with contextlib.suppress(RuntimeError):  # Numba found no place for its cache
        loop.enable_caching()
    _loops.append(loop)
    return cast(Function, loop)


class Loop(CPUDispatcher):
    """A function that is compiled for the types of its annotations, and for no others, when it is called."""

    def declared(self) -> tuple[types.Type, ...]:
        """The types of the arguments."""
        hints = get_type_hints(self.py_func, include_extras=True)
        hints.pop("return", None)
        return tuple(_numba_type(hint) for hint in hints.values())

    def load(self) -> None:
        """Take the machine code from the disk, or compile it."""
        with global_compiler_lock, _compilations:
            if not self.signatures:
                self.compile(self.declared())
                self.disable_compile()  # from now on Numba converts arguments, or refuses them

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Numba asks for this where another loop calls this one."""
        self.load()
        return super().get_call_template(args, kws)

    def _compile_for_args(self, *args: Any, **kws: Any) -> Any:
        # Numba asks for this where Python calls and nothing was compiled, and calls what is returned.
        self.load()
        # With no place to keep the machine code, others' would be compiled in each process for nothing.
        if self.stats.cache_misses and self.stats.cache_path is not None:
            compile_all()
        return self

    def _explain_matching_error(self, *args: Any, **_: Any) -> None:
        # Numba asks for this where an argument neither fits nor can be converted.
        given = ", ".join(str(self.typeof_pyval(argument)) for argument in args)
        expected = ", ".join(str(kind) for kind in self.declared())
        name = f"{self.py_func.__module__}.{self.py_func.__name__}"
        raise TypeError(
            f"{name} was given ({given}), expected ({expected}). Likely causes: (a) an array in Fortran "
            "order, or with gaps: np.ascontiguousarray; (b) a read-only one; (c) another dtype."
        )


class Inner(Loop):
    """A loop that only loops call."""

    def __call__(self, *args: Any, **kws: Any) -> Any:
        """There is no machine code that Python could call."""
        name = f"{self.py_func.__module__}.{self.py_func.__name__}"
        raise TypeError(
            f"{name} was called from Python, expected a compiled loop: see kons.compilation.inner."
        )


def _numba_type(hint: Any) -> types.Type:
    plain = {int: types.int64, float: types.float64, bool: types.boolean}
    if hint in plain:
        return plain[hint]
    if hasattr(hint, "_fields"):  # a NamedTuple: one argument instead of many
        kinds = [_numba_type(each) for each in get_type_hints(hint, include_extras=True).values()]
        return types.BaseTuple.from_types(kinds, hint)  # type: ignore[no-untyped-call, no-any-return]
    if get_origin(hint) is tuple:
        return types.Tuple([_numba_type(each) for each in get_args(hint)])  # type: ignore[no-untyped-call]
    (layout,) = (given for given in getattr(hint, "__metadata__", ()) if isinstance(given, Layout))
    # NumPy's own memory is aligned, and so is what came through kons.arrays.
    return types.Array(numba.from_dtype(layout.dtype), layout.dimensions, "C", readonly=layout.read_only)


def compile_all() -> list[Loop]:
    """Compile every loop that is not on disk yet, and load the others; returns them."""
    with _compilations, _no_collections():
        for module in MODULES:
            importlib.import_module(module)
        step = max(len(_loops) // PARTS, 1)
        for done, loop in enumerate(_loops):
            if done and done % step == 0 and _compilations.told and sys.stderr.isatty():
                announce(f"kons: compiling its numerical loops: {done} of {len(_loops)} ...")
            loop.load()
    return list(_loops)


@contextlib.contextmanager
def _no_collections() -> Iterator[None]:
    """Numba makes a million objects that stay: looking for garbage among them is a twelfth of its time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _pointer_to(_: Any, address: Any) -> Any:
    kind = numba.types.voidptr

    def convert(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(kind))

    return kind(numba.types.int64), convert


#: An address (:func:`address_of`) as ``numba.carray`` takes it; in loops only.
pointer_to: Any = numba.extending.intrinsic(_pointer_to)


def _move_numbers(_: Any, to: Any, source: Any, count: Any) -> Any:
    def move(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = context.get_value_type(types.voidptr)
        to, source = (builder.inttoptr(address, pointer) for address in arguments[:2])
        copied = builder, to, source, arguments[2], FLOAT64.itemsize
        cgutils.raw_memmove(*copied)  # type: ignore[no-untyped-call]
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), move


#: Move so many float64 from an address to another, which may overlap, in loops only: a loop over them one by
#: one takes three times as long, as Numba cannot know that their places are none from the end.
move_numbers: Any = numba.extending.intrinsic(_move_numbers)


@inner
def matrix_at(address: int, rows: int, columns: int) -> Any:
    """The contiguous array of float64 that begins at an address (:func:`address_of`); in loops only.

    For loops over many arrays of many sizes, which would otherwise be as many arguments. Whoever wrote the
    address down keeps the array alive.
    """
    return numba.carray(pointer_to(address), (rows, columns), FLOAT64)  # type: ignore[attr-defined]


@inner
def singles_at(address: int, rows: int, columns: int) -> Any:
    """As :func:`matrix_at`, of float32."""
    return numba.carray(pointer_to(address), (rows, columns), FLOAT32)  # type: ignore[attr-defined]


def address_of(array: Any) -> int:
    """Where an array begins in memory."""
    address: int = array.ctypes.data  # the interface of an array of records would take 50 us
    return address


class _Compilations(event.Listener, threading.local):
    """Says once that a pause is a compilation, which code from the disk cache is not; takes the time of both.

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
            announce("kons: compiling its numerical loops, once per installation (half a minute) ...")
        self.__enter__()

    def on_end(self, event: Any) -> None:
        self.__exit__()

    def __enter__(self) -> None:
        if self.depth == 0:
            self.began, self.cpu_began = time.perf_counter(), time.process_time()
        self.depth += 1

    def __exit__(self, *_: object) -> None:
        self.depth -= 1
        if self.depth == 0:
            self.seconds += time.perf_counter() - self.began
            self.cpu_seconds += time.process_time() - self.cpu_began


_compilations = _Compilations()
event.register("numba:compile", _compilations)  # type: ignore[no-untyped-call]


def wall_clock() -> float:
    """A clock as :func:`time.perf_counter`, less the time that this thread has spent compiling or loading."""
    return time.perf_counter() - _compilations.seconds


def cpu_clock() -> float:
    """As :func:`wall_clock`, of :func:`time.process_time`."""
    return time.process_time() - _compilations.cpu_seconds
