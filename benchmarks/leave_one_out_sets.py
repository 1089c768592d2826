"""Would a constant have been chosen without the set that it is judged on? Settings over sets, one left out.

::

    choice(S) = the setting with the least geometric mean of losses over the sets S
    cost of s = loss on s of choice(all but s) / loss on s of choice(all) - 1

A constant that was set in view of all sets may flatter itself on each. Where the choice stays the same
without a set, nothing was fitted to it; elsewhere the cost says what the figure of that set owes to having
been looked at. The mean cost belongs beside the figures that the constant is chosen by. From files::

    python -m benchmarks.leave_one_out_sets 8=a.json 8=b.json 16=c.json 16=d.json

Each is a report that ``python -m benchmarks`` saved (``against_trees``, ``drift``), or plain JSON
``{set: loss}``; several files of one setting are put together.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.reporting import print_table

Losses = Mapping[str, Mapping[str, float]]
"""By setting and set."""


class LeftOut(NamedTuple):
    """What would have been chosen without one set, and what that costs there, as a part of its loss."""

    name: str
    choice: str
    cost: float


def choose(losses: Losses, sets: Sequence[str]) -> str:
    """The setting with the least geometric mean over the sets; the first of several."""
    return min(losses, key=lambda setting: math.fsum(math.log(losses[setting][name]) for name in sets))


def leave_one_out(losses: Losses) -> tuple[str, list[LeftOut]]:
    """The choice of all sets, and of all but each one.

    >>> losses = {"8": {"a": 1.0, "b": 1.0, "c": 1.0}, "16": {"a": 0.5, "b": 1.25, "c": 1.25}}
    >>> choice, without = leave_one_out(losses)
    >>> choice, [(one.name, one.choice, one.cost) for one in without]
    ('16', [('a', '8', 1.0), ('b', '16', 0.0), ('c', '16', 0.0)])
    """
    sets = _checked(losses)
    choice = choose(losses, sets)
    without = []
    for name in sets:
        other = choose(losses, [kept for kept in sets if kept != name])
        without.append(LeftOut(name, other, losses[other][name] / losses[choice][name] - 1.0))
    return choice, without


def mean_cost(without: Sequence[LeftOut]) -> float:
    """Of all sets, by the geometric mean of the ratios."""
    return math.exp(math.fsum(math.log1p(one.cost) for one in without) / len(without)) - 1.0


def _checked(losses: Losses) -> list[str]:
    """The sets, which are the same of all settings, two or more, with losses above 0."""
    if len(losses) < 2:
        raise ValueError(f"{len(losses)} setting(s): there is nothing to choose")
    first, *others = losses
    sets = list(losses[first])
    for setting in others:
        if missing := set(sets) ^ set(losses[setting]):
            raise ValueError(f"settings {first} and {setting} do not both have {', '.join(sorted(missing))}")
    if len(sets) < 2:
        raise ValueError(f"{len(sets)} set(s): none can be left out")
    for setting, of_sets in losses.items():
        for name, loss in of_sets.items():
            if not 0.0 < loss < math.inf:
                raise ValueError(f"the loss of {setting} on {name} is {loss}: it has no geometric mean")
    return sets


def read(arguments: Sequence[str]) -> dict[str, dict[str, float]]:
    """SETTING=FILE, several times."""
    found: dict[str, dict[str, float]] = {}
    for argument in arguments:
        setting, equals, file = argument.partition("=")
        if not equals:
            raise ValueError(f"{argument!r}, expected SETTING=FILE")
        content = json.loads(Path(file).read_text(encoding="utf-8"))
        losses = content.get("details", {}).get("losses", content)
        if twice := set(losses) & set(found.setdefault(setting, {})):
            raise ValueError(f"{file}: setting {setting} has {', '.join(sorted(twice))} already")
        found[setting].update(losses)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.leave_one_out_sets")
    parser.add_argument(
        "results", nargs="+", metavar="SETTING=FILE", help="JSON: a saved report or {set: loss}"
    )
    try:
        losses = read(parser.parse_args().results)
        choice, without = leave_one_out(losses)
    except (OSError, ValueError, TypeError) as error:
        parser.error(str(error))
    print_table(
        ("left out", "choice", f"cost beside {choice}"),
        [[one.name, one.choice, f"{100 * one.cost:+.2f} %"] for one in without],
        left=(0, 1),
    )
    print(f"chosen by all: {choice}; mean cost of choosing blindly {100 * mean_cost(without):+.2f} %")


if __name__ == "__main__":
    main()
