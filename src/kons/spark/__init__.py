"""Many machines: a learner per key on streams, dictionaries and batch models of parts of the rows, on Spark.

====================  =================================================================================
``streams.py``        :func:`keyed` on batch and streaming frames, and the learners out of a checkpoint
``scoring.py``        :func:`score`, a saved model as a column
``span.py``           :func:`dictionary` and :func:`fit_embedded`: parts merged or summed up a tree
``sink.py``           :func:`write_once`: each batch once, whatever is repeated
``files.py``          files of a folder as rows, each cell as the plan of the first file reads it
``session.py``        a session with the settings that all this wants
``example.py``        simulated sensors and a live table: ``python -m kons.spark.example``
====================  =================================================================================
"""

try:
    import pandas as _pandas  # noqa: F401
    import pyarrow as _pyarrow  # noqa: F401
    import pyspark as _pyspark  # noqa: F401
except ImportError:
    from kons.errors import MissingExtraError

    raise MissingExtraError("kons.spark", "spark") from None

from kons.spark.scoring import score
from kons.spark.sink import write_once
from kons.spark.span import dictionary, fit_embedded
from kons.spark.streams import keyed, learners_in

__all__ = ["dictionary", "fit_embedded", "keyed", "learners_in", "score", "write_once"]
