"""Eight small problems side by side in compiled loops: a step of all of them is one vector instruction.

A loop over the eight would do, if the compiler knew that what it writes is nowhere what it reads; within one
array it asks, for each eight numbers anew. Here the machine code is made of vectors of eight, which LLVM cuts
into those that a processor has. Each problem is summed in its own order, whatever lies beside it.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import llvmlite.ir as ir  # type: ignore[import-untyped]  # a part of Numba
import numba.extending
import numpy as np
from numba.core import cgutils, types
from numpy.typing import NDArray

from kons.arrays import FLOAT64, Layout

__all__ = ["LANES", "Lanes", "add", "multiply", "subtract_distances", "subtract_products"]

#: Problems side by side: as many float64 as the widest vectors have.
LANES: Final = 8
#: Their numbers, those of all eight side by side.
Lanes = Annotated[NDArray[np.float64], Layout(FLOAT64, 3)]
_VECTOR: Any = ir.VectorType(ir.DoubleType(), LANES)


def _product(builder: Any, left: Any, right: Any) -> Any:
    return builder.fmul(left, right, flags=["contract"])


def _distance(builder: Any, left: Any, right: Any) -> Any:
    kind = ir.FunctionType(_VECTOR, [_VECTOR])
    size = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fabs.v{LANES}f64")  # type: ignore[no-untyped-call]
    return builder.call(size, [builder.fsub(left, right)])


def _subtracting(term: Any) -> Any:
    """In all lanes ``to -= sum_k term(left_k, right_k)``, k = 0, ..., count - 1.

    The first three arguments are addresses (:func:`~kons.compilation.address_of`) of eight numbers each;
    the next of ``left`` are ``step`` bytes behind, those of ``right`` ``other``.
    """

    def subtract(_: Any, to: Any, left: Any, right: Any, step: Any, other: Any, count: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            to, left, right, step, other, count = arguments

            def place(address: Any) -> Any:
                return builder.inttoptr(address, _VECTOR.as_pointer())

            total = cgutils.alloca_once_value(builder, builder.load(place(to), align=8))  # type: ignore[no-untyped-call]
            with cgutils.for_range(builder, count) as loop:
                its = [
                    builder.load(place(builder.add(side, builder.mul(loop.index, behind))), align=8)
                    for side, behind in ((left, step), (right, other))
                ]
                one = term(builder, *its)
                builder.store(builder.fsub(builder.load(total), one, flags=["contract"]), total)
            builder.store(builder.load(total), place(to), align=8)
            return context.get_dummy_value()

        return types.void(*[types.int64] * 6), emit

    return numba.extending.intrinsic(subtract)


def _setting(term: Any) -> Any:
    """In all lanes ``to = term(left, right)``, of addresses of eight numbers each."""

    def assign(_: Any, to: Any, left: Any, right: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            to, left, right = (builder.inttoptr(address, _VECTOR.as_pointer()) for address in arguments)
            its = (builder.load(side, align=8) for side in (left, right))
            builder.store(term(builder, *its), to, align=8)
            return context.get_dummy_value()

        return types.void(*[types.int64] * 3), emit

    return numba.extending.intrinsic(assign)


add: Any = _setting(lambda builder, left, right: builder.fadd(left, right))
multiply: Any = _setting(lambda builder, left, right: builder.fmul(left, right))
subtract_products: Any = _subtracting(_product)
subtract_distances: Any = _subtracting(_distance)
