"""The lint rule that nobody outside the core factorizes: planted faults are found, honest code is not."""

from pathlib import Path

import pytest

from tools import algebra

PLANTED = {
    "numpy": ("import numpy as np\nx = np.linalg.solve(A, b)", "numpy.linalg.solve"),
    "numpy by its own name": ("import numpy\nx = numpy.linalg.inv(A)", "numpy.linalg.inv"),
    "another name": ("from numpy import linalg as la\nx = la.cholesky(A)", "numpy.linalg.cholesky"),
    "scipy": ("from scipy.linalg import cho_factor as f\nx = f(A)", "scipy.linalg.cho_factor"),
    "lapack": ("from scipy.linalg import lapack\nx = lapack.dpotrf(A)", "scipy.linalg.lapack.dpotrf"),
    "blas": ("from scipy.linalg import blas\nA = blas.dsyr(1.0, v)", "scipy.linalg.blas.dsyr"),
    "handed on": ("import scipy.linalg\nf = scipy.linalg.lstsq", "scipy.linalg.lstsq"),
    "the core's own": (
        "from kons.core.cholesky import factored\nL = factored(S, 1.0)",
        "kons.core.cholesky.factored",
    ),
    "outer": ("import numpy as np\nP -= g * np.outer(v, v)", "a rank-one change"),
    "outer, replaced": ("import numpy as np\nself.P = self.P - np.outer(v, v) / s", "a rank-one change"),
    "column by row": ("P = P - v[:, None] * v[None, :]", "a rank-one change"),
    "a loop": (
        "for i in range(n):\n    for j in range(n):\n        P[i, j] -= g * v[i] * v[j]",
        "a rank-one change",
    ),
    "a loop, its factor outside": (
        "for i in range(n):\n    a = g * v[i]\n    for j in range(n): P[i, j] += a * v[j]",
        "a rank-one change",
    ),
}
HONEST = """
import numpy as np
from scipy.linalg import blas
from kons.core.ridge import Ridge
size = np.linalg.norm(x)
y = blas.dgemv(1.0, A, x)
table = np.outer(u, v)
total = total + np.outer(u, v).sum() if u else 0.0
moments[0, k] += change * value[k]
counts[i, j] += 1
f[o] -= steps[o] * h[s]
solve = ridge.solve(c)
"""


def planted(folder: Path, code: str, place: str = "learners/new.py") -> Path:
    path = folder / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(code, encoding="utf-8")
    return folder


@pytest.mark.parametrize(("code", "name"), PLANTED.values(), ids=PLANTED)
def test_planted_algebra_is_found(tmp_path, code, name):
    (finding,) = algebra.find(planted(tmp_path, code))
    assert (finding.file, finding.name) == ("learners/new.py", name)
    assert finding.line == len(code.splitlines())
    assert str(finding).startswith(f"src/kons/learners/new.py:{finding.line}: {name}, expected only in core")


def test_the_core_and_theory_may_and_honest_code_is_left_alone(tmp_path):
    for place in ("core/new.py", "theory/new.py"):
        planted(tmp_path, "import numpy as np\nx = np.linalg.solve(A, b)", place)
    assert algebra.find(planted(tmp_path, HONEST)) == []


def test_what_is_not_allowed_fails_and_so_does_what_is_allowed_for_nothing(tmp_path, capsys, monkeypatch):
    package = planted(tmp_path, "import numpy as np\nx = np.linalg.solve(A, b)")
    monkeypatch.setattr(algebra, "ALLOWED", {})
    assert algebra.main(package) == 1
    assert "learners/new.py:2: numpy.linalg.solve" in capsys.readouterr().out
    monkeypatch.setattr(algebra, "ALLOWED", {("learners/new.py", "numpy.linalg.solve"): "a reason"})
    assert algebra.main(package) == 0
    monkeypatch.setattr(algebra, "ALLOWED", {("learners/old.py", "numpy.linalg.solve"): "a reason"})
    assert algebra.main(planted(tmp_path, "x = 1")) == 1
    assert "learners/old.py" in capsys.readouterr().out


@pytest.mark.soak  # `make lint` asks the same
def test_the_library_keeps_the_rule():
    assert algebra.main(Path(__file__).parents[2] / "src" / "kons") == 0
