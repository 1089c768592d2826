"""Streams of rows: where learners get their X and y from."""

from kons.streams.csv import CsvTable, csv_columns, read_csv
from kons.streams.synthetic import alternating_labels, drifting, friedman, mackey_glass

__all__ = [
    "CsvTable",
    "alternating_labels",
    "csv_columns",
    "drifting",
    "friedman",
    "mackey_glass",
    "read_csv",
]
