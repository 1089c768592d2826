"""The terminal's output has blocks with an empty line around each: people look before they read."""

import pytest
from commands import blocks_of

PRICE = ["houses.csv", "--target", "price", "--drop", "dear", "--rows", "120"]
FEW = ["--learner", "embedded", "--set", "max_atoms=5"]


@pytest.fixture
def blocks(said):
    """Of a command the blocks, of each line its first words."""

    def look(*arguments):
        return [[line.split("  ")[0] for line in block] for block in blocks_of(said(*arguments))]

    return look


def starts(found):
    return [" ".join(block[0].split()[:2]) for block in found]


def test_a_run(blocks, file, no_report):
    found = blocks("run", *PRICE, *FEW, "--out", "out")
    assert starts(found) == [
        "houses.csv, predicting",
        "Predicts price",
        "predictor",
        "mse",
        "Notes",
        "What to",
        "Saved in",
    ]


def test_a_comparison(blocks, file, no_report):
    asked = ["compare", *PRICE, "--learners", "embedded:max_atoms=5,sketched"]
    title, table, frontier, notes, saved, picture = blocks(*asked, "--out", "out", "--picture", "p.png")
    assert title[0].startswith("houses.csv, predicting 'price'")
    assert table[0] == "learner"
    assert {"embedded:max_atoms=5", "sketched", "mean so far"} <= set(table)
    assert [line.partition(":")[0] for line in frontier] == ["last 1/4", "frontier"]
    assert notes[0] == "Notes"
    assert "- text, by its levels: town" in " ".join(notes)
    assert saved == ["Saved in out: summary.json."]
    assert picture == ["Picture: p.png"]


def test_a_comparison_of_one_row_breaks_no_name(blocks, file):
    table = blocks("compare", "houses.csv", "--target", "price", "--rows", "1", "--learners", "embedded")[1]
    assert table == ["learner", "embedded"]


def test_scores_and_a_model(blocks, answer, file, no_report):
    answer("run", *PRICE, *FEW, "--out", "out")
    title, table = blocks("score", "out", "houses.csv")
    assert title == ["houses.csv, scoring 'price': regression, 700 rows."]
    assert table[0] == "mse"
    (table,) = blocks("inspect", "out")
    assert table[:3] == ["file", "written by", "what"]


def test_learners(blocks):
    table, shared, rivals, dictionaries, example = blocks("learners")
    assert "frequent_directions" in " ".join(dictionaries)
    assert "river_arf" in " ".join(rivals)
    assert table[0] == "learner"
    starts = [line.partition(":")[0] for line in shared]
    assert starts[1:] == ["but no kernel and bandwidth", "Of a row", "Kernels", "Losses"]
    assert example[0] == "For example:"


def test_a_certificate(blocks, file):
    asked = ["certify", "houses.csv", "--target", "price", "--drop", "dear,town,sold", "--rows", "40"]
    found = blocks(*asked, "--picture", "c.png")
    assert starts(found) == [
        "Regret certificate",
        "They were",
        "figure",
        "your error",
        "Losses are",
        "Picture: c.png",
    ]
