"""Dictionaries: few weighted atoms in place of all rows of a stream, as rows of choices.

===========================  ================  ============  =================  =====================
class                        who enters        weight        what is forgotten  merges
===========================  ================  ============  =================  =====================
:class:`KORS`                leverage, a coin  w/p           nothing            no
:class:`SQUEAK`              all               w/p, p falls  by leverage        keeps its accuracy
:class:`RowSampling`         leverage, a coin  w/p           nothing            no
:class:`UniformSample`       a coin            w*rows/atoms  at random          exactly, in any order
:class:`LinearDependence`    outside the span  1             nothing            no
:class:`FrequentDirections`  all               squares       weak directions    keeps its bound
:class:`KernelPCA`           all               squares       weak directions    keeps its bound
===========================  ================  ============  =================  =====================

All have ``update``, ``size``, ``atoms``, ``weights`` and ``transform``; ``kons.save`` and ``kons.load``
keep them, mid-stream, too. :func:`kons.checks.check_dictionary` asks what they promise of anybody's.
"""

from kons.dictionaries.sampled import SQUEAK, RowSampling, UniformSample
from kons.dictionaries.spans import FrequentDirections, KernelPCA, LinearDependence
from kons.learners.dictionary import merge
from kons.learners.kors import KORS

__all__ = ["KORS", "SQUEAK", "FrequentDirections", "KernelPCA", "LinearDependence", "RowSampling"]
__all__ += ["UniformSample", "merge"]
