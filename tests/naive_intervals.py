"""Intervals written once more from their definitions: lists of all that came, dense matrices, sorting.

The referee of :mod:`kons.core.residual_scale` and :mod:`kons.core.conformal`, which share nothing with it.
"""

import math

import numpy as np

LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)


class NaiveIntervals:
    """One target; rows are p, q and sizes, and each is learned before the next one is asked."""

    def __init__(self, sizes, forgetting=0.9995, window=500):
        self.sizes, self.forgetting, self.window = sizes, forgetting, window
        self.d = 7 + sizes
        self.phis, self.w, self.A = [], np.zeros(self.d), 100.0 * np.eye(self.d)
        self.rows, self.mean, self.variance, self.size, self.recent = 0, 0.0, 0.0, 0.0, 0.0
        self.top, self.farthest = 0.0, 0.0
        self.means, self.variances = np.zeros(2 + sizes), np.zeros(2 + sizes)
        self.typical = np.zeros(sizes)
        self.scores, self.tails = [], [1.0 - level for level in LEVELS]

    # ---- the scale

    def features(self, row):
        p, q, sizes = row[0], row[1], row[2:]
        deviation = math.sqrt(self.variance)
        size = max(self.size, 1e-9 * deviation, 1e-290)
        z = np.clip((p - self.mean) / deviation, -1.5, 2.5) if deviation > 0.0 else 0.0
        place = z + 1.5 if deviation > 0.0 else 0.0
        hats = [max(1.0 - abs(place - i), 0.0) for i in range(5)]
        raw = [math.log(self.recent / size + 1e-3), 0.5 * math.log1p(max(q, 0.0))]
        for value, typical in zip(sizes, self.typical, strict=True):
            raw.append(math.log(value / typical + 1e-2) if typical > 0.0 else 0.0)
        raw = np.array(raw)
        deviations = np.sqrt(np.where(self.variances > 0.0, self.variances, np.inf))
        return np.concatenate([hats, np.clip((raw - self.means) / deviations, -4.0, 4.0)]), raw, size

    def scale(self, row):
        """What is said of a row."""
        return self.scales(row)[0]

    def scales(self, row):
        """What is said of a row, and what is learned from it."""
        phi, _, size = self.features(row)
        w = self.w.copy()
        w[6] = max(w[6], 0.0)  # the novelty's
        learned, far = float(np.clip(w @ phi, -4.0, 4.0)), math.log1p(max(row[1], 0.0))
        f = 0.9 * learned
        if self.rows > 64 and far > self.farthest:
            most = max(self.top, math.log(max(0.8 * math.sqrt(self.variance), size) / size))
            share = min(4.0 * (far - self.farthest) / far, 1.0)
            f = learned = (1.0 - share) * min(f, most) + share * most
        return size * math.exp(f), size * math.exp(learned)

    def learn(self, row, target):
        r, (s, own), n = abs(target - row[0]), self.scales(row), self.rows + 1
        s, own = (s, own) if s > 1e-290 else (max(r, 1e-9),) * 2  # before any residual was known
        self.judge((target - row[0]) / s)
        phi, raw, _ = self.features(row)
        rate = max(1.0 / n, 1.0 - self.forgetting)
        if n > 7:
            h = np.linalg.solve(self.A, phi)
            self.w = self.w + h * (min(r / own, 3.0) - 1.0) / (1.0 + phi @ h)
            self.phis.append((n, phi))
            self.top = max(0.998 * self.top, min(math.log(s / max(self.size, 1e-290)), 4.0))
        if n > 64:
            self.farthest = max(0.998 * self.farthest, math.log1p(max(row[1], 0.0)))
        self.rows = n

        def moved(mean, variance, value, rate):
            away = value - mean
            return mean + rate * away, (1.0 - rate) * (variance + rate * away**2)

        self.mean, self.variance = moved(self.mean, self.variance, target, rate)
        self.size += rate * (min(r, 10.0 * self.size if self.size > 0.0 else r) - self.size)
        self.recent += max(rate, 1.0 / 30.0) * (r - self.recent)
        self.typical = self.typical + rate * (row[2:] - self.typical)
        self.means, self.variances = moved(self.means, self.variances, raw, rate)
        if n % 16 == 0 or n < 64:  # A with all rows so far, each as old as periods of 16 have ended since
            ages = [16 * (n // 16 - (k - 1) // 16) for k, _ in self.phis]
            self.A = 100.0 * np.eye(self.d)
            for age, (_, phi) in zip(ages, self.phis, strict=True):
                self.A += self.forgetting**age * np.outer(phi, phi)

    # ---- the levels

    def bounds(self, tail):
        kept = sorted(self.scores[-self.window :])
        k = max(math.floor((len(kept) + 1) * tail / 2.0) - 1, 0)  # half of what is left out, on each side
        return kept[k], kept[len(kept) - 1 - k]

    def judge(self, score):
        if len(self.scores) >= 20:
            for i, level in enumerate(LEVELS):
                low, high = self.bounds(self.tails[i])
                outside = float(score < low or score > high)
                gain = min(0.01, 0.1 * (1.0 - level))
                self.tails[i] = min(max(self.tails[i] + gain * (1.0 - level - outside), 0.0), 1.0)
        self.scores.append(score)

    def ends(self, row, level):
        if len(self.scores) < 20:
            return -np.inf, np.inf
        # Nested: no level leaves out more than a lower one.
        low, high = self.bounds(min(self.tails[: LEVELS.index(level) + 1]))
        s = self.scale(row)
        return row[0] + s * low, row[0] + s * high
