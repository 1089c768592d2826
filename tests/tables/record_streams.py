"""Records as hypothesis and hands make them: gaps, late columns, levels, dates, kinds that change."""

import datetime

import numpy as np
from hypothesis import strategies as st

from kons.tables import Encoder, records_of

START = datetime.datetime(2024, 2, 27, 22)

NUMBERS = st.one_of(
    st.floats(-1e6, 1e6), st.integers(-3, 3), st.sampled_from([0.0, 0.0, 0.0, 1.0, 1.7e308, -1.7e308])
)
TEXTS = st.one_of(st.sampled_from(["red", "green", "blue"]), st.integers(0, 30).map("level {}".format))
DATES = st.integers(0, 4000).map(lambda hours: START + datetime.timedelta(hours=hours))
GAPS = st.sampled_from([None, float("nan")])
VALUES = {
    "a": NUMBERS,
    "b": st.one_of(NUMBERS, NUMBERS, NUMBERS, GAPS),
    "flag": st.booleans(),
    "word": st.one_of(TEXTS, TEXTS, TEXTS, GAPS),
    "when": st.one_of(DATES, DATES, DATES, GAPS),
    "odd": st.one_of(NUMBERS, TEXTS, GAPS),
}


@st.composite
def records(draw, rows=45):
    """Dicts; each column may come late, and be left out now and then."""
    first = {name: draw(st.sampled_from([0, 0, 0, 1, 7, 30])) for name in VALUES}
    return [
        {
            name: draw(values)
            for name, values in VALUES.items()
            if first[name] <= row and draw(st.integers(0, 5))
        }
        for row in range(draw(st.integers(1, rows)))
    ]


def mixed(rows, seed, levels=90):
    """A long stream by a generator: enough rows for looks at levels, and more levels than indicators."""
    rng = np.random.default_rng(seed)
    out = []
    for row in range(rows):
        x = {
            "a": float(rng.normal()),
            "mostly": float(rng.integers(1, 6)) if rng.random() < 0.4 else 0.0,
            "word": f"level {int(levels * rng.random() ** 2)}",
            "when": START + datetime.timedelta(hours=int(rng.integers(10000))),
        }
        if row >= 40:
            x["late"] = float(rng.normal()) if rng.random() < 0.5 else None
        if row >= 55:
            x["late word"] = str(rng.choice(["p", "q"]))
        out.append({name: value for name, value in x.items() if rng.random() < 0.9})
    target = [x.get("a", 0.0) + float(len(x.get("word", ""))) + 3.0 * (x.get("mostly") == 2.0) for x in out]
    return out, target


def taught(encoder, rows, targets, sizes):
    """All rows in blocks of these sizes, again and again: what each row became, and what joined."""
    found, start, i = [], 0, 0
    while start < len(rows):
        stop = start + sizes[i % len(sizes)]
        for piece in encoder.learn(records_of(rows[start:stop]), targets[start:stop]):
            found += [row.tobytes() for row in piece.X]
            if piece.growth is not None:
                found.append((piece.growth.columns, piece.growth.earlier.tobytes()))
        start, i = stop, i + 1
    return found


def taught_singly(encoder, rows, targets):
    """As :func:`taught`, one dict at a time, the quick way wherever there is one; and how often there was."""
    found, quick = [], 0
    for i, (x, y) in enumerate(zip(rows, targets, strict=True)):
        if i % 2 and encoder.width:
            encoder.look_one(x)  # as before each row of a stream that is predicted
        reading = encoder.read_one(x, y)
        if reading is None:
            found += taught(encoder, [x], [y], [1])
            continue
        quick += 1
        assert encoder.look_one(x).tobytes() == reading.row.tobytes()
        assert encoder.look(records_of(x)).tobytes() == reading.row.tobytes()
        encoder.learn_one(reading, y)
        found.append(reading.row.tobytes())
    return found, quick


def made(**given):
    return Encoder(**given)
