"""YTBB-Robust as it was released: what people said of anchors and of pairs, from which the frame sets follow."""

from __future__ import annotations

import csv
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from shiftproof.errors import BadInput
from shiftproof.files import read_json
from shiftproof.image_sets.extracted import frame_number
from shiftproof.image_sets.frame_sets import FramesOfSets, one_id_each
from shiftproof.image_sets.image_list import FilesBelow, ImageList
from shiftproof.image_sets.listing import folder_name, is_image_name
from shiftproof.image_sets.options import whole_number, yes_or_no
from shiftproof.image_sets.pixel_distances import with_pixel_distances
from shiftproof.image_sets.vid_robust import frame_of_set, frames_folder, metadata_folder, missing_note
from shiftproof.reference import load_table
from shiftproof.types import Classes, Sample

ANCHORS, PAIRS, ANCHOR_CLASSES = "anchor_labels.json", "pmk_labels.json", "ytbb_robustness_test_anchors_full.csv"

REASONS = (
    "dissimilar", "problematic", "incorrect", "dont know", "deformation", "background-change", "occlusion-increased",
    "blur-increase", "bad-anchor",
)  # fmt: skip
"""Every word that takes a pair out, as in the release; the paper tells of four."""

SWAPPED = {22: 23, 23: 22}
"""Classes whose numbers the table of anchors exchanges: none and car."""

Words: TypeAlias = Mapping[str, frozenset[str]]
"""What was said of each key last."""

Neighbours: TypeAlias = dict[str, dict[str, bool | str]]
"""The frames around each anchor, and whether people found them like it: else the reason, or false where nobody looked."""


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
    """The anchors that people found good and the frames they found similar, with the anchor's labels and any added ones.

    Where the judgements of pairs are missing, which the release left out, all frames at most `k` away count that lie
    beside the anchor, with the fact `reviewed` false. `reasons` take a pair out that was called similar all the same;
    with `rejected` such frames of good anchors are there too, and their fact `reviewed` says why they should not be.
    `images` is the folder that the frames' folders lie in, where it is elsewhere. `pixel_distances` decodes every frame,
    as in `frames_around`.
    """
    if classes is not None:
        raise BadInput("the labels of YTBB-Robust are numbers of its own 24 classes; leave out the classes")
    metadata = metadata_folder(location, ANCHORS)
    root, k = images or frames_folder(metadata), whole_number("k", k, least=0)
    known = Classes(tuple(row["name"] for row in load_table("ytbb_classes")))
    said = _words(metadata, ANCHORS)
    pairs = _words(metadata, PAIRS) if os.path.isfile(os.path.join(metadata, PAIRS)) else None
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
        "24 classes, most of many ILSVRC classes: score them with --merge ytbb --unmatched wrong",
    ]
    if pairs is None:
        notes.append(f"no {PAIRS}: frames at most {k} away are taken as they lie beside their anchor, unreviewed")
    notes += missing_note(root, samples)
    return ImageList(name or folder_name(location), samples, known, find, notes=tuple(notes))


def _words(metadata: str, file: str) -> Words:
    path = Path(metadata, file)
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


def _judged(pairs: Words, reasons: frozenset[str], *, rejected: bool) -> Neighbours:
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
    for frame in sorted(os.listdir(path)) if os.path.isdir(path) else ():
        if is_image_name(frame) and 0 < abs(frame_number(frame) - frame_number(anchor)) <= k:
            yield f"{folder}/{frame}"


def _classes_of_anchors(metadata: str) -> dict[str, int]:
    """The class of each anchor by its clip's folder, as the table of anchors has it."""
    path = Path(metadata, ANCHOR_CLASSES)
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = [(f"{row['ytid']}_{row['time_ms']}", int(row["label"])) for row in csv.DictReader(file)]
    except (OSError, KeyError, ValueError, TypeError, csv.Error) as problem:  # TypeError: a row that ends too soon
        raise BadInput(f"{path} cannot be read: {problem}") from problem
    classes = len(load_table("ytbb_classes"))
    strange = next((label for _, label in rows if not 0 <= label < classes), None)
    if strange is not None:
        raise BadInput(f"{path} has the label {strange}, but there are {classes} classes, counted from 0")
    return {clip: SWAPPED.get(label, label) for clip, label in rows}
