"""What rivals reached, kept in a JSON file: who only asks what has become of AutoKONS need not play them.

The file is ``{key: {rival: result}}``. A key names everything that the result depends on: the rows, by their
digest, the versions of the libraries, and the protocol. One process writes at a time.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

Result = dict[str, Any]


def read(cache: Path | None) -> dict[str, dict[str, Result]]:
    """All that is kept; nothing where there is no file."""
    return json.loads(cache.read_text(encoding="utf-8")) if cache is not None and cache.is_file() else {}


def remember(cache: Path | None, key: str, rival: str, result: Result) -> None:
    """At once, so that a run that is stopped has lost one rival only."""
    if cache is None:
        return
    known = read(cache)
    known.setdefault(key, {})[rival] = result
    draft = cache.with_name(cache.name + ".part")
    draft.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    os.replace(draft, cache)


def recall(cache: Path | None, key: str, rival: str, play: Callable[[], Result]) -> Result:
    """What is kept of the rival; where nothing is, what it reaches now, which is kept from then on."""
    known = read(cache).get(key, {})
    if rival not in known:
        known[rival] = play()
        remember(cache, key, rival, known[rival])
    return known[rival]
