"""Why a run has no certificate of its regret, and the command that gives one."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any

from kons.report.folder import RunFolder, as_number, as_text
from kons.report.words import Code, asked_file

__all__ = ["Proof", "proof"]

QUICK = 10_000  # rows beyond which the best function in hindsight may take minutes
TABLES = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")


@dataclass(frozen=True)
class Proof:
    """What the page says about a certificate."""

    reasons: list[str]
    before: str
    """What has to be done before the command."""
    command: Code | None


def proof(folder: RunFolder) -> Proof:
    """Why a run has no certificate, and how to get one."""
    return Proof(_reasons(folder), *_command(folder))


def _reasons(folder: RunFolder) -> list[str]:
    """Why this run has none: a run is one pass, and some choices have no proof."""
    settings = folder.settings
    parameters = settings.get("parameters")
    parameters = parameters if isinstance(parameters, dict) else {}
    learner = settings.get("learner") or folder.summary.get("learner")
    reasons = [
        "A certificate compares with the best fixed function in hindsight, which takes a second look at all "
        "rows; a run looks once."
    ]
    if learner == "auto":
        reasons.append(
            "auto combines experts, some with forgetting; the bound is proven for a single learner."
        )
    second_order = parameters.get("second_order", "hessian" if learner == "embedded" else None)
    if folder.task == "regression" and second_order == "hessian":
        reasons.append(
            'second_order="hessian" with the squared loss predicts best as a rule, but is not projected on '
            "the bound, as the proof needs it."
        )
    forgetting = as_number(parameters.get("forgetting"))
    if forgetting is not None and forgetting < 1.0:
        reasons.append("forgetting below 1 shrinks what the proof adds up.")
    if "replace" in str(parameters.get("policy", "")):
        reasons.append('when_full="replace" moves what was learned to another span.')
    if parameters.get("on_growth") == "restart":
        reasons.append('on_growth="restart" throws away what the proof adds up.')
    if len(folder.classes) > 2:
        reasons.append("The bound is proven for two classes, not for more.")
    return reasons


def _command(folder: RunFolder) -> tuple[str, Code | None]:
    file = asked_file(folder)
    if len(folder.classes) > 2:
        return "There is no command for it.", None
    if file in ("-", "FILE") or "standard input" in file:
        before, file = "The rows came by a pipe. Save them as a CSV file, say rows.csv; then:", "rows.csv"
    elif not file.lower().endswith(TABLES):
        before = "Save the rows as a CSV file of numbers with a header; then:"
        file = f"{file.rsplit('.', 1)[0]}.csv"
    else:
        before = "This command runs the learner of the proof on the same file and certifies that run:"
    words: list[Any] = ["kons", "certify", file, "--target", folder.target]
    dropped = folder.settings.get("drop")
    if isinstance(dropped, (list, tuple)) and dropped:
        words += ["--drop", ",".join(map(str, dropped))]
    if folder.rows > QUICK:
        words += ["--rows", QUICK]
    return before, Code(shlex.join([as_text(word) for word in words]))
