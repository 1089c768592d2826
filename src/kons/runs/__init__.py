"""Runs: a learner along a source, kept in a folder, safe from crashes.

=================  =====================================================================================
``Settings``       what is asked for, as plain values: the same settings give the same run
``Run``            one learner along a stream, from the start or from its last checkpoint
``compare``        several learners on the same rows, in one pass
=================  =====================================================================================
"""

from kons.runs.comparison import Comparison, compare
from kons.runs.folder import FolderWriter
from kons.runs.run import Progress, Run, Stopped
from kons.runs.settings import Settings

__all__ = ["Comparison", "FolderWriter", "Progress", "Run", "Settings", "Stopped", "compare"]
