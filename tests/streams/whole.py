"""A stream read to its end, and the encoder said once more by hand, for tests."""

import math

import numpy as np


def whole(stream, start=0, **options):
    """X, y and lines of all rows; the blocks must be what they promise on the way.

    Features that join behind a block stand in the rows before as the block says.
    """
    expected, X = start, None
    y, lines = [], []
    for block in stream.blocks(start, **options):
        size = stream.block_size
        assert block.first == expected
        assert (block.first + len(block.y)) // size <= block.first // size + 1
        assert block.X.dtype == np.float64
        assert block.X.flags.c_contiguous
        assert block.X.flags.owndata
        assert np.isfinite(block.X).all()
        assert block.y.dtype == (np.float64 if stream.task == "regression" else object)
        assert block.lines.dtype == np.int64
        assert len(block.lines) == len(block.y) == len(block.X) > 0
        expected += len(block.y)
        X = block.X if X is None else np.concatenate([X, block.X])
        if block.growth is not None:
            assert len(block.growth.earlier) == block.growth.columns > 0
            X = np.column_stack([X, np.tile(block.growth.earlier, (len(X), 1))])
        y.append(block.y)
        lines.append(block.lines)
    assert X.shape[1] == len(stream.features)
    return X, np.concatenate(y), np.concatenate(lines)


def by_name(stream, start=0, **options):
    """The columns of X by name."""
    X = whole(stream, start, **options)[0]
    return dict(zip(stream.features, X.T, strict=True))


def indicators(texts):
    """A column of text, up to 64 frequent levels: 1 where the row's own level has come twice before it."""
    out, seen = {text: np.zeros(len(texts)) for text in texts}, {}
    for t, text in enumerate(texts):
        out[text][t] = float(seen.get(text, 0) >= 2)
        seen[text] = seen.get(text, 0) + 1
    return {text: column for text, column in out.items() if seen[text] >= 2}


def waves(moments):
    """A column of moments: days since the first, sine and cosine of what varies in day, week and year.

    What does not vary in the first 1,000 rows is a feature behind the row where it does: up to there all rows
    are as the first.
    """
    stamps = np.array(moments, dtype="datetime64[us]")
    days = (stamps - stamps[0]) / np.timedelta64(1, "D")
    midnight = stamps.astype("datetime64[D]")
    year = stamps.astype("datetime64[Y]")
    begin, end = year.astype("datetime64[D]"), (year + 1).astype("datetime64[D]")
    parts = {
        "hour": (stamps - midnight) / np.timedelta64(1, "D"),
        "weekday": np.array([moment.weekday() for moment in midnight.tolist()]) / 7,
        "yearday": (stamps - begin) / (end - begin),
    }
    out = {"days": days}
    for part, phase in parts.items():
        if (phase != phase[0]).any():
            first = (phase != phase[0]).argmax()
            known = np.where((first < 1000) | (np.arange(len(phase)) > first), phase, phase[0])
            angle = 2 * math.pi * known
            out |= {f"{part} sin": np.sin(angle), f"{part} cos": np.cos(angle)}
    return out
