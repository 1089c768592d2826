"""How good is a prediction: evaluation along a stream, baselines, and data sets learned in passes."""

from kons.evaluation.baselines import (
    Baseline,
    LabelBaseline,
    LastLabel,
    MajorityClass,
    Persistence,
    RunningMean,
)
from kons.evaluation.batch import BatchFit, fit_batch
from kons.evaluation.first_order import KernelGradientDescent
from kons.evaluation.intervals import ResidualIntervals
from kons.evaluation.linear import OnlineLinear
from kons.evaluation.logistic import OnlineLogistic
from kons.evaluation.metrics import METRICS, Metric
from kons.evaluation.prequential import Prequential, Scored
from kons.evaluation.result import Evaluation
from kons.evaluation.rivals import RIVALS, Refitted, RiverModel, make_rival
from kons.evaluation.several import Several
from kons.evaluation.whole_stream import evaluate

__all__ = [
    "METRICS",
    "RIVALS",
    "Baseline",
    "BatchFit",
    "Evaluation",
    "KernelGradientDescent",
    "LabelBaseline",
    "LastLabel",
    "MajorityClass",
    "Metric",
    "OnlineLinear",
    "OnlineLogistic",
    "Persistence",
    "Prequential",
    "Refitted",
    "ResidualIntervals",
    "RiverModel",
    "RunningMean",
    "Scored",
    "Several",
    "evaluate",
    "fit_batch",
    "make_rival",
]
