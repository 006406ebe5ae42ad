"""YOLO: one text file an image, one line an object, coordinates as shares of the image."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from shiftproof.datasets.boxed.boxes import BoxedImage, Object, boxed_list, cornered_box, keys_of, numbers_from, upright_size
from shiftproof.datasets.classes import classes_from, numbered_classes
from shiftproof.datasets.image_list import FilesBelow, ImageList
from shiftproof.datasets.labels import NUMBER
from shiftproof.datasets.layout import Example, Folder, layout
from shiftproof.datasets.listing import folder_name, list_images, visible_entries
from shiftproof.errors import BadInput, listed
from shiftproof.files import read_text
from shiftproof.places import absolute, as_path, exists, fetch_together, is_file, is_folder
from shiftproof.types import Classes

NAME_FILES = ("classes.txt", "obj.names", "names.txt")
"""Usual names of the file of class names."""


def _is_yolo(folder: Folder) -> bool:
    texts = visible_entries(f"{folder.root}/labels")[1] if {"images", "labels"} <= set(folder.folders) else []
    return any(name.endswith(".txt") for name in texts)


@layout(
    holds="`images` and `labels` with a `.txt` file for each image (YOLO)",
    labels="the classes of its objects",
    recognise=_is_yolo,
    example=Example({"images/a.png": "", "labels/a.txt": "1 0.5 0.5 0.5 0.25\n"}),
)
def open_yolo(
    location: str,
    *,
    boxes: str | Path | None = None,
    names: str | Path | None = None,
    name: str | None = None,
    classes: Classes | None = None,
) -> ImageList:
    """The images of a folder, with lines of ``class centre-x centre-y width height`` in a text file of the same name.

    The text files lie in the folder `boxes`, in ``labels`` where the images lie in ``images``, or beside the images; an
    image without one has no objects. `names` is a file of class names in the order of their numbers. Only the header of
    an image is read, for its size.
    """
    images, texts = _folders(location, boxes)
    ids = list_images(images).ids()
    if not ids:
        raise BadInput(f"no images below {images}")
    found = classes or _named(location, texts, names)
    fetch_together(os.path.join(images, image_id) for image_id in ids)
    sizes = {image_id: upright_size(os.path.join(images, image_id)) for image_id in ids}
    paths = {image_id: os.path.join(texts, os.path.splitext(image_id)[0] + ".txt") for image_id in ids}
    if not any(map(is_file, paths.values())):
        raise BadInput(f"none of the {len(ids):,} images below {images} has a .txt file of its name below {texts}")
    boxed = [_annotated(image_id, paths[image_id], size) for image_id, size in sizes.items()]
    if found is None:
        found = numbered_classes(max(map(int, keys_of(boxed)), default=-1) + 1)
    beyond = sorted({int(key) for key in keys_of(boxed) if int(key) >= len(found)})
    if beyond:
        raise BadInput(f"files in {texts} use class {beyond[0]}, but only {len(found)} classes are named, counted from 0")
    unread = [image_id for image_id, size in sizes.items() if size is None]
    notes = (f"{len(unread):,} images cannot be read and have no boxes: {listed(unread, most=3)}",) if unread else ()
    places = {key: int(key) for key in keys_of(boxed)}
    own_name = name or folder_name(location)
    return boxed_list(boxed, FilesBelow(images), name=own_name, classes=found, places=places, notes=notes)


def _folders(location: str, boxes: str | Path | None) -> tuple[str, str]:
    """The folders of the images and of their text files."""
    root = absolute(location)
    images = os.path.join(root, "images")
    if boxes is not None:
        return root, absolute(os.fspath(boxes))
    if is_folder(images) and is_folder(os.path.join(root, "labels")):
        return images, os.path.join(root, "labels")
    # images/val belongs to labels/val
    steps = root.split(os.sep)
    for place in range(len(steps) - 1, 0, -1):
        twin = os.sep.join([*steps[:place], "labels", *steps[place + 1 :]])
        if steps[place] == "images" and is_folder(twin):
            return root, twin
    return root, root


def _named(location: str, texts: str, names: str | Path | None) -> Classes | None:
    if names is not None:
        return classes_from(as_path(names))
    for folder in (location, texts):
        for file in NAME_FILES:
            if is_file(path := os.path.join(folder, file)):
                return classes_from(as_path(path))
    return None


def _annotated(image_id: str, path: str, size: tuple[int, int] | None) -> BoxedImage:
    """An image with what its text file says; with a broken one it is skipped."""
    try:
        return BoxedImage(image_id, _objects(path, size), size)
    except BadInput as problem:
        return BoxedImage(image_id, size=size, broken=str(problem))


def _objects(path: str, size: tuple[int, int] | None) -> list[Object]:
    """The objects of one image, in pixels; none where the image's size is unknown or there is no file."""
    if size is None or not exists(path):
        return []
    lines = read_text(path).splitlines()
    rows = [(number, line.split()) for number, line in enumerate(lines, 1) if line.strip()]
    return [_object(cells, size, f"{path}, line {number}") for number, cells in rows]


def _object(cells: Sequence[str], size: tuple[int, int], where: str) -> Object:
    if len(cells) != 5 or not NUMBER.fullmatch(cells[0]):
        raise BadInput(f"{where}: expected a class number and four shares of the image, got {' '.join(cells)!r}")
    across, down, width, height = numbers_from(cells[1:], where)
    if max(map(abs, (across, down, width, height))) > 2:
        raise BadInput(f"{where}: centre and size should be shares of the image between 0 and 1, got {' '.join(cells[1:])}")
    horizontal, vertical = size
    corners = (across - width / 2, down - height / 2, across + width / 2, down + height / 2)
    cornered_box(corners, where)
    left, top, right, bottom = (share * side for share, side in zip(corners, (*size, *size), strict=True))
    return Object(cells[0], (_settled(left, 0), _settled(top, 0), _settled(right, horizontal), _settled(bottom, vertical)))


def _settled(corner: float, edge: float) -> float:
    """The corner, or the edge of the image where only rounding lies between them: files keep six digits."""
    return edge if abs(corner - edge) < 0.01 else corner
