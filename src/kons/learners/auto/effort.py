"""How much AutoKONS spends: one word for atoms, experts and the rows that are kept."""

from __future__ import annotations

from typing import Any, NamedTuple

from kons.errors import ConfigurationError

__all__ = ["EFFORTS", "Effort", "effort_of"]


class Effort(NamedTuple):
    """What a word stands for."""

    max_atoms: int
    experts: int
    sample: int
    """Rows of the whole stream that are kept: feature maps are chosen, and experts fitted, by these."""
    recent: int
    """Last rows that are kept: at least the 256 that a previous ensemble may have missed."""


#: By what it is asked for.
EFFORTS = {
    "tiny": Effort(max_atoms=24, experts=3, sample=256, recent=256),
    "normal": Effort(max_atoms=200, experts=12, sample=8192, recent=2048),
}


def effort_of(word: Any) -> Effort:
    """What a word stands for, or an error that lists the words.

    >>> effort_of("normal").max_atoms
    200
    """
    if not isinstance(word, str) or word not in EFFORTS:
        expected = " or ".join(f'"{known}"' for known in EFFORTS)
        raise ConfigurationError(f"effort is {word!r}, expected {expected}.")
    return EFFORTS[word]
