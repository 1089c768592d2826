"""A learner per key: idle ones are parked as flat records, in memory or in a folder.

====================  =================================================================================
``keyed.py``          :class:`Keyed`, the learners of all keys behind the verbs of one
``record.py``         a learner's state as one record of bytes, and back
``store.py``          where records are: memory, a folder that survives a crash, the bytes of a bucket
``bucket.py``         learners of some keys and their state as one value: what a worker of many runs
====================  =================================================================================
"""

from kons.keyed.keyed import Keyed, KeySummary

__all__ = ["KeySummary", "Keyed"]
