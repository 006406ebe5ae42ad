"""ObjectNet: class folders, images with a red border, and its own mapping to ILSVRC-2012 classes."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass

from shiftproof.datasets.folder import open_folder
from shiftproof.datasets.image_list import FileImage, ImageList, StoredImage, file_image
from shiftproof.datasets.layout import Example, Published, layout
from shiftproof.datasets.listing import folder_name, inner_root
from shiftproof.errors import BadInput, UnreadableImage
from shiftproof.files import read_json
from shiftproof.places import is_file, is_folder
from shiftproof.reference import load_table
from shiftproof.types import Classes, Decoder, Image, ImageSource

CLASS_NAMES = "folder_to_objectnet_label.json"
BORDER = 2
"""Pixels cropped from every side, as ObjectNet's own loader does: the images have a red border."""


@dataclass(frozen=True, slots=True)
class BorderedImage(StoredImage):
    """An image file with a border to be cropped."""

    file: FileImage
    border: int

    def stamp(self) -> str:
        return self.file.stamp()

    def read(self) -> bytes:
        return self.file.read()

    def decode(self, data: bytes, *, decoder: Decoder = "pillow") -> Image:
        image = self.file.decode(data, decoder=decoder)
        height, width = image.shape[:2]
        if min(height, width) <= 2 * self.border:
            raise UnreadableImage(f"{width} x {height} pixels: nothing is left within the border")
        return image[self.border : height - self.border, self.border : width - self.border]


@dataclass(frozen=True)
class BorderedBelow:
    """Finds an image with a border by its path below the root."""

    root: str
    border: int

    def __call__(self, image_id: str) -> ImageSource:
        return BorderedImage(file_image(os.path.join(self.root, image_id)), self.border)


def _has_mappings(root: str) -> bool:
    """Whether the files that explain ObjectNet's folders lie in the folder or beside it."""
    return any(is_file(os.path.join(root, up, "mappings", CLASS_NAMES)) for up in ("", ".."))


@layout(
    holds="ObjectNet, with its `mappings`",
    labels="ObjectNet's own class names",
    recognise=lambda folder: _has_mappings(folder.root),
    published=(Published("objectnet", "ObjectNet", 50_273, 313),),
    example=Example(
        {"images/alarm_clock/a.png": "", "mappings/folder_to_objectnet_label.json": '{"alarm_clock": "Alarm clock"}'}
    ),
)
def open_objectnet(
    location: str, *, name: str | None = None, classes: Classes | None = None, border: int | str = BORDER
) -> ImageList:
    """ObjectNet's images without their border, under its own class names; `objectnet_groups` leads to ILSVRC-2012."""
    if not str(border).isdecimal():
        raise BadInput(f"border should be a number of pixels, got {border!r}")
    root = _image_folder(location)
    opened = open_folder(root, name=name or folder_name(location), classes=classes)
    if opened.classes is None:
        raise BadInput(f"{location} should hold a folder for each class of ObjectNet, but has only loose images")
    labels = _mapping(root, CLASS_NAMES) if _has_mappings(root) else {}
    named = classes or Classes(tuple(labels.get(key, key) for key in opened.classes.names))
    find = BorderedBelow(inner_root(root), int(border))
    notes = (*opened.notes, f"{border} pixels are cropped from each side: the red border") if int(border) else opened.notes
    return dataclasses.replace(opened, classes=named, find=find, notes=notes, published="objectnet")


def objectnet_groups(location: str) -> dict[str, list[str]]:
    """The wnids of the ILSVRC-2012 classes that each ObjectNet class stands for, from its own mapping files.

    In the form of `merge_classes`; classes of ObjectNet that ILSVRC lacks are not in it.
    """
    wnids = {row["names"]: row["wnid"] for row in load_table("ilsvrc2012_classes")}
    groups: dict[str, list[str]] = {}
    for label, names in _mapping(_image_folder(location), "objectnet_to_imagenet_1k.json").items():
        members = [entry.strip() for entry in names.split(";")]
        unknown = [entry for entry in members if entry not in wnids]
        if unknown:
            raise BadInput(f"the mapping of ObjectNet names {unknown[0]!r}, which is no class of ILSVRC-2012")
        groups[label] = [wnids[entry] for entry in members]
    return groups


def _image_folder(location: str) -> str:
    inner = os.path.join(location, "images")
    return inner if is_folder(inner) else location


def _mapping(root: str, file: str) -> dict[str, str]:
    for up in ("", ".."):
        path = os.path.join(root, up, "mappings", file)
        if is_file(path):
            mapping = read_json(path)
            if not isinstance(mapping, dict) or not all(isinstance(name, str) for name in mapping.values()):
                raise BadInput(f"{path} should map names to names")
            return mapping
    raise BadInput(f"no mappings/{file} in or beside {root}; it comes with ObjectNet")
