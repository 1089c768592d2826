"""Messages of the library in the words of the command line: flags instead of arguments."""

from __future__ import annotations

import re

__all__ = ["printable", "with_flags"]

# What the library says, and what is typed.
WORDS = (
    (r"set missing to skip or fill\b", "--missing skip or fill"),
    (r"\(numeric keeps it\)", "(--numeric keeps it)"),
    (r"\(header\)", "(else: --no-header)"),
    (r"\(categorical, or drop\)", "(--categorical, or --drop)"),
    (r"\(drop, or id, which", "(--drop, or --id, which"),
    (r"set missing to (\w+)", r"--missing \1"),
    (r"skip bad rows \(on_bad_row\)", "skip bad rows (--on-bad-row skip)"),
    (r"set encoding to (\S+)\.", r"--encoding \1."),
    (r"set encoding \(([\w-]+), \.\.\.\)", r"--encoding \1 or another"),
    (r"say so if these are labels \(task\)", "--task classification if these are labels"),
    (r"whose earlier values are features \(lag\)", "whose earlier values are features (--lag)"),
    (r"a forecast takes no (\w+): leave it out", r"a forecast takes no --\1: leave it out"),
    (r"earlier seasons by itself: leave out lag", "earlier seasons by itself: leave out --lag"),
    (r"let its rows come next \(past\)", "let its rows come next (--continue)"),
    (r"leave out shuffle, or time and lag", "leave out --shuffle, or --time and --lag"),
    (r"Set a shorter warmup \(kons\.Scaled, kons\.recipes\.for_task\)", "--set warmup=20 makes it shorter"),
    (
        r"use lags of the target above (\d+), or a shorter delay",
        r"use --lag target:N above \1, or a shorter --delay",
    ),
    (r"(?<!-)\b(delimiter|format|encoding|effort|lag|positive|target) is (?=')", r"--\1 is "),
    (r"^engine spark\b", "--engine spark"),
    (r"^--engine spark goes with no ([\w-]+)", r"--engine spark goes with no --\1"),
    (r"say which column it is \(key\)", "say which column it is (--key)"),
    (r"say which \((time|out)\)", r"say which (--\1)"),
    (r"name them with drop", "name them with --drop"),
    (r"^time (?=')", "--time "),
    (r"no_target goes with no ([\w-]+)", r"--no-target goes with no --\1"),
    (r"leave out no_target", "leave out --no-target"),
    (r'\bclass_weight="balanced"', "--class-weight balanced"),
    (r"\bscale='none'", "--scale none"),
    (r"^model (\S+) (does not know|has no encoder)", r"--model \1 \2"),
    (r"^model (\S+) has decided (\w+)", r"--model \1 has decided --\2"),
)


def printable(text: str) -> str:
    r"""Names from a file may hold letters that would steer a terminal.

    >>> printable("\x1b[2Jname")
    '\\x1b[2Jname'
    """
    text = text.replace("\N{NO-BREAK SPACE}", " ")
    return "".join(c if c.isprintable() or c == "\n" else f"\\x{ord(c):02x}" for c in text)


def with_flags(message: str) -> str:
    """The same message, as somebody reads it who typed a command.

    >>> with_flags("line 3, column 'a': '' is a missing value: fill it, or set missing to skip.")
    "line 3, column 'a': '' is a missing value: fill it, or --missing skip."
    """
    for said, typed in WORDS:
        message = re.sub(said, typed, message)
    return message
