"""What a benchmark hands back, how it is printed, and how it is saved."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Figure:
    """One number, what it means, and the goal it was held against, if there is one."""

    name: str
    value: float
    meaning: str
    goal: str = ""
    reached: bool | None = None


def at_most(limit: float, name: str, value: float, meaning: str) -> Figure:
    """A figure that should not exceed a limit."""
    return Figure(name, value, meaning, goal=f"at most {limit:g}", reached=value <= limit)


def below(limit: float, name: str, value: float, meaning: str) -> Figure:
    """A figure that should stay under a limit."""
    return Figure(name, value, meaning, goal=f"below {limit:g}", reached=value < limit)


@dataclass(frozen=True)
class Report:
    """The answer to one question. ``table`` has one list per row, under ``columns``."""

    question: str
    data: str
    figures: Sequence[Figure] = ()
    columns: Sequence[str] = ()
    table: Sequence[Sequence[Any]] = ()
    notes: Sequence[str] = ()
    details: dict[str, Any] = field(default_factory=dict)

    def show(self, judged: bool) -> None:
        """Print it; goals are judged only where the sizes are those they speak of."""
        print(f"{self.question}\ndata: {self.data}")
        if self.table:
            print()
            print_table(self.columns, self.table)
        if self.figures:
            print()
            cells = [(f.name, f.value, f.goal, _verdict(f, judged), f.meaning) for f in self.figures]
            print_table(("figure", "value", "goal", "", "meaning"), cells, left=(0, 2, 3, 4))
        for note in self.notes:
            print(f"note: {note}")

    def save(self, name: str, **context: Any) -> None:
        """Write it as JSON beside the benchmarks; the folder is not committed."""
        RESULTS.mkdir(exist_ok=True)
        text = json.dumps({**context, **asdict(self)}, indent=1, default=float)
        (RESULTS / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def print_table(columns: Sequence[str], rows: Sequence[Sequence[Any]], left: Sequence[int] = (0,)) -> None:
    """Aligned columns: those listed in ``left`` to the left, numbers to the right."""
    cells = [list(columns), *([_text(value) for value in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
    for row in cells:
        aligned = [
            cell.ljust(width) if i in left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  " + "  ".join(aligned).rstrip())


def _verdict(figure: Figure, judged: bool) -> str:
    if figure.reached is None:
        return ""
    return ("reached" if figure.reached else "MISSED") if judged else "not judged"


def _text(value: Any) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}" if abs(value) < 1 else f"{value:.2f}"
