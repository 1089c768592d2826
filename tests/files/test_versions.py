"""Files of every released format version stay readable, and their learners say what they said."""

import json
from pathlib import Path

import numpy as np
import pytest

import kons
from files.make_version_files import answers, common_letters
from kons.files import VERSION

FOLDER = Path(__file__).parent / "versions"
EXPECTED = {
    file: numbers
    for version in range(1, VERSION + 1)
    for file, numbers in json.loads((FOLDER / f"v{version}.json").read_text(encoding="utf-8")).items()
}


def test_every_version_has_files():
    assert {file.name for file in FOLDER.glob("*.kons")} == EXPECTED.keys()
    for version in range(1, VERSION + 1):
        assert sum(file.startswith(f"v{version}-") for file in EXPECTED) >= 3


@pytest.mark.parametrize("file", EXPECTED)
def test_the_learner_of_a_kept_file_says_what_it_said(file):
    learner = kons.load(FOLDER / file, callables={"common_letters": common_letters})
    # Other machines round differently; the states are small and their regularization is at least 0.1.
    np.testing.assert_allclose(answers(learner), EXPECTED[file], rtol=0, atol=1e-12)
