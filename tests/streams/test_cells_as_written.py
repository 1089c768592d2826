"""Numbers and dates as people write them: one way a column, decided by all of its cells."""

import csv
import datetime
import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kons.streams import Plan, open_stream
from kons.tables.cells import PLAIN, NumberStyle, converter, number_style
from kons.tables.moments import NOT_A_TIME, date_order, epoch_stamps, epoch_unit, stamp
from streams.whole import whole


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["1,234", "7"], [1234, 7]),
        (["1,234"], [1234]),
        (["1,234", "1,5"], [1.234, 1.5]),
        (["0,123"], [0.123]),
        (["1,234.5", "2,000"], [1234.5, 2000]),
        (["1.234,5", "2.000"], [1234.5, 2000]),
        (["1.234", "1.234.567"], [1234, 1234567]),
        (["1.234", "2"], [1.234, 2]),
        (["1 234,5", "2\u202f000,25", "3\u00a0000"], [1234.5, 2000.25, 3000]),
        (["1'234.5", "2’000"], [1234.5, 2000]),
        (["$12.50", "$1,000", "-$3", "US$ 4"], [12.5, 1000, -3, 4]),
        (["12,50 €", "1.000 €", "EUR 2"], [12.5, 1000, 2]),
        (["12.3 %", "4%", "−5 %"], [12.3, 4, -5]),
        (["(5.00)", "($1,234)", "3"], [-5, -1234, 3]),
        (["12,34,567", "1,000"], [1234567, 1000]),
        (["1e3", "2.5E-2", "-.5"], [1000, 0.025, -0.5]),
        (["1,5e3", ",5"], [1500, 0.5]),
    ],
)
def test_all_cells_of_a_column_decide_how_its_numbers_are_written(cells, values):
    style = number_style(cells)
    convert = converter("number", style=style)
    assert [convert(cell) for cell in cells] == values
    assert number_style([*cells, None, "", "n/a"]) == style


@pytest.mark.parametrize(
    "cells",
    [["red"], ["192.168.1.1"], ["11.12.2024"], ["2024-01-01"], ["12:30"], ["a1", "b2", "3"], [], [""],
     ["1_000"], ["1,2,3"], ["12 34"], ["--5"], ["$"], ["%"], ["()"], ["9" * 100 + ",5"]],
)  # fmt: skip
def test_what_is_no_number_in_any_style(cells):
    assert number_style(cells) is None


def test_other_columns_decide_where_a_column_does_not(tmp_path):
    assert number_style(["1,234"], decimal=",") == NumberStyle(",")
    assert number_style(["1,234", "5"], decimal=".") == NumberStyle(".", ",")
    assert number_style(["1.5", "2"], decimal=",") == PLAIN
    assert number_style(["1", "2"], decimal=",") == NumberStyle(",")
    path = tmp_path / "t.csv"
    path.write_text("a;b;y\n1,234;0,5;1\n2,345;0,25;2\n3,456;1,5;3\n")
    assert whole(open_stream(path, "y", quiet=True))[0].tolist() == [
        [1.234, 0.5],
        [2.345, 0.25],
        [3.456, 1.5],
    ]


STYLES = st.builds(
    NumberStyle, st.sampled_from(".,"), st.sampled_from(["", ",", ".", " ", "'"]), st.booleans()
).filter(lambda style: style.decimal != style.thousands)


@given(STYLES, st.lists(st.tuples(st.integers(-(10**9), 10**9), st.integers(0, 99)), min_size=1))
def test_what_is_written_in_a_style_is_read_in_it(style, numbers):
    def written(whole_part, hundredths):
        text = f"{abs(whole_part):,}".replace(",", style.thousands) + f"{style.decimal}{hundredths:02d}"
        sign = "-" if whole_part < 0 else ""
        return f"{sign}€ {text}" if style.signs else sign + text

    values = [float(f"{'-' if n < 0 else ''}{abs(n)}.{h:02d}") for n, h in numbers]
    cells = [written(*number) for number in numbers]
    convert = converter("number", style=style)
    assert [convert(cell) for cell in cells] == values
    found = converter("number", style=number_style(cells))
    assert [found(cell) for cell in cells] == values


def test_numbers_in_a_file_are_read_in_the_style_of_their_column(tmp_path, monkeypatch):
    rows = [[f"{i * 1000:,}", f"${i}.50", f"{i},5", f"{i} %", str(i)] for i in range(1, 2000)]
    out = io.StringIO()
    csv.writer(out).writerows([["a", "b", "c", "d", "y"], *rows])
    path = tmp_path / "t.csv"
    path.write_text(out.getvalue())

    def never(*_arguments, **_options):
        raise AssertionError("one by one")

    monkeypatch.setattr("kons.streams.text.from_cells", never)
    stream = open_stream(path, "y", quiet=True)
    X = whole(stream)[0]
    assert X.tolist() == [[i * 1000, i + 0.5, i + 0.5, i] for i in range(1, 2000)]
    notes = " | ".join(stream.notes)
    assert "thousands are written with a comma: a" in notes
    assert "decimals are written with a comma: c" in notes
    assert "left away: b, d" in notes
    tree = json.loads(json.dumps(stream.plan.to_dict()))
    assert Plan.from_dict(tree) == stream.plan
    assert np.array_equal(whole(open_stream(path, plan=tree))[0], X)


# ---- dates


@pytest.mark.parametrize(
    ("text", "order", "moment"),
    [
        ("2016-03-01 2:30 PM", "year first", "2016-03-01T14:30"),
        ("2016-03-01 12:00 am", "year first", "2016-03-01T00:00"),
        ("2016-03-01 12:15:30 p.m.", "year first", "2016-03-01T12:15:30"),
        ("2016-03-01T00", "year first", "2016-03-01T00:00"),
        ("2016-03-01 14", "year first", "2016-03-01T14:00"),
        ("2016-03-01T14+01:00", "year first", "2016-03-01T13:00"),
        ("2016-03", "year first", "2016-03-01"),
        ("31/12/68", "day first", "2068-12-31"),
        ("31.12.69", "day first", "1969-12-31"),
        ("12/31/99 11 PM", "month first", "1999-12-31T23:00"),
        ("3 Mar 2016", "month name", "2016-03-03"),
        ("03-Mar-16", "month name", "2016-03-03"),
        ("Mar-03-16", "month name", "2016-03-03"),
        ("March 3, 2016", "month name", "2016-03-03"),
        ("Sept. 3, 2016 14:00", "month name", "2016-09-03T14:00"),
        ("3rd May 2016", "month name", "2016-05-03"),
        ("Thu, 03 Mar 2016 15:04:05 +0100", "month name", "2016-03-03T14:04:05"),
        ("Thursday 2016-03-03", "year first", "2016-03-03"),
        ("Mar 2016", "month name", "2016-03-01"),
        ("20160303", "yyyymmdd", "2016-03-03"),
        ("20160303T1430", "yyyymmdd", "2016-03-03T14:30"),
        ("20160303T14", "yyyymmdd", "2016-03-03T14:00"),
        ("3:05 pm", "time only", "1970-01-01T15:05"),
    ],
)
def test_dates_of_many_kinds(text, order, moment):
    assert date_order([text]) == order
    assert np.datetime64(stamp(text, order), "us") == np.datetime64(moment)


@pytest.mark.parametrize(
    "text",
    ["2016-13", "4512-07", "2016-03-01 7", "2016-03-01T24", "2016030114",
     "Mar 32 2016", "Foo 3 2016", "2016-03-01 13:00 PM", "0:30 am", "20161301", "99 99",
     "may", "12", "March", "Monday", "2016-02-30", "1" * 1000],
)  # fmt: skip
def test_what_is_no_date(text):
    assert date_order([text]) is None


def test_hours_alone_in_a_file(tmp_path):
    hours = np.datetime64("2020-01-01T00") + np.arange(300)
    rows = "".join(f"{hour},{i % 24}\n" for i, hour in enumerate(hours))
    (tmp_path / "hours.csv").write_text("when,y\n" + rows)
    stream = open_stream(tmp_path / "hours.csv", "y", quiet=True)
    assert "dates (year first): when" in " | ".join(stream.notes)
    days = whole(stream)[0][:, 0]
    assert stream.encoder.features[:2] == ["when days", "when hour sin"]
    assert np.allclose(days, np.arange(300) / 24.0, rtol=0.0, atol=1e-12)


@given(st.datetimes(datetime.datetime(1969, 1, 1), datetime.datetime(2068, 12, 31)))
def test_what_is_written_is_read(moment):
    moment = moment.replace(microsecond=0)
    micros = int(np.datetime64(moment, "us").view(np.int64))
    for form, order in [
        ("%d %b %Y %I:%M:%S %p", "month name"),
        ("%A, %B %d, %Y %H:%M:%S", "month name"),
        ("%m/%d/%y %I:%M:%S %p", "month first"),
        ("%d.%m.%y %H:%M:%S", "day first"),
        ("%Y%m%d%H%M%S", "yyyymmdd"),
    ]:
        assert stamp(moment.strftime(form), order) == micros


def test_numbers_are_moments_where_the_name_says_so():
    days = np.arange("2015-01-01", "2024-01-01", dtype="datetime64[D]")
    seconds = days.astype("datetime64[s]").astype(np.int64).astype(np.float64)
    for unit, size in [("s", 1), ("ms", 1e3), ("us", 1e6), ("ns", 1e9)]:
        for name in ("time", "created_at", "pickupDate", "TS", "event timestamp"):
            assert epoch_unit(name, seconds * size) == unit
        assert (
            epoch_stamps(seconds * size, unit).tolist()
            == days.astype("datetime64[us]").view(np.int64).tolist()
        )
        assert epoch_unit("population", seconds * size) is None
        far = np.array([-1.0, 1.0]) * 86400 * 365.25 * size  # a year, before and after 1970
        assert (epoch_stamps(7_900 * far, unit) != NOT_A_TIME).all()
        assert (epoch_stamps(8_000 * far, unit) == NOT_A_TIME).all()
    first, last = np.array(["1990", "2061"], dtype="datetime64[s]").astype(np.float64)
    assert epoch_unit("time", [first, last - 1.0]) == "s"
    assert epoch_unit("time", [first - 1.0, last - 1.0]) is epoch_unit("time", [first, last]) is None
    numbers = [float(str(day).replace("-", "")) for day in days]
    assert epoch_unit("date", numbers) == "yyyymmdd"
    assert np.array_equal(epoch_stamps(np.array(numbers), "yyyymmdd").view("datetime64[us]"), days)
    assert epoch_unit("date", [*numbers, 20230229.0]) is None
    assert epoch_unit("date", [*numbers, 0.5]) is None
    assert epoch_unit("time", [1.0, 2.0, 3.0]) is None
    assert epoch_unit("time", []) is None
    assert (
        epoch_stamps(np.array([np.nan, np.inf, 20230229, 20231301, 1e300]), "yyyymmdd").tolist()
        == [NOT_A_TIME] * 5
    )
    assert epoch_stamps(np.array([np.nan, np.inf, 1e300]), "s").tolist() == [NOT_A_TIME] * 3


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_epochs_in_files_are_dates(tmp_path, form):
    rows = [{"ts": 1_600_000_000_000 + 3_600_000 * i, "day": 20200101 + i % 28, "y": i} for i in range(300)]
    rows[7]["ts"] = None
    path = tmp_path / f"t.{form}"
    if form == "csv":
        cells = [",".join("" if v is None else str(v) for v in row.values()) for row in rows]
        path.write_text("ts,day,y\n" + "\n".join(cells))
    else:
        path.write_text("\n".join(map(json.dumps, rows)))
    stream = open_stream(path, "y", missing="skip", quiet=True)
    assert [(c.kind, c.order) for c in stream.plan.columns] == [("date", "ms"), ("date", "yyyymmdd")]
    assert len(whole(stream)[1]) == 299
    assert stream.features[:3] == ("ts days", "ts hour sin", "ts hour cos")
    assert "day days" in stream.features
    assert not [name for name in stream.features if name.startswith("day hour")]


@pytest.mark.parametrize("source", ["t.jsonl", "t.json", "t.parquet", "frame", "dicts"])
def test_texts_of_typed_sources_are_the_numbers_that_they_are_in_csv(tmp_path, monkeypatch, source):
    """Digits alone are names there: what has numbers, too, has them for a reason."""
    monkeypatch.chdir(tmp_path)
    rows = [
        {
            "price": f"${1000 * i + 0.5:,.2f}",
            "count": f"{777 * i % 2048:,}",
            "share": "n/a" if i == 7 else f"{i % 17 / 10} %",
            "mixed": f"{i * i + 1000:,}" if i % 2 else i * i,
            "sum": f"{i / 4:.2f}",
            "zip": f"{10007 + i % 3}",
            "code": [f"{i % 5}", "3x"][i % 3 == 0],
            "step": f"{i % 2 * 50} %",
            "y": f"{i % 13 / 8:.3f}",
        }
        for i in range(60)
    ]
    frame = pd.DataFrame(rows).astype({"step": "category"})
    frame.to_csv("t.csv", index=False)
    frame.astype({"mixed": str}).to_parquet("t.parquet")
    Path("t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    Path("t.json").write_text(json.dumps(rows))
    names = [name for name in rows[0] if name != "y"]
    dicts = [({name: row[name] for name in names}, row["y"]) for row in rows]
    opened = {"frame": frame, "dicts": dicts}.get(source, source)
    declared = [] if source in ("frame", "t.parquet") else ["step"]
    found = open_stream(opened, "y", categorical=declared, quiet=True)
    csv = open_stream("t.csv", "y", categorical=["zip", "code", "step"], quiet=True)
    assert found.plan == csv.plan
    assert [column.kind for column in csv.plan.columns] == ["number"] * 5 + ["text"] * 3
    assert found.notes == csv.notes
    np.testing.assert_array_equal(whole(found)[0], whole(csv)[0])
    assert found.bad_cells == csv.bad_cells == {}


def test_labels_that_are_digits_in_text_stay_labels():
    frame = pd.DataFrame({"x": np.arange(30) % 7, "digit": [str(i % 10) for i in range(30)]})
    stream = open_stream(frame, "digit", quiet=True)
    assert (stream.task, stream.plan.target_kind) == ("classification", "text")
    mixed = [({"x": i % 7}, i % 5 if i % 3 else "3x") for i in range(30)]
    assert set(whole(open_stream(mixed, task="classification", quiet=True))[1]) == {*"01234", "3x"}
