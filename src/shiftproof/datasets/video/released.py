"""The released frame datasets: ImageNet-Vid-Robust and YTBB-Robust (Shankar et al., 2021)."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from shiftproof.datasets.classes import classes_from
from shiftproof.datasets.image_list import FilesBelow, ImageList
from shiftproof.datasets.layout import Example, Folder, layout, whole_number, yes_or_no
from shiftproof.datasets.listing import folder_name, is_image_name
from shiftproof.datasets.manifest import leads_outside
from shiftproof.datasets.video.clips import frame_number
from shiftproof.datasets.video.frame_sets import FramesOfSets, frame_itself, one_id_each, with_pixel_distances
from shiftproof.errors import BadInput
from shiftproof.files import read_json, read_regular
from shiftproof.places import absolute, as_path, exists, is_file, is_folder, names_in
from shiftproof.reference import load_table
from shiftproof.types import Classes, Fact, Sample

SETS, LABELS = "pmsets.json", "labels.json"
CLASSES = "classes.txt"
"""In datasets that shiftproof wrote: the classes of the labels, where they are not the 30 published ones."""


def has_metadata(folder: Folder, file: str) -> bool:
    """Whether a file of the release lies in a folder, or in `metadata` inside it."""
    return file in folder.files or folder.has_file("metadata", file)


@layout(
    holds="`pmsets.json` and `labels.json` (ImageNet-Vid-Robust)",
    labels="those files; any label of a frame is correct",
    recognise=lambda folder: has_metadata(folder, SETS),
    example=Example(
        {
            "val/a/000003.JPEG": "",
            "val/a/000005.JPEG": "",
            "metadata/pmsets.json": '{"val/a/000003.JPEG": ["val/a/000005.JPEG"]}',
            "metadata/labels.json": '{"val/a/000003.JPEG": [3, 29], "val/a/000005.JPEG": [3]}',
        }
    ),
)
def open_vid_robust(
    location: str,
    *,
    name: str | None = None,
    classes: Classes | None = None,
    images: str | None = None,
    pixel_distances: bool | str = False,
) -> ImageList:
    """The frames of ``metadata/pmsets.json`` with the labels of ``labels.json``, any of which is correct.

    `images` is the folder that ``val/`` lies in, where it is elsewhere. Frames that are not there are skipped when
    they are read, so a dataset can be counted without them. `pixel_distances` decodes every frame, as in `frames_around`.
    """
    if classes is not None:
        raise BadInput("the labels of ImageNet-Vid-Robust are numbers of its own 30 classes; leave out the classes")
    metadata = metadata_folder(location, SETS)
    root = images or frames_folder(metadata)
    neighbours: dict[str, list[str]] = _lists(metadata, SETS, str)
    labels: dict[str, list[int]] = _lists(metadata, LABELS, int)
    for frame in dict.fromkeys((*neighbours, *(frame for others in neighbours.values() for frame in others))):
        if leads_outside(frame, root):
            raise BadInput(f"{SETS} names {frame}, which lies outside the folder of frames")
    samples = one_id_each(
        frame_of_set(frame, anchor, tuple(labels.get(frame, ())))
        for anchor, others in neighbours.items()
        for frame in (anchor, *others)
    )
    find = FramesOfSets(FilesBelow(root))
    if yes_or_no("pixel_distances", pixel_distances):
        samples = with_pixel_distances(samples, find)
    known, notes = _classes_in(metadata)
    strange = next((label for some in labels.values() for label in some if not 0 <= label < len(known)), None)
    if strange is not None:
        raise BadInput(f"{LABELS} has the label {strange}, but there are {len(known)} classes, counted from 0")
    pairs = len(samples) - len(neighbours)
    notes = (f"ImageNet-Vid-Robust: {len(neighbours):,} anchors, {pairs:,} pairs", *notes, *missing_note(root, samples))
    return ImageList(name or folder_name(location), samples, known, find, notes=notes)


def _classes_in(metadata: str) -> tuple[Classes, tuple[str, ...]]:
    """The classes that the metadata name, or the published ones with what to know of them."""
    if is_file(own := os.path.join(metadata, CLASSES)):
        return classes_from(as_path(own)), ()
    rows = load_table("imagenet_vid_classes")
    known = Classes(tuple(row["name"] for row in rows), tuple(row["wnid"] for row in rows))
    return known, ("30 classes, each of many ILSVRC classes: score them with --class-groups imagenet-vid",)


def frame_of_set(frame: str, anchor: str, labels: tuple[int, ...], facts: Mapping[str, Fact] | None = None) -> Sample:
    """A frame around an anchor, both named by path; the offset is the difference of their numbers."""
    number = frame_number(frame)
    offset = number - frame_number(anchor)
    about: dict[str, Fact] = {"clip": frame.rpartition("/")[0], "anchor": anchor, "offset": offset, "frame": number}
    return Sample(frame, labels, {**about, **(facts or {})})


def metadata_folder(location: str, file: str) -> str:
    """The folder with a file of the release: the location itself, or `metadata` inside it."""
    root = absolute(location)
    for folder in (os.path.join(root, "metadata"), root):
        if is_file(os.path.join(folder, file)):
            return folder
    raise BadInput(f"no {file} in {location} or its folder metadata")


def frames_folder(metadata: str) -> str:
    """The folder that paths of frames begin in: the one that holds `metadata`, else where the metadata are."""
    return os.path.dirname(metadata) if os.path.basename(metadata) == "metadata" else metadata


def _lists(folder: str, file: str, kind: type) -> dict[str, Any]:
    """What a JSON file of the release holds: a list for each frame."""
    path = os.path.join(folder, file)
    data = read_json(path)
    lists = data.values() if isinstance(data, dict) else (None,)
    # by type and not isinstance: true is no number of a class
    if all(isinstance(some, list) and all(type(one) is kind for one in some) for some in lists):
        return dict(data)
    what = "of frames" if kind is str else "of numbers of classes"
    raise BadInput(f"{path} should hold a list {what} for each frame")


def missing_note(root: str, samples: list[Sample]) -> tuple[str, ...]:
    """The note on frames that are missing."""
    missing = sum(not exists(os.path.join(root, frame_itself(sample.id))) for sample in samples)
    return (f"{missing:,} of {len(samples):,} frames are not below {root}",) if missing else ()


ANCHORS, PAIRS, ANCHOR_CLASSES = "anchor_labels.json", "pmk_labels.json", "ytbb_robustness_test_anchors_full.csv"

REASONS = (
    "dissimilar", "problematic", "incorrect", "dont know", "deformation", "background-change", "occlusion-increased",
    "blur-increase", "bad-anchor",
)  # fmt: skip
"""Every annotation that rejects a pair, as in the release; the paper names four."""

SWAPPED = {22: 23, 23: 22}
"""Classes whose numbers the table of anchors exchanges: none and car."""

Annotations: TypeAlias = Mapping[str, frozenset[str]]
"""The last annotation of each key."""

Neighbours: TypeAlias = dict[str, dict[str, bool | str]]
"""The frames around each anchor: True for similar, the reason for rejected, False for frames without a review."""


@layout(
    holds="`anchor_labels.json` (YTBB-Robust)",
    labels="that file and the table of anchors beside it",
    recognise=lambda folder: has_metadata(folder, ANCHORS),
    example=Example(
        {
            "a_b_100/frame-3.jpg": "",
            "a_b_100/frame-4.jpg": "",
            ANCHORS: '{"labels": ["good", "dog"], "annotations": '
            '[{"key": "a_b_100/frame-3.jpg", "notes": "", "labels": [0, 1]}]}',
            ANCHOR_CLASSES: "ytid,time_ms,label\na_b,100,22\n",
        }
    ),
)
def open_ytbb_robust(
    location: str,
    *,
    name: str | None = None,
    classes: Classes | None = None,
    images: str | None = None,
    k: int | str = 10,
    reasons: Collection[str] | str = REASONS,
    rejected: bool | str = False,
    pixel_distances: bool | str = False,
) -> ImageList:
    """The anchors annotated as good and the frames annotated as similar, with the anchor's labels and any added ones.

    Where the annotations of pairs are missing, which the release left out, all frames at most `k` away from an anchor
    are taken, with the fact `reviewed` false. `reasons` reject a pair even if it was also called similar; with `rejected`
    such frames of good anchors are kept, and their fact `reviewed` is the reason.
    `images` is the folder that the frames' folders lie in, where it is elsewhere. `pixel_distances` decodes every frame,
    as in `frames_around`.
    """
    if classes is not None:
        raise BadInput("the labels of YTBB-Robust are numbers of its own 24 classes; leave out the classes")
    metadata = metadata_folder(location, ANCHORS)
    root, k = images or frames_folder(metadata), whole_number("k", k, least=0)
    known = Classes(tuple(row["name"] for row in load_table("ytbb_classes")))
    said = _annotations(metadata, ANCHORS)
    pairs = _annotations(metadata, PAIRS) if is_file(os.path.join(metadata, PAIRS)) else None
    bad = {_pair(key)[0] for key, words in (pairs or {}).items() if "bad-anchor" in words}
    good = {
        key: words for key, words in said.items() if "good" in words and not words & {"bad", "unsure"} and key not in bad
    }
    first = _classes_of_anchors(metadata)
    samples: list[Sample] = []
    if pairs is None:
        neighbours = _beside(root, good, k)
    else:
        named = reasons.split(",") if isinstance(reasons, str) else reasons
        neighbours = _judged(pairs, frozenset(named), rejected=yes_or_no("rejected", rejected))
    for anchor, words in good.items():
        clip = anchor.partition("/")[0]
        if clip not in first:
            raise BadInput(f"{ANCHOR_CLASSES} has no class for {clip}, which {ANCHORS} calls a good anchor")
        labels = {first[clip]} | {known.names.index(word) for word in words & set(known.names)}
        samples += [
            # one video may have several anchors, each with a folder of its own
            frame_of_set(frame, anchor, tuple(sorted(labels)), {"clip": clip.rpartition("_")[0], "reviewed": verdict})
            for frame, verdict in {anchor: pairs is not None, **neighbours.get(anchor, {})}.items()
        ]
    samples = one_id_each(samples)
    find = FramesOfSets(FilesBelow(root))
    if yes_or_no("pixel_distances", pixel_distances):
        samples = with_pixel_distances(samples, find)
    notes = [
        f"YTBB-Robust: {len(good):,} anchors, {len(samples) - len(good):,} pairs",
        "24 classes, most of many ILSVRC classes: score them with --class-groups ytbb --unmatched wrong",
    ]
    if pairs is None:
        notes.append(f"no {PAIRS}: frames at most {k} away are taken as they lie beside their anchor, unreviewed")
    notes += missing_note(root, samples)
    return ImageList(name or folder_name(location), samples, known, find, notes=tuple(notes))


def _annotations(metadata: str, file: str) -> Annotations:
    path = os.path.join(metadata, file)
    table = read_json(path)
    try:
        names: Sequence[str] = [str(name) for name in table["labels"]]
        return {
            ",".join(map(_short, entry["key"].split(","))): frozenset(names[place] for place in entry["labels"])
            for entry in table["annotations"]  # in the order in which they were given, so that the last one counts
        }
    except (TypeError, KeyError, IndexError, AttributeError) as problem:
        raise BadInput(f"{path} should hold labels, and annotations with a key and numbers of labels each") from problem


def _short(key: str) -> str:
    """The clip's folder and the frame; some keys have the annotators' own folders in front."""
    short = "/".join(key.split("/")[-2:])
    if ".." in short.split("/"):
        raise BadInput(f"{key} should be a path below the folder of frames")
    return short


def _pair(key: str) -> tuple[str, str]:
    anchor, _, frame = key.partition(",")
    return anchor, frame


def _judged(pairs: Annotations, reasons: frozenset[str], *, rejected: bool) -> Neighbours:
    """The frames of each anchor that are similar to it, and where they are wanted those that are not."""
    found: Neighbours = {}
    for key, words in pairs.items():
        anchor, frame = _pair(key)
        is_similar = "similar" in words and not words & reasons
        if frame != anchor and (is_similar or rejected):
            why = ", ".join(sorted(words - {"similar"})) or "not similar"
            found.setdefault(anchor, {})[frame] = is_similar or why
    return found


def _beside(root: str, anchors: Collection[str], k: int) -> Neighbours:
    """The frames at most `k` away that lie in each anchor's folder."""
    return {anchor: dict.fromkeys(_near(root, anchor, k), False) for anchor in anchors}


def _near(root: str, anchor: str, k: int) -> Iterator[str]:
    folder = anchor.partition("/")[0]
    path = os.path.join(root, folder)
    for frame in sorted(names_in(path)) if is_folder(path) else ():
        if is_image_name(frame) and 0 < abs(frame_number(frame) - frame_number(anchor)) <= k:
            yield f"{folder}/{frame}"


def _classes_of_anchors(metadata: str) -> dict[str, int]:
    """The class of each anchor by its clip's folder, as the table of anchors has it."""
    path = as_path(os.path.join(metadata, ANCHOR_CLASSES))
    try:
        text = io.StringIO(read_regular(path).decode("utf-8"), newline="")
        rows = [(f"{row['ytid']}_{row['time_ms']}", int(row["label"])) for row in csv.DictReader(text)]
    except (OSError, KeyError, ValueError, TypeError, csv.Error) as problem:  # TypeError: a row that ends too soon
        raise BadInput(f"{path} cannot be read: {problem}") from problem
    classes = len(load_table("ytbb_classes"))
    strange = next((label for _, label in rows if not 0 <= label < classes), None)
    if strange is not None:
        raise BadInput(f"{path} has the label {strange}, but there are {classes} classes, counted from 0")
    return {clip: SWAPPED.get(label, label) for clip, label in rows}
