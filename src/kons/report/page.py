"""Everything put together on one page, by a template that escapes whatever it is given."""

from __future__ import annotations

import functools
import shlex
from pathlib import Path
from typing import Any

from kons.errors import MissingExtraError
from kons.report.comparison import describe_comparison
from kons.report.folder import RunFolder, as_text, read_folder
from kons.report.forecast import describe_forecast
from kons.report.novelty import describe_novelty
from kons.report.numbers import columns_of, count
from kons.report.run import describe_run
from kons.report.words import Code, Command, plain

__all__ = ["page"]

MOST_NAMES = 200  # of columns

#: What a page may lack.
NOTHING: dict[str, Any] = {"remark": "", "cards": [], "suggestions": [], "sections": [], "proof": None}


def page(path: Path) -> str:
    """The page of a run folder or of a comparison."""
    _require_extras()
    folder = read_folder(path)
    kinds = {"compare": describe_comparison, "forecast": describe_forecast}
    of_runs = describe_novelty if folder.settings.get("no_target") is True else describe_run
    context = kinds.get(folder.kind, of_runs)(folder)
    context |= {
        "folder": folder,
        "settings": _settings(folder),
        "command": shlex.join(folder.texts("command")),
    }
    text: str = _template().render({**NOTHING, **context, "description": plain(context["headline"])})
    return text


def _require_extras() -> None:
    try:
        import jinja2  # noqa: F401
        import matplotlib  # noqa: F401
    except ImportError:
        raise MissingExtraError("the report", "report") from None


@functools.cache
def _template() -> Any:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,  # names from somebody's data stand everywhere on the page
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.tests["command"] = lambda part: isinstance(part, Command)
    environment.tests["code"] = lambda part: isinstance(part, Code)
    return environment.get_template("report.html.jinja")


def _settings(folder: RunFolder) -> list[tuple[str, list[tuple[str, str]]]]:
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
        columns = folder.texts("columns") or features
        names = ", ".join(columns[:MOST_NAMES])
        more = f" and {count(len(columns) - MOST_NAMES)} more" if len(columns) > MOST_NAMES else ""
        found.append(("Columns", [(columns_of(len(columns), len(features)), names + more)]))
    return [(title, rows) for title, rows in found if rows]


def _flat(values: dict[str, Any], before: str = "") -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for key, value in values.items():
        name = before + as_text(key).replace("_", " ")
        if isinstance(value, dict):
            rows += _flat(value, f"{name}: ")
        elif value is not None and value != [] and value != "":
            rows.append((name, _as_words(value)))
    return rows


def _as_words(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ", ".join(_as_words(part) for part in value)
    if isinstance(value, float):
        return f"{value:g}"
    return as_text(value)
