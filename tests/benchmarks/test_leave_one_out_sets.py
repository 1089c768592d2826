"""Which setting would have been chosen without each set, on numbers made up for it."""

import doctest
import json
import math

import numpy as np
import pytest

from benchmarks import leave_one_out_sets
from benchmarks.leave_one_out_sets import choose, leave_one_out, mean_cost, read

SETS = ("a", "b", "c")
# 16 is far better on "a", and a little worse elsewhere: "a" alone has chosen it.
FITTED_TO_A = {
    "8": dict(zip(SETS, (1.0, 1.0, 1.0), strict=True)),
    "16": dict(zip(SETS, (0.5, 1.25, 1.25), strict=True)),
}


def test_a_choice_that_one_set_made_is_found_and_priced():
    choice, without = leave_one_out(FITTED_TO_A)
    assert choice == "16"
    assert [(one.name, one.choice, one.cost) for one in without] == [
        ("a", "8", 1.0),
        ("b", "16", 0.0),
        ("c", "16", 0.0),
    ]
    assert mean_cost(without) == pytest.approx(2.0 ** (1 / 3) - 1.0)


def test_the_doctest_holds():
    assert doctest.testmod(leave_one_out_sets) == (0, 3)


def test_every_set_weighs_the_same_whatever_its_units():
    rng = np.random.default_rng(0)
    losses = {str(k): dict(zip(SETS, rng.uniform(0.1, 1.0, 3), strict=True)) for k in range(6)}
    units = {"a": 1e-6, "b": 1.0, "c": 1e9}
    scaled = {k: {name: units[name] * loss for name, loss in of.items()} for k, of in losses.items()}
    products = {k: math.prod(of.values()) for k, of in losses.items()}
    assert choose(scaled, SETS) == choose(losses, SETS) == min(products, key=products.__getitem__)
    costs = [[one.cost for one in leave_one_out(each)[1]] for each in (losses, scaled)]
    np.testing.assert_allclose(costs[0], costs[1], rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("losses", "said"),
    [
        ({"8": {"a": 1.0, "b": 1.0}}, "nothing to choose"),
        ({"8": {"a": 1.0}, "16": {"a": 2.0}}, "none can be left out"),
        ({"8": {"a": 1.0, "b": 1.0}, "16": {"a": 2.0}}, "do not both have b"),
        ({"8": {"a": 1.0, "b": 0.0}, "16": {"a": 2.0, "b": 1.0}}, "loss of 8 on b is 0.0"),
    ],
)
def test_what_cannot_be_compared_is_refused(losses, said):
    with pytest.raises(ValueError, match=said):
        leave_one_out(losses)


def test_saved_reports_and_plain_losses_are_put_together(tmp_path):
    report, plain = tmp_path / "against_trees.json", tmp_path / "plain.json"
    report.write_text(json.dumps({"question": "?", "details": {"losses": {"a": 0.5}}}), encoding="utf-8")
    plain.write_text(json.dumps({"b": 1.5}), encoding="utf-8")
    assert read([f"8={report}", f"8={plain}", f"16={plain}"]) == {"8": {"a": 0.5, "b": 1.5}, "16": {"b": 1.5}}
    with pytest.raises(ValueError, match="setting 8 has b already"):
        read([f"8={plain}", f"8={plain}"])
    with pytest.raises(ValueError, match="expected SETTING=FILE"):
        read([str(plain)])
