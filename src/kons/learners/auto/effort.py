"""How much AutoKONS spends: one word for atoms, experts and the rows that are kept; and all it is told."""

from __future__ import annotations

from typing import Any, NamedTuple

from kons.core.conformal import REMEMBERED
from kons.errors import ConfigurationError
from kons.learners.auto.feature_map import Fixed
from kons.learners.auto.quantile_scaling import KNOTS
from kons.learners.auto.schedule import LONGEST

__all__ = ["EFFORTS", "Effort", "Settings", "effort_of"]


class Effort(NamedTuple):
    """What a word stands for."""

    max_atoms: int
    experts: int
    sample: int
    """Rows of the whole stream that are kept: feature maps are chosen, and experts fitted, by these."""
    recent: int
    """Last rows that are kept; with 256 and more a previous ensemble can be fed what it missed."""
    longest: int
    """Rows of the longest chunk, a power of two: those of the chunk at hand are part of a file."""
    knots: int
    """Values of a feature that its quantile scaling remembers."""
    in_turn: bool
    """Whether a selection is spread over chunks: no row takes long, but there are more feature maps."""
    neighbours: int
    """Last rows among which the nearest are sought; of more than 32 columns fewer."""
    errors: int = REMEMBERED
    """Last errors that intervals are made of."""


class Settings(NamedTuple):
    """What an ensemble is told."""

    classes: bool
    effort: Effort
    seed: int = 0
    fixed: Fixed = Fixed()
    targets: int = 1


NORMAL = Effort(
    max_atoms=200,
    experts=13,
    sample=5120,
    recent=2048,
    longest=LONGEST,
    knots=KNOTS,
    in_turn=True,
    neighbours=16384,
)
#: By what it is asked for.
EFFORTS = {
    "tiny": Effort(
        max_atoms=24,
        experts=3,
        sample=108,
        recent=108,
        longest=16,
        knots=17,
        in_turn=False,
        neighbours=0,
        errors=100,
    ),
    "low": NORMAL._replace(max_atoms=100, experts=4, sample=1024, recent=512, neighbours=2048),
    "normal": NORMAL,
    "high": NORMAL._replace(max_atoms=400, neighbours=32768),
}


def effort_of(word: Any) -> Effort:
    """What a word stands for, or an error that lists the words.

    >>> effort_of("normal").max_atoms
    200
    """
    if not isinstance(word, str) or word not in EFFORTS:
        expected = ", ".join(f'"{known}"' for known in EFFORTS)
        raise ConfigurationError(f"effort is {word!r}, expected one of {expected}.")
    return EFFORTS[word]
