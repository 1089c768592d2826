"""A table as people have them, made up: gaps, text, dates day first, prices with a sign, and one drift."""

from __future__ import annotations

import csv
import datetime
import io

import numpy as np

from kons.arrays import require_integer

__all__ = ["untidy_table"]

WEATHER = ("sunny", "cloudy", "rain", "fog", "snow")
EFFECT = {"sunny": 30.0, "cloudy": 10.0, "rain": -35.0, "fog": -5.0, "snow": -50.0}
STATIONS = 24


def untidy_table(rows: int = 6000, seed: int = 0) -> str:
    """Bicycle rentals of some stations by the hour, as the text of a CSV file; the target is ``rentals``.

    The thermometer has gaps, which come more often when it freezes; the weather is not always noted; a column
    for events is filled only after a third of the rows; and after two thirds the price counts twice as much.

    >>> untidy_table(2).splitlines()[0]
    'time,station,weather,temperature,price,event,rentals'
    """
    rows, random = require_integer(rows, "rows", at_least=2), np.random.default_rng(seed)
    begin, appeal = datetime.datetime(2023, 3, 1), random.normal(0.0, 25.0, STATIONS)
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(("time", "station", "weather", "temperature", "price", "event", "rentals"))
    for i in range(rows):
        when = begin + datetime.timedelta(hours=i)
        station = int(random.integers(STATIONS))
        weather = WEATHER[int(random.choice(5, p=(0.4, 0.3, 0.18, 0.07, 0.05)))]
        season = 12.0 - 12.0 * np.cos(2.0 * np.pi * when.timetuple().tm_yday / 365.0)
        temperature = season + 5.0 * np.sin(2.0 * np.pi * (when.hour - 9) / 24.0) + random.normal(0.0, 3.0)
        price = random.choice((1.5, 2.0, 2.5, 3.0))
        event = random.choice(("none", "concert", "match", "fair"), p=(0.85, 0.05, 0.05, 0.05))
        rush = 60.0 * (when.weekday() < 5) * np.exp(-(((when.hour % 12) - 7.5) ** 2) / 3.0)
        rentals = 120.0 + appeal[station] + EFFECT[weather] + 2.0 * temperature + rush
        rentals += (60.0 if event != "none" and i >= rows // 3 else 0.0) + random.normal(0.0, 8.0)
        rentals -= (20.0 if i < 2 * rows // 3 else 40.0) * price
        noted = random.random() > (0.3 if temperature < 4.0 else 0.05)
        lines.writerow((
            when.strftime("%d/%m/%Y %H:%M"),
            f"station {station + 1}",
            weather if random.random() > 0.08 else "",
            f"{temperature:.1f}" if noted else "n/a",
            f"${price:.2f}",
            event if i >= rows // 3 else "",
            f"{max(rentals, 0.0):.0f}",
        ))  # fmt: skip
    return text.getvalue()
