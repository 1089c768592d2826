"""How the served model is doing: its last rows, and the baselines on the same rows and labels."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import Any

import numpy as np

from kons.errors import KonsError
from kons.evaluation.beside import BASELINES, MOST_FEATURES

__all__ = ["WINDOW", "Monitor"]

#: Rows that the losses are means of.
WINDOW = 1000


class Monitor:
    """The last rows whose labels came, with the loss of the model and of each baseline.

    Baselines are asked when the model is asked, and told what it is told. Rows of several targets are not
    scored.

    >>> monitor = Monitor("regression")
    >>> for i in range(3):
    ...     monitor.ask(i, np.array([float(i)]))
    ...     monitor.tell(i, 2.0, 1.5, None, float(i))
    >>> monitor.losses()["model"], monitor.losses()["persistence"]
    (0.25, 1.3333333333333333)
    """

    def __init__(self, task: str, most: int = 10_000) -> None:
        self.task = task
        self._baselines: dict[str, Any] = {name: make() for name, make in BASELINES[task].items()}
        for baseline in self._baselines.values():
            baseline.queue.most = most
        self._width: int | None = None
        self._rows: deque[dict[str, Any]] = deque(maxlen=WINDOW)

    def _input(self, name: str, point: Any) -> Any:
        """What a baseline looks at: of a row, the columns that there were at first."""
        return point[: self._width] if name == "linear" else ()

    def ask(self, id: Any, point: Any) -> None:
        """A row waits for its label."""
        if self._width is None:
            self._width = len(point)
            if not 0 < self._width <= MOST_FEATURES:
                del self._baselines["linear"]
        for name, baseline in self._baselines.items():
            with suppress(KonsError):  # what the model takes and a baseline does not is not scored
                baseline.ask(self._input(name, point), id)

    def forget(self, id: Any) -> None:
        """Its label does not come."""
        for baseline in self._baselines.values():
            if id in baseline.queue:
                baseline.forget(id)

    def tell(self, id: Any, y: Any, prediction: Any, interval: Any, time: float) -> None:
        """A label came."""
        losses = {"model": self._loss(y, prediction)}
        for name, baseline in self._baselines.items():
            with suppress(KonsError, KeyError):
                losses[name] = self._loss(y, baseline.queue.find(id)[1])
                baseline.tell(id, y)
        row = {"time": time, "y": y, "prediction": prediction, "interval": interval, "losses": losses}
        self._rows.append(row)

    def _loss(self, y: Any, prediction: Any) -> float:
        if self.task == "classification":
            return float(prediction != y)
        off = min(1e150, abs(float(prediction) - float(y)))  # its square is a number
        return off * off

    # ---- what is shown

    def losses(self) -> dict[str, float]:
        """Mean squared error, or error rate, over the last rows."""
        rows = list(self._rows)
        names = rows[-1]["losses"] if rows else ()
        each = {name: [row["losses"][name] for row in rows if name in row["losses"]] for name in names}
        return {name: float(np.mean(losses)) for name, losses in each.items()}

    @property
    def coverage(self) -> float | None:
        """The part of the last labels inside their intervals."""
        inside = [r["interval"][0] <= r["y"] <= r["interval"][1] for r in self._rows if r["interval"]]
        return float(np.mean(inside)) if inside else None

    def recent(self, count: int) -> list[dict[str, Any]]:
        """The last rows, oldest first."""
        return list(self._rows)[-count:]

    # ---- snapshots

    def save(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What files keep as a tree, and what is plain."""
        states = {}
        for name, baseline in list(self._baselines.items()):
            states[name] = baseline.state()
            try:
                self._restored(name, states[name])
            except KonsError:  # it overflowed: what cannot be read would keep the service from starting
                del states[name], self._baselines[name]
        return states, {"width": self._width, "rows": list(self._rows)}

    def load(self, states: dict[str, Any], plain: dict[str, Any]) -> None:
        """What :meth:`save` gave."""
        self._baselines = {name: self._restored(name, state) for name, state in states.items()}
        self._width = plain["width"]
        self._rows.extend(plain["rows"])

    def _restored(self, name: str, state: dict[str, Any]) -> Any:
        made = BASELINES[self.task][name]()
        return type(made).from_state(made.parameters(), state)
