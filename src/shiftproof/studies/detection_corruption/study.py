"""Object detection under corruption: mAP by corruption and severity, mPC and rPC (Michaelis et al., 2019)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics.boxes import overlap_numbers
from shiftproof.metrics.corruption import (
    mean_performance_under_corruption,
    relative_performance_under_corruption,
)
from shiftproof.metrics.detection import image_average_precision, over_classes
from shiftproof.metrics.resampling import Resampled
from shiftproof.metrics.table import unseen
from shiftproof.studies import evidence
from shiftproof.studies.base import CleanStudy
from shiftproof.studies.corruption.numbers import averaged_corruptions, seen_told
from shiftproof.studies.corruption.study import CorruptedStudy, seen_in_training
from shiftproof.studies.detection.matched import (
    Matched,
    column_of,
    convention_of,
    iou_told,
    load_detections,
    matched_item,
    measured,
    truths_that_count,
    why_no_precision,
    why_no_truths,
)
from shiftproof.studies.detection.study import IoUThreshold
from shiftproof.types import (
    Finding,
    Gallery,
    GalleryItem,
    Keep,
    Known,
    LoadPredictions,
    Measurement,
    Note,
    Run,
)

Resample = NDArray[np.floating]
"""mAP in every cell and, last, on the clean images, (cells + 1,), of one resample of images."""


@dataclass(frozen=True)
class DetectionCorruptionStudy(CorruptedStudy):
    """mAP under every corruption at every severity, its mean (mPC) and the ratio of that to the clean mAP (rPC).

    Corruptions act on the image as it is stored, so that boxes stay where they are. Intervals resample images jointly, each
    with all its cells.
    """

    iou: IoUThreshold = 0.5
    shown_score: float = 0.3  # minimum score of boxes that are drawn

    keep: ClassVar[Keep] = "boxes"

    def __post_init__(self) -> None:
        super().__post_init__()
        overlap_numbers(self.iou)
        if self.picture not in (None, "image"):
            raise BadInput(f"boxes lie on the image as it is stored, so that is corrupted; got the picture {self.picture!r}")

    def measure(self, load: LoadPredictions) -> Iterator[Finding | Note]:
        yield from self._cautions()
        for run in CleanStudy.runs(self):
            clean, *cells = self._runs_of(run.model)
            ids = self._common_ids(load, [clean, *cells])
            unchanged = self._matched(load, clean, ids)
            if unchanged is None:
                found = load_detections(load, clean)
                reasons = [evidence.why_unread(found), why_no_truths(found)]
                no_image = f"{run.model.name} has no image with objects in every cell"
                yield from evidence.skipped(run.dataset.name, *(reasons if any(reasons) else [no_image]))
                continue
            shown = _best_image(unchanged)
            columns, items = [], [self._item(unchanged, clean, shown)]
            for cell in cells:
                matched = self._matched(load, cell, ids)
                if matched is not None:
                    columns.append(_precision(matched))
                    if cell.condition.severity == max(self.severities):
                        items.append(self._item(matched, cell, shown))
            table = _side_by_side([*columns, _precision(unchanged)])
            told = {"boxes": "at most 100 an image and class, highest score first", **iou_told(self.iou)}
            made = {**self._edition_told(), **self._frost_told()}
            on_clean, on_corrupted = (
                evidence.Subject(run.about(), {**convention_of(one, unchanged.found), **more, **told}, unchanged.clusters)
                for one, more in ((clean, {}), (cells[0], made))
            )
            yield from self._numbers(table, on_clean, on_corrupted, seen_in_training(load, run))
            yield Gallery("corrupted_boxes", run.about(), run.dataset, "One image under corruption", tuple(items))

    def why_nothing(self, known: Known) -> str | None:
        """Why nothing can be measured: no ground truth."""
        ref = CleanStudy.runs(self)[0].dataset
        why = why_no_precision(known.images(ref).truths)
        return why and f"{ref.name}: {why}"

    def _numbers(
        self, table: Resampled, clean: evidence.Subject, corrupted: evidence.Subject, seen: Collection[str]
    ) -> Iterator[Measurement]:
        shape = len(self.corruptions), len(self.severities)
        last = shape[0] * shape[1]
        yield measured("clean_average_precision", column_of(table, last), clean)
        for place, (corruption, severity) in enumerate(np.ndindex(shape)):
            name, key = self.corruptions[corruption], {"severity": self.severities[severity]}
            cell = corrupted.also({"corruption": name, **key}, seen_told([name], seen))
            yield measured("corrupted_average_precision", column_of(table, place), cell)
        corrupted = corrupted.also(told={"severities": ", ".join(map(str, self.severities))})
        for place, name in enumerate(self.corruptions):
            mean = _each(table, lambda row, place=place: float(row[:-1].reshape(shape)[place].mean()))  # type: ignore[misc]
            of_one = corrupted.also({"corruption": name}, seen_told([name], seen))
            yield measured("corruption_mean_precision", mean, of_one)
        every = list(range(len(self.corruptions)))
        left = [place for place in every if self.corruptions[place] not in seen]
        for of_all, places in [(True, every), *([(False, left)] if left and left != every else [])]:
            names = [self.corruptions[place] for place in places]
            over = corrupted.also(told={"corruptions": averaged_corruptions(names), **seen_told(names, seen)})
            mean = _each(table, lambda row, some=places: mean_performance_under_corruption(row[:-1].reshape(shape)[some]))  # type: ignore[misc]
            yield measured(_called("mean_performance_under_corruption", of_all), mean, over)
            if table.seen[0, last] > 0:
                share = _each(table, lambda row, some=places: _share_left(row, shape, some))  # type: ignore[misc]
                metric = _called("relative_performance_under_corruption", of_all)
                yield measured(metric, share, over, bounds=None)

    def _common_ids(self, load: LoadPredictions, runs: Sequence[Run]) -> list[str]:
        """Sorted ids of the images that were read in every run."""
        read = [frozenset(load_detections(load, run).detections.ids) for run in runs]
        return sorted(frozenset.intersection(*read))

    def _matched(self, load: LoadPredictions, run: Run, ids: Sequence[str]) -> Matched | None:
        """Detections of one cell matched with the ground truth; None where these images hold no object."""
        found = load_detections(load, run)
        truths = truths_that_count(found)
        if truths is None or not ids:
            return None
        place_of = {key: place for place, key in enumerate(found.detections.ids)}
        matched = Matched(found, truths, self.iou, np.array([place_of[key] for key in ids], np.intp))
        return matched if len(matched.among_counted.object_image) else None

    def _item(self, matched: Matched, run: Run, shown: str) -> GalleryItem:
        place = matched.found.detections.ids.index(shown)
        item = matched_item(
            matched, place, score_threshold=self.shown_score, before="" if run.condition.severity else f"{run.condition}: "
        )
        return dataclasses.replace(item, condition=run.condition if run.condition.severity else None)

    @property
    def _picture(self) -> str:
        return "image"

    @property
    def _at(self) -> str:
        return "image"


def _called(metric: str, of_all: bool) -> str:
    return metric if of_all else unseen(metric)


def _best_image(matched: Matched) -> str:
    """Id of the image with the highest average precision, of equals the one with the most objects."""
    precision = np.nan_to_num(image_average_precision(matched.matches), nan=-1.0).round(12)
    objects = np.bincount(matched.matches.object_image, minlength=len(matched.found))
    best = matched.counted[np.lexsort((-objects[matched.counted], -precision[matched.counted]))[0]]
    return matched.found.detections.ids[int(best)]


def _precision(matched: Matched) -> Resampled:
    return over_classes(matched.left_out(matched.matches))


def _side_by_side(columns: Sequence[Resampled]) -> Resampled:
    return Resampled(*(np.hstack(parts) for parts in zip(*columns, strict=True)))


def _each(table: Resampled, number: Callable[[Resample], float]) -> Resampled:
    """A number of every resample, one column."""
    return Resampled(*(np.array([number(row) for row in part]).reshape(-1, 1) for part in table))


def _share_left(row: Resample, shape: tuple[int, int], places: Sequence[int]) -> float:
    """Relative performance (rPC) over these corruptions; nan in resamples whose clean mAP is 0."""
    return relative_performance_under_corruption(row[:-1].reshape(shape)[places], row[-1]) if row[-1] > 0 else float("nan")
