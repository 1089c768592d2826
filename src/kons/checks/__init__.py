"""The public battery: what a learner promises, checked on anybody's learner.

=================================  =====================================================================
check                              the promise
=================================  =====================================================================
``same_seed_same_run``             two made alike do alike, bit for bit
``inputs_are_not_changed``         the caller's arrays are the same after a call
``inputs_are_not_kept``            ... and may be overwritten
``inputs_in_any_form``             read-only and strided arrays are as good as others
``what_is_handed_out_is_a_copy``   states, traces and predictions may be overwritten
``predict_is_pure``                asking changes nothing
``predict_is_safe_from_threads``   several threads get what one gets
``block_size_does_not_matter``     the same decisions, however the rows are cut
``saved_mid_stream_goes_on``       saved and loaded, it goes on bit for bit
``copies_go_on``                   so do a deep copy and a pickle
``refused_input_changes_nothing``  after an error, all is as before
``raw_records_are_rows``           dicts with gaps and text: blocks, files, errors as of rows
``raw_records_may_wait``           ... and targets that come late
``memory_stays_within_the_cap``    never more than ``max_atoms`` points
=================================  =====================================================================

A dictionary has those that are not about targets, ``atoms_have_weights`` (atoms, weights and coordinates
that fit together, as copies) and ``blocks_give_the_same_atoms``: :func:`check_dictionary`.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from kons.arrays import require_integer, require_number
from kons.checks.battery import CHECKS, Check
from kons.checks.dictionaries import DICTIONARY_CHECKS
from kons.checks.subject import STRETCHES, CheckFailed, Rows, Subject, sign_stream, under_test
from kons.errors import ConfigurationError
from kons.learners.protocol import as_learner

__all__ = [
    "CHECKS",
    "DICTIONARY_CHECKS",
    "Check",
    "CheckFailed",
    "check_dictionary",
    "check_learner",
    "sign_stream",
]


def check_learner(
    make: Any,
    *,
    stream: Rows = sign_stream,
    stretches: Sequence[tuple[int, int]] = STRETCHES,
    columns: Mapping[int, int] | None = None,
    skip: Mapping[str, str] | None = None,
    tolerance: float = 1e-8,
) -> list[str]:
    """Run every check on a learner; returns the names of those that ran.

    A learner with ``advance`` is asked as it is, by all the verbs that it has. One of your own with
    ``predict_one`` and ``learn_one`` alone is checked as kons uses it, which looks at rows and targets first
    (:mod:`kons.learners.protocol`); without ``state()`` it is not saved.

    Parameters
    ----------
    make:
        A function without arguments that makes a new learner, or a learner that has learned nothing.
    stream:
        ``stream(rows, seed) -> X, y``, the same for the same arguments; for learners that do not take three
        features, and -1 and +1 as targets.
    stretches:
        Rows from ... to, numbered from 0, over which promises are checked: let them begin and end around the
        rows at which the learner does something else than with every row, and cover its first one.
    columns:
        Row -> how many of the stream's columns are there from then on, if not all are from the start, by
        ``widen``: ``{0: 2, 450: 3}``.
    skip:
        Name of a check -> why it does not apply. A skip needs a reason.
    tolerance:
        How far predictions may lie apart where rows are cut differently, as a part of the largest.

    Raises
    ------
    CheckFailed
        An ``AssertionError`` whose message says which promise was broken, and how.

    >>> from kons import EmbeddedKONS, Gaussian, Squared
    >>> ran = check_learner(lambda: EmbeddedKONS(Gaussian(), Squared(), max_atoms=10))
    >>> len(ran) == len(CHECKS)
    True
    """
    return _run(CHECKS, make, stream, stretches, columns or {}, skip, tolerance)


def check_dictionary(
    make: Any,
    *,
    stream: Rows = sign_stream,
    stretches: Sequence[tuple[int, int]] = STRETCHES,
    skip: Mapping[str, str] | None = None,
    tolerance: float = 1e-8,
) -> list[str]:
    """Run every check on a dictionary, which has ``update``, ``size``, ``atoms``, ``weights``, ``transform``.

    Those of :func:`check_learner` that are not about targets, and two of its own. Parameters as there;
    targets of the stream are not looked at. ``state``, ``parameters`` and ``from_state`` make it one that
    is saved.

    >>> from kons import Gaussian
    >>> from kons.dictionaries import UniformSample
    >>> ran = check_dictionary(lambda: UniformSample(Gaussian(), max_atoms=10))
    >>> "blocks_give_the_same_atoms" in ran, len(ran) == len(DICTIONARY_CHECKS)
    (True, True)
    """
    return _run(DICTIONARY_CHECKS, make, stream, stretches, {}, skip, tolerance)


def _run(
    checks: Mapping[str, Check],
    make: Any,
    stream: Rows,
    stretches: Sequence[tuple[int, int]],
    columns: Mapping[int, int],
    skip: Mapping[str, str] | None,
    tolerance: float,
) -> list[str]:
    if not isinstance(skip, Mapping | None):
        raise ConfigurationError(f"skip is {skip!r}, expected a dict: name of a check -> why it is skipped.")
    skip = dict(skip or {})
    for name, reason in skip.items():
        if name not in checks:
            raise ConfigurationError(f"skip names {name!r}; there are {', '.join(checks)}.")
        if not isinstance(reason, str) or not reason.strip():
            raise ConfigurationError(f"skip[{name!r}] is {reason!r}, expected the reason in words.")
    if not callable(make):
        pattern = make
        if as_learner(pattern).rows_seen:
            raise ConfigurationError("make is a learner that has learned rows, expected a new one.")
        make = lambda: copy.deepcopy(pattern)  # noqa: E731
    tolerance = require_number(tolerance, "tolerance", at_least=0.0)
    _require_stretches(stretches)
    subject = Subject(lambda: under_test(make()), stream, tolerance, stretches, columns)
    ran = []
    for name, check in checks.items():
        if name in skip:
            continue
        try:
            check(subject)
        except CheckFailed as error:
            raise CheckFailed(f"{name}: {error}") from error
        except Exception as error:
            raise CheckFailed(f"{name}: it could not be checked, {type(error).__name__}: {error}") from error
        ran.append(name)
    return ran


def _require_stretches(stretches: Sequence[tuple[int, int]]) -> None:
    for stretch in stretches:
        start, stop = (require_integer(row, "a row of stretches", at_least=0) for row in stretch)
        if stop <= start:
            raise ConfigurationError(f"stretches has {stretch}, expected the first row and one behind it.")
    if not any(start for start, _ in stretches):
        raise ConfigurationError("stretches has none that begins after some rows, where promises matter.")
