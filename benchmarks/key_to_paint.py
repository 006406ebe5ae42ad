"""How long a reviewer waits from pressing a key to seeing the next photo, in a project of 5,000 photos.

    SHIFTPROOF_TEST_DATA=data python benchmarks/key_to_paint.py [figures.json]

Each press is timed from the key's event in two ways: until the browser's own record says that the picture was rendered
(element timing), and until two frames after the decoded picture was put in its place. Meanwhile answers go to a server
process and its database, and pictures come from it. Presses are told apart by turns, odd and even: what differs between the
two is chance. After each, a key that does nothing is pressed: the time until two bare frames is the machine's part.

Aim: under 50 ms at the 95th percentile.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
from playwright.sync_api import sync_playwright

from harness import save

sys.path.append(str(Path(__file__).parent.parent / "tests"))  # the server process is that of the tests

from review.served import served
from shiftproof.curation.project import Item, Project, ReviewClass, save_project

ITEMS = 5_000
PRESSES = int(os.environ.get("PRESSES", "400"))
PAUSE = 250  # milliseconds between seeing a photo and pressing a key: nobody is faster for long

IDLE = "x"  # a key that the screen has no use for

WATCH = f"""() => {{
  Object.assign(window, {{ painted: [], framed: [], bare: [] }});
  let pressed = 0;
  const twoFrames = (times, since) => {{
    const done = () => times.push(performance.now() - since);
    requestAnimationFrame(() => requestAnimationFrame(done));
  }};
  const watch = (image) => {{
    image.setAttribute("elementtiming", "photo");
    twoFrames(window.framed, pressed);
  }};
  addEventListener("keydown", ({{ key, timeStamp }}) => {{
    pressed = timeStamp;
    if (key === "{IDLE}") twoFrames(window.bare, pressed);
  }}, {{ capture: true }});
  new MutationObserver((changes) => changes.flatMap((change) => [...change.addedNodes]).forEach(watch))
    .observe(document.querySelector("#stage .moved"), {{ childList: true }});
  new PerformanceObserver((seen) => window.painted.push(...seen.getEntries().map((entry) => entry.renderTime - pressed)))
    .observe({{ type: "element" }});
}}"""


def save_items(folder: Path, photos: list[Path]) -> None:
    """Writes a project in which every item has a picture of its own to fetch, though photos come again."""
    (folder / "images").mkdir(parents=True)
    names = [f"{number}{photos[number % len(photos)].suffix}" for number in range(ITEMS)]
    for number, name in enumerate(names):
        # a project serves no links that lead out of it, but two names may be of one file
        if number < len(photos):
            shutil.copyfile(photos[number], folder / "images" / name)
        else:
            (folder / "images" / name).hardlink_to(folder / "images" / names[number % len(photos)])
    items = tuple(Item(name, (name,), "thing") for name in names)
    save_project(Project(folder, "Five thousand photos", "clarity", items, (ReviewClass("thing", "thing"),)))


def waits(folder: Path) -> dict[str, list[float]]:
    """Milliseconds that each of many key presses took: until the photo was painted, two frames later, two bare frames."""
    with served(folder, invite=["Ada"]) as server, sync_playwright() as started:
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1366, "height": 768})
        page.goto(server.links["Ada"])
        page.goto(f"{server.address}/work")
        page.wait_for_selector("#stage[data-ready]", state="attached")
        page.evaluate(WATCH)
        for number in range(1, PRESSES + 1):
            page.wait_for_timeout(PAUSE)
            page.keyboard.press("yu"[number % 2])
            page.wait_for_function(f"() => window.painted.length === {number} && window.framed.length === {number}")
            page.wait_for_selector("#stage[data-ready]", state="attached")
            page.keyboard.press(IDLE)
            page.wait_for_function(f"() => window.bare.length === {number}")
        found: dict[str, list[float]] = page.evaluate("() => ({ painted, framed, bare })")
        browser.close()
    return found


def told(name: str, milliseconds: list[float]) -> dict[str, float]:
    figures = {str(share): float(np.percentile(milliseconds, share)) for share in (50, 95, 99, 100)}
    shown = ", ".join(f"{share} %: {value:.1f} ms" for share, value in figures.items())
    print(f"{name:24} {len(milliseconds):,} presses; {shown}", flush=True)
    return figures


def main() -> None:
    photos = sorted(Path(os.environ["SHIFTPROOF_TEST_DATA"], "ilsvrc-sample-1000").resolve().iterdir())
    with tempfile.TemporaryDirectory() as folder:
        save_items(Path(folder, "project"), photos)
        found = waits(Path(folder, "project"))
    parts = {
        "key to photo painted": found["painted"],
        "odd presses": found["painted"][::2],
        "even presses (A/A)": found["painted"][1::2],
        "key to two frames after": found["framed"],
        "key to two bare frames": found["bare"],
    }
    save("key_to_paint", {name: told(name, milliseconds) for name, milliseconds in parts.items()})


if __name__ == "__main__":
    main()
