"""A stream read to its end, for tests."""

import numpy as np


def whole(stream, start=0):
    """X, y and lines of all rows; the blocks must be what they promise on the way."""
    expected, blocks = start, []
    for block in stream.blocks(start):
        size = stream.block_size
        assert block.first == expected
        assert (block.first + len(block.y)) // size <= block.first // size + 1
        assert block.X.dtype == np.float64
        assert block.X.flags.c_contiguous
        assert block.X.flags.owndata
        assert block.X.shape == (len(block.y), len(stream.features))
        assert block.y.dtype == (np.float64 if stream.task == "regression" else object)
        assert block.lines.dtype == np.int64
        assert len(block.lines) == len(block.y) > 0
        expected += len(block.y)
        blocks.append(block)
    return (
        np.concatenate([block.X for block in blocks]),
        np.concatenate([block.y for block in blocks]),
        np.concatenate([block.lines for block in blocks]),
    )
