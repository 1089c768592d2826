"""What is asked for: plain values that survive a file, checked before anything is read."""

import json
from dataclasses import replace

import numpy as np
import pytest

from kons.errors import ConfigurationError
from kons.kernels import Matern
from kons.runs import Settings
from kons.streams import open_stream


def stream_of(rows, labels=False):
    X = np.random.default_rng(0).normal(size=(rows, 2))
    y = np.where(X[:, 0] > 0, "a", "b").astype(object) if labels else X[:, 0]
    return open_stream((X, y), quiet=True)


def test_they_survive_a_file():
    settings = Settings(
        "rows.csv",
        "y",
        learner="sketched",
        parameters={"bandwidth": 2.0, "kernel": "laplace"},
        delay=3,
        rows=100,
        reading={"lag": ["target:1,24"], "drop": ["a"], "horizon": 2},
    )
    text = json.dumps(settings.to_dict())
    assert Settings.from_dict(json.loads(text)) == settings
    assert json.loads(text)["drop"] == ["a"]


@pytest.mark.parametrize(
    "values",
    [
        None,
        [],
        {},
        {"source": 3},
        {"source": "a", "rows": 0},
        {"source": "a", "rows": "many"},
        {"source": "a", "seed": -1},
        {"source": "a", "parameters": []},
        {"source": "a", "colour": "red"},
        {"source": "a", "learner": None},
    ],
)
def test_what_was_edited_is_refused(values):
    with pytest.raises(ConfigurationError):
        Settings.from_dict(values)
    with pytest.raises(ConfigurationError, match="no way of reading called 'colour'"):
        Settings("a", reading={"colour": "red"})


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"learner": "embeded"}, "no learner 'embeded': did you mean 'embedded'\\? There are auto, adagrad"),
        ({"learner": "xyz"}, "no learner 'xyz'. There are auto, adagrad"),
        (
            {"parameters": {"max_atom": 5}},
            "takes no parameter 'max_atom': did you mean 'max_atoms'\\? It takes",
        ),
        ({"parameters": {"seed": 5}}, "takes no parameter 'seed'"),
        ({"parameters": {"max_atoms": "five"}}, "max_atoms is 'five'"),
        ({"parameters": {"warmup": 20}}, "'auto' takes no parameter 'warmup'"),
        ({"parameters": {"loss": "squared"}}, "'auto' takes no parameter 'loss'"),
        ({"scale": "none"}, "scale='none' does not apply to 'auto'"),
        ({"parameters": {"policy": "coin"}, "learner": "embedded"}, "policy is 'coin'"),
        ({"parameters": {"step_size": "small"}, "learner": "embedded"}, "step_size"),
        ({"parameters": {"kernel": "round"}}, "no kernel 'round'"),
        ({"parameters": {"kernel": 3}}, "kernel"),
        ({"parameters": {"bandwidth": [1, 2]}}, "bandwidth"),
        ({"parameters": {"loss": "logistics"}, "learner": "embedded"}, "no loss"),
        ({"parameters": {"classes": ["a"]}, "learner": "embedded"}, "classes"),
        ({"parameters": {"atoms": 3}, "learner": "pkawv"}, "atoms"),
    ],
)
def test_a_learner_that_cannot_be_made_says_why(settings, words):
    with pytest.raises(ConfigurationError, match=words):
        Settings("a", **settings).make_learner(stream_of(50))


@pytest.mark.parametrize(("rows", "warmup"), [(50, 20), (1000, 100), (4990, 499), (9000, 500)])
def test_a_short_file_has_a_short_warm_up(rows, warmup):
    embedded = Settings("a", learner="embedded")
    assert embedded.make_learner(stream_of(rows)).warmup == warmup
    given = replace(embedded, parameters={"warmup": 7})
    assert given.make_learner(stream_of(rows)).warmup == 7
    limited = Settings("a", learner="embedded", rows=100).make_learner(stream_of(rows))
    assert limited.warmup == max(20, min(rows, 100) // 10)


def test_the_default_is_made_for_the_task_and_the_delay_of_the_run():
    X = np.random.default_rng(0).normal(size=(50, 2))
    late = open_stream((X, X[:, 0]), horizon=3, quiet=True)
    learner = Settings("a", delay=4, seed=5, parameters={"kernel": "matern"}).make_learner(late)
    assert type(learner).__name__ == "AutoKONS"
    assert (learner.task, learner.delay, learner.seed) == ("regression", 7, 5)
    assert learner.parameters()["kernel"] == Matern("auto")
    assert Settings("a").make_learner(stream_of(50, labels=True)).task == "classification"


def test_long_files_go_in_larger_blocks_where_a_row_costs_the_same_at_their_end(tmp_path):
    file = tmp_path / "long.csv"
    file.write_text("x,y\n" + "".join(f"{i % 97},{i % 89}\n" for i in range(17_000)))

    def largest(learner, **options):
        settings = Settings(str(file), "y", learner=learner, **options)
        stream = settings.open(quiet=True)
        blocks = settings.blocks(stream, learner=settings.make_learner(stream))
        return max(len(block.y) for block in blocks)

    assert largest("embedded") == 2048
    assert largest("kons") == largest("embedded", rows=3000) == 512


def test_blocks_stop_at_the_limit_and_start_where_they_are_asked_to():
    stream = stream_of(1300)
    for limit in (1, 511, 512, 513, 1024, 1300, 5000):
        settings = Settings("a", rows=limit)
        blocks = list(settings.blocks(stream))
        assert sum(len(block.y) for block in blocks) == min(limit, 1300)
        later = list(settings.blocks(stream, 512))
        assert sum(len(block.y) for block in later) == max(0, min(limit, 1300) - 512)
        assert all(block.first >= 512 for block in later)
