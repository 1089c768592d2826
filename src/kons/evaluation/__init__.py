"""How good is a prediction: baselines to stand beside every learner."""

from kons.evaluation.baselines import Baseline, OnlineLinear, Persistence, RunningMean

__all__ = ["Baseline", "OnlineLinear", "Persistence", "RunningMean"]
