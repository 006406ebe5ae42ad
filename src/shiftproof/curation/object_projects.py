"""Photos whose objects people are to find, and crops that they are to judge, as ImageNet-A-Plus was made."""

from __future__ import annotations

from pathlib import Path

from shiftproof.curation.crop_candidates import cropped
from shiftproof.curation.crop_set import CropSet
from shiftproof.curation.known_items import known_items
from shiftproof.curation.origins import ID, SOURCE, making_of, origin
from shiftproof.curation.project import Item, Project, Verify, save_project
from shiftproof.curation.reference_models import ReferenceModels
from shiftproof.curation.review_classes import joined_keys, review_class, review_classes
from shiftproof.curation.screens import CLARITY, EXTREME_POINTS
from shiftproof.curation.shelf import put_all
from shiftproof.curation.sifting import Sifted
from shiftproof.curation.tables import save_fates
from shiftproof.errors import BadInput
from shiftproof.image_sets.image_list import ImageList
from shiftproof.prediction import Progress
from shiftproof.types import Sample


def box_project(
    images: ImageList,
    folder: str | Path,
    *,
    known: ImageList | None = None,
    reviewers_each: int = 2,
    instructions: str = "",
    progress: Progress | None = None,
) -> Project:
    """A review project in which people click the four extreme points of what each photo is labelled with.

    A photo of several classes is asked about once for each of them. Those without a label, or that cannot be read, go with
    their reason in `photos.csv` in the project. `known` are photos whose box is known, see `known_items`.
    """
    folder = Path(folder)
    if images.classes is None:
        raise BadInput(f"{images.name} has no labels, so nobody could say what to look for in its images")
    known_boxes = known_items(known, EXTREME_POINTS, folder)
    shelved = put_all(folder, {sample.id: images.source(sample) for sample in images.samples}, progress=progress)
    choice = (
        Sifted[Sample, str]
        .start(images.samples)
        .step("with a label", lambda sample: None if sample.labels else "has no label")
        .step("can be read", lambda sample: shelved.unreadable.get(sample.id))
    )
    keys = images.classes.keys
    asked = [
        Item(
            f"{sample.id} {keys[label]}",
            (shelved.names[sample.id],),
            joined_keys([keys[label]]),
            facts=origin(images, sample),
        )
        for sample in choice.left
        for label in sample.labels
    ]
    items = (*asked, *known_boxes)
    save_fates(folder / "photos.csv", choice, ("id",), lambda sample: (sample.id,))
    project = Project(
        folder,
        f"Objects of {images.name}",
        EXTREME_POINTS.name,
        items,
        review_classes(images.classes, [item.label for item in items if item.label]),
        instructions=instructions,
        reviewers_each=reviewers_each,
        making=making_of([images, known], choice.steps),
    )
    save_project(project)
    return project


def crop_project(
    made: CropSet,
    images: ImageList,
    folder: str | Path,
    *,
    reference: ReferenceModels | None = None,
    known: ImageList | None = None,
    reviewers_each: int = 2,
    verify: Verify | None = None,
    instructions: str = "",
    progress: Progress | None = None,
) -> Project:
    """A review project in which people say whether each crop shows its class clearly; `images` is the boxed set.

    `known` are crops whose answer is known, see `known_items`.
    """
    folder, kept = Path(folder), made.choice.left
    shown = cropped(images, kept, "final")
    shelved = put_all(folder, {sample.id: shown.source(sample) for sample in shown.samples}, progress=progress)
    place = str(made.written.destination.resolve())
    asked = [
        Item(
            one.id, (shelved.names[one.id],), joined_keys([one.boxed.key]), facts={**one.facts(), SOURCE: place, ID: one.id}
        )
        for one in kept
        if one.id in shelved.names
    ]
    items = (*asked, *known_items(known, CLARITY, folder))
    project = Project(
        folder,
        f"Crops of {images.name}",
        CLARITY.name,
        items,
        tuple(review_class(key) for key in sorted({item.label for item in items if item.label})),
        instructions=instructions,
        reviewers_each=reviewers_each,
        verify=verify,
        making=making_of(
            [images, known],
            made.choice.steps,
            models=[model.ref for model in reference.models] if reference else (),
        ),
    )
    save_project(project)
    return project
