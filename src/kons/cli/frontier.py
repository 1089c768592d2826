"""Loss against time: which learners no other beats in both, as a picture."""

from __future__ import annotations

from typing import Any

from kons.runs import Comparison

__all__ = ["draw"]


def draw(comparison: Comparison, ax: Any) -> None:
    """Each learner a point, the frontier a line, the best trivial predictor a dotted one."""
    summary = comparison.summary()
    best = comparison.frontier
    points = {name: (result.microseconds_per_row, result.loss) for name, result in comparison.results.items()}
    ax.plot(*zip(*(points[name] for name in best), strict=True), color="#4477aa", linewidth=1.2, zorder=1)
    for name, (cost, loss) in points.items():
        on_it = name in best
        ax.scatter([cost], [loss], color="#4477aa" if on_it else "#999999", zorder=2)
        ax.annotate(
            name.replace("$", r"\$"),
            (cost, loss),
            xytext=(6, 5),
            textcoords="offset points",
            fontsize=8,
            color="black" if on_it else "#666666",
        )
    known = {name: loss for name, loss in comparison.baselines.items() if loss == loss}
    if known:
        trivial = min(known, key=known.__getitem__)
        ax.axhline(known[trivial], linestyle=":", color="#cc6677", linewidth=1.2)
        ax.annotate(
            f"best baseline: {trivial}",
            (1.0, known[trivial]),
            xycoords=("axes fraction", "data"),
            xytext=(-4, 4),
            textcoords="offset points",
            ha="right",
            fontsize=8,
            color="#cc6677",
        )
    ax.set_xscale("log")
    if summary["task"] == "regression" and all(loss > 0.0 for _, loss in points.values()):
        ax.set_yscale("log")
    ax.set_xlabel("microseconds a row")
    ax.set_ylabel(f"{summary['loss_name']} of {summary['target']}".replace("$", r"\$"))
    ax.set_title(f"{summary['rows']:,} rows; down is better, left is cheaper", fontsize=10)
    ax.margins(x=0.18, y=0.12)
