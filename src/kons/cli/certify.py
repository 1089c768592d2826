"""``kons certify``: how far from the best fixed function a run over a person's own file was, proven."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from kons.cli import fail
from kons.cli.files import require_picture, save_picture
from kons.cli.first_look import BOUND, LossName, Prepared, prepare
from kons.cli.options import Certifying
from kons.cli.screen import Cell, Sheet, notices, print_json, progress_bar
from kons.errors import ConfigurationError, announce
from kons.kernels import Gaussian
from kons.learners import KONS, EmbeddedKONS, SketchedKONS
from kons.learners.newton import NewtonLearner
from kons.losses import Logistic, Loss, Squared, SquaredHinge
from kons.scaling import median_bandwidth, sampled_rows
from kons.streams import column_names, read_table
from kons.streams.wording import listed
from kons.theory import RegretCertificate, certify

__all__ = ["start"]

EXACT_UP_TO = 2000  # rows; the best function in hindsight costs rows^3 up to here
MOST_FOR_EXACT = 20_000  # rows for which exact KONS's rows^2/2 numbers fit in memory
LONG = 10_000  # rows from which a user should know that it can take long
MAX_ATOMS = 200
LOSSES: dict[LossName, Loss] = {
    "squared": Squared(),
    "logistic": Logistic(),
    "squared-hinge": SquaredHinge(),
}


@dataclass(frozen=True)
class Outcome:
    """The certificate, and all that was chosen on the way to it."""

    file: Path
    asked: Certifying
    data: Prepared
    learner: NewtonLearner
    bandwidth: float
    sampled: int
    """Rows whose median distance the bandwidth is; 0 if it was given."""
    certificate: RegretCertificate

    @property
    def is_exact(self) -> bool:
        """Whether the best function in hindsight was looked for among all functions."""
        return self.certificate.rows <= EXACT_UP_TO

    @property
    def idle_loss(self) -> float:
        """What always predicting 0, the middle, would have lost."""
        return float(np.sum(self.learner.loss.value(np.zeros_like(self.data.y), self.data.y)))


def start(file: Path, asked: Certifying, *, json: bool, quiet: bool) -> int:
    """Certify and say what was found; returns the exit code."""
    with notices(quiet=quiet) as console:
        outcome = _run(file, asked, console, quiet=quiet)
    if json:
        print_json(_document(outcome))
    else:
        _print(outcome)
    if not outcome.certificate.holds:
        return fail("the bound does not hold for this run: an assumption is broken.")
    return 0


def _run(file: Path, asked: Certifying, console: Console, *, quiet: bool) -> Outcome:
    """Read, scale, certify, and save the picture if one is asked for; nothing is written before the end."""
    if asked.picture is not None:
        require_picture(asked.picture, force=asked.force)
    if asked.max_atoms is not None and asked.learner != "embedded":
        raise ConfigurationError(f"--max-atoms is for --learner embedded, not {asked.learner}.")
    if asked.target is None:
        raise ConfigurationError(
            f"--target is missing: which column of {file} is to be predicted? "
            f"There are {listed(column_names(file))}."
        )
    with progress_bar(console, quiet=quiet) as bar:
        task = bar.add_task(f"reading {file.name}", total=None, facts="")
        table = read_table(
            file,
            asked.target,
            drop=asked.drop or (),
            rows=asked.rows,
            tell=lambda rows: bar.update(task, facts=f"{rows:,} rows"),
        )
        if asked.learner == "kons" and len(table) > MOST_FOR_EXACT:
            raise ConfigurationError(
                f"exact KONS keeps rows^2/2 numbers, and {file} has {len(table):,} rows: "
                f"use --rows {MOST_FOR_EXACT}, or --learner embedded."
            )
        if len(table) > LONG:
            announce(
                f"{len(table):,} rows: the best function in hindsight may take minutes; "
                "--rows looks at the first ones only."
            )
        data = prepare(table, asked.loss)
        bandwidth, sampled = asked.bandwidth or median_bandwidth(data.X), sampled_rows(len(data.X))
        if asked.bandwidth:
            sampled = 0
        learner = _learner(asked, LOSSES[data.loss], bandwidth)
        bar.update(task, total=1, completed=1, visible=False)
        bar.add_task("learning, then the best in hindsight", total=None, facts=f"{len(table):,} rows")
        certificate = certify(learner, data.X, data.y, exact_up_to=EXACT_UP_TO)
    outcome = Outcome(file, asked, data, learner, bandwidth, sampled, certificate)
    if asked.picture is not None:
        from matplotlib.figure import Figure  # a figure of its own: no window system is asked for

        figure = Figure(figsize=(7, 4.2), layout="constrained")
        certificate.plot(figure.subplots())
        save_picture(figure, asked.picture, force=asked.force)
    return outcome


def _document(outcome: Outcome) -> dict[str, Any]:
    """What JSON can hold: the certificate's numbers, and ``settings``."""
    asked, data = outcome.asked, outcome.data
    return {
        **outcome.certificate.to_dict(),
        "hindsight_exact": outcome.is_exact,
        "idle_loss": outcome.idle_loss,
        "plain_words": {name.strip(): meaning for name, _, meaning in outcome.certificate.lines()},
        "in_target_units": {name: value for name, value, _ in _in_plain_units(outcome)},
        "settings": {
            "file": str(outcome.file),
            "target": data.target,
            "task": "regression" if data.labels is None else "classification",
            "loss": data.loss,
            "learner": asked.learner,
            "kernel": "gaussian",
            "bandwidth": outcome.bandwidth,
            "bandwidth_from_rows": outcome.sampled,
            "bound": BOUND,
            "regularization": asked.regularization,
            "max_atoms": outcome.learner.max_atoms,
            "atoms": _atoms(outcome),
            "seed": asked.seed,
            "features": list(data.features),
            "feature_medians": data.medians.tolist(),
            "feature_spreads": data.spreads.tolist(),
            "constant_features_left_out": list(data.constant),
            "target_middle": data.middle,
            "target_reach": data.reach,
            "labels": None if data.labels is None else list(data.labels),
            "picture": None if asked.picture is None else str(asked.picture),
        },
    }


def _print(outcome: Outcome) -> None:
    """The certificate for people, on standard output."""
    sheet, asked, certificate = Sheet(), outcome.asked, outcome.certificate
    sheet.say()
    sheet.say(("Regret certificate", "bold"), f" for {outcome.file}, predicting {outcome.data.target!r}: ",
              f"{certificate.rows:,} rows.\n")  # fmt: skip
    sheet.say("They were all read first, since the bound must hold every target:")
    sheet.table("nt", _told(outcome), indent=2)
    sheet.say()
    bound = "bold green" if certificate.holds else "bold red"
    rows: list[tuple[Cell, ...]] = [
        (name, (_short(value), bound if name == "bound on your loss" else ""), meaning)
        for name, value, meaning in certificate.lines()
    ]
    rows.append(("", "", ""))
    rows += [(name, _short(value), meaning) for name, value, meaning in _in_plain_units(outcome)]
    sheet.table("nvd", rows, ("figure", "value", "what it means"))
    for remark in _remarks(outcome):
        sheet.say("\n" + remark)
    if asked.picture is not None:
        sheet.say(f"\nPicture: {asked.picture}")
    sheet.say()


def _told(outcome: Outcome) -> list[tuple[str, str]]:
    """What was done with the file, in words."""
    data, asked = outcome.data, outcome.asked
    count = len(data.features)
    told = [("features", f"{count:,} column{'s' * (count > 1)}, to median 0 and interquartile range 1")]
    if data.rare:
        told.append(("", f"by the standard deviation, since most values are the same: {listed(data.rare)}"))
    if data.constant:
        told.append(("left out", f"{listed(data.constant)}: the same value in every row"))
    if data.labels is None:
        told.append(
            ("target", f"({data.target} - {data.middle:g})/{data.reach:g}, so that all lie in [-1, 1]")
        )
    else:
        low, high = data.labels
        why = "" if asked.loss else ": just two values (else: --loss squared)"
        told.append(("target", f"{low:g} as -1, {high:g} as +1{why}"))
    origin = "as given"
    if outcome.sampled:
        origin = f"median distance of {outcome.sampled:,} rows (--bandwidth)"
    told += [
        ("kernel", f"Gaussian, bandwidth {outcome.bandwidth:.4g}: {origin}"),
        ("learner", f"{_described(outcome)}, regularization {asked.regularization:g}"),
        ("loss", f"{data.loss}, predictions within [-{BOUND:g}, {BOUND:g}]"),
    ]
    return told


def _described(outcome: Outcome) -> str:
    learner = outcome.learner
    if isinstance(learner, EmbeddedKONS):
        return f"embedded, {_atoms(outcome)} of at most {learner.max_atoms} atoms, gradient, carry"
    if isinstance(learner, SketchedKONS):
        return f"sketched, {_atoms(outcome):,} points inside, seed {learner.seed}"
    return "exact KONS"


def _short(value: float | str) -> str:
    """Four digits are enough for people; thousands whole."""
    try:
        number = float(value)
    except ValueError:
        return str(value)
    return f"{number:,.0f}" if 1000.0 <= abs(number) < 1e12 else f"{number:.4g}"


def _in_plain_units(outcome: Outcome) -> list[tuple[str, float, str]]:
    """(name, number, meaning) of the same losses in the target's own units, or as probabilities."""
    data, certificate, rows = outcome.data, outcome.certificate, outcome.certificate.rows
    losses = certificate.cumulative_loss, certificate.hindsight_loss, certificate.loss_bound
    if data.labels is None:
        errors = [data.reach * math.sqrt(max(loss, 0.0) / rows) for loss in (*losses, outcome.idle_loss)]
        meanings = (
            f"in units of {data.target}: root of the mean square",
            "the same for the best fixed function",
            "the same for the bound: it cannot be more",
            f"the same for always guessing {data.middle:g}",
        )
        names = ("your error", "best error", "error at most", "error of the middle")
        return list(zip(names, errors, meanings, strict=True))
    predictions = certificate.trace["prediction"]
    wrong = 100.0 * float(np.mean(np.where(predictions > 0.0, 1.0, -1.0) != data.y))
    rarer = 100.0 * min(float(np.mean(data.y > 0.0)), float(np.mean(data.y < 0.0)))
    plain = [
        ("wrong labels", wrong, "percent of the rows, by the prediction's sign"),
        ("the rarer label", rarer, "percent, wrong if you always guess the other"),
    ]
    if data.loss == "logistic":
        sure = [math.exp(-loss / rows) for loss in losses]
        plain += [
            ("your confidence", sure[0], "typical probability given to the right label"),
            ("best confidence", sure[1], "the same for the best fixed function"),
            ("confidence at least", sure[2], "the same for the bound: it cannot be less"),
        ]
    return plain


def _remarks(outcome: Outcome) -> list[str]:
    certificate = outcome.certificate
    remarks = []
    if outcome.data.labels is None:
        remarks.append(
            f"Losses are sums of squares of the scaled target; times {outcome.data.reach:g}^2 they are "
            f"in squared units of {outcome.data.target}."
        )
    if not outcome.is_exact:
        remarks.append(
            f"More than {EXACT_UP_TO:,} rows: the best function in hindsight was looked for in the span of "
            "a dictionary. The bound holds all the same; the best of all functions may lose a little less. "
            "The effective dimension is an upper estimate."
        )
    if certificate.regret < 0.0:
        remarks.append(
            "The regret is negative: your run lost less than the best fixed function, against which its "
            "size counts as well (the ridge)."
        )
    if certificate.hindsight_gap > 0.01:
        remarks.append(
            f"The best in hindsight is known to {certificate.hindsight_gap:.2g} (loss and ridge together)."
        )
    if certificate.loss_bound >= outcome.idle_loss:
        remarks.append(
            f"The bound promises little here: always predicting the middle loses {outcome.idle_loss:.6g}. "
            "More rows make it tighter; so do fewer dimensions (a larger --bandwidth, --drop)."
        )
    return remarks


def _atoms(outcome: Outcome) -> int:
    return int(outcome.certificate.trace["size"][-1])


def _learner(asked: Certifying, loss: Loss, bandwidth: float) -> NewtonLearner:
    kernel = Gaussian(bandwidth)
    shared: dict[str, Any] = {"bound": BOUND, "regularization": asked.regularization}
    if asked.learner == "kons":
        return KONS(kernel, loss, **shared)
    if asked.learner == "sketched":
        return SketchedKONS(kernel, loss, seed=asked.seed, **shared)
    atoms = MAX_ATOMS if asked.max_atoms is None else asked.max_atoms
    return EmbeddedKONS(kernel, loss, max_atoms=atoms, seed=asked.seed, **shared)
