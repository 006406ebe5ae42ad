"""The demo: two real networks, real photographs and a real clip through everything the bench can do."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from shiftproof import catalog
from shiftproof.corruptions import DEFAULT_EDITION, IMAGENET_P
from shiftproof.curation.project import Project
from shiftproof.demo_review import save_review
from shiftproof.detectors import needs_training
from shiftproof.errors import MissingExtra
from shiftproof.files import write_whole
from shiftproof.image_sets import open_images
from shiftproof.image_sets.opener import image_opener
from shiftproof.image_sets.perturbed import perturbed
from shiftproof.models import load_model, redrawn
from shiftproof.parallel import Workers
from shiftproof.prediction import Progress, fill_studies
from shiftproof.reference import load_table
from shiftproof.reports import save_report
from shiftproof.store import Store
from shiftproof.studies import measure
from shiftproof.studies.corruption import CorruptionStudy
from shiftproof.studies.out_of_distribution import OutOfDistributionStudy
from shiftproof.studies.perturbation import PerturbationStudy
from shiftproof.studies.results import Results
from shiftproof.studies.temporal import TemporalStudy
from shiftproof.types import Classifier, Condition, ImageSet, Study

MODELS = ("lite:0", "lite:1")
SETS = ("inside", "outside")
"""Photographs of classes the models know, with labels; and photographs of what they were never shown, without."""

CLIP = "clip"
"""A man with a bow tie talks in a car, and what he wears is called otherwise from one frame to the next."""

SEQUENCES = 3
"""Photos that are put through the perturbations: each gives 320 frames, and nobody should wait long for a demo."""

SHIFTS = ("gaussian_noise", "gaussian_blur")
"""Corruptions of the photos inside that detectors of new classes should pass over, and do not."""

RANDOM_NETWORKS = 2
"""Networks that never learned anything, which are asked whether they notice the same."""


class Demo(NamedTuple):
    """Everything found, where the report is, and photos that people may judge."""

    results: Results
    report: Path
    review: Project


def run_demo(folder: Path, *, progress: Progress | None = None, tell: Callable[[str], None] = lambda _: None) -> Demo:
    """All of it in one folder; predictions are kept there too, so a second time is quick."""
    models = [load_model(name) for name in MODELS]
    sets = {name: open_images(photo_list(name, folder), allow_outside=True) for name in SETS}
    frames = open_images(photo_list(CLIP, folder), kind="clips", pixel_distances=True, allow_outside=True)
    store = Store(folder / "runs")
    photos = [f"{len(images.samples)} photos {name}" for name, images in sets.items()]
    tell(f"{' and '.join(MODELS)} on {', '.join(photos)} and {len(frames.samples)} frames of a clip")
    sequences = [perturbed(sets["inside"], name, limit=SEQUENCES) for name in IMAGENET_P]
    studies = [
        *(study for images in sets.values() for study in _clean_studies(models, images)),
        CorruptionStudy(models, sets["inside"], baseline=models[0]),
        PerturbationStudy(models, image_sets=sequences, baseline=models[0], name="inside, perturbed"),
        TemporalStudy(models, frames),
    ]
    random = [redrawn(models[0], seed) for seed in range(1, RANDOM_NETWORKS + 1)]
    novelty = OutOfDistributionStudy(
        models,
        sets["inside"],
        conditions=[Condition(name, 5, edition=DEFAULT_EDITION, picture="model-size") for name in SHIFTS],
        out_sets={"outside": sets["outside"]},
        detectors=[name for name in catalog.DETECTORS if not needs_training(name)],
        random_networks={models[0].ref.name: random},
    )
    image_sets = [*sets.values(), *sequences, frames]
    with Workers() as workers:
        for model in models:
            fill_studies(model, [*studies, novelty], image_sets, store=store, workers=workers, progress=progress)
        for network in random:
            fill_studies(network, [novelty], image_sets, store=store, workers=workers, progress=progress)
    results = measure([*studies, novelty], store=store, image_sets=image_sets)
    report = save_report(
        folder / "report.html", results, open_image=image_opener(image_sets), title="shiftproof demo: EfficientNet-Lite"
    )
    return Demo(results, report, save_review(folder / "review", sets["inside"], models, store))


def photo_list(name: str, folder: Path) -> Path:
    """A manifest of the photos or clips of one set, written into the folder; they stay where their packages have them."""
    rows = []
    for photo in load_table("demo_photos"):
        if photo["set"] == name:
            path = _package_folder(photo["package"]) / photo["file"]
            made = {"id": path.name, "path": os.path.relpath(path.resolve(), folder.resolve()), "labels": photo["labels"]}
            rows.append({**made, "package": photo["package"], "credit": photo["credit"]})
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    manifest = folder / f"{name}.csv"
    write_whole(manifest, text.getvalue().encode())
    return manifest


def _package_folder(package: str) -> Path:
    found = find_spec(package)  # finds the package without importing it
    if found is None or found.origin is None:
        raise MissingExtra("the demo", "demo")
    return Path(found.origin).parent


def _clean_studies(models: list[Classifier], images: ImageSet) -> list[Study]:
    kinds = [catalog.STUDIES.load(name) for name in catalog.STUDIES]
    return [kind(models=models, image_set=images) for kind in kinds if getattr(kind, "by_default", True)]
