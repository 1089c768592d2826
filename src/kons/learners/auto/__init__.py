"""AutoKONS, and its parts, each of which stands alone, in the order in which to read them.

=================================  =========================================================================
``learner``, ``effort``            raw columns and targets in, predictions out; how much it may cost
``stream_rows``, ``pending``        rows of one target, learned when it is known; those that wait for theirs
``drift``                          a fresh ensemble after abrupt drift, and the previous one
``rows``, ``following``            a row as numbers; last targets of rows that are not learned
``ensemble``, ``schedule``         rows through all of the following, in chunks; what happens when
``spec``, ``pool``                 what the experts are; their slots, and all of them at once
``expert``, ``logistic``           ridge and logistic regression in the span of atoms
``stacking``, ``calibration``      the second-order update on predictions of experts; scores as probabilities
``target_range``, ``reservoir``    mean, range and outlier bounds of targets; the rows that are kept
``selection``                      the selection step: feature maps refitted, experts fitted and pruned
``feature_maps``, ``feature_map``  those in use, by leave-one-out errors; scaling, metric and bandwidth of one
``metric_learning``                the average gradient outer product of a fit
``quantile_scaling``               features by their share of smaller values
``one_row``, ``row_loops``         all of it for one row in compiled calls, on the same arrays
=================================  =========================================================================

How a row goes through them, and what the constants are for: docs/auto.md, "How it is built".
"""

from kons.learners.auto.learner import AutoKONS

__all__ = ["AutoKONS"]
