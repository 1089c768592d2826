"""Missing values, lags and the horizon, against twins that are told one thing after the other."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import effort
from kons.errors import ConfigurationError, InputError
from kons.streams import open_stream
from kons.streams.plan import lag_pairs
from streams.whole import by_name, whole

NAN = math.nan


def filling_twin(rows):
    """Rows one by one: a hole is the mean of what that column has shown before.

    A column with holes among the first rows has one more behind it, that says where they are.
    """
    kept = [(number, x, y) for number, (x, y) in enumerate(rows, start=1) if not math.isnan(y)]
    holey = {name: any(math.isnan(x[name]) for _, x, _ in kept) for name in rows[0][0]}
    seen = {name: [] for name in holey}
    out = []
    for number, x, y in kept:
        row = {}
        for name, value in x.items():
            hole = math.isnan(value)
            row[name] = sum(seen[name]) / max(len(seen[name]), 1) if hole else value
            row |= {f"{name} missing": float(hole)} if holey[name] else {}
            seen[name] += [] if hole else [value]
        out.append((number, list(row.values()), y))
    return out, list(row)


VALUES = st.one_of(st.just(NAN), st.integers(-50, 50).map(float))


@given(st.lists(st.tuples(VALUES, VALUES, VALUES), min_size=2, max_size=40))
def test_means_are_of_what_was_seen_before(cells):
    # Rows with a known start, so that every column holds numbers.
    cells = [(1.0, 2.0, 3.0), (2.0, 2.0, 4.0), (3.0, 1.0, 5.0), *cells]
    rows = [({"a": a, "b": b}, y) for a, b, y in cells]
    stream = open_stream(rows, task="regression", block_size=7)
    X, y, lines = whole(stream)
    expected, names = filling_twin(rows)
    assert lines.tolist() == [number for number, _, _ in expected]
    assert stream.features == tuple(names)
    assert pytest.approx(np.array([x for _, x, _ in expected]), rel=1e-12) == X
    assert y.tolist() == [target for _, _, target in expected]
    assert sum(stream.skipped.values()) == len(rows) - len(expected)
    kept = [rows[number - 1][0] for number, _, _ in expected]
    holes = {name: sum(math.isnan(x[name]) for x in kept) for name in ("a", "b")}
    assert stream.gaps == {name: count for name, count in holes.items() if count}


def test_a_gap_before_any_value_is_nought_and_said():
    rows = [({"a": NAN}, 1.0), ({"a": 2.0}, 2.0), ({"a": NAN}, 3.0), ({"a": 4.0}, NAN), ({"a": NAN}, 5.0)]
    stream = open_stream(rows)
    found = by_name(stream)
    assert found["a"].tolist() == [0.0, 2.0, 2.0, 2.0]
    assert found["a missing"].tolist() == [1.0, 0.0, 1.0, 1.0]
    assert stream.skipped == {"missing target": 1}
    assert stream.gaps == {"a": 3}


def test_missing_rows_are_skipped_or_refused():
    rows = [({"a": 1.0, "c": "u"}, 1.0), ({"a": NAN, "c": "u"}, 2.0), ({"a": 1.0, "c": None}, 3.0)]
    rows += [({"a": 5.0, "c": "u"}, NAN), ({"a": 6.0, "c": "v"}, 4.0)]
    stream = open_stream(rows, missing="skip", quiet=True)
    assert whole(stream)[2].tolist() == [1, 5]
    assert stream.skipped == {"missing": 2, "missing target": 1}
    with pytest.raises(InputError, match=r"row 2, column 'a': nan is a missing value.*set missing to skip"):
        whole(open_stream(rows, missing="error", quiet=True))
    stream = open_stream(rows, quiet=True)
    found = by_name(stream)
    assert found["a"].tolist() == [1.0, 1.0, 1.0, 6.0]
    assert found["a missing"].tolist() == [0.0, 1.0, 0.0, 0.0]
    assert found["c=u"].tolist() == [0.0, 0.0, 0.0, 0.0]  # a gap is a level of its own, and came once
    assert stream.gaps == {"a": 1, "c": 1}
    assert stream.skipped == {"missing target": 1}
    options = {"missing": "error", "on_bad_row": "skip"}
    with pytest.raises(InputError, match="row 2, column 'y': nan is a missing value"):
        whole(open_stream([rows[0], *rows[3:]], columns=["a"], quiet=True, **options))


def test_means_do_not_depend_on_where_pieces_end(tmp_path, monkeypatch):
    rng = np.random.default_rng(3)
    table = rng.normal(size=(400, 3))
    cells = np.where(rng.random((400, 3)) < 0.2, "", table.astype(str))
    cells[:, 2] = table[:, 2].astype(str)
    path = tmp_path / "t.csv"
    path.write_text("a,b,y\n" + "\n".join(map(",".join, cells)))
    stream = open_stream(path, "y", lag={"a": 2})
    reference = whole(stream)
    for piece in (40, 300, 5000):
        monkeypatch.setattr("kons.streams.text.PIECE", piece)
        monkeypatch.setattr("kons.streams.text.ROWS_A_PIECE", 1)
        found = whole(open_stream(path, "y", lag={"a": 2}, block_size=33))
        for one, other in zip(found, reference, strict=True):
            assert np.array_equal(one, other)


# ---- lags and horizon


def knowing_twin(features, targets, lags, horizon):
    """Time passes: a row's features appear, it must be predicted, then its own target is revealed.

    What is not yet known cannot be used: it is not there. Rows are (x, target), in the order of prediction,
    and the moment after which each target was known.
    """
    known_features, known_targets = [], []
    waiting, out = [], []
    for now, (z, target) in enumerate(zip(features, targets, strict=True)):
        known_features.append(z)
        x = [z]
        for name, back in lags:
            past = known_targets if name == "y" else known_features[:-1]
            x.append(past[-back] if back <= len(past) else None)
        waiting.append((now, x))
        known_targets.append(target)
        for made, x_then in [w for w in waiting if w[0] + horizon == now]:
            out.append((made, x_then, target, now))
        waiting = [w for w in waiting if w[0] + horizon > now]
    return [row for row in out if None not in row[1]]


@effort.examples(30)
@given(
    st.integers(8, 60),
    st.lists(st.tuples(st.sampled_from(["x0", "y"]), st.integers(1, 9)), max_size=4, unique=True),
    st.integers(0, 7),
    st.integers(1, 9),
    st.integers(1, 64),
)
def test_lags_and_horizon_use_only_what_is_known(rows, lags, horizon, block_size, chunk):
    rng = np.random.default_rng(rows)
    z, y = rng.normal(size=rows), rng.normal(size=rows)
    expected = knowing_twin(z.tolist(), y.tolist(), lags, horizon)
    lag = {name: [back for other, back in lags if other == name] for name, _ in lags}
    ordered = [(name, back) for name, backs in lag.items() for back in backs]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kons.streams.memory.ROWS", chunk)
        stream = open_stream((z.reshape(-1, 1), y), lag=lag, horizon=horizon, block_size=block_size)
        if not expected:
            with pytest.raises(InputError, match="all were skipped"):
                whole(stream)
            return
        X, targets, lines = whole(stream)
    assert stream.delay == horizon
    assert stream.features == ("x0", *(f"{name} lag {back}" for name, back in ordered))
    order = [0, *(1 + lags.index(pair) for pair in ordered)]
    assert X.tolist() == [[x[i] for i in order] for _, x, _, _ in expected]
    assert targets.tolist() == [target for _, _, target, _ in expected]
    assert lines.tolist() == [made + 1 for made, _, _, _ in expected]
    assert all(known - made == stream.delay for made, _, _, known in expected)
    past = stream.skipped.get("no past", 0)
    assert len(expected) + past + stream.skipped.get("no target yet", 0) == rows


def test_a_future_target_never_shows_in_an_earlier_row():
    """Change one target: no row that was predicted before it was revealed may change its features."""
    rng = np.random.default_rng(0)
    z, y = rng.normal(size=(50, 1)), rng.normal(size=50)
    options = {"lag": "target:1,3", "horizon": 4}
    X, _, lines = whole(open_stream((z, y), **options))
    for changed in range(50):
        other = y.copy()
        other[changed] += 100.0
        X2, _, lines2 = whole(open_stream((z, other), **options))
        assert (lines2 == lines).all()
        differ = np.flatnonzero((X2 != X).any(axis=1))
        assert all(lines[row] - 1 > changed for row in differ)


def test_a_lag_of_a_column_that_is_not_used_itself(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("load,wind,y\n" + "".join(f"{i},{i * i},{i}.5\n" for i in range(6)))
    stream = open_stream(path, "y", drop=["load"], lag="load:2", quiet=True)
    X, _, _ = whole(stream)
    assert stream.features == ("wind", "load lag 2")
    assert X.tolist() == [[4, 0], [9, 1], [16, 2], [25, 3]]
    assert stream.skipped == {"no past": 2}
    alone = open_stream(path, "y", columns=[], lag=["target:1"], quiet=True)
    assert whole(alone)[0].ravel().tolist() == [0.5, 1.5, 2.5, 3.5, 4.5]
    assert any("lags added: y 1 back" in note for note in alone.notes)


def test_lags_of_labels(tmp_path):
    path = tmp_path / "t.csv"
    rows = [f"{i},{'uv'[i % 2]},{'true' if i % 3 else 'false'}\n" for i in range(9)]
    path.write_text("a,c,y\n" + "".join(rows))
    X, y, _ = whole(open_stream(path, "y", lag="target:1", columns=["a"], quiet=True))
    assert X[:, 1].tolist() == [float(label) for label in [i % 3 > 0 for i in range(8)]]
    assert y.tolist() == [i % 3 > 0 for i in range(1, 9)]
    with pytest.raises(ConfigurationError, match="column 'c': a lag needs numbers"):
        open_stream(path, "y", lag="c:1", quiet=True)
    with pytest.raises(ConfigurationError, match="column 'c': a lag needs numbers"):
        open_stream(path, "c", lag="target:1", quiet=True)


def test_predicting_with_a_plan_needs_no_future(tmp_path):
    rows = "".join(f"{i * 2},{i * 10}\n" for i in range(10))
    (tmp_path / "t.csv").write_text("a,y\n" + rows)
    (tmp_path / "new.csv").write_text("a\n1\n2\n")
    stream = open_stream(tmp_path / "t.csv", "y", horizon=3, lag={"a": [1]})
    assert whole(stream)[1].tolist() == [40, 50, 60, 70, 80, 90]
    new = open_stream(tmp_path / "new.csv", plan=stream.plan)
    assert whole(new)[0].tolist() == [[2.0, 1.0]]
    stream = open_stream(tmp_path / "t.csv", "y", lag="target:1")
    with pytest.raises(ConfigurationError, match="has no column 'y', whose earlier values are features"):
        open_stream(tmp_path / "new.csv", plan=stream.plan)


def test_how_a_lag_is_written():
    expected = [("target", 1), ("target", 24), ("wind", 3)]
    assert lag_pairs(["target:1,24", "wind: 3"]) == expected
    assert lag_pairs({"target": [1, 24], "wind": 3}) == expected
    assert lag_pairs("a:b:2") == [("a:b", 2)]
    assert lag_pairs("target:1,1") == [("target", 1)]
    for wrong in ("target", "target:", "target:0", "target:-1", "target:1.5", {"a": [0]}, {"a": [1.5]}):
        with pytest.raises(ConfigurationError, match=r"lag"):
            lag_pairs(wrong)
    with pytest.raises(ConfigurationError, match="has no column 'wnd': did you mean 'wind'"):
        open_stream([({"wind": 1.0}, 2.0), ({"wind": 2.0}, 3.0)], lag="wnd:1")


def test_longer_than_the_stream():
    X, y = np.ones((5, 1)), np.arange(5.0)
    with pytest.raises(InputError, match=r"no row is left, all were skipped \(5 for no past\)"):
        whole(open_stream((X, y), lag="target:5"))
    with pytest.raises(InputError, match=r"all were skipped \(5 for no target yet\)"):
        whole(open_stream((X, y), horizon=5))


@pytest.mark.parametrize(("delay", "known"), [(0, True), (1, True), (2, False), (5, False)])
def test_a_lag_of_the_target_that_a_delay_hides_is_refused(delay, known):
    rows = [({"x": float(t)}, float(t)) for t in range(20)]
    stream = open_stream(rows, lag="target:2", horizon=3, quiet=True)
    if known:
        assert stream.total_delay(delay) == delay + 3
    else:
        with pytest.raises(ConfigurationError, match="back is an input"):
            stream.total_delay(delay)


def test_lags_of_features_are_known_whatever_the_delay():
    rows = [({"x": float(t)}, float(t)) for t in range(20)]
    assert open_stream(rows, lag="x:1", quiet=True).total_delay(7) == 7
