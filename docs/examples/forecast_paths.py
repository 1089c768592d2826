"""The load of a small town: an hourly series with seasons, holidays, heat that lasts some hours, and gaps.

``python docs/examples/forecast_paths.py`` prints the errors and redraws docs/pictures/forecast_paths.svg.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from showing import BLUE, GREY, ORANGE, PICTURES, picture, table

from kons import Forecaster

HOURS_A_DAY = 24


def town(rows: int = 4000, seed: int = 0) -> tuple[list[dict[str, Any]], np.ndarray]:
    """Rows (when, holiday, heat) and loads in megawatts; three nights are missing."""
    random = np.random.default_rng(seed)
    hour = np.arange(rows)
    day = hour // HOURS_A_DAY
    free = (day % 7 >= 5) | (day % 23 == 11)
    heat = np.zeros(rows)
    for t in range(1, rows):  # it lasts about half a day
        heat[t] = 0.92 * heat[t - 1] + random.normal()
    wave = np.sin(2 * np.pi * (hour % 24 - 8) / 24)
    load = 60 + 20 * wave * np.where(free, 0.4, 1.0) - 8 * free + 2.0 * heat + random.normal(size=rows)
    when = np.datetime64("2024-01-01T00", "h") + hour
    names = np.where(day % 23 == 11, "fair", None)
    records = [
        {"when": t, "holiday": name, "heat": warm} for t, name, warm in zip(when, names, heat, strict=True)
    ]
    there = ~np.isin(hour, [*range(1000, 1008), *range(1024, 1032), *range(1048, 1056)])
    return [records[i] for i in np.flatnonzero(there)], load[there]


def main(rows: int = 4000, file: Path | None = PICTURES / "forecast_paths.svg") -> Any:
    """Forecast, print, draw."""
    records, load = town(rows)
    model = Forecaster("24h", time="when", step="1h", known_ahead=["holiday"])
    paths = model.advance(records, load)
    late = slice(len(paths.origin) // 2, None)
    root = {
        name: np.sqrt(np.nanmean((getattr(paths, name) - paths.target)[late] ** 2, axis=0))
        for name in ("prediction", "seasonal", "last")
    }
    columns = ("hours ahead", "forecast", "one day before", "last value", "root mean squared error, MW")
    print(table(columns, [(h, *(float(root[name][h - 1]) for name in root), "") for h in (1, 3, 6, 12, 24)]))
    with picture(file, 2, "The next 24 hours, from every hour on", width=5.2) as axes:
        colours = {"prediction": BLUE, "seasonal": ORANGE, "last": GREY}
        names = {"prediction": "forecast", "seasonal": "same hour yesterday", "last": "last value again"}
        for name, line in root.items():
            axes[0].plot(np.arange(1, 25), line, color=colours[name], label=names[name])
        axes[0].set_xlabel("hours ahead")
        axes[0].set_ylabel("root mean squared error, MW")
        axes[0].set_ylim(0, 1.6 * root["seasonal"].max())
        axes[0].legend()
        drawn = np.flatnonzero(paths.origin % HOURS_A_DAY == 0)[-4:]
        start = paths.origin[drawn[0]]
        for place, i in enumerate(drawn):
            at = paths.origin[i] - start + np.arange(1, 25)
            axes[1].fill_between(at, paths.lower[i], paths.upper[i], color=BLUE, alpha=0.15, lw=0)
            axes[1].plot(at, paths.prediction[i], color=BLUE, label="forecast" if not place else None)
            axes[1].plot(at, paths.seasonal[i], color=ORANGE, lw=1, ls="--")
            axes[1].plot(at, paths.target[i], "k.", ms=3, label="what came" if not place else None)
        axes[1].set_xlabel("hours")
        axes[1].set_ylabel("load, MW")
        axes[1].legend()
    return paths


if __name__ == "__main__":
    main()
