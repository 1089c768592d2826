"""The page in a real browser: no console message, no request, and a screenshot to look at.

The screenshots stay in the folder that the environment variable KONS_SCREENSHOTS names, else in pytest's
temporary folder (the last three runs are kept).
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from kons.report import write_report
from report import folders

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="Chromium is not installed: nothing to open the page with"
)

QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr",
)  # fmt: skip
LIGHT, DARK = "--blink-settings=preferredColorScheme=1", "--blink-settings=preferredColorScheme=0"


class Visit:
    """What a browser said and asked for while it showed a page, and its picture."""

    def __init__(self, page: Path, picture: Path, scratch: Path, width: int, height: int, mode: str) -> None:
        log = scratch / "net.json"
        with (scratch / "said").open("wb") as said:
            subprocess.run(
                [CHROMIUM, *QUIET, mode, f"--user-data-dir={scratch / 'profile'}", f"--log-net-log={log}",
                 f"--window-size={width},{height}", f"--screenshot={picture}", page.as_uri()],
                stderr=said, stdout=subprocess.DEVNULL, timeout=120, check=True,
            )  # fmt: skip
        lines = (scratch / "said").read_text(errors="replace").splitlines()
        self.console = [line for line in lines if ":CONSOLE" in line]
        events = json.loads(log.read_text())["events"]
        # What Chromium asks for on its own account has no origin; what a page asks for has one ("null").
        self.requests = [
            params["url"]
            for event in events
            if (params := event.get("params") or {}).get("initiator", "not an origin") != "not an origin"
            and "url" in params
        ]
        self.picture = picture

    @property
    def size(self) -> tuple[int, int]:
        return struct.unpack(">II", self.picture.read_bytes()[16:24])


@pytest.fixture
def visit(tmp_path):
    kept = Path(os.environ.get("KONS_SCREENSHOTS", tmp_path / "screenshots"))
    kept.mkdir(parents=True, exist_ok=True)

    def go(page, name, width=940, height=2400, mode=LIGHT):
        scratch = tmp_path / name
        scratch.mkdir()
        return Visit(page, kept / f"{name}.png", scratch, width, height, mode)

    return go


def test_a_report_opens_without_a_word_and_without_a_request(tmp_path, visit):
    folders.regression(tmp_path / "run", experts=["linear", "gaussian 0.5", "lags 1.0"])
    page = write_report(tmp_path / "run")
    seen = {}
    for name, mode, width in (
        ("report-light", LIGHT, 940),
        ("report-dark", DARK, 940),
        ("report-phone", LIGHT, 500),
    ):
        found = visit(page, name, width=width, mode=mode)
        assert found.console == []
        assert found.requests == []
        assert found.size == (width, 2400)
        seen[name] = found.picture.read_bytes()
    assert len(set(seen.values())) == 3  # light, dark and narrow are not the same picture
    assert all(len(png) > 50_000 for png in seen.values())  # and none is blank


def test_a_comparison_opens_without_a_word_and_without_a_request(tmp_path, visit):
    folders.comparison(tmp_path / "run")
    found = visit(write_report(tmp_path / "run"), "compare-light", height=1600)
    assert (found.console, found.requests) == ([], [])
    assert len(found.picture.read_bytes()) > 50_000


def test_the_browser_would_have_told(tmp_path, visit):
    """The two tests above see something where there is something to see."""
    page = tmp_path / "talkative.html"
    page.write_text("<img src='http://example.com/a.png'><script>console.error('oh')</script>")
    found = visit(page, "talkative", height=400)
    assert any("oh" in line for line in found.console)
    assert found.requests == ["http://example.com/a.png"]
