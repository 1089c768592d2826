"""The promises of a dictionary: those of a learner that are not about targets, and two of its own."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from kons.checks import battery
from kons.checks.subject import CheckFailed, Subject, difference, farther_apart, state_of

__all__ = ["DICTIONARY_CHECKS"]


def _looked_at(dictionary: Any, queries: Any) -> dict[str, Any]:
    """All that there is to see of it."""
    names = {name: np.array(getattr(dictionary, name)) for name in ("size", "weights", "atoms")}
    return names | {"transform": dictionary.transform(queries)}


def atoms_have_weights(subject: Subject) -> None:
    """As many weights as atoms, finite and not negative; coordinates for every row; all of them copies."""
    for rows in sorted({row for stretch in subject.stretches for row in stretch}):
        dictionary = subject.begun(rows)
        before = copy.deepcopy(state_of(dictionary))
        weights, atoms = dictionary.weights, dictionary.atoms
        size, count = int(dictionary.size), len(weights)
        if not size == count == len(atoms):
            raise CheckFailed(
                f"after {rows} rows it has size {size}, {count} weights and {len(atoms)} atoms."
            )
        if not (np.isfinite(weights).all() and (np.asarray(weights) >= 0.0).all()):
            raise CheckFailed(f"after {rows} rows a weight is negative, or no finite number.")
        if rows:
            Z = dictionary.transform(subject.queries(rows))
            if Z.ndim != 2 or len(Z) != len(subject.queries(rows)) or not np.isfinite(Z).all():
                raise CheckFailed(f"transform gave the shape {Z.shape}, or no finite numbers.")
            battery._overwrite([Z])
        battery._overwrite([weights, atoms])
        if (seen := difference(state_of(dictionary), before)) is not None:
            raise CheckFailed(f"overwriting atoms, weights or coordinates changed it: {seen}.")


def blocks_give_the_same_atoms(subject: Subject) -> None:
    """Rows one by one, or in calls of any size: the same atoms, and weights within a tolerance."""
    for start, stop in subject.stretches:
        seen = []
        for size in (stop, 1, 7):
            dictionary = subject.begun(start)
            subject.teach(dictionary, start, stop, size)
            seen.append(_looked_at(dictionary, subject.queries(stop)))
        for size, other in zip((1, 7), seen[1:], strict=True):
            for name, value in other.items():
                if (apart := farther_apart(value, seen[0][name], subject.tolerance)) is not None:
                    raise CheckFailed(
                        f"calls of {size} row(s) and one call with all rows differ in {name}: {apart}."
                    )


#: Every check of a dictionary by its name, in the order in which they run.
DICTIONARY_CHECKS: dict[str, battery.Check] = {
    check.__name__: check
    for check in (
        battery.same_seed_same_run,
        battery.inputs_are_not_changed,
        battery.inputs_are_not_kept,
        battery.inputs_in_any_form,
        battery.what_is_handed_out_is_a_copy,
        atoms_have_weights,
        battery.predict_is_pure,
        battery.predict_is_safe_from_threads,
        blocks_give_the_same_atoms,
        battery.saved_mid_stream_goes_on,
        battery.copies_go_on,
        battery.refused_input_changes_nothing,
        battery.memory_stays_within_the_cap,
    )
}
