"""Is a stream sorted by its target? Then the last target tells the next one, and no figure means anything.

*Numbers* are sorted if one step in twenty at most goes the other way, be it in parts; or, under some noise,
if the mean ranks of 64 stretches of rows go one way: what they go back is a tenth of what they go on, steps
within the noise of a mean not counted, and all ranks are nearly those of a sorted list (correlation .9). A
random walk, or any series, goes back about as often, and as far, as it goes on.

*Labels* are sorted if they come in few blocks: at most two more than labels, once rows unlike their
neighbours are left aside, and these are one row in twenty at most. A series whose labels persist has many
more.

Ranks and blocks are those of a sample of at most 2,048 rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Vector
from kons.evaluation.sample import StratifiedSample
from kons.state import Count, Inner, Number, Part, fields

__all__ = ["TargetOrder"]

# Targets that are kept at most: half of them always are.
MOST = 2048
# Rows below which an order may be chance.
FEWEST = 200
# Different whole numbers that may well be classes.
FEW_VALUES = 10
# Stretches that numbers are compared by, of four targets at least.
STRETCHES = 64
# So many standard errors are noise.
NOISE = 3.0
# Of the rows' own steps so many may go the other way, of at least so many.
REVERSED, STEPS = 0.05, 50
# What goes back may be this part of what goes on; ranks with this correlation are nearly sorted.
BACK, SORTED = 0.1, 0.9
# Neighbours on each side that a label is compared with, and the part of labels that may be unlike them.
SIDE, UNLIKE = 4, 0.05
# Blocks more than there are labels.
MORE = 2


class TargetOrder(Part):
    """Looks at targets, or codes of labels, as they come; 16 kB, a tenth of a microsecond a row.

    >>> import numpy as np
    >>> y = np.random.default_rng(0).normal(size=5000)
    >>> orders = [TargetOrder(labelled=False) for _ in range(3)]
    >>> for order, targets in zip(orders, (np.sort(y), np.cumsum(y), y)):
    ...     order.follow(targets)
    >>> [order.found for order in orders]
    ['ascending', None, None]
    """

    STATE = fields(_sample=Inner(), _last=Number(), _rises=Count(), _falls=Count())

    def __init__(self, *, labelled: bool) -> None:
        self.labelled = labelled
        self._sample = StratifiedSample(MOST)
        self._last = 0.0
        # Steps from one row to the next.
        self._rises = self._falls = 0

    def follow(self, targets: NDArray[np.generic]) -> None:
        """More rows."""
        if not len(targets):
            return
        values = targets.astype(np.float64)
        steps = np.diff(values, prepend=self._last if self._sample.rows else values[0])
        self._rises += int(np.count_nonzero(steps > 0.0))
        self._falls += int(np.count_nonzero(steps < 0.0))
        self._last = float(values[-1])
        self._sample.follow(len(values), lambda places: values[places, None])

    @property
    def _kept(self) -> Vector:
        return self._sample.kept.ravel()

    @property
    def constant(self) -> bool:
        """Whether all targets are the same."""
        return self._sample.rows > 1 and self._rises + self._falls == 0

    @property
    def few_values(self) -> list[int] | None:
        """The targets, if they are a few whole numbers only, as those of classes are; None otherwise."""
        values = np.unique(self._kept)
        if self.labelled or len(self._kept) < FEWEST or not 2 < len(values) <= FEW_VALUES:
            return None
        return [int(value) for value in values] if (values == np.rint(values)).all() else None

    @property
    def found(self) -> str | None:
        """``ascending``, ``descending`` or, of labels, ``blocks``; None where the order tells nothing."""
        if len(self._kept) < FEWEST or (self._kept == self._kept[0]).all():
            return None
        if self.labelled:
            return "blocks" if _in_blocks(self._kept.astype(np.int64)) else None
        steps, ranks = self._rises + self._falls, _ranks(self._kept)
        for order, other, towards in (("ascending", self._falls, ranks), ("descending", self._rises, -ranks)):
            if (steps >= STEPS and other <= REVERSED * steps) or _ascends(towards):
                return order
        return None


def _ranks(values: Vector) -> Vector:
    """From 0; equal values share the mean of theirs."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - 0.5 * (counts + 1.0))[places]


def _ascends(ranks: Vector) -> bool:
    stretches = np.array_split(ranks, min(STRETCHES, len(ranks) // 4))
    means = np.array([stretch.mean() for stretch in stretches])
    variances = np.array([stretch.var() / len(stretch) for stretch in stretches])
    steps = np.diff(means)
    steps[np.abs(steps) <= NOISE * np.sqrt(variances[1:] + variances[:-1])] = 0.0
    if -steps.clip(max=0.0).sum() > BACK * steps.clip(min=0.0).sum():
        return False
    around = ranks - ranks.mean()
    return float(around @ np.sort(around)) >= SORTED * float(around @ around)


def _in_blocks(codes: NDArray[np.int64]) -> bool:
    around = np.lib.stride_tricks.sliding_window_view(np.pad(codes, SIDE, mode="edge"), 2 * SIDE + 1)
    alike = (around == codes[:, None]).sum(axis=1) > SIDE
    settled = codes[alike]
    blocks = 1 + np.count_nonzero(np.diff(settled))
    labels = len(np.unique(settled))
    return bool(labels > 1 and alike.mean() >= 1.0 - UNLIKE and blocks <= labels + MORE)
