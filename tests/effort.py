"""How much a run of the tests does: a fixed sample in ``make test``, everything in ``make soak``.

The one place that knows which of the two it is. What is sampled is written where the test is, and is
the same in every run: nothing here is drawn at random, and nothing depends on a clock.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping
from typing import Any

import pytest
from hypothesis import settings

__all__ = ["amount", "covering", "every_pair", "every_value", "examples", "is_soak", "some", "start"]

_soak = False

#: Machines are shared and noisy: no example has a time to be done in. A sample is the same in every run, a
#: soak draws other examples each time, and says how to repeat the one that failed.
settings.register_profile("sample", deadline=None, database=None, derandomize=True, max_examples=20)
settings.register_profile("soak", deadline=None, database=None, print_blob=True, max_examples=500)


def start(*, soak: bool) -> None:
    """Choose, once, before any test is collected: ``pytest --soak`` does."""
    global _soak
    _soak = soak
    settings.load_profile("soak" if soak else "sample")


def is_soak() -> bool:
    """Whether everything is to be done."""
    return _soak


def amount(sample: int, everything: int) -> int:
    """Rows, games, kills: a few, or all of them."""
    return everything if _soak else sample


def examples(sample: int, **others: Any) -> settings:
    """As many examples of Hypothesis, and ten times as many in a soak."""
    return settings(max_examples=amount(sample, 10 * sample), **others)


def some(cases: Collection[Any], *sample: Any) -> list[Any]:
    """The cases that are named, or all; of a dict its keys."""
    if missing := [case for case in sample if case not in cases]:
        raise LookupError(f"there are no cases {missing}")
    return list(cases) if _soak else list(sample)


def every_pair(**axes: Collection[Any]) -> pytest.MarkDecorator:
    """Parametrize with so many cases that any two values meet in one; in a soak with the full product.

    An axis is a list, or a dict whose keys name its values.
    """
    return _crossed(axes, covering([len(axis) for axis in axes.values()]))


def every_value(**axes: Collection[Any]) -> pytest.MarkDecorator:
    """As :func:`every_pair`, with so few cases that every value is in one: where each takes long."""
    longest = max(len(axis) for axis in axes.values())
    return _crossed(axes, [tuple(i % len(axis) for axis in axes.values()) for i in range(longest)])


def _crossed(axes: Mapping[str, Collection[Any]], sample: list[tuple[int, ...]]) -> pytest.MarkDecorator:
    named = [_named(axis) for axis in axes.values()]
    everything = itertools.product(*(range(len(axis)) for axis in named))
    cases = [
        [axis[at] for axis, at in zip(named, row, strict=True)] for row in (everything if _soak else sample)
    ]
    return pytest.mark.parametrize(
        list(axes),
        [
            pytest.param(*(value for _, value in case), id="-".join(name for name, _ in case))
            for case in cases
        ],
    )


def _named(axis: Collection[Any]) -> list[tuple[str, Any]]:
    if isinstance(axis, Mapping):
        return [(str(name), value) for name, value in axis.items()]
    return [(str(value), value) for value in axis]


def covering(sizes: list[int]) -> list[tuple[int, ...]]:
    """Places in axes of these sizes, few of them, so that any two places of two axes are in one.

    Greedily, of those in the full product the one with the most pairs that are not there yet.
    """
    pairs = list(itertools.combinations(range(len(sizes)), 2))
    if not pairs:
        return [(at,) for at in range(sizes[0])]
    missing = {(a, b, x, z) for a, b in pairs for x in range(sizes[a]) for z in range(sizes[b])}
    rows = list(itertools.product(*(range(size) for size in sizes)))
    chosen = []
    while missing:
        row = max(rows, key=lambda row: sum((a, b, row[a], row[b]) in missing for a, b in pairs))
        missing -= {(a, b, row[a], row[b]) for a, b in pairs}
        chosen.append(row)
    return sorted(chosen)
