#!/usr/bin/env -S uv run --script
# /// script
# dependencies = ["nox>=2025.10.14"]
# ///
"""What the Makefile does, for those who have nox and no make: `nox`, `nox -s tests-3.13`, `nox -s docs`."""

import nox

nox.needs_version = "2025.10.14"
nox.options.default_venv_backend = "uv|virtualenv"


@nox.session
def lint(session: nox.Session) -> None:
    """Ruff, mypy, the import contract, and who factorizes matrices."""
    session.install("-e", ".[dev]")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")
    session.run("lint-imports")
    session.run("python", "-m", "tools.algebra")


@nox.session(default=False)
def types(session: nox.Session) -> None:
    """Whether every public type is known."""
    session.install("-e", ".[types]")
    session.run("basedpyright", "--verifytypes", "kons", "--ignoreexternal")


@nox.session(python=["3.11", "3.12", "3.13", "3.14", "3.15"])
def tests(session: nox.Session) -> None:
    """The tests and doctests."""
    session.install("-e", ".[dev]")
    session.run("python", "tests/compile_loops.py")
    session.run("python", "-m", "pytest", "-n", "2", "--dist", "loadfile", *session.posargs)


@nox.session(default=False)
def docs(session: nox.Session) -> None:
    """The site, into build/docs."""
    session.install("-e", ".[dev]")
    session.run("python", "-m", "sphinx", "-b", "html", "-q", "-W", "--keep-going", "docs", "build/docs")


@nox.session(default=False)
def build(session: nox.Session) -> None:
    """Sdist and wheel, into dist."""
    session.install("build")
    session.run("python", "-m", "build")


if __name__ == "__main__":
    nox.main()
