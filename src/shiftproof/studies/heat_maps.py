"""Where models look when they are wrong and when they are right, and whether that is where the object is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, cast

import numpy as np

from shiftproof.errors import BadInput
from shiftproof.image_sets.views import spread_over
from shiftproof.metrics import heat_inside, hot_point_inside, hot_region_meets, is_correct
from shiftproof.models.heat_maps import METHODS
from shiftproof.planning import Known
from shiftproof.stored_looks import AskedLooks, Looks
from shiftproof.studies import evidence
from shiftproof.studies.clean_study import CleanStudy
from shiftproof.studies.heat_galleries import heat_gallery
from shiftproof.studies.heat_on_objects import LookedInto, heat_and_inside
from shiftproof.types import About, Clusters, Finding, ImageSet, ImageSetRef, Keep, Measurement, Predictions, Run

OF_THE_ANSWER, OF_THE_TRUTH = "of the answer", "of the truth"
"""Which class a map is of; of right answers there is only one."""

Load = Callable[[Run], Predictions]


class LoadsLooks(Protocol):
    """What reads runs for studies of heat maps."""

    def images(self, ref: ImageSetRef) -> ImageSet: ...

    def looks(self, run: Run, predictions: Predictions, asked: AskedLooks, method: str | None) -> Looks: ...


@dataclass(frozen=True)
class HeatMapStudy(CleanStudy):
    """Where models look in some of their mistakes and right answers, and how often beside the object.

    Mistakes and right answers are `looked_at` of each, evenly spread over the set; where any image has boxes, only images
    that have some are looked at.
    """

    looked_at: int = 50
    method: str | None = None  # one of `METHODS`; None: the best that each model allows
    hottest: float = 0.1  # share of what a model sees that is its hot region
    shown: int = 8

    keep: ClassVar[Keep] = "top5"
    by_default: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.looked_at < 1 or not 0 < self.hottest <= 1:
            raise BadInput(
                f"expected at least one image to look at and a hot region between 0 and 1, got {self.looked_at} and "
                f"{self.hottest:g}"
            )

    def looks(self, predictions: Predictions, images: ImageSet) -> AskedLooks:
        """For every chosen image the class it was taken for; for a mistake also its first label."""
        return {
            predictions.ids[row]: _classes(predictions, row)
            for rows in self._chosen(predictions, images).values()
            for row in rows
        }

    def measure(self, load: Load) -> Iterator[Finding]:
        for run in self.runs():
            predictions = load(run)
            if not predictions.labelled.any() or not hasattr(load, "looks"):
                continue
            reader = cast(LoadsLooks, load)
            images = reader.images(run.image_set)
            found = reader.looks(run, predictions, self.looks(predictions, images), self.method)
            boxes = {sample.id: sample.boxes for sample in images.samples}
            method = METHODS[found.method]
            convention = {**evidence.convention_of(run, predictions), "heat map": method}
            for answers, rows in self._chosen(predictions, images).items():
                looked = [LookedInto(row, found.of[(key := predictions.ids[row])], boxes[key]) for row in rows]
                about = {**run.about(), "answers": answers}
                yield from self._on_objects(looked, about, convention, predictions.clusters)
                shown = self.shown if answers == "wrong" else self.shown // 2
                yield from heat_gallery(run, predictions, looked, answers=answers, method=method, shown=shown)

    def skipped(self, load: Load) -> Iterator[str]:
        for run in self.runs():
            predictions = load(run)
            reasons = [
                evidence.nothing_read(run, predictions),
                evidence.nothing_labelled(run, predictions, "where models look in mistakes"),
            ]
            yield from (reason for reason in reasons if reason)
            if not any(reasons):
                yield from _not_told(load, run)

    def why_nothing(self, known: Known) -> str | None:
        """Only labels tell mistakes."""
        return known.unlabelled(self.runs()[0].image_set, "where models look in mistakes")

    def _chosen(self, predictions: Predictions, images: ImageSet) -> dict[str, Sequence[int]]:
        """Rows of mistakes and of right answers."""
        boxed = _boxed(images)
        fit = predictions.labelled & np.array([not boxed or key in boxed for key in predictions.ids], bool)
        rows = np.flatnonzero(fit)
        if not len(rows):
            return {}
        correct = is_correct(predictions.labels[rows], predictions.top5.classes[rows])
        chosen = {"wrong": rows[~correct], "right": rows[correct]}
        return {answers: spread_over(some.tolist(), self.looked_at) for answers, some in chosen.items()}

    def _on_objects(
        self, looked: Sequence[LookedInto], about: About, convention: Mapping[str, str], clusters: Clusters
    ) -> Iterator[Measurement]:
        """How often and how much the heat misses the boxes, for every class that was looked for."""
        with_boxes = [one for one in looked if one.boxes is not None and len(one.boxes)]
        maps = min((len(one.look.maps) for one in with_boxes), default=0)
        for which, name in enumerate((OF_THE_ANSWER, OF_THE_TRUTH)[:maps]):
            boxes = [one.boxes for one in with_boxes if one.boxes is not None]
            heat, inside = heat_and_inside([one.look for one in with_boxes], boxes, which)
            told = np.flatnonzero(inside.any(axis=(1, 2)) & heat.any(axis=(1, 2)))
            heat, inside, total = heat[told], inside[told], len(told)
            if not total:
                continue
            stated = {**convention, **self._stated(total, len(with_boxes), float(inside.mean()))}
            subject = {**about, "map": name}
            cases = clusters.take(np.array([with_boxes[place].row for place in told.tolist()], np.intp))
            off_region = ~hot_region_meets(heat, inside, share=self.hottest)
            yield evidence.share("hot_point_miss_rate", ~hot_point_inside(heat, inside), subject, stated, cases)
            yield evidence.share("hot_region_miss_rate", off_region, subject, stated, cases)
            yield evidence.mean("heat_inside_share", heat_inside(heat, inside), subject, stated, cases, bounds=(0.0, 1.0))

    def _stated(self, told: int, looked_at: int, inside: float) -> dict[str, str]:
        silent = looked_at - told
        return {
            "images looked at": f"at most {self.looked_at} mistakes and as many right answers, evenly spread",
            "hot region": f"the hottest {100 * self.hottest:g} % of what the model sees",
            "object": "all boxes of the image",
            "by chance": f"{100 * inside:.0f} % of the heat, as much as the boxes fill of what the model sees",
            **({"left out": f"{silent} of {looked_at}: the object is out of sight, or nothing is hot"} if silent else {}),
        }


def _not_told(load: Load, run: Run) -> Iterator[str]:
    """Why labelled images that were read say nothing of where models look, or nothing of objects."""
    if not hasattr(load, "looks"):
        yield f"{run.image_set.name}: heat maps are read from a store, and there is none here"
    elif not _boxed(cast(LoadsLooks, load).images(run.image_set)):
        yield f"{run.image_set.name}: no image has a box, so nothing says whether models look at the object"


def _boxed(images: ImageSet) -> set[str]:
    """The images that have boxes."""
    return {sample.id for sample in images.samples if sample.boxes is not None and len(sample.boxes)}


def _classes(predictions: Predictions, row: int) -> list[int]:
    """The class an image was taken for, and its first label where it is none of its labels."""
    answer = int(predictions.top5.classes[row, 0])
    labels = [int(label) for label in predictions.labels[row] if label >= 0]
    return [answer] if answer in labels else [answer, labels[0]]
