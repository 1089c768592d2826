"""The linear baselines in raw units once more, from their definitions: dense, slow, a fresh solve per row."""

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

PERIOD, EARLY = 8192, 64


def renewals(rows):
    """After how many rows the units changed, up to ``rows``."""
    powers = [2**k for k in range(14) if 2**k <= rows]
    return powers + list(range(2 * PERIOD, rows + 1, PERIOD))


def units(X, rows):
    """Centre and scale known after ``rows`` rows."""
    if rows == 0:
        return np.zeros(X.shape[1]), np.ones(X.shape[1])
    last = renewals(rows)[-1]
    deviation = X[:last].std(axis=0)
    return X[:last].mean(axis=0), np.where(deviation > 0.0, deviation, 1.0)


def with_bias(Z):
    return np.column_stack([Z, np.ones(len(Z))])


def linear(X, y, delay=0, regularization=0.1):
    """Vovk-Azoury-Warmuth in the units of its time: row t from the first t - delay rows."""
    both = np.column_stack([X, y])
    predictions = []
    for t in range(len(y)):
        known = max(t - delay, 0)
        if known == 0:
            predictions.append(0.0)
            continue
        centre, scale = units(both, known)
        Z = with_bias((X[:known] - centre[:-1]) / scale[:-1])
        z = np.append((X[t] - centre[:-1]) / scale[:-1], 1.0)
        A = regularization * np.eye(len(z)) + Z.T @ Z + np.outer(z, z)
        b = Z.T @ ((y[:known] - centre[-1]) / scale[-1])
        predictions.append(centre[-1] + scale[-1] * (z @ np.linalg.solve(A, b)))
    return np.array(predictions)


class Logistic:
    """One-vs-rest by implicit Newton steps; A is rebuilt from all rows whenever it is needed."""

    def __init__(self, regularization=0.1):
        self.regularization = regularization
        self.X, self.codes, self.curvatures = [], [], []
        self.centre = self.scale = None
        self.weights = []

    def z(self, x):
        return np.append((x - self.centre) / self.scale, 1.0)

    def predict(self, x):
        if not self.weights:
            return -1
        return int(np.argmax([w @ self.z(x) for w in self.weights]))

    def learn(self, x, code):
        if self.centre is None:
            self.centre, self.scale = x.copy(), np.ones(len(x))
        self._step(x, code, len(self.X))
        self.X.append(x)
        self.codes.append(code)
        if len(self.X) in renewals(len(self.X)):
            self._renew()

    def _step(self, x, code, before):
        z = self.z(x)
        A = self.regularization * np.eye(len(z))
        if before:
            Z = with_bias((np.array(self.X[:before]) - self.centre) / self.scale)
            A += Z.T @ (np.array(self.curvatures)[:, None] * Z)
        v = np.linalg.solve(A, z)
        while len(self.weights) <= code:
            self.weights.append(np.append(np.zeros(len(x)), -np.log(before + 1.0)))
        curvatures = []
        for label, w in enumerate(self.weights):
            truth = float(label == code)
            f = brentq(
                lambda f, w=w, truth=truth: f - w @ z - v @ z * (truth - expit(f)), -1e6, 1e6, xtol=1e-13
            )
            self.weights[label] = w + (truth - expit(f)) * v
            curvatures.append(expit(f) * (1.0 - expit(f)))
        self.curvatures.append(max(curvatures))

    def _renew(self):
        old = self.centre, self.scale
        self.centre, self.scale = units(np.array(self.X), len(self.X))
        if len(self.X) <= EARLY:
            self.weights, self.curvatures = [], []
            for i, (x, code) in enumerate(zip(self.X, self.codes, strict=True)):
                self._step(x, code, i)
            return
        for label, w in enumerate(self.weights):  # the same function in other units
            slopes = w[:-1] / old[1]
            bias = w[-1] - slopes @ old[0]
            self.weights[label] = np.append(slopes * self.scale, bias + slopes @ self.centre)


def logistic(X, codes, delay=0):
    """Predicted codes: row t from the first t - delay rows."""
    model, predictions = Logistic(), []
    for t in range(len(codes)):
        if t - 1 - delay >= 0:
            model.learn(X[t - 1 - delay], codes[t - 1 - delay])
        predictions.append(model.predict(X[t]))
    return np.array(predictions)
