"""How well are the next 24 hours forecast, beside the same hour yesterday and LightGBM?

Hourly series on a grid of time: of doubled stamps the last row, a missing hour is not scored. Known ahead are
the calendar and holidays, by their names where the file has them; weather is that of the origin. Scored are
origins from row 1,000 on, horizons 1 to 24 together. LightGBM: one model a horizon with its defaults on one
thread, on the calendar and the holiday (a category) of the predicted hour, the weather at the origin, y(t),
y(t-1), y(t+h-24) and y(t+h-168), fitted again whenever 10 % more rows have come.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from benchmarks.measuring import blas_threads
from benchmarks.reporting import Figure, Report, at_most
from benchmarks.settings import Settings
from kons import Forecaster

HORIZON, UNSCORED, QUICK = 24, 1000, 2500
# Its column of the calendar.
HOLIDAY = 5


class Series(NamedTuple):
    """Of every hour from the first to the last: NaN where nothing came."""

    hours: Any
    y: np.ndarray
    holiday: np.ndarray
    """Names, empty on other days."""
    weather: np.ndarray


def run(settings: Settings) -> Report:
    table, figures, notes = [], [], []
    for name, read in (("bike_hourly", bike_hourly), ("metro_traffic", metro_traffic)):
        series = read(settings)
        if series is None:
            notes.append(f"{name}: no file, skipped.")
            continue
        if settings.quick:
            series = Series(*(part[:QUICK] for part in series))
        Y = np.stack([_lag(series.y, -h) for h in range(1, HORIZON + 1)], axis=1)
        with blas_threads(1):
            ours, seconds = forecast(series)
            theirs, theirs_seconds = ({}, 0.0) if settings.quick else light_gbm(series)
        season = np.stack([_filled(_lag(series.y, 24 - h)) for h in range(1, HORIZON + 1)], axis=1)
        said = {"Forecaster": ours, "same hour yesterday": season, **theirs}
        rows = np.cumsum(~np.isnan(series.y))
        scored = (~np.isnan(series.y) & (rows > UNSCORED))[:, None] & ~np.isnan(Y) & ~np.isnan(ours)
        errors = {key: float(np.sqrt(np.mean((found - Y)[scored] ** 2))) for key, found in said.items()}
        micro = {"Forecaster": 1e6 * seconds / rows[-1], "LightGBM": 1e6 * theirs_seconds / rows[-1]}
        table += [[name, key, error, micro.get(key, 0.0)] for key, error in errors.items()]
        best = min(error for key, error in errors.items() if key != "Forecaster")
        ratio = errors["Forecaster"] / best
        what = "root mean squared error over the better of the others"
        figures.append(Figure(name, ratio, what) if settings.quick else at_most(0.8, name, ratio, what))
        print(f"  {name}: {errors}", flush=True)
    return Report(
        question="How well are the next 24 hours forecast?",
        data="hourly series, origins from row 1,000 on, horizons 1 to 24 together",
        columns=("series", "who", "root mean squared error", "us a row"),
        table=table,
        figures=figures,
        notes=notes,
    )


def forecast(series: Series) -> tuple[np.ndarray, float]:
    """The paths of all origins, NaN where none has passed; CPU seconds."""
    there = np.flatnonzero(~np.isnan(series.y))
    first = int(series.hours[0].timestamp() // 3600)
    records = [
        {
            "when": np.datetime64(series.hours[i].to_datetime64(), "us"),
            "holiday": str(series.holiday[i]),
            **{f"weather {j}": float(value) for j, value in enumerate(series.weather[i])},
        }
        for i in there
    ]
    started, found = time.process_time(), np.full((len(series.y), HORIZON), np.nan)
    model = Forecaster(HORIZON, time="when", step="1h", known_ahead=["holiday"])
    for start in range(0, len(there), 2048):
        rows = slice(start, start + 2048)
        paths = model.advance(records[rows], series.y[there[rows]])
        found[paths.origin - first] = paths.prediction
    return found, time.process_time() - started


def light_gbm(series: Series) -> tuple[dict[str, np.ndarray], float]:
    """One model a horizon."""
    import lightgbm

    y, n = series.y, len(series.y)
    hours = series.hours
    calendar = np.column_stack(
        [
            hours.hour,
            hours.day_of_week,
            hours.month,
            hours.day_of_year,
            (hours - hours[0]).days,
            np.unique(series.holiday, return_inverse=True)[1],
        ]
    ).astype(float)
    found, started = np.full((n, HORIZON), np.nan), time.process_time()
    begin = int(np.flatnonzero(np.cumsum(~np.isnan(y)) > UNSCORED)[0])
    for h in range(1, HORIZON + 1):
        target = _lag(y, -h)
        lags = [y, _lag(y, 1), _lag(y, 24 - h), _lag(y, 168 - h)]
        X = np.column_stack([np.roll(calendar, -h, axis=0), series.weather, *lags])
        pairs, t = np.flatnonzero(~np.isnan(y) & ~np.isnan(target)), begin
        while t < n:
            known, later = pairs[pairs + h <= t], pairs[pairs + h > t]
            trees = lightgbm.LGBMRegressor(n_jobs=1, verbose=-1)
            trees.fit(X[known], target[known], categorical_feature=[HOLIDAY])
            more = max(50, -(-len(known) // 10))
            until = int(later[more - 1]) + h if len(later) >= more else n
            rows = np.arange(t, until)
            rows = rows[~np.isnan(y[rows])]
            found[rows, h - 1] = trees.booster_.predict(X[rows], num_threads=1)
            t = until
    return {"LightGBM": found}, time.process_time() - started


def bike_hourly(settings: Settings) -> Series | None:
    import pandas as pd

    file = None if settings.folder is None else settings.folder / "bike_hourly.csv.gz"
    if file is None or not file.is_file():
        return None
    frame = pd.read_csv(file)
    years = pd.to_datetime((2011 + frame.yr).astype(int).astype(str), format="%Y")
    frame.index = years + pd.to_timedelta(frame.dayofyear - 1, unit="D") + pd.to_timedelta(frame.hr, unit="h")
    days = {day: "yes" for day, is_one in zip(frame.index.normalize(), frame.holiday, strict=True) if is_one}
    return _series(frame, days, "target", ["weathersit", "temp", "atemp", "hum", "windspeed"])


def metro_traffic(settings: Settings) -> Series | None:
    import pandas as pd

    file = None if settings.folder is None else settings.folder / "raw" / "metro_traffic.csv.gz"
    if file is None or not file.is_file():
        return None
    frame = pd.read_csv(file, keep_default_na=False)
    frame.index = pd.DatetimeIndex(pd.to_datetime(frame.date_time, dayfirst=True))
    marked = frame[frame.holiday != "None"]  # in their first hour
    days = dict(zip(marked.index.normalize(), marked.holiday, strict=True))
    frame["sky"] = pd.Categorical(frame.weather_main).codes
    return _series(frame, days, "traffic_volume", ["temp", "rain_1h", "snow_1h", "clouds_all", "sky"])


def _series(frame: Any, days: dict[Any, str], target: str, weather: list[str]) -> Series:
    import pandas as pd

    frame = frame[~frame.index.duplicated(keep="last")].sort_index()
    hours = pd.date_range(frame.index[0], frame.index[-1], freq="h")
    whole = frame.reindex(hours)
    holiday = np.array([days.get(day, "") for day in hours.normalize()])
    return Series(hours, whole[target].to_numpy(float), holiday, whole[weather].to_numpy(float))


def _lag(y: np.ndarray, back: int) -> np.ndarray:
    moved = np.roll(y, back).astype(float)
    if back > 0:
        moved[:back] = np.nan
    elif back < 0:
        moved[back:] = np.nan
    return moved


def _filled(values: np.ndarray) -> np.ndarray:
    """The last value before, where there is none."""
    places = np.maximum.accumulate(np.where(np.isnan(values), -1, np.arange(len(values))))
    return np.where(places >= 0, values[np.maximum(places, 0)], np.nan)
