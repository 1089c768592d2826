"""The learners that every contract is checked on. Add a factory, and all contracts hold it to them."""

from __future__ import annotations

import numpy as np

from kons import (
    KONS,
    Classifier,
    EmbeddedKONS,
    FeatureLearner,
    Gaussian,
    Laplace,
    Logistic,
    Polynomial,
    Scaled,
    SketchedKONS,
    Squared,
    SquaredHinge,
)
from kons.kernels import FunctionKernel
from kons.policies import Dependence, Fixed, Leverage
from kons.recipes import rbp


def overlap(x, z):
    """A kernel on anything that can be flattened to numbers: (1 + x.z)^2 / 10."""
    return float((1.0 + np.dot(x, z)) ** 2) / 10.0


#: Name -> a factory without arguments. All of them take three features and targets -1, +1.
LEARNERS = {
    "KONS, gradient": lambda: KONS(Gaussian(), Squared(), regularization=0.1),
    "KONS, hessian": lambda: KONS(Gaussian(), Squared(), regularization=0.1, second_order="hessian"),
    "KONS, logistic, falling step size": lambda: KONS(
        Gaussian(), Logistic(), bound=2.0, regularization=0.1, step_size=lambda t: 1 / t**0.5
    ),
    "KONS, objects": lambda: KONS(FunctionKernel(overlap), Squared(), regularization=0.1),
    "SketchedKONS, shared": lambda: SketchedKONS(
        Gaussian(), Squared(), regularization=0.1, policy=Leverage(floor=0.1), seed=1
    ),
    "SketchedKONS, independent": lambda: SketchedKONS(
        Gaussian(), Squared(), regularization=0.1, policy=Leverage(floor=0.1), shared_coins=False, seed=1
    ),
    "SketchedKONS, weighted": lambda: SketchedKONS(
        Gaussian(), Squared(), regularization=0.1, policy=Leverage(floor=0.3), weighted=True, seed=1
    ),
    "EmbeddedKONS, gradient": lambda: EmbeddedKONS(Gaussian(), Squared(), regularization=0.1, max_atoms=40),
    "EmbeddedKONS, hessian, still growing": lambda: EmbeddedKONS(
        Gaussian(), Squared(), regularization=0.1, second_order="hessian"
    ),
    "EmbeddedKONS, logistic, falling step size": lambda: EmbeddedKONS(
        Laplace(2.0), Logistic(), bound=2.0, regularization=0.1, step_size=lambda t: 1 / t**0.5, max_atoms=30
    ),
    "EmbeddedKONS, leverage, restart": lambda: EmbeddedKONS(
        Gaussian(), Squared(), regularization=0.1, policy=Leverage(0.3), on_growth="restart", seed=1
    ),
    "EmbeddedKONS, leverage, carry, capped": lambda: EmbeddedKONS(
        Gaussian(), SquaredHinge(), regularization=0.1, policy=Leverage(0.5, floor=0.05), max_atoms=15, seed=1
    ),
    "EmbeddedKONS, replace, forgetting": lambda: EmbeddedKONS(
        Gaussian(),
        Logistic(),
        regularization=0.1,
        second_order="hessian",
        policy=Dependence(when_full="replace"),
        max_atoms=20,
        forgetting=0.99,
    ),
    "EmbeddedKONS, forward": lambda: EmbeddedKONS(
        Gaussian(), Squared(), regularization=0.1, second_order="hessian", forward=True, max_atoms=30
    ),
    "EmbeddedKONS, fixed": lambda: EmbeddedKONS(
        Gaussian(), Squared(), regularization=0.1, policy=Fixed(stream(12, seed=9)[0])
    ),
    "EmbeddedKONS, objects": lambda: EmbeddedKONS(
        FunctionKernel(overlap),
        Squared(),
        regularization=0.1,
        policy=Dependence(when_full="replace"),
        max_atoms=6,
    ),
    "FeatureLearner, fastfood, momentum": lambda: FeatureLearner(
        Gaussian(),
        Squared(),
        features="fastfood",
        dimension=10,
        curvature="diagonal",
        momentum=0.9,
        discount=0.99,
        regularization=1e-3,
    ),
    "FeatureLearner, sketched": lambda: FeatureLearner(
        Polynomial(degree=1), Logistic(), curvature="sketched", directions=2, regularization=5.0
    ),
    "FeatureLearner, sketch": lambda: FeatureLearner(
        Gaussian(), Squared(), features="sketch", max_atoms=12, columns=8, dimension=10, step_size=0.1, seed=1
    ),
    "Classifier": lambda: Classifier(
        EmbeddedKONS(
            Gaussian(), Logistic(), bound=3.0, regularization=0.1, second_order="hessian", max_atoms=30
        )
    ),
    "Classifier, replace, forgetting": lambda: Classifier(
        EmbeddedKONS(
            Gaussian(),
            Squared(),
            regularization=0.1,
            policy=Dependence(when_full="replace"),
            max_atoms=12,
            forgetting=0.99,
        )
    ),
    "Classifier, closed": lambda: Classifier(
        EmbeddedKONS(Laplace(2.0), SquaredHinge(), regularization=0.1, policy=Leverage(0.5), seed=1),
        [-1.0, 1.0],
    ),
    "Classifier, sketched": lambda: Classifier(
        SketchedKONS(Gaussian(), Squared(), regularization=0.1, policy=Leverage(floor=0.1), seed=1)
    ),
    "Classifier, budget": lambda: Classifier(rbp(Gaussian(), max_points=10, seed=1)),
    "Scaled, in its warm-up": lambda: Scaled(EmbeddedKONS(Gaussian("auto"), Squared()), warmup=1000),
    "Scaled": lambda: Scaled(
        EmbeddedKONS(Gaussian("auto"), Squared(), regularization=0.1, second_order="hessian", max_atoms=30),
        warmup=50,
    ),
    "Scaled, classifier": lambda: Scaled(
        Classifier(EmbeddedKONS(Laplace("auto"), Logistic(), regularization=0.1, max_atoms=30)), warmup=50
    ),
    "Scaled, objects": lambda: Scaled(
        EmbeddedKONS(FunctionKernel(overlap), SquaredHinge(), regularization=0.1, max_atoms=6), warmup=50
    ),
}


def stream(rows, seed=0):
    """Three features, labels -1 and +1 with a fifth of them wrong."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3))
    y = np.sign(X[:, 0] * X[:, 1] + 0.3)
    y[rng.random(rows) < 0.2] *= -1.0
    return X, y


def assert_identical(a, b, where="state"):
    """Bit for bit, all the way down: types, shapes, dtypes, signs of zero, NaN equal to NaN."""
    assert type(a) is type(b), f"{where}: {type(a)} is not {type(b)}"
    if isinstance(a, dict):
        assert a.keys() == b.keys(), f"{where}: keys differ"
        for key in a:
            assert_identical(a[key], b[key], f"{where}[{key!r}]")
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b), f"{where}: {len(a)} entries are not {len(b)}"
        for i, (left, right) in enumerate(zip(a, b, strict=True)):
            assert_identical(left, right, f"{where}[{i}]")
    elif isinstance(a, np.ndarray) and a.dtype == b.dtype == object:
        assert_identical(a.tolist(), b.tolist(), where)
    elif isinstance(a, np.ndarray):
        assert (a.shape, a.dtype) == (b.shape, b.dtype), f"{where}: {a.shape} is not {b.shape}"
        assert a.tobytes() == b.tobytes(), f"{where}: arrays differ"
    elif isinstance(a, float):
        assert a.hex() == b.hex(), f"{where}: {a!r} is not {b!r}"
    else:
        assert a == b, f"{where}: {a!r} is not {b!r}"
