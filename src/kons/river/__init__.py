"""KONS in River: ``learn_one`` and ``predict_one`` on dicts, with all that may happen to a dict in a stream.

>>> from river import evaluate, metrics
>>> from river.datasets import synth
>>> from kons.river import KONSRegressor
>>> stream = synth.Friedman(seed=1).take(500)
>>> mae = evaluate.progressive_val_score(stream, KONSRegressor(), metrics.MAE())
>>> mae.get() < 2.0
True
"""

try:
    import river as _river  # noqa: F401
except ImportError:
    from kons.errors import MissingExtraError

    raise MissingExtraError("kons.river", "river") from None

from kons.river.models import KONSClassifier, KONSRegressor
from kons.river.novelty import NoveltyDetector

__all__ = ["KONSClassifier", "KONSRegressor", "NoveltyDetector"]
