"""When what happens: rows are learned in chunks, and at the end of some of them more is done.

::

    chunks      4, 8, 16, 32 and 64 rows; then 64 each, from 1024 rows on 128
    refits      of experts that learn in batches: every 64 rows, from 512 on 128, from 1024 on 256, then 512
    pruning     at 512, 1024 and 2048 rows, then every 4096
    recall      of experts of a series that were pruned: every 512 rows, if all of them were; else at
                8704, 26112, 78336, ...
    selection   at powers of two up to 1024, and at 4096: feature maps, and experts in them; from 512 on
                part by part in the chunks after it, lest one row wait for all
    followed    where the stream moves, every 2048 rows: the feature maps that short memories share
"""

from __future__ import annotations

__all__ = [
    "CHUNK",
    "EARLY",
    "LATE",
    "LONGEST",
    "SETTLED",
    "chunk_before",
    "doubled",
    "fits",
    "follows",
    "is_selection_step",
    "last_step",
    "may_recall",
    "may_recall_some",
    "next_boundary",
    "prunes",
    "refits",
    "searches_on",
    "seeks_others",
]

#: Rows in a chunk of the first thousand, and in the longest: then a call's own cost counts more.
CHUNK, LONGEST = 64, 128
#: From here on chunks are long and less is tried.
SETTLED = 1024
#: From here on some rows more or less no longer matter: experts with an endless memory learn at the end of
#: chunks, and those of a series may be pruned, and come back.
EARLY = 512
#: The last selection; from here on experts without a memory are pruned, too.
LATE = 4096
# Rows of the first chunk: what a line through some rows predicts is better than their mean.
FIRST = 4


def next_boundary(rows: int, longest: int = LONGEST) -> int:
    """Where the chunk that the next row belongs to ends, if none is longer than a power of two.

    >>> [next_boundary(rows) for rows in (0, 4, 63, 64, 1023, 1024)]
    [4, 8, 64, 128, 1024, 1152]
    >>> [next_boundary(rows, longest=16) for rows in (0, 4, 15, 16, 1024)]
    [4, 8, 16, 32, 1040]
    """
    if rows < FIRST:
        return FIRST
    length = min(CHUNK if rows < SETTLED else LONGEST, longest)
    if rows < length:
        return 1 << rows.bit_length()
    return (rows // length + 1) * length


def chunk_before(boundary: int, longest: int = LONGEST) -> int:
    """The rows of the chunk that ends there.

    >>> [chunk_before(boundary) for boundary in (4, 8, 64, 128, 1024, 1152)]
    [4, 4, 32, 64, 64, 128]
    >>> [chunk_before(boundary, longest=16) for boundary in (4, 8, 16, 32, 1040)]
    [4, 4, 8, 16, 16]
    """
    length = min(CHUNK if boundary <= SETTLED else LONGEST, longest)
    if boundary <= length:
        return boundary if boundary == FIRST else boundary // 2
    return length


def refits(rows: int) -> bool:
    """Whether experts that do not follow every row are fitted anew at this boundary.

    >>> boundaries = [4, 8, *range(64, 6000, 64)]
    >>> fitted = [rows for rows in boundaries if refits(rows)]
    >>> [after - before for before, after in zip(fitted, fitted[1:]) if before in (4, 64, 512, 1024, 2048)]
    [4, 64, 128, 256, 512]
    """
    period = CHUNK
    while 2 * period <= min(rows // 4, 8 * CHUNK):
        period *= 2
    return rows < CHUNK or rows % period == 0


def doubled(rows: int) -> bool:
    """Whether this is a power of two, from the first chunk's end on."""
    return rows >= FIRST and rows & (rows - 1) == 0


def prunes(rows: int) -> bool:
    """Whether experts that add nothing may leave.

    >>> [rows for rows in range(1, 13_000) if prunes(rows)]
    [512, 1024, 2048, 4096, 8192, 12288]
    """
    return rows % LATE == 0 or (rows >= EARLY and doubled(rows))


def may_recall(rows: int) -> bool:
    """Whether experts of a series that left may come back."""
    return rows % EARLY == 0


def may_recall_some(rows: int) -> bool:
    """Whether those may come back, too, that left while others of a series stayed.

    Seldom, for drift alone does not say that they are of use; never where pruning is due, too.

    >>> [rows for rows in range(512, 100_000, 512) if may_recall_some(rows)]
    [8704, 26112, 78336]
    """
    while rows > 17 * EARLY and rows % 3 == 0:
        rows //= 3
    return rows == 17 * EARLY


def is_selection_step(rows: int) -> bool:
    """Whether a selection step is due after so many rows: the last one while all rows are kept.

    >>> [rows for rows in range(600, 40000) if is_selection_step(rows)]
    [1024, 4096]
    """
    return doubled(rows) and (rows <= SETTLED or rows == LATE)


def seeks_others(rows: int) -> bool:
    """Whether the other feature maps are due: of the scaling that is not the better one, and of last targets.

    >>> [rows for rows in range(200, 40000) if seeks_others(rows)]
    [256, 576, 1152, 4224]
    """
    return _chunks_after_selection(rows) == (1 if rows >= EARLY else 0)


def fits(rows: int, number: int) -> bool:
    """Whether the expert with this number among all is due to be fitted.

    Before 512 rows that is soon done; then by twos in a chunk, in turns of four chunks, and from 4096 on of
    seven, so that the dearest come apart.

    >>> [[rows for rows in range(200, 40000) if fits(rows, number)] for number in (0, 3, 9)]
    [[256, 576, 1152, 4224], [256, 640, 1280, 4352], [256, 576, 1152, 4736]]
    """
    turn = number // 2 % (7 if rows >= LATE else 4)
    return _chunks_after_selection(rows) == (1 + turn if rows >= EARLY else 0)


def searches_on(rows: int, number: int) -> bool:
    """Whether neighbours with this number go on with their search: every 512 rows from their fit on.

    >>> [[rows for rows in range(1, 5121) if searches_on(rows, number)] for number in (3, 7)]
    [[1792, 2304, 2816, 3328, 3840, 4864], [2048, 2560, 3072, 3584, 5120]]
    """
    chunks, left = divmod(rows, LONGEST)
    due = rows > SETTLED and not left and (chunks - 1 - number // 2) % 4 == 0
    return due and not (is_selection_step(rows) or fits(rows, number))


def follows(rows: int, *, lags: bool) -> bool:
    """Whether the feature map of short memories may follow a stream that moves; with last targets or without.

    Not soon after a selection, and in chunks in which little else is due.

    >>> [[rows for rows in range(9000) if follows(rows, lags=lags)] for lags in (False, True)]
    [[1664, 3712, 5760, 7808], [2688, 6784, 8832]]
    """
    due = (rows - 5 * LONGEST) % (2 * SETTLED) == (0 if lags else SETTLED)
    return due and rows > SETTLED and not LATE < rows <= LATE + 7 * LONGEST


def last_step(rows: int) -> int:
    """The latest selection step, from 512 rows on.

    >>> [last_step(rows) for rows in (512, 4095, 40000)]
    [512, 1024, 4096]
    """
    return LATE if rows >= LATE else min(SETTLED, 1 << rows.bit_length() - 1)


def _chunks_after_selection(rows: int) -> int:
    """0 at a selection step; -1 at what is no end of a chunk."""
    if rows < EARLY:
        return 0 if is_selection_step(rows) else -1
    step = last_step(rows)
    chunks, left = divmod(rows - step, CHUNK if step < SETTLED else LONGEST)
    return -1 if left else chunks
