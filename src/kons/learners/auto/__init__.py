"""AutoKONS, and its parts, each of which stands alone: scales, relevance, experts, their vote.

==================  ====================================================================================
``relevance``       a metric of the features from the gradients of a fit; leave-one-out errors
``ranks``           features by their rank
``expert``          ridge regression in the span of atoms, any number of outputs over one A
``aggregation``     the second-order update on the predictions of experts
``calibration``     scores of classes as probabilities
``history``         a uniform sample of a stream, and its last rows
``targets``         mean and range of targets as they become known
``view``, ``roles`` what an expert sees of a row, and for how long it remembers
``ensemble``        all of them at work
==================  ====================================================================================
"""

from kons.learners.auto.learner import AutoKONS

__all__ = ["AutoKONS"]
