"""A regret certificate: a bound on what a run lost, computed from the run itself.

For every f with values in [-C, C] on the rows (Proposition 1 without its spare factor)::

    2 (loss of the run - loss of f) <= alpha*|f|^2 + R_G + R_D(f) + S(f)

    R_G    = sum g^2 q/(1 + w*q)                               gain: what the Newton steps cost
    R_D(f) = sum w (y_hat - f_t)^2 - sigma g^2 (y_hat - f)^2   drift: 0 if w = sigma g^2
    S(f)   = 2 sum g (f_t - f)(x_t)                            span: 0 but for a dictionary's span

f_t is f for learners over the whole feature space; in a span it is the projection of f on the span of the
time. Nothing here is assumed of the data: the terms are read off the trace, and ``holds`` compares numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from html import escape
from typing import Any

import numpy as np

from kons.arrays import Vector, as_targets
from kons.errors import ConfigurationError, MissingExtraError
from kons.learners import KONS, EmbeddedKONS, FeatureLearner, SketchedKONS, Trace
from kons.learners.newton import NewtonLearner
from kons.losses import Squared
from kons.policies import Dependence
from kons.step_sizes import Constant
from kons.theory.hindsight import Hindsight, hindsight
from kons.theory.landmarks import EXACT_UP_TO
from kons.theory.quantities import effective_dimension

__all__ = ["RegretCertificate", "certify"]


@dataclass(frozen=True, eq=False)
class RegretCertificate:
    """What a run lost, what the best fixed function would have lost, and a bound between them."""

    rows: int
    cumulative_loss: float
    """What the run lost."""
    hindsight_loss: float
    """What the best fixed function within the bound loses."""
    hindsight_norm2: float
    """Its squared norm."""
    hindsight_gap: float
    """How far from the best it can be: its duality gap, and what it lost by being made smaller."""
    best_loss: float
    """What the best fixed function loses; below ``hindsight_loss`` only where a dictionary's span needs a
    smaller comparator, whose projections keep within the bound too."""
    regret: float
    """``cumulative_loss - hindsight_loss``: against the comparator of the bound."""
    gain_term: float
    drift_term: float
    span_term: float
    loss_bound: float
    """``hindsight_loss + (alpha*norm2 + gain + drift + span)/2``: covers ``cumulative_loss``."""
    holds: bool
    """Whether it does, as a fact of this run (to rounding, 1e-12 of the sums)."""
    effective_dimension: float
    """``d_eff(alpha/(sigma L^2))`` of the points; NaN for a loss without curvature."""
    theorem_1: float | None
    """Closed-form bound on the loss of exact KONS with the paper's step size (None for others)."""
    theorem_3: float | None
    """Closed-form bound on the loss of the unweighted Sketched-KONS with the paper's step size, as the paper
    states it: with high probability, and for an oversampling of "theory" (None for others)."""
    trace: Trace = field(repr=False)
    over_time: dict[str, Vector] = field(repr=False)
    """Cumulative ``loss``, ``hindsight`` and ``bound`` after each row, for this comparator."""

    def to_dict(self) -> dict[str, Any]:
        """The numbers, for JSON; None for those that are not finite."""
        names = [f.name for f in fields(self) if f.name not in ("trace", "over_time")]
        values = {name: getattr(self, name) for name in names}
        return {name: None if value is None or not math.isfinite(value) else value
                for name, value in values.items()}  # fmt: skip

    def lines(self) -> list[tuple[str, str, str]]:
        """(name, value, what it means) for people."""
        half = {name: getattr(self, f"{name}_term") / 2 for name in ("gain", "drift", "span")}
        ridge = self.loss_bound - self.hindsight_loss - sum(half.values())
        a_row = self.cumulative_loss / self.rows
        verdict = "proven for this run" if self.holds else "EXCEEDED: an assumption is broken"
        dimension = self.effective_dimension
        dimensions = (
            f"your data behaves as if it had {dimension:.3g} dimension{'' if dimension == 1 else 's'}"
        )
        if math.isnan(dimension):
            dimensions = "not defined: the loss has no curvature"
        rows = [
            ("your loss", self.cumulative_loss, f"summed over {self.rows:,} rows: {a_row:.4g} a row"),
            ("best in hindsight", self.best_loss, "what the best fixed function within the bound loses"),
            ("regret", self.cumulative_loss - self.best_loss, "what learning online cost you"),
            ("bound on your loss", self.loss_bound, verdict),
            *self._comparator_line(),
            ("  of which ridge", ridge, "the size of the best function"),
            ("  of which gain", half["gain"], "what the Newton steps cost"),
            ("  of which drift", half["drift"], "what steps beyond the curvature cost"),
            ("  of which span", half["span"], "what the dictionary's span cannot represent"),
            ("effective dimension", dimension, dimensions),
        ]
        for name, value, premise in (
            ("bound of Theorem 1", self.theorem_1, "closed form"),
            ("bound of Theorem 3", self.theorem_3, "closed form, with high probability"),
        ):
            if value is not None:
                rows.append((name, value, f"{premise}: what the effective dimension alone allows"))
        return [
            (name, "-" if math.isnan(value) else f"{value:.6g}", meaning) for name, value, meaning in rows
        ]

    def _comparator_line(self) -> list[tuple[str, float, str]]:
        """The comparator of the bound, where it is not the best function itself."""
        if self.hindsight_loss - self.best_loss <= 1e-9 * max(1.0, self.best_loss):
            return []
        return [
            ("  of which comparator", self.hindsight_loss, "the best, made smaller to fit the span's bound")
        ]

    def __str__(self) -> str:
        rows = self.lines()
        widths = [max(len(row[i]) for row in rows) for i in range(2)]
        return "\n".join(f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c}" for a, b, c in rows)

    def _repr_html_(self) -> str:
        body = "".join(
            f"<tr><th style='text-align:left'>{escape(a)}</th><td style='text-align:right'>{escape(b)}</td>"
            f"<td style='text-align:left'>{escape(c)}</td></tr>"
            for a, b, c in self.lines()
        )
        return f"<table><caption>Regret certificate</caption>{body}</table>"

    def plot(self, ax: Any = None) -> Any:
        """Loss, hindsight and bound over time, on logarithmic axes of rows. Returns the axes."""
        try:
            import matplotlib.pyplot as plt
        except ImportError:
            raise MissingExtraError("RegretCertificate.plot", "plot") from None
        if ax is None:
            ax = plt.subplots(figsize=(7, 4.2), layout="constrained")[1]
        t = np.arange(1, self.rows + 1)
        for name, style in (("bound", "--"), ("loss", "-"), ("hindsight", ":")):
            ax.plot(t, self.over_time[name], style, label=name)
        ax.set_xscale("log")
        ax.set_xlabel("rows")
        ax.set_ylabel("cumulative loss")
        verdict = "stays below" if self.holds else "EXCEEDS"
        ax.set_title(f"Regret certificate: the loss {verdict} the bound")
        ax.legend()
        return ax


def certify(learner: NewtonLearner, X: Any, y: Any, *, exact_up_to: int = EXACT_UP_TO) -> RegretCertificate:
    """Run a fresh copy of the learner over the rows, and bound its regret.

    For ``KONS``, ``SketchedKONS`` (with what really entered A), ``EmbeddedKONS`` (with the span term) and
    ``FeatureLearner`` on columns (the online Newton step, whole or sketched: a sketch only takes off A).
    What has no such proof is refused by name: restarts, replacement, forgetting, the unprojected Hessian.
    Costs the run, and the solution in hindsight, O(n^3) up to ``exact_up_to`` rows.

    >>> import numpy as np
    >>> from kons import KONS, Gaussian, Squared
    >>> x = np.random.default_rng(0).uniform(-1, 1, size=(200, 1))
    >>> certificate = certify(KONS(Gaussian(0.5), Squared()), x, np.sin(3 * x).ravel())
    >>> certificate.holds, bool(certificate.regret > 0)
    (True, True)
    """
    _require_proof(learner)
    fresh: NewtonLearner = type(learner)(**learner.parameters())
    points = fresh._as_points(X)
    targets = as_targets(y, len(points))
    trace = fresh.advance(points, targets)
    best = hindsight(
        learner.kernel,
        learner.loss,
        points,
        targets,
        bound=learner.bound,
        regularization=learner.regularization,
        exact_up_to=exact_up_to,
    )
    projected, best_loss = best.values, best.loss
    if isinstance(fresh, EmbeddedKONS):
        projected = _on_the_span_of_the_time(fresh, best, points, trace)
        worst = float(np.max(np.abs(projected)))
        if worst > learner.bound:
            # The bound needs the projections within [-C, C] as well: a smaller function has them there.
            factor = learner.bound / worst
            best = best.shrunk(factor, lambda v: float(np.sum(learner.loss.value(v, targets))),
                               learner.regularization)  # fmt: skip
            projected = np.clip(projected * factor, -learner.bound, learner.bound)
    return _assemble(learner, trace, best, best_loss, projected, targets, points, exact_up_to)


def _assemble(
    learner: NewtonLearner,
    trace: Trace,
    best: Hindsight,
    best_loss: float,
    projected: Vector,
    targets: Vector,
    points: Any,
    exact_up_to: int,
) -> RegretCertificate:
    alpha, C, loss = learner.regularization, learner.bound, learner.loss
    sigma, L = loss.curvature(C), loss.lipschitz(C)
    g, w, q = trace["slope"], trace["weight"], trace["inverse_form"]
    y_hat, losses = trace["prediction"], trace["loss"]
    gain = g**2 * q / (1.0 + w * q)
    drift = w * (y_hat - projected) ** 2 - sigma * g**2 * (y_hat - best.values) ** 2
    span = 2.0 * g * (projected - best.values)
    comparator = loss.value(best.values, targets)
    bound = np.cumsum(comparator) + 0.5 * (alpha * best.norm2 + np.cumsum(gain + drift + span))
    total = float(np.sum(losses))
    # Row by row, so that equal sums do not differ by the order they were summed in.
    slack = math.fsum(comparator - losses + 0.5 * (gain + drift + span)) + 0.5 * alpha * best.norm2
    rounding = 1e-12 * float(np.sum(np.abs(losses) + np.abs(comparator) + gain))
    d_eff, theorem_1 = math.nan, None
    if sigma > 0.0:
        ridge = alpha / (sigma * L**2)
        d_eff = effective_dimension(learner.kernel, points, ridge, exact_up_to=exact_up_to).high
        self_kernels = float(np.sum(learner.kernel.evaluate_diagonal(points)))
        if learner.second_order == "gradient" and learner.step_size == Constant(sigma):
            # Theorem 1 with the constants its proof carries (docs/departures.md, 9).
            growth = d_eff * (1.0 + math.log1p(self_kernels / ridge)) / sigma
            theorem_1 = best.loss + 0.5 * (alpha * best.norm2 + growth)
    return RegretCertificate(
        rows=len(trace),
        cumulative_loss=total,
        hindsight_loss=best.loss,
        hindsight_norm2=best.norm2,
        hindsight_gap=best.gap,
        best_loss=best_loss,
        regret=total - best.loss,
        gain_term=float(np.sum(gain)),
        drift_term=float(np.sum(drift)),
        span_term=float(np.sum(span)),
        loss_bound=float(bound[-1]),
        holds=slack >= -rounding,
        effective_dimension=d_eff,
        theorem_1=theorem_1 if isinstance(learner, KONS) else None,
        theorem_3=_theorem_3(learner, trace, best, theorem_1),
        trace=trace,
        over_time={"loss": np.cumsum(losses), "hindsight": np.cumsum(comparator), "bound": bound},
    )


def _theorem_3(
    learner: NewtonLearner, trace: Trace, best: Hindsight, theorem_1: float | None
) -> float | None:
    """Theorem 1's growth over (1 - eps) max(gamma, beta tau_min), for the unweighted sketch."""
    if not isinstance(learner, SketchedKONS) or learner.weighted or theorem_1 is None:
        return None
    ridge = 0.5 * learner.regularization * best.norm2
    policy = learner.policy
    estimate = trace["leverage_estimate"]
    tau_min = float(np.min(estimate)) / policy.rho  # Theorem 2: estimate <= rho * tau
    share = min(max(policy.floor, policy.beta * tau_min), 1.0)
    growth = theorem_1 - best.loss - ridge
    return math.inf if share == 0.0 else best.loss + ridge + growth / ((1.0 - policy.distortion) * share)


def _on_the_span_of_the_time(learner: EmbeddedKONS, best: Hindsight, points: Any, trace: Trace) -> Vector:
    """f_{P_t}(x_t): the comparator projected on the span that the learner had at row t, at its point."""
    embedding = learner._embedding
    if not len(embedding):
        return np.zeros(len(trace))
    # <e_j, f> for the orthonormal basis of the final span: L^-1 of f at the atoms.
    at_atoms = best.embedding.coordinates(embedding.atoms.view) @ best.coordinates
    coordinates = embedding.factor.solve(at_atoms[None].copy())[0]
    Z = embedding.coordinates(points)
    # The coordinates are triangular: those of an earlier span are the first ones.
    Z[np.arange(Z.shape[1])[None, :] >= trace["size"][:, None]] = 0.0
    projected: Vector = Z @ coordinates
    return projected


def _require_proof(learner: Any) -> None:
    if not isinstance(learner, (KONS, SketchedKONS, EmbeddedKONS, FeatureLearner)):
        given = f"the class {learner.__name__}" if isinstance(learner, type) else type(learner).__name__
        raise ConfigurationError(f"certify takes a KONS, SketchedKONS or EmbeddedKONS, not {given}.")
    unprojected = learner.second_order == "hessian" and isinstance(learner.loss, Squared)
    order, updates = learner.second_order, getattr(learner, "updates", "all")
    reasons = {
        'second_order="hessian" with the squared loss is not projected on the bound': unprojected,
        f'second_order="{order}" is not projected on the bound': order in ("capped", "none"),
        f'updates="{updates}" passes over rows': updates != "all",
    }
    if isinstance(learner, EmbeddedKONS):
        replaces = isinstance(learner.policy, Dependence) and learner.policy.when_full == "replace"
        reasons |= {
            'on_growth="restart" throws away what the bound telescopes over': learner.on_growth == "restart",
            'when_full="replace" moves what was learned to another span': replaces,
            "forgetting below 1 shrinks A between rows": learner.forgetting < 1.0,
        }
    if isinstance(learner, FeatureLearner):
        reasons |= {
            f'curvature="{learner.curvature}" is not that of the paper': learner.second_order is None,
            f'features="{learner.features}" are not those of its kernel': learner.features != "columns",
        }
    for reason, broken in reasons.items():
        if broken:
            raise ConfigurationError(f"no regret bound is proven for this learner: {reason}.")
