"""Each algorithm written once more with explicit dense matrices, straight from its definition.

These are the referees of the fast code. They share nothing with it but NumPy.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal, localcontext

import numpy as np

LOSSES = {
    "Squared": (lambda p, y: 2.0 * (p - y), lambda C: 1.0 / (8.0 * C**2)),
    "Logistic": (lambda p, y: -y / (1.0 + np.exp(y * p)), lambda C: np.exp(-C)),
    "SquaredHinge": (
        lambda p, y: -2.0 * y * max(0.0, 1.0 - y * p),
        lambda C: 1 / (2 * (1 + C) ** 2) if C <= 1 else (3 * C - 1) / (8 * C**2 * (1 + C)),
    ),
}


@dataclass
class Run:
    """What an explicit run did, row by row, and the matrices it ended with."""

    prediction: list = field(default_factory=list)
    slope: list = field(default_factory=list)
    weight: list = field(default_factory=list)
    inverse_form: list = field(default_factory=list)
    kept: list = field(default_factory=list)
    probability: list = field(default_factory=list)
    estimate: list = field(default_factory=list)
    A: np.ndarray | None = None
    A_sample: np.ndarray | None = None

    def __getattribute__(self, name):
        value = super().__getattribute__(name)
        return np.array(value) if isinstance(value, list) else value


def ons(Phi, slope_at, *, bound, alpha, eta, scale=None, coins=None, rng=None):
    """The online Newton step on explicit features (Eq. 1), exact or sketched (Alg. 3).

    ``slope_at(t, prediction)`` reveals the slope; ``eta[t]`` is the step size; ``coins`` holds beta,
    eps, gamma, shared and weighted, and ``rng`` yields the uniforms.
    """
    T, D = Phi.shape
    A, AI, u = alpha * np.eye(D), alpha * np.eye(D), np.zeros(D)
    c = np.ones(T) if scale is None else scale
    run = Run()
    columns = {k: [] for k in vars(run) if isinstance(vars(run)[k], list)}
    for t in range(T):
        phi = Phi[t]
        q = phi @ np.linalg.solve(A, phi)
        raw = phi @ u
        y_hat = np.clip(raw, -bound, bound)
        w_vector = u - ((raw - y_hat) / q * np.linalg.solve(A, phi) if raw != y_hat else 0.0)
        slope = slope_at(t, y_hat)
        g, w_bar = c[t] * slope, c[t] * eta[t] * slope**2
        w, z, p, estimate = w_bar, True, 1.0, np.nan
        if coins is not None:
            with_t = AI + w_bar * np.outer(phi, phi)
            estimate = (1 + coins["eps"]) * w_bar * (phi @ np.linalg.solve(with_t, phi))
            p = max(min(coins["beta"] * estimate, 1.0), coins["gamma"])
            z = rng[0].random() < p
            w = z * w_bar / (p if coins.get("weighted") else 1.0)
            p_sample, z_sample = p, z
            if not coins.get("shared", True):
                p_sample = min(coins["beta"] * estimate, 1.0)
                z_sample = rng[1].random() < p_sample
            if z_sample and w_bar > 0:
                AI = AI + w_bar / p_sample * np.outer(phi, phi)
        A = A + w * np.outer(phi, phi)
        u = w_vector - g * np.linalg.solve(A, phi)
        for name, value in {
            "prediction": y_hat,
            "slope": g,
            "weight": w,
            "inverse_form": q,
            "kept": z,
            "probability": p,
            "estimate": estimate,
        }.items():
            columns[name].append(value)
    for name, values in columns.items():
        setattr(run, name, values)
    run.A, run.A_sample = A, AI
    return run


def ons_on_targets(Phi, y, loss, *, bound, alpha, scale=None, coins=None, rng=None):
    """:func:`ons` with one of the three losses and the paper's step size."""
    slope, sigma = LOSSES[type(loss).__name__]
    return ons(
        Phi,
        lambda t, p: slope(p, y[t]),
        bound=bound,
        alpha=alpha,
        eta=np.full(len(y), sigma(bound)),
        scale=scale,
        coins=coins,
        rng=rng,
    )


def kors(Phi, weights, *, alpha, beta, eps, gamma, rng):
    """Kernel online row sampling (Alg. 2) on explicit features; rows are sqrt(weights) * Phi."""
    AI = alpha * np.eye(Phi.shape[1])
    estimates, probabilities, kept = [], [], []
    for phi, w in zip(Phi, weights, strict=True):
        bar = np.sqrt(w) * phi
        estimate = (1 + eps) * bar @ np.linalg.solve(AI + np.outer(bar, bar), bar)
        p = max(min(beta * estimate, 1.0), gamma)
        z = rng.random() < p
        if z:
            AI = AI + np.outer(bar, bar) / p
        estimates.append(estimate)
        probabilities.append(p)
        kept.append(z)
    return np.array(estimates), np.array(probabilities), np.array(kept), AI


def quadratic_features(X):
    """Explicit features of the homogeneous polynomial (x.z)^2: all products x_i x_j."""
    return np.einsum("ni,nj->nij", X, X).reshape(len(X), -1)


def kernel_ridge(K_past, y_past, k_new, ridge):
    """The kernel ridge prediction ``k^T (K + ridge*I)^-1 y``."""
    return k_new @ np.linalg.solve(K_past + ridge * np.eye(len(y_past)), y_past)


def ons_hessian(Phi, slope_at, second_at, *, bound, alpha, scale=None):
    """:func:`ons` with the loss's second derivative as weight, both taken at the clipped prediction."""
    T, D = Phi.shape
    A, u = alpha * np.eye(D), np.zeros(D)
    c = np.ones(T) if scale is None else scale
    columns = {"prediction": [], "slope": [], "weight": [], "inverse_form": []}
    for t, phi in enumerate(Phi):
        direction = np.linalg.solve(A, phi)
        q = phi @ direction
        raw = phi @ u
        y_hat = np.clip(raw, -bound, bound)
        if raw != y_hat:
            u = u - (raw - y_hat) / q * direction
        g, w = c[t] * slope_at(t, y_hat), c[t] * second_at(t, y_hat)
        A = A + w * np.outer(phi, phi)
        u = u - g * np.linalg.solve(A, phi)
        for name, value in zip(columns, (y_hat, g, w, q), strict=True):
            columns[name].append(value)
    run = Run(**columns)
    run.A = A
    return run


_DECIMAL_SLOPES = {
    "Squared": lambda p, y: 2 * (p - y),
    "Logistic": lambda p, y: -y / (1 + (y * p).exp()),
    "SquaredHinge": lambda p, y: -2 * y * max(Decimal(0), 1 - y * p),
}


def precise_ons(Phi, y, loss, *, bound, alpha):
    """The predictions of :func:`ons_on_targets` in 60 digits: a referee below regularization 1e-2.

    There 16 digits are too few for explicit features too: dense float64 matrices were seen to be off
    by 5e-8 at 1e-4 (40 features, squared hinge, bound 2), and the fast code by 2e-10.
    """
    exact = np.vectorize(lambda value: Decimal(float(value)), otypes=[object])
    slope, sigma = _DECIMAL_SLOPES[type(loss).__name__], LOSSES[type(loss).__name__][1]
    predictions, slopes = [], []
    with localcontext(prec=60):
        C, eta = Decimal(float(bound)), Decimal(float(sigma(bound)))
        inverse = exact(np.eye(Phi.shape[1])) / Decimal(float(alpha))  # A^-1
        u = exact(np.zeros(Phi.shape[1]))
        for phi, target in zip(exact(Phi), exact(y), strict=True):
            along = inverse @ phi
            q, raw = phi @ along, phi @ u
            y_hat = min(max(raw, -C), C)
            g = slope(y_hat, target)
            w = eta * g * g
            pull = (raw - y_hat) / q if raw != y_hat else 0
            u = u - (pull + g / (1 + w * q)) * along
            inverse = inverse - np.outer(w / (1 + w * q) * along, along)
            predictions.append(float(y_hat))
            slopes.append(float(g))
    return Run(prediction=predictions, slope=slopes)
