"""What comes late: columns with their first value in row 901 or 5,000; and going on in the middle."""

import copy
import json
import tracemalloc

import numpy as np
import pytest

import effort
from kons.errors import InputError, KonsWarning
from kons.streams import Plan, open_stream
from streams.whole import by_name, whole

ROWS = 6000
RNG = np.random.default_rng(4)
X = RNG.normal(size=ROWS)


def test_keys_that_come_late_are_columns(tmp_path):
    """Of objects, which have no header; in a file, or in a list."""
    rows = [{"x": float(X[i]), "y": i % 7 + 0.5} | ({"late": 1.5} if i >= 4999 else {}) for i in range(ROWS)]
    (tmp_path / "lines.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "list.json").write_text(json.dumps(rows))
    pairs = [({k: v for k, v in row.items() if k != "y"}, row["y"]) for row in rows]
    for source in (tmp_path / "lines.jsonl", tmp_path / "list.json", pairs):
        stream = open_stream(source, "y", quiet=True)
        found = by_name(stream)
        assert stream.gaps == {"late": 4999}
        assert found["late"][-1] == 1.5
    with pytest.warns(KonsWarning, match="row 5,?000: 'late' is left out"):
        whole(open_stream(iter(pairs), quiet=True))
    # A row alone is as it is among others, whatever it lacks.
    plan = open_stream(tmp_path / "lines.jsonl", "y", quiet=True)
    whole(plan)
    (tmp_path / "one.jsonl").write_text(json.dumps(rows[0]))
    (block,) = open_stream(tmp_path / "one.jsonl", plan=plan.plan).records()
    assert np.isnan(block.records.values("late", "number")).all()


def written(folder, late, start, form="csv"):
    """A file whose column "late" has these values from row ``start`` (from 1) on, and nothing before."""
    rows = [
        {"x": float(X[i]), "c": "uvw"[i % 3], "late": late(i) if i >= start - 1 else None, "y": i % 7 + 0.5}
        for i in range(ROWS)
    ]
    path = folder / f"late.{form}"
    if form == "csv":
        cells = [",".join("" if v is None else str(v) for v in row.values()) for row in rows]
        path.write_text("x,c,late,y\n" + "\n".join(cells))
    else:
        path.write_text("\n".join(map(json.dumps, rows)))
    return path


@pytest.mark.parametrize("form", ["csv", "jsonl"])
@pytest.mark.parametrize("start", [901, 5000])
def test_a_column_of_numbers_joins_with_its_first_value(tmp_path, start, form):
    stream = open_stream(written(tmp_path, lambda i: i * 2.5, start, form), "y", quiet=True)
    found = by_name(stream)
    assert len(found["late"]) == ROWS  # no row is lost for it
    values = np.arange(ROWS) * 2.5
    behind = start - 1 if start <= 1000 else start  # one behind the first rows joins behind its row
    assert (found["late"][behind:] == values[behind:]).all()
    assert (found["late missing"][:behind] == 1.0).all()
    assert (found["late missing"][behind:] == 0.0).all()
    assert stream.plan.columns[-1].name == "late"
    waits = any("taken when it has values: late" in note for note in stream.notes)
    assert waits == (start > 1000)


def test_a_column_of_text_joins_late(tmp_path):
    stream = open_stream(written(tmp_path, lambda i: "rg"[i % 2], 5000), "y", quiet=True)
    found = by_name(stream)
    reds = np.array([i % 2 == 0 for i in range(ROWS)])
    twice = np.arange(ROWS) >= 5003  # a level has a column when it has come twice
    assert (found["late=r"] == (reds & twice)).all()
    assert (found["late=g"] == (~reds & twice)).all()


def test_dates_and_styled_numbers_may_come_late(tmp_path):
    stream = open_stream(written(tmp_path, lambda i: f"2024-01-{1 + i % 28:02d}", 5000), "y", quiet=True)
    assert "late weekday sin" in by_name(stream)
    stream = open_stream(written(tmp_path, lambda i: f"${i}.25", 5000), "y", quiet=True)
    assert by_name(stream)["late"][-1] == ROWS - 1 + 0.25


def test_bad_cells_of_a_late_column_are_counted_like_others(tmp_path):
    path = written(tmp_path, lambda i: "oops" if i in (5100, 5200, 5300, 5400) else i * 2.5, 5000)
    stream = open_stream(path, "y", quiet=True)
    found = by_name(stream)
    assert stream.bad_cells == {"late": (4, tuple((i + 2, "oops") for i in (5100, 5200, 5300)))}
    assert stream.gaps["late"] == 4999 + 4
    assert found["late missing"][[5100, 5200, 5300, 5400]].tolist() == [1.0] * 4
    skipping = open_stream(path, "y", on_bad_row="skip", quiet=True)
    assert len(whole(skipping)[1]) == ROWS - 4
    with pytest.raises(InputError, match="line 5102, column 'late': 'oops' is not a number"):
        whole(open_stream(path, "y", on_bad_row="error", quiet=True))


@pytest.mark.parametrize("missing", ["skip", "error"])
def test_a_column_that_waits_takes_no_rows_with_it(tmp_path, missing):
    stream = open_stream(written(tmp_path, float, 5000), "y", missing=missing, quiet=True)
    assert len(whole(stream)[1]) == ROWS
    assert stream.skipped == {}


def test_a_plan_with_a_late_column_reads_another_file_alike(tmp_path):
    stream = open_stream(written(tmp_path, lambda i: i * 2.5, 5000), "y", quiet=True)
    assert [column.name for column in stream.plan.late] == ["late"]
    whole(stream)
    plan = Plan.from_dict(json.loads(json.dumps(stream.plan.to_dict())))
    assert plan.late == ()
    assert plan.columns[-1].kind == "number"
    other = tmp_path / "other.csv"
    other.write_text("x,c,late,y\n1,u,7,1\n2,u,8,2\n3,u,oops,3\n")
    again = open_stream(other, plan=plan)
    assert by_name(again)["late"].tolist() == [7.0, 8.0, 7.5]
    assert again.bad_cells == {"late": (1, ((4, "oops"),))}


@effort.every_value(task=["regression", "classification"], horizon=[0, 3])
def test_on_from_the_middle_with_an_encoder_bit_for_bit(tmp_path, task, horizon):
    path = written(tmp_path, lambda i: f"n{i % 90}", 1500)
    options = {"task": task, "horizon": horizon, "quiet": True, "block_size": 400}
    stream = open_stream(path, "y", **options)
    blocks, kept = [], {}
    for block in stream.blocks(late=2):
        blocks.append(block)
        kept[block.first + len(block.y)] = copy.deepcopy(stream.encoder)
    assert any("mean target" in name for name in stream.features)
    for start in list(kept)[1:-1:3]:
        encoder = kept[start]
        rest = list(open_stream(path, "y", **options).blocks(start, late=2, encoder=encoder))
        expected = [block for block in blocks if block.first >= start]
        assert np.array_equal(rest[0].X, expected[0].X)
        assert rest[-1].X.shape[1] == expected[-1].X.shape[1]
        for name in ("y", "lines"):
            one, other = (np.concatenate([getattr(b, name) for b in part]) for part in (rest, expected))
            assert np.array_equal(one, other)
        assert [b.X.tobytes() for b in rest] == [b.X.tobytes() for b in expected]


@pytest.mark.parametrize(("horizon", "late"), [(0, 0), (4, 0), (3, 2)])
def test_target_statistics_know_no_target_before_its_time(horizon, late):
    rng = np.random.default_rng(0)
    words = [f"n{k}" for k in rng.integers(0, 90, size=600)]
    y = rng.normal(size=600)

    def rows(targets):
        pairs = [({"c": word}, float(target)) for word, target in zip(words, targets, strict=True)]
        stream = open_stream(pairs, horizon=horizon, quiet=True)
        return whole(stream, late=late)[0], stream.features

    reference, features = rows(y)
    assert "c mean target 1" in features
    for changed in (450, 500, 550):
        other = y.copy()
        other[changed] += 100.0
        differ = np.flatnonzero((rows(other)[0] != reference).any(axis=1))
        # The target of source row s is row s - horizon's, known when row s + late has been predicted.
        assert len(differ)
        assert differ.min() > changed + late


def test_row_numbers_are_left_out_and_identifiers_told(tmp_path):
    path = tmp_path / "t.csv"
    ids = RNG.permutation(100_000)[:200]
    lines = [f"{i + 1},{ids[i]},{X[i]},{i % 9}" for i in range(200)]
    path.write_text("row,id,x,y\n" + "\n".join(lines))
    stream = open_stream(path, "y", quiet=True)
    assert stream.features == ("id", "x")
    told = " | ".join(stream.notes)
    assert "the number of the row (numeric keeps it): row" in told
    assert "perhaps identifiers (categorical, or drop): id" in told
    assert open_stream(path, "y", numeric=["row"], quiet=True).features == ("row", "id", "x")
    assert open_stream(path, "y", columns=["row"], quiet=True).features == ("row",)
    # Where there is nothing else, it stays; and the columns of an array are all meant.
    path.write_text("row,y\n" + "\n".join(f"{i},{i % 9}" for i in range(50)))
    assert open_stream(path, "y", quiet=True).features == ("row",)
    array = np.column_stack([np.arange(50.0), X[:50]])
    assert open_stream((array, X[:50]), quiet=True).features == ("x0", "x1")


def test_columns_are_text_or_numbers_if_it_is_said(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("code,mixed,y\n" + "\n".join(f"{i % 3},{'ab7'[i % 3]},{i * 0.5}" for i in range(60)))
    stream = open_stream(path, "y", categorical=["code"], quiet=True)
    assert {"code=0", "code=1", "code=2"} <= set(by_name(stream))
    stream = open_stream(path, "y", drop=["mixed"], quiet=True)
    assert stream.features == ("code",)


def test_memory_is_flat_over_levels():
    """A million identities would be too slow here: beyond the levels remembered, more cost nothing."""

    def peak(rows):
        pairs = (({"c": f"name {i}", "x": 1.0 * (i % 5)}, float(i % 7)) for i in range(rows))
        stream = open_stream(pairs, columns=["c", "x"], quiet=True)
        tracemalloc.start()
        count = sum(len(block.y) for block in stream)
        now = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert count == rows
        return now

    peak(1000)
    assert peak(effort.amount(20_000, 30_000)) < 1.2 * peak(12_000) + 50_000
