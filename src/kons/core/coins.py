"""Randomness is a seed: one uniform number per example, in stream order."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from kons.arrays import Vector
from kons.stored import Stored

__all__ = ["Coins"]


class Coins:
    """The uniform numbers of ``numpy.random.default_rng(seed)``, drawn whether needed or not.

    >>> together, apart = Coins(3), Coins(3)
    >>> bool((together.draw(2) == [apart.draw(1)[0], apart.draw(1)[0]]).all())
    True
    """

    def __init__(self, seed: int | np.random.Generator) -> None:
        self._seed = seed
        self._passed = 0  # numbers that nobody looked at, and the generator has not made
        self._restored: dict[str, Any] | None = None  # what it begins from, if that is not the seed

    @functools.cached_property
    def _generator(self) -> np.random.Generator:
        """Made when somebody looks: that takes as long as some rows."""
        generator = np.random.default_rng(self._seed)
        if self._restored is not None:
            generator.bit_generator.state = self._restored
        return generator

    def _here(self) -> np.random.Generator:
        """The generator, at the next row."""
        if self._passed:
            bits: Any = self._generator.bit_generator
            bits.advance(self._passed % 2**128)  # a full turn of PCG64: steps back are most of one
            self._passed = 0
        return self._generator

    def draw(self, rows: int) -> Vector:
        """One number in [0, 1) for each of the next rows."""
        return self._here().random(rows)

    def draw_one(self) -> float:
        """The number of the next row."""
        return self._here().random()

    def pass_one(self) -> None:
        """As :meth:`draw_one`, if nobody asks for the number: a tenth of the cost."""
        self._passed += 1

    def pass_some(self, rows: int) -> None:
        """As :meth:`pass_one`, of so many."""
        self._passed += rows

    def take_back_one(self) -> None:
        """Undo the last :meth:`draw_one` or :meth:`pass_one`: its row was refused."""
        self._passed -= 1

    def spawn(self) -> Coins:
        """An independent stream of coins."""
        return Coins(self._generator.spawn(1)[0])

    def mark(self) -> dict[str, Any]:
        """The generator's state, for :meth:`restore`."""
        if self._restored is not None and "_generator" not in vars(self) and not self._passed:
            return dict(self._restored)
        return dict(self._here().bit_generator.state)

    def restore(self, mark: dict[str, Any]) -> None:
        """Go back to an earlier mark."""
        self._restored, self._passed = mark, 0
        vars(self).pop("_generator", None)

    def state(self) -> dict[str, Any]:
        """The generator's state. A copy."""
        return self.mark()

    def load_state(self, stored: Stored, **_: Any) -> None:
        """Take a saved :meth:`state`."""
        stored.word("bit_generator", "PCG64")
        inner = stored.inner("state")
        words = {name: inner.integer(name, at_most=2**128 - 1) for name in ("state", "inc")}
        inner.finish()
        self.restore(
            {
                "bit_generator": "PCG64",
                "state": words,
                "has_uint32": stored.integer("has_uint32", at_most=1),
                "uinteger": stored.integer("uinteger", at_most=2**32 - 1),
            }
        )
        stored.finish()
