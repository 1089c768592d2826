"""The learners: one file a family."""

from kons.learners.auto import AutoKONS
from kons.learners.budgeted import FunctionalGradient, SlidingWindow
from kons.learners.classifier import Classifier
from kons.learners.embedded import EmbeddedKONS
from kons.learners.features import FeatureLearner
from kons.learners.kons import KONS
from kons.learners.kors import KORS
from kons.learners.scaled import Scaled
from kons.learners.sketched import SketchedKONS
from kons.learners.trace import Trace

__all__ = [
    "KONS",
    "KORS",
    "AutoKONS",
    "Classifier",
    "EmbeddedKONS",
    "FeatureLearner",
    "FunctionalGradient",
    "Scaled",
    "SketchedKONS",
    "SlidingWindow",
    "Trace",
]
