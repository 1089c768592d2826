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
    softer: bool = False
    """The square root of the metric: half way back to features that count alike."""
    start: int = 8
    """The number of rows that it waits for.

    As many as it remembers, or as it takes to be told from others.
    """
    logistic: bool = False
    """Of classes: logistic instead of ridge regression."""
    number: int = 0
    """Twins with other atoms differ in this."""

    @property
    def name(self) -> str:
        """For people.

        >>> Role("gaussian", lags=True, memory=300).name
        'gaussian, last targets, memory 300'
        """
        words = [self.kernel, "last targets" if self.lags else "features"]
        words += ["other scaling"] * self.other + ["softer relevance"] * self.softer
        words += ["logistic"] * self.logistic
        words += [f"memory {self.memory}"] * bool(self.memory) + [f"twin {self.number}"] * bool(self.number)
        return ", ".join(words)

    @property
    def of_series(self) -> bool:
        """Whether it is of use only where rows come in an order that matters."""
        return self.lags or self.memory > 0

    def for_classes(self) -> Role:
        """The same where classes are predicted: features that count alike go with the logistic loss."""
        return self._replace(kernel="gaussian", logistic=True) if self.softer else self


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
    Role("gaussian", softer=True, start=1024),
    Role("gaussian", lags=True, memory=100, other=True, start=128),
    Role("gaussian", lags=True, memory=1000, start=1024),
)
#: The one that is never retired.
STEADY = ROLES[0]


def first_roles(count: int, *, linear: bool, classes: bool) -> list[Role]:
    """The first ``count`` roles; beyond the table its kernel experts come again, with other atoms."""
    roles = [role for role in ROLES if linear or role.kernel != "linear"]
    roles = [role.for_classes() for role in roles] if classes else roles
    twins = [role for role in roles if role.kernel != "linear"]
    number = 0
    while len(roles) < count:
        number += 1
        roles += [role._replace(number=number) for role in twins]
    return roles[:count]


def stored_roles(stored: Stored, name: str, known: list[Role]) -> list[Role]:
    """Roles that were saved as tuples, each of them known."""
    roles = [Role(*entry) for entry in stored.tuples(name, str, bool, int, bool, bool, int, bool, int)]
    for role in roles:
        if role not in known or roles.count(role) > 1:
            raise stored.error(f"there is no such role, or twice: {role}")
    return roles
