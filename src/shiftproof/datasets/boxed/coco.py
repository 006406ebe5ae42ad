"""COCO: images, annotations with boxes, and categories in one JSON file."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from shiftproof.datasets.boxed.boxes import COCO_EXAMPLE, FARTHEST, BoxedImage, Object, boxed_list, keys_of, short, sized_box
from shiftproof.datasets.classes import classes_from
from shiftproof.datasets.image_list import FilesBelow, ImageList
from shiftproof.datasets.labels import places_of
from shiftproof.datasets.layout import layout
from shiftproof.errors import BadInput, listed
from shiftproof.files import read_json
from shiftproof.places import absolute, is_file
from shiftproof.types import Classes, Fact

Entry: TypeAlias = Mapping[str, Any]

OWN_FIELDS = frozenset(
    ("id", "file_name", "width", "height", "license", "flickr_url", "coco_url", "date_captured", "rights_holder")
)
"""Fields of an image in COCO and its relatives; other fields are facts."""


@layout(
    holds="the `.json` of COCO, its images where COCO keeps them or in `images=`",
    labels="the categories of its objects",
    endings=(".json",),
    example=COCO_EXAMPLE,
)
def open_coco(
    location: str, *, images: str | Path | None = None, name: str | None = None, classes: Classes | None = None
) -> ImageList:
    """The images of a COCO file, in the folder `images` or where COCO keeps them beside it.

    Classes are the file's categories in the order of their numbers, whether an object has them or not. Further fields of an
    image that are no lists or objects, such as `anchor` and `offset` of a frame, are its facts.
    """
    boxed, categories = coco_images(location)
    root = _image_folder(location, images, [image.id for image in boxed])
    found, places = places_of(keys_of(boxed), classes or categories)
    note = f"boxes from {os.path.basename(location)}"
    return boxed_list(boxed, FilesBelow(root), name=name or Path(location).stem, classes=found, places=places, notes=(note,))


def coco_images(location: str) -> tuple[list[BoxedImage], Classes]:
    """The images that a file lists, each with its objects, and its categories in the order of their numbers."""
    data = load_coco(location)
    names = category_names(data, location)
    objects, broken = _objects_by_image(data, names, location)
    entries = images_by_number(data, location)
    strangers = [number for number in (*objects, *broken) if number not in entries]
    if strangers:
        raise BadInput(f"{location} has boxes in images that it does not list: {listed(strangers, most=3)}")
    boxed = [
        BoxedImage(image_id(entry, location), objects.get(number, ()), _size_of(entry), _facts_of(entry), broken.get(number))
        for number, entry in entries.items()
    ]
    twice = len(boxed) - len({image.id for image in boxed})
    if twice:
        raise BadInput(f"{location} lists {twice} images twice; every file_name should stand there once")
    return boxed, classes_from(list(names.values()))


def load_coco(path: str | Path) -> Entry:
    """The file as it is, once it is known to list images and categories."""
    data = read_json(path)
    lists = ("images", "categories", "annotations")
    if not isinstance(data, dict) or not all(_is_table(data.get(part)) for part in lists):
        raise BadInput(f"{path} is not in the form of COCO: expected lists of objects called {', '.join(lists)}")
    if not data["images"] or not data["categories"]:
        raise BadInput(f"{path} lists no {'images' if not data['images'] else 'categories'}")
    return data


def category_names(data: Entry, where: str | Path) -> dict[str, str]:
    """The name of each category by its number, in the order of the numbers."""
    entries = data["categories"]
    if any("id" not in entry or not isinstance(entry.get("name"), str) for entry in entries):
        raise BadInput(f"{where}: every category should have an id and a name")
    try:
        ordered = sorted(entries, key=lambda entry: entry["id"])
    except TypeError as problem:
        raise BadInput(f"{where}: the ids of categories should all be numbers") from problem
    names = {str(entry["id"]): entry["name"] for entry in ordered}
    if len(set(names.values())) != len(entries):
        raise BadInput(f"{where}: every category should have an id and a name of its own")
    return names


def _is_table(entries: object) -> bool:
    return isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries)


def images_by_number(data: Entry, where: str | Path) -> dict[str, Entry]:
    """The entry of each image by its number."""
    if any("id" not in entry or not isinstance(entry.get("file_name"), str) for entry in data["images"]):
        raise BadInput(f"{where}: every image should have an id and a file_name")
    entries = {str(entry["id"]): entry for entry in data["images"]}
    if len(entries) != len(data["images"]):
        raise BadInput(f"{where}: every image should have an id of its own")
    return entries


def _objects_by_image(data: Entry, names: Mapping[str, str], where: str) -> tuple[dict[str, list[Object]], dict[str, str]]:
    """The objects of each image by its number, and what is wrong with the boxes of those that have bad ones."""
    objects: dict[str, list[Object]] = defaultdict(list)
    broken: dict[str, str] = {}
    for number, entry in enumerate(data["annotations"], 1):
        place = f"{where}, annotation {number}"
        # captions and keypoints without a box share the format
        if "bbox" not in entry:
            raise BadInput(f"{place}: no bbox; name the file of instances")
        category = str(entry.get("category_id"))
        if "image_id" not in entry or category not in names:
            raise BadInput(f"{place}: no image_id, or a category_id that is not in the list: {category}")
        try:
            box, area = sized_box(entry["bbox"], place), _area_of(entry, place)
        except BadInput as problem:
            broken.setdefault(str(entry["image_id"]), str(problem))
            continue
        flags = (bool(entry.get("iscrowd")), bool(entry.get("ignore")))
        objects[str(entry["image_id"])].append(Object(names[category], box, *flags, area))
    return objects, broken


def _area_of(entry: Entry, where: str) -> float | None:
    area = entry.get("area")
    if not isinstance(area, (int, float)) or isinstance(area, bool):
        return None
    if not 0 <= area < FARTHEST**2:
        raise BadInput(f"{where}: the area should be a number of pixels, got {short(area)}")
    return float(area)


def _size_of(entry: Entry) -> tuple[float, float] | None:
    size = entry.get("width"), entry.get("height")
    width, height = (side if isinstance(side, (int, float)) and 0 < side < FARTHEST else None for side in size)
    return None if width is None or height is None else (width, height)


def _facts_of(entry: Entry) -> dict[str, Fact]:
    plain = (str, int, float, type(None))
    return {field: value for field, value in entry.items() if field not in OWN_FIELDS and isinstance(value, plain)}


def image_id(entry: Entry, where: str | Path) -> str:
    """The path of an image below the folder of images."""
    path: str = entry["file_name"].replace("\\", "/")
    if path.startswith("/") or ".." in path.split("/") or not path:
        raise BadInput(f"{where}: file_name should be a path below the folder of images, got {entry['file_name']!r}")
    return path


def _image_folder(location: str, images: str | Path | None, names: Sequence[str]) -> str:
    """The folder given, or the first of the usual ones that holds one of the first images."""
    beside = os.path.dirname(absolute(location))
    above = os.path.dirname(beside)
    # instances_val2017.json lies in annotations/, its images in val2017/ beside that
    split = Path(location).stem.rpartition("_")[2]
    usual = [os.path.join(folder, inner) for folder in (beside, above) for inner in ("", "images", split)]
    for folder in [absolute(os.fspath(images))] if images is not None else usual:
        if any(is_file(os.path.join(folder, name)) for name in names[:50]):
            return folder
    looked = f"in {images}" if images is not None else f"beside {location}; say where they are with images=FOLDER"
    raise BadInput(f"{names[0]} and the next images of the list are not {looked}")
