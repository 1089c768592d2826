"""What a run comes to, in sentences: the headline, what to try, what is worth knowing."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kons.report.folder import RunFolder, as_number, as_text
from kons.report.history import BASELINES, History
from kons.report.numbers import UNKNOWN, column, count, duration, number, percent, plural

__all__ = [
    "METRICS", "TOO_FEW", "Code", "Command", "Verdict", "baseline_names", "command", "compared",
    "headline", "left_out", "loss_name", "loss_text", "loss_texts", "meaning", "plain", "remark",
    "suggestions", "verdict", "worth_knowing",
]  # fmt: skip

SAME = 0.005  # losses closer than this part are the same to a reader
FEW_ROWS = 500
TOO_FEW = 100  # rows below which a comparison is mostly chance
DEFAULT = "auto"  # the learner of a run that names none
METRICS = {
    "mse": "mean squared error",
    "rmse": "root mean squared error, in the target's units",
    "mae": "mean absolute error",
    "medae": "median absolute error: half of the predictions are nearer",
    "r2": "part of the variance that is explained",
    "error_rate": "wrong labels",
    "log_loss": "mean of -log(probability of the label that came)",
    "auc": "area under the ROC curve",
    "average_precision": "mean precision over the rows of the positive label",
    "f1": "F1 of the positive label: between precision and recall",
    "precision": "of rows predicted to be of the positive label, those that were",
    "recall": "of rows of the positive label, those that were found",
}


class Code(str):
    """A name or a command that stands as it is typed."""

    __slots__ = ()


class Command(Code):
    """A line to type, on a line of its own."""

    __slots__ = ()


def plain(sentence: Sequence[str]) -> str:
    """The sentence as text.

    >>> plain(["Predicts ", Code("price"), "."])
    'Predicts price.'
    """
    return "".join(sentence)


@dataclass(frozen=True)
class Verdict:
    """How the loss compares with the best trivial predictor."""

    loss: float | None
    best: str | None
    """Which baseline is the best; None where none is known."""
    best_loss: float | None

    @property
    def kind(self) -> str:
        """``better``, ``same``, ``worse`` or ``unknown``."""
        if self.loss is None or self.best_loss is None:
            return "unknown"
        if abs(self.loss - self.best_loss) <= SAME * self.best_loss:
            return "same"
        return "better" if self.loss < self.best_loss else "worse"

    @property
    def change(self) -> str:
        """The difference as a part of the baseline's loss: ``41 % less``, ``3.2 times as much``."""
        if self.loss is None or self.best_loss is None:
            return UNKNOWN
        if self.kind == "same":
            return "the same"
        if self.kind == "better":
            return f"{percent(1.0 - self.loss / self.best_loss)} less"
        if self.best_loss == 0.0:
            return "more than nothing"
        ratio = self.loss / self.best_loss
        return f"{percent(ratio - 1.0)} more" if ratio < 2.0 else f"{number(ratio, 2)} times as much"


def baseline_names(task: str) -> dict[str, str]:
    """What the trivial predictors are called on the page."""
    if task == "classification":
        names = "most frequent label", "online logistic", "last label again"
    else:
        names = "mean so far", "online linear", "last value again"
    return dict(zip(BASELINES, names, strict=True))


def loss_name(folder: RunFolder) -> str:
    """``mean squared error`` or ``error rate``."""
    default = "error rate" if folder.task == "classification" else "mean squared error"
    return as_text(folder.summary.get("loss_name") or default)


def loss_text(folder: RunFolder, loss: float | None) -> str:
    """A loss for people: an error rate in percent."""
    return percent(loss, exact=True) if folder.task == "classification" else number(loss)


def loss_texts(folder: RunFolder, losses: Sequence[float | None]) -> list[str]:
    """Losses that stand under each other."""
    if folder.task == "classification":
        return [loss_text(folder, loss) for loss in losses]
    return column(losses, 3, by_least=True)


def meaning(folder: RunFolder, metric: str) -> str:
    """What a metric is, in words; of two labels, the positive one by its name."""
    positive = folder.summary.get("positive")
    words = METRICS.get(metric, metric)
    if positive is None and len(folder.classes) > 2:
        return words.replace(" of the positive label", ", the mean over labels")
    return words.replace(
        "the positive label", "the positive label" if positive is None else repr(as_text(positive))
    )


def is_sorted(folder: RunFolder) -> bool:
    """Whether the rows were found to be in the order of their target."""
    return folder.summary.get("order") in ("ascending", "descending", "blocks")


def verdict(folder: RunFolder) -> Verdict:
    """The loss beside that of the best trivial predictor.

    Where rows are sorted by their target, none is: along the rows the baselines know their order, too.
    """
    losses = {} if is_sorted(folder) else folder.numbers("baselines")
    best = min((name for name in BASELINES if name in losses), key=lambda name: losses[name], default=None)
    return Verdict(folder.number("loss"), best, losses[best] if best else None)


def headline(folder: RunFolder) -> list[str]:
    """One sentence that says whether it works, how well, and what it costs; first, why no figure can."""
    if not folder.rows:
        return ["No row was predicted: ", Code(folder.target), " has no report yet."]
    if folder.summary.get("constant_target"):
        return [Code(folder.target), " is the same in every row: there is nothing to predict."]
    found = verdict(folder)
    if found.loss is None:
        return ["The loss of predicting ", Code(folder.target), " is not a finite number."]
    text = loss_text(folder, found.loss)
    name = loss_name(folder)
    end = compared(folder, found, folder.number("microseconds_per_row"))
    if not is_sorted(folder):
        return ["Predicts ", Code(folder.target), f" with {_article(name)} {name} of {text}", *end]
    order = {"blocks": "come in blocks of the same "}.get(str(folder.summary["order"]), "are sorted by ")
    away = "without last targets, " if folder.summary.get("headline") == "without last targets" else ""
    said = f": a figure along them tells more about the order than about new rows. Predicts, {away}with"
    return ["The rows ", order, Code(folder.target), f"{said} {_article(name)} {name} of {text}", *end]


def compared(folder: RunFolder, found: Verdict, cost: float | None) -> list[str]:
    """The end of a headline: beside the best trivial predictor, and in microseconds a row."""
    words = []
    if found.best is not None:
        trivial = baseline_names(folder.task)[found.best]
        beside = f"the best trivial predictor ({trivial}, {loss_text(folder, found.best_loss)})"
        if found.kind == "same":
            words.append(f", no better than {beside}")
        elif found.best_loss == 0.0:
            words.append(f", while {beside} makes no error at all")
        else:
            than = "than" if not found.change.endswith("much") else "as"
            words.append(f", {found.change} {than} {beside}")
    if cost is not None:
        words.append(f", at {duration(cost * 1e-6)} a row")
    return [*words, "."]


def remark(folder: RunFolder) -> str:
    """What the headline means: is it worth using, and the error in the target's own units."""
    if folder.rows < TOO_FEW:
        return f"{plural(folder.rows, 'row')} {'is' if folder.rows == 1 else 'are'} too few to judge by."
    if folder.summary.get("constant_target"):
        return ""
    found = verdict(folder)
    kind = found.kind
    if kind == "worse":
        return "As it stands, the trivial predictor is the better choice. What to try stands below."
    if kind == "same":
        return "It has not earned its cost yet. What to try stands below."
    if folder.targets:
        return "Each target by itself, in its own units, stands below."
    metrics = folder.numbers("metrics")
    typical, explained = metrics.get("medae"), metrics.get("r2")
    said = []
    if folder.task == "regression" and typical is not None:
        said.append(f"A prediction is typically off by {number(typical)}, in units of {folder.target}")
    if explained is not None and explained > 0.0:
        said.append(f"{percent(explained)} of the target's variance is explained")
    if folder.task == "classification" and "auc" in metrics:
        said.append(f"Area under the ROC curve: {metrics['auc']:.3f}")
    return "; ".join(said) + "." if said else ""


def without_last_targets(folder: RunFolder) -> tuple[float, int] | None:
    """The loss without last targets, and of how many rows; None for a learner that never looks back."""
    found = folder.group("without_last_targets")
    loss, rows = as_number(found.get("loss")), as_number(found.get("rows"))
    return None if loss is None or rows is None else (loss, int(rows))


def suggestions(folder: RunFolder) -> list[list[str]]:
    """What would help on this file; nothing where the learner is better than all that is trivial."""
    asked = [folder.source, "--target", folder.target, *_columns_asked_for(folder)]
    learner = folder.settings.get("learner") or DEFAULT
    chooses = learner == DEFAULT  # it has lags, ridges and linear experts already
    if is_sorted(folder):
        own = [] if chooses else ["--learner", learner]
        again = Command(command("run", *asked, *own, "--shuffle"))
        return [["Take the rows in another order; if theirs is that of time, nothing is wrong: ", again]]
    if folder.summary.get("constant_target"):
        return []
    found = verdict(folder)
    if found.kind not in ("worse", "same"):
        return []
    tried: list[list[str]] = []
    if folder.rows < FEW_ROWS:
        tried.append([f"Give it more rows than {folder.rows:,}: they are few to learn from."])
    if found.best == "constant":
        noise = " is the column you mean, or leave out columns of noise (--drop)."
        tried.append(["The columns may say little about the target. Check that ", Code(folder.target), noise])
    if not chooses:
        said = "Let scale, memory and forgetting be chosen while it learns: "
        tried.append([said, Command(command("run", *asked, "--learner", DEFAULT))])
    elif not tried:
        trivial = baseline_names(folder.task)[found.best or "constant"]
        tried.append(
            [f"Nothing that kons has: {trivial} is what this file allows, or more columns are needed."]
        )
    return tried


def _columns_asked_for(folder: RunFolder) -> list[str]:
    """What the run was told about columns, as it was: what was left out may tell the target."""
    told = {name: folder.settings.get(name) for name in ("columns", "drop", "categorical", "numeric", "id")}
    lists = {name: [value] if isinstance(value, str) else value for name, value in told.items()}
    return [
        f"--{name}={','.join(map(as_text, value))}"
        for name, value in lists.items()
        if value and isinstance(value, list)
    ]


def worth_knowing(folder: RunFolder, history: History) -> list[list[str]]:
    """Facts that change how the figures are read."""
    said: list[list[str]] = []
    if (away := without_last_targets(folder)) is not None:
        name, shown = loss_name(folder), loss_text(folder, away[0])
        along = as_number(folder.group("online").get("loss"))
        places = " from all over it, by the model at its end" if is_sorted(folder) else ""
        said.append(
            [
                f"Without last targets, as kons predict has to do for rows away from the stream, the {name} "
                f"is {shown} ({plural(away[1], 'row')}{places}); along the stream it is "
                f"{loss_text(folder, along)}."
            ]
        )
    values = folder.texts("few_values")
    if values and folder.task == "regression":
        few = f" takes only the values {', '.join(values)}: if these are classes, "
        said.append([Code(folder.target), few, Code("--task classification"), "."])
    if history.unknown:
        rows = plural(history.unknown, "row")
        said.append(
            [f"The loss of {rows} is not a number that can be drawn: the curves leave such rows out."]
        )
    said += [[sentence] for sentence in (*_at_the_end(folder), *_where_worst(folder, history))]
    held, level = folder.number("coverage"), folder.number("interval_level")
    if held is not None and level is not None and abs(held - level) > 0.03:
        meaning = "too narrow: trust them less" if held < level else "wider than they need to be"
        said.append(
            [f"The {percent(level)} intervals held {percent(held)} of the targets: they are {meaning}."]
        )
    atoms, most = folder.number("atoms"), folder.number("max_atoms")
    if atoms is not None and most is not None and atoms >= most:
        full = f"The dictionary is full ({count(atoms)} of at most {count(most)} points). "
        more = Code(f"--set max_atoms={2 * int(most)}")
        gain = "tell rows apart more finely" if "novelty" in folder.summary else "predict better"
        said.append([full, f"More may {gain} and cost more time a row: ", more, "."])
    said += left_out(folder)
    if clipped := int(folder.number("targets_clipped") or 0):
        cut = f"{_was(clipped)} cut off at its ends for learning."
        said.append([f"{plural(clipped, 'target')} lay outside the range seen at first and {cut}"])
    if resumed := int(folder.number("resumed") or 0):
        same = "its predictions are those of an uninterrupted run."
        said.append([f"The run was interrupted and resumed {plural(resumed, 'time')}; {same}"])
    return [*said, *([note] for note in folder.texts("notes"))]


def _at_the_end(folder: RunFolder) -> list[str]:
    """The last rows, exactly as many as the window has, beside the whole run along the stream."""
    window = int(folder.number("window") or 0)
    whole, last = as_number(folder.group("online").get("loss")), folder.numbers("windowed").get("loss")
    if not 0 < window < folder.rows or not whole or last is None or abs(last / whole - 1.0) <= 0.1:
        return []
    compared, reason = "above", "the end is harder, or the stream has changed"
    if last < whole:
        compared, reason = "below", "it is still learning, or the end is easier"
    return [
        f"In the last {plural(window, 'row')} the {loss_name(folder)} was {loss_text(folder, last)}, "
        f"{compared} that of the whole run: {reason}."
    ]


def _where_worst(folder: RunFolder, history: History) -> list[str]:
    rows, values = history.windowed.get("learner", (np.empty(0), np.empty(0)))
    if len(values) < 10:
        return []
    # The start is hard for everybody: only what came after it may be a change.
    late = rows >= max(2 * history.window, history.rows // 5)
    usual, peak = float(np.median(values)), int(np.argmax(np.where(late, values, -np.inf)))
    if not (usual > 0.0 and late.any() and values[peak] > 2.0 * usual):
        return []
    first = max(0, int(rows[peak]) - history.window + 1)
    return [
        f"The loss was worst in rows {count(first)} to {count(rows[peak])}: "
        f"{loss_text(folder, float(values[peak]))}, {number(float(values[peak]) / usual, 2)} times that "
        "of a usual window. Look there for a change in the data."
    ]


def command(*words: Any) -> str:
    """A line to type that calls kons."""
    return shlex.join(["kons", *map(as_text, words)])


def _article(name: str) -> str:
    return "an" if name[:1] in "aeiou" else "a"


def left_out(folder: RunFolder) -> list[list[str]]:
    """How many rows could not be used, if any."""
    skipped = int(folder.number("rows_skipped") or 0)
    return [[f"{plural(skipped, 'row')} could not be read and {_was(skipped)} left out."]] if skipped else []


def _was(value: float) -> str:
    return "was" if value == 1 else "were"
