"""``kons certify`` in this process: what it tells, what it refuses, and that nothing is half written."""

import codecs
import gzip
import json
import os

import numpy as np
import pytest
from commands import told_in_one_line

import kons
from kons.cli import certify as command
from kons.cli import main
from kons.errors import InputError, TargetError

ROWS = 120


@pytest.fixture(scope="module", autouse=True)
def loops_compiled():
    """So that no test sees the notice about it."""
    for loss in (kons.Squared(), kons.Logistic()):
        for learner in (kons.EmbeddedKONS, kons.KONS, kons.SketchedKONS):
            kons.certify(learner(kons.Gaussian(1.0), loss), [[0.0], [1.0]] * 8, [-1.0, 1.0] * 8)


def houses(rows=ROWS):
    rng = np.random.default_rng(0)
    area, age = rng.gamma(4.0, 30.0, rows), rng.integers(0, 90, rows)
    pool = (np.arange(rows) % 10 == 0) * 1
    price = 100.0 + 2.0 * area - age + 40.0 * pool + rng.normal(0.0, 20.0, rows)
    return np.column_stack([area, age, pool, np.ones(rows), price, 3 + 2 * (price > np.median(price))])


def text(table=None, delimiter=","):
    lines = [
        ["area", "age", "pool", "planet", "price", "dear"],
        *(houses() if table is None else table).tolist(),
    ]
    return "\n".join(delimiter.join(map(str, line)) for line in lines) + "\n"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "houses.csv"
    path.write_text(text())
    return path


REGRESSION = ["houses.csv", "--target", "price", "--drop", "dear"]
LABELS = ["houses.csv", "--target", "dear", "--drop", "price"]


def certified(capsys, *arguments):
    assert main(["certify", *arguments, "--json", "--quiet"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return json.loads(out)


def refused(capsys, *arguments, code):
    return told_in_one_line(capsys, ["certify", *arguments], code)


# ---- what it says


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.usefixtures("file")
def test_the_report_has_every_figure_with_its_meaning_and_all_that_was_done(capsys, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    assert main(["certify", *REGRESSION]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert max(map(len, out.splitlines())) <= width
    flat = " ".join(out.split())
    for words in (
        "120 rows",
        "all read first",
        "3 columns, to median 0 and interquartile range 1",
        "most values are the same: pool",
        "planet: the same value in every row",
        "so that all lie in [-1, 1]",
        "median distance of 120 rows (--bandwidth)",
        "of at most 200 atoms, gradient, carry, regularization 1",
        "your loss",
        "what learning online cost you",
        "proven for this run",
        "your data behaves as if it had",
        "in units of price",
        "cannot be more",
    ):
        assert words in flat, words
    assert "Picture" not in flat
    assert os.listdir() == ["houses.csv"]  # nothing is left that nobody asked for


@pytest.mark.usefixtures("file")
def test_two_values_are_labels_and_told(capsys):
    assert main(["certify", *LABELS, "--quiet"]) == 0
    flat = " ".join(capsys.readouterr().out.split())
    for words in ("3 as -1, 5 as +1: just two values", "logistic", "wrong labels", "the right label"):
        assert words in flat
    assert main(["certify", *LABELS, "--loss", "squared-hinge"]) == 0
    out = capsys.readouterr().out
    assert "just two values" not in out
    assert "confidence" not in out
    assert "wrong labels" in out


@pytest.mark.usefixtures("file")
def test_json_is_what_the_library_certifies_on_rows_scaled_by_hand(capsys):
    found = certified(capsys, *REGRESSION, "--bandwidth", "1.5", "--max-atoms", "20")
    table = houses()
    X, price = table[:, :3], table[:, 4]
    spread = np.subtract(*np.quantile(X, (0.75, 0.25), axis=0))
    spread[2] = 1.0  # a pool is there or not
    X = (X - np.median(X, axis=0)) / spread
    reach = np.ptp(price) / 2
    y = (price - price.min()) / reach - 1.0
    learner = kons.EmbeddedKONS(kons.Gaussian(1.5), kons.Squared(), max_atoms=20)
    expected = kons.certify(learner, X, np.clip(y, -1, 1))
    for name, value in expected.to_dict().items():
        assert found[name] == (value if value is None else pytest.approx(value, rel=1e-6, abs=1e-9)), name
    settings = found["settings"]
    assert settings["features"] == ["area", "age", "pool"]
    assert settings["constant_features_left_out"] == ["planet"]
    assert (settings["task"], settings["loss"], settings["labels"]) == ("regression", "squared", None)
    assert (settings["bandwidth"], settings["bandwidth_from_rows"], settings["max_atoms"]) == (1.5, 0, 20)
    assert settings["target_reach"] == pytest.approx(reach)
    error = reach * np.sqrt(expected.cumulative_loss / ROWS)
    assert found["in_target_units"]["your error"] == pytest.approx(error)
    assert found["hindsight_exact"] is True
    assert found["idle_loss"] == pytest.approx(np.sum(y**2))


@pytest.mark.parametrize(
    ("learner", "theorem"), [("embedded", None), ("kons", "theorem_1"), ("sketched", "theorem_3")]
)
@pytest.mark.usefixtures("file")
def test_each_learner(capsys, learner, theorem):
    for arguments in (REGRESSION, LABELS):
        found = certified(capsys, *arguments, "--learner", learner, "--rows", "60")
        assert found["holds"] is True
        assert found["rows"] == 60
        assert found["cumulative_loss"] <= found["loss_bound"]
        assert {name for name in ("theorem_1", "theorem_3") if found[name] is not None} <= {theorem}
        assert main(["certify", *arguments, "--learner", learner, "--rows", "60"]) == 0
        assert "learner" in capsys.readouterr().out


@pytest.mark.usefixtures("file")
def test_the_seed_is_the_sketch_s(capsys):
    sketched = [*REGRESSION, "--learner", "sketched", "--seed"]
    assert certified(capsys, *sketched, "3") == certified(capsys, *sketched, "3")
    assert (
        certified(capsys, *sketched, "3")["cumulative_loss"]
        != certified(capsys, *sketched, "4")["cumulative_loss"]
    )


@pytest.mark.parametrize(
    "content",
    [
        text(delimiter=";").encode(),
        text(delimiter="\t").encode(),
        codecs.BOM_UTF8 + text().encode(),
        gzip.compress(text().encode()),
    ],
    ids=["semicolon", "tab", "bom", "gzip"],
)
def test_other_dialects_give_the_same_certificate(capsys, file, content):
    expected = certified(capsys, *REGRESSION)
    file.write_bytes(content)
    assert certified(capsys, *REGRESSION) == expected


def test_units_do_not_matter(capsys, file):
    before = certified(capsys, *REGRESSION)
    file.write_text(text(houses() * [1e3, 1.0, 7.0, 1.0, 1e-6, 1.0] + [5.0, -40.0, 0.0, 0.0, 9.0, 0.0]))
    after = certified(capsys, *REGRESSION)
    assert after["loss_bound"] == pytest.approx(before["loss_bound"], rel=1e-5)
    ratio = after["in_target_units"]["your error"] / before["in_target_units"]["your error"]
    assert ratio == pytest.approx(1e-6, rel=1e-5)


@pytest.mark.usefixtures("file")
def test_more_rows_than_can_be_solved_exactly_are_told(capsys, monkeypatch):
    monkeypatch.setattr(command, "EXACT_UP_TO", 50)
    monkeypatch.setattr(command, "LONG", 100)
    assert main(["certify", *REGRESSION]) == 0
    out, err = capsys.readouterr()
    assert "in the span of a dictionary" in " ".join(out.split())
    assert "120 rows: the best function in hindsight may take" in err
    assert certified(capsys, *REGRESSION)["hindsight_exact"] is False


@pytest.mark.usefixtures("file")
def test_a_bound_that_promises_little_says_so(capsys):
    assert main(["certify", *REGRESSION, "--bandwidth", "0.001"]) == 0
    assert "promises little" in capsys.readouterr().out


def test_strange_numbers_and_names(capsys, monkeypatch, file):
    rng = np.random.default_rng(1)
    rows = [[a, 1e200 * b, 1e300 * c] for a, b, c in rng.normal(size=(30, 3)).tolist()]
    file.write_text(
        "größe,[red]b,y\n" + "\n".join(",".join(map(repr, row)) for row in rows), encoding="utf-8"
    )
    assert main(["certify", "houses.csv", "--target", "größe", "--drop", "y"]) == 0
    assert "predicting 'größe'" in capsys.readouterr().out
    found = certified(capsys, "houses.csv", "--target", "y")
    assert found["holds"] is True
    monkeypatch.setenv("COLUMNS", "100")
    assert main(["certify", "houses.csv", "--target", "[red]b"]) == 0
    assert "[red]b" in capsys.readouterr().out


@pytest.mark.usefixtures("file")
def test_the_bar_is_on_standard_error_only(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert main(["certify", *REGRESSION, "--json"]) == 0
    out, err = capsys.readouterr()
    json.loads(out)
    assert "the best in hindsight" in err


def test_columns_with_commas_can_be_dropped(capsys, file):
    file.write_text('"x, in m";b;c;y\n' + "".join(f"{i};{i * i};{-i};{i % 7}\n" for i in range(40)))
    found = certified(capsys, "houses.csv", "--target", "y", "--drop", '"x, in m",c')
    assert found["settings"]["features"] == ["b"]
    found = certified(capsys, "houses.csv", "--target", "y", "--drop", "b", "--drop", "c")
    assert found["settings"]["features"] == ["x, in m"]


# ---- the picture


@pytest.mark.parametrize(("name", "start"), [("c.svg", b"<?xml"), ("c.PNG", b"\x89PNG"), ("c.pdf", b"%PDF")])
@pytest.mark.usefixtures("file")
def test_the_picture_is_written_whole_and_not_over_another(capsys, tmp_path, name, start):
    pytest.importorskip("matplotlib")
    path = tmp_path / name
    assert main(["certify", *REGRESSION, "--picture", name]) == 0
    assert f"Picture: {name}" in capsys.readouterr().out
    first = path.read_bytes()
    assert first.startswith(start)
    path.write_bytes(b"mine")
    assert "--force" in refused(capsys, *REGRESSION, "--picture", name, code=2)
    assert path.read_bytes() == b"mine"
    assert certified(capsys, *REGRESSION, "--picture", name, "--force")["settings"]["picture"] == name
    assert path.read_bytes() == first  # and the same picture again
    assert sorted(os.listdir()) == sorted([name, "houses.csv"])


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (OSError(28, "No space left on device"), 1, "c.svg cannot be written: No space left on device."),
        (KeyboardInterrupt(), 130, "stopped."),
        (MemoryError(), 1, "--rows"),
    ],
)
@pytest.mark.usefixtures("file")
def test_a_picture_that_fails_leaves_the_old_one_and_no_rest(
    capsys, monkeypatch, tmp_path, error, code, words
):
    figure = pytest.importorskip("matplotlib.figure")

    def fail(self, file, **_):
        file.write(b"half a pict")
        raise error

    monkeypatch.setattr(figure.Figure, "savefig", fail)
    (tmp_path / "c.svg").write_bytes(b"mine")
    assert words in refused(capsys, *REGRESSION, "--picture", "c.svg", "--force", code=code)
    assert (tmp_path / "c.svg").read_bytes() == b"mine"
    assert sorted(os.listdir()) == ["c.svg", "houses.csv"]


@pytest.mark.usefixtures("file")
def test_a_file_that_appears_meanwhile_is_not_replaced(capsys, monkeypatch, tmp_path):
    pytest.importorskip("matplotlib")

    def meanwhile(*arguments, **options):
        (tmp_path / "c.svg").write_bytes(b"mine")
        return kons.certify(*arguments, **options)

    monkeypatch.setattr(command, "certify", meanwhile)
    assert main(["certify", *REGRESSION, "--picture", "c.svg"]) == 2
    assert "already there" in capsys.readouterr().err
    assert (tmp_path / "c.svg").read_bytes() == b"mine"
    assert sorted(os.listdir()) == ["c.svg", "houses.csv"]


@pytest.mark.usefixtures("file")
def test_without_matplotlib_the_extra_is_named_before_anything_runs(capsys, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    monkeypatch.setattr(command, "certify", None)
    assert "pip install 'kons[plot]'" in refused(capsys, *REGRESSION, "--picture", "c.svg", code=1)


# ---- what it refuses


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["houses.csv"],
            "--target is missing: which column of houses.csv is to be predicted? There are area, age",
        ),
        ([], "FILE"),
        (["houses.csv", "--target", "prize"], "has no column 'prize': did you mean 'price'?"),
        (["houses.csv", "--target", "zzz"], "its columns are area, age, pool, planet, price, dear."),
        ([*REGRESSION, "--drop", "aera"], "did you mean 'area'?"),
        ([*REGRESSION, "--drop", "price"], "cannot be dropped"),
        ([*REGRESSION, "--loss", "hinge"], "--loss"),
        ([*REGRESSION, "--loss", "logistic"], "has 120 different values: use --loss squared"),
        ([*REGRESSION, "--bandwidth", "0"], "--bandwidth"),
        ([*REGRESSION, "--bandwidth", "nan"], "bandwidth"),
        ([*REGRESSION, "--bandwidth", "inf"], "bandwidth is inf"),
        ([*REGRESSION, "--regularization", "-1"], "--regularization"),
        ([*REGRESSION, "--max-atoms", "0"], "--max-atoms"),
        ([*REGRESSION, "--max-atoms", "2.5"], 'expected a whole number, not "2.5"'),
        ([*REGRESSION, "--rows", "10.5"], 'expected a whole number, not "10.5"'),
        ([*REGRESSION, "--seed", "-1"], "--seed"),
        ([*REGRESSION, "--learner", "kons", "--max-atoms", "5"], "--max-atoms is for --learner embedded"),
        ([*REGRESSION, "--learner", "kon"], "--learner"),
        ([*REGRESSION, "--picture", "c.txt"], "must end in .svg, .png, .pdf"),
        ([*REGRESSION, "--picture", "nowhere/c.svg"], "there is no folder nowhere"),
        ([*REGRESSION, "--pictures", "c.svg"], "--pictures"),
    ],
)
@pytest.mark.usefixtures("file")
def test_wrong_usage_is_one_line_and_exit_code_2(capsys, arguments, words):
    assert words in refused(capsys, *arguments, code=2)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a,y\n1,2\nred,3\n", "houses.csv, line 3, column 'a': 'red' is not a number"),
        ("a,y\n1,red\n2,blue\n3,green\n", "holds 3 labels (blue, green, red)"),
        ("a,y\n1,2\n3\n", "line 3: 1 field(s)"),
        ("a,y\n", "no rows"),
        ("", "is empty"),
        ("y\n1\n2\n", "no column left"),
        ("a,y\n1,2\n3,2\n", "column 'y' is 2 in all of the 2 row(s): nothing to learn"),
        ("a,y\n1,2\n1,3\n1,4\n", "no column but 'y' varies"),
        ("a,y\n1,0\n2,5e-324\n1,0\n", "hardly varies"),
        ("a,y\n-1e308,0\n1e308,1\n-1e308,2\n1e308,3\n", "column 'a' goes from -1e+308 to 1e+308"),
        ("a,y\n0,0\n1e-300,1\n2e-300,2\n3e-300,3\n1e9,4\n", "beyond what can be scaled"),
        ('a,y\n1,2\n"3,4\n', "never closed"),
    ],
)
def test_bad_data_is_one_line_and_exit_code_1(capsys, file, content, words):
    file.write_text(content)
    assert words in refused(capsys, "houses.csv", "--target", "y", "--picture", "c.svg", code=1)


@pytest.mark.parametrize("labels", [False, True])
def test_text_and_gaps_are_features(capsys, file, labels):
    rows = [
        f"{i % 13},{'' if i % 5 == 3 or i == 60 else i % 7},{'uvw'[i % 3]},"
        f"{['no', 'yes'][i % 2] if labels else i % 11}"
        for i in range(120)
    ]
    file.write_text("a,b,c,y\n" + "\n".join(rows))
    for asked in ([], ["--rows", "61"]):
        chosen = certified(capsys, "houses.csv", "--target", "y", *asked)["settings"]
        assert set(chosen["features"]) >= {"a", "b", "b missing", "c=u", "c=v", "c=w"}


def test_no_such_file(capsys, tmp_path):
    assert "No such file" in refused(capsys, "nix.csv", code=1)
    assert "cannot be read" in refused(capsys, str(tmp_path), "--target", "y", code=1)
    (tmp_path / "c.svg").mkdir()
    assert "is a folder" in refused(
        capsys, "nix.csv", "--target", "y", "--picture", "c.svg", "--force", code=2
    )


@pytest.mark.usefixtures("file")
def test_exact_kons_on_too_many_rows_says_what_else(capsys, monkeypatch):
    monkeypatch.setattr(command, "MOST_FOR_EXACT", 100)
    assert "use --rows 100, or --learner embedded" in refused(
        capsys, *REGRESSION, "--learner", "kons", code=2
    )
    assert certified(capsys, *REGRESSION, "--learner", "kons", "--rows", "100")["rows"] == 100


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (TargetError("a target is beyond the bound."), 1, "kons: a target is beyond the bound."),
        (InputError("bad"), 1, "kons: bad"),
        (KeyboardInterrupt(), 130, "kons: stopped."),
        (MemoryError(), 1, "fewer rows (--rows)"),
    ],
)
@pytest.mark.usefixtures("file")
def test_a_failed_run_is_one_line_and_no_picture(capsys, monkeypatch, error, code, words):
    def fail(*_arguments, **_options):
        raise error

    monkeypatch.setattr(command, "certify", fail)
    assert words in refused(capsys, *REGRESSION, "--picture", "c.svg", code=code)


@pytest.mark.usefixtures("file")
def test_a_bound_that_does_not_hold_is_printed_and_fails(capsys, monkeypatch):
    import dataclasses

    def broken(*arguments, **options):
        return dataclasses.replace(kons.certify(*arguments, **options), holds=False)

    monkeypatch.setattr(command, "certify", broken)
    assert main(["certify", *REGRESSION]) == 1
    out, err = capsys.readouterr()
    assert "EXCEEDED" in out
    assert "does not hold" in err


@pytest.mark.parametrize("words", [["certify", "--help"], ["--help"]])
def test_help(capsys, words):
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "certify" in out
    assert words == ["--help"] or all(
        option in out for option in ("--target", "--drop", "--picture", "--bandwidth", "houses.csv")
    )


def test_text_labels_and_gaps_are_taken(capsys, file):
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    cells = ["" if i in (7, 30) else f"{value:.3f}" for i, value in enumerate(x)]
    labels = ["yes" if value + 0.3 * rng.normal() > 0 else "no" for value in x]
    labels[9] = ""
    file.write_text("a,y\n" + "".join(f"{a},{b}\n" for a, b in zip(cells, labels, strict=True)))
    assert main(["certify", "houses.csv", "--target", "y", "--json", "--quiet"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["settings"]["labels"] == ["no", "yes"]
    assert found["rows"] == 59
    assert main(["certify", "houses.csv", "--target", "y", "--quiet"]) == 0
    assert "no as -1, yes as +1" in capsys.readouterr().out


def test_what_is_said_of_the_regret_is_about_the_figure_in_the_table(capsys, file):
    assert main(["certify", "houses.csv", "--target", "price", "--quiet"]) == 0
    out = capsys.readouterr().out
    shown = next(line for line in out.splitlines() if line.startswith("regret"))
    assert ("regret is negative" in out) == (float(shown.split()[1].replace(",", "")) < 0.0)
