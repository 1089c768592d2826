"""Rivals of the benchmarks: what is kept of them, whose wrapper is broken, and intervals of paired losses."""

import gzip
import importlib.util
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from benchmarks import cache, moa_forests

pytest.importorskip("river")  # which the other rivals are made of

from benchmarks import drift, first_rows, pauses, row_orders, tree_rivals
from benchmarks.drift.rivals import Rival as DriftRival
from benchmarks.drift.rivals import sources
from benchmarks.drift.streams import Moving
from benchmarks.raw_streams import RawStream
from benchmarks.settings import Settings
from benchmarks.tree_rivals import Outcome, Rival

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 2))
OF_NUMBERS = RawStream(X, X[:, 0] + 3.0, "regression", False)
OF_CLASSES = RawStream(X, RNG.choice([2.0, 5.0, 9.0], 80), "classification", False)


@pytest.fixture
def folder(tmp_path):
    """A data folder with one permuted set and one in the order of time."""
    table = np.column_stack([X, np.where(X[:, 0] + 0.3 * X[:, 1] > 0.0, 1.0, 0.0)])
    for name in ("german", "classes_move"):
        with gzip.open(tmp_path / f"{name}.csv.gz", "wt") as file:
            np.savetxt(file, table, delimiter=",", header="a,b,target", comments="")
    return tmp_path


# ---- what is kept


def test_a_rival_is_played_once_for_one_key(tmp_path):
    file, plays = tmp_path / "cache.json", []

    def play():
        plays.append(1)
        return {"loss": float(len(plays))}

    assert cache.recall(file, "rows", "trees", play) == {"loss": 1.0}
    assert cache.recall(file, "rows", "trees", play) == {"loss": 1.0}
    assert cache.recall(file, "other rows", "trees", play) == {"loss": 2.0}
    assert cache.recall(file, "rows", "forest", play) == {"loss": 3.0}
    assert cache.recall(None, "rows", "trees", play) == {"loss": 4.0}
    assert cache.read(file)["rows"] == {"trees": {"loss": 1.0}, "forest": {"loss": 3.0}}


def test_orders_are_permutations_but_of_rows_in_time(folder):
    settings = Settings(folder=folder)
    first, second = (tree_rivals.load("german", settings, order) for order in (0, 1))
    assert not np.array_equal(first.X, second.X)
    assert Counter(map(tuple, np.column_stack([first.X, first.y]))) == Counter(
        map(tuple, np.column_stack([second.X, second.y]))
    )
    first, second = (tree_rivals.load("classes_move", settings, order) for order in (0, 1))
    np.testing.assert_array_equal(first.X, X)
    np.testing.assert_array_equal(second.X, X)


# ---- CapyMOA, in a Python of its own


def test_forests_that_cannot_be_had_are_left_out_with_a_word():
    assert moa_forests.found(None) == (None, moa_forests.found(None)[1])
    assert "--capymoa PYTHON" in moa_forests.found(None)[1]
    assert "left out" in moa_forests.found("no-such-python")[1]
    if importlib.util.find_spec("capymoa") is None:
        version, why = moa_forests.found(sys.executable)
        assert version is None
        assert "No module named 'capymoa'" in why


def test_labels_go_there_as_codes_and_come_back(tmp_path, monkeypatch):
    process = tmp_path / "process.py"
    process.write_text(
        "import sys\n"
        "import numpy as np\n"
        "given = np.load(sys.argv[1], allow_pickle=False)\n"
        "assert (str(given['task']), str(given['forest'])) == ('classification', 'SRP')\n"
        "assert set(given['y']) == {0, 1, 2}\n"
        "said = np.array([np.nan, *given['y'][:-1]])\n"
        "np.savez(sys.argv[2], prediction=said, seconds=1.5)\n",
        encoding="utf-8",
    )
    monkeypatch.setattr(moa_forests, "PROCESS", process)
    said, seconds = moa_forests.play(sys.executable, "SRP", X, OF_CLASSES.y, "classification")
    np.testing.assert_array_equal(said, [np.nan, *OF_CLASSES.y[:-1]])
    assert seconds == 1.5
    with pytest.raises(RuntimeError, match="AssertionError"):
        moa_forests.play(sys.executable, "ARF", X, OF_CLASSES.y, "classification")


def test_where_a_forest_names_no_class_it_is_the_commonest_and_a_silent_one_is_refused(monkeypatch):
    said = OF_CLASSES.y.copy()
    monkeypatch.setattr(moa_forests, "play", lambda *arguments: moa_forests.Played(said, 1.0))
    said[[0, 50]] = np.nan
    filled, _ = tree_rivals.said_by_forest("python", "SRP", OF_CLASSES)
    np.testing.assert_array_equal(filled[[0, 50]], tree_rivals.constant(OF_CLASSES)[[0, 50]])
    np.testing.assert_array_equal(filled[51:], OF_CLASSES.y[51:])
    said[25:] = np.nan
    with pytest.raises(RuntimeError, match="silent about most rows"):
        tree_rivals.said_by_forest("python", "SRP", OF_CLASSES)


# ---- losses, and wrappers that are broken


def test_the_constant_is_what_was_seen_before():
    of_classes = tree_rivals.constant(OF_CLASSES)
    for i in range(1, 80):
        counts = Counter(OF_CLASSES.y[:i].tolist())
        assert of_classes[i] == min(counts, key=lambda label: (-counts[label], label))
    expected = [OF_NUMBERS.y[:i].mean() for i in range(1, 80)]
    np.testing.assert_allclose(tree_rivals.constant(OF_NUMBERS)[1:], expected, rtol=1e-13)


@pytest.mark.parametrize("stream", [OF_NUMBERS, OF_CLASSES], ids=["numbers", "classes"])
def test_a_rival_that_says_a_constant_is_refused(stream):
    silent = stream.y.copy()
    silent[60] = np.nan
    for said in (np.full(80, stream.y[0]), tree_rivals.constant(stream), silent):
        with pytest.raises(RuntimeError, match="trees predicts no more than a constant"):
            tree_rivals.refuse_constant("trees", said, stream)
    tree_rivals.refuse_constant("trees", stream.y, stream)


def test_an_outcome_leaves_the_first_row_out_and_tells_the_last_quarter():
    said = OF_CLASSES.y.copy()
    said[[0, 1, 79]] = -1.0
    found = tree_rivals.outcome(said, OF_CLASSES, seconds=0.008, size=2e6, pause=0.01)
    assert found == pytest.approx((2 / 79, 1 / 20, 100.0, 2.0, 10.0))
    doubled = OF_NUMBERS._replace(y=2.0 * OF_NUMBERS.y)
    shifted = [tree_rivals.outcome(s.y + np.ptp(s.y), s, 0.0).loss for s in (OF_NUMBERS, doubled)]
    assert shifted == pytest.approx([1.0, 1.0])


# ---- five orders


def test_the_interval_is_that_of_the_paired_t_test():
    ours, theirs = RNG.normal(size=(2, 5)) + np.arange(5.0)
    expected = stats.ttest_rel(ours, theirs).confidence_interval(0.95)
    low, mean, high = row_orders.paired(ours, theirs)
    assert (low, high) == pytest.approx(tuple(expected))
    assert mean == pytest.approx((ours - theirs).mean())
    with pytest.raises(ValueError, match="needs two"):
        row_orders.paired([1.0], [1.0])


def test_sets_behind_and_ahead_are_told_apart_and_rivals_played_once(folder, monkeypatch):
    played = []

    def rivals(stream, settings):
        for name, loss in {"best": 1.1 if stream.time_ordered else 0.9, "far": 9.0}.items():

            def play(name=name, loss=loss):
                played.append((name, stream.digest()))
                return Outcome(loss, loss, 1.0, 1.0, 1.0)

            yield Rival(name, "made up 1", play)

    def of_auto(stream, seeds):
        return Outcome(1.0 + 0.001 * seeds[0], 1.0, 1.0, 1.0, 1.0)

    monkeypatch.setattr(tree_rivals, "rivals", rivals)
    monkeypatch.setattr(row_orders, "of_auto", of_auto)
    settings = Settings(folder, quick=True, cache=folder / "cache.json", sets=("german", "classes_move"))
    report = row_orders.run(settings)
    assert [row[0] for row in report.table] == ["german", "classes_move"]
    assert [row[-1] for row in report.table] == ["behind", "ahead"]
    figures = {figure.name: figure.value for figure in report.figures}
    assert figures["sets behind"] == 1.0
    assert figures["largest ratio on one order"] == pytest.approx(1.001 / 0.9)
    # german: both on the first order, the best on the second; classes_move: both, once.
    assert len(played) == len(set(played)) == 5
    assert row_orders.run(settings).table == report.table
    assert len(played) == 5


# ---- pauses and first rows


def test_pauses_are_counted_by_decade():
    counts = pauses.by_decade(np.array([0.005, 0.05, 0.06, 0.5, 5.0, 99.0, 100.0, 5_000.0]))
    assert counts.tolist() == [1, 2, 1, 1, 1, 2]
    assert len(pauses.milliseconds(OF_NUMBERS)) == 80


def test_the_first_rows_are_compared_with_what_was_seen_before(folder, monkeypatch):
    monkeypatch.setattr(first_rows, "ROWS", 40)
    settings = Settings(folder, sets=("german", "classes_move"))
    starts = [part.X[0].tolist() for part in first_rows.beginnings("classes_move", settings)]
    assert starts == X[np.linspace(0, 40, 10).astype(int)].tolist()
    parts = list(first_rows.beginnings("german", settings))
    assert len({part.digest() for part in parts}) == len(parts) == 10
    missed = sum((tree_rivals.constant(part) != part.y)[1:].sum() for part in parts)
    assert first_rows.run(settings).table[0][2] == missed


# ---- drift


def test_rivals_on_moving_streams_are_kept_and_dear_ones_left_out_on_long_streams(tmp_path, monkeypatch):
    plays = []

    def play(moving):
        plays.append(moving.name)
        return moving.stream.y + 2.0

    def who_plays(settings, classes):
        return iter([DriftRival("cheap", "1", play), DriftRival("dear", "1", play, dear=True)])

    monkeypatch.setattr(drift.rivals, "who_plays", who_plays)
    settings, moving = Settings(cache=tmp_path / "cache.json"), Moving("m", "still", OF_NUMBERS)
    for _ in range(2):
        assert drift.of_rivals(moving, settings) == {"cheap": 4.0, "dear": 4.0}
    assert len(plays) == 2
    monkeypatch.setattr(drift, "LONG", 79)
    assert drift.of_rivals(moving, settings) == {"cheap": 4.0}


def test_neighbours_are_not_misled_by_a_column_that_rests():
    # 0.003467 has no mean of its own among floats: its deviation is 1e-19, not 0.
    resting = np.column_stack([X, np.full(80, 0.003467), np.full(80, 4.0)])
    assert 0.0 < resting[:64].std(axis=0)[2] < 1e-17
    moving = [Moving("m", "still", OF_NUMBERS._replace(X=points)) for points in (X, resting)]
    said = [drift.rivals.neighbours(each, 250) for each in moving]
    np.testing.assert_allclose(said[0][2:], said[1][2:], rtol=1e-12)


def test_what_is_kept_of_embedded_depends_on_all_sources_but_those_of_auto(tmp_path, monkeypatch):
    for name in ("__init__.py", "core/factor.py", "learners/auto/stacking.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("", encoding="utf-8")
    monkeypatch.setattr(drift.rivals.kons, "__file__", str(tmp_path / "__init__.py"))

    def digest_after(name):
        Path(tmp_path, name).write_text("changed", encoding="utf-8")
        return sources.__wrapped__()

    before = sources.__wrapped__()
    assert digest_after("learners/auto/stacking.py") == before
    assert digest_after("core/factor.py") != before
