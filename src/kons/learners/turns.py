"""One call at a time: of threads that share a learner, each waits until the call of another has ended.

A compiled loop looks at no bounds, and a row is learned in several steps: two threads inside would write
beyond arrays, and who asks in between would get the answer of no state. So every verb takes its turn, which
costs a call 0.3 microseconds (Python 3.11) where nobody else is there; a step that neither lets go of the
interpreter nor leaves anything half done does without (:mod:`kons.learners.waiting`). Facts, such as
``rows_seen``, ``classes`` and ``shares``, are read without. A learner of your own has the threads that you
give it.
"""

from __future__ import annotations

import functools
from _thread import RLock  # what threading.RLock() makes: that is a function, this its class
from collections.abc import Callable
from typing import Any

__all__ = ["Turn", "in_turn", "marked", "takes_turns"]


class Turn(RLock):  # type: ignore[misc]
    """A lock that the thread that has it may take again; copies and pickles of a learner have a new one."""

    asked: Any = None
    """The row that was asked about last, its answer, and after how many rows."""

    def __reduce__(self) -> Any:
        return Turn, ()


def takes_turns(verb: Any) -> bool:
    """Whether a function waits for its turn by itself."""
    return getattr(verb, "takes_turns", False)


def in_turn(verb: Callable[..., Any]) -> Any:
    """A verb that waits until no other thread is inside the learner."""

    @functools.wraps(verb)
    def wait(self: Any, *args: Any, **options: Any) -> Any:
        with self._turn:
            return verb(self, *args, **options)

    return marked(wait)


def marked(verb: Any) -> Any:
    """A function that takes turns by itself."""
    verb.takes_turns = True
    return verb
