"""Tables as people have them: names, kinds, categories, gaps and dates, as rows of numbers."""

from kons.tables.encoder import Encoder, Growth, Piece
from kons.tables.records import ArrayRecords, Records, is_table, record_to_keep, records_of

__all__ = ["ArrayRecords", "Encoder", "Growth", "Piece", "Records", "is_table", "record_to_keep", "records_of"]
