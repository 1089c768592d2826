"""AutoKONS, and its parts, each of which stands alone: scales, relevance, experts, their stacking.

=======================  ===================================================================================
``relevance``            a metric of the features from the gradients of a fit; leave-one-out errors
``ranks``                features by their rank
``cholesky``             factors of sums of squares
``expert``               ridge regression in the span of atoms, any number of outputs over one A
``logistic``             the same with the logistic loss, of classes
``aggregation``          the second-order update on the predictions of experts
``calibration``          scores of classes as probabilities
``history``              a uniform sample of a stream, and its last rows
``targets``, ``outlier bounds``   mean and range of targets as they become known; which of them are believed
``rows``, ``waiting``    a row as numbers; rows whose targets are not known yet
``feature map``, ``feature maps``      what an expert sees of a row, refitted as rows come
``specs``, ``panel``     who the experts are; all of them on their slots
``voting``               with and without those that see the last targets
``chunks``, ``staff``    when what happens; who comes and goes
``ensemble``             rows through all of it
``single``               the same for rows one by one, compiled
``succession``           a fresh ensemble where the past no longer helps
=======================  ===================================================================================
"""

from kons.learners.auto.learner import AutoKONS

__all__ = ["AutoKONS"]
