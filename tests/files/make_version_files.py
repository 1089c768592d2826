"""Write the files of the present format version, and what their learners predict, into tests/files/versions.

    python tests/files/make_version_files.py

To be run once for each format version. Until the first release the files of older ones are removed then;
after it they stay as they are.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import kons
from kons import KONS, KORS, EmbeddedKONS, Gaussian, Logistic, SketchedKONS, Squared, files
from kons.kernels import FunctionKernel, Linear, Matern, Normalized
from kons.policies import Dependence, Leverage
from kons.recipes import for_task
from kons.step_sizes import InverseSqrt

FOLDER = Path(__file__).parent / "versions"
WORDS = ["ham", "spam", "maps", "amp", "eggs"]


def common_letters(a, b):
    """How many pairs of equal letters two words have."""
    return float(sum(a.count(c) * b.count(c) for c in set(a)))


def rows(first, last):
    """Rows that no random generator can change its mind about."""
    t = np.arange(first, last)
    X = np.column_stack([np.sin(0.7 * t), np.cos(0.3 * t * t)])
    return X, np.sign(np.sin(0.7 * t) * np.cos(0.3 * t * t) + 0.2)


def learners():
    """Name -> a learner that has seen forty rows, and goes on with twenty more."""
    kernel = 0.5 * Gaussian(0.5) + Normalized(Linear()) * Matern(2.0)
    made = {
        "exact": KONS(Gaussian(0.5), Squared(), regularization=0.1),
        "exact-composed": KONS(kernel, Logistic(), bound=2.0, step_size=InverseSqrt(1.0, 2.0)),
        "sketched": SketchedKONS(
            Gaussian(0.5), Squared(), policy=Leverage(2.0, floor=0.2), shared_coins=False, seed=3
        ),
        "embedded-leverage": EmbeddedKONS(
            Gaussian(0.5), Squared(), second_order="hessian", policy=Leverage(2.0), max_atoms=9, seed=3
        ),
        "embedded-replace": EmbeddedKONS(
            Gaussian(0.5),
            Squared(),
            policy=Dependence(when_full="replace"),
            max_atoms=6,
            forgetting=0.98,
        ),
    }
    for learner in made.values():
        learner.advance(*rows(0, 40))
    words = KONS(Normalized(FunctionKernel(common_letters)), Squared(), regularization=0.5)
    words.advance(WORDS, [1.0, -1.0, 0.5, 0.25, -0.5])
    sampler = KORS(Gaussian(0.5), regularization=0.1, seed=3)
    sampler.advance(rows(0, 40)[0])
    raw = for_task("regression", "embedded", warmup=20, max_atoms=9)
    raw.advance(*rows(0, 40))
    classes = for_task("classification", "embedded", warmup=20, max_atoms=9)
    classes.advance(rows(0, 40)[0], named(rows(0, 40)[1]))
    return {**made, "words": words, "kors": sampler, "raw": raw, "classes": classes}


def named(y):
    """The targets as labels."""
    return ["up" if value > 0.0 else "down" for value in y]


def answers(learner):
    """What the learner says of new rows, before and after it has learned them."""
    if isinstance(learner, KORS):
        before = learner.transform(rows(40, 60)[0])
        learner.advance(rows(40, 60)[0])
        return [*before.ravel().tolist(), *learner.importance.tolist()]
    X, y = rows(40, 60)
    if hasattr(learner, "classes"):
        before = learner.decision_function(X)
        learner.advance(X, named(y))
        return [*before.ravel().tolist(), *learner.predict_proba(X).ravel().tolist()]
    if getattr(getattr(learner, "kernel", None), "accepts", "") == "objects":
        before = learner.predict(WORDS)
        learner.advance(WORDS[::-1], [1.0, -1.0, 0.5, 0.25, -0.5])
        return [*before.tolist(), *learner.predict(WORDS).tolist()]
    before = learner.predict(X)
    trace = learner.advance(X, y)
    return [*before.tolist(), *trace.prediction.tolist(), *learner.predict(X).tolist()]


def main():
    """Write the files of the present version."""
    expected = {}
    for name, learner in learners().items():
        file = f"v{files.VERSION}-{name}.kons"
        kons.save(learner, FOLDER / file)
        expected[file] = answers(learner)
    text = json.dumps(expected, indent=1)
    (FOLDER / f"v{files.VERSION}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
