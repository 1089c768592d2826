"""AutoKONS, and its parts, each of which stands alone: scales, relevance, experts, their vote.

====================  ====================================================================================
``relevance``         a metric of the features from the gradients of a fit; leave-one-out errors
``ranks``             features by their rank
``expert``            ridge regression in the span of atoms, any number of outputs over one A
``aggregation``       the second-order update on the predictions of experts
``calibration``       scores of classes as probabilities
``history``           a uniform sample of a stream, and its last rows
``targets``           mean and range of targets as they become known
``rows``, ``waiting`` a row as numbers; rows whose targets are not known yet
``view``, ``views``   what an expert sees of a row, refitted as rows come
``roles``, ``panel``  who the experts are; all of them on their seats
``voting``            with and without those that see the last targets
``ensemble``          all of it at work
``succession``        a fresh ensemble where the past no longer helps
====================  ====================================================================================
"""

from kons.learners.auto.learner import AutoKONS

__all__ = ["AutoKONS"]
