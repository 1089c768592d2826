"""The pictures of docs/gallery.md, by the code that stands there.

``python docs/examples/gallery.py`` redraws all of them.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

from showing import PICTURES  # and no window, whatever the screen

DRAWN = (
    *("gallery_surface.png", "gallery_spiral.png", "gallery_intervals.png", "gallery_turn.png"),
    *("gallery_relevances.png", "gallery_dictionary.png", "gallery_novelty.png", "gallery_words.png"),
    *("gallery_forecast.png", "gallery_regret.png"),
)


def main() -> None:
    """Run the page, keep what it draws."""
    page = (PICTURES.parent / "gallery.md").read_text(encoding="utf-8")
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            exec("\n".join(re.findall(r"^```python\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE)), {})
            for name in DRAWN:
                shutil.copy(name, PICTURES)
        finally:
            os.chdir(here)


if __name__ == "__main__":
    main()
