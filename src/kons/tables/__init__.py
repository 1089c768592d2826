"""Tables as people have them: names, kinds, categories, gaps and dates, as rows of numbers."""

from kons.tables.encoder import Encoder, Growth, Piece
from kons.tables.records import Records, TypedRecords, is_table, record_to_keep, records_of

__all__ = [
    "Encoder",
    "Growth",
    "Piece",
    "Records",
    "TypedRecords",
    "is_table",
    "record_to_keep",
    "records_of",
]
