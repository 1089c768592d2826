"""Compiles the numerical loops once, for all processes that run the tests: ``make test`` begins with it.

Two processes that start with an empty cache would each compile everything. A loop that is not met here is
compiled by the first test that needs it.
"""

from __future__ import annotations

import logging

import numpy as np
from numba.core import event

from contracts.learners import LEARNERS, stream
from kons import KORS, AutoKONS, Gaussian, Matern, Squared
from kons.evaluation import KernelGradientDescent, Prequential

ROWS = 150


class Dots(event.Listener):
    """A dot for each loop, so that something moves."""

    def on_start(self, event):
        pass

    def on_end(self, event):
        print(".", end="", flush=True)


def learn(learner, X, y):
    learner.advance(X[:-9], y[:-9])
    for x, target in zip(X[-9:], y[-9:], strict=True):
        learner.predict_one(x)
        learner.learn_one(x, target)
    learner.predict(X)


def main():
    logging.getLogger("kons").propagate = False  # which says the same in words
    logging.getLogger("kons").addHandler(logging.NullHandler())
    event.register("numba:compile", Dots())
    X, y = stream(ROWS)
    for make in LEARNERS.values():
        learn(make(), X, y)
    KORS(Gaussian(), seed=1).advance(X)
    KernelGradientDescent(Gaussian(), Squared()).advance(X, y)
    Matern().gram(np.hstack([X] * 30))
    for task, targets in (("regression", y), ("classification", np.where(y > 0, "yes", "no").astype(object))):
        for delay in (0, 2):
            learn(AutoKONS(task, max_atoms=20, delay=delay), X, targets)
        Prequential(AutoKONS(task, max_atoms=20), task).advance((X, targets))
    print()


if __name__ == "__main__":
    main()
