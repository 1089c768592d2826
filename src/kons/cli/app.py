"""What can be said on the command line: one function a command, its parameters the options.

Commands import what they run inside their bodies: ``kons --help`` must not wait for NumPy or Numba.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cyclopts import App, CycloptsError

from kons import __version__
from kons.cli import USAGE, fail, options
from kons.errors import ConfigurationError

__all__ = ["app", "dispatch"]

app: App = App(
    name="kons",
    help=(
        "Second-order online learning with kernels.\n\n"
        "Your own file: kons run FILE --target COLUMN\n\n"
        "No file at hand: kons demo"
    ),
    version=__version__,
    help_format="plaintext",
)
app.register_install_completion_command()


def dispatch(arguments: Sequence[str]) -> int:
    """Run one command; wrong usage is one line on standard error."""
    global _typed
    _typed = list(arguments)
    tokens = [
        options.DASH if token == "-" and not before.startswith("--") else token
        for before, token in zip(["", *arguments], arguments, strict=False)
    ]
    try:
        command, bound, *_ = app.parse_args(tokens, print_error=False, exit_on_error=False)
    except CycloptsError as error:
        asked = f" {tokens[0]}" if tokens and tokens[0] in app else ""
        return fail(f"{error} Try: kons{asked} --help".replace(options.DASH, "-"), USAGE)
    result = command(*bound.args, **bound.kwargs)
    return result if isinstance(result, int) else 0


_typed: list[str] = []
"""The command line, for the record of a run."""


@app.command(sort_key=1)
def run(
    file: options.Source,
    /,
    *,
    target: options.Target = None,
    no_target: options.Flag = False,
    key: str | None = None,
    model: Path | None = None,
    learner: str = "auto",
    effort: options.Effort = None,
    set: options.Texts = None,
    id: options.Id = None,
    out: Path | None = None,
    events: Path | None = None,
    fail_on: options.Names = None,
    force: options.Flag = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
    evaluating: options.Evaluating = options.Evaluating(),  # noqa: B008 - frozen
    forecasting: options.Forecasting = options.Forecasting(),  # noqa: B008 - frozen
    columns: options.Columns = options.Columns(),  # noqa: B008 - frozen
    reading: options.Reading = options.Reading(),  # noqa: B008 - frozen
    machines: options.Spark = options.Spark(),  # noqa: B008 - frozen
) -> int:
    """Predict a column of your file online: how well, at what cost, and is it better than trivial.

    Predicts each row before learning it, in one pass and constant memory, beside
    the trivial predictors. Reads CSV, TSV, JSON, libsvm and ARFF, packed or not
    (.gz, .bz2, .xz, .zst, .lz4, .zip), Parquet, or standard input as "-".

    For example:

    kons run houses.csv --target price

    kons run houses.csv --target price --set max_atoms=400 --out runs/first

    kons run sorted.csv --target price --shuffle

    kons run tomorrow.csv --model runs/first --out runs/second

    kons run load.csv --target MW --horizon 24h --known-ahead holiday

    kons run sensors.csv --target load --key sensor

    kons run sensors/ --target load --key sensor --time t --engine spark --out runs/sensors

    kons run sensors.csv --no-target --out runs/watch

    tail -f log.csv | kons run - --target status --json

    Parameters
    ----------
    no_target
        Nothing is predicted: how new is each row to those before, which are the most novel, and what
        happened to the columns.
    key
        A column that says whose row it is: each value has a learner of its own, with --effort tiny if none
        is given. The keys that are predicted worst come first.
    model
        Go on with the model of an earlier run, or its folder, which stays as it is: tomorrow's file.
    learner
        One of those that kons learners lists.
    set
        A parameter of the learner: --set max_atoms=100; several times for several.
    out
        A new folder for predictions.csv, summary.json, model.kons, the trace and report.html. The run can
        then be resumed if it is interrupted: kons resume FOLDER.
    events
        A file for what is noticed of columns, target and model, a line of JSON each, always up to date.
    fail_on
        End with exit code 4, all written, if one of these events was noticed: turned,crept,frozen,missing,
        out-of-range,new-level,target-out-of-range,new-class, or alarm for all that are one.
    force
        Let --out replace an earlier run.
    """
    from kons.cli import forecast, run
    from kons.cli.files import find_model
    from kons.cli.values import assignments
    from kons.recipes.tasks import together
    from kons.runs import Settings

    read, chosen = (
        options.asked(columns, reading),
        together({"effort": effort}, assignments(set or ()), "--set"),
    )
    if model is not None and (learner != "auto" or chosen):
        raise ConfigurationError("--model has its own learner: leave out --learner, --effort and --set.")
    goes_on = None if model is None else str(find_model(model))
    noticed = {
        "events": None if events is None else str(events.absolute()),
        "fail_on": [name.replace("-", " ") for name in fail_on or ()],
    }
    chosen_too = {**noticed, **vars(evaluating), "key": key}
    named: dict[str, Any] = {"id": id, "model": goes_on, "reading": read, "no_target": no_target}
    if no_target and forecasting != options.Forecasting():
        raise ConfigurationError("--no-target goes with no --horizon: leave one of them out.")
    settings = Settings(file, target, learner, chosen, **named, **chosen_too)
    told: dict[str, Any] = {"force": force, "json": json, "quiet": quiet, "command": _typed}
    if out is None and force:
        raise ConfigurationError("--force is for --out.")
    if machines.engine == "spark":
        from kons.cli import spark

        if forecasting != options.Forecasting():
            raise ConfigurationError("engine spark goes with no horizon: leave it out.")
        own = spark.Machines(machines.master, machines.buckets, machines.files_per_batch)
        return spark.start(settings, own, out, **told)
    if machines != options.Spark():
        raise ConfigurationError("--master, --buckets and --files-per-batch are for --engine spark.")
    if forecasting.horizon is not None or (goes_on is not None and forecast.is_forecaster(goes_on)):
        if key is not None:
            raise ConfigurationError("--key is not for --horizon: leave one of them out.")
        if events is not None or fail_on:
            raise ConfigurationError("--events and --fail-on are not for --horizon: leave them out.")
        return forecast.start(settings, forecasting, out, **told)
    if forecasting != options.Forecasting():
        raise ConfigurationError("--known-ahead and --season are for --horizon: say how far ahead.")
    return run.start(settings, out, **told)


@app.command(sort_key=2)
def resume(folder: Path, /, *, json: options.Json = False, quiet: options.Quiet = False) -> int:
    """Finish a run that was interrupted, from its last checkpoint on.

    Its file must be unchanged. The predictions are then, byte for byte, those of
    a run that was never interrupted. Of a finished run what is missing is written.

    For example:

    kons resume runs/first

    Parameters
    ----------
    folder
        What --out of kons run was.
    """
    from kons.cli import forecast, run, spark

    resume = forecast.resume if forecast.is_forecast(folder) else run.resume
    resume = spark.resume if spark.is_on_spark(folder) else resume
    return resume(folder, json=json, quiet=quiet)


@app.command(sort_key=3)
def compare(
    file: options.Source,
    /,
    *,
    target: options.Target = None,
    learners: options.Names = None,
    seconds: float | None = None,
    effort: options.Effort = None,
    set: options.Texts = None,
    out: Path | None = None,
    picture: Path | None = None,
    force: options.Flag = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
    evaluating: options.Evaluating = options.Evaluating(),  # noqa: B008 - frozen
    columns: options.Columns = options.Columns(),  # noqa: B008 - frozen
    reading: options.Reading = options.Reading(),  # noqa: B008 - frozen
) -> int:
    """Which learner suits your file? Several in one pass, by loss and by time.

    For example:

    kons compare houses.csv --target price

    kons compare houses.csv --target price --learners auto,embedded,sketched

    kons compare houses.csv --target price --learners embedded,embedded:max_atoms=50

    kons compare houses.csv --target price --learners auto,lightgbm,river_arf

    kons compare houses.csv --target price --learners all --seconds 20

    Parameters
    ----------
    learners
        Names from kons learners: a,b,c; parameters of one behind a colon: embedded:max_atoms=50.
        Models of other libraries, too: lightgbm, river_arf; all are then asked row by row.
        all: every learner there is. Default: auto,embedded.
    seconds
        A learner that would take longer is left out. Default: 60 with --learners all.
    set
        A parameter for all learners that take it: --set bandwidth=2; several times for several.
    out
        A new folder for summary.json and report.html.
    picture
        Where loss against time is drawn: .svg, .png or .pdf. Default: only in the report of --out.
    force
        Let --out and --picture replace what is there.
    """
    from kons.cli import compare
    from kons.cli.values import assignments
    from kons.recipes.tasks import together
    from kons.runs import Settings

    settings = Settings(file, target, reading=options.asked(columns, reading), **vars(evaluating))
    shared = together({"effort": effort}, assignments(set or ()), "--set")
    chosen = compare.contenders(compare.DEFAULT if learners is None else learners, shared)
    return compare.start(
        settings,
        chosen,
        out,
        drawn=picture,
        seconds=compare.seconds_for(learners, seconds),
        force=force,
        json=json,
        quiet=quiet,
        command=_typed,
    )


@app.command(sort_key=4)
def predict(
    model: options.Model,
    file: options.Source | None = None,
    /,
    *,
    out: Path | None = None,
    id: options.Id = None,
    continue_: options.Continue = False,
    explain: options.Flag = False,
    level: float | None = None,
    force: options.Flag = False,
    quiet: options.Flag = False,
    reading: options.Reading = options.Reading(),  # noqa: B008 - frozen
) -> int:
    """Predict the rows of another file with the model of a run.

    Its columns are read as those that the model learned from; the target may be
    absent, or empty in some rows. Prints CSV, a line for every row, whatever can be
    read of it: line,prediction and, for classes, p_<class>, the probability of
    each. Where targets are there, how good the predictions are is told on standard
    error.

    For example:

    kons predict runs/first/model.kons new.csv --out predicted.csv

    kons predict runs/load --continue

    The second goes on from the last row of a forecast (kons run --horizon); a
    file, if there is one, has the columns known ahead.

    Parameters
    ----------
    out
        Where to write the CSV. Default: standard output.
    explain
        Say why: what is predicted for a typical row, and because_<column>, what each column adds to that,
        for classes to the log-odds of the predicted one. Some milliseconds a row.
    level
        Say how sure each prediction is, such as 0.9: columns lower and upper hold the target in that part of
        the rows, empty where too little is known; of classes, the column set has the labels.
    force
        Let --out replace a file.
    quiet
        No notices.
    """
    from kons.cli import forecast, predict
    from kons.cli.files import find_model

    asked = options.asked(reading)
    told: Any = {"force": force, "quiet": quiet}
    if forecast.is_forecaster(find_model(model)):
        if explain:
            raise ConfigurationError("--explain is not for a forecaster: leave it out.")
        told |= {"level": level}
        return forecast.write(model, file, out, id=id, recent=continue_, reading=asked, **told)
    if file is None:
        raise ConfigurationError("FILE is missing: which rows are to be predicted?")
    told |= {"explain": explain, "level": level}
    return predict.write(model, file, out, id=id, recent=continue_, reading=asked, **told)


@app.command(sort_key=4.5)
def score(
    model: options.Model,
    file: options.Source,
    /,
    *,
    continue_: options.Continue = False,
    positive: str | None = None,
    json: options.Json = False,
    quiet: options.Flag = False,
    reading: options.Reading = options.Reading(),  # noqa: B008 - frozen
) -> int:
    """Say how good the model of a run is on rows that it has not learned.

    Predicts the rows of a file as kons predict does, and compares with its
    target; rows without one are left out.

    For example:

    kons score runs/first/model.kons held_out.csv

    Parameters
    ----------
    positive
        Of two labels, the one that F1, precision and recall are about. Default: the rarer one.
    quiet
        No notices.
    """
    from kons.cli import score

    asked = options.asked(reading)
    return score.show(model, file, recent=continue_, positive=positive, reading=asked, json=json, quiet=quiet)


@app.command(sort_key=4.7)
def serve(
    *,
    dir: Path,
    model: Path | None = None,
    target: options.Target = None,
    key: str | None = None,
    learner: str | None = None,
    set: options.Texts = None,
    host: str = "127.0.0.1",
    port: options.Natural = 8000,
    quiet: options.Quiet = False,
    learning: options.Learning = options.Learning(),  # noqa: B008 - frozen
    serving: options.Serving = options.Serving(),  # noqa: B008 - frozen
) -> int:
    """Serve a model that learns from what it is told, and is the same after a crash.

    Rows are predicted over HTTP, their labels come by identifier whenever they come. What was answered is on
    the disk. The same folder goes on where it stopped. The page http://127.0.0.1:8000/ shows how it is doing.

    For example:

    kons serve --dir houses --target price

    kons serve --dir houses --model runs/first

    Parameters
    ----------
    dir
        The folder of the service: a new one, or one to go on with.
    model
        Begin with the model of a run, or its folder.
    key
        A learner for each value of this column, as kons run --key; idle ones are parked in DIR.
    learner
        Begin with nothing: one of those that kons learners lists. Default: auto.
    set
        A parameter of the learner: --set max_atoms=100; several times for several.
    host
        The address to listen at. Others than loopback need a token.
    port
        0: one that is free, which is printed.
    """
    from dataclasses import asdict

    from kons.cli import serve
    from kons.cli.values import assignments

    asked = {"target": target, "key": key, "learner": learner, **asdict(learning)}
    asked["parameters"] = assignments(set or ())
    return serve.start(dir, model, asked, host=host, port=port, quiet=quiet, **asdict(serving))


@app.command(sort_key=4.8)
def replay(dir: Path, /, *, out: Path, force: options.Flag = False) -> int:
    """Write the model of a stopped service, made of its log: the same bytes as it had.

    For example:

    kons replay houses --out model.kons

    Parameters
    ----------
    dir
        What --dir of kons serve was.
    out
        The file to write.
    force
        Let --out replace a file.
    """
    from kons.cli import serve

    return serve.replayed(dir, out, force=force)


@app.command(sort_key=5)
def inspect(model: options.Model, /, *, json: options.Json = False) -> int:
    """What is in the file of a model: what it learned, from what, and how.

    For example:

    kons inspect runs/first/model.kons
    """
    from kons.cli import inspect

    return inspect.show(model, json=json)


@app.command(sort_key=6)
def report(folder: Path, /, *, quiet: options.Flag = False) -> int:
    """Write report.html of a finished run, or of a comparison, from its files: one page to forward.

    For example:

    kons report runs/first

    Parameters
    ----------
    folder
        What --out of kons run or kons compare was.
    quiet
        Do not print where it is.
    """
    from kons.cli import run

    return run.report(folder, quiet=quiet)


@app.command(sort_key=7)
def learners(*, json: options.Json = False) -> int:
    """The learners there are, a line each, and what --set takes for them."""
    from kons.cli import learners

    return learners.show(json=json)


@app.command(sort_key=8)
def demo(
    *,
    theory: bool = False,
    rows: options.FewRows = 5000,
    seed: options.Natural = 0,
    out: Path | None = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Run the default learner along an untidy table made on the spot, beside the trivial baselines.

    Parameters
    ----------
    theory
        Instead: exact KONS on a chaotic series, and the quantities of its regret bound.
    rows
        How many rows to predict and learn, 10 to 20000. Exact KONS keeps rows^2/2 numbers.
    seed
        Of the table, or which stretch of the series.
    out
        The folder for the table and the run; kons-demo, which is written over, if none is named.
    """
    if theory:
        from kons.cli import theory_demo

        if out is not None:
            raise ConfigurationError("--out is not for --theory, which writes nothing.")
        return theory_demo.start(rows, seed, json=json, quiet=quiet)
    from kons.cli import demo

    return demo.start(rows, seed, out, json=json, quiet=quiet)


@app.command(sort_key=9)
def certify(
    file: Path,
    /,
    *,
    certifying: options.Certifying = options.Certifying(),  # noqa: B008 - frozen
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """How far from the best fixed function is a learner on your file? With a bound proven for the run.

    Reads a file as kons run does, scales it, predicts each row before learning it,
    and compares with the best function in hindsight.

    For example:

    kons certify houses.csv --target price

    kons certify houses.csv --target price --drop id,agent --picture certificate.svg

    Parameters
    ----------
    file
        The file.
    """
    from kons.cli import certify

    return certify.start(file, certifying, json=json, quiet=quiet)
