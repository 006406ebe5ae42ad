"""A review project of photos of the demo, for whoever wants to judge some in a browser."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from shiftproof.curation.filter_models import FilterModels
from shiftproof.curation.filtered import Choice, Filtered
from shiftproof.curation.filtered_project import Asking, save_filtered
from shiftproof.curation.project import Project, Role
from shiftproof.image_sets.image_list import ImageList
from shiftproof.store import Store
from shiftproof.types import Classes, Classifier, Fact, Sample

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
"""Photos whose labels people are asked about; they need not be right."""


class Known(NamedTuple):
    """A photo with a class that it plainly shows, or plainly does not."""

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


def save_review(folder: Path, photos: ImageList, models: Sequence[Classifier], store: Store) -> Project:
    """A dozen photos that one person is asked about, behind a short training; what the models took them for is stored."""
    filters = FilterModels(models, store)
    said = {model.ref.name: filters.opinions(model, photos).of for model in models}
    classes = photos.classes or Classes(())
    choice = Choice.start(photos.samples)
    filtered = Filtered(
        choice.step("for people to look at", lambda one: None if one.id in ASKED else "is not asked about"),
        models=(),  # none of them filtered anything
        limits={},
        classes=classes,
        class_of={sample.id: classes.keys[sample.labels[0]] for sample in photos.samples},
        opinions={name: {image_id: some[0] for image_id, some in of.items()} for name, of in said.items()},
        facts={sample.id: {} for sample in photos.samples},
    )
    known = dataclasses.replace(photos, samples=[_known(one, classes) for one in photos.samples if one.id in KNOWN])
    known_shown = {image_id: filtered.shown(image_id) for image_id in KNOWN}
    asking = Asking("Photos of the demo", reviewers_each=1, known=known, known_shown=known_shown)
    return save_filtered(filtered, photos, folder, asking=asking).project


def _known(sample: Sample, classes: Classes) -> Sample:
    role, shown_as = KNOWN[sample.id]
    label = classes.keys.index(shown_as)
    facts = {"role": role, **(RIGHT if label in sample.labels else WRONG)}
    return dataclasses.replace(sample, labels=(label,), facts=facts)
