"""What is typed behind an option: ``name=value`` pairs, lists of names, learners with parameters."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from typing import Any

from kons.errors import ConfigurationError

__all__ = ["assignments", "names", "plain_value"]

WORDS = {"true": True, "false": False, "none": None, "null": None}


def names(texts: Iterable[str]) -> list[str]:
    """The names in ``a,b``; one that holds a comma stands in quotes, as in the file.

    >>> names(["a, b", '"last, first"'])
    ['a', 'b', 'last, first']
    """
    found = [name.strip() for row in csv.reader(texts, skipinitialspace=True) for name in row]
    return [name for name in found if name]


def plain_value(text: str) -> Any:
    """A number, true, false, none, or a word; several with commas between them are a list.

    >>> plain_value("100"), plain_value("1e-3"), plain_value("true"), plain_value("matern")
    (100, 0.001, True, 'matern')
    >>> plain_value("low,high")
    ['low', 'high']
    """
    if "," in text:
        return [plain_value(part) for part in text.split(",")]
    text = text.strip()
    if text.casefold() in WORDS:
        return WORDS[text.casefold()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def assignments(texts: Iterable[str], option: str = "--set") -> dict[str, Any]:
    """The values in ``name=value`` by name.

    >>> assignments(["max_atoms=100", "second-order=gradient"])
    {'max_atoms': 100, 'second_order': 'gradient'}
    """
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name or not value.strip():
            raise ConfigurationError(f"{option} {text}: expected name=value, such as max_atoms=100.")
        if name in found:
            raise ConfigurationError(f"{option} {name} is given twice.")
        found[name] = plain_value(value)
    return found
