"""Expert specs: kernel, features, memory, and from which row on; and the table of all."""

from __future__ import annotations

from typing import NamedTuple

from kons.stored import Stored

__all__ = [
    "BASELINES",
    "LAST",
    "MEAN",
    "STEADY",
    "TREND",
    "ExpertSpec",
    "first_specs",
    "has_trend",
    "sentinel_of",
    "stored_specs",
]


class ExpertSpec(NamedTuple):
    """One place among the experts: relevance x bandwidth x memory x with or without the last targets."""

    kernel: str
    """``"gaussian"``, ``"laplace"`` or ``"linear"``; ``"neighbours"``: a fit to the nearest rows."""
    lags: bool = False
    """Whether the last targets are features."""
    memory: int = 0
    """Rows after which the past counts 1/e; 0: all of it counts."""
    alternative: bool = False
    """The scaling with the larger leave-one-out error, lest the choice was wrong."""
    start: int = 8
    """The number of rows that it waits for.

    As many as it remembers, or as it takes until its predictions differ from those of others.
    """
    logistic: bool = False
    """Of classes: logistic instead of ridge regression."""

    @property
    def name(self) -> str:
        """For people.

        >>> ExpertSpec("gaussian", lags=True, memory=300).name
        'gaussian, last targets, memory 300'
        """
        words = [self.kernel, "last targets" if self.lags else "features"]
        words += ["alternative scaling"] * self.alternative + ["logistic"] * self.logistic
        words += [f"memory {self.memory}"] * bool(self.memory)
        return ", ".join(words)

    @property
    def of_series(self) -> bool:
        """Whether it is of use only where rows come in an order that matters."""
        return self.lags or self.memory > 0


#: Columns of stacking before the experts, which learn nothing: the mean of the targets, the last of them, and
#: what the fit to the nearest rows makes of what the steady expert predicted there, instead of their targets.
#: Where that differs from what it predicts here, so may the targets.
MEAN, LAST, TREND, BASELINES = range(4)

# In the order in which they are given up when there is room for fewer.
SPECS = (
    ExpertSpec("gaussian", start=32),
    ExpertSpec("linear", start=4),
    ExpertSpec("gaussian", lags=True, memory=300, start=256),
    ExpertSpec("neighbours", start=128),
    ExpertSpec("laplace", start=512),
    ExpertSpec("gaussian", lags=True, start=64),
    ExpertSpec("linear", lags=True, memory=300),
    ExpertSpec("neighbours", lags=True, start=512),
    ExpertSpec("gaussian", alternative=True, start=128),
    ExpertSpec("gaussian", memory=300, start=256),
    ExpertSpec("gaussian", logistic=True, start=1024),
    ExpertSpec("gaussian", lags=True, memory=100, alternative=True, start=128),
    ExpertSpec("neighbours", memory=512, start=256),
)
#: The one that is never pruned.
STEADY = SPECS[0]


def has_trend(spec: ExpertSpec) -> bool:
    """Whether it keeps what the steady expert predicted beside the targets of rows: neighbours among all."""
    return spec.kernel == "neighbours" and not spec.of_series


def first_specs(count: int, *, given_kernel: bool, classes: bool) -> list[ExpertSpec]:
    """The first ``count`` specs, or as many as there are; with a given kernel, those that take one."""
    specs = [spec for spec in SPECS if spec.kernel == "gaussian" or not given_kernel]
    return [spec for spec in specs if classes or not spec.logistic][:count]


def sentinel_of(specs: list[ExpertSpec]) -> ExpertSpec | None:
    """The one with a short memory that is never pruned: without last targets, if there is such a one."""
    short = [spec for spec in specs if spec.memory]
    return min(short, key=lambda spec: spec.lags, default=None)


def stored_specs(stored: Stored, name: str, known: list[ExpertSpec]) -> list[ExpertSpec]:
    """Specs that were saved as tuples, each of them known."""
    specs = [ExpertSpec(*entry) for entry in stored.tuples(name, str, bool, int, bool, int, bool)]
    for spec in specs:
        if spec not in known or specs.count(spec) > 1:
            raise stored.error(f"there is no such spec, or twice: {spec}")
    return specs
