"""Methods of explicit features, each straight from its definition: dense, slow, and the referee of the fast.

Rows of features Z (n, D), targets y; predictions are clipped to [-C, C], and the function projected.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

__all__ = [
    "descent",
    "descent_in_sketches",
    "dual_descent",
    "fastfood_frequencies",
    "first_order_in_span",
    "newton",
    "shrunk",
    "sketched_newton",
    "sums_of",
    "vovk_azoury_warmuth",
]


def descent(Z, y, loss, *, eta, bound=1.0, alpha=1.0, kind="none", power=0.5, b2=1.0, b1=0.0, radius=np.inf):
    """Predictions, and the weights by which each row was predicted, behind its projection."""
    u, s, m, most = np.zeros(Z.shape[1]), np.zeros(Z.shape[1]), np.zeros(Z.shape[1]), 0.0
    predictions, weights = [], []

    def matrix(t):
        grown = (s / (1.0 - b2**t) if b2 < 1.0 and t else s) ** power
        return {
            "none": alpha * np.ones(len(u)),
            "scaled": alpha * (most or 1.0) * np.ones(len(u)),
            "norm": alpha + (s.sum() / (1.0 - b2**t if b2 < 1.0 and t else 1.0)) ** power * np.ones(len(u)),
            "diagonal": alpha + grown,
        }[kind]

    for t, z in enumerate(Z):
        A = np.diag(matrix(t))
        predictions.append(np.clip(u @ z, -bound, bound))
        direction = np.linalg.solve(A, z)
        if u @ z != predictions[-1]:
            u = u - (u @ z - predictions[-1]) / (z @ direction) * direction
        weights.append(u)
        G = float(loss.slope(predictions[-1], y[t])) * z
        s = b2 * s + (1.0 - b2 if b2 < 1.0 else 1.0) * G**2
        m = b1 * m + (1.0 - b1) * G
        most = max(most, z @ z)
        u = u - eta[t] * np.linalg.solve(np.diag(matrix(t + 1)), m / (1.0 - b1 ** (t + 1)))
        u = u * min(1.0, radius / max(np.linalg.norm(u), 1e-300))
    return np.array(predictions), np.array(weights)


def newton(Z, y, loss, *, eta, bound=1.0, alpha=1.0):
    """The online Newton step: A_t = A_(t-1) + eta g^2 z z^T, predictions and R_G."""
    return sketched_newton(Z, y, loss, eta=eta, bound=bound, alpha=alpha, directions=10**9)


def sketched_newton(Z, y, loss, *, eta, directions, bound=1.0, alpha=1.0):
    """The same with B^T B for the sum of squares, B by frequent directions: predictions and R_G."""
    D = Z.shape[1]
    u, B, predictions, gain = np.zeros(D), np.zeros((0, D)), [], 0.0
    for z, target in zip(Z, y, strict=True):
        A = alpha * np.eye(D) + B.T @ B
        p = np.clip(u @ z, -bound, bound)
        q = z @ np.linalg.solve(A, z)
        if u @ z != p:
            u = u - (u @ z - p) / q * np.linalg.solve(A, z)
        g = float(loss.slope(p, target))
        row = np.sqrt(eta) * g * z
        u = u - np.linalg.solve(A + np.outer(row, row), g * z)
        gain += g**2 * q / (1.0 + eta * g**2 * q)
        if row.any():
            B = shrunk(np.vstack([B, row]), directions)
        predictions.append(p)
    return np.array(predictions), gain


def shrunk(B, directions):
    """At 2l rows, s^2 <- s^2 - s_(l+1)^2."""
    if len(B) < 2 * directions:
        return B
    _, s, V = np.linalg.svd(B, full_matrices=False)
    last = s[directions] if len(s) > directions else 0.0
    left = np.sqrt((s[:directions] - last) * (s[:directions] + last))
    return (left[:, None] * V[: len(left)])[left > 0.0]


def vovk_azoury_warmuth(Z, y, *, alpha, bound):
    """argmin sum_(s<t) (y_s - u^T z_s)^2 + (alpha/2)|u|^2 + (u^T z_t)^2, anew for each row."""
    predictions = []
    for t, z in enumerate(Z):
        A = 0.5 * alpha * np.eye(Z.shape[1]) + Z[: t + 1].T @ Z[: t + 1]
        predictions.append(np.clip(z @ np.linalg.solve(A, Z[:t].T @ y[:t]), -bound, bound))
    return np.array(predictions)


def fastfood_frequencies(signs, order, normals, scales):
    """S H G P H B as a dense matrix, a block below the other."""
    H = scipy.linalg.hadamard(signs.shape[1]).astype(float)
    blocks = []
    for B, P, G, S in zip(signs, order, normals, scales, strict=True):
        blocks.append(np.diag(S) @ H @ np.diag(G) @ np.eye(len(P))[P] @ H @ np.diag(B))
    return np.vstack(blocks)


def first_order_in_span(
    K, y, loss, *, eta, bound=1.0, tolerance, max_atoms, adaptive=False, radius=np.inf, rank=0
):
    """Gradient descent in the span of atoms, by coefficients over them: predictions and atoms.

    ``adaptive``: the step of row t is eta over the root of the sum of squared gradients in the span.
    ``rank``: so many eigenvectors of the full span are left behind the first row that finds it full.
    """
    atoms, a, predictions, total, V = [], np.zeros(0), [], 0.0, None
    for t in range(len(K)):
        at, full = K[t, atoms], len(atoms) == max_atoms
        f = at @ a
        predictions.append(np.clip(f, -bound, bound))
        if len(atoms) < max_atoms:
            inside = at @ np.linalg.solve(K[np.ix_(atoms, atoms)], at) if atoms else 0.0
            if K[t, t] - inside > tolerance * K[t, t]:
                atoms, a = [*atoms, t], np.append(a, 0.0)
                at = K[t, atoms]
        coefficients = np.linalg.solve(K[np.ix_(atoms, atoms)], at)
        if V is not None:
            coefficients = V @ V.T @ coefficients
        inside = at @ coefficients
        if f != predictions[-1]:
            a = a - (f - predictions[-1]) / inside * coefficients
        g = float(loss.slope(predictions[-1], y[t]))
        total += g**2 * inside
        step = eta[t] / np.sqrt(total) if adaptive and total else eta[t]
        a = a - step * g * coefficients
        norm = np.sqrt(a @ K[np.ix_(atoms, atoms)] @ a)
        a = a * min(1.0, radius / max(norm, 1e-300))
        if rank and full and V is None:
            V = np.linalg.eigh(K[np.ix_(atoms, atoms)])[1][:, -rank:]
            a = V @ V.T @ a
    return np.array(predictions), atoms


def sums_of(coins, dimension):
    """S_p: what is left of a coin's 53 digits says twice in which sum its point is, and with which sign."""
    S = np.zeros((len(coins), dimension))
    for i, coin in enumerate(coins):
        left = int(coin * 2**53)
        for first in (0, dimension // 2):
            left, place = divmod(left, dimension)
            S[i, first + place // 2] = (-1) ** place / np.sqrt(2.0)
    return S


def descent_in_sketches(K, y, loss, coins, *, eta, tolerance, max_atoms, columns, dimension, rank, bound=1.0):
    """SkeGD by coefficients over the points kept: predictions, these points, and F of the last sketches."""
    atoms, a, predictions, F = [], np.zeros(0), [], None

    def outside(t, others):
        at = K[t, others]
        return K[t, t] - (at @ np.linalg.solve(K[np.ix_(others, others)], at) if others else 0.0)

    def sketched(a):
        """F = N N^T over the points kept, and f projected on the functions that N makes."""
        G, S = K[np.ix_(atoms, atoms)], sums_of(coins[atoms], dimension)
        S_m = np.eye(len(atoms))[:, np.argsort(coins[atoms])[:columns]]
        inverse = np.linalg.pinv(S.T @ G @ S_m)
        inside = (S.T @ G @ S_m) @ inverse
        values, W = np.linalg.eigh(inside @ (S.T @ G @ S) @ inside.T)
        N = S_m @ inverse @ W[:, -rank:] * np.sqrt(np.maximum(values[-rank:], 0.0))
        return N @ N.T, N @ np.linalg.solve(N.T @ G @ N, N.T @ G @ a)

    for t in range(len(K)):
        full = len(atoms) == max_atoms
        f = K[t, atoms] @ a
        predictions.append(np.clip(f, -bound, bound))
        if not full and outside(t, atoms) > tolerance * K[t, t]:
            atoms, a = [*atoms, t], np.append(a, 0.0)
        at = K[t, atoms]
        direction = np.linalg.solve(K[np.ix_(atoms, atoms)], at) if F is None else F @ at
        if f != predictions[-1]:
            a = a - (f - predictions[-1]) / (at @ direction) * direction
        a = a - eta[t] * float(loss.slope(predictions[-1], y[t])) * direction
        if full and F is None:
            F, a = sketched(a)
        elif full and coins[t] < coins[atoms].max():
            last = int(np.argmax(coins[atoms]))
            rest = atoms[:last] + atoms[last + 1 :]
            if outside(t, rest) > tolerance * K[t, t]:
                kept = np.linalg.solve(K[np.ix_(rest, rest)], K[np.ix_(rest, atoms)] @ a)
                atoms = [*rest, t]
                F, a = sketched(np.append(kept, 0.0))
    return np.array(predictions), atoms, F


def dual_descent(K, Z, y, loss, *, eta, decay, max_points, bound=1.0):
    """A budget of points and features Z of those that went: predictions and the points left.

    ``coefficients`` of all rows, and which of them count by their kernel; the others by their features.
    """
    a, inside, predictions = np.zeros(len(K)), [], []
    for t in range(len(K)):
        rest = np.setdiff1d(np.flatnonzero(a), inside)
        f = K[t, inside] @ a[inside] + Z[t] @ (Z[rest].T @ a[rest])
        predictions.append(np.clip(f, -bound, bound))
        g = float(loss.slope(f, y[t]))
        a *= 1.0 - eta[t] * decay
        if g == 0.0:
            continue
        a[t] = -eta[t] * g
        inside.append(t)
        if len(inside) > max_points:
            inside.remove(min(inside, key=lambda i: a[i] ** 2 * K[i, i]))
    return np.array(predictions), inside
