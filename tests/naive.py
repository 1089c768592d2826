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
    novelty: list = field(default_factory=list)
    atoms: list = field(default_factory=list)
    u: np.ndarray | None = None
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


# ---- in the span of a dictionary (DESIGN, sections 5 and 6)


SECOND_DERIVATIVES = {
    "Squared": lambda p, y: 2.0,
    "Logistic": lambda p, y: 1.0 / (2.0 + np.exp(y * p) + np.exp(-y * p)),
    "SquaredHinge": lambda p, y: 2.0 if y * p < 1.0 else 0.0,
}


def coordinates(K, D, x):
    """z = L^-1 k_D(x) with L L^T = K_D, and rho = k(x,x) - |z|^2; K is the Gram matrix of everything."""
    z = np.linalg.solve(np.linalg.cholesky(K[np.ix_(D, D)]), K[D, x])
    return z, K[x, x] - z @ z


def bordered(A, alpha):
    """blockdiag(A, alpha)."""
    return np.block([[A, np.zeros((len(A), 1))], [np.zeros((1, len(A))), alpha]])


def without(K, D, j):
    """The dictionary without atom j, and Q that takes coordinates to those in its span."""
    rest = D[:j] + D[j + 1 :]
    L, smaller = (np.linalg.cholesky(K[np.ix_(E, E)]) for E in (D, rest))
    return rest, np.linalg.solve(smaller, np.delete(L, j, axis=0))


def newton_in_a_span(
    K,
    rows,
    slope_at,
    *,
    bound,
    alpha,
    eta=None,
    second_at=None,
    projects=True,
    atoms=None,
    tolerance=None,
    coins=None,
    rng=None,
    max_atoms=10**9,
    replace=False,
    restart=False,
    forward=False,
    forgetting=1.0,
    scale=None,
):
    """Second-order learning in a dictionary's span, row by row. Points are places in the Gram matrix K.

    ``atoms``: a fixed dictionary. Otherwise points enter by linear dependence beyond ``tolerance`` (1e-7)
    or, with ``coins`` (beta, eps, gamma), by KORS's coin on unscaled features (1e-4), its sample projected on
    the span. In any case what is outside, times the tolerance, must exceed eps/2 times
    ``k + sum theta_a^2 k_aa``, theta its coefficients over the atoms. ``slope_at(t, p)`` and
    ``second_at(t, p)`` reveal the loss; with the latter its Hessian is the weight, else eta*g^2.
    """
    if tolerance is None:
        tolerance = 1e-7 if coins is None else 1e-4
    D = [] if atoms is None else list(atoms)
    A, u = alpha * np.eye(len(D)), np.zeros(len(D))
    sampled = alpha * np.eye(len(D))
    period = 64 if forgetting == 1.0 else 32
    candidate, most_novel = None, tolerance
    names = ("prediction", "slope", "weight", "inverse_form", "novelty", "kept", "probability", "estimate")
    columns = {name: [] for name in names}
    for t, x in enumerate(rows):
        # Predict in the old span.
        z, rho = coordinates(K, D, x)
        q = z @ np.linalg.solve(A, z)
        novelty = q + max(rho, 0.0) / alpha
        raw = z @ u
        y_hat = np.clip(raw / (1.0 + 2.0 * q) if forward else raw, -bound, bound)
        at = y_hat if projects else raw
        c = 1.0 if scale is None else scale[t]
        slope = slope_at(t, at)
        g = c * slope
        w = c * (eta[t] * slope**2 if second_at is None else second_at(t, at))
        # The point may enter.
        outside, free = rho > tolerance * K[x, x], len(D) < max_atoms
        p = estimate = np.nan
        enters = atoms is None and outside and free
        if enters:
            theta = np.linalg.solve(K[np.ix_(D, D)], K[D, x])
            enters = rho * tolerance > 2.0**-53 * (K[x, x] + theta**2 @ np.diag(K)[D])
        if coins is not None:
            r = z @ np.linalg.solve(sampled, z) + rho / alpha
            estimate = (1.0 + coins["eps"]) * r / (1.0 + r)
            p = max(min(coins["beta"] * estimate, 1.0), coins["gamma"])
            heads = rng.random() < p
            enters = enters and heads
            if enters:
                sampled = bordered(sampled, alpha)
            if heads and (free or not outside):
                inside = np.append(z, np.sqrt(rho)) if enters else z
                sampled = sampled + np.outer(inside, inside) / p
        # The step, in the new span, or nothing.
        if enters:
            D.append(x)
            z, A, u = np.append(z, np.sqrt(rho)), bordered(A, alpha), np.append(u, 0.0)
            q = z @ np.linalg.solve(A, z)
        if enters and restart:
            A, u, w = alpha * np.eye(len(D)), np.zeros(len(D)), 0.0
        else:
            if projects and raw != y_hat:
                u = u - (raw - y_hat) / q * np.linalg.solve(A, z)
            A = A + w * np.outer(z, z)
            u = u - g * np.linalg.solve(A, z)
        if replace and not enters and len(D) == max_atoms and K[x, x] > 0 and rho / K[x, x] > most_novel:
            candidate, most_novel = x, rho / K[x, x]
        # What happens at the end of a period.
        if (t + 1) % period == 0 and forgetting < 1.0:
            past = forgetting**period
            c_vector = past * (A @ u)
            A = alpha * np.eye(len(D)) + past * (A - alpha * np.eye(len(D)))
            u = np.linalg.solve(A, c_vector)
        if (t + 1) % period == 0 and candidate is not None:
            K_D = K[np.ix_(D, D)]
            theta = np.linalg.solve(np.linalg.cholesky(K_D).T, u)
            least = int(np.argmin(theta**2 / np.diag(np.linalg.inv(K_D))))
            D, Q = without(K, D, least)
            past = Q @ (A - alpha * np.eye(len(A))) @ Q.T
            A, u = bordered(alpha * np.eye(len(D)) + past, alpha), np.append(Q @ u, 0.0)
            D.append(candidate)
            candidate, most_novel = None, tolerance
        for name, value in zip(names, (y_hat, g, w, q, novelty, enters, p, estimate), strict=True):
            columns[name].append(value)
    return Run(**columns, atoms=D, A=A, u=u)


def span_on_targets(K, rows, y, loss, *, bound, alpha, hessian=False, eta=None, **choices):
    """:func:`newton_in_a_span` with one of the three losses and, unless given, the paper's step size."""
    name = type(loss).__name__
    slope, sigma = LOSSES[name]
    second = SECOND_DERIVATIVES[name]
    return newton_in_a_span(
        K,
        rows,
        lambda t, p: slope(p, y[t]),
        bound=bound,
        alpha=alpha,
        eta=np.full(len(y), sigma(bound)) if eta is None else eta,
        second_at=(lambda t, p: second(p, y[t])) if hessian else None,
        projects=not (hessian and name == "Squared"),
        **choices,
    )


def ridge_in_a_span(K, Y, *, alpha, tolerance, max_atoms, forgetting=1.0):
    """The squared loss with its Hessian on K targets, in the span of points that depend on none before.

    One A for all columns of U; nothing is projected, and predictions are not clipped.
    """
    D, A, U = [], np.zeros((0, 0)), np.zeros((0, Y.shape[1]))
    period = 64 if forgetting == 1.0 else 32
    predictions, kept, forms = [], [], []
    for t, y in enumerate(Y):
        z, rho = coordinates(K, D, t)
        predictions.append(z @ U)
        kept.append(rho > tolerance * K[t, t] and len(D) < max_atoms)
        if kept[-1]:
            D.append(t)
            z, A, U = np.append(z, np.sqrt(rho)), bordered(A, alpha), np.vstack([U, 0.0 * y])
        forms.append(z @ np.linalg.solve(A, z))
        slopes = 2.0 * (z @ U - y)
        A = A + 2.0 * np.outer(z, z)
        U = U - np.outer(np.linalg.solve(A, z), slopes)
        if (t + 1) % period == 0 and forgetting < 1.0:
            past, C = forgetting**period, A @ U
            A = alpha * np.eye(len(D)) + past * (A - alpha * np.eye(len(D)))
            U = np.linalg.solve(A, past * C)
    return Run(prediction=predictions, kept=kept, inverse_form=forms)


def novelty_in_full(K, D, A, X, alpha):
    """phi^T (A + alpha*(I - P))^-1 phi with P the projection on span(D), A given in its coordinates."""
    L = np.linalg.cholesky(K[np.ix_(D, D)])
    Z = np.linalg.solve(L, K[np.ix_(D, X)])
    complement = K[np.ix_(X, X)] - Z.T @ Z
    return np.diag(Z.T @ np.linalg.solve(A, Z)) + np.diag(complement) / alpha


def ridge_with_the_present_as_zero(K, D, past, y, x, ridge):
    """argmin over f = sum_j theta_j k(D_j, .) of sum (y_s - f(x_s))^2 + ridge*|f|^2 + f(x)^2, at x."""
    seen = K[np.ix_([*past, x], D)]
    normal = seen.T @ seen + ridge * K[np.ix_(D, D)]
    theta = np.linalg.lstsq(normal, K[np.ix_(past, D)].T @ y, rcond=None)[0]
    return K[x, D] @ theta


def gaussian_gram(X, bandwidth):
    """exp(-|x - z|^2 / (2 bandwidth^2)) between all rows."""
    return np.exp(-np.sum((X[:, None] - X[None]) ** 2, axis=2) / (2.0 * bandwidth**2))
