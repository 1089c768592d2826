"""What is published: sdist and wheel, and the files that say what kons is."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import kons

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    # Once for both, as a publisher does: the wheel of what git has.
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", folder], cwd=ROOT, check=True, capture_output=True
    )
    return folder


def test_the_wheel_is_the_package_and_works_where_it_is_installed(dist: Path, tmp_path: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    sources = {
        path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src/kons").rglob("*") if path.is_file()
    }
    assert {name for name in sources if "__pycache__" not in name} <= names  # templates and py.typed, too
    assert not [
        name for name in names if not name.startswith(("kons/", f"kons-{kons.__version__}.dist-info/"))
    ]

    install = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--no-deps",
        "--no-index",
        "--quiet",
        "--target",
        tmp_path / "site",
    ]
    subprocess.run([*install, wheel], check=True, capture_output=True)
    told = subprocess.run(
        [sys.executable, "-m", "kons.cli", "--version"],
        env={"PYTHONPATH": str(tmp_path / "site"), "PATH": "", "NUMBA_CACHE_DIR": str(tmp_path / "loops")},
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    where = subprocess.run(
        [sys.executable, "-c", "import kons; print(kons.__file__)"],
        env={"PYTHONPATH": str(tmp_path / "site")},
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    assert kons.__version__ in told.stdout
    assert Path(where.stdout.strip()).is_relative_to(tmp_path)


def test_the_sdist_has_what_its_tests_need(dist: Path) -> None:
    (sdist,) = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames()}
    for needed in (
        "pyproject.toml",
        "Makefile",
        "CITATION.cff",
        "tests/naive.py",
        "tools/algebra.py",
        "docs/auto.md",
    ):
        assert needed in names, needed
    assert not [name for name in names if name.startswith((".venv", "build", "dist"))]


def test_the_version_is_the_same_wherever_it_is_said() -> None:
    assert re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.M)[1] == kons.__version__  # type: ignore[index]
    assert json.loads((ROOT / "codemeta.json").read_text())["version"] == kons.__version__


def test_the_lock_file_fits_what_is_declared_and_names_no_host() -> None:
    lines = (ROOT / "requirements-dev.lock").read_text().splitlines()
    locked = [Requirement(line) for line in lines if not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+( ; .+)?", line) for line in lines if not line.startswith("#"))
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    declared, asked = [], ["dev"]
    for extra in asked:
        for needed in map(Requirement, extras[extra]):
            asked += needed.extras if needed.name == "kons" else ()
            declared += [needed] if needed.name != "kons" else []
    assert len(declared) > 25
    for needed in declared:
        versions = [next(iter(one.specifier)).version for one in locked if one.name == needed.name]
        assert versions, needed.name
        assert all(needed.specifier.contains(version) for version in versions), needed
