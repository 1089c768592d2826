"""What the page says: true, in words, and honest when a trivial predictor is better."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kons.report.folder import RunFolder, as_text
from kons.report.history import History
from kons.report.proof import proof
from kons.report.words import headline, plain, remark, suggestions, verdict, worth_knowing


def folder(summary=None, run=None):
    base = {
        "rows": 12_000,
        "task": "regression",
        "loss": 12.34,
        "baselines": {"constant": 90.0, "linear": 20.9, "persistence": 33.0},
        "microseconds_per_row": 21.4,
    }
    settings = {
        "source": "my data/houses.csv",
        "learner": "embedded",
        "parameters": {"second_order": "hessian"},
        **(run or {}).get("settings", {}),
    }
    return RunFolder(Path("nowhere"), {"target": "price", "settings": settings}, {**base, **(summary or {})})


def said(found):
    return plain(headline(found)).replace("\N{NO-BREAK SPACE}", " ")


def test_the_headline_of_a_good_run():
    assert said(folder()) == (
        "Predicts price with a mean squared error of 12.3, 41 % less than the best trivial predictor "
        "(online linear, 20.9), at 21 microseconds a row."
    )
    assert verdict(folder()).kind == "better"
    assert suggestions(folder()) == []


@pytest.mark.parametrize(
    ("loss", "words", "kind"),
    [
        (25.0, "20 % more than the best trivial predictor (online linear, 20.9)", "worse"),
        (90.0, "4.3 times as much as the best trivial predictor (online linear, 20.9)", "worse"),
        (20.95, "no better than the best trivial predictor (online linear, 20.9)", "same"),
    ],
)
def test_the_headline_says_so_when_a_trivial_predictor_is_as_good(loss, words, kind):
    found = folder({"loss": loss})
    assert words in said(found)
    assert verdict(found).kind == kind
    assert suggestions(found)


def test_what_is_said_of_the_error_is_about_the_rows_of_the_headline():
    """Rows that were predicted before any target was known are left aside in both, or in neither."""
    metrics = {"rmse": 3.5, "r2": 0.4}
    assert "off by 3.5," in remark(folder({"metrics": metrics}))
    informed = {"learner": 0.04, "constant": 9.0, "linear": 2.0, "persistence": 3.0}
    found = folder({"metrics": metrics, "informed": informed})
    assert "0.04 once a target was known" in said(found)
    assert "off by 0.2," in remark(found)
    assert "explained" not in remark(found)


def test_a_perfect_baseline_divides_nothing():
    found = folder({"baselines": {"persistence": 0.0}, "loss": 0.5})
    assert "makes no error at all" in said(found)
    assert "better choice" in remark(found)


def test_two_perfect_predictors_are_the_same():
    found = folder({"baselines": {"persistence": 0.0}, "loss": 0.0})
    assert verdict(found).kind == "same"


def test_error_rates_are_parts():
    found = folder({"task": "classification", "loss": 0.081, "baselines": {"linear": 0.137}})
    assert (
        "an error rate of 8.1 %, 41 % less than the best trivial predictor (online logistic, 13.7 %)"
        in said(found)
    )


def test_without_baselines_cost_or_loss():
    assert said(folder({"baselines": None, "microseconds_per_row": None})) == (
        "Predicts price with a mean squared error of 12.3."
    )
    assert "not a finite number" in said(folder({"loss": float("nan")}))
    assert "No row" in said(folder({"rows": 0}))


@pytest.mark.parametrize(
    ("best", "words"),
    [("persistence", "--lag"), ("linear", "max_atoms=400"), ("constant", "regularization=10")],
)
def test_what_to_try_depends_on_what_won(best, words):
    found = folder({"baselines": {best: 1.0}})
    text = " ".join(plain(sentence) for sentence in suggestions(found))
    assert words in text
    # Can be typed as it stands, and runs the learner that it is about.
    assert "kons run 'my data/houses.csv' --target price --learner embedded" in text
    assert "kons run 'my data/houses.csv' --target price --learner auto" in text
    settings = {"settings": {"learner": "auto", "parameters": {}}}
    chooses = folder({"baselines": {best: 1.0}}, run=settings)
    text = " ".join(plain(sentence) for sentence in suggestions(chooses))
    assert words not in text  # it has lags, linear experts and ridges of its own
    assert "--learner auto" not in text
    assert "kons compare 'my data/houses.csv' --target price --learners auto,embedded" in text


def test_labels_are_not_lagged():
    found = folder({"task": "classification", "loss": 0.2, "baselines": {"persistence": 0.1}})
    text = " ".join(plain(sentence) for sentence in suggestions(found))
    assert "--lag" not in text
    assert "--learner auto" in text


def test_few_rows_are_no_verdict():
    assert "too few to judge" in remark(folder({"rows": 3}))


def told(found, history):
    return " ".join(plain(sentence) for sentence in worth_knowing(found, history))


def test_a_change_in_the_stream_is_told_and_a_hard_start_is_not():
    rows = np.arange(999.0, 12_000, 50)
    values = np.where((rows > 8000) & (rows < 9000), 60.0, 12.0)
    found = told(folder(), History(12_000, 1000, windowed={"learner": (rows, values)}))
    assert "worst in rows 7,050 to 8,049" in found
    values = np.where(rows < 1500, 60.0, 12.0)
    assert "worst" not in told(folder(), History(12_000, 1000, windowed={"learner": (rows, values)}))


def test_intervals_that_do_not_hold_are_told():
    history = History(12_000, 1000)
    assert "too narrow" in told(folder({"coverage": 0.7, "interval_level": 0.9}), history)
    assert told(folder({"coverage": 0.89, "interval_level": 0.9}), history) == ""
    assert told(folder({"interval_level": 0.9}), history) == ""


def test_a_full_dictionary_and_left_out_rows_are_told():
    text = told(
        folder({"atoms": 200, "max_atoms": 200, "rows_skipped": 1, "targets_clipped": 2}), History(12_000, 9)
    )
    assert "--set max_atoms=400" in text
    assert "1 row could not be read and was left out" in text
    assert "2 targets lay outside" in text


# --- the certificate ---


def test_why_there_is_none_and_the_command():
    found = proof(folder({"rows": 5000}))
    assert any("hessian" in reason for reason in found.reasons)
    assert found.command == "kons certify 'my data/houses.csv' --target price"


def test_the_command_keeps_to_what_certify_can_do():
    long = proof(folder(run={"settings": {"drop": ["id", "a b"]}}))
    assert long.command == "kons certify 'my data/houses.csv' --target price --drop 'id,a b' --rows 10000"
    pipe = proof(folder({"rows": 50}, {"settings": {"source": "-"}}))
    assert pipe.command == "kons certify rows.csv --target price"
    assert "pipe" in pipe.before
    other = proof(folder({"rows": 50}, {"settings": {"source": "x.parquet"}}))
    assert other.command == "kons certify x.csv --target price"
    many = proof(folder({"classes": ["a", "b", "c"], "task": "classification"}))
    assert many.command is None
    assert any("two classes" in reason for reason in many.reasons)


@pytest.mark.parametrize(
    ("parameters", "word"),
    [
        ({"forgetting": 0.99}, "forgetting"),
        ({"policy": "Dependence(when_full='replace')"}, "replace"),
        ({"on_growth": "restart"}, "restart"),
    ],
)
def test_choices_without_a_proof_are_named(parameters, word):
    found = proof(folder(run={"settings": {"learner": "embedded", "parameters": parameters}}))
    assert any(word in reason for reason in found.reasons)


def test_only_auto_is_said_to_combine_experts():
    for learner, expected in (("auto", True), ("embedded", False)):
        found = proof(folder(run={"settings": {"learner": learner, "parameters": {}}}))
        assert any("combines experts" in reason for reason in found.reasons) == expected


def test_names_from_data_are_on_one_line_and_steer_nothing():
    assert as_text("a\nb\tc") == "a b c"
    assert as_text("x\x00y\x1b[31m") == "x\ufffdy\ufffd[31m"
    assert as_text("\u202egnp.exe") == "\ufffdgnp.exe"
    assert as_text("\ud800") == "\ufffd"
    assert as_text("日本語 & <b>") == "日本語 & <b>"
    assert as_text(2.0) == "2"
