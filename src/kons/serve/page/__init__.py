"""The live page: one document that loads nothing, in the style of the report."""

from __future__ import annotations

import base64
import functools
import hashlib
from importlib.resources import files

__all__ = ["live_page"]


@functools.cache
def live_page() -> tuple[str, str]:
    """The document, and the policy that lets its own script run and no other."""
    here, style = files("kons.serve.page"), files("kons.report") / "templates" / "report.css"
    script = (here / "live.js").read_text(encoding="utf-8")
    text = (here / "live.html").read_text(encoding="utf-8")
    text = text.replace("/* report.css */", style.read_text(encoding="utf-8")).replace(
        "/* live.js */", script
    )
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    allowed = f"connect-src 'self'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    return text, f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
