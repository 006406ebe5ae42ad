"""A set of crops made from a boxed set and written to disk, with a table that says why every object stayed or went."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from shiftproof.curation.crop_candidates import Candidate, cropped
from shiftproof.curation.crop_choice import CropChoice, choose_crops
from shiftproof.curation.crops import TIMES_SMALLER
from shiftproof.curation.reference_models import ReferenceModels
from shiftproof.curation.tables import table_bytes
from shiftproof.curation.usual_shares import UsualShares
from shiftproof.files import write_whole
from shiftproof.image_sets.crop_sources import PHOTOS, seen_from
from shiftproof.image_sets.image_list import ImageList
from shiftproof.image_sets.views import View
from shiftproof.types import Output
from shiftproof.writing import Written
from shiftproof.writing.cropped import ENDINGS, write_crops
from shiftproof.writing.places import file_places
from shiftproof.writing.runs import Progress

WHOLE = "the whole image, of which it fills more than usual"
OBJECT_COLUMNS = ("id", "class", "box", "share", "usual_share", "window", "share_in_crop", "step", "reason")


@dataclass(frozen=True)
class CropSet:
    """How a set of crops was chosen, and what was written of it."""

    choice: CropChoice
    written: Written
    notes: tuple[str, ...]  # on the boxed set

    @property
    def whole_images(self) -> int:
        """Crops that show the whole image, since their object fills more of it than is usual."""
        return sum(one.fills_too_much for one in self.choice.left)


def curate_crops(
    images: ImageList,
    folder: str | Path,
    usual: UsualShares,
    *,
    times_smaller: float = TIMES_SMALLER,
    reference: ReferenceModels | None = None,
    output: Output = "raw",
    workers: int | None = None,
    progress: Progress | None = None,
) -> CropSet:
    """Writes the crops that are left into a folder which `open_images` reads.

    Beside the crops it holds `manifest.csv`, which lists them, `objects.csv`, where every object has its reason, and
    `usual_shares.csv`, which `load_shares` reads; ``crop-sources:FOLDER`` opens the photos that they were cut out of. What
    was answered or written before is not done again; a folder takes crops of one choice only.
    """
    choice = choose_crops(
        images, usual, times_smaller=times_smaller, reference=reference, workers=workers, progress=progress
    )
    shown = cropped(images, choice.left, "final")
    places = _places(shown, choice.left)
    written = write_crops(
        shown,
        folder,
        places=places,
        settings={"times_smaller": float(times_smaller), **_told(reference)},
        information={
            PHOTOS: images.location and seen_from(images.location, folder),
            "usual_shares": seen_from(usual.source, folder),
            "steps": [dataclasses.asdict(step) for step in choice.steps],
        },
        output=output,
        workers=workers,
        progress=progress,
    )
    unreadable = {image.id: image.reason for image in written.set_aside}
    files = {one.id: f"{place}{ENDINGS[output]}" for one, place in zip(choice.left, places, strict=True)}
    choice = choice.step("cut out and written", lambda one: unreadable.get(one.id))
    write_whole(Path(folder) / "usual_shares.csv", table_bytes(usual.table()))
    write_whole(Path(folder) / "objects.csv", table_bytes([OBJECT_COLUMNS, *_objects(choice)]))
    # the manifest comes last: a folder that has it is whole
    write_whole(Path(folder) / "manifest.csv", table_bytes(_manifest(choice.left, files)))
    return CropSet(choice, written, images.notes)


def _told(reference: ReferenceModels | None) -> dict[str, object]:
    if reference is None:
        return {"recognised_by": []}
    models = [f"{model.ref.name} {model.ref.fingerprint}" for model in reference.models]
    return {"recognised_by": models, "recognised_in": reference.shown}


def _places(shown: ImageList, candidates: Sequence[Candidate]) -> list[str]:
    """The file of each crop, called after its image, in which there is no other crop of its class."""
    pairs = zip(shown.samples, candidates, strict=True)
    named = [dataclasses.replace(sample, id=one.boxed.image) for sample, one in pairs]
    return file_places(View(shown, shown.classes, named))


def _manifest(kept: Sequence[Candidate], files: Mapping[str, str]) -> list[Sequence[object]]:
    facts = [one.facts() for one in kept]
    rows = [(files[one.id], one.id, one.boxed.key, *fact.values()) for one, fact in zip(kept, facts, strict=True)]
    return [("path", "id", "label", *(facts[0] if facts else ())), *rows]


def _objects(choice: CropChoice) -> list[tuple[str, ...]]:
    """Every object and its fate, by their ids."""
    return sorted(_row(one, step, reason or (WHOLE if one.fills_too_much else "")) for one, step, reason in choice.fates())


def _row(one: Candidate, step: str, reason: str) -> tuple[str, ...]:
    share = "" if one.boxed.problem else f"{one.boxed.share:.6f}"
    window = (f"{one.usual_share:.6f}", _corners(one.window), f"{one.share_in_crop:.6f}") if one.has_window else ("", "", "")
    return one.id, one.boxed.key, _corners(one.boxed.box), share, *window, step, reason


def _corners(box: Sequence[float]) -> str:
    return " ".join(f"{side:g}" for side in box)
