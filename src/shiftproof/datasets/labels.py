"""Labels: class names, wnids and numbers as labels; and labels that replace those of a dataset, such as ReaL labels."""

from __future__ import annotations

import dataclasses
import re
import tokenize
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.datasets.classes import WNID, ClassList, classes_from, numbered_classes, plain_name
from shiftproof.datasets.image_list import ImageList
from shiftproof.errors import BadInput, ClassMismatch, listed
from shiftproof.files import impossible_name, read_json, read_text
from shiftproof.places import as_path, local_file
from shiftproof.reference import ilsvrc_classes, readable_names
from shiftproof.types import Classes, Sample

NUMBER = re.compile(r"0|[1-9]\d{0,4}")
MOST_CLASSES = 100_000
"""Largest number of classes: where labels are numbers, every number up to the highest is a class."""


LabelKeys: TypeAlias = tuple[str, ...]
"""The classes of one image, each by its name, wnid or number; none for an unlabelled image."""


def label_keys(entry: object) -> LabelKeys:
    """The labels of one image, given alone or in a list; None, -1, an empty text and not-a-number stand for no label.

    >>> label_keys("cat"), label_keys([3, 3.0, 5]), label_keys(-1)
    (('cat',), ('3', '5'), ())
    """
    entries = entry if isinstance(entry, (list, tuple, np.ndarray)) else [entry]
    keys = (_label_text(label) for label in entries)
    return tuple(dict.fromkeys(key for key in keys if key not in ("", "-1")))


def _label_text(label: object) -> str:
    if label is None or (isinstance(label, (float, np.floating)) and np.isnan(label)):
        return ""
    # tables with gaps keep whole numbers as 3.0
    return str(int(label)) if isinstance(label, (float, np.floating)) and label.is_integer() else str(label).strip()


def classes_of_wnids(wnids: Iterable[str]) -> Classes:
    """Classes in the order of their wnids, which for ILSVRC-2012 is the order of its labels."""
    ordered = tuple(sorted(set(wnids)))
    return Classes(tuple(readable_names().get(wnid, wnid) for wnid in ordered), ordered)


def check_class_number(number: int, where: str) -> None:
    """BadInput where a label is too large to be a class number."""
    if number >= MOST_CLASSES:
        raise BadInput(f"{where} has the label {number}; class numbers go from 0 to {MOST_CLASSES - 1:,}")


def places_of(keys: Iterable[str], classes: Classes | None = None) -> tuple[Classes, dict[str, int]]:
    """The classes that these keys name, and the place of each key among them.

    Wnids are ordered as wnids, whole numbers are places themselves, and other names are sorted. Classes that are given
    keep their order, and the keys are looked up in them.

    >>> places_of(["dog", "cat"])
    (<Classes: cat, dog>, {'dog': 1, 'cat': 0})
    >>> places_of(["2", "0"])[0].names
    ('0', '1', '2')
    """
    wanted = list(dict.fromkeys(keys))
    if classes is not None:
        return classes, _places_in(wanted, classes)
    if wanted and all(WNID.fullmatch(key) for key in wanted):
        classes = classes_of_wnids(wanted)
        return classes, {key: classes.keys.index(key) for key in wanted}
    if wanted and all(NUMBER.fullmatch(key) for key in wanted):
        return numbered_classes(max(map(int, wanted)) + 1), {key: int(key) for key in wanted}
    names = tuple(sorted(wanted))
    order = {name: place for place, name in enumerate(names)}
    return Classes(names), {key: order[key] for key in wanted}


def _places_in(keys: list[str], classes: Classes) -> dict[str, int]:
    by_key = {key: place for place, key in enumerate(classes.keys)}
    by_name: dict[str, list[int]] = {}
    for place, name in enumerate(classes.names):
        by_name.setdefault(plain_name(name), []).append(place)
    places: dict[str, int] = {}
    for key in keys:
        named = by_name.get(plain_name(key), [])
        if key in by_key:
            places[key] = by_key[key]
        elif len(named) == 1:
            places[key] = named[0]
        elif NUMBER.fullmatch(key) and int(key) < len(classes):
            places[key] = int(key)
    unknown = [key for key in keys if key not in places]
    if unknown:
        raise ClassMismatch(
            f"{len(unknown)} of {len(keys)} labels are not among the {len(classes)} classes given: {listed(unknown)}; "
            "name each class once, as the images do"
        )
    return places


_VALIDATION_NUMBER = re.compile(r"ILSVRC2012_val_(\d{8})")


def relabelled(
    images: ImageList,
    *,
    labels: str | Path | Sequence[Any] | None,
    label: str | None = None,
    classes: ClassList | None = None,
) -> ImageList:
    """The same images under other labels; unchanged where none are given."""
    named = None if classes is None else classes_from(classes)
    if label is not None:
        return _with_keys(images, [(label,)] * len(images.samples), named, f"every image is labelled {label}")
    if labels is None:
        return images
    if isinstance(labels, str) and labels == "none":
        bare = [dataclasses.replace(sample, labels=()) for sample in images.samples]
        return dataclasses.replace(images, samples=bare, classes=None, truths=None)
    if not isinstance(labels, (str, Path)):
        return _with_keys(images, _in_order(images.samples, labels, "the labels given"), named)
    path = as_path(labels)
    read = _LABEL_FILES.get(path.suffix.lower())
    if read is None:
        raise BadInput(f"labels should come in a .json, .txt or .npy file, got {labels}")
    keys, own_classes = read(path, images.samples)
    return _with_keys(images, keys, named or own_classes, f"labels from {path.name}")


def _with_keys(images: ImageList, keys: Sequence[LabelKeys], classes: Classes | None, note: str = "") -> ImageList:
    found, places = places_of((key for image in keys for key in image), classes)
    samples = [
        dataclasses.replace(sample, labels=tuple(places[key] for key in image))
        for sample, image in zip(images.samples, keys, strict=True)
    ]
    notes = (*images.notes, note) if note else images.notes
    # the classes of objects are places in the classes that are replaced here
    return dataclasses.replace(images, samples=samples, classes=found if any(keys) else None, notes=notes, truths=None)


def _from_json(path: Path, samples: Sequence[Sample]) -> tuple[list[LabelKeys], Classes | None]:
    data = read_json(path)
    if isinstance(data, dict):
        return _by_name(path, samples, {name: label_keys(label) for name, label in data.items()}), None
    if not isinstance(data, list):
        raise BadInput(f"{path} should hold a list of labels or a mapping from image to labels")
    if data and all(isinstance(entry, list) for entry in data) and _VALIDATION_NUMBER.search(samples[0].id):
        return _real_labels(path, samples, data), ilsvrc_classes()
    return _in_order(samples, data, str(path)), None


def _real_labels(path: Path, samples: Sequence[Sample], data: list[list[int]]) -> list[LabelKeys]:
    """ReaL labels (Beyer et al., 2020): one list for each validation image, in the order of their numbers."""
    numbers = [int(found[1]) if (found := _VALIDATION_NUMBER.search(sample.id)) else 0 for sample in samples]
    strangers = [sample.id for sample, number in zip(samples, numbers, strict=True) if not 1 <= number <= len(data)]
    if strangers:
        raise BadInput(
            f"{path} has labels for ILSVRC2012_val_00000001 to {len(data):08d}, but {len(strangers)} images have no such "
            f"name: {listed(strangers, most=3)}"
        )
    return [label_keys(data[number - 1]) for number in numbers]


def _from_text(path: Path, samples: Sequence[Sample]) -> tuple[list[LabelKeys], Classes | None]:
    """Lines of ``label`` in the order of the ids, or of ``image label`` in any order."""
    lines = [line.strip() for line in read_text(path).splitlines() if line.strip()]
    pairs = [line.rsplit(maxsplit=1) for line in lines]
    ids = {sample.id for sample in samples} | {sample.id.rpartition("/")[2] for sample in samples}
    if all(len(pair) == 2 for pair in pairs) and any(pair[0] in ids for pair in pairs):
        return _by_name(path, samples, {image: label_keys(key) for image, key in pairs}), None
    return _in_order(samples, lines, str(path)), None


def _from_array(path: Path, samples: Sequence[Sample]) -> tuple[list[LabelKeys], Classes | None]:
    return _in_order(samples, load_label_array(path).tolist(), str(path)), None


def load_label_array(path: str | Path) -> NDArray[np.integer]:
    """Class numbers from an ``.npy`` file, one for each image, -1 for an unlabelled one."""
    labels = map_array(path)
    labels = labels.reshape(-1) if labels.size == max(labels.shape, default=0) else labels
    if labels.ndim != 1 or not np.issubdtype(labels.dtype, np.integer):
        raise BadInput(f"{path} should hold one whole number an image, got {labels.dtype} of shape {labels.shape}")
    if labels.min(initial=0) < -1:
        raise BadInput(f"{path} should hold class numbers, or -1 for an unlabelled image, got {labels.min()}")
    return np.array(labels)


def map_array(path: str | Path) -> NDArray[Any]:
    """The array of an ``.npy`` file, memory-mapped; BadInput where there is none. One at a URL is fetched whole."""
    try:
        path = local_file(str(path))
        if impossible_name(str(path)) or not Path(path).is_file():
            raise BadInput(f"{path} cannot be read as an array: there is no such file")
        with Path(path).open("rb") as file:
            if file.read(6) != b"\x93NUMPY":
                raise BadInput(f"{path} cannot be read as an array: it is no .npy file")
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError as problem:
        raise BadInput(f"{path} cannot be read as an array: {problem.strerror or problem}") from problem
    except _BROKEN_HEADER as problem:
        told = str(problem).partition("\n")[0] if isinstance(problem, ValueError) else "its header is broken"
        raise BadInput(f"{path} cannot be read as an array: {told}") from problem
    return array


_BROKEN_HEADER = (ValueError, SyntaxError, tokenize.TokenError, OverflowError, RecursionError, MemoryError, TypeError)
"""What NumPy raises on broken or truncated headers, which it parses as Python literals."""


def _by_name(path: Path, samples: Sequence[Sample], labels: Mapping[str, LabelKeys]) -> list[LabelKeys]:
    found = [labels.get(sample.id, labels.get(sample.id.rpartition("/")[2])) for sample in samples]
    if not any(entry is not None for entry in found):
        raise BadInput(f"{path} names none of these images; it should use their ids, such as {samples[0].id}")
    return [entry or () for entry in found]


def _in_order(samples: Sequence[Sample], labels: Sequence[Any], where: str) -> list[LabelKeys]:
    if len(labels) != len(samples):
        raise BadInput(f"{len(samples):,} images but {len(labels):,} labels in {where}; they should match one to one")
    return [label_keys(entry) for entry in labels]


_LABEL_FILES = {".json": _from_json, ".txt": _from_text, ".npy": _from_array}
