"""Rows and labels as they arrive at a service: labelled late and out of order, or learned at once."""

import numpy as np


def rows(count, seed, *, labels=False):
    """Records with numbers, a text column and gaps, and their targets."""
    random = np.random.default_rng(seed)
    for _ in range(count):
        a, b, c = float(random.normal()), float(random.normal()), "uvw"[random.integers(3)]
        gap = random.random() < 0.05
        x = {"a": a, "b": b, "c": c, "d": None if gap else float(random.uniform())}
        y = 2.0 * a + float(np.sin(3.0 * b)) + (c == "u")
        yield x, ("hi" if y > 0.0 else "lo") if labels else y


def arrivals(count, seed, *, labels=False, keys=0):
    """(kind, body) of requests: every label once, in an order of its own; some never come."""
    random = np.random.default_rng(seed + 1)
    waiting = []
    for i, (x, y) in enumerate(rows(count, seed, labels=labels)):
        if keys:
            x["key"] = f"k{random.integers(keys)}"
        if random.random() < 0.2:
            yield "learn", {"id": f"learned {i}", "x": x, "y": y}
        else:
            yield "predict", {"id": i, "x": x}
            if random.random() < 0.9:
                waiting.append({"id": i, "y": y})
        while waiting and random.random() < 0.6:
            yield "label", waiting.pop(random.integers(len(waiting)))
