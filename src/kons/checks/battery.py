"""The promises, each a function that raises :class:`CheckFailed` where a learner breaks it."""

from __future__ import annotations

import copy
import io
import pickle
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from kons.checks.subject import ROWS as LONG
from kons.checks.subject import (
    CheckFailed,
    Subject,
    answer,
    answers,
    difference,
    farther_apart,
    learn,
    learns_rows,
    numbers_in,
    refuses,
    state_of,
)
from kons.checks.threads import Intruder
from kons.files import from_bytes, to_bytes
from kons.files.archive import read_archive, write_archive
from kons.files.registry import name_of
from kons.files.tree import Decoder, Encoder
from kons.learners.protocol import as_learner, verbs_of

__all__ = ["CHECKS", "Check"]

Check = Callable[[Subject], None]

# Enough for a period of every learner, and for a warm-up of some forty rows.
ROWS = 110
CUT = 50


def require_same(a: Any, b: Any, promise: str) -> None:
    if (found := difference(a, b)) is not None:
        raise CheckFailed(f"{promise}: {found}.")


# ---- randomness


def same_seed_same_run(subject: Subject) -> None:
    """Two learners made alike do alike, bit for bit, whatever else uses random numbers."""
    runs = []
    for disturbance in (1, 2):
        learner = subject.make()
        # The old global generators are what a learner must not depend on.
        state = np.random.get_state(), random.getstate()  # noqa: NPY002
        np.random.seed(disturbance)  # noqa: NPY002
        random.seed(disturbance)
        try:
            columns = learn(learner, *subject.rows(0, ROWS))
            runs.append((columns, state_of(learner), answers(learner, subject.queries())))
        finally:
            np.random.set_state(state[0])  # noqa: NPY002
            random.setstate(state[1])
    require_same(runs[0], runs[1], "two learners that were made alike went apart")


# ---- predicting


def predict_is_pure(subject: Subject) -> None:
    """Asking changes nothing: not the state, not the next answer, not what is learned next."""
    asked, silent = subject.twins()
    for learner in (asked, silent):
        learn(learner, *subject.rows(0, CUT))
    before = copy.deepcopy(state_of(asked))
    first = copy.deepcopy(answers(asked, subject.queries()))
    require_same(state_of(asked), before, "predicting changed the state")
    require_same(answers(asked, subject.queries()), first, "predicting twice gave two answers")
    X, y = subject.rows(CUT, ROWS)
    for x, target in zip(X, y, strict=True):
        answers(asked, X[:1])
        if learns_rows(asked):
            if "predict_one" in verbs_of(asked):
                asked.predict_one(x)
            for learner in (asked, silent):
                learner.learn_one(x, target)
    require_same(
        state_of(asked), state_of(silent), "a learner that was asked in between learned something else"
    )


def predict_is_safe_from_threads(subject: Subject) -> None:
    """Several threads that ask at once get what one thread gets."""
    learner = subject.learned(CUT)
    here, there = (subject.stream(4, seed)[0] for seed in (11, 12))
    for verb, alone in copy.deepcopy(answers(learner, here)).items():
        with Intruder(partial(answer, learner, verb, there)) as intruder:
            found = intruder.meanwhile(partial(answer, learner, verb, here))
        promise = f"{verb} in one thread while another asks too gives something else than alone"
        require_same(found, alone, promise)
        if intruder.errors:
            raise CheckFailed(f"{promise}: {intruder.errors[0]!r}.")


# ---- the caller's arrays


def inputs_are_not_changed(subject: Subject) -> None:
    """What is handed in is the same afterwards."""
    learner = subject.make()
    X, y = subject.rows(0, CUT)
    given = copy.deepcopy((X, y))
    learn(learner, X, y)
    answers(learner, X)
    if learns_rows(learner):
        learner.learn_one(X[0], y[0])
    require_same((X, y), given, "the caller's arrays were changed")


def inputs_are_not_kept(subject: Subject) -> None:
    """Arrays may be overwritten after a call: the learner has no memory in common with them."""
    learner, expected = subject.twins()
    X, y = subject.rows(0, CUT)
    learn(learner, X, y)
    learn(expected, *subject.rows(0, CUT))
    _overwrite(X, y)
    if learns_rows(learner):
        X, y = subject.rows(CUT, CUT + 20)
        for i in range(len(X)):
            row = copy.deepcopy(X[i])
            learner.learn_one(row, y[i])
            expected.learn_one(X[i], y[i])
            _overwrite(row)
    promise = "overwriting the caller's arrays after a call changed the learner"
    require_same(state_of(learner), state_of(expected), promise)
    queries = subject.queries()
    require_same(answers(learner, queries), answers(expected, subject.queries()), promise)


def _overwrite(*arrays: Any) -> None:
    for array in arrays:
        if isinstance(array, np.ndarray) and array.dtype.kind in "fiu":
            array[...] = -9


def inputs_in_any_form(subject: Subject) -> None:
    """Read-only and strided arrays are as good as others."""
    if not isinstance(subject.rows(0, 1)[0], np.ndarray):
        return
    for form, change in (("read-only", _read_only), ("not contiguous", _strided)):
        learner, expected = subject.twins()
        try:
            found = _use(subject, learner, change)
        except Exception as error:
            raise CheckFailed(
                f"arrays that are {form} were refused: {type(error).__name__}: {error}"
            ) from error
        promise = f"arrays that are {form} gave something else than copies of them"
        require_same(found, _use(subject, expected, copy.deepcopy), promise)


def _use(subject: Subject, learner: Any, change: Callable[[Any], Any]) -> Any:
    """All that a learner does with arrays in some form."""
    X, y = subject.rows(0, CUT)
    columns, said = learn(learner, change(X), change(y)), answers(learner, change(subject.queries()))
    if learns_rows(learner):
        X, y = subject.rows(CUT, CUT + 20)
        for x, target in zip(change(X), y, strict=True):
            answers(learner, change(X[:1]))
            learner.learn_one(x, target)
    return columns, said, state_of(learner)


def _read_only(array: Any) -> Any:
    array = np.array(array)
    array.flags.writeable = False
    return array


def _strided(array: Any) -> Any:
    array = np.asarray(array)
    wide = np.repeat(array, 2, axis=0)
    if array.ndim == 2:
        wide = np.repeat(wide, 2, axis=1)
        return wide[::2, ::2]
    return wide[::2]


def what_is_handed_out_is_a_copy(subject: Subject) -> None:
    """States, traces and predictions may be overwritten: the learner does not notice."""
    learner, expected = subject.twins()
    for one in (learner, expected):
        handed_out = learn(one, *subject.rows(0, CUT)), answers(one, subject.queries()), state_of(one)
        if one is learner:
            _overwrite_tree(handed_out)
    promise = "overwriting what the learner handed out changed it"
    require_same(state_of(learner), state_of(expected), promise)
    require_same(answers(learner, subject.queries()), answers(expected, subject.queries()), promise)


def _overwrite_tree(tree: Any) -> None:
    if isinstance(tree, dict):
        for value in tree.values():
            _overwrite_tree(value)
        tree.clear()
    elif isinstance(tree, list):
        for value in tree:
            _overwrite_tree(value)
        tree.clear()
    elif isinstance(tree, tuple):
        for value in tree:
            _overwrite_tree(value)
    elif isinstance(tree, np.ndarray) and tree.flags.writeable and tree.dtype.kind in "fiub":
        tree[...] = 1


# ---- blocks


def block_size_does_not_matter(subject: Subject) -> None:
    """Rows in blocks of any size, or one by one: the same decisions, and predictions within a tolerance."""
    whole, new = subject.twins()
    expected = learn(whole, *subject.rows(0, ROWS))
    for size in (1, 7):
        learner, parts = copy.deepcopy(new), []
        for start in range(0, ROWS, size):
            parts.append(learn(learner, *subject.rows(start, min(start + size, ROWS))))
        _require_close(parts, expected, subject, f"calls of {size} row(s)")
        _require_size(learner, whole, f"calls of {size} row(s)")
    for size in (5, 64):
        learner = copy.deepcopy(new)
        found = learn(learner, *subject.rows(0, ROWS), block_size=size)
        _require_close([found], expected, subject, f"block_size={size}")
        _require_size(learner, whole, f"block_size={size}")
    if learns_rows(whole):
        learner = copy.deepcopy(new)
        for x, y in zip(*subject.rows(0, ROWS), strict=True):
            learner.learn_one(x, y)
        _require_size(learner, whole, "learn_one")
        queries = subject.queries()
        for verb, value in answers(learner, queries).items():
            if isinstance(value, np.ndarray):
                wanted = answers(whole, queries)[verb]
                if (seen := farther_apart(value, wanted, subject.tolerance)) is not None:
                    raise CheckFailed(f"learn_one, row by row, and advance differ in {verb}: {seen}.")


def _require_close(parts: list[Any], expected: Any, subject: Subject, what: str) -> None:
    for name in ("kept", "size", "prediction"):
        if name in expected:
            found = np.concatenate([part[name] for part in parts])
            if (seen := farther_apart(found, expected[name], subject.tolerance)) is not None:
                raise CheckFailed(f"{what} and one call with all rows differ in {name}: {seen}.")


def _require_size(learner: Any, expected: Any, what: str) -> None:
    found, wanted = as_learner(learner), as_learner(expected)
    for name, a, b in (
        ("rows_seen", found.rows_seen, wanted.rows_seen),
        ("size", found.size, wanted.size),
    ):
        if a != b:
            raise CheckFailed(f"{what} and one call with all rows differ in {name}: {a}, not {b}.")


# ---- late targets


def late_targets_are_learned_in_any_order(subject: Subject) -> None:
    """Asked, a row is predicted, and waits; told, it is learned as if it came then."""
    late, direct = map(as_learner, subject.twins())
    if not learns_rows(direct) or direct.lacks("predict_one"):
        return
    X, y = subject.rows(0, 50)
    for i in range(50):
        asked = late.ask(X[i], f"row {i}")
        require_same(asked, late.predict_one(X[i]), "ask and predict_one give two answers")
        if i >= 6:
            told = (i - 6) ^ 1  # of each two rows, the second first
            if not refuses(partial(late.tell, f"row {told}", float("nan"))):
                raise CheckFailed("NaN as a target that comes late: it was accepted, expected an error.")
            late.tell(f"row {told}", y[told])
            direct.learn_one(X[told], y[told])  # who is never asked cannot take one row for another
    found, wanted = (answers(learner, subject.queries()) for learner in (late, direct))
    require_same(found, wanted, "rows that waited, told in another order, were not learned as they came")


# ---- files and copies


def saved_mid_stream_goes_on(subject: Subject) -> None:
    """Saved and loaded at any point, it goes on bit for bit as if it had not been."""
    if not as_learner(subject.make()).saves:
        return
    promise = "a learner that was saved and loaded went another way"
    _goes_on(subject, _through_a_file, promise, (0, 1, CUT, 93))


def copies_go_on(subject: Subject) -> None:
    """A deep copy and a pickle go on bit for bit."""
    _goes_on(subject, copy.deepcopy, "a deep copy went another way", (CUT,))
    _goes_on(subject, _through_pickle, "a pickled learner went another way", (0, 93))


def _goes_on(subject: Subject, way: Callable[[Any], Any], promise: str, cuts: tuple[int, ...]) -> None:
    for cut in cuts:
        whole = subject.make()
        if cut:
            learn(whole, *subject.rows(0, cut))
        loaded = way(whole)
        require_same(state_of(loaded), state_of(whole), f"{promise} at once, after {cut} rows")
        runs = []
        for learner in (loaded, whole):
            columns = learn(learner, *subject.rows(cut, ROWS))
            if learns_rows(learner):
                for x, y in zip(*subject.rows(0, 9), strict=True):
                    learner.learn_one(x, y)
            runs.append((columns, state_of(learner), answers(learner, subject.queries())))
        require_same(runs[0], runs[1], f"{promise}, after {cut} rows")


def _through_a_file(learner: Any) -> Any:
    encoder = Encoder()
    parts = encoder.encode({"parameters": learner.parameters(), "state": learner.state()})
    if name_of(learner) is not None:
        return from_bytes(to_bytes(learner), encoder.handed)
    # Not in the table of files, as a learner of somebody's own: its parts go through one all the same.
    stream = io.BytesIO()
    write_archive(stream, {"kind": "check", "given": encoder.given, "tree": parts}, encoder.arrays)
    document, arrays = read_archive(stream, "check")
    tree = Decoder(arrays, document["given"], encoder.handed).decode(document["tree"])
    return learner.from_state(tree["parameters"], tree["state"])


def _through_pickle(learner: Any) -> Any:
    return pickle.loads(pickle.dumps(learner))


# ---- errors


def refused_input_changes_nothing(subject: Subject) -> None:
    """NaN, infinity, another number of features, targets that are none: refused, and all is as before."""
    learner, expected = subject.twins()
    for one in (learner, expected):
        learn(one, *subject.rows(0, CUT))
    before = copy.deepcopy(state_of(learner))
    for what, call in _bad_calls(subject, learner).items():
        if not refuses(call):
            raise CheckFailed(f"{what}: it was accepted, expected an error.")
        require_same(state_of(learner), before, f"{what}: it was refused, but the state changed")
    # What the state does not show would show now.
    columns = [learn(one, *subject.rows(CUT, ROWS)) for one in (learner, expected)]
    require_same(columns[0], columns[1], "after inputs were refused, it learned something else")


def _bad_calls(subject: Subject, learner: Any) -> dict[str, Callable[[], Any]]:
    X, y = subject.rows(CUT, CUT + 9)
    calls: dict[str, Callable[[], Any]] = {"no rows": lambda: learn(learner, X[:0], y[:0])}
    if isinstance(X, np.ndarray) and X.dtype.kind == "f":
        for value in (np.nan, np.inf, -np.inf):
            bad = X.copy()
            bad[-1, 0] = value
            calls[f"{value} in the last row"] = partial(learn, learner, bad, y)
            calls[f"{value} in one row"] = partial(_learn_one, learner, bad[-1], y[-1])
            calls[f"{value} in a row to predict"] = partial(_ask, learner, bad)
        calls["a feature too few"] = lambda: learn(learner, X[:, 1:], y)
        calls["a feature too many"] = lambda: learn(learner, np.hstack([X, X[:, :1]]), y)
        calls["a feature too few in one row"] = partial(_learn_one, learner, X[0, 1:], y[0])
        calls["a feature too few in a row to predict"] = lambda: _ask(learner, X[:, 1:])
    if learns_rows(learner):
        calls["a target too few"] = lambda: learn(learner, X, y[:-1])
        calls["NaN as a target"] = lambda: learner.learn_one(X[0], float("nan"))
        calls["None as a target"] = lambda: learner.learn_one(X[0], None)
        targets = np.array(y, dtype=object)
        targets[-1] = float("nan")
        calls["NaN as the last target"] = lambda: learn(learner, X, targets)
    else:
        calls = {what: call for what, call in calls.items() if "one row" not in what}
    return calls


def _learn_one(learner: Any, x: Any, y: Any) -> None:
    learner.learn_one(x, y)


def _ask(learner: Any, X: Any) -> Any:
    return answers(learner, X)


# ---- memory


def memory_stays_within_the_cap(subject: Subject) -> None:
    """With ``max_atoms``, it never keeps more points, and its state stops growing once they are there."""
    learner = subject.make()
    cap = as_learner(learner).core.max_atoms
    if cap is None:
        return
    numbers = []
    for start in range(0, LONG, 128):
        columns = learn(learner, *subject.rows(start, start + 128))
        most = max([int(learner.size), *np.asarray(columns.get("size", [0])).tolist()])
        if most > cap:
            raise CheckFailed(f"after {start + 128} rows it keeps {most} points, more than max_atoms={cap}.")
        numbers.append((int(learner.size), numbers_in(state_of(learner))))
    (size, count), (last_size, last_count) = numbers[-2:]
    if size == last_size == cap and last_count > 1.05 * count + 100:
        raise CheckFailed(
            f"with max_atoms={cap} atoms all the time, its state grew from {count} to {last_count} numbers."
        )


#: Every check by its name, in the order in which they run.
CHECKS: dict[str, Check] = {
    check.__name__: check
    for check in (
        same_seed_same_run,
        inputs_are_not_changed,
        inputs_are_not_kept,
        inputs_in_any_form,
        what_is_handed_out_is_a_copy,
        predict_is_pure,
        predict_is_safe_from_threads,
        block_size_does_not_matter,
        late_targets_are_learned_in_any_order,
        saved_mid_stream_goes_on,
        copies_go_on,
        refused_input_changes_nothing,
        memory_stays_within_the_cap,
    )
}
