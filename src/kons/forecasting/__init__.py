"""The next H steps of a series: one model, one pass, columns known ahead, gaps in time."""

from kons.forecasting.forecaster import Forecaster, Path, Paths

__all__ = ["Forecaster", "Path", "Paths"]
