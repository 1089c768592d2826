"""Is AutoKONS ever blind to drift? Streams that move, beside learners with the best memory in hindsight.

Each row is predicted before it is learned, the first 50 are not counted. The rivals' settings are chosen
in hindsight, stream by stream: EmbeddedKONS its forgetting, neighbours their window; with ``--slow`` River's
ARF, numbers also between scalers; with ``--capymoa PYTHON`` CapyMOA's forests. On streams of hundreds of
thousands of rows the dearest are left out. What rivals reached is kept in the file of ``--cache``.
"""

from __future__ import annotations

from benchmarks.cache import recall
from benchmarks.contenders import numbers
from benchmarks.drift import rivals
from benchmarks.drift.streams import Moving, made_up, of_folder
from benchmarks.measuring import blas_threads
from benchmarks.moa_forests import found as found_capymoa
from benchmarks.reporting import Report, at_most
from benchmarks.settings import Settings
from kons import AutoKONS
from kons.compilation import cpu_clock

GOAL, UNCOUNTED, LONG, QUICK_ROWS = 1.15, 50, 50_000, 3_000
PROTOCOL = 1  # raise it when what rivals play changes


def run(settings: Settings) -> Report:
    rows = QUICK_ROWS if settings.quick else None
    table, figures, ours = [], [], {}
    with blas_threads(1):
        for moving in (*made_up(rows), *of_folder(settings.folder, rows)):
            played = of_rivals(moving, settings)
            best = min(played, key=played.__getitem__)
            begun = cpu_clock()
            learner = AutoKONS(moving.stream.task)
            trace = learner.advance(moving.stream.X, moving.stream.y)
            micro = (cpu_clock() - begun) / len(trace.prediction) * 1e6
            loss = moving.loss(numbers(trace.prediction), UNCOUNTED)
            ours[moving.name] = loss
            ratio = loss / played[best]
            table.append([moving.name, moving.kind, loss, played[best], best, ratio, micro])
            figures.append(at_most(GOAL, moving.name, ratio, "loss / best rival in hindsight"))
    _, why = found_capymoa(settings.capymoa)
    notes = [] if settings.slow else ["River's forest takes milliseconds a row: --slow."]
    return Report(
        question="Is AutoKONS ever blind to drift?",
        data="named, seeded streams in order of time; mean squared error, or error rate",
        columns=("stream", "what moves", "AutoKONS", "best rival", "which", "ratio", "us a row"),
        table=table,
        figures=figures,
        notes=[*notes, why] if why else notes,
        details={"losses": {f"drift: {name}": loss for name, loss in ours.items()}},
    )


def of_rivals(moving: Moving, settings: Settings) -> dict[str, float]:
    """The loss of each rival on this stream, played now or kept."""
    long = len(moving.stream.y) > LONG
    rows = f"{moving.name}, {len(moving.stream.y)} rows, {moving.stream.digest()}"
    found = {}
    for rival in rivals.who_plays(settings, moving.classes):
        if not (long and rival.dear):
            key = f"drift: {rows}; {rival.library}; protocol {PROTOCOL}"
            kept = recall(
                settings.cache,
                key,
                rival.name,
                lambda play=rival.play: {"loss": moving.loss(play(moving), UNCOUNTED)},
            )
            found[rival.name] = kept["loss"]
    return found
