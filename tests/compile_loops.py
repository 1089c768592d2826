"""Compiles the numerical loops once, for all processes that run the tests: ``make test`` begins with it.

Two processes that start with an empty cache would each compile everything.
"""

from __future__ import annotations

from kons.compilation import compile_all

if __name__ == "__main__":
    compile_all()
