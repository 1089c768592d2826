"""``kons.evaluate``: a learner over a whole stream, in one call."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Literal, cast

import numpy as np

from kons import recipes
from kons.arrays import as_outputs, as_targets
from kons.errors import ConfigurationError, announce
from kons.evaluation.prequential import Prequential, Scored
from kons.evaluation.result import Evaluation
from kons.evaluation.rivals import RIVALS, Rival, as_rival, make_rival
from kons.evaluation.several import Several
from kons.learners import Classifier, Scaled, Trace
from kons.learners.events import OnEvent
from kons.learners.protocol import as_learner
from kons.streams import Stream, open_stream

__all__ = ["evaluate"]

# A trace is kept up to so many rows: some hundred bytes each.
MOST_TRACED = 1_000_000
BLOCK = 512


def evaluate(
    learner: Any,
    stream: Any,
    metrics: Iterable[str] | None = None,
    delay: int = 0,
    window: int = 1000,
    *,
    task: str = "auto",
    scale: str = "auto",
    baselines: bool = True,
    intervals: float | None = 0.9,
    positive: str | None = None,
    class_weight: str | None = None,
    pauses: bool = False,
    trace: bool = False,
    callback: Callable[[Prequential, Scored], None] | None = None,
    on_event: OnEvent = None,
) -> Evaluation:
    """Predict, then learn, every row of a stream; metrics and the trivial baselines beside them.

    ::

        row t is predicted by what was learned from rows 0 .. t-1-delay, scored, and learned later

    Constant memory, any length. The learner is taught in place (a new one of its kind, where it is wrapped:
    see ``scale``), and is in the result. How good it will be on other data is another question: these are
    the rows that came, in their order.

    Parameters
    ----------
    learner:
        A name from :data:`kons.recipes.RECIPES` ("auto" if you have none in mind), a learner in raw units
        (what :func:`kons.recipes.for_task` makes), a core learner such as :class:`kons.EmbeddedKONS`, or one
        of your own: ``predict_one`` and ``learn_one`` are enough (:mod:`kons.learners.protocol`). Or a rival,
        :mod:`kons.evaluation.rivals`: an estimator of scikit-learn, fitted again whenever 10 % more rows
        have come, a model of River, or a name from :data:`kons.evaluation.RIVALS`.
    stream:
        A :class:`kons.streams.Stream`, a pair (X, y), an iterable of (x, y) or (dict, y), or anything that
        :func:`kons.streams.open_stream` takes. With a pair whose y is of shape (n, k), k > 1, an array or a
        list of lists, the result has :attr:`~kons.evaluation.Evaluation.targets`, an evaluation of each; no
        callback is called.
    metrics:
        Names from :data:`kons.evaluation.METRICS`; all of the task by default.
    delay:
        How many rows late targets become known; the horizon of a stream comes on top.
    window:
        Windowed metrics are over the last so many rows.
    task:
        "regression" or "classification"; by default what the learner is for, else what the stream looks like.
    scale:
        "auto" wraps a core learner that has learned nothing yet in :class:`kons.Scaled` (labels: around a
        :class:`kons.Classifier`), and says so. "none" leaves units as they are, and is not for "auto".
    baselines, intervals, positive, class_weight, pauses:
        As in :class:`kons.evaluation.Prequential`.
    trace:
        Keep the learner's :class:`kons.Trace` in memory, up to a million rows.
    callback:
        Called with the engine and the scored rows after each block.
    on_event:
        Called with each :class:`~kons.learners.events.Event`, once its row is learned, in place of the
        learner's own.

    Examples
    --------
    >>> import kons
    >>> from kons.streams import mackey_glass
    >>> result = kons.evaluate("auto", mackey_glass(3000), window=500)
    >>> bool(result.windowed["r2"][-1] > 0.99), result.best_baseline
    (True, 'linear')
    >>> bool(0.87 < result.coverage < 0.93)
    True
    """
    learner = as_rival(learner)
    asked = task if task != "auto" or isinstance(learner, str) else as_learner(learner).task
    choices: Any = {"metrics": metrics, "window": window, "baselines": baselines, "intervals": intervals}
    if asked != "classification" and _several_targets(stream):
        X, y = stream
        ready, note = in_raw_units(learner, "regression", scale, len(y), delay)
        with _calling(ready, on_event):
            found = _evaluate_several(ready, X, y, delay=delay, trace=trace, **choices)
        return replace(found, notes=[*([note] if note else []), *found.notes])
    if isinstance(stream, tuple) and len(stream) == 2 and as_learner(learner).accepts == "objects":
        # Rows that are no numbers: cut as they are.
        X, y = stream
        rows: Iterable[Any] = [(X[i : i + BLOCK], y[i : i + BLOCK]) for i in range(0, len(y), BLOCK)]
        length: int | None = len(y)
        looks_like = "regression" if _all_numbers(y) else "classification"
    else:
        opened = stream if isinstance(stream, Stream) else open_stream(stream, task=asked, quiet=True)
        rows, looks_like, length = opened, opened.task, opened.total_rows
        delay = opened.total_delay(delay)
    chosen = looks_like if asked == "auto" else asked
    ready, note = in_raw_units(learner, chosen, scale, length, delay)
    engine = Prequential(
        ready,
        chosen,
        delay=delay,
        positive=positive,
        class_weight=class_weight,
        pauses=pauses,
        **choices,
    )
    if note:
        announce(f"kons: {note}")
        engine.notes.append(note)
    traces: list[Trace] = []
    with _calling(ready, on_event):
        for block in rows:
            scored = engine.advance(block)
            if trace and engine.rows <= MOST_TRACED:
                traces.append(scored.trace)
            if callback is not None:
                callback(engine, scored)
        engine.finish()
    result = engine.result()
    if trace and result.rows > MOST_TRACED:
        note = f"the trace ends after {sum(map(len, traces)):,} rows: it is kept in memory."
        result = replace(result, notes=[*result.notes, note])
    return replace(result, trace=Trace.concatenate(traces)) if traces else result


@contextlib.contextmanager
def _calling(learner: Any, on_event: OnEvent) -> Iterator[None]:
    """While it is evaluated: a function is no part of a learner that is saved, compared and copied."""
    if on_event is None:
        yield
        return
    if not hasattr(learner, "on_event"):
        raise ConfigurationError(f"{as_learner(learner).name} notes no events, expected on_event=None.")
    before, learner.on_event = learner.on_event, on_event
    try:
        yield
    finally:
        learner.on_event = before


def _evaluate_several(learner: Any, X: Any, y: Any, *, trace: bool, **choices: Any) -> Evaluation:
    """:func:`evaluate` on y of shape (n, k)."""
    Y = as_outputs(y, len(X), as_learner(learner).outputs)
    engine = Several(learner, Y.shape[1], **choices)
    blocks = (slice(start, start + BLOCK) for start in range(0, len(Y), BLOCK))
    traces = [engine.advance((X[rows], Y[rows])).trace for rows in blocks]
    engine.finish()
    return replace(engine.result(), trace=Trace.concatenate(traces) if trace else None)


def in_raw_units(
    learner: Any, task: str, scale: str = "auto", rows: int | None = None, delay: int = 0
) -> tuple[Any, str]:
    """The learner that is evaluated on so many rows, and what is to be said about it, if anything.

    One that is made by its name, and keeps late targets back by itself, is made for ``delay``.

    >>> from kons import EmbeddedKONS, Gaussian, Squared
    >>> learner, note = in_raw_units(EmbeddedKONS(Gaussian("auto"), Squared()), "regression")
    >>> type(learner).__name__
    'Scaled'
    """
    if scale not in ("auto", "none"):
        raise ConfigurationError(f'scale is {scale!r}, expected "auto" or "none".')
    if isinstance(learner, str) and learner in RIVALS:
        return make_rival(learner, task), ""
    if isinstance(learner, str):
        kind = cast(Literal["regression", "classification"], task)
        takes = recipes.RECIPES[learner].accepts if learner in recipes.RECIPES else ()
        given = {"warmup": recipes.warmup_for(rows), "delay": delay}
        fitting: dict[str, Any] = {name: value for name, value in given.items() if name in takes}
        return recipes.for_task(kind, learner, scale=cast(Literal["auto", "none"], scale), **fitting), ""
    told = as_learner(learner)
    if isinstance(learner, Rival) and learner.task != task:
        raise ConfigurationError(f"{learner.name} is for {learner.task}, and the targets are for {task}.")
    if told.units != "scaled" or told.rows_seen:
        return learner, ""
    if task == "classification" and not told.labelled:
        learner = Classifier(learner)
    if scale == "none":
        return learner, ""
    ready = Scaled(learner, recipes.warmup_for(rows))
    return ready, (
        f"{told.name} was wrapped in kons.Scaled, which learns the units from the first {ready.warmup:,} "
        'rows; scale="none" leaves them as they are.'
    )


def _all_numbers(y: Any) -> bool:
    try:
        as_targets(y, len(y))
    except ValueError:
        return False
    return True


def _several_targets(stream: Any) -> bool:
    """Whether it is a pair (X, y) with y of shape (n, k), k > 1: an array, or lists (a tuple is a label)."""
    if not (isinstance(stream, tuple) and len(stream) == 2):
        return False
    y = stream[1]
    if isinstance(y, list) and y and all(isinstance(row, (list, np.ndarray)) for row in y):
        return len({len(row) for row in y}) > 1 or len(y[0]) > 1  # of different lengths: refused there
    shape: tuple[int, ...] = getattr(y, "shape", ())
    return len(shape) == 2 and shape[1] > 1
