"""What a run left behind: ``run.json``, ``summary.json`` and the trace, checked before anything is drawn."""

from __future__ import annotations

import json
import math
import re
import unicodedata
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.errors import InputError, as_word

__all__ = ["RunFolder", "as_number", "as_text", "or_infinite", "read_folder"]

FORMAT = 1
TRACE_FILE = re.compile(r"\d+\.npz")
AGAIN = "run it again with `kons run ... --out DIR`"

Columns = dict[str, NDArray[Any]]
"""Of a trace file: one value a row each; and ``shares[i]`` of all experts at row ``share_rows[i]``."""


def as_text(value: Any) -> str:
    """A name from somebody's data on one line, without characters that steer a terminal or a page."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = " ".join(str(value).split())
    return "".join("\N{REPLACEMENT CHARACTER}" if _steers(letter) else letter for letter in text)


def _steers(letter: str) -> bool:
    kind = unicodedata.category(letter)
    return kind in ("Cc", "Cs", "Cn") or (kind == "Cf" and unicodedata.bidirectional(letter) != "BN")


def as_number(value: Any) -> float | None:
    """A finite number, or None for what is missing, NaN or not a number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def or_infinite(value: float | None) -> float:
    """For sorting: what is not known comes last."""
    return math.inf if value is None else value


@dataclass(frozen=True)
class RunFolder:
    """The two documents of a folder, and where its trace is."""

    path: Path
    run: dict[str, Any]
    summary: dict[str, Any]

    @property
    def kind(self) -> str:
        """``run`` or ``compare``."""
        return str(self.run.get("kind", "run"))

    @property
    def rows(self) -> int:
        """How many rows were predicted."""
        return int(self.summary["rows"])

    @property
    def task(self) -> str:
        """``regression`` or ``classification``."""
        task = self.summary.get("task") or self.settings.get("task")
        return "classification" if task == "classification" else "regression"

    @property
    def target(self) -> str:
        """The name of what was predicted."""
        return as_text(self.run.get("target") or self.summary.get("target") or "target")

    @property
    def targets(self) -> list[str]:
        """The names of several targets; empty where there is one."""
        return [as_text(entry.get("name", "")) for entry in self.entries("targets")]

    @property
    def source(self) -> str:
        """What was read, as it was typed."""
        return as_text(self.settings.get("source") or "FILE")

    @property
    def settings(self) -> dict[str, Any]:
        """What was asked for."""
        return self.group("settings")

    @property
    def classes(self) -> list[str]:
        """The labels in the order of their codes; empty for regression."""
        return self.texts("classes")

    def group(self, name: str) -> dict[str, Any]:
        """An object of the summary, or of what was asked; empty where there is none."""
        found = self.summary.get(name) or self.run.get(name)
        return found if isinstance(found, dict) else {}

    def texts(self, name: str) -> list[str]:
        """A list of the summary, or of what was asked, as texts; empty where there is none."""
        found = self.summary.get(name) or self.run.get(name)
        return [as_text(part) for part in found] if isinstance(found, list) else []

    def number(self, name: str) -> float | None:
        """A finite number of the summary, or None."""
        return as_number(self.summary.get(name))

    def numbers(self, name: str) -> dict[str, float]:
        """The finite numbers of an object of the summary, by name."""
        found = ((as_text(key), as_number(value)) for key, value in self.group(name).items())
        return {key: value for key, value in found if value is not None}

    def entries(self, name: str) -> list[dict[str, Any]]:
        """The objects in a list of the summary."""
        found = self.summary.get(name)
        return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []

    def trace(self) -> Iterator[tuple[int, Columns]]:
        """(first row, columns) of each trace file in order; a gap, an overlap or damage is an error."""
        expected = 0
        folder = self.path / "trace"
        try:
            files = [path for path in folder.iterdir() if TRACE_FILE.fullmatch(path.name)]
        except OSError:
            raise InputError(
                f"{folder}: the folder of the trace is missing or cannot be read; copy the whole run "
                f"folder, or {AGAIN}."
            ) from None
        for path in sorted(files, key=lambda path: int(path.stem)):
            first, columns = _read_segment(path)
            if first != expected:
                raise InputError(
                    f"{path}: begins at row {first}, expected row {expected}: a trace file before "
                    f"it is missing or too many; copy the whole run folder, or {AGAIN}."
                )
            expected += len(columns["loss"])
            if expected > self.rows:
                break
            yield first, columns
        if expected != self.rows:
            relation = "at least" if expected > self.rows else "only"
            raise InputError(
                f"{folder}: the trace holds {relation} {expected:,} rows, and summary.json says "
                f"{self.rows:,}: they are not of the same run, or a file is missing; copy the whole run "
                f"folder, or {AGAIN}."
            )


def read_folder(path: Path) -> RunFolder:
    """Read and check the two documents of a run folder; the trace is read later, file by file."""
    if not path.is_dir():
        raise InputError(
            f"{path}: there is no such folder; expected one written by `kons run ... --out DIR`."
        )
    run = _read_document(path / "run.json", f"is {path} a folder written by `kons run ... --out DIR`?")
    version = run.get("format", FORMAT)
    if version != FORMAT:
        raise InputError(
            f"{path / 'run.json'}: is of format {version!r}, and this kons reads {FORMAT}: "
            "use the kons that wrote it, or a newer one."
        )
    if run.get("kind", "run") not in ("run", "compare", "forecast"):
        raise InputError(
            f"{path / 'run.json'}: kind is {run['kind']!r}, expected 'run', 'compare' or 'forecast'."
        )
    unfinished = (path / "checkpoint.kons").exists()
    advice = f"the run is not finished: `kons resume {as_word(path)}`." if unfinished else f"{AGAIN}."
    summary = _read_document(path / "summary.json", advice)
    rows = summary.get("rows")
    if isinstance(rows, bool) or not isinstance(rows, int) or rows < 0:
        raise InputError(f"{path / 'summary.json'}: rows is {rows!r}, expected a count; {AGAIN}.")
    return RunFolder(path, run, summary)


def _read_document(path: Path, advice: str) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: is missing; {advice}") from None
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: is damaged or cannot be read ({reason}); {AGAIN}.") from None
    if not isinstance(document, dict):
        raise InputError(f"{path}: holds a {type(document).__name__}, expected a JSON object; {AGAIN}.")
    return document


def _read_segment(path: Path) -> tuple[int, Columns]:
    try:
        if not zipfile.is_zipfile(path):  # NumPy would take it for a pickle, and say how to trust it
            raise InputError("it is no npz archive")
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except Exception as error:  # a damaged zip file or header raises almost anything
        raise InputError(f"{path}: is damaged or cannot be read ({as_text(error)}); {AGAIN}.") from None
    missing = [name for name in ("first", "loss", "target", "prediction") if name not in arrays]
    if missing:
        raise InputError(f"{path}: has no {', '.join(missing)}, has {', '.join(arrays)}; {AGAIN}.")
    first, shares, share_rows = (arrays.pop(name, None) for name in ("first", "shares", "share_rows"))
    length = len(arrays["loss"]) if arrays["loss"].ndim == 1 else -1
    columns = {}
    for name, values in arrays.items():
        if values.ndim == 1 and (len(values) != length or values.dtype.kind not in "fiub"):
            raise InputError(
                f"{path}: column {name} holds {values.shape} of {values.dtype}, expected {length} numbers; "
                f"{AGAIN}."
            )
        if values.ndim == 1:
            columns[name] = values
    if length < 0 or np.size(first) != 1:
        raise InputError(f"{path}: loss or first is not what a trace holds; {AGAIN}.")
    if shares is not None and share_rows is not None and shares.ndim == 2 and len(shares) == len(share_rows):
        columns |= {"shares": shares, "share_rows": share_rows}
    return int(np.ravel(first)[0]), columns
