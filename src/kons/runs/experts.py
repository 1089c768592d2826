"""Who was among the experts of a learner along a run, and how much say each had."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Experts"]


class Experts:
    """A number for every expert by its name, for good: a learner that retires some numbers the rest anew.

    At the end of each block the weight of each is noted; :meth:`columns` hands the notes over to a trace
    file, so that memory stays bounded. A learner without ``shares`` has no experts, and nothing is noted.

    >>> import numpy as np
    >>> from kons import AutoKONS
    >>> model = AutoKONS(experts=2)
    >>> experts = Experts(model)
    >>> trace = model.advance(np.arange(40.0)[:, None], np.arange(40.0))
    >>> sorted(experts.noted(trace.columns, model, row=39)["expert"].tolist())[-1] < len(experts.names)
    True
    >>> experts.names, experts.columns()["shares"].shape
    (['mean', 'gaussian, features', 'linear, features'], (1, 3))
    """

    def __init__(self, learner: Any, names: Iterable[str] = ()) -> None:
        self.names: list[str] = list(names)
        """In the order of their numbers."""
        self._notes: list[tuple[int, dict[str, float]]] = []
        self._present = self._numbers(_shares(learner))

    def noted(self, columns: dict[str, Any], learner: Any, row: int) -> dict[str, Any]:
        """Note who has how much say after a block that ended with ``row``; its trace, with our numbers.

        In a block in which some were retired it cannot be told who led: -1.
        """
        before, shares = self._present, _shares(learner)
        self._present = self._numbers(shares)
        if shares:
            self._notes.append((row, shares))
        if "expert" not in columns:
            return columns
        same = np.array_equal(before, self._present)
        return columns | {
            "expert": before[columns["expert"]] if same else np.full(len(columns["expert"]), -1)
        }

    def columns(self) -> dict[str, NDArray[Any]]:
        """What was noted since the last call: ``shares[i, j]`` of expert j after row ``share_rows[i]``."""
        notes, self._notes = self._notes, []
        if not notes:
            return {}
        table = [[shares.get(name, 0.0) for name in self.names] for _, shares in notes]
        return {"share_rows": np.array([row for row, _ in notes]), "shares": np.array(table)}

    def now(self, learner: Any) -> list[dict[str, Any]] | None:
        """Name and weight of each; 0 of those that were retired. None for a learner without experts."""
        shares = _shares(learner)
        self._numbers(shares)  # where nothing was noted, some may be new
        return [{"name": name, "share": shares.get(name, 0.0)} for name in self.names] if shares else None

    def _numbers(self, shares: dict[str, float]) -> NDArray[np.int64]:
        self.names += [name for name in shares if name not in self.names]
        return np.array([self.names.index(name) for name in shares], dtype=np.int64)


def _shares(learner: Any) -> dict[str, float]:
    return {name: float(share) for name, share in getattr(learner, "shares", {}).items()}
