"""Each dictionary once more with explicit dense matrices, straight from its definition.

The referees of :mod:`kons.dictionaries`; they share nothing with it but NumPy. Coins are handed in.
"""

from __future__ import annotations

import numpy as np


def weighted_sum(Phi, weights, alpha):
    """alpha*I + sum w phi phi^T."""
    return alpha * np.eye(Phi.shape[1]) + (Phi.T * weights) @ Phi


def reweighed(Phi, w, u, p, *, alpha, factor, beta, gamma):
    """p of each row after a re-weighing, 0 once it is dropped: p <- min(p, beta*factor*w*phi^T A^-1 phi)."""
    kept = p > 0
    A = weighted_sum(Phi[kept], w[kept] / p[kept], alpha)
    fallen = np.zeros(len(p))
    for i in np.flatnonzero(kept):
        estimate = factor * w[i] * Phi[i] @ np.linalg.solve(A, Phi[i])
        q = min(p[i], max(min(beta * estimate, 1.0), gamma))
        fallen[i] = q if u[i] < q else 0.0
    return fallen


def squeak(Phi, w, u, *, alpha, beta, eps, gamma, period):
    """p of each row at the end, 0 for those dropped."""
    p = np.zeros(len(Phi))
    for t in range(len(Phi)):
        p[t] = 1.0 if w[t] > 0 else 0.0
        if (t + 1) % period == 0:
            seen = slice(0, t + 1)
            p[seen] = reweighed(
                Phi[seen], w[seen], u[seen], p[seen], alpha=alpha, factor=1 + eps, beta=beta, gamma=gamma
            )
    return p


def merged(Phi, w, u, p, *, alpha, beta, eps, gamma):
    """p of each row of two dictionaries, that stand behind each other, after they were merged."""
    return reweighed(Phi, w, u, p, alpha=(1 + eps) * alpha, factor=1 + 3 * eps, beta=beta, gamma=gamma)


def row_sampling(A, w, u, *, eps, delta, c):
    """p of each row that is kept, 0 for the others."""
    S, p = (delta / eps) * np.eye(A.shape[1]), np.zeros(len(A))
    for t, a in enumerate(A):
        estimate = min((1 + eps) * w[t] * a @ np.linalg.solve(S, a), 1.0)
        probability = min(c * estimate, 1.0)
        if u[t] < probability:
            p[t] = probability
            S = S + w[t] / probability * np.outer(a, a)
    return p


def linear_dependence(K, tolerance, most):
    """The rows kept: what is left of k(x,x) outside the span of those before exceeds the tolerance."""
    atoms = []
    for t in range(len(K)):
        k = K[atoms, t]
        outside = K[t, t] - (k @ np.linalg.solve(K[np.ix_(atoms, atoms)], k) if atoms else 0.0)
        if outside > tolerance * K[t, t] and len(atoms) < most:
            atoms.append(t)
    return atoms


def frequent_directions(A, size):
    """B^T B, and what was removed: room for 2l rows; a full one is shrunk by the square of value l + 1."""
    B, removed = np.zeros((0, A.shape[1])), 0.0
    for a in A:
        B = np.vstack([B, a])
        if len(B) == 2 * size:
            values, vectors = np.linalg.eigh(B.T @ B)
            values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
            last = values[size] if len(values) > size else 0.0
            B = (vectors * np.sqrt(np.maximum(values - last, 0.0))).T[:size]
            B = B[(B**2).sum(axis=1) > 0.0]
            removed += last
    return B.T @ B, removed


def waves(X, frequencies):
    """Random Fourier features of these frequencies."""
    angles = X @ frequencies.T
    return np.hstack([np.cos(angles), np.sin(angles)]) / np.sqrt(len(frequencies))
