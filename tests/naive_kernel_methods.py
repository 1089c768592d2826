"""Methods over a kernel expansion once more, on explicit features or whole Gram matrices, from their papers.

The referees of :mod:`kons.recipes.expansions`. They share nothing with it but NumPy. ``Phi`` holds a row of
features per row of the stream, ``K`` is a Gram matrix; each returns the scores before they are clipped.
"""

from __future__ import annotations

import numpy as np


def perceptron(Phi, y):
    """u <- u + y phi on mistakes; the scores, and the rows that were mistakes."""
    u, scores, mistakes = np.zeros(Phi.shape[1]), [], []
    for t, phi in enumerate(Phi):
        scores.append(u @ phi)
        if y[t] * scores[-1] <= 0.0:
            u, mistakes = u + y[t] * phi, [*mistakes, t]
    return np.array(scores), mistakes


def second_order_perceptron(Phi, y, a):
    """v^T (a I + S S^T)^-1 x: the sign is that of the paper's, which adds x x^T to the matrix."""
    A, v, scores, mistakes = a * np.eye(Phi.shape[1]), np.zeros(Phi.shape[1]), [], []
    for t, phi in enumerate(Phi):
        scores.append(v @ np.linalg.solve(A, phi))
        with_it = v @ np.linalg.solve(A + np.outer(phi, phi), phi)
        assert np.sign(with_it) == np.sign(scores[-1])
        if y[t] * with_it <= 0.0:
            A, v, mistakes = A + np.outer(phi, phi), v + y[t] * phi, [*mistakes, t]
    return np.array(scores), mistakes


def narow(Phi, y, b, alpha):
    """theta <- theta + y x where y*margin < 1, A <- A + x x^T/r with r = chi/(b*chi - 1) where chi > 1/b."""
    A, theta, scores, kept = alpha * np.eye(Phi.shape[1]), np.zeros(Phi.shape[1]), [], []
    for t, phi in enumerate(Phi):
        chi = phi @ np.linalg.solve(A, phi)
        new = A + np.outer(phi, phi) * (b * chi - 1.0) / chi if chi > 1.0 / b else A
        scores.append(theta @ np.linalg.solve(new, phi))
        kept.append(y[t] * scores[-1] < 1.0)
        if kept[-1]:
            A, theta = new, theta + y[t] * phi
    return np.array(scores), kept


def kaar(K, y, a):
    """y^T (a I + K)^-1 k over the rows so far and the present one, whose target is 0."""
    scores = []
    for t in range(len(y)):
        past = np.append(y[:t], 0.0)
        scores.append(past @ np.linalg.solve(a * np.eye(t + 1) + K[: t + 1, : t + 1], K[: t + 1, t]))
    return np.array(scores)


def sliding_window(K, y, window, ridge, weights):
    """Weighted kernel ridge regression over the last rows with a weight, solved anew in each row."""
    scores = []
    for t in range(len(y)):
        last = [s for s in range(t) if weights[s] > 0.0][-window:]
        A = K[np.ix_(last, last)] + ridge * np.diag(1.0 / weights[last])
        scores.append(K[t, last] @ np.linalg.solve(A, y[last]))
    return np.array(scores)


def krls_by_dependence(K, y, tolerance, ridge):
    """Engel's regression on projections: a row of coefficients over the atoms of its time per row."""
    atoms, coefficients, scores = [], [], []
    for t in range(len(y)):
        k = K[atoms, t]
        theta = np.zeros(0)
        if atoms:
            rows = np.zeros((t, len(atoms)))
            for s, c in enumerate(coefficients):
                rows[s, : len(c)] = c
            values = rows @ K[np.ix_(atoms, atoms)]  # of f at the projections of the rows
            theta = (
                np.linalg.solve(values.T @ values / ridge + K[np.ix_(atoms, atoms)], values.T @ y[:t]) / ridge
            )
        scores.append(k @ theta)
        a = np.linalg.solve(K[np.ix_(atoms, atoms)], k) if atoms else np.zeros(0)
        if K[t, t] - k @ a > tolerance * K[t, t]:
            atoms, a = [*atoms, t], np.append(np.zeros(len(atoms)), 1.0)
        coefficients.append(a)
    return np.array(scores), atoms


def projectron(K, y, eta, margins=False):
    """f as coefficients over the atoms; on a mistake the projection, or an atom; within the margin a part."""
    atoms, theta, scores = [], np.zeros(0), []
    for t in range(len(y)):
        k = K[atoms, t]
        scores.append(k @ theta)
        a = np.linalg.solve(K[np.ix_(atoms, atoms)], k) if atoms else np.zeros(0)
        delta, norm2 = np.sqrt(max(K[t, t] - k @ a, 0.0)), k @ a
        loss = 1.0 - y[t] * scores[-1]
        if loss >= 1.0 and delta <= eta:
            theta = theta + y[t] * a
        elif loss >= 1.0:
            atoms, theta = [*atoms, t], np.append(theta, y[t])
        elif margins and loss > 0.0 and loss - delta / eta > 0.0:
            theta = theta + y[t] * min(loss / norm2, 2.0 * (loss - delta / eta) / norm2, 1.0) * a
    return np.array(scores), atoms


def descend(
    K, y, slope, *, eta, decay=0.0, mistakes=False, budget=None, when_full="", largest=np.inf, coins=None
):
    """f <- (1 - eta*lambda) f - eta*g k(x, .), with a list of (row, coefficient) from which one may go."""
    terms, scores, cost, moved = [], [], 0.0, 0
    costs = []
    for t in range(len(y)):
        scores.append(sum(c * K[i, t] for i, c in terms))
        terms = [(i, c * (1.0 - eta[t] * decay)) for i, c in terms]
        g = 0.0 if mistakes and y[t] * scores[-1] > 0.0 else slope(scores[-1], y[t])
        if g == 0.0:
            continue
        moved += 1
        full = budget is not None and len(terms) == budget
        if full and when_full in ("random", "unbiased"):
            gone = int(coins[t] * budget)
            if when_full == "unbiased":
                terms = [(i, np.clip(c * budget / (budget - 1), -largest, largest)) for i, c in terms]
            del terms[gone]
        terms.append((t, -eta[t] * g))
        if not full or when_full in ("random", "unbiased"):
            continue
        if when_full == "shrink":
            i, sigma = terms[0][0], abs(terms[0][1])
            mu = np.sign(terms[0][1]) * sum(c * K[i, j] for j, c in terms)

            def psi(phi, s=sigma, m=mu):
                return (phi * s) ** 2 + 2.0 * phi * s - 2.0 * phi * s * phi * m

            allowed = 15.0 / 32.0 * moved - cost
            phi = 1.0
            if psi(1.0) > allowed:  # by halving: psi is below what is allowed at 0, above it at 1
                low, high = 0.0, 1.0
                for _ in range(200):
                    phi = 0.5 * (low + high)
                    low, high = (phi, high) if psi(phi) <= allowed else (low, phi)
                phi = low
            cost += psi(phi)
            costs.append((cost, moved))
            terms = [(j, phi * c) for j, c in terms]
        at = 0
        if when_full in ("smallest", "project"):
            at = int(np.argmin([c**2 * K[i, i] for i, c in terms]))
        if when_full == "project":
            rest = [i for i, _ in terms[:at] + terms[at + 1 :]]
            gone, coefficient = terms[at]
            R = K[np.ix_(rest, rest)] + 1e-6 * np.mean([K[i, i] for i, _ in terms]) * np.eye(len(rest))
            share = np.linalg.solve(R, K[rest, gone]) * coefficient
            others = terms[:at] + terms[at + 1 :]
            terms = [(i, c + extra) for (i, c), extra in zip(others, share, strict=True)]
        else:
            del terms[at]
    return np.array(scores), terms, costs
