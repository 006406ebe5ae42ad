"""A reviewed set as files: what people kept, in a layout of choice, with a card that says where it comes from."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from shiftproof.curation.original_images import Pixels
from shiftproof.curation.project import Project
from shiftproof.errors import BadInput, UnknownName
from shiftproof.image_sets import ImageList
from shiftproof.image_sets.records import CARD_TEXT
from shiftproof.review.data_card import card_text, class_contents, data_card, image_contents
from shiftproof.review.kept import candidate_images, kept_images
from shiftproof.review.kept_classes import LIST, class_list, kept_classes
from shiftproof.review.reviewed_frames import reviewed_frames
from shiftproof.review.summary import Summary
from shiftproof.writing.layouts import LAYOUTS
from shiftproof.writing.runs import Progress, Written
from shiftproof.writing.whole_folders import File, plain_file, write_folder

Part = Literal["kept", "asked", "decided"]
"""What people kept; all they are asked about; of frames what they kept or rejected, each with what they said."""

WHY: Mapping[Part, str] = {
    "kept": "people kept them",
    "asked": "people were asked about them",
    "decided": "people kept or rejected them",
}


@dataclass(frozen=True)
class Exported:
    """What was written, its card, and what `open_images`, or whatever reads it, is given."""

    written: Written
    card: dict[str, Any]
    location: str


def export(
    project: Project,
    summary: Summary,
    folder: str | Path,
    *,
    part: Part = "kept",
    layout: str = "folder",
    pixels: Pixels = "source",
    progress: Progress | None = None,
) -> Exported:
    """Writes images of a review beside a data card and checksums.

    The folder is there whole or not at all; the same review gives the same bytes, and a run that was stopped goes on.
    """
    if layout not in LAYOUTS:
        raise UnknownName("layout", layout, LAYOUTS)
    if part == "decided" and not LAYOUTS[layout].with_facts:
        raise BadInput(f"layout {layout} has no place for what people said; choose manifest or webdataset")
    images = _images(project, summary, part, pixels)
    card = data_card(project, summary, image_contents(images, layout, WHY[part]))
    written = _write(Path(folder), card, LAYOUTS[layout].files(images), progress)
    return Exported(written, card, LAYOUTS[layout].opened_as.format(root=written.destination))


def export_classes(project: Project, summary: Summary, folder: str | Path, *, progress: Progress | None = None) -> Exported:
    """Writes the list of classes that people kept, with a data card and checksums as images have them."""
    classes = kept_classes(project, summary.verdicts)
    card = data_card(project, summary, class_contents(classes, WHY["kept"]))
    written = _write(Path(folder), card, [class_list(classes)], progress)
    return Exported(written, card, str(written.destination / LIST))


def _images(project: Project, summary: Summary, part: Part, pixels: Pixels) -> ImageList:
    match part:
        case "kept":
            return kept_images(project, summary.verdicts, pixels=pixels)
        case "asked":
            return candidate_images(project, pixels=pixels)
        case "decided":
            return reviewed_frames(project, summary.verdicts, pixels=pixels)


def _write(root: Path, card: Mapping[str, Any], files: Iterable[File], progress: Progress | None) -> Written:
    beside = [plain_file(CARD_TEXT, card_text(card)), *files]
    data = (json.dumps(card, ensure_ascii=False, indent=1) + "\n").encode("utf-8", "surrogateescape")
    return write_folder(root, data, beside, total=len(beside), progress=progress)
