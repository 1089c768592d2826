"""The source of a run that continues: found from elsewhere, and still the same."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from kons.errors import FileError
from kons.runs.settings import Settings
from kons.streams import Stream

__all__ = ["as_found_from", "require_unchanged"]


def as_found_from(there: Any, settings: Settings) -> Settings:
    """A relative name is relative to the folder where the run was started, if it is still there."""
    if os.path.isabs(settings.source) or not isinstance(there, str):
        return settings
    here, first = settings.source, os.path.join(there, settings.source)
    if os.path.exists(here) and (not os.path.exists(first) or os.path.samefile(here, first)):
        return settings
    return replace(settings, source=first)


def require_unchanged(stream: Stream, before: dict[str, Any]) -> None:
    """Refuse a source whose fingerprint is another than it was."""
    now = stream.fingerprint() or {}
    changed = [
        f"{name} was {before.get(name)!r} and is {now[name]!r}"
        for name in now
        if now[name] != before.get(name)
    ]
    if changed or not now:
        raise FileError(
            f"{stream.source} has changed since the run began ({', '.join(changed)}): put the old file "
            "back, or start the run again."
        )
