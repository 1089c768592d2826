"""Files that were kept stay readable, and their learners say what they said: those of the newest version."""

import json
from pathlib import Path

import numpy as np
import pytest

import kons
from files.make_version_files import answers, common_letters
from kons.files import VERSION

FOLDER = Path(__file__).parent / "versions"
EXPECTED = json.loads((FOLDER / f"v{VERSION}.json").read_text(encoding="utf-8"))


def test_there_are_files_of_the_newest_version():
    assert {file.name for file in FOLDER.glob("*.kons")} == EXPECTED.keys()
    assert sum(file.startswith(f"v{VERSION}-") for file in EXPECTED) >= 3


@pytest.mark.parametrize("file", EXPECTED)
def test_the_learner_of_a_kept_file_says_what_it_said(file):
    learner = kons.load(FOLDER / file, callables={"common_letters": common_letters})
    # Other machines round differently; the states are small and their regularization is at least 0.1.
    np.testing.assert_allclose(answers(learner), EXPECTED[file], rtol=0, atol=1e-12)
