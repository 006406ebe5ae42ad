"""Measures reports in Chromium: bytes, screens before anything is opened, and complaints while every section is opened.

    python tools/measure_report.py shiftproof-demo/report.html --most-bytes 3000000 --most-screens 12

A screen is 1280 x 800 pixels. Exits with 1 where a report is larger or longer than the limits given, a chart is not drawn,
the page is wider than the window, or its console complains. `--pictures DIR` keeps screenshots: light, dark and on a phone.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, Page, sync_playwright

WIDTH, HEIGHT, PHONE = 1280, 800, 390
LOOKS: tuple[tuple[Literal["light", "dark"], int], ...] = (("light", WIDTH), ("dark", WIDTH), ("light", PHONE))
PATIENCE = 300
"""Seconds in which every chart of a report can be drawn."""


@dataclass(frozen=True)
class Measured:
    size: int  # bytes
    screens: float  # before anything is opened
    complaints: tuple[str, ...]


def measure(path: Path, browser: Browser, pictures: Path | None = None) -> Measured:
    """One report in light, in dark and on a phone."""
    complaints: list[str] = []
    complain = complaints.append
    screens = 0.0
    for scheme, width in LOOKS:
        page = browser.new_page(viewport={"width": width, "height": HEIGHT}, color_scheme=scheme)
        page.on("console", lambda message: complain(message.text))
        page.on("pageerror", lambda error: complain(str(error)))
        page.goto(path.resolve().as_uri())
        page.wait_for_selector("html[data-drawn]", timeout=1000 * PATIENCE)
        if (scheme, width) == LOOKS[0]:
            screens = page.evaluate("document.documentElement.scrollHeight") / HEIGHT
        if pictures is not None:
            page.screenshot(path=pictures / f"{path.stem}-{scheme}-{width}.png", full_page=True)
        complaints += opened(page, width)
        page.close()
    return Measured(path.stat().st_size, screens, tuple(complaints))


def opened(page: Page, width: int) -> list[str]:
    """What is wrong when everything is open."""
    page.evaluate("document.querySelectorAll('details').forEach((fold) => (fold.open = true))")
    deadline = time.monotonic() + PATIENCE
    missing = "[...document.querySelectorAll('.drawing')].filter((one) => !one.querySelector('svg')).length"
    unfilled = "document.querySelectorAll('table[data-rows]').length"
    while page.evaluate(f"{missing} + {unfilled}") and time.monotonic() < deadline:
        time.sleep(0.1)
    empty = "[...document.images].filter((one) => !one.closest('dialog') && !one.naturalWidth).length"
    found = {
        "charts are not drawn": page.evaluate(missing),
        "tables have no rows": page.evaluate(unfilled),
        "pictures are empty": page.evaluate(empty),
        "pixels are wider than the window": max(0, page.evaluate("document.documentElement.scrollWidth") - width),
    }
    return [f"{number} {what}" for what, number in found.items() if number]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", nargs="+", type=Path)
    parser.add_argument("--most-bytes", type=int, default=sys.maxsize)
    parser.add_argument("--most-screens", type=float, default=float("inf"))
    parser.add_argument("--pictures", type=Path)
    options = parser.parse_args()
    if options.pictures is not None:
        options.pictures.mkdir(parents=True, exist_ok=True)
    good = True
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for path in options.reports:
            found = measure(path, browser, options.pictures)
            print(f"{path}: {found.size:,} bytes, {found.screens:.1f} screens", *found.complaints, sep="\n  ")
            small = found.size <= options.most_bytes and found.screens <= options.most_screens
            good = good and small and not found.complaints
        browser.close()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
