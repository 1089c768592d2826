"""What becomes of dicts, written down as slowly as can be: numbers and text, of fewer than 500 rows.

Shares nothing with the encoder but the description of it.
"""

import numpy as np


def is_gap(value):
    return value is None or value != value


def kind(value):
    return "text" if isinstance(value, str) else "number"


class Naive:
    """Rows one by one: ``encode``, then ``learn``, which tells what earlier rows have in what joined."""

    def __init__(self):
        self.places = []  # (column, role)
        self.kinds = {}
        self.past = {}  # column -> values so far, gaps among them
        self.order = {}  # text column -> levels with an indicator
        self.room = {}

    def encode(self, x):
        if not self.places:
            self._join(x, late=False)
            self.places = self.places or [(None, "nothing")]  # a row without any value: one column, always 0
        return np.array([self._feature(x.get(name), name, role) for name, role in self.places])

    def learn(self, x):
        """What earlier rows have in features that join behind this one."""
        earlier = []
        for name in list(self.kinds):
            value = x.get(name)
            self.past[name].append(None if is_gap(value) else value)
            if self.kinds[name] == "number":
                if is_gap(value) and (name, "missing") not in self.places:
                    self.places.append((name, "missing"))
                    earlier.append(0.0)
                continue
            level = self.past[name][-1]
            if self.past[name].count(level) >= 2 and level not in self.order[name]:
                self.order[name].append(level)
                if len(self.order[name]) > self.room[name]:
                    more = self.room[name]
                    self.places += [(name, place) for place in range(more, 2 * more)]
                    earlier += [0.0] * more
                    self.room[name] = 2 * more
        earlier += self._join({name: v for name, v in x.items() if name not in self.kinds}, late=True)
        return earlier

    def _join(self, x, late):
        earlier = []
        there = {name: value for name, value in x.items() if not is_gap(value)}
        for name in sorted(there, key=lambda name: (kind(there[name]), name)):
            self.kinds[name] = kind(there[name])
            self.past[name] = [there[name]] if late else []
            if self.kinds[name] == "number":
                self.places += [(name, "value"), (name, "missing")] if late else [(name, "value")]
                earlier += [there[name], 1.0] if late else [there[name]]
            else:
                self.order[name], self.room[name] = [], 4
                self.places += [(name, place) for place in range(4)]
                earlier += [0.0] * 4
        return earlier

    def _feature(self, value, name, role):
        gap = is_gap(value)
        if role == "nothing":
            return 0.0
        if role == "missing":
            return float(gap)
        if role == "value":
            known = [v for v in self.past[name] if v is not None]
            return sum(known) / max(len(known), 1) if gap else float(value)
        order = self.order[name]
        level = None if gap else value
        return float(level in order and order.index(level) == role)


def played(core, rows, targets):
    """The predictions of a learner of numbers, before each row that it is taught, encoded the naive way."""
    naive, out = Naive(), []
    for x, y in zip(rows, targets, strict=False):
        row = naive.encode(x)
        out.append(core.predict_one(row))
        core.learn_one(row, y)
        if earlier := naive.learn(x):
            core.widen(len(earlier), [earlier])
    return out
