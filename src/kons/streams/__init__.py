"""Streams of rows: where learners get their X and y from."""

from kons.streams.synthetic import alternating_labels, drifting, friedman, mackey_glass

__all__ = ["alternating_labels", "drifting", "friedman", "mackey_glass"]
