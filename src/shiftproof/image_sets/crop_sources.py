"""The photos that a set of crops was cut out of, as a set of their own: the same objects with all that is around them."""

from __future__ import annotations

import dataclasses
import os
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path

from shiftproof.errors import BadInput, listed
from shiftproof.image_sets.crops import CropsOf, image_of
from shiftproof.image_sets.image_list import ImageList
from shiftproof.image_sets.records import RECORD, load_record
from shiftproof.types import Classes

PHOTOS = "photos"
"""Where the photos lie, in the record beside written crops; paths are relative to the folder of the record."""


def crop_sources(crops: ImageList, photos: ImageList, *, name: str | None = None) -> ImageList:
    """Every photo that some crop is of, once, labelled with the classes of its crops.

    A crop is of the photo that its id begins with, else of the one of its own id, whatever their endings, else of the only
    one of its file name. Crops of no photo are counted in the notes.
    """
    known = _Known.of(photos)
    labels: dict[str, set[int]] = defaultdict(set)
    strange = []
    for crop in crops.samples:
        photo = known.photo_of(crop.id)
        if photo is None:
            strange.append(crop.id)
        else:
            labels[photo].update(crop.labels)
    if not labels:
        raise BadInput(
            f"none of the {len(crops.samples):,} crops of {crops.name} is of a photo of {photos.name}: no photo is called "
            f"as {listed(strange, most=1)} is"
        )
    samples = [
        dataclasses.replace(photo, labels=tuple(sorted(labels[photo.id])), boxes=None)
        for photo in photos.samples
        if photo.id in labels
    ]
    lost = (f"{len(strange):,} crops are of no photo there: {listed(strange, most=3)}",) if strange else ()
    notes = (f"{len(samples):,} photos of {photos.name}, out of which {len(crops.samples):,} crops were cut", *lost)
    return ImageList(
        name or f"photos of {crops.name}", samples, crops.classes, photos.find, notes=notes, credits=photos.credits
    )


def open_crop_sources(
    location: str, *, images: str | None = None, name: str | None = None, classes: Classes | None = None
) -> ImageList:
    """The photos of the crops at a location: those in `images`, else where the crops say that they were cut out of."""
    from shiftproof.image_sets import open_images

    crops = open_images(location, classes=classes)
    if images is None and isinstance(crops.find, CropsOf):
        return crop_sources(crops, crops.find.images, name=name)
    told = None if images else _photos_told(location)
    images = images or told
    if images is None:
        raise BadInput(f"{location} does not say where its photos are; say it, as in crop-sources:{location}?images=photos")
    found = crop_sources(crops, open_images(images), name=name)
    return (
        found
        if told is None
        else dataclasses.replace(found, notes=(*found.notes, f"the photos are at {told}, as {RECORD} says"))
    )


def _photos_told(location: str) -> str | None:
    """Where the record beside crops says that their photos are; None where it says nothing."""
    if not os.path.isdir(location):
        return None
    root = location if load_record(location) else os.path.dirname(os.path.abspath(location))
    told = (load_record(root) or {}).get(PHOTOS)
    if not told:
        return None
    place = seen_from_here(str(told), root)
    if "crop-sources:" in place:  # it could lead back to the same record
        raise BadInput(
            f"{root} says that its photos are those of other crops, {place[:200]}; say where they are, with ?images="
        )
    if os.path.isabs(place) and not os.path.exists(place):
        raise BadInput(
            f"the photos of {location} were at {place}, and are not there any more; say where they are, as in "
            f"crop-sources:{location}?images=photos"
        )
    return place


def seen_from(location: str, folder: str | Path) -> str | None:
    """A location with its paths relative to a folder, so that both can move together; None where there is no way.

    >>> seen_from("/tmp", "/tmp/sets/hard")
    '../..'
    """
    from shiftproof.image_sets import with_paths

    def change(text: str) -> str:
        is_path = os.path.isabs(text) and os.path.exists(text)
        return Path(os.path.relpath(text, folder)).as_posix() if is_path else text

    try:
        return with_paths(location, change)
    except ValueError:  # another drive
        return None


def seen_from_here(location: str, folder: str | Path) -> str:
    """The location that `seen_from` made relative to this folder; absolute paths stay."""
    from shiftproof.image_sets import with_paths

    def change(text: str) -> str:
        return os.path.abspath(os.path.join(folder, text)) if Path(text).parts[:1] == (os.pardir,) else text

    return with_paths(location, change)


@dataclasses.dataclass(frozen=True)
class _Known:
    """Photos by their ids, by these without endings, and by file names that only one has."""

    ids: frozenset[str]
    bare: Mapping[str, str]
    names: Mapping[str, str]

    @classmethod
    def of(cls, photos: ImageList) -> _Known:
        ids = [photo.id for photo in photos.samples]
        often = Counter(_name(one) for one in ids)
        names = {_name(one): one for one in ids if often[_name(one)] == 1}
        return cls(frozenset(ids), {_bare(one): one for one in ids}, names)

    def photo_of(self, crop: str) -> str | None:
        for one in (image_of(crop), crop):
            if one in self.ids:
                return one
        found = (self.bare.get(_bare(one)) or self.names.get(_name(one)) for one in (image_of(crop), crop))
        return next((one for one in found if one), None)


def _bare(image: str) -> str:
    return os.path.splitext(image)[0]


def _name(image: str) -> str:
    return os.path.basename(_bare(image))
