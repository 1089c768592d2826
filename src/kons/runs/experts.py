"""How much say the experts of a learner had along a run."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.learners.protocol import as_learner

__all__ = ["Experts"]


class Experts:
    """The shares of all that ``expert_names`` lists, noted at the end of each block.

    :meth:`columns` hands the notes over to a trace file, so that memory stays bounded. A learner without
    ``shares`` has no experts, and nothing is noted.

    >>> import numpy as np
    >>> from kons import AutoKONS
    >>> model = AutoKONS(experts=2)
    >>> experts = Experts()
    >>> trace = model.advance(np.arange(40.0)[:, None], np.arange(40.0))
    >>> experts.note(model, row=39)
    >>> experts.columns()["shares"].shape == (1, len(model.expert_names))
    True
    """

    def __init__(self) -> None:
        self._notes: list[tuple[int, list[float]]] = []

    def note(self, learner: Any, row: int) -> None:
        """Note who has how much say after a block that ended with ``row``."""
        if now := shares_of(learner):
            self._notes.append((row, list(now.values())))

    def columns(self) -> dict[str, NDArray[Any]]:
        """What was noted since the last call: ``shares[i, j]`` of expert j after row ``share_rows[i]``."""
        notes, self._notes = self._notes, []
        if not notes:
            return {}
        return {
            "share_rows": np.array([row for row, _ in notes]),
            "shares": np.array([shares for _, shares in notes]),
        }


def shares_of(learner: Any) -> dict[str, float]:
    """The weight of each expert by name, in the order of their numbers; 0 of those that are not at work."""
    told = as_learner(learner)
    shares = told.shares
    return {name: float(shares.get(name, 0.0)) for name in told.expert_names}
