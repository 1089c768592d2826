"""Everything put together on one page, by a template that escapes whatever it is given."""

from __future__ import annotations

import functools
import shlex
from pathlib import Path
from typing import Any

from kons.errors import MissingExtraError
from kons.report.asked import settings
from kons.report.comparison import describe_comparison
from kons.report.folder import read_folder
from kons.report.run import describe_run
from kons.report.words import Code, Command, plain

__all__ = ["page"]

#: What a page may lack.
NOTHING: dict[str, Any] = {"remark": "", "cards": [], "suggestions": [], "sections": [], "proof": None}


def page(path: Path) -> str:
    """The page of a run folder or of a comparison."""
    _require_extras()
    folder = read_folder(path)
    context = describe_comparison(folder) if folder.kind == "compare" else describe_run(folder)
    context |= {
        "folder": folder,
        "settings": settings(folder),
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
