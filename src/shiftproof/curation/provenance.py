"""Provenance of a review project: how its candidates came about, and the source image of each item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Literal

from shiftproof.curation.funnel import Step
from shiftproof.curation.pictures import browser_suffix
from shiftproof.curation.project import Item, Making, Project
from shiftproof.datasets import open_dataset
from shiftproof.datasets.image_list import FileImage, ImageList
from shiftproof.errors import BadInput, ShiftproofError
from shiftproof.runs.digests import digest_of
from shiftproof.studies.measure import typed_command, versions
from shiftproof.types import Fact, ImageSource, ModelRef, Sample
from shiftproof.writing.image_files import is_own_file, read_original

SOURCE, ID = "source", "id"
"""Facts of an item that name its source dataset and the image's id there."""


def making_of(
    datasets: Sequence[ImageList | None],
    steps: Sequence[Step],
    *,
    models: Sequence[ModelRef] = (),
    choices: Mapping[str, Fact] | None = None,
) -> Making:
    """The sources, filter models, steps, command and versions of a curation run; optional datasets may be None."""
    return Making(
        typed_command(),
        tuple(steps),
        tuple({"name": model.name, "fingerprint": model.fingerprint} for model in models),
        tuple(_source(images) for images in datasets if images is not None),
        versions(),
        dict(choices or {}),
    )


def origin(images: ImageList, sample: Sample) -> dict[str, Fact]:
    """The source of an item's image, as facts by which an export finds its pixels; only the id for a dataset in memory."""
    return {**({} if images.location is None else {SOURCE: images.location}), ID: sample.id}


def origin_of(item: Item) -> tuple[str | None, str]:
    """The location of an item's source dataset, None where it is unknown, and the id of its image there."""
    location = item.facts.get(SOURCE)
    return None if location is None else str(location), str(item.facts.get(ID, item.id))


def _source(images: ImageList) -> dict[str, str]:
    return {
        "name": images.name,
        "location": images.location or "",
        "fingerprint": images.ref.fingerprint,
        "licence": "; ".join(images.credits),
    }


Pixels = Literal["source", "project"]
"""From the source dataset, or as reviewers saw them."""

ADVICE = "put them back, or take the pictures that reviewers saw, with --pixels project"


class OriginalImages:
    """Finds the source images of a project; each source dataset is opened once."""

    def __init__(self, project: Project, pixels: Pixels) -> None:
        self._project, self._pixels = project, pixels
        self._sets: dict[str, ImageList] = {}
        self._samples: dict[str, Mapping[str, Sample]] = {}

    @property
    def credits(self) -> tuple[str, ...]:
        """Credits of the datasets that were opened."""
        return tuple(dict.fromkeys(credit for images in self._sets.values() for credit in images.credits))

    def find(self, item: Item, image_id: str, picture: str) -> tuple[Sample, ImageSource]:
        """The source image of an item, by its id in the source dataset and its file name in the project.

        BadInput where it is missing, or no longer what reviewers saw.
        """
        location, _ = origin_of(item)
        if location is None or self._pixels == "project":
            return Sample(image_id), FileImage(str(self._project.image(picture)))
        if location not in self._sets:
            self._open(location)
        if image_id not in self._samples[location]:
            raise BadInput(f"{location} no longer holds {image_id}, which {self._project.title} was made from; {ADVICE}")
        sample = self._samples[location][image_id]
        source = self._sets[location].source(sample)
        _check_unchanged(image_id, source, picture)
        return sample, source

    def _open(self, location: str) -> None:
        try:
            images = self._sets[location] = open_dataset(location)
        except ShiftproofError as problem:
            raise BadInput(
                f"{self._project.title} was made from images that cannot be opened: {problem}; {ADVICE}"
            ) from problem
        self._samples[location] = {sample.id: sample for sample in images.samples}


def _check_unchanged(image_id: str, source: ImageSource, picture: str) -> None:
    """BadInput where an image file differs from the picture that was reviewed."""
    if not is_own_file(source):
        return
    data = read_original(image_id, source)
    if digest_of(data) == PurePath(picture).stem:
        return
    if browser_suffix(data, source.decode(data)) is not None:
        raise BadInput(f"{image_id} has changed since it was reviewed; {ADVICE}")
