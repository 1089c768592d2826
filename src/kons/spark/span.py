"""One dictionary, and one batch model, of rows on many machines: parts are merged or summed up a tree."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.types import NumericType

from kons.arrays import Matrix
from kons.core.embedding import Embedding
from kons.core.ledger import TOTALS
from kons.core.quadratic import SquareSum
from kons.dictionaries import SQUEAK, merge
from kons.errors import ConfigurationError, InputError
from kons.files import from_bytes, to_bytes
from kons.kernels import Kernel
from kons.keyed.record import pack, unpack
from kons.learners.embedded import EmbeddedKONS
from kons.losses import Squared
from kons.policies import Fixed, Leverage
from kons.spark.session import quoted

__all__ = ["dictionary", "fit_embedded"]

#: How many parts are one at the next level of the tree.
FAN = 4
#: Rows whose coordinates are in memory at once.
BLOCK = 4096


def dictionary(
    frame: DataFrame,
    kernel: Kernel,
    *,
    columns: Sequence[str],
    regularization: float = 1.0,
    policy: Leverage = Leverage(),  # noqa: B008 - frozen
    seed: int = 0,
) -> SQUEAK:
    """A dictionary of all rows: a :class:`~kons.dictionaries.SQUEAK` of each partition, merged up a tree.

    It has the guarantee of one that saw all rows (DISQUEAK). A partition costs what SQUEAK costs over its
    rows; only atoms travel. The same partitions give the same atoms. Columns are numbers without gaps, scaled
    as the kernel expects them.

    References
    ----------
    Calandriello, Lazaric, Valko: Distributed Adaptive Sampling for Kernel Matrix Approximation, AISTATS 2017.
    """
    names = _numbers(frame, columns)
    made = to_bytes(SQUEAK(kernel, regularization=regularization, policy=policy, seed=seed))

    def summed(number: int, blocks: Iterator[Matrix]) -> bytes:
        first = from_bytes(made)
        part = SQUEAK(**first.parameters() | {"seed": _seed(first.seed, number)})
        for X in blocks:
            part.update(X)
        return to_bytes(part)

    def merged(parts: list[bytes]) -> bytes:
        whole, *others = map(from_bytes, parts)
        for other in others:
            whole = merge(whole, other, seed=_seed(whole.seed, other.seed))
        return to_bytes(whole)

    found: SQUEAK = from_bytes(_up_the_tree(frame.select(*names), summed, merged))
    return found


def fit_embedded(
    frame: DataFrame,
    kernel: Kernel,
    *,
    columns: Sequence[str],
    target: str,
    atoms: Any,
    regularization: float = 1.0,
    bound: float | None = None,
) -> EmbeddedKONS:
    """The ridge regression of all rows in the span of the atoms, as a learner that goes on online.

    ::

        A u = 2 sum y z,      A = alpha*I + 2 sum z z^T,      z(x) the coordinates of x in the span

    which is where the second-order update arrives over the same rows. Each partition sums its part of A and
    of the right-hand side, O(B^2) a row; B^2 numbers travel.

    Parameters
    ----------
    frame, kernel, columns:
        As of :func:`dictionary`.
    target:
        The column to predict: numbers.
    atoms:
        Points (B, d), or a dictionary with ``atoms``, such as that of :func:`dictionary`. One that
        lies in the span of those before it, to rounding, is left out.
    regularization:
        alpha.
    bound:
        Of the targets to come; twice the largest so far if not given.
    """
    names = _numbers(frame, [*columns, target])
    points = np.array(getattr(atoms, "atoms", atoms), dtype=np.float64)
    if points.ndim != 2 or not len(points) or points.shape[1] != len(columns):
        raise ConfigurationError(
            f"atoms have the shape {points.shape}, expected points of {len(columns)} columns."
        )
    sent = to_bytes(kernel)

    def summed(number: int, blocks: Iterator[Matrix]) -> bytes:
        span = Embedding(from_bytes(sent))
        span.extend(points)  # as the learner with these atoms does
        S, c, rows, largest = np.zeros((len(span), len(span))), np.zeros(len(span)), 0, 0.0
        for block in blocks:
            for start in range(0, len(block), BLOCK):
                X, y = block[start : start + BLOCK, :-1], block[start : start + BLOCK, -1]
                Z = span.coordinates(np.ascontiguousarray(X))
                S += Z.T @ Z
                c += Z.T @ y
                rows, largest = rows + len(y), max(largest, float(np.abs(y).max()))
        return pack({"S": S, "c": c, "rows": rows, "largest": largest})

    def added(parts: list[bytes]) -> bytes:
        told = [unpack(part) for part in parts]
        return pack(
            {
                "S": sum(one["S"] for one in told),
                "c": sum(one["c"] for one in told),
                "rows": sum(one["rows"] for one in told),
                "largest": max(one["largest"] for one in told),
            }
        )

    total = unpack(_up_the_tree(frame.select(*names), summed, added))
    learner = EmbeddedKONS(
        kernel,
        Squared(),
        bound=2.0 * total["largest"] or 1.0 if bound is None else bound,
        regularization=regularization,
        second_order="hessian",
        policy=Fixed(points),
    )
    A = SquareSum(float(regularization))
    A.extend(len(total["S"]))
    A.S = 2.0 * total["S"]
    A.factor()
    below = np.tril_indices(len(A))
    state = learner.state()
    state["quadratics"][0]["totals"][TOTALS.weighted_trace] = np.trace(A.S)
    state["quadratics"][0] |= {
        "S": A.S[below],
        "L": A.L[below],
        "base": A.whiten(2.0 * total["c"][None]).T.copy(),  # L^T u
        "rows": total["rows"],
    }
    state |= {"rows_seen": total["rows"], "outputs": 0}
    return EmbeddedKONS.from_state(learner.parameters(), state)


def _numbers(frame: DataFrame, columns: Sequence[str]) -> list[Any]:
    types = {field.name: field.dataType for field in frame.schema.fields}
    for name in columns:
        if name not in types:
            raise ConfigurationError(f"columns names {name!r}, and the frame has {', '.join(types)}.")
        if not isinstance(types[name], NumericType):
            raise ConfigurationError(f"column {name!r} is {types[name].simpleString()}, expected numbers.")
    return [F.col(quoted(name)).cast("double").alias(f"c{i}") for i, name in enumerate(columns)]


def _seed(*parts: int) -> int:
    """One of its own for each part and merge: coins must not be tossed twice."""
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:7], "big")


def _up_the_tree(
    frame: DataFrame, summed: Callable[[int, Iterator[Matrix]], bytes], joined: Callable[[list[bytes]], bytes]
) -> bytes:
    """Something of each partition, and of FAN of these at each level, in the order of the partitions.

    Spark's own ``treeReduce`` joins them in the order in which they arrive, which differs from run to run.
    """

    def of_partition(blocks: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        number = TaskContext.get().partitionId()
        filled = (_sound(block.to_numpy(dtype=np.float64)) for block in blocks if len(block))
        first = next(filled, None)
        if first is not None:
            yield pd.DataFrame({"number": [number], "part": [summed(number, _chain(first, filled))]})

    parts = frame.mapInPandas(of_partition, "number long, part binary").rdd.map(
        lambda row: (row.number, bytes(row.part))
    )
    count = parts.getNumPartitions()
    while count > 1:
        count = math.ceil(count / FAN)
        parts = (
            parts.map(lambda part: (part[0] // FAN, part))
            .groupByKey(count)
            .mapValues(lambda group: joined([part for _, part in sorted(group)]))
        )
    found = parts.collect()
    if not found:
        raise ConfigurationError("the frame has no rows.")
    return bytes(found[0][1])


def _sound(rows: Matrix) -> Matrix:
    if not np.isfinite(rows).all():
        raise InputError("a row has a null, NaN or infinity among its columns: leave such rows out (dropna).")
    return rows


def _chain(first: Matrix, rest: Iterator[Matrix]) -> Iterator[Matrix]:
    yield first
    yield from rest
