"""Does a second-order kernel learner of 100 atoms beat online linear regression, and who else does?

Bandwidth 0.5 on inputs in [0, 1], regularization 0.01, Hessian; target in [-0.5, 0.5]; rows permuted.
Progressive squared loss and microseconds a row, in one run on one thread.
"""

from __future__ import annotations

from functools import partial

from benchmarks.contenders import (
    FITTED_ON,
    cell,
    measure,
    play,
    river_regressors,
    squared_loss,
    stochastic_gradient,
    trivial,
)
from benchmarks.measuring import blas_threads
from benchmarks.reporting import Report, below
from benchmarks.settings import Settings
from benchmarks.streams import reals
from benchmarks.subjects import embedded

SETS = ("parkinson", "cpusmall", "cadata", "casp", "elevators")
OURS, LINEAR = "EmbeddedKONS", "online linear (VAW)"
BANDWIDTH, ATOMS = 0.5, 100


def run(settings: Settings) -> Report:
    plays = {
        OURS: partial(play, partial(embedded, BANDWIDTH, max_atoms=ATOMS)),
        **trivial(),
        **river_regressors(settings),
        **stochastic_gradient(BANDWIDTH, ATOMS),
    }
    streams, missing = reals(SETS, settings)
    with blas_threads(1):
        found = {stream.origin: measure(plays, stream, squared_loss) for stream in streams}
    return Report(
        question=f"Is the loss at {ATOMS} atoms below that of online linear regression, and of others?",
        data=f"bandwidth {BANDWIDTH:g}, regularization 0.01, Hessian; permuted, scaled by extremes",
        columns=("loss / us a row", *found),
        table=[[name, *(cell(*of_set[name]) for of_set in found.values())] for name in plays if found],
        figures=[
            below(of_set[LINEAR][0], name, of_set[OURS][0], "squared loss; the goal is online linear's")
            for name, of_set in found.items()
        ],
        notes=[
            *missing,
            f"Nystroem saw the first {FITTED_ON:,} inputs ahead of their predictions.",
            *([] if settings.slow else ["River's ARF and AMF take milliseconds a row: --slow."]),
        ],
        details=found,
    )
