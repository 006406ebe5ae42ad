"""Images as rows of ``.npy`` arrays: one array with its labels, or a folder in the layout of CIFAR-10-C or CIFAR-10-P."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from shiftproof.catalog import CORRUPTIONS
from shiftproof.corruptions import CIFAR_C_BAR, IMAGENET_C_BAR
from shiftproof.datasets.classes import numbered_classes
from shiftproof.datasets.image_list import ImageList, StoredImage, file_stamp
from shiftproof.datasets.labels import check_class_number, load_label_array, map_array
from shiftproof.datasets.layout import Example, Published, layout
from shiftproof.datasets.listing import folder_name, inner_root
from shiftproof.datasets.published.imagenet import SEVERITIES, level_of
from shiftproof.datasets.records import Record, classes_in, cut_in, ids_in, notes_on, record_of
from shiftproof.errors import BadInput, UnreadableImage
from shiftproof.places import absolute, is_file, is_folder, names_in
from shiftproof.types import Classes, Decoder, Fact, Image, Sample

LABELS = "labels.npy"
CIFAR10 = Classes(("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"))


@dataclass(frozen=True, slots=True)
class ArrayRow(StoredImage):
    """An image that is one row of an array file."""

    path: str
    row: int

    def stamp(self) -> str:
        return f"{file_stamp(self.path)}\0{self.row}"

    def read(self) -> bytes:
        try:
            return np.asarray(_array_at(self.path)[self.row]).tobytes()
        except (BadInput, IndexError) as problem:
            raise OSError(f"the array has changed: {problem}") from problem

    def decode(self, data: bytes, *, decoder: Decoder = "pillow") -> Image:  # noqa: ARG002 - rows are pixels already
        try:
            return _to_rgb(np.frombuffer(data, np.uint8).reshape(_array_at(self.path).shape[1:]))
        except (BadInput, ValueError) as problem:
            raise UnreadableImage(f"the array has changed: {problem}") from problem


@dataclass(frozen=True)
class ArrayRows:
    """Finds an image by the file and row behind its id."""

    places: Mapping[str, tuple[str, int]]

    def __call__(self, image_id: str) -> ArrayRow:
        return ArrayRow(*self.places[image_id])


@layout(
    holds="an `.npy` file, or a folder of them (CIFAR-10-C, CIFAR-10-C-bar, CIFAR-10-P)",
    labels="`labels.npy` or `NAME_labels.npy` beside it",
    endings=(".npy",),
    recognise=lambda folder: folder.holds_only_files and any(name.endswith(".npy") for name in folder.files),
    written=("cifar-c", "cifar-p"),
    published=(
        Published("cifar-10-c", "CIFAR-10-C", None, 10, per_condition=10_000),
        Published("cifar-10-c-bar", "CIFAR-10-C-bar", None, 10, per_condition=10_000),
        Published("cifar-10-p", "CIFAR-10-P", None, None, per_condition=10_000),
    ),
    example=Example({"fog.npy": "10 4 5 3", "labels.npy": "10"}),
)
def open_arrays(location: str, *, name: str | None = None, classes: Classes | None = None) -> ImageList:
    """The rows of one ``.npy`` file, or of all in a folder, as images.

    Labels come from ``labels.npy`` or ``NAME_labels.npy`` beside them. An array called after a corruption has its
    severities 1 to 5 one after the other; its images have the facts `corruption` and `severity`. An array with an axis of
    frames holds sequences; its images have the facts `perturbation`, `level`, `sequence` and `frame`.
    """
    files = _files(location)
    record = record_of(os.path.dirname(files[0]))
    samples: list[Sample] = []
    places: dict[str, tuple[str, int]] = {}
    for path in files:
        array = _checked(path)
        labels = _labels_beside(path, len(array))
        for row, (image_id, facts) in enumerate(_rows(path, len(array), record)):
            samples.append(Sample(image_id, () if labels is None or labels[row] < 0 else (int(labels[row]),), facts))
            places[image_id] = (path, row)
    corrupted, perturbed = [path for path in files if _is_corrupted(path)], [path for path in files if _is_perturbed(path)]
    highest = max((label for sample in samples for label in sample.labels), default=-1)
    check_class_number(highest, location)
    if classes is not None and highest >= len(classes):
        raise BadInput(f"labels go up to {highest} but only {len(classes)} classes are named")
    notes = notes_on(record)
    notes += (f"severities 1 to 5 of {len(corrupted)} corruptions",) if corrupted else ()
    notes += (f"sequences of {len(perturbed)} perturbations",) if perturbed else ()
    published = None if record else _published(files, highest)
    named = CIFAR10 if published else classes_in(record)
    found = None if highest < 0 else classes or named or numbered_classes(highest + 1)
    return ImageList(
        name or folder_name(location),
        samples,
        found,
        ArrayRows(places),
        notes=notes,
        published=published,
        cut=cut_in(record),
    )


def _files(location: str) -> list[str]:
    if not is_folder(location):
        return [absolute(location)]
    root = inner_root(location)
    names = sorted(entry for entry in names_in(root) if entry.endswith(".npy") and not entry.endswith(LABELS))
    if not names:
        raise BadInput(f"{location} holds no .npy file of images")
    return [os.path.join(root, entry) for entry in names]


def _checked(path: str) -> NDArray[np.uint8]:
    try:
        array = _array_at(path)
    except OSError as problem:
        raise BadInput(f"{path} cannot be read as an array: {problem.strerror or problem}") from problem
    if array.dtype != np.uint8:
        raise BadInput(f"{path} should hold uint8 pixels from 0 to 255, got {array.dtype}; convert it first")
    one_channel = array.ndim == 3 or (array.ndim == 4 and 1 in (array.shape[1], array.shape[3]))
    if not one_channel and not (array.ndim == 4 and 3 in (array.shape[1], array.shape[3])):
        raise BadInput(
            f"{path} should be (images, height, width, 3) or (images, height, width), with an axis of frames behind the "
            f"first for sequences; got shape {_shape(path)}"
        )
    if not array.size:
        raise BadInput(f"{path} holds no pixels: its shape is {_shape(path)}")
    return array


def _labels_beside(path: str, rows: int) -> NDArray[np.integer] | None:
    folder, file = os.path.split(path)
    beside = [os.path.join(folder, name) for name in (f"{file.removesuffix('.npy')}_{LABELS}", LABELS)]
    found = next(filter(is_file, beside), None)
    if found is None:
        return None
    labels = load_label_array(found)
    if len(labels) * len(SEVERITIES) == rows and _is_corrupted(path):
        labels = np.tile(labels, len(SEVERITIES))
    if _is_perturbed(path) and len(labels) == _shape(path)[0]:
        labels = np.repeat(labels, _shape(path)[1])
    if len(labels) != rows:
        raise BadInput(f"{path} has {rows:,} images but {found} has {len(labels):,} labels")
    return labels


def _rows(path: str, rows: int, record: Record | None) -> list[tuple[str, dict[str, Fact]]]:
    """Id and facts of every row; an id ends with that of the clean image, or its number where nothing else is known."""
    stem = _stem(path)
    if _is_perturbed(path):
        return _frames(path, stem, record)
    if not _is_corrupted(path):
        return [(f"{stem}/{row:05d}", {}) for row in range(rows)]
    block, rest = divmod(rows, len(SEVERITIES))
    if rest:
        raise BadInput(f"{path} should hold {len(SEVERITIES)} severities of equally many images, got {rows:,} rows")
    named: list[tuple[str, dict[str, Fact]]] = []
    for severity in SEVERITIES:
        facts: dict[str, Fact] = {"corruption": stem, "severity": int(severity)}
        named += [(f"{stem}/{severity}/{image}", facts) for image in ids_in(record, block)]
    return named


def _frames(path: str, stem: str, record: Record | None) -> list[tuple[str, dict[str, Fact]]]:
    """Id and facts of every frame of every sequence; the sequence is the id or number of the image it was made from."""
    sequences, frames = _shape(path)[:2]
    perturbation, level = level_of(stem) or (stem, 1)
    about: dict[str, Fact] = {"perturbation": perturbation, "level": level}
    return [
        (f"{stem}/{image}/{frame:02d}", {**about, "sequence": image, "frame": frame})
        for image in ids_in(record, sequences)
        for frame in range(frames)
    ]


def _is_corrupted(path: str) -> bool:
    return _stem(path) in CORRUPTIONS and not _is_perturbed(path)


def _stem(path: str) -> str:
    return os.path.basename(path).removesuffix(".npy")


def _is_perturbed(path: str) -> bool:
    """Whether the file holds sequences: it then has an axis of frames."""
    return len(_shape(path)) == 5


def _published(files: list[str], highest: int) -> str | None:
    """The published dataset of these files, by their names, shapes and labels."""
    if highest not in (-1, len(CIFAR10) - 1):
        return None
    if all(_is_corrupted(path) and _shape(path) == (50_000, 32, 32, 3) for path in files):
        corruptions = set(map(_stem, files))
        if corruptions <= set(CIFAR_C_BAR):
            return "cifar-10-c-bar"
        return None if corruptions & {*CIFAR_C_BAR, *IMAGENET_C_BAR} else "cifar-10-c"
    if all(_is_perturbed(path) and (_shape(path)[0], *_shape(path)[2:]) == (10_000, 32, 32, 3) for path in files):
        return "cifar-10-p"
    return None


def _to_rgb(row: NDArray[np.uint8]) -> Image:
    if row.ndim == 3 and row.shape[2] not in (1, 3):
        row = row.transpose(1, 2, 0)
    return np.ascontiguousarray(np.broadcast_to(row if row.ndim == 3 else row[:, :, None], (*row.shape[:2], 3)))


def _array_at(path: str) -> NDArray[np.uint8]:
    """The images of a file, memory-mapped; mapped again when the file has changed."""
    array = _mapped(path, file_stamp(path))
    # one frame after the other, as if they were images
    return array.reshape(array.shape[0] * array.shape[1], *array.shape[2:]) if array.ndim == 5 else array


def _shape(path: str) -> tuple[int, ...]:
    return _mapped(path, file_stamp(path)).shape


@lru_cache(maxsize=64)
def _mapped(path: str, stamp: str) -> NDArray[np.uint8]:  # noqa: ARG001 - part of the key of the cache
    return map_array(path)
