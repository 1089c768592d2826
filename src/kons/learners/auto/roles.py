"""The experts: who sees what, and for how long."""

from __future__ import annotations

from typing import NamedTuple

from kons.stored import Stored

__all__ = [
    "BASELINES",
    "LAST",
    "MEAN",
    "STEADY",
    "Role",
    "first_roles",
    "stored_roles",
]


class Role(NamedTuple):
    """One place among the experts: relevance x bandwidth x memory x with or without the last targets."""

    kernel: str
    """``"gaussian"``, ``"matern"`` or ``"linear"``."""
    lags: bool = False
    """Whether it sees the last targets."""
    memory: int = 0
    """Rows after which the past counts 1/e; 0: all of it counts."""
    other: bool = False
    """The scaling with the larger leave-one-out error, lest the choice was wrong."""
    start: int = 8
    """The number of rows that it waits for.

    As many as it remembers, or as it takes to be told from others.
    """
    logistic: bool = False
    """Of classes: logistic instead of ridge regression."""

    @property
    def name(self) -> str:
        """For people.

        >>> Role("gaussian", lags=True, memory=300).name
        'gaussian, last targets, memory 300'
        """
        words = [self.kernel, "last targets" if self.lags else "features"]
        words += ["other scaling"] * self.other + ["logistic"] * self.logistic
        words += [f"memory {self.memory}"] * bool(self.memory)
        return ", ".join(words)

    @property
    def of_series(self) -> bool:
        """Whether it is of use only where rows come in an order that matters."""
        return self.lags or self.memory > 0


#: What is voted on before the experts: the mean of the targets, and the last of them; these learn nothing.
MEAN, LAST, BASELINES = range(3)

# In the order in which they are given up when there is room for fewer.
ROLES = (
    Role("gaussian", start=32),
    Role("linear", start=4),
    Role("gaussian", lags=True, memory=300, start=256),
    Role("matern", start=512),
    Role("gaussian", lags=True, start=64),
    Role("linear", lags=True, memory=300),
    Role("gaussian", lags=True, memory=100, start=128),
    Role("gaussian", other=True, start=128),
    Role("gaussian", memory=300, start=256),
    Role("gaussian", logistic=True, start=1024),
    Role("gaussian", lags=True, memory=100, other=True, start=128),
    Role("gaussian", lags=True, memory=1000, start=1024),
)
#: The one that is never retired.
STEADY = ROLES[0]


def first_roles(count: int, *, linear: bool, classes: bool) -> list[Role]:
    """The first ``count`` roles, or as many as there are."""
    roles = [role for role in ROLES if linear or role.kernel != "linear"]
    return [role for role in roles if classes or not role.logistic][:count]


def stored_roles(stored: Stored, name: str, known: list[Role]) -> list[Role]:
    """Roles that were saved as tuples, each of them known."""
    roles = [Role(*entry) for entry in stored.tuples(name, str, bool, int, bool, int, bool)]
    for role in roles:
        if role not in known or roles.count(role) > 1:
            raise stored.error(f"there is no such role, or twice: {role}")
    return roles
