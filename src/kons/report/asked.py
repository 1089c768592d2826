"""What was asked for: settings, source and versions, for a page."""

from __future__ import annotations

from typing import Any

from kons.report.folder import RunFolder, as_text
from kons.report.numbers import count, plural

__all__ = ["settings"]

MOST_NAMES = 200


def settings(folder: RunFolder) -> list[tuple[str, list[tuple[str, str]]]]:
    """Titled lists of (name, value): what was asked for, of what, with which versions."""
    groups: list[tuple[str, Any]] = [
        ("Settings", folder.settings),
        ("Source", folder.group("source")),
        ("Versions", folder.group("versions")),
        ("Circumstances", {key: folder.run[key] for key in ("threads", "started") if key in folder.run}),
    ]
    found = [(title, _flat(values)) for title, values in groups if isinstance(values, dict)]
    features = folder.texts("features")
    if features:
        names = ", ".join(features[:MOST_NAMES])
        more = f" and {count(len(features) - MOST_NAMES)} more" if len(features) > MOST_NAMES else ""
        found.append(("Columns", [(plural(len(features), "column"), names + more)]))
    return [(title, rows) for title, rows in found if rows]


def _flat(values: dict[str, Any], before: str = "") -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for key, value in values.items():
        name = before + as_text(key).replace("_", " ")
        if isinstance(value, dict):
            rows += _flat(value, f"{name}: ")
        elif value is not None and value != [] and value != "":
            rows.append((name, _shown(value)))
    return rows


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ", ".join(_shown(part) for part in value)
    if isinstance(value, float):
        return f"{value:g}"
    return as_text(value)
