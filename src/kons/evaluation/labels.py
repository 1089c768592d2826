"""Labels of any kind as small integers, in the order in which they first came."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.learners.labels import Labels, as_labels, object_array

__all__ = ["Codebook", "Codes"]

Codes = NDArray[np.int64]


class Codebook:
    """Label <-> code 0, 1, 2, ...; the code -1 stands for a label that nobody knows, and for None.

    >>> book = Codebook()
    >>> book.learn(["no", "yes", "no"]).tolist(), book.labels
    ([0, 1, 0], ['no', 'yes'])
    >>> book.codes(["yes", "perhaps"]).tolist()
    [1, -1]
    >>> book.decode([1, -1]).tolist()
    ['yes', None]
    """

    def __init__(self, labels: list[Any] | None = None) -> None:
        self._known = Labels(labels or [])
        self._code = {label: code for code, label in enumerate(self._known.known)}

    def __len__(self) -> int:
        return len(self._known)

    @property
    def labels(self) -> list[Any]:
        """The labels in the order of their codes. A copy."""
        return list(self._known.known)

    def learn(self, labels: Any) -> Codes:
        """The codes of the labels; new labels get the next ones. None and NaN are refused."""
        codes = self.codes(labels)
        if codes.min(initial=0) < 0:
            codes = np.array(self._known.codes_of(as_labels(labels, len(codes))), dtype=np.int64)
            self._code = {label: code for code, label in enumerate(self._known.known)}
        return codes

    def codes(self, labels: Any) -> Codes:
        """The codes of the labels, -1 for those not known. Changes nothing."""
        values = labels.tolist() if isinstance(labels, np.ndarray) else labels
        code = self._code.get
        try:
            return np.array([code(label, -1) for label in values], dtype=np.int64)
        except TypeError:  # a label that cannot be looked up: refused where labels are learned
            return np.full(len(values), -1, dtype=np.int64)

    def decode(self, codes: Any) -> NDArray[Any]:
        """The labels of the codes, as an array of objects."""
        table = object_array([*self._known.known, None])
        return table[np.asarray(codes, dtype=np.int64)]

    @property
    def positive(self) -> int:
        """Of the first two labels, the code of the larger: True, 1, "yes"."""
        if len(self) < 2:
            return 1
        first, second = self._known.known[:2]
        try:
            return 0 if first > second else 1
        except TypeError:
            return 0 if str(first) > str(second) else 1
