"""A set that holds corrupted images already, such as ImageNet-C or CIFAR-10-C: the same numbers from one run."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shiftproof.catalog import CORRUPTIONS
from shiftproof.datasets.listing import IMAGE_ENDINGS
from shiftproof.datasets.published.imagenet import clean_id
from shiftproof.errors import listed
from shiftproof.studies import evidence
from shiftproof.studies.base import CleanStudy, dataset_ref, model_ref, published_name, settle
from shiftproof.studies.corruption.cells import (
    EVERY_SEVERITY,
    Baseline,
    ModelCells,
    Part,
    Photos,
    alexnet_errors,
    checked_baseline,
    common_cells,
    left_out,
    right_classes,
    why_unnormalised,
)
from shiftproof.studies.corruption.study import NEEDS_LABELS, cell_findings
from shiftproof.types import (
    Classifier,
    Condition,
    Dataset,
    DatasetRef,
    Fact,
    Finding,
    Keep,
    Known,
    LoadPredictions,
    ModelRef,
    Note,
    Predictions,
    Run,
)

WHOLE = Condition("clean", picture="whole")
"""Corrupted files are pictures already: they are resized whole to the model's size."""

LIKE_IMAGENET_C = 10_000
"""Images a cell needs before published errors, which are of all 50,000, are said to be of these images."""

CUT_OUT = ("imagenet-c", "imagenet-c-bar", "imagenet-3dcc")
"""Published datasets of the centre of 224 pixels of ImageNet's validation images."""

NEEDED = ("corruption", "severity")
NOT_TOLD = f"its images do not say how they were corrupted; they need the facts {' and '.join(NEEDED)}"


@dataclass(frozen=True)
class PublishedCorruptionStudy(CleanStudy):
    """Errors under the corruptions a set holds, with the numbers of `CorruptionStudy`.

    Images have the facts `corruption` and `severity`; the same image in all cells is known by its id. The images they were
    made from are another set, `clean_set`; without it what needs the clean error is left out.
    """

    clean_set: DatasetRef | Dataset | None = None
    clean_picture: str | None = None  # None: as these were cut: imagenet-224 for ImageNet-C, whole where nothing is known
    baseline: ModelRef | Classifier | str | None = None
    published: str | None = None  # which published set these images are; taken from the set where that is given
    shown: int = 24  # images in the gallery

    keep: ClassVar[Keep] = "top5"

    def __post_init__(self) -> None:
        cut = None if isinstance(self.dataset, DatasetRef) else self.dataset.cut
        settle(
            self,
            published=self.published or published_name(self.dataset),
            clean_picture=self.clean_picture or cut,
            clean_set=self.clean_set and dataset_ref(self.clean_set),
            baseline=checked_baseline(self.baseline),
        )
        super().__post_init__()

    def runs(self) -> list[Run]:
        """Every model on the corrupted and, where given, the clean images; a baseline beside them comes last."""
        refs = [model_ref(model) for model in self.models]
        if isinstance(self.baseline, ModelRef) and self.baseline not in refs:
            refs.append(self.baseline)
        return [run for ref in refs for run in self._runs_of(ref)]

    def why_nothing(self, known: Known) -> str | None:
        """Errors need labels, and images must say how they were corrupted."""
        ref = dataset_ref(self.dataset)
        told = known.has_facts(ref, NEEDED)
        return known.unlabelled(ref, NEEDS_LABELS) or (None if told else f"{ref.name}: {NOT_TOLD}")

    def measure(self, load: LoadPredictions) -> Iterator[Finding | Note]:
        return cell_findings(self, load)

    @property
    def given_baseline(self) -> ModelRef | str | None:
        return checked_baseline(self.baseline)

    def model_cells(self, model: ModelRef, load: LoadPredictions) -> ModelCells | str:
        corrupted, *clean = self._runs_of(model)
        predictions = load(corrupted)
        reason = evidence.why_unread(predictions) or evidence.why_unlabelled(predictions, NEEDS_LABELS)
        if reason:
            return reason
        if any(fact not in predictions.facts for fact in NEEDED):
            return NOT_TOLD
        held = _Held(predictions)
        if not held.cells:
            return "there is no severity at which every corruption has images"
        parts = [held.part(name, severity) for name in held.corruptions for severity in held.severities]
        reasons = list(held.reasons)
        clean_ids: dict[str, str] = {}
        unchanged = load(clean[0]) if clean else None
        if unchanged is None:
            reasons.append("the error on clean images, and what is relative to it, needs the images these were made from")
        else:
            clean_ids = matched(held.images, unchanged.ids)
            if clean_ids:
                image_of = {found: image for image, found in clean_ids.items()}
                parts.append(Part.of(unchanged, lambda found: image_of.get(found, found)))
            else:
                reasons.append(f"none of the images is found in {clean[0].dataset.name} by its id, so no clean error")
        cells = common_cells(parts, held.corruptions, held.severities)
        if not len(cells):
            return f"no image was read by {model.name} in every cell"
        beside = left_out(parts[: held.cells]) | _without_clean(parts[: held.cells], len(cells))
        return ModelCells(
            cells,
            held.right_classes(),
            {**corrupted.convention(), "output": "as stored", **predictions.convention, **beside},
            {**clean[0].convention(), **predictions.convention, **beside} if clean else {},
            Photos(
                clean[0].dataset if clean_ids else corrupted.dataset,
                clean_ids or held.mildest,
                corrupted.dataset,
                held.place,
            ),
            tuple(reasons),
        )

    def published_baseline(self, of: ModelCells) -> Baseline | str:
        at_home = self.published == "imagenet-c" and len(of.cells) >= LIKE_IMAGENET_C
        measured_on = None if at_home else "of other images: the 50,000 in each cell of ImageNet-C"
        if measured_on and self.baseline is None:
            return why_unnormalised(measured_on)
        return alexnet_errors(of.cells.corruptions, of.cells.severities, measured_on=measured_on)

    def _runs_of(self, model: ModelRef) -> list[Run]:
        runs = [Run(model, dataset_ref(self.dataset), WHOLE)]
        if self.clean_set is not None:
            picture = self.clean_picture or ("imagenet-224" if self.published in CUT_OUT else "whole")
            runs.append(Run(model, dataset_ref(self.clean_set), Condition("clean", picture=picture)))
        return runs


class _Held:
    """The cells of one run over corrupted images, by their facts."""

    def __init__(self, predictions: Predictions) -> None:
        self.predictions = predictions
        names, severities = (predictions.facts[fact] for fact in NEEDED)
        self.ids_of: dict[tuple[Fact, Fact], dict[str, str]] = {}
        rows: dict[tuple[Fact, Fact], list[int]] = {}
        for row, cell in enumerate(zip(names, severities, strict=True)):
            rows.setdefault(cell, []).append(row)
        self.rows: dict[tuple[Fact, Fact], NDArray[np.integer]] = {cell: np.array(found) for cell, found in rows.items()}
        found = {str(name) for name in names if name is not None}
        self.corruptions = [*(name for name in CORRUPTIONS if name in found), *sorted(found - set(CORRUPTIONS))]
        every = {severity for name, severity in rows if name is not None and severity is not None}
        # a mean over severities needs the same ones for every corruption
        self.severities = sorted(int(s) for s in every if all((name, s) in rows for name in self.corruptions))
        lacking = sorted(int(severity) for severity in every if int(severity) not in self.severities)
        self.reasons = [f"severity {listed(map(str, lacking))} is left out: not every corruption has it"] if lacking else []

    @property
    def cells(self) -> int:
        return len(self.corruptions) * len(self.severities)

    def part(self, corruption: str, severity: int) -> Part:
        """One cell."""
        image_of = {found: image for image, found in self._ids(corruption, severity).items()}
        held = self.predictions.take(self.rows[corruption, severity])
        # of an image that was skipped no fact is known, so its severity is read from its id
        return Part.of(held, lambda found: image_of.get(found) or image_behind(found))

    def right_classes(self) -> Mapping[str, str]:
        """The ground-truth classes of each image, in words."""
        first = self.corruptions[0], self.severities[0]
        image_of = {found: image for image, found in self._ids(*first).items()}
        return right_classes(self.predictions.take(self.rows[first]), image_of.__getitem__)

    def _ids(self, corruption: str, severity: int) -> dict[str, str]:
        """The id of each image in one cell."""
        if (corruption, severity) not in self.ids_of:
            ids = [self.predictions.ids[row] for row in self.rows[corruption, severity].tolist()]
            self.ids_of[corruption, severity] = {clean_id(found, severity) or found: found for found in ids}
        return self.ids_of[corruption, severity]

    def place(self, image: str, corruption: str, severity: int) -> tuple[str, None] | None:
        if (corruption, severity) not in self.rows:
            return None
        found = self._ids(corruption, severity).get(image)
        return None if found is None else (found, None)

    @cached_property
    def images(self) -> list[str]:
        return list(self._ids(self.corruptions[0], self.severities[0]))

    @property
    def mildest(self) -> dict[str, str]:
        """Each image as little changed as there is."""
        return self._ids(self.corruptions[0], self.severities[0])


def image_behind(image_id: str) -> str:
    """The image a corrupted one was made from, by its id alone.

    >>> image_behind("noise/shot_noise/4/n01440764/a.JPEG"), image_behind("a.JPEG")
    ('n01440764/a.JPEG', 'a.JPEG')
    """
    return max((clean_id(image_id, severity) for severity in EVERY_SEVERITY), key=len) or image_id


def matched(images: Sequence[str], clean_ids: Sequence[str]) -> dict[str, str]:
    """The clean id of each image: the same, or else the only one with the same last part; files saved anew end otherwise.

    >>> matched(["n01440764/a.JPEG", "n01440764/b.JPEG"], ["a.JPEG", "b.JPEG", "c.JPEG"])
    {'n01440764/a.JPEG': 'a.JPEG', 'n01440764/b.JPEG': 'b.JPEG'}
    >>> matched(["cat/a.JPEG", "dog/a.JPEG"], ["cat/a.jpg", "dog/a.png"])
    {'cat/a.JPEG': 'cat/a.jpg', 'dog/a.JPEG': 'dog/a.png'}
    """
    same = set(images) & set(clean_ids)
    found = {image: image for image in images if image in same}
    rest = [image for image in images if image not in same], [clean for clean in clean_ids if clean not in same]
    found |= _alone_with(_without_ending, *rest)
    return found or _alone_with(_last, images, clean_ids) or _alone_with(lambda i: _without_ending(_last(i)), *rest)


def _alone_with(key: Callable[[str], str], images: Sequence[str], clean_ids: Sequence[str]) -> dict[str, str]:
    """Pairs of an image and a clean one of the same key, which no other has."""
    counts, clean_counts = Counter(map(key, images)), Counter(map(key, clean_ids))
    clean_of = {key(clean): clean for clean in clean_ids}
    return {image: clean_of[key(image)] for image in images if counts[key(image)] == clean_counts[key(image)] == 1}


def _last(image_id: str) -> str:
    return image_id.rpartition("/")[2]


def _without_ending(image_id: str) -> str:
    stem, ending = os.path.splitext(image_id)
    return stem if ending.lower() in IMAGE_ENDINGS else image_id


def _without_clean(corrupted: Sequence[Part], images: int) -> dict[str, str]:
    """How many corrupted images go without their clean one."""
    read = len(frozenset.intersection(*(frozenset(part.ids) for part in corrupted)))
    return {"without clean image": f"{read - images} of {read}, left out"} if read > images else {}
