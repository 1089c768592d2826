"""What the command line chose."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Settings:
    """Where the data are, whether small sizes will do, and whether slow learners are worth the wait.

    ``cache`` is a file that keeps what slow learners of others reached, None to play them each time; ``sets``
    are those of ``tree_rivals`` or ``frontier`` that are played, none for all; ``capymoa`` is the Python of
    an environment that has CapyMOA, None to leave its forests out.
    """

    folder: Path | None = None
    quick: bool = False
    slow: bool = False
    cache: Path | None = None
    sets: tuple[str, ...] = ()
    capymoa: str | None = None

    @property
    def rounds(self) -> int:
        """How often contenders alternate."""
        return 3 if self.quick else 5
