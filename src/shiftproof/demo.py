"""The demo: the whole bench on two networks, ID and OOD photographs and a clip."""

from __future__ import annotations

import csv
import dataclasses
import io
import itertools
import os
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from shiftproof import catalog
from shiftproof.corruptions import DEFAULT_EDITION, IMAGENET_P
from shiftproof.curation.filtered_project import save_filtered
from shiftproof.curation.filtering import Choice, Filtered, FilterModels
from shiftproof.curation.project import Project, ReviewSettings, Role
from shiftproof.datasets import open_dataset
from shiftproof.datasets.image_list import ImageList, image_opener
from shiftproof.datasets.perturbed import perturbed
from shiftproof.errors import MissingExtra
from shiftproof.files import write_whole
from shiftproof.models import load_model, random_network
from shiftproof.ood import needs_training
from shiftproof.reference import load_table
from shiftproof.reports.build import save_report
from shiftproof.runs.predict import Progress, fill_studies
from shiftproof.runs.store import Store
from shiftproof.runs.workers import Workers
from shiftproof.studies.accuracy.study import AccuracyStudy
from shiftproof.studies.calibration.study import CalibrationStudy
from shiftproof.studies.comparison.study import ComparisonStudy
from shiftproof.studies.corruption.study import CorruptionStudy
from shiftproof.studies.measure import measure
from shiftproof.studies.ood.study import OODStudy
from shiftproof.studies.perturbation.study import PerturbationStudy
from shiftproof.studies.temporal.study import TemporalStudy
from shiftproof.types import Again, Classes, Classifier, Condition, Dataset, Fact, Results, Sample, Study

ASKED = (
    "imagenet_00_243.jpg",
    "imagenet_01_559.jpg",
    "imagenet_02_438.jpg",
    "imagenet_03_990.jpg",
    "imagenet_05_853.jpg",
    "imagenet_06_609.jpg",
    "imagenet_08_915.jpg",
    "imagenet_11_630.jpg",  # laces on what is said to be a loafer
    "imagenet_12_741.jpg",  # a prayer rug, or windows?
    "imagenet_14_129.jpg",
    "imagenet_18_317.jpg",
    "imagenet_19_305.jpg",
)
"""Photos to review: does each show its label? Some labels may be wrong."""


class Known(NamedTuple):
    """A training or gold item: a photo with its true class, or with a wrong one."""

    role: Role
    shown_as: str


KNOWN: Mapping[str, Known] = {
    "imagenet_04_949.jpg": Known("training", "n07745940"),  # strawberries
    "imagenet_10_541.jpg": Known("training", "n02950826"),  # a drum, as a cannon
    "imagenet_17_22.jpg": Known("gold", "n01614925"),  # a bald eagle
    "imagenet_15_99.jpg": Known("gold", "n02110341"),  # geese, as a dalmatian
}

RIGHT: Mapping[str, Fact] = {"answer": "keep"}
WRONG: Mapping[str, Fact] = {"answer": "reject", "reason": "not the class"}


def save_review(
    folder: Path,
    photos: ImageList,
    models: Sequence[Classifier],
    store: Store,
    *,
    asked: Collection[str] = ASKED,
    known: Mapping[str, Known] = KNOWN,
) -> Project:
    """A review project of some photos for one reviewer, with training and gold items and the models' predictions."""
    filters = FilterModels(models, store)
    said = {model.ref.name: filters.opinions(model, photos).of for model in models}
    classes = photos.classes or Classes(())
    choice = Choice.start(photos.samples)
    filtered = Filtered(
        choice.step("for review", lambda one: None if one.id in asked else "not under review"),
        models=(),  # none of them filtered anything
        limits={},
        classes=classes,
        class_of={sample.id: classes.keys[sample.labels[0]] for sample in photos.samples},
        opinions={name: {image_id: some[0] for image_id, some in of.items()} for name, of in said.items()},
        facts={sample.id: {} for sample in photos.samples},
    )
    taught = dataclasses.replace(photos, samples=[_known(one, classes, known) for one in photos.samples if one.id in known])
    known_shown = {image_id: filtered.shown(image_id) for image_id in known}
    review = ReviewSettings("Photos of the demo", reviewers_each=1, known=taught if known else None, known_shown=known_shown)
    return save_filtered(filtered, photos, folder, review=review).project


def _known(sample: Sample, classes: Classes, known: Mapping[str, Known]) -> Sample:
    role, shown_as = known[sample.id]
    label = classes.keys.index(shown_as)
    facts = {"role": role, **(RIGHT if label in sample.labels else WRONG)}
    return dataclasses.replace(sample, labels=(label,), facts=facts)


MODELS = ("lite:0", "lite:1")
SETS = ("id-photos", "ood-photos")
"""In-distribution photographs, with labels; out-of-distribution photographs, without."""

CLIP = "clip"
"""A man with a bow tie talks in a car; the predicted class changes from frame to frame."""

SEQUENCES = 3
"""Photos to perturb: few, since each gives 320 frames."""

SHIFTS = ("gaussian_noise", "gaussian_blur")
"""Covariate shift of the ID photos, which new-class detection should ignore, and does not."""

RANDOM_NETWORKS = 2
"""Networks with random weights, on which the same OOD scores are computed."""


class Demo(NamedTuple):
    """The results, the path of the report, and the review project."""

    results: Results
    report: Path
    review: Project


def run_demo(folder: Path, *, progress: Progress | None = None, tell: Callable[[str], None] = lambda _: None) -> Demo:
    """Runs the demo in a folder; predictions are stored there too, so a second run is quick."""
    models = [load_model(name) for name in MODELS]
    sets = {name: open_dataset(photo_list(name, folder), allow_outside=True) for name in SETS}
    frames = open_dataset(photo_list(CLIP, folder), kind="clips", pixel_distances=True, allow_outside=True)
    store = Store(folder / "runs")
    id_photos, ood_photos = (sets[name] for name in SETS)
    counts = f"{len(id_photos.samples)} ID photos, {len(ood_photos.samples)} OOD photos"
    tell(f"{' and '.join(MODELS)} on {counts} and {len(frames.samples)} frames of a clip")
    sequences = [perturbed(id_photos, name, limit=SEQUENCES) for name in IMAGENET_P]
    studies = [
        *(study for images in sets.values() for study in _clean_studies(models, images)),
        CorruptionStudy(models, id_photos, baseline=models[0]),
        PerturbationStudy(models, datasets=sequences, baseline=models[0], name="id-photos"),
        TemporalStudy(models, frames),
    ]
    random = [random_network(models[0], seed) for seed in range(1, RANDOM_NETWORKS + 1)]
    novelty = OODStudy(
        models,
        id_photos,
        conditions=[Condition(name, 5, edition=DEFAULT_EDITION, picture="model-size") for name in SHIFTS],
        ood_datasets={"ood-photos": ood_photos},
        detectors=[name for name in catalog.OOD_DETECTORS.usable if not needs_training(name)],
        random_networks={models[0].ref.name: random},
    )
    datasets = [*sets.values(), *sequences, frames]
    with Workers() as workers:
        for model in models:
            fill_studies(model, [*studies, novelty], datasets, store=store, workers=workers, progress=progress)
        for network in random:
            fill_studies(network, [novelty], datasets, store=store, workers=workers, progress=progress)
    measured = measure([*studies, novelty], store=store, datasets=datasets)
    again = _again(store, [*sets.values(), frames])
    results = dataclasses.replace(measured, again=tuple(again))
    report = save_report(
        folder / "report.html", results, open_image=image_opener(datasets), title="shiftproof demo: EfficientNet-Lite"
    )
    return Demo(results, report, save_review(folder / "review", id_photos, models, store))


def _again(store: Store, datasets: Iterable[Dataset]) -> Iterator[Again]:
    """How a command measures each model on these datasets."""
    for name, images in itertools.product(MODELS, datasets):
        words = ["shiftproof", "run", name, str(images.ref.location), "--store", str(store.root)]
        yield Again(name, images.ref.name, shlex.join(words), store=str(store.root))


def photo_list(name: str, folder: Path) -> Path:
    """A manifest of the photos or clips of one dataset, written to the folder; the files stay in their packages."""
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


def _clean_studies(models: list[Classifier], images: Dataset) -> list[Study]:
    return [AccuracyStudy(models, images), CalibrationStudy(models, images), ComparisonStudy(models, images)]
