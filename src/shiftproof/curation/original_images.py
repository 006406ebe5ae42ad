"""The images behind a review project: as the sets have them that its items were taken from, and as reviewers saw them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Literal

from shiftproof.curation.origins import origin_of
from shiftproof.curation.project import Item, Project
from shiftproof.curation.shelf import ending_as_it_is
from shiftproof.digests import digest_of
from shiftproof.errors import BadInput, ShiftproofError
from shiftproof.image_sets import ImageList, open_images
from shiftproof.image_sets.image_list import FileImage
from shiftproof.types import ImageSource, Sample
from shiftproof.writing.originals import is_own_file, read_original

Pixels = Literal["source", "project"]
"""As the image set has them that an item was taken from, or as reviewers saw them."""

ADVICE = "put them back, or take the pictures that reviewers saw, with --pixels project"


class OriginalImages:
    """Finds the images of a project; each set that they were taken from is opened once."""

    def __init__(self, project: Project, pixels: Pixels) -> None:
        self._project, self._pixels = project, pixels
        self._sets: dict[str, ImageList] = {}
        self._samples: dict[str, Mapping[str, Sample]] = {}

    @property
    def credits(self) -> tuple[str, ...]:
        """What is to be said of the image sets that were opened."""
        return tuple(dict.fromkeys(credit for images in self._sets.values() for credit in images.credits))

    def find(self, item: Item, image_id: str, picture: str) -> tuple[Sample, ImageSource]:
        """An image of an item by its id in the set that it was taken from, and what it is called in the project.

        BadInput where it is not there, or is no longer what people saw.
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
            images = self._sets[location] = open_images(location)
        except ShiftproofError as problem:
            raise BadInput(
                f"{self._project.title} was made from images that cannot be opened: {problem}; {ADVICE}"
            ) from problem
        self._samples[location] = {sample.id: sample for sample in images.samples}


def _check_unchanged(image_id: str, source: ImageSource, picture: str) -> None:
    """BadInput where an image is another than the picture that people judged, as far as its file tells."""
    if not is_own_file(source):
        return
    data = read_original(image_id, source)
    if digest_of(data) == PurePath(picture).stem:
        return
    if ending_as_it_is(data, source.decode(data)) is not None:
        raise BadInput(f"{image_id} has changed since people judged it; {ADVICE}")
