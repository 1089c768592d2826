"""Tables as people have them: names, kinds, categories, gaps and dates, as rows of numbers."""

from kons.tables.encoder import Encoder, Growth, Piece
from kons.tables.records import Records, is_table, records_of

__all__ = ["Encoder", "Growth", "Piece", "Records", "is_table", "records_of"]
