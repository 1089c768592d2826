"""Why a run has no certificate of its regret, and the command that gives one."""

from __future__ import annotations

from dataclasses import dataclass

from kons.report.folder import RunFolder, as_number
from kons.report.words import command

__all__ = ["Proof", "proof"]

QUICK = 10_000  # rows beyond which the best function in hindsight may take minutes
TABLES = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")


@dataclass(frozen=True)
class Proof:
    """What the page says about a certificate."""

    reasons: list[str]
    before: str
    """What has to be done before the command."""
    command: str | None


def proof(folder: RunFolder) -> Proof:
    """Why a run has no certificate, and how to get one."""
    return Proof(_reasons(folder), *_command(folder))


def _reasons(folder: RunFolder) -> list[str]:
    """Why this run has none: a run is one pass, and some choices have no proof."""
    chosen = folder.settings.get("parameters")
    chosen = chosen if isinstance(chosen, dict) else {}
    learner = folder.settings.get("learner") or folder.summary.get("learner")
    second_order = chosen.get("second_order", "hessian" if learner == "embedded" else None)
    forgetting = as_number(chosen.get("forgetting"))
    reasons = (
        (True, "A certificate compares with the best fixed function in hindsight, which takes a second look "
         "at all rows; a run looks once."),
        (learner == "auto", "auto combines experts, some with forgetting; the bound is proven for a single "
         "learner."),
        (folder.task == "regression" and second_order == "hessian", 'second_order="hessian" with the squared '
         "loss predicts best as a rule, but is not projected on the bound, as the proof needs it."),
        (forgetting is not None and forgetting < 1.0, "forgetting below 1 shrinks what the proof adds up."),
        ("replace" in str(chosen.get("policy", "")), 'when_full="replace" moves what was learned to another '
         "span."),
        (chosen.get("on_growth") == "restart", 'on_growth="restart" throws away what the proof adds up.'),
        (len(folder.classes) > 2, "The bound is proven for two classes, not for more."),
    )  # fmt: skip
    return [reason for holds, reason in reasons if holds]


def _command(folder: RunFolder) -> tuple[str, str | None]:
    file = folder.source
    if len(folder.classes) > 2:
        return "There is no command for it.", None
    if file in ("-", "FILE"):
        before, file = "The rows came by a pipe. Save them as a CSV file, say rows.csv; then:", "rows.csv"
    elif not file.lower().endswith(TABLES):
        before = "Save the rows as a CSV file of numbers with a header; then:"
        file = f"{file.rsplit('.', 1)[0]}.csv"
    else:
        before = "This command runs the learner of the proof on the same file and certifies that run:"
    dropped = folder.settings.get("drop")
    options = ["--drop", ",".join(map(str, dropped))] if isinstance(dropped, list) and dropped else []
    options += ["--rows", str(QUICK)] if folder.rows > QUICK else []
    return before, command("certify", file, "--target", folder.target, *options)
