"""What corruption leaves of a detector: mean average precision by corruption and severity (Michaelis et al., 2019)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics.average_precision import image_average_precision
from shiftproof.metrics.box_overlap import overlap_numbers
from shiftproof.metrics.meanings import unseen
from shiftproof.metrics.performance_under_corruption import (
    mean_performance_under_corruption,
    relative_performance_under_corruption,
)
from shiftproof.metrics.resampled_precision import over_classes
from shiftproof.metrics.resampling import Resampled
from shiftproof.planning import Known
from shiftproof.studies import evidence
from shiftproof.studies.cell_study import seen_in_training
from shiftproof.studies.clean_study import CleanStudy
from shiftproof.studies.corrupted_study import CorruptedStudy
from shiftproof.studies.corruption_numbers import averaged_corruptions, seen_told
from shiftproof.studies.detection import OneOverlap
from shiftproof.studies.detection_galleries import judged_item
from shiftproof.studies.found_boxes import (
    Judged,
    Load,
    column_of,
    convention_of,
    found_by,
    measured,
    nothing_to_find,
    overlap_told,
    truths_of,
    why_no_precision,
)
from shiftproof.types import About, Clusters, Finding, Gallery, GalleryItem, Keep, Measurement, Run

Drawing = NDArray[np.floating]
"""Mean average precision in every cell and, last, on the clean images, (cells + 1,), of one drawing of images."""


@dataclass(frozen=True)
class DetectionCorruptionStudy(CorruptedStudy):
    """Mean average precision under every corruption at every severity, its mean (mPC) and what is left of the clean (rPC).

    Corruptions act on the image as it is stored, so that boxes stay where they are. Intervals draw images again, each in
    all its cells together.
    """

    iou: OneOverlap = 0.5
    shown_score: float = 0.3  # boxes of a lower score are not drawn

    keep: ClassVar[Keep] = "boxes"
    by_default: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        overlap_numbers(self.iou)
        if self.picture not in (None, "image"):
            raise BadInput(f"boxes lie on the image as it is stored, so that is corrupted; got the picture {self.picture!r}")

    def measure(self, load: Load) -> Iterator[Finding]:
        for run in CleanStudy.runs(self):
            clean, *cells = self._runs_of(run.model)
            ids = self._common_ids(load, [clean, *cells])
            unchanged = self._judged(load, clean, ids)
            if unchanged is None:
                continue
            shown = _best_image(unchanged)
            columns, items = [], [self._item(unchanged, clean, shown)]
            for cell in cells:
                judged = self._judged(load, cell, ids)
                if judged is not None:
                    columns.append(_precision(judged))
                    if cell.condition.severity == max(self.severities):
                        items.append(self._item(judged, cell, shown))
            table = _side_by_side([*columns, _precision(unchanged)])
            told = {"boxes": "the 100 surest of each image and class", **overlap_told(self.iou)}
            made = {**self._edition_told(), **self._frost_told()}
            corrupted_told = {**convention_of(cells[0], unchanged.found), **made, **told}
            clean_told = {**convention_of(clean, unchanged.found), **told}
            seen = seen_in_training(load, run)
            yield from self._numbers(table, run.about(), unchanged.clusters, clean_told, corrupted_told, seen)
            yield Gallery("corrupted_boxes", run.about(), run.image_set, "One image under corruption", tuple(items))

    def skipped(self, load: Load) -> Iterator[str]:
        for run in CleanStudy.runs(self):
            clean, *cells = self._runs_of(run.model)
            found = found_by(load, clean)
            reasons = [evidence.nothing_read(clean, found), nothing_to_find(clean, found)]
            if not any(reasons) and self._judged(load, clean, self._common_ids(load, [clean, *cells])) is None:
                reasons = [f"{run.image_set.name}: no image with objects was read by {run.model.name} in every cell"]
            yield from (reason for reason in reasons if reason)

    def why_nothing(self, known: Known) -> str | None:
        """Average precision needs boxes."""
        ref = CleanStudy.runs(self)[0].image_set
        return why_no_precision(ref.name, getattr(known.images(ref), "truths", None))

    def _numbers(
        self,
        table: Resampled,
        about: About,
        clusters: Clusters,
        clean_told: Mapping[str, str],
        told: Mapping[str, str],
        seen: Collection[str],
    ) -> Iterator[Measurement]:
        shape, images = (len(self.corruptions), len(self.severities)), len(clusters)
        last = shape[0] * shape[1]
        yield measured("clean_average_precision", column_of(table, last), about, images, clean_told, clusters)
        for place, (corruption, severity) in enumerate(np.ndindex(shape)):
            key = {**about, "corruption": self.corruptions[corruption], "severity": self.severities[severity]}
            beside = {**told, **seen_told([self.corruptions[corruption]], seen)}
            yield measured("corrupted_average_precision", column_of(table, place), key, images, beside, clusters)
        told = {**told, "severities": ", ".join(map(str, self.severities))}
        for place, name in enumerate(self.corruptions):
            mean = _each(table, lambda row, place=place: float(row[:-1].reshape(shape)[place].mean()))  # type: ignore[misc]
            beside = {**told, **seen_told([name], seen)}
            yield measured("corruption_mean_precision", mean, {**about, "corruption": name}, images, beside, clusters)
        every = list(range(len(self.corruptions)))
        left = [place for place in every if self.corruptions[place] not in seen]
        for of_all, places in [(True, every), *([(False, left)] if left and left != every else [])]:
            names = [self.corruptions[place] for place in places]
            beside = {**told, "corruptions": averaged_corruptions(names), **seen_told(names, seen)}
            mean = _each(table, lambda row, some=places: mean_performance_under_corruption(row[:-1].reshape(shape)[some]))  # type: ignore[misc]
            yield measured(_called("mean_performance_under_corruption", of_all), mean, about, images, beside, clusters)
            if table.seen[0, last] > 0:
                share = _each(table, lambda row, some=places: _share_left(row, shape, some))  # type: ignore[misc]
                yield measured(
                    _called("relative_performance_under_corruption", of_all), share, about, images, beside, clusters
                )

    def _common_ids(self, load: Load, runs: Sequence[Run]) -> list[str]:
        """The images that were read in every run, in one order whatever order they were stored in."""
        read = [frozenset(found_by(load, run).detections.ids) for run in runs]
        return sorted(frozenset.intersection(*read))

    def _judged(self, load: Load, run: Run, ids: Sequence[str]) -> Judged | None:
        """What became of the boxes in one cell; None where these images leave nothing to find."""
        found = found_by(load, run)
        truths = truths_of(found)
        if truths is None or not ids:
            return None
        place_of = {key: place for place, key in enumerate(found.detections.ids)}
        judged = Judged(found, truths, self.iou, np.array([place_of[key] for key in ids], np.intp))
        return judged if len(judged.among_counted.object_image) else None

    def _item(self, judged: Judged, run: Run, shown: str) -> GalleryItem:
        place = judged.found.detections.ids.index(shown)
        item = judged_item(judged, place, least_score=self.shown_score, before=f"{run.condition}: ")
        return dataclasses.replace(item, condition=run.condition if run.condition.severity else None)

    @property
    def _picture(self) -> str:
        return "image"

    @property
    def _at(self) -> str:
        return "image"


def _called(metric: str, of_all: bool) -> str:
    return metric if of_all else unseen(metric)


def _best_image(judged: Judged) -> str:
    """The image with the highest average precision, of equals the one with most objects."""
    precision = np.nan_to_num(image_average_precision(judged.matches), nan=-1.0).round(12)
    objects = np.bincount(judged.matches.object_image, minlength=len(judged.found))
    best = judged.counted[np.lexsort((-objects[judged.counted], -precision[judged.counted]))[0]]
    return judged.found.detections.ids[int(best)]


def _precision(judged: Judged) -> Resampled:
    return over_classes(judged.left_out(judged.matches))


def _side_by_side(columns: Sequence[Resampled]) -> Resampled:
    return Resampled(*(np.hstack(parts) for parts in zip(*columns, strict=True)))


def _each(table: Resampled, number: Callable[[Drawing], float]) -> Resampled:
    """A number of every drawing, one column."""
    return Resampled(*(np.array([number(row) for row in part]).reshape(-1, 1) for part in table))


def _share_left(row: Drawing, shape: tuple[int, int], places: Sequence[int]) -> float:
    """What these corruptions leave of the clean precision, not a number in drawings where that is 0."""
    return relative_performance_under_corruption(row[:-1].reshape(shape)[places], row[-1]) if row[-1] > 0 else float("nan")
