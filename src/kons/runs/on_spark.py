"""A learner per key over the files of a folder, on Spark: ``kons run --engine spark``.

::

    run.json          what was asked, and how the files are read
    checkpoint/       Spark's: how far the files are learned, and the state of all keys
    predictions/      Parquet, a folder for each micro-batch
    model.kons        at the end, a kons.Keyed; models/ with one for each bucket if it were larger than WHOLE
    summary.json      at the end

The folder is a query of Spark's that is started again after whatever stopped it, and goes on where it was;
files that have come since are learned, too.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from heapq import nlargest
from pathlib import Path
from typing import Any

import numpy as np

from kons.arrays import require_integer
from kons.compilation import wall_clock
from kons.errors import (
    ConfigurationError,
    FileError,
    InputError,
    KonsError,
    MissingExtraError,
    announce,
    as_word,
)
from kons.evaluation.result import LOSS_NAMES
from kons.files import from_bytes, save, to_bytes, write_bytes
from kons.keyed import Keyed, KeySummary
from kons.runs.circumstances import versions
from kons.runs.folder import MODEL, RUN, SUMMARY, read_json
from kons.runs.settings import Settings
from kons.runs.summary import finite
from kons.streams import Plan, Stream
from kons.streams.chunks import converted
from kons.streams.opening import reader_of
from kons.streams.text import TextReader

__all__ = ["SPARK", "Machines", "is_on_spark", "resume", "start"]

#: The kind of such a folder.
SPARK = "spark"
CHECKPOINT, PREDICTIONS, MODELS = "checkpoint", "predictions", "models"
#: Bytes of records up to which all learners are one file, which is in memory once while it is written.
WHOLE = 1 << 30
#: Rows whose labels say whether all are whole numbers.
LOOKED = 1000
#: Keys that are named, and reasons of rows that were not learned.
WORST, REASONS = 20, 20
ENDINGS = {".csv": "csv", ".tsv": "csv", ".txt": "csv", ".parquet": "parquet", ".pq": "parquet"}
#: Ways of packing that Spark unpacks by the ending of a name.
PACKED = (".gz", ".bz2", ".zst", ".lz4")
# What counts rows over all keys, or is known of a run in one process only.
ALONE = ("model", "shuffle", "rows", "id", "events", "fail_on", "no_target", "positive")
READ_OTHERWISE = ("lag", "horizon", "missing", "on_bad_row", "format")
# How Python names an error of ours at the end of a trace.
OURS = re.compile(r"kons\.errors\.\w+: (.+)")


@dataclass(frozen=True)
class Machines:
    """Where, and in what portions."""

    master: str | None = None
    """Of Spark; by its own settings if not given, else all cores of this machine."""
    buckets: int | None = None
    """Of keys: see :func:`kons.spark.keyed`."""
    files_per_batch: int | None = None
    """All files are one micro-batch if not given."""

    def __post_init__(self) -> None:
        for name in ("buckets", "files_per_batch"):
            if (value := getattr(self, name)) is not None:
                require_integer(value, name, at_least=1)


def is_on_spark(folder: Path) -> bool:
    """Whether the run in a folder is one of these."""
    return (folder / RUN).is_file() and read_json(folder, RUN).get("kind") == SPARK


def start(
    settings: Settings, machines: Machines, out: Path | None, *, force: bool, command: Sequence[str] = ()
) -> dict[str, Any]:
    """Look at the files, make the folder, run; returns the summary."""
    _require_alone(settings)
    if out is None:
        raise ConfigurationError("engine spark writes a folder: say which (out).")
    _require_place(out, force=force)
    folder, names, kind = _files(settings.source)
    reading = settings.reading | {"format": "tsv" if kind == "csv" and names[0].endswith(".tsv") else kind}
    first = replace(settings, source=str(folder / names[0]), reading=reading)
    stream = first.open(quiet=False)
    plan = _plan(stream)
    labels = converted(stream.reader.look(LOOKED)[str(plan.target)], plan.target_column)[0]
    whole = isinstance(labels, np.ndarray) and bool((labels == np.floor(labels))[~np.isnan(labels)].all())
    document = {
        "format": 1,
        "kind": SPARK,
        "command": list(command),
        "settings": settings.to_dict(),
        "machines": vars(machines),
        "source": {"name": settings.source},
        "plan": plan.to_dict(),
        "made": b64encode(to_bytes(settings.make_learner(stream).learner)).decode("ascii"),
        "whole_labels": plan.task == "classification" and plan.target_kind == "number" and whole,
        "features": [column.name for column in plan.columns],
        "target": plan.target,
        "versions": versions(),
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "started_in": os.getcwd(),
    }
    _require_spark()
    return _go(settings, machines, out, document, new=True)


def resume(folder: Path) -> dict[str, Any]:
    """Go on: after a failure, or with files that have come since."""
    told = read_json(folder, RUN)
    try:
        settings = Settings.from_dict(told["settings"]).found_from(told.get("started_in"))
        machines = Machines(**told["machines"])
    except (KeyError, TypeError) as error:
        raise FileError(f"{folder / RUN} is not as a run has written it ({error}).") from None
    _require_spark()
    return _go(settings, machines, folder, told, new=False)


def _go(
    settings: Settings, machines: Machines, out: Path, document: dict[str, Any], *, new: bool
) -> dict[str, Any]:
    """The query, to the end of its files; of a new one the folder is made, once Spark is there."""
    try:
        plan, whole = Plan.from_dict(document["plan"]), bool(document["whole_labels"])
        learner = from_bytes(b64decode(document["made"]))
    except (KeyError, TypeError, ValueError) as error:
        raise FileError(f"{out / RUN} is not as a run has written it ({error}).") from None
    from pyspark.sql import functions as F  # noqa: N812 - its usual name

    from kons.spark import keyed, learners_in, write_once
    from kons.spark.files import BROKEN, PLACE, planned, raw_csv, raw_parquet
    from kons.spark.session import quoted, session

    started, place = wall_clock(), out.absolute()  # Spark has a folder of its own that it is in
    folder, names, kind = _files(settings.source)
    asked = {name: value for name, value in settings.reading.items() if name in READS}
    first = _alike(folder, names, plan, asked)
    key, target, time_ = str(settings.key), str(plan.target), str(plan.time)
    features = [column.name for column in plan.columns if column.name != key]
    with session(machines.master, "kons run") as spark, _told(out):
        if kind == "csv":
            told = _csv_options(first, asked)
            raw = raw_csv(spark, folder, names, list(first.columns), told, machines.files_per_batch)
        else:
            raw = raw_parquet(spark, folder, names, machines.files_per_batch)
        rows = planned(raw, plan, whole=whole).withColumn(PLACE, F.col(quoted(time_)))
        answer = keyed(
            rows,
            key=key,
            target=target,
            order=PLACE,
            learner=learner,
            features=features,
            buckets=machines.buckets,
        )
        skipped = F.when(F.col(quoted(BROKEN)).isNotNull(), F.lit("broken line")).otherwise(F.col("skipped"))
        answer = answer.withColumn("skipped", skipped).drop(PLACE, BROKEN)
        if new:
            _make(out, document)
        query = (
            answer.writeStream.foreachBatch(write_once(str(place / PREDICTIONS)))
            .option("checkpointLocation", str(place / CHECKPOINT))
            .trigger(availableNow=True)
            .start()
        )
        try:
            query.awaitTermination()
        finally:
            query.stop()
        said = spark.read.parquet(str(place / PREDICTIONS)).groupBy("skipped").count()
        counts = {row["skipped"]: row["count"] for row in said.collect()}
        found = _save(learners_in(spark, str(place / CHECKPOINT)), out, plan, settings)
    summary = _summary(found, counts, plan, settings, wall_clock() - started)
    _write_json(out / SUMMARY, summary)
    return summary


# ---- the files

#: Arguments of a reader that also hold for the files behind the first.
READS = ("na_values", "header", "delimiter", "encoding")


def _files(source: str) -> tuple[Path, list[str], str]:
    """The folder, the names of its files, and whether they are CSV or Parquet."""
    path = Path(source)
    if source == "-" or not path.exists():
        name = "standard input" if source == "-" else source
        raise InputError(f"{name} is no file or folder that all machines of Spark can read.")
    names = [path.name]
    folder = path.absolute().parent
    if path.is_dir():
        folder = path.absolute()
        names = sorted(n for n in os.listdir(path) if n[0] not in "._" and (path / n).is_file())
    if not names:
        raise InputError(f"{source} holds no files.")
    kinds: dict[str, str] = {}
    for name in names:
        bare = Path(Path(name).stem) if name.endswith(PACKED) else Path(name)
        kind = ENDINGS.get(bare.suffix.lower())
        if kind is None:
            raise InputError(f"{folder / name}: Spark reads CSV and Parquet here, by the ending of the name.")
        kinds.setdefault(kind, name)
    if len(kinds) > 1:
        raise InputError(f"{source} holds {kinds['csv']} and {kinds['parquet']}: give files of one kind.")
    return folder, names, next(iter(kinds))


def _plan(stream: Stream) -> Plan:
    """How the files are read; the column of time is there even where it is no feature."""
    plan = stream.plan
    if isinstance(stream.reader, TextReader) and stream.reader.delimiter == " ":
        raise InputError(f"{stream.source}: fields between runs of spaces are not what Spark reads: use CSV.")
    if len(plan.targets) > 1:
        raise ConfigurationError("engine spark predicts one target: make a run for each.")
    column = next(c for c in plan.read() if c.name == plan.time)
    if column.kind not in ("number", "date"):
        raise ConfigurationError(
            f"time {plan.time!r} holds text, expected numbers or dates to sort the rows of a key by."
        )
    if plan.late:
        names = ", ".join(column.name for column in plan.late)
        raise ConfigurationError(
            f"columns without a value in the first rows have no kind yet: name them with drop ({names})."
        )
    return plan


def _alike(folder: Path, names: list[str], plan: Plan, asked: dict[str, Any]) -> Any:
    """The reader of the first file; refuse one whose columns are others."""
    first, opened = None, {name: value for name, value in asked.items() if name != "na_values"}
    for name in names:
        reader = reader_of(str(folder / name), known=True, **opened)
        if first is None:
            first = reader
        elif list(reader.columns) != list(first.columns):
            raise InputError(
                f"{reader.name} has the columns {', '.join(reader.columns)}, and {first.name} has "
                f"{', '.join(first.columns)}: give files with the same columns in the same order."
            )
    assert first is not None
    if missing := [column.name for column in plan.read() if column.name not in first.columns]:
        raise InputError(f"{first.name} has no column {missing[0]!r}: it has {', '.join(first.columns)}.")
    return first


def _csv_options(reader: Any, asked: dict[str, Any]) -> dict[str, Any]:
    return {
        "sep": reader.delimiter,
        "header": str(reader.has_header).lower(),
        "encoding": asked.get("encoding") or "UTF-8",
    }


# ---- what is refused


def _require_alone(settings: Settings) -> None:
    if settings.key is None:
        raise ConfigurationError("engine spark has a learner for each key: say which column it is (key).")
    defaults = Settings("", key="k")
    taken = [name for name in ALONE if getattr(settings, name) != getattr(defaults, name)]
    taken += [name for name in READ_OTHERWISE if name in settings.reading]
    if taken:
        raise ConfigurationError(f"engine spark goes with no {taken[0].replace('_', '-')}: leave it out.")
    if settings.reading.get("time") is None:
        raise ConfigurationError(
            "engine spark sorts the rows of a key by a column: say which (time); files have no order."
        )


def _require_spark() -> None:
    try:
        import kons.spark  # noqa: F401
    except MissingExtraError:
        raise MissingExtraError("--engine spark", "spark") from None
    home = os.environ.get("JAVA_HOME")
    if not shutil.which("java") and not (home and Path(home, "bin", "java").exists()):
        raise ConfigurationError(
            "engine spark needs Java 17 or newer, and there is none on the PATH nor in JAVA_HOME: install it."
        )


@contextmanager
def _told(out: Path) -> Iterator[None]:
    """What Spark raises, in a sentence: ours, which came through two processes, or its own first line."""
    from kons.spark.session import line_of

    try:
        yield
    except KonsError:
        raise
    except KeyboardInterrupt:
        announce(f"Continue with: kons resume {as_word(out)}")
        raise
    except Exception as error:
        ours = OURS.findall(str(error))
        raise InputError(
            f"{ours[-1] if ours else line_of(error)} Continue with: kons resume {as_word(out)}"
        ) from error


# ---- the folder


def _require_place(out: Path, *, force: bool) -> None:
    """Refuse a folder with anything in it; with ``force`` a run of this kind may be there."""
    if out.exists() and not out.is_dir():
        raise ConfigurationError(f"{out} is a file, expected the name of a folder: choose another one.")
    if out.is_dir() and os.listdir(out) and not (force and is_on_spark(out)):
        goes_on = f"kons resume {as_word(out)} goes on with a run"
        hint = "--force replaces runs of --engine spark only" if force else goes_on
        raise ConfigurationError(f"{out} is not empty: choose another folder; {hint}.")


def _make(out: Path, document: dict[str, Any]) -> None:
    """The folder with run.json, and nothing else of ours."""
    try:
        for name in (SUMMARY, MODEL, RUN):
            (out / name).unlink(missing_ok=True)
        for name in (CHECKPOINT, PREDICTIONS, MODELS):
            shutil.rmtree(out / name, ignore_errors=True)
        out.mkdir(parents=True, exist_ok=True)
        _write_json(out / RUN, document)
    except OSError as error:
        raise FileError(f"{out} cannot be written: {error.strerror or error}.") from error


def _write_json(path: Path, document: dict[str, Any]) -> None:
    text = json.dumps(finite(document), indent=2, allow_nan=False, ensure_ascii=False)
    write_bytes(path, (text + "\n").encode("utf-8", "backslashreplace"))


@dataclass
class _Found:
    """Of all learners."""

    files: str
    keys: int
    points: int
    learned: int
    losses: float
    worst: list[KeySummary]


def _save(buckets: Iterator[Keyed], out: Path, plan: Plan, settings: Settings) -> _Found:
    """Write the learners, as one file if that is not too large."""
    about = {"plan": plan.to_dict(), "learner": settings.learner, "source": settings.source}
    found = _Found(MODEL, 0, 0, 0, 0.0, [])
    held, size, first = [], 0, None
    (out / MODEL).unlink(missing_ok=True)
    shutil.rmtree(out / MODELS, ignore_errors=True)
    for number, bucket in enumerate(buckets):
        first = first or bucket
        told = [bucket.summary(key) for key in bucket.keys]
        found.keys += len(told)
        found.points += bucket.size
        found.learned += sum(one.rows for one in told)
        found.losses += sum(one.rows * one.loss for one in told)
        found.worst = nlargest(WORST, [*found.worst, *bucket.worst(WORST)], key=lambda one: one.loss)
        held.append((number, bucket))
        size += len(bucket.to_bytes())
        if size > WHOLE:
            found.files = f"{MODELS}/"
            (out / MODELS).mkdir(exist_ok=True)
            for at, one in held:
                save(one, out / MODELS / f"{at:06d}.kons", about=about)
            held = []
    if first is None:
        raise InputError("no row had a key: is it the right column, and are the files as the first one?")
    if found.files == MODEL:
        whole = Keyed(first.learner, first.key, live=first.live)
        whole.resume_bytes(b"".join(bucket.to_bytes() for _, bucket in held))
        save(whole, out / MODEL, about=about)
    return found


def _summary(
    found: _Found, counts: dict[str | None, int], plan: Plan, settings: Settings, seconds: float
) -> dict[str, Any]:
    reasons = {str(reason): count for reason, count in counts.items() if reason is not None}
    told = dict(sorted(reasons.items(), key=lambda pair: -pair[1])[:REASONS])
    loss = found.losses / max(found.learned, 1)
    document = {
        "rows": sum(counts.values()),
        "learned": counts.get(None, 0),
        "skipped": told,
        "learner": settings.learner,
        "task": plan.task,
        "target": plan.target,
        "loss": loss,
        "loss_name": LOSS_NAMES[plan.task],
        "atoms": found.points,
        "keys": {"column": settings.key, "count": found.keys, "worst": [k._asdict() for k in found.worst]},
        "files": [f"{PREDICTIONS}/", SUMMARY, found.files],
        "seconds": seconds,
        "settings": settings.to_dict(),
        "versions": versions(),
    }
    plain: dict[str, Any] = finite(document)
    return plain
