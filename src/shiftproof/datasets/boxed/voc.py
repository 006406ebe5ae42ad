"""Boxes in one XML file an image: Pascal VOC, the localization images of ILSVRC, and ImageNet-VID."""

from __future__ import annotations

import dataclasses
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from shiftproof.datasets.boxed.boxes import FARTHEST, BoxedImage, Object, boxed_list, cornered_box, keys_of, numbers_from
from shiftproof.datasets.image_list import FilesBelow, ImageList
from shiftproof.datasets.labels import places_of
from shiftproof.datasets.layout import Example, layout
from shiftproof.datasets.listing import folder_name, list_files, list_images
from shiftproof.errors import BadInput, listed
from shiftproof.files import read_regular, read_text
from shiftproof.places import absolute, fetch_together, is_file, is_folder
from shiftproof.types import Classes, Fact

ANNOTATIONS = "Annotations"
IMAGE_FOLDERS = ("JPEGImages", "Data", "")
"""Folders of the images beside that of the annotations: in VOC, in ILSVRC, or the folder itself."""

LARGEST_ANNOTATION = 2**26
"""Largest annotation of one image in bytes."""

IGNORED_FLAGS = ("difficult", "generated")
"""Objects that VOC leaves out as too hard, and boxes of ImageNet-VID that a tracker drew."""


MULTIBYTE = {
    **dict.fromkeys(("gb2312", "gbk", "gb18030", "gb_2312_80", "cp936"), "gb18030"),
    **dict.fromkeys(("big5", "big5_hkscs", "cp950"), "big5hkscs"),
    **dict.fromkeys(("shift_jis", "sjis", "windows_31j", "cp932"), "cp932"),
    **dict.fromkeys(("euc_kr", "ks_c_5601_1987", "cp949"), "cp949"),
    **dict.fromkeys(("euc_jp", "eucjp"), "euc_jp"),
    "iso_2022_jp": "iso2022_jp",
}
"""Declared multi-byte encodings, and the codec that reads each with the extensions of Windows."""


_EXAMPLE = (
    "<annotation><size><width>12</width><height>8</height></size><object><name>n01440764</name>"
    "<bndbox><xmin>1</xmin><ymin>2</ymin><xmax>5</xmax><ymax>6</ymax></bndbox></object></annotation>"
)


@layout(
    holds="`Annotations` and `JPEGImages` (Pascal VOC)",
    labels="the names of its objects",
    recognise=lambda folder: {ANNOTATIONS, "JPEGImages"} <= set(folder.folders),
    example=Example({"JPEGImages/a.jpg": "", "Annotations/a.xml": _EXAMPLE}),
)
def open_voc(
    location: str,
    *,
    annotations: str | Path | None = None,
    split: str | None = None,
    name: str | None = None,
    classes: Classes | None = None,
) -> ImageList:
    """The images of a Pascal VOC folder, or of the list ``ImageSets/Main/<split>.txt`` in it.

    Its corners are numbers of pixels from 1, both inside the box, so 1 is subtracted on the left and at the top. Difficult
    objects are ignored.
    """
    members = None if split is None else _members(location, split)
    return _open_xml(location, annotations, name, classes, first_pixel=1, members=members)


@layout(
    holds="`ILSVRC/Data/CLS-LOC/val` beside `ILSVRC/Annotations`",
    labels="the wnids of its objects",
    example=Example({"Data/val/000003.JPEG": "", "Annotations/val/000003.xml": _EXAMPLE}),
)
def open_ilsvrc_loc(
    location: str, *, annotations: str | Path | None = None, name: str | None = None, classes: Classes | None = None
) -> ImageList:
    """The images of ILSVRC with their boxes, as in ``ILSVRC/Data/CLS-LOC/val``; classes are wnids."""
    return _open_xml(location, annotations, name, classes)


@layout(
    holds="`ILSVRC/Data/VID/val` beside `ILSVRC/Annotations`",
    labels="the wnids of its objects",
    example=Example({"Data/val/000003.JPEG": "", "Annotations/val/000003.xml": _EXAMPLE}),
)
def open_imagenet_vid(
    location: str, *, annotations: str | Path | None = None, name: str | None = None, classes: Classes | None = None
) -> ImageList:
    """The frames of ImageNet-VID with their boxes, as in ``ILSVRC/Data/VID/val``; boxes that a tracker drew are ignored.

    The fact `sequence` is the folder of a frame, `frame` its number in it.
    """
    return _open_xml(location, annotations, name, classes, facts=_frame_facts)


def parse_xml(data: bytes, where: str) -> Element:
    """The root of an XML document; one that declares entities or other document types is refused."""
    builder = TreeBuilder()
    data, encoding = _readable(data, where)
    parser = expat.ParserCreate(encoding)
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data

    def refuse(*_declared: object) -> None:
        raise BadInput(f"{where} declares a document type, which files of boxes do not need; it is not read")

    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(data, True)
    except expat.ExpatError as problem:
        raise BadInput(f"{where} is not XML: {problem}") from problem
    except (LookupError, ValueError) as problem:  # of a codec that makes no text, or does not exist
        raise BadInput(f"{where} is in an encoding that cannot be read; save it in UTF-8") from problem
    return builder.close()


def _readable(data: bytes, where: str) -> tuple[bytes, str | None]:
    """The document and its encoding where the parser has to be told; it knows no encoding of several bytes but Unicode's."""
    declared = re.match(rb"""<\?xml[^>]*?\sencoding\s*=\s*["']([\w.-]+)["']""", data[:200].lstrip())
    named = declared[1].decode("ascii", "replace") if declared else ""
    known_as = MULTIBYTE.get(named.lower().replace("-", "_"))
    if known_as is None:
        return data, None
    try:
        return data.decode(known_as).encode(), "utf-8"
    except UnicodeDecodeError as problem:
        raise BadInput(f"{where} is not in the encoding that it declares, {named}") from problem


def objects_in(root: Element, where: str, *, first_pixel: int = 0) -> Iterator[Object]:
    """Every object of an annotation; the boxes of its parts, such as heads and hands, do not count."""
    for number, entry in enumerate(root.iterfind("object"), 1):
        place = f"{where}, object {number}"
        key = (entry.findtext("name") or "").strip()
        corners = [entry.findtext(f"bndbox/{side}") for side in ("xmin", "ymin", "xmax", "ymax")]
        if not key or None in corners:
            raise BadInput(f"{place}: expected a name and a bndbox of xmin, ymin, xmax and ymax")
        left, top, right, bottom = cornered_box(numbers_from(corners, place), place)
        ignored = any((entry.findtext(flag) or "0").strip() == "1" for flag in IGNORED_FLAGS)
        yield Object(key, (left - first_pixel, top - first_pixel, right, bottom), ignored=ignored)


def _open_xml(
    location: str,
    annotations: str | Path | None,
    name: str | None,
    classes: Classes | None,
    *,
    first_pixel: int = 0,
    members: Sequence[str] | None = None,
    facts: Callable[[str], Mapping[str, Fact]] | None = None,
) -> ImageList:
    images, files = _folders(location, annotations)
    by_stem = _by_stem(list_files(files, lambda file: file.lower().endswith(".xml")).ids())
    listing = list_images(images)
    ids = listing.ids()
    if members is not None:
        wanted = set(members)
        ids = [image_id for image_id in ids if _stem(image_id) in wanted]
    paths = _paired(ids, by_stem)
    if not any(paths.values()):
        raise BadInput(f"none of the {len(ids):,} images below {images} has an .xml file of its name below {files}")
    fetch_together(os.path.join(files, path) for path in paths.values() if path is not None)
    boxed = [
        _annotated(files, path, image_id, first_pixel=first_pixel, facts=facts(image_id) if facts else {})
        for image_id, path in paths.items()
    ]
    without = [image_id for image_id, path in paths.items() if path is None]
    unannotated = (f"{len(without):,} images have no .xml file: {listed(without, most=3)}",) if without else ()
    notes = (*unannotated, *dataclasses.replace(listing, others=()).notes())
    found, places = places_of(keys_of(boxed), classes)
    own_name = name or folder_name(location)
    return boxed_list(boxed, FilesBelow(images), name=own_name, classes=found, places=places, notes=notes)


def xml_images(files: str, ids: Iterable[str]) -> list[BoxedImage]:
    """Those of the images that have an annotation of their path below a folder, each with its objects."""
    paths = {image_id: f"{_stem(image_id)}.xml" for image_id in ids}
    return [_annotated(files, path, image_id) for image_id, path in paths.items() if is_file(os.path.join(files, path))]


def _annotated(
    files: str, path: str | None, image_id: str, *, first_pixel: int = 0, facts: Mapping[str, Fact] | None = None
) -> BoxedImage:
    """An image with what its annotation says, where it has one; with a broken one it is skipped."""
    if path is None:
        return BoxedImage(image_id, facts=facts or {})
    try:
        root = parse_xml(_bytes(os.path.join(files, path)), path)
        return BoxedImage(image_id, list(objects_in(root, path, first_pixel=first_pixel)), _size_in(root), facts or {})
    except BadInput as problem:
        return BoxedImage(image_id, facts=facts or {}, broken=str(problem))


def _folders(location: str, annotations: str | Path | None) -> tuple[str, str]:
    """The folders of the images and of their annotations."""
    root = absolute(location)
    if annotations is not None:
        return root, absolute(os.fspath(annotations))
    inside = os.path.join(root, ANNOTATIONS)
    if is_folder(inside):
        return next(path for folder in IMAGE_FOLDERS if is_folder(path := os.path.join(root, folder))), inside
    # ILSVRC/Data/VID/val belongs to ILSVRC/Annotations/VID/val
    steps = root.split(os.sep)
    for place in range(len(steps) - 1, 0, -1):
        twin = os.sep.join([*steps[:place], ANNOTATIONS, *steps[place + 1 :]])
        if steps[place] in IMAGE_FOLDERS and is_folder(twin):
            return root, twin
    return root, root


def _paired(ids: Sequence[str], by_stem: Mapping[str, str]) -> dict[str, str | None]:
    """The annotation of each image: of the same path, or where no path agrees, of the same name alone."""
    paths = {image_id: by_stem.get(_stem(image_id)) for image_id in ids}
    if any(paths.values()):
        return paths
    names = Counter(stem.rpartition("/")[2] for stem in by_stem)
    by_name = {stem.rpartition("/")[2]: path for stem, path in by_stem.items() if names[stem.rpartition("/")[2]] == 1}
    return {image_id: by_name.get(_stem(image_id).rpartition("/")[2]) for image_id in ids}


def _by_stem(paths: Sequence[str]) -> dict[str, str]:
    return {_stem(path): path for path in paths}


def _stem(path: str) -> str:
    return os.path.splitext(path)[0]


def _members(location: str, split: str) -> list[str]:
    """The names on a list of VOC; behind some stands a 1 or -1 for one class, which the boxes say as well."""
    path = os.path.join(location, "ImageSets", "Main", f"{split}.txt")
    try:
        lines = read_text(path).splitlines()
    except BadInput as problem:
        raise BadInput(f"no list of the split {split!r} at {path}") from problem
    return [line.split()[0] for line in lines if line.strip()]


def _frame_facts(image_id: str) -> Mapping[str, Fact]:
    folder, _, file = image_id.rpartition("/")
    number = _stem(file)
    return {"sequence": folder, "frame": int(number) if number.isdecimal() else number}


def _size_in(root: Element) -> tuple[float, float] | None:
    try:
        size = float(root.findtext("size/width", "0")), float(root.findtext("size/height", "0"))
    except ValueError:
        return None
    return size if all(0 < side < FARTHEST for side in size) else None


def _bytes(path: str) -> bytes:
    try:
        return read_regular(path, most=LARGEST_ANNOTATION)
    except OSError as problem:
        raise BadInput(f"{path} cannot be read: {problem.strerror}") from problem
