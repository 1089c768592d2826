"""Whether a run will fit into memory."""

from __future__ import annotations

import os

from kons.errors import ConfigurationError, announce
from kons.runs.settings import Settings
from kons.streams import Stream

__all__ = ["require_memory"]


def require_memory(settings: Settings, stream: Stream) -> None:
    """Refuse an exact learner on more rows than the machine can hold; say so if they are many."""
    rows = settings.rows_of(stream)
    if not settings.recipe.exact or rows is None:
        return
    needed, there = 4.0 * rows**2, memory_of_machine()
    if there is not None and needed > 0.8 * there:
        raise ConfigurationError(
            f"{settings.learner!r} keeps rows^2/2 numbers, for about {rows:,} rows {needed / 1e9:,.0f} GB, "
            f"and there are {there / 1e9:,.0f} GB: use --learner embedded, or fewer rows (--rows "
            f"{int((0.4 * there / 4.0) ** 0.5):d})."
        )
    if needed > 1e9:
        announce(
            f"{settings.learner!r} keeps rows^2/2 numbers: about {needed / 1e9:.1f} GB at the end, and every "
            "row costs more than the one before."
        )


def memory_of_machine() -> int | None:
    """Bytes of memory, where the system tells."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None
