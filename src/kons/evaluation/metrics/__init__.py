r"""How far off were the predictions: metrics that run along a stream, and over its last rows.

=====================  ==============  ===============================================  ==============
name                   task            over n rows                                      running memory
=====================  ==============  ===============================================  ==============
``mse``                regression      mean (y - p)^2                                   two numbers
``rmse``               regression      sqrt(mse)                                        two numbers
``mae``                regression      mean \|y - p\|                                   two numbers
``medae``              regression      median \|y - p\|                                 65,536 counts
``r2``                 regression      1 - sum (y - p)^2 / sum (y - mean y)^2           five numbers
``error_rate``         classification  share of wrong labels                            two numbers
``log_loss``           classification  mean -log P(the true label)                      two numbers
``auc``                classification  P(score of a positive > score of a negative)     16,386 counts
``average_precision``  classification  mean precision over the positive rows            16,386 counts
``f1``                 classification  2 tp/(2 tp + fp + fn); their mean, many classes  three counts a class
``precision``          classification  tp/(tp + fp), likewise                           three counts a class
``recall``             classification  tp/(tp + fn), likewise                           three counts a class
=====================  ==============  ===============================================  ==============

A metric is told of blocks of rows and knows its value over all of them; :meth:`Metric.over` is the same
quantity over given rows, which is how windows are measured. All are exact but the
running AUC, which says how far off it can be (:attr:`AUC.error`). Where a quantity is not defined (R^2 of a
constant target, AUC of one class) it is NaN.
"""

from __future__ import annotations

from collections.abc import Iterable

from kons.errors import ConfigurationError
from kons.evaluation.metrics.base import Metric, Rows, Total
from kons.evaluation.metrics.classification import (
    AUC,
    F1,
    AveragePrecision,
    ErrorRate,
    LogLoss,
    Precision,
    Recall,
)
from kons.evaluation.metrics.regression import MAE, MSE, R2, RMSE, MedianAbsoluteError

__all__ = [
    "AUC",
    "F1",
    "MAE",
    "METRICS",
    "MSE",
    "R2",
    "RMSE",
    "AveragePrecision",
    "ErrorRate",
    "LogLoss",
    "MedianAbsoluteError",
    "Metric",
    "Precision",
    "Recall",
    "Rows",
    "Total",
    "make_metrics",
]

#: Every metric by its name.
METRICS: dict[str, type[Metric]] = {
    cls.name: cls
    for cls in (
        MSE,
        RMSE,
        MAE,
        MedianAbsoluteError,
        R2,
        ErrorRate,
        LogLoss,
        AUC,
        AveragePrecision,
        F1,
        Precision,
        Recall,
    )
}


def make_metrics(task: str, names: Iterable[str] | None = None) -> list[Metric]:
    """Fresh metrics by name; all those of the task if no names are given.

    >>> [metric.name for metric in make_metrics("classification")]
    ['error_rate', 'log_loss', 'auc', 'average_precision', 'f1', 'precision', 'recall']
    """
    fitting = {name: cls for name, cls in METRICS.items() if cls.task == task}
    if names is None:
        return [cls() for cls in fitting.values()]
    asked = [names] if isinstance(names, str) else list(names)
    for name in asked:
        if name not in fitting:
            raise ConfigurationError(
                f"there is no metric {name!r} for {task}; there are {', '.join(fitting)}."
            )
    return [fitting[name]() for name in dict.fromkeys(asked)]
