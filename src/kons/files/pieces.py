"""Large arrays as files of their own, named by what they hold: what did not change is not written again.

The factor of an exact learner is gigabytes, and all but its last panel never changes: a checkpoint that
keeps them as pieces writes the panels that are new.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.errors import FileError

__all__ = ["LARGE", "Pieces"]

NAME = re.compile("[0-9a-f]{64}")
#: Bytes from which an array is worth a file of its own.
LARGE = 1 << 20


class Pieces:
    """A folder of arrays; those that the next document does not use are removed once it is written."""

    def __init__(self, folder: str, write: Callable[[str, Any], None], read: Callable[[str], Any]) -> None:
        self._folder, self._write, self._read = folder, write, read
        self._used: set[str] = set()

    def put(self, array: NDArray[Any]) -> str:
        """Write the array if it is not there yet; returns its name."""
        name = _name_of(array)
        self._used.add(name)
        if not os.path.exists(path := self._path(name)):
            os.makedirs(self._folder, exist_ok=True)
            self._write(path, array)
        return name

    def get(self, name: Any) -> NDArray[Any]:
        """The array of this name."""
        if not (isinstance(name, str) and NAME.fullmatch(name)):
            raise FileError(f"it names a piece {name!r}, which none is called.")
        array = self._read(self._path(name))
        if not isinstance(array, np.ndarray) or _name_of(array) != name:
            raise FileError(f"its piece {name} holds something else: it was exchanged.")
        return array

    def sweep(self) -> None:
        """Remove what was not put since this object was made; the document must be on the disk by now."""
        if os.path.isdir(self._folder):
            for file in os.listdir(self._folder):
                if file.removesuffix(".kons") not in self._used:
                    os.remove(os.path.join(self._folder, file))

    def _path(self, name: str) -> str:
        return os.path.join(self._folder, f"{name}.kons")


def _name_of(array: NDArray[Any]) -> str:
    """A digest of what it holds and of how that lies in memory."""
    digest = hashlib.sha256(f"{array.dtype.str} {array.shape} {array.flags.c_contiguous}".encode())
    plain = np.ascontiguousarray(array if array.flags.c_contiguous else array.T)
    digest.update(plain.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
