"""``kons certify``: how far from the best fixed function a run over a person's own file was, proven."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from kons.arrays import Vector
from kons.cli import fail
from kons.cli.files import require_picture, save_picture
from kons.cli.first_look import BOUND, prepare, read_labelled
from kons.cli.options import Certifying
from kons.cli.screen import Cell, Sheet, notices, print_json, progress_bar
from kons.errors import ConfigurationError, announce
from kons.kernels import Gaussian
from kons.learners import KONS, EmbeddedKONS, SketchedKONS
from kons.learners.newton import NewtonLearner
from kons.losses import Loss
from kons.recipes import LOSSES
from kons.report.numbers import plural
from kons.scaling import median_bandwidth, sampled_rows
from kons.streams import column_names
from kons.streams.wording import listed
from kons.theory import RegretCertificate, certify

__all__ = ["start"]

EXACT_UP_TO = 2000  # rows; the best function in hindsight costs rows^3 up to here
MOST_FOR_EXACT = 20_000  # rows for which exact KONS's rows^2/2 numbers fit in memory
LONG = 10_000  # rows from which a user should know that it can take long
MAX_ATOMS = 200
MEANINGS = {
    "best error": "the same for the best fixed function",
    "error at most": "the same for the bound: it cannot be more",
    "wrong labels": "percent of the rows, by the prediction's sign",
    "the rarer label": "percent, wrong if you always guess the other",
    "your confidence": "typical probability given to the right label",
    "best confidence": "the same for the best fixed function",
    "confidence at least": "the same for the bound: it cannot be less",
}


def start(file: Path, asked: Certifying, *, json: bool, quiet: bool) -> int:
    """Certify and say what was found; returns the exit code."""
    with notices(quiet=quiet) as console:
        certificate, document = _run(file, asked, console, quiet=quiet)
    if json:
        print_json(document)
    else:
        _print(certificate, document, asked)
    if not certificate.holds:
        return fail("the bound does not hold for this run: an assumption is broken.")
    return 0


def _run(
    file: Path, asked: Certifying, console: Console, *, quiet: bool
) -> tuple[RegretCertificate, dict[str, Any]]:
    """Read, scale, certify, and save the picture if one is asked for; nothing is written before the end.

    Returns the certificate, and what JSON can hold: its numbers, and the settings.
    """
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
        table, names = read_labelled(
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
        X, y, chosen = prepare(table, asked.loss)
        if names is not None and chosen["labels"] is not None:
            chosen["labels"] = names
        bandwidth = asked.bandwidth or median_bandwidth(X)
        learner = _learner(asked, LOSSES[chosen["loss"].replace("-", "_")], bandwidth)
        bar.update(task, total=1, completed=1, visible=False)
        bar.add_task("learning, then the best in hindsight", total=None, facts=f"{len(table):,} rows")
        certificate = certify(learner, X, y, exact_up_to=EXACT_UP_TO)
    if asked.picture is not None:
        from matplotlib.figure import Figure  # a figure of its own: no window system is asked for

        figure = Figure(figsize=(7, 4.2), layout="constrained")
        certificate.plot(figure.subplots())
        save_picture(figure, asked.picture, force=asked.force)
    chosen |= {
        "file": str(file),
        "learner": asked.learner,
        "kernel": "gaussian",
        "bandwidth": bandwidth,
        "bandwidth_from_rows": 0 if asked.bandwidth else sampled_rows(len(X)),
        "bound": BOUND,
        "regularization": asked.regularization,
        "max_atoms": learner.max_atoms,
        "atoms": int(certificate.trace["size"][-1]),
        "seed": asked.seed,
        "picture": None if asked.picture is None else str(asked.picture),
    }
    return certificate, _document(certificate, learner.loss, y, chosen)


def _document(
    certificate: RegretCertificate, loss: Loss, y: Vector, chosen: dict[str, Any]
) -> dict[str, Any]:
    idle = float(np.sum(loss.value(np.zeros_like(y), y)))  # of always predicting 0, the middle
    return {
        **certificate.to_dict(),
        # Whether the best function in hindsight was looked for among all functions.
        "hindsight_exact": certificate.rows <= EXACT_UP_TO,
        "idle_loss": idle,
        "plain_words": {name.strip(): meaning for name, _, meaning in certificate.lines()},
        "in_target_units": _in_target_units(certificate, y, chosen, idle),
        "settings": chosen,
    }


def _in_target_units(
    certificate: RegretCertificate, y: Vector, chosen: dict[str, Any], idle: float
) -> dict[str, float]:
    """The same losses in the target's own units, or as probabilities."""
    rows = certificate.rows
    losses = certificate.cumulative_loss, certificate.hindsight_loss, certificate.loss_bound
    if chosen["labels"] is None:
        names = ("your error", "best error", "error at most", "error of the middle")
        means = (max(loss, 0.0) / rows for loss in (*losses, idle))
        return {name: chosen["target_reach"] * math.sqrt(m) for name, m in zip(names, means, strict=True)}
    wrong = np.mean(np.where(certificate.trace["prediction"] > 0.0, 1.0, -1.0) != y)
    rarer = min(np.mean(y > 0.0), np.mean(y < 0.0))
    plain = {"wrong labels": 100.0 * float(wrong), "the rarer label": 100.0 * float(rarer)}
    if chosen["loss"] == "logistic":
        sure = ("your confidence", "best confidence", "confidence at least")
        plain |= {name: math.exp(-loss / rows) for name, loss in zip(sure, losses, strict=True)}
    return plain


def _print(certificate: RegretCertificate, document: dict[str, Any], asked: Certifying) -> None:
    """The certificate for people, on standard output."""
    sheet, chosen = Sheet(), document["settings"]
    sheet.say()
    sheet.say(("Regret certificate", "bold"), f" for {chosen['file']}, predicting {chosen['target']!r}: ",
              f"{certificate.rows:,} rows.\n")  # fmt: skip
    sheet.say("They were all read first, since the bound must hold every target:")
    sheet.table("nt", _told(chosen, asked), indent=2)
    sheet.say()
    bound = "bold green" if certificate.holds else "bold red"
    rows: list[tuple[Cell, ...]] = [
        (name, (value, bound if name == "bound on your loss" else ""), meaning)
        for name, value, meaning in certificate.lines()
    ]
    rows.append(("", "", ""))
    meanings = MEANINGS | {
        "your error": f"in units of {chosen['target']}: root of the mean square",
        "error of the middle": f"the same for always guessing {chosen['target_middle']:g}",
    }
    plain = document["in_target_units"].items()
    rows += [(name, f"{value:,.6g}", meanings[name]) for name, value in plain]
    sheet.table("nvd", rows, ("figure", "value", "what it means"))
    for remark in _remarks(certificate, document):
        sheet.say("\n" + remark)
    if asked.picture is not None:
        sheet.say(f"\nPicture: {asked.picture}")
    sheet.say()


def _told(chosen: dict[str, Any], asked: Certifying) -> list[tuple[str, str]]:
    """What was done with the file, in words."""
    columns = plural(len(chosen["features"]), "column")
    told = [("features", f"{columns}, to median 0 and interquartile range 1")]
    if rare := chosen["features_by_standard_deviation"]:
        told.append(("", f"by the standard deviation, since most values are the same: {listed(rare)}"))
    if constant := chosen["constant_features_left_out"]:
        told.append(("left out", f"{listed(constant)}: the same value in every row"))
    if chosen["labels"] is None:
        middle, reach = chosen["target_middle"], chosen["target_reach"]
        target = f"({chosen['target']} - {middle:g})/{reach:g}, so that all lie in [-1, 1]"
    else:
        low, high = chosen["labels"]
        target = f"{_plain(low)} as -1, {_plain(high)} as +1"
        target += "" if asked.loss else ": just two values (else: --loss squared)"
    sampled = chosen["bandwidth_from_rows"]
    origin = f"median distance of {sampled:,} rows (--bandwidth)" if sampled else "as given"
    learner = {
        "embedded": f"embedded, {chosen['atoms']} of at most {chosen['max_atoms']} atoms, gradient, carry",
        "sketched": f"sketched, {chosen['atoms']:,} points inside, seed {chosen['seed']}",
        "kons": "exact KONS",
    }[asked.learner]
    return [
        *told,
        ("target", target),
        ("kernel", f"Gaussian, bandwidth {chosen['bandwidth']:.4g}: {origin}"),
        ("learner", f"{learner}, regularization {asked.regularization:g}"),
        ("loss", f"{chosen['loss']}, predictions within [-{BOUND:g}, {BOUND:g}]"),
    ]


def _plain(label: Any) -> str:
    return label if isinstance(label, str) else f"{label:g}"


def _remarks(certificate: RegretCertificate, document: dict[str, Any]) -> list[str]:
    chosen, idle, remarks = document["settings"], document["idle_loss"], []
    if chosen["labels"] is None:
        remarks.append(
            f"Losses are sums of squares of the scaled target; times {chosen['target_reach']:g}^2 they are "
            f"in squared units of {chosen['target']}."
        )
    if not document["hindsight_exact"]:
        remarks.append(
            f"More than {EXACT_UP_TO:,} rows: the best function in hindsight was looked for in the span of "
            "a dictionary. The bound holds all the same; the best of all functions may lose a little less. "
            "The effective dimension is an upper estimate."
        )
    if certificate.cumulative_loss < certificate.best_loss:  # what the table calls regret
        remarks.append(
            "The regret is negative: your run lost less than the best fixed function, against which its "
            "size counts as well (the ridge)."
        )
    if certificate.hindsight_gap > 0.01:
        remarks.append(
            f"The best in hindsight is known to {certificate.hindsight_gap:.2g} (loss and ridge together)."
        )
    if certificate.loss_bound >= idle:
        remarks.append(
            f"The bound promises little here: always predicting the middle loses {idle:.6g}. "
            "More rows make it tighter; so do fewer dimensions (a larger --bandwidth, --drop)."
        )
    return remarks


def _learner(asked: Certifying, loss: Loss, bandwidth: float) -> NewtonLearner:
    kernel = Gaussian(bandwidth)
    shared: dict[str, Any] = {"bound": BOUND, "regularization": asked.regularization}
    if asked.learner == "kons":
        return KONS(kernel, loss, **shared)
    if asked.learner == "sketched":
        return SketchedKONS(kernel, loss, seed=asked.seed, **shared)
    atoms = MAX_ATOMS if asked.max_atoms is None else asked.max_atoms
    return EmbeddedKONS(kernel, loss, max_atoms=atoms, seed=asked.seed, **shared)
