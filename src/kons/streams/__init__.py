"""Streams of rows: where learners get their X and y from."""

from kons.streams.opening import FORMATS, Format, open_stream
from kons.streams.plan import Plan
from kons.streams.stream import Block, Stream
from kons.streams.synthetic import (
    alternating_labels,
    drifting,
    friedman,
    logistic_map,
    mackey_glass,
    switching,
)
from kons.streams.table import Table, column_names, read_table

__all__ = [
    "FORMATS",
    "Block",
    "Format",
    "Plan",
    "Stream",
    "Table",
    "alternating_labels",
    "column_names",
    "drifting",
    "friedman",
    "logistic_map",
    "mackey_glass",
    "open_stream",
    "read_table",
    "switching",
]
