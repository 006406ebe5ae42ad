"""A reviewed set as files: what people kept, in a layout of choice, with a card that says where it comes from."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shiftproof.curation.original_images import Pixels
from shiftproof.curation.project import Project
from shiftproof.errors import UnknownName
from shiftproof.image_sets.records import CARD_TEXT
from shiftproof.review.data_card import card_text, data_card
from shiftproof.review.kept import candidate_images, kept_images
from shiftproof.review.revision import load_revision
from shiftproof.review.summary import Summary
from shiftproof.writing.layouts import LAYOUTS
from shiftproof.writing.runs import Progress, Written
from shiftproof.writing.whole_folders import plain_file, write_folder


@dataclass(frozen=True)
class Exported:
    """What was written, its card, and what `open_images` reads it by."""

    written: Written
    card: dict[str, Any]
    location: str


def export(
    project: Project,
    summary: Summary,
    folder: str | Path,
    *,
    layout: str = "folder",
    pixels: Pixels = "source",
    before_review: bool = False,
    progress: Progress | None = None,
) -> Exported:
    """Writes what people kept, or with `before_review` all they were asked about, beside a data card and checksums.

    The folder is there whole or not at all; the same review gives the same bytes, and a run that was stopped goes on.
    """
    if layout not in LAYOUTS:
        raise UnknownName("layout", layout, LAYOUTS)
    if before_review:
        images, holds = candidate_images(project, pixels=pixels), "people were asked about them"
    else:
        images, holds = kept_images(project, summary.verdicts, pixels=pixels), "people kept them"
    revision = load_revision(project.folder)
    card = data_card(project, summary, images, layout=layout, holds=holds, revision=revision)
    files = [plain_file(CARD_TEXT, card_text(card)), *LAYOUTS[layout].files(images)]
    data = (json.dumps(card, ensure_ascii=False, indent=1) + "\n").encode("utf-8", "surrogateescape")
    root = Path(folder)
    written = write_folder(root, data, files, total=len(files), progress=progress)
    return Exported(written, card, LAYOUTS[layout].opened_as.format(root=root))
