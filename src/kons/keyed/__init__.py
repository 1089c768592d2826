"""A learner per key: idle ones are parked as flat records, in memory or in a folder.

====================  =================================================================================
``keyed.py``          :class:`Keyed`, the learners of all keys behind the verbs of one
``keys.py``           the key of a row, and rows by their keys
``tally.py``          how well each key is predicted
``parking.py``        learners that are awake, at most so many, and the records of all others
``waiting.py``        rows that wait for their targets, of all keys
``record.py``         a learner's state as one record of bytes, and back
``store.py``          where records are: memory, a folder that survives a crash, the bytes of a bucket
``pages.py``          records in the pages of one file, none of which moves
``bucket.py``         learners of some keys and their state as one value: what a worker of many runs
====================  =================================================================================
"""

from kons.keyed.keyed import Keyed
from kons.keyed.tally import KeySummary

__all__ = ["KeySummary", "Keyed"]
