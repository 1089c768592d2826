"""Is ``advance`` at 200 atoms faster than scikit-learn's first-order way, and does it lose less?

scikit-learn: ``Nystroem(200)`` of the same kernel, fitted on the first rows outside the clock, then
``SGDRegressor.partial_fit`` in mini-batches of 100, predicted before they are learned. Its default step
size and stronger ones are tried; the goals are held against its fastest time and its least loss.
"""

from __future__ import annotations

import statistics
from functools import partial

import numpy as np

from benchmarks.contenders import FITTED_ON, STEPS, nystroem, predict_then_fit, squared_loss
from benchmarks.measuring import alternate, blas_threads, ratios
from benchmarks.reporting import Report, below
from benchmarks.settings import Settings
from benchmarks.streams import load
from benchmarks.subjects import embedded

ATOMS, BANDWIDTH = 200, 0.5
ADVANCE = "EmbeddedKONS.advance"


def run(settings: Settings) -> Report:
    stream = load("cadata", settings.folder, rows=20_640, features=8)
    if settings.quick:
        stream = stream.first(3_000)
    predictions: dict[str, np.ndarray] = {}
    atoms = 0

    def advance() -> None:
        nonlocal atoms
        learner = embedded(BANDWIDTH, max_atoms=ATOMS)
        predictions[ADVANCE] = learner.advance(stream.X, stream.y).prediction
        atoms = learner.size

    def descend(name: str) -> None:
        predictions[name] = predict_then_fit(features, name, stream)

    with blas_threads(1):
        features = nystroem(stream.X, BANDWIDTH, ATOMS)
        contenders = {ADVANCE: advance} | {name: partial(descend, name) for name in STEPS}
        times = alternate(contenders, rounds=settings.rounds)
    loss = {name: squared_loss(prediction, stream.y) for name, prediction in predictions.items()}
    dearest = max(statistics.median(ratios(times, ADVANCE, name)) for name in STEPS)
    return Report(
        question=f"Is advance at {ATOMS} atoms faster than Nystroem | SGDRegressor, at lower loss?",
        data=f"{stream.origin}, {len(stream):,} x 8, one thread; bandwidth {BANDWIDTH:g}, {atoms} atoms",
        columns=("learner", "us a row", "mean squared loss"),
        table=[[name, statistics.median(times[name]) / len(stream) * 1e6, loss[name]] for name in contenders],
        figures=[
            below(1.0, "time / scikit-learn", dearest, "over its fastest, median of the rounds"),
            below(
                1.0,
                "loss / scikit-learn",
                loss[ADVANCE] / min(loss[name] for name in STEPS),
                "progressive squared loss, over its least",
            ),
        ],
        notes=[f"Nystroem saw the first {FITTED_ON:,} inputs before the first prediction; advance did not."],
    )
