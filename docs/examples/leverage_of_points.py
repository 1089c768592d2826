"""The two ends of leverage: points that are all new, and one point for ever.

``python docs/examples/leverage_of_points.py`` prints the table.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from showing import table

from kons import Linear
from kons.theory import online_effective_dimension, ridge_leverage_scores

ALPHAS = (0.1, 1.0, 10.0)


def last_leverage(X: Any, alpha: float) -> float:
    """tau_tt: the leverage of the last point among all up to it."""
    return float(ridge_leverage_scores(Linear(), X, alpha).values[-1])


def measure(rows: int = 1000) -> list[dict[str, Any]]:
    """Leverage of the last point and their sum, measured and by the closed form."""
    results = []
    for alpha in ALPHAS:
        for name, X, closed, total in (
            ("orthogonal", np.eye(rows), 1.0 / (1.0 + alpha), rows / (1.0 + alpha)),
            (
                "repeated",
                np.ones((rows, 1)),
                1.0 / (rows + alpha),
                float(np.sum(1.0 / (np.arange(1, rows + 1) + alpha))),
            ),
        ):
            results.append(
                {
                    "points": name,
                    "alpha": alpha,
                    "leverage": last_leverage(X, alpha),
                    "closed": closed,
                    "dimension": float(online_effective_dimension(Linear(), X, alpha)),
                    "closed_dimension": total,
                }
            )
    return results


def main(rows: int = 1000) -> list[dict[str, Any]]:
    """Measure and print."""
    results = measure(rows)
    columns = ("points", "α", f"leverage of point {rows:,}", "1/(1+α) or 1/(t+α)", "d_onl", "their sum")
    print(
        table(
            columns,
            [
                (
                    each["points"],
                    f"{each['alpha']:g}",
                    f"{each['leverage']:.9f}",
                    f"{each['closed']:.9f}",
                    f"{each['dimension']:.6f}",
                    f"{each['closed_dimension']:.6f}",
                )
                for each in results
            ],
        )
    )
    return results


if __name__ == "__main__":
    main()
