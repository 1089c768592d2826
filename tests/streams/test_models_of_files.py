"""A model that learned from a file takes frames and dicts with the cells as they stand in it."""

import json

import numpy as np
import pandas as pd
import pytest

import kons
from kons.errors import ConfigurationError, FileError
from kons.files import from_bytes, to_bytes
from kons.streams import open_stream
from kons.streams.untidy import untidy_table
from kons.tables import records_of


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    path = tmp_path_factory.mktemp("untidy") / "rentals.csv"
    path.write_text(untidy_table(700))
    stream = open_stream(path, "rentals", quiet=True)
    model = kons.evaluate(kons.AutoKONS(max_atoms=20, experts=4), stream).learner
    expected = np.concatenate([model.predict(block.records) for block in stream.records()])
    return path, from_bytes(to_bytes(model)), expected


def cells_of(path):
    return pd.read_csv(path, dtype=str, keep_default_na=False).drop(columns="rentals")


@pytest.mark.parametrize(
    "read",
    [
        lambda path: pd.read_csv(path).drop(columns="rentals"),
        cells_of,
        lambda path: cells_of(path)[["price", "event", "weather", "temperature", "time", "station"]],
        lambda path: cells_of(path).to_dict("records"),
    ],
    ids=["frame", "frame of text", "permuted", "dicts of text"],
)
def test_rows_as_they_stand_in_the_file(learned, read):
    path, model, expected = learned
    # Predicted in blocks of another size, which differ by rounding; another reading of a cell is far off.
    np.testing.assert_allclose(model.predict(read(path)), expected, rtol=1e-9)


def test_single_dicts_and_more_rows_to_learn(learned):
    path, model, expected = learned
    rows = cells_of(path).to_dict("records")
    found = [float(model.predict([row])[0]) for row in rows[:40]]
    np.testing.assert_allclose(found, expected[:40], rtol=1e-9)
    twin = from_bytes(to_bytes(model))
    twin.learn_one(rows[0], 100.0)
    assert twin.rows_seen == model.rows_seen + 1
    assert twin.encoder.features == model.encoder.features


def test_what_was_left_out_stays_out_when_raw_rows_are_learned(tmp_path):
    """The target itself, above all, which raw rows hold."""
    rows = [
        {"row": i, "name": f"n{i}", "x": i % 7 / 3, "late": None, "leak": i % 7, "y": float(i % 7)}
        for i in range(300)
    ]
    frame = pd.DataFrame(rows)
    frame.to_csv(tmp_path / "left.csv", index=False)
    stream = open_stream(tmp_path / "left.csv", "y", drop=["leak"], quiet=True)
    model = kons.evaluate(kons.AutoKONS(max_atoms=20, experts=4), stream).learner
    model = from_bytes(to_bytes(model))
    model.advance(frame, frame["y"])
    for row in rows[:5]:
        model.learn_one(row, row["y"])
    assert model.feature_names == ["x"]
    model.learn_one(rows[0] | {"late": 1.0, "new": 2.0}, 0.0)
    assert list(model.encoder.columns) == ["x", "late", "new"]


def test_an_empty_row_is_predicted_from_what_was_learned(learned):
    _, model, _ = learned
    assert np.isfinite(model.predict([{}])).all()


def test_a_forged_format_is_refused(learned):
    _, model, _ = learned
    state = model.state()
    name, kind, column = state["encoder"]["columns"][0]
    for forged in ({"kind": "number"}, column["format"] | {"style": {"decimal": "."} | {"odd": 1}}):
        columns = [(name, kind, column | {"format": forged}), *state["encoder"]["columns"][1:]]
        changed = state | {"encoder": state["encoder"] | {"columns": columns}}
        with pytest.raises(FileError, match="how cells are written"):
            kons.AutoKONS.from_state(model.parameters(), changed)


def test_objects_as_they_stand_in_a_file_of_json(tmp_path):
    """Moments, flags and gaps of a file whose cells have types are those of its objects."""
    path = tmp_path / "odd.jsonl"
    rows = [
        {
            "time": 1551398400 + 5000 * i,
            "when": f"2020-01-{1 + i % 31:02d} 10:00",
            "open": ["yes", "no"][i % 2],
            "level": -999 if i % 7 == 2 else i % 11,
            "y": float(i % 11),
        }
        for i in range(600)
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    stream = open_stream(path, "y", na_values=["-999"], task="regression", quiet=True)
    model = kons.evaluate(kons.AutoKONS(max_atoms=20, experts=4), stream).learner
    expected = np.concatenate([model.predict(block.records) for block in stream.records()])
    model = from_bytes(to_bytes(model))
    np.testing.assert_allclose(model.predict(rows), expected, rtol=1e-9)
    np.testing.assert_allclose(model.predict(pd.DataFrame(rows)), expected, rtol=1e-9)


def test_numbers_that_mean_something_else(tmp_path):
    """Gaps of --na-values, moments and postal codes are numbers in a frame, and in dicts of one."""
    path = tmp_path / "odd.csv"
    rng = np.random.default_rng(0)
    rows = [
        f"{'' if i % 9 == 4 else 1000 + i % 5},{'-999' if i % 7 == 2 else i % 11},{1551398400 + 5000 * i},"
        f"{20190301 + i % 28},{y:.3f}"
        for i, y in enumerate(rng.normal(size=700))
    ]
    path.write_text("\n".join(["postal,level,time,date,y", *rows]))
    stream = open_stream(path, "y", na_values=["-999"], categorical=["postal"], quiet=True)
    model = kons.evaluate(kons.AutoKONS(max_atoms=20, experts=4), stream).learner
    expected = np.concatenate([model.predict(block.records) for block in stream.records()])
    frame = pd.read_csv(path).drop(columns="y")
    assert frame.dtypes.to_dict() == {"postal": float, "level": int, "time": int, "date": int}
    np.testing.assert_allclose(model.predict(frame), expected, rtol=1e-9)
    dicts = frame.to_dict("records")
    np.testing.assert_allclose(model.predict(dicts), expected, rtol=1e-9)
    np.testing.assert_allclose([model.predict([x])[0] for x in dicts[:30]], expected[:30], rtol=1e-9)
    twin, other = from_bytes(to_bytes(model)), from_bytes(to_bytes(model))
    twin.advance(frame[:50], np.zeros(50))
    for x in dicts[:50]:
        other.learn_one(x, 0.0)
    assert twin.encoder.features == other.encoder.features
    assert twin.encoder.gaps == other.encoder.gaps
    assert twin.encoder.gaps["level"] == model.encoder.gaps["level"] + 7


@pytest.mark.parametrize("learned_from", ["csv", "floats.csv", "parquet", "jsonl"])
def test_whole_numbers_as_categories_are_the_same_in_all_files(tmp_path, learned_from):
    """Where there are gaps, pandas has 10007 as 10007.0, and writes it so."""
    zips = [None if i % 9 == 4 else 10007 + i % 5 for i in range(400)]
    frame = pd.DataFrame({"zip": zips, "x": np.arange(400) % 4, "y": np.arange(400) % 5 * 1.5})
    assert frame["zip"].dtype == float
    frame.to_csv(tmp_path / "zips.floats.csv", index=False)
    frame.astype({"zip": "Int64"}).to_csv(tmp_path / "zips.csv", index=False)
    frame.to_parquet(tmp_path / "zips.parquet")
    frame.to_json(tmp_path / "zips.jsonl", orient="records", lines=True, double_precision=1)
    path = tmp_path / f"zips.{learned_from}"
    stream = open_stream(path, "y", categorical=["zip"], task="regression", quiet=True)
    assert sum(len(block.y) for block in stream.blocks()) == 400
    encoder = stream.encoder
    expected = encoder.look(next(stream.records()).records)
    assert len(np.unique(expected, axis=0)) == 24  # five and a gap, each beside four numbers
    for other in ("csv", "floats.csv", "parquet", "jsonl"):
        again = open_stream(tmp_path / f"zips.{other}", plan=stream.plan, quiet=True)
        np.testing.assert_array_equal(encoder.look(next(again.records()).records), expected)
    np.testing.assert_array_equal(encoder.look(records_of(frame, encoder.columns)), expected)
    dicts = frame.to_dict("records")
    np.testing.assert_array_equal(encoder.look(records_of(dicts)), expected)


FORGED = [
    (("target",), None),
    (("target",), {}),
    (("time",), "nowhere"),
    (("time",), [1, 2]),
    (("task",), "x"),
    (("lags",), [None]),
    (("lags", 0), ["a"]),
    (("lags", 0, 0), "nowhere"),
    (("lags", 0, 1), 1e300),
    (("lags", 0, 1), 0),
    (("horizon",), {}),
    (("horizon",), -1),
    (("horizon",), 10**30),
    (("columns", 0), 7),
    (("columns", 0, "name"), 7),
    (("columns", 0, "name"), "b"),
    (("columns", 0, "kind"), "x"),
    (("columns", 0, "order"), 0),
    (("columns", 0, "order"), {}),
    (("columns", 0, "style", "decimal"), 5),
    (("columns", 0, "style", "thousands"), []),
    (("columns", 0, "na_values"), [1]),
    (("target_style", "signs"), [1]),
    (("na_values",), 5),
]


@pytest.mark.parametrize(("place", "value"), FORGED)
def test_a_plan_that_somebody_changed_is_refused(tmp_path, place, value):
    (tmp_path / "t.csv").write_text("a,b,y\n" + "1,2,3\n4,5,6\n" * 20)
    found = open_stream(tmp_path / "t.csv", "y", lag="target:1", quiet=True).plan.to_dict()
    plan = json.loads(json.dumps(found))
    assert open_stream(tmp_path / "t.csv", plan=plan, quiet=True).target == "y"
    inside = plan
    for key in place[:-1]:
        inside = inside[key]
    inside[place[-1]] = value
    with pytest.raises(ConfigurationError, match="plan is not one that"):
        open_stream(tmp_path / "t.csv", plan=plan, quiet=True)
