"""For scikit-learn: estimators with plain parameters around the learners, and leverage-chosen features.

============================  ==============================================================
``KONSRegressor``             numbers in any units
``KONSClassifier``            labels of any kind and number
``NoveltyDetector``           outliers: how new rows are
``KORSFeatures``              a transformer: Nystrom features on landmarks chosen by leverage
============================  ==============================================================

All learn in one pass over the rows, in their order, and go on with ``partial_fit``.
"""

try:
    import sklearn as _sklearn  # noqa: F401
except ImportError:
    from kons.errors import MissingExtraError

    raise MissingExtraError("kons.sklearn", "sklearn") from None

from kons.sklearn.estimators import KONSClassifier, KONSRegressor
from kons.sklearn.landmarks import KORSFeatures
from kons.sklearn.novelty import NoveltyDetector

__all__ = ["KONSClassifier", "KONSRegressor", "KORSFeatures", "NoveltyDetector"]
