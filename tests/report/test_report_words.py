"""What the page says: true, in words, and honest when a trivial predictor is better."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kons.report.folder import RunFolder, as_text
from kons.report.history import History
from kons.report.proof import proof
from kons.report.words import headline, meaning, plain, remark, suggestions, verdict, worth_knowing


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


def test_what_a_prediction_is_typically_off_by_is_the_median():
    assert "off by 1.5," in remark(folder({"metrics": {"rmse": 3.5, "medae": 1.5, "r2": 0.4}}))


def sorted_rows(**more):
    away = {"loss": 60.0, "metrics": {"mse": 60.0}, "rows": 1500}
    online = {"loss": 0.5, "metrics": {"mse": 0.5}}
    baselines = {"constant": 90.0, "linear": 80.0, "persistence": 0.01}
    settings = {"settings": {"learner": "auto", "parameters": {}}}
    figures = {"without_last_targets": away, "online": online, "loss": 60.0, "baselines": baselines}
    summary = {"order": "ascending", "headline": "without last targets", **figures, **more}
    return folder(summary, settings)


def test_sorted_rows_are_said_first_and_judged_without_their_order():
    found = sorted_rows()
    assert said(found).startswith(
        "The rows are sorted by price: a figure along them tells more about the order"
    )
    assert "without last targets, with a mean squared error of 60, at 21 microseconds" in said(found)
    assert "trivial" not in said(found) + remark(found)  # baselines know the order, too
    (only,) = suggestions(found)
    assert only[-1] == "kons run 'my data/houses.csv' --target price --shuffle"
    assert "come in blocks of the same price" in said(sorted_rows(order="blocks"))
    assert "sorted" not in said(sorted_rows(order=None))


def test_the_figure_without_last_targets_is_always_told():
    text = told(sorted_rows(order=None), History(12_000, 1000))
    assert "Without last targets, as kons predict has to do" in text
    assert "60 (1,500 rows); along the stream it is 0.5" in text
    assert "last targets" not in told(folder(), History(12_000, 1000))


def test_a_constant_target_is_named():
    found = folder({"constant_target": True})
    assert remark(found) == ""
    assert said(found) == "price is the same in every row: there is nothing to predict."
    assert suggestions(found) == []


def test_few_whole_numbers_may_be_classes():
    assert "--task classification" in told(folder({"few_values": [1, 2, 3]}), History(12_000, 1000))


def test_the_last_rows_are_as_many_as_the_window():
    summary = {"window": 1000, "windowed": {"loss": 6.0}, "online": {"loss": 12.34}}
    text = told(folder(summary), History(12_000, 960))
    assert "In the last 1,000 rows the mean squared error was 6, below that of the whole run" in text
    assert "In the last" not in told(folder({**summary, "windowed": {"loss": 12.0}}), History(12_000, 960))


def test_the_positive_label_is_named():
    found = folder({"positive": "yes", "classes": ["no", "yes"]})
    assert "F1 of 'yes'" in meaning(found, "f1")
    assert "the mean over labels" in meaning(folder({"classes": ["a", "b", "c"]}), "f1")


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


@pytest.mark.parametrize("best", ["persistence", "linear", "constant"])
def test_what_to_try_is_short_and_can_be_typed(best):
    found = folder({"baselines": {best: 1.0}})
    text = " ".join(plain(sentence) for sentence in suggestions(found))
    assert "kons run 'my data/houses.csv' --target price --learner auto" in text
    assert "--lag" not in text
    assert len(suggestions(found)) == (2 if best == "constant" else 1)
    chooses = folder({"baselines": {best: 1.0}}, run={"settings": {"learner": "auto", "parameters": {}}})
    (only,) = suggestions(chooses)
    assert ("say little" in plain(only)) == (best == "constant")
    assert "--learner auto" not in plain(only)  # it has lags, linear experts and ridges of its own


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
