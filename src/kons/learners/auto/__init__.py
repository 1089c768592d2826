"""AutoKONS, and its parts, each of which stands alone: feature maps, experts, their stacking, drift.

============================  ==============================================================================
``learner``                   raw columns and targets in, predictions out
``drift``                     a fresh ensemble after abrupt drift, and the previous one
``ensemble``                  rows through all of the following; ``single``: rows one by one, compiled
``schedule``                  after which rows what happens
``selection``                 the selection step: feature maps refitted, experts fitted and pruned
``spec``, ``pool``            what the experts are; their slots, and all of them at once
``expert``, ``logistic``      ridge and logistic regression in the span of atoms
``stacking``                  stacking: the second-order update on the predictions of experts
``calibration``               scores of classes as probabilities
``feature_map``               scaling, metric and bandwidth that experts share, and cached features
``feature_maps``              those in use, selected by leave-one-out errors
``metric_learning``           the average gradient outer product of a fit; leave-one-out errors
``quantile_scaling``          features by their share of smaller values
``rows``, ``pending``         a row as numbers; rows whose targets are not known yet
``reservoir``                 a uniform sample of the stream, and its last rows
``target_range``              mean, spread and range of targets, and outlier bounds
============================  ==============================================================================
"""

from kons.learners.auto.learner import AutoKONS

__all__ = ["AutoKONS"]
