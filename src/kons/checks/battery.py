"""The promises, each a function that raises :class:`CheckFailed` where a learner breaks it."""

from __future__ import annotations

import copy
import inspect
import io
import pickle
import random
import sys
import warnings
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any

import numpy as np

from kons.checks.subject import (
    CheckFailed,
    Subject,
    answer,
    answers,
    difference,
    farther_apart,
    learn,
    learn_row,
    learns_rows,
    numbers_in,
    refuses,
    state_of,
)
from kons.errors import KonsWarning
from kons.files import from_bytes, to_bytes
from kons.files.archive import read_archive, write_archive
from kons.files.registry import name_of
from kons.files.tree import Decoder, Encoder
from kons.learners.door import TakesTables
from kons.learners.protocol import as_learner

__all__ = ["CHECKS", "Check"]

Check = Callable[[Subject], None]


def require_same(a: Any, b: Any, promise: str) -> None:
    if (found := difference(a, b)) is not None:
        raise CheckFailed(f"{promise}: {found}.")


def require_alike(subject: Subject, one: Any, other: Any, rows: int, promise: str) -> None:
    """The same state after so many rows, and the same answers."""
    found, expected = ((state_of(each), answers(each, subject.queries(rows))) for each in (one, other))
    require_same(found, expected, promise)


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
            columns = subject.teach(learner, 0, subject.last)
            runs.append((columns, state_of(learner), answers(learner, subject.queries(subject.last))))
        finally:
            np.random.set_state(state[0])  # noqa: NPY002
            random.setstate(state[1])
    require_same(runs[0], runs[1], "two learners that were made alike went apart")


# ---- predicting


def predict_is_pure(subject: Subject) -> None:
    """Asking changes nothing: not the state, not the next answer, not what is learned next."""
    for start, stop in subject.after_some_rows:
        asked, silent = subject.twins(start)
        before = copy.deepcopy(state_of(asked))
        first = copy.deepcopy(answers(asked, subject.queries(start)))
        require_same(state_of(asked), before, "predicting changed the state")
        require_same(answers(asked, subject.queries(start)), first, "predicting twice gave two answers")
        for X, y in subject.pieces(start, stop, 1, asked, silent):
            answers(asked, X)
            for learner in (asked, silent):
                learn_row(learner, X, y)
        promise = f"a learner that was asked in between learned something else from rows {start} to {stop}"
        require_same(state_of(asked), state_of(silent), promise)


def predict_is_safe_from_threads(subject: Subject) -> None:
    """Several threads that ask at once get what one thread gets."""
    start = subject.after_some_rows[0][0]
    learner = subject.begun(start)
    here, there = (subject.queries(start, 4, seed) for seed in (11, 12))
    for verb, alone in copy.deepcopy(answers(learner, here)).items():
        ask = partial(answer, learner, verb)
        promise = f"{verb} in one thread while another asks too gives something else than alone"
        require_same(_meanwhile(partial(ask, here), partial(ask, there)), alone, promise)


# Lines at which a second thread is let in, and how long it may take.
MOST_LINES = 150
SECONDS = 0.05


def _meanwhile(call: Callable[[], Any], other: Callable[[], Any]) -> Any:
    """What a call returns where, at each line of it, a second thread makes another: no race needs luck."""
    asked: list[Future[Any]] = []

    def at_line(frame: Any, event: str, argument: Any) -> Any:
        # One that has not ended waits for a lock of the first thread, most likely.
        if event == "line" and len(asked) < MOST_LINES and (not asked or asked[-1].done()):
            asked.append(threads.submit(other))
            wait(asked[-1:], timeout=SECONDS)
        return at_line

    before = sys.gettrace()
    with ThreadPoolExecutor(1) as threads:
        sys.settrace(at_line)
        try:
            found = call()
        finally:
            sys.settrace(before)
    for one in asked:
        one.result()  # raises what was raised there
    return found


# ---- the caller's arrays


def inputs_are_not_changed(subject: Subject) -> None:
    """What is handed in is the same afterwards."""
    for start, stop in subject.stretches:
        learner = subject.begun(start)
        for X, y in subject.pieces(start, stop, stop, learner):
            given = copy.deepcopy((X, y))
            learn(learner, X, y)
            answers(learner, X)
            if learns_rows(learner):
                learner.learn_one(X[0], y[0])
            require_same((X, y), given, "the caller's arrays were changed")


def inputs_are_not_kept(subject: Subject) -> None:
    """Arrays may be overwritten after a call: the learner has no memory in common with them."""
    promise = "overwriting the caller's arrays after a call changed the learner"
    for start, stop in subject.stretches:
        learner, expected = subject.twins(start)
        middle = (start + stop) // 2
        for first, last, size in ((start, middle, stop), (middle, stop, 1)):
            for X, y in subject.pieces(first, last, size, learner, expected):
                for one in (learner, expected):
                    rows, targets = copy.deepcopy((X, y))
                    (learn_row if size == 1 else learn)(one, rows, targets)
                    if one is learner:
                        _overwrite([rows, targets])
        require_alike(subject, learner, expected, stop, promise)


def inputs_in_any_form(subject: Subject) -> None:
    """Read-only and strided arrays are as good as others."""
    if not isinstance(subject.rows(0, 1)[0], np.ndarray):
        return
    for start, stop in subject.stretches:
        expected = _use(subject, subject.begun(start), copy.deepcopy, start, stop)
        for form, change in (("read-only", _read_only), ("not contiguous", _strided)):
            try:
                found = _use(subject, subject.begun(start), change, start, stop)
            except Exception as error:
                raise CheckFailed(
                    f"arrays that are {form} were refused: {type(error).__name__}: {error}"
                ) from error
            promise = f"arrays that are {form} gave something else than copies of them"
            require_same(found, expected, promise)


def _use(subject: Subject, learner: Any, change: Callable[[Any], Any], start: int, stop: int) -> Any:
    """All that a learner does with arrays in some form."""
    columns, middle = [], (start + stop) // 2
    for X, y in subject.pieces(start, middle, stop, learner):
        columns.append(learn(learner, change(X), change(y)))
    for X, y in subject.pieces(middle, stop, 1, learner):
        answers(learner, change(X))
        learn_row(learner, change(X), y)
    said = answers(learner, change(subject.queries(stop)))
    return columns, said, state_of(learner)


def _read_only(array: Any) -> Any:
    array = np.array(array)
    array.flags.writeable = False
    return array


def _strided(array: Any) -> Any:
    wide = np.asarray(array)
    for axis in range(wide.ndim):
        wide = np.repeat(wide, 2, axis=axis)
    return wide[(slice(None, None, 2),) * wide.ndim]


def what_is_handed_out_is_a_copy(subject: Subject) -> None:
    """States, traces and predictions may be overwritten: the learner does not notice."""
    promise = "overwriting what the learner handed out changed it"
    for start, stop in subject.stretches:
        learner, expected = subject.twins(start)
        for one in (learner, expected):
            for X, y in subject.pieces(start, stop, stop, one):
                handed_out = learn(one, X, y), answers(one, X), state_of(one)
                if one is learner:
                    _overwrite(handed_out)
        require_alike(subject, learner, expected, stop, promise)


def _overwrite(tree: Any) -> None:
    if isinstance(tree, (dict, list, tuple)):
        for value in tree.values() if isinstance(tree, dict) else tree:
            _overwrite(value)
        if not isinstance(tree, tuple):
            tree.clear()
    elif isinstance(tree, np.ndarray) and tree.flags.writeable and tree.dtype.kind in "fiub":
        tree[...] = 9


# ---- blocks


def block_size_does_not_matter(subject: Subject) -> None:
    """Rows in blocks of any size, or one by one: the same decisions, and predictions within a tolerance."""
    for start, stop in subject.stretches:
        whole = subject.begun(start)
        expected = subject.teach(whole, start, stop)
        ways = {f"calls of {size} row(s)": {"size": size} for size in (1, 7)}
        if "block_size" in inspect.signature(whole.advance).parameters:
            ways |= {f"block_size={size}": {"block_size": size} for size in (5, 64)}
        for what, how in ways.items():
            learner = subject.begun(start)
            found = subject.teach(learner, start, stop, **how)
            _require_close(found, expected, subject, what)
            _require_size(learner, whole, what)
        if learns_rows(whole):
            learner = subject.begun(start)
            _one_by_one(subject, [learner], start, stop)
            _require_size(learner, whole, "learn_one")
            queries = subject.queries(stop)
            wanted = answers(whole, queries)
            for verb, value in answers(learner, queries).items():
                if not isinstance(value, np.ndarray):
                    continue
                if (seen := farther_apart(value, wanted[verb], subject.tolerance)) is not None:
                    raise CheckFailed(f"learn_one, row by row, and advance differ in {verb}: {seen}.")


def _require_close(found: Any, expected: Any, subject: Subject, what: str) -> None:
    for name in ("kept", "size", "prediction"):
        if name not in expected:
            continue
        if (seen := farther_apart(found[name], expected[name], subject.tolerance)) is not None:
            raise CheckFailed(f"{what} and one call with all rows differ in {name}: {seen}.")


def _require_size(learner: Any, expected: Any, what: str) -> None:
    for name in ("rows_seen", "size"):
        a, b = (getattr(as_learner(one), name) for one in (learner, expected))
        if a != b:
            raise CheckFailed(f"{what} and one call with all rows differ in {name}: {a}, not {b}.")


# ---- late targets


def late_targets_are_learned_in_any_order(subject: Subject) -> None:
    """Asked, a row is predicted, and waits; told, it is learned as if it came then."""
    late, direct = map(as_learner, subject.twins(0))
    if not learns_rows(direct) or direct.lacks("predict_one"):
        return
    count = min([50, *(row for row in subject.columns if row)])
    X, y = subject.rows(0, count)
    for i in range(count):
        asked = late.ask(X[i], f"row {i}")
        require_same(asked, late.predict_one(X[i]), "ask and predict_one give two answers")
        if i >= 6:
            told = (i - 6) ^ 1  # of each two rows, the second first
            if not refuses(partial(late.tell, f"row {told}", float("nan"))):
                raise CheckFailed("NaN as a target that comes late: it was accepted, expected an error.")
            late.tell(f"row {told}", y[told])
            direct.learn_one(X[told], y[told])  # who is never asked cannot take one row for another
    if len(late.kept_shapes()) > 1:  # a row that waited was predicted with less than one that comes now
        return
    found, wanted = (answers(learner, subject.queries(count)) for learner in (late, direct))
    require_same(found, wanted, "rows that waited, told in another order, were not learned as they came")


# ---- files and copies


def saved_mid_stream_goes_on(subject: Subject) -> None:
    """Saved and loaded at any point, it goes on bit for bit as if it had not been."""
    if as_learner(subject.make()).saves:
        _goes_on(subject, _through_a_file, "a learner that was saved and loaded went another way")


def copies_go_on(subject: Subject) -> None:
    """A deep copy and a pickle go on bit for bit."""
    _goes_on(subject, copy.deepcopy, "a deep copy went another way")
    _goes_on(subject, lambda one: pickle.loads(pickle.dumps(one)), "a pickled learner went another way")


def _goes_on(subject: Subject, way: Callable[[Any], Any], promise: str) -> None:
    """Taken there and back between blocks, and once more between rows that come one by one."""
    for start, stop in subject.stretches:
        whole, middle = subject.begun(start), (start + stop) // 2
        other = _taken(way, whole, f"{promise} at once, after {start} rows")
        traces = [subject.teach(learner, start, middle) for learner in (other, whole)]
        require_same(traces[0], traces[1], f"{promise}, after {start} rows")
        late = (middle + stop) // 2
        _one_by_one(subject, [other, whole], middle, late)
        other = _taken(way, other, f"{promise} at once, after {late} rows")
        _one_by_one(subject, [other, whole], late, stop)
        require_alike(subject, other, whole, stop, f"{promise}, after {late} rows")


def _taken(way: Callable[[Any], Any], learner: Any, promise: str) -> Any:
    other = way(learner)
    require_same(state_of(other), state_of(learner), promise)
    return other


def _one_by_one(subject: Subject, learners: list[Any], start: int, stop: int) -> None:
    for X, y in subject.pieces(start, stop, 1, *learners):
        for learner in learners:
            learn_row(learner, X, y)


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


# ---- errors


def refused_input_changes_nothing(subject: Subject) -> None:
    """NaN, infinity, another number of features, targets that are none: refused, and all is as before.

    A learner that says that it ``allows_missing`` may take NaN in features, which stands for a gap.
    """
    for start, stop in subject.after_some_rows:
        learner, expected = subject.twins(start)
        before = copy.deepcopy(state_of(learner))
        for what, call in _bad_calls(subject, learner, start).items():
            if not refuses(call):
                raise CheckFailed(f"{what}: it was accepted, expected an error.")
            require_same(state_of(learner), before, f"{what}: it was refused, but the state changed")
        # What the state does not show would show now.
        columns = [subject.teach(one, start, stop) for one in (learner, expected)]
        require_same(columns[0], columns[1], "after inputs were refused, it learned something else")


def _bad_calls(subject: Subject, learner: Any, start: int) -> dict[str, Callable[[], Any]]:
    X, y = subject.rows(start - 1, start + 8)
    learns, asks = partial(learn, learner), partial(answers, learner)
    calls: dict[str, Callable[[], Any]] = {"no rows": partial(learns, X[:0], y[:0])}
    if isinstance(X, np.ndarray) and X.dtype.kind == "f":
        gaps = () if getattr(learner, "allows_missing", False) else (np.nan,)
        for value in (*gaps, np.inf, -np.inf):
            bad = X.copy()
            bad[-1, 0] = value
            calls[f"{value} in the last row"] = partial(learns, bad, y)
            calls[f"{value} in one row"] = partial(learn_row, learner, bad[-1:], y[-1:])
            calls[f"{value} in a row to predict"] = partial(asks, bad)
        calls["a feature too few"] = partial(learns, X[:, 1:], y)
        calls["a feature too many"] = partial(learns, np.hstack([X, X[:, :1]]), y)
        calls["a feature too few in one row"] = partial(learn_row, learner, X[:1, 1:], y[:1])
        calls["a feature too few in a row to predict"] = partial(asks, X[:, 1:])
    if learns_rows(learner):
        calls["a target too few"] = partial(learns, X, y[:-1])
        calls["NaN as a target"] = partial(learner.learn_one, X[0], float("nan"))
        calls["None as a target"] = partial(learner.learn_one, X[0], None)
        targets = np.array(y, dtype=object)
        targets[-1] = float("nan")
        calls["NaN as the last target"] = partial(learns, X, targets)
    return calls


# ---- tables


def raw_records_are_rows(subject: Subject) -> None:
    """Of one that takes dicts, with gaps, text and late columns: blocks, files and errors as of rows."""
    _with_records(subject, partial(_compare_records, tolerance=subject.tolerance))


def raw_records_may_wait(subject: Subject) -> None:
    """Dicts that are asked and told some rows later are encoded when asked, and learned when told."""
    _with_records(subject, _compare_late_records)


def _with_records(subject: Subject, compare: Callable[..., None]) -> None:
    """Two learners with the same dicts and targets, if they take any."""
    one, other = subject.make(), subject.make()
    X, y = subject.rows(0, subject.last)
    if isinstance(one, TakesTables) and learns_rows(one) and as_learner(one).accepts == "vectors":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", KonsWarning)  # of columns that it cannot take
            compare(one, other, _as_records(X), y)


def _compare_records(one: Any, many: Any, rows: list[Any], y: Any, tolerance: float) -> None:
    middle = len(rows) // 2
    for x, target in zip(rows, y, strict=True):
        one.learn_one(x, target)
    learn(many, rows[:middle], y[:middle])
    if as_learner(many).saves:
        many = _taken(_through_a_file, many, "saved and loaded after dicts, it went another way")
    before = state_of(many)
    if not refuses(lambda: learn(many, [*rows[middle:-1], {"x0": np.inf}], y[middle:])):
        raise CheckFailed("infinity in a dict: it was accepted, expected an error.")
    require_same(state_of(many), before, "infinity in a dict was refused, but the state changed")
    learn(many, rows[middle:], y[middle:])
    require_same(
        many.encoder.state(), one.encoder.state(), "dicts in blocks and one by one were encoded another way"
    )
    _require_size(one, many, "dicts one by one")
    found, expected = one.predict(rows[:12]), many.predict(rows[:12])
    if (seen := farther_apart(found, expected, tolerance)) is not None:
        raise CheckFailed(f"dicts in blocks and one by one differ in predict: {seen}.")


#: Rows that wait at a time.
LATE = 6


def _compare_late_records(late: Any, direct: Any, rows: list[Any], y: Any) -> None:
    """One that is told late beside one that learns the same dicts in the order in which they are told."""
    count, whole = min(len(rows) // 2 * 2, 50), late
    for i in range(count + LATE):
        for one in {id(late): late, id(whole): whole}.values() if i < count else ():
            expected = one.predict_one(rows[i])
            require_same(one.ask(rows[i], i), expected, "of a dict, ask and predict_one give two answers")
        if i == count // 2 and as_learner(whole).saves:
            late = _taken(_through_a_file, whole, "saved and loaded while dicts waited, it went another way")
        if i >= LATE:
            told = (i - LATE) ^ 1  # of each two rows, the second first
            # Beside one that is told no NaN, the end would show it at other rows.
            before = state_of(late) if late is whole or i % 5 == 0 else None
            if not refuses(partial(late.tell, told, float("nan"))):
                raise CheckFailed("NaN as the target of a dict that waited: it was accepted.")
            if before is not None:
                promise = "NaN for a dict that waited was refused, the state changed"
                require_same(state_of(late), before, promise)
            for one in {id(late): late, id(whole): whole}.values():
                one.tell(told, y[told])
            learn(direct, [rows[told]], y[told : told + 1])
    require_same(
        late.encoder.state(), direct.encoder.state(), "dicts that waited and others were encoded another way"
    )
    if late is not whole:
        require_same(
            state_of(late), state_of(whole), "saved and loaded while dicts waited, it went another way"
        )


def _as_records(X: Any) -> list[dict[str, Any]]:
    """Rows of an array by name: a value is missing now and then, and a text comes after a while."""
    rows = [{f"x{i}": value for i, value in enumerate(row)} for row in X.tolist()]
    for t, x in enumerate(rows):
        if t % 5 == 4:
            del x["x0"]
        if t >= 20:
            x["side"] = "left" if X[t, -1] < 0.0 else "right"
    return rows


# ---- memory


def memory_stays_within_the_cap(subject: Subject) -> None:
    """With ``max_atoms``, it never keeps more points, and its state stops growing once they are there."""
    learner = subject.make()
    cap = as_learner(learner).core.max_atoms
    if cap is None:
        return
    # Of each expert, if there are some: one may have more where others have less.
    cap *= max(len(as_learner(learner).expert_names), 1)
    numbers = []
    for start in range(0, subject.most, 128):
        columns = subject.teach(learner, start, start + 128)
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
        raw_records_are_rows,
        raw_records_may_wait,
        memory_stays_within_the_cap,
    )
}
