"""What a page is made of: headings with a picture, a table or bars, and a caption."""

from __future__ import annotations

from dataclasses import dataclass

from kons.report.drawing import Picture

__all__ = ["Bar", "Shown", "Table"]


@dataclass(frozen=True)
class Table:
    """Heads and cells; ``numbers`` says which columns hold numbers."""

    heads: list[str]
    rows: list[list[str]]
    numbers: list[bool]


@dataclass(frozen=True)
class Bar:
    """A named amount, as a part of the largest."""

    name: str
    text: str
    part: float


@dataclass(frozen=True)
class Shown:
    """A heading with a picture and its caption; or what is missing and why."""

    title: str
    caption: str
    picture: Picture | None = None
    table: Table | None = None
    bars: list[Bar] | None = None
