"""The tops of reports, as the README and docs/novelty.md show them. Needs Chromium.

``python docs/examples/report_screenshot.py`` runs ``kons run`` on the made-up plant and photographs the pages
to docs/pictures/report.png and, without a target, novelty_report.png.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import plant
from matplotlib import image
from showing import PICTURES

from kons.cli import main as kons

WIDTH, HEIGHT = 940, 1290


WITH_TARGET = ("--target", "strength", "--drop", "passed")


def main() -> None:
    """Both pictures."""
    photograph(PICTURES / "report.png", *WITH_TARGET)
    photograph(PICTURES / "novelty_report.png", "--no-target")


def photograph(file: Path, *flags: str) -> None:
    """Run, open the report, keep the picture."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("no chromium here: install it to take the picture.")
    with tempfile.TemporaryDirectory() as folder:
        data, run = plant.write(Path(folder) / "plant.csv", rows=20_000), Path(folder) / "run"
        kons(["run", str(data), *flags, "--out", str(run), "--quiet"])
        shot = Path(folder) / "shot.png"
        subprocess.run(
            [
                browser,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
                "--disable-background-networking",
                "--hide-scrollbars",
                f"--user-data-dir={folder}/profile",
                f"--window-size={WIDTH},{HEIGHT + 200}",
                f"--screenshot={shot}",
                (run / "report.html").as_uri(),
            ],
            check=True,
            capture_output=True,
        )
        pixels = image.imread(shot)[:HEIGHT, :, :3]
        image.imsave(file, pixels)


if __name__ == "__main__":
    main()
