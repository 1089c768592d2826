"""How good is a prediction: baselines to stand beside every learner, and data sets learned in passes."""

from kons.evaluation.baselines import Baseline, OnlineLinear, Persistence, RunningMean
from kons.evaluation.batch import BatchFit, fit_batch
from kons.evaluation.first_order import KernelGradientDescent

__all__ = [
    "Baseline",
    "BatchFit",
    "KernelGradientDescent",
    "OnlineLinear",
    "Persistence",
    "RunningMean",
    "fit_batch",
]
