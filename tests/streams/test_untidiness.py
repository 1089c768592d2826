"""Files from a generator of untidiness run to the end, and all that is untidy in them is counted."""

import io
import random
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

import effort
from kons import evaluate
from kons.recipes import for_task
from kons.streams import open_stream
from streams.untidiness import untidy_file

FILES = 500

pytestmark = pytest.mark.filterwarnings("ignore::kons.errors.KonsWarning")  # of targets that are clipped


class Drops(io.RawIOBase):
    """Bytes as a pipe has them, some at a time."""

    def __init__(self, data):
        self._data, self._sizes = data, random.Random(len(data))

    def readable(self):
        return True

    def readinto(self, buffer):
        size = min(len(buffer), self._sizes.choice((1, 7, 1000, 5000, 60_000)))
        part, self._data = self._data[:size], self._data[size:]
        buffer[: len(part)] = part
        return len(part)


def opened(untidy, **more):
    if not untidy.piped:
        return open_stream(untidy.path, **untidy.options | more)
    pipe = io.BufferedReader(Drops(untidy.path.read_bytes()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", SimpleNamespace(buffer=pipe))
        return open_stream("-", **untidy.options | more)


def run(untidy):
    """Along the file to its end with the cheapest learner: what was counted, beside what is right."""
    stream = opened(untidy)
    learner = for_task(stream.task, "embedded", max_atoms=8, warmup=10)
    result = evaluate(learner, stream, baselines=False, intervals=None)
    found = {
        "rows": result.rows,
        "skipped": stream.skipped,
        "gaps": stream.gaps,
        "bad cells": {name: bad.number for name, bad in stream.bad_cells.items()},
        "used": {column.name for column in stream.plan.columns},
    }
    expected = {
        "rows": len(untidy.lines),
        "skipped": untidy.skipped,
        "gaps": untidy.gaps,
        "bad cells": untidy.bad_cells,
        "used": untidy.used,
    }
    assert found == expected, untidy.about
    blocks = list(opened(untidy) if untidy.piped else stream)  # a second time, as it is
    assert np.concatenate([block.lines for block in blocks]).tolist() == untidy.lines, untidy.about
    asked = opened(untidy, plan=stream.plan, missing="fill").to_predict()
    assert [line for block in asked.records() for line in block.lines.tolist()] == untidy.every_line
    features = {name: i for i, name in enumerate(stream.features)}
    for name, values in untidy.numbers.items():
        place, known = features[name], ~np.isnan(values)
        read = np.concatenate([b.X[:, place] if place < b.X.shape[1] else np.full(len(b.y), np.nan)
                               for b in blocks])  # fmt: skip
        there = known & ~np.isnan(read)
        np.testing.assert_allclose(
            read[there], np.array(values)[there], rtol=1e-12, err_msg=str(untidy.about)
        )


@pytest.mark.parametrize("seed", range(effort.amount(16, FILES)))
def test_untidy_files_run_to_the_end_with_the_right_counts(tmp_path, seed):
    run(untidy_file(random.Random(seed), tmp_path))


@effort.examples(10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(choices=st.randoms(use_true_random=False))
def test_hypothesis_finds_no_file_that_does_not(tmp_path, choices):
    run(untidy_file(choices, tmp_path, sizes=(12, 60, 300, 1200)))
