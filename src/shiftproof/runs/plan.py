"""What is left to predict: images without a stored row, and runs of the studies that can measure something."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.columns import in_blocks
from shiftproof.datasets.label_spaces import Scoring
from shiftproof.datasets.sample_table import fact_names, ids_of, labels_used
from shiftproof.errors import ClassMismatch
from shiftproof.runs.load import Pairs, digests_of
from shiftproof.runs.rows import CANNOT_BE_READ, Contents, may_be_back
from shiftproof.runs.store import Store
from shiftproof.types import Classes, Dataset, DatasetRef, Keep, Run, Sample, SkippedImage, Study, richest

BATCH = 32
"""Images in a batch, where the model has no number of its own."""


class Blocks(Mapping[int, list[Sample]]):
    """What is left of each block of a dataset, by its place; samples are taken when a block is asked for."""

    def __init__(self, samples: Sequence[Sample], left: NDArray[np.bool_], size: int) -> None:
        self._samples, self._left, self._size = samples, left, size
        starts = np.arange(0, len(left), size)
        self._places = np.flatnonzero(np.logical_or.reduceat(left, starts)) if len(left) else starts

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[int]:
        return iter(self._places.tolist())

    def __getitem__(self, place: int) -> list[Sample]:
        rows = slice(place * self._size, (place + 1) * self._size)
        left = [sample for sample, is_left in zip(self._samples[rows], self._left[rows].tolist(), strict=True) if is_left]
        if not left:
            raise KeyError(place)
        return left


class Plan(NamedTuple):
    """What is left to predict of a run."""

    blocks: Blocks  # by their place in the dataset
    total: int
    done: int
    skipped_images: list[SkippedImage]
    whole: bool = True  # False where only some images are wanted


def plan_blocks(
    images: Dataset,
    contents: Contents,
    digests: Callable[[], Mapping[str, str | None]],
    *,
    batch_size: int = BATCH,
    shard: tuple[int, int] = (1, 1),
    only: Collection[str] | None = None,
) -> Plan:
    """The images without a stored row, in blocks that are the same on every machine.

    `digests`, as of `digests_of`, are asked for only where something is stored.
    """
    part, parts = shard
    samples, ids = images.samples, ids_of(images.samples)
    left = np.arange(len(samples)) // batch_size % parts == part - 1
    if only is not None:
        wanted = frozenset(only)
        left &= np.fromiter((key in wanted for key in ids), bool, len(ids))
    total = int(left.sum())
    skipped: list[SkippedImage] = []
    if contents.rows or contents.skipped:
        pairs = Pairs(ids, digests())
        left &= contents.places(pairs).file < 0
        for start, some in in_blocks(pairs) if contents.skipped else ():
            for place, pair in enumerate(some, start):
                if left[place] and not may_be_back(contents.skipped.get(pair, CANNOT_BE_READ)):
                    left[place] = False
                    skipped.append(SkippedImage(pair[0], contents.skipped[pair]))
    return Plan(Blocks(samples, left, batch_size), total, total - int(left.sum()), skipped, only is None)


@dataclass(frozen=True)
class KnownInputs:
    """What is known of datasets and models before any image is opened or any model runs."""

    images: Callable[[DatasetRef], Dataset]
    of_models: Sequence[Classes | None]  # what each model's outputs are; None where it does not say
    scoring: Scoring

    @classmethod
    def of(
        cls, models: Iterable[Classes | None], datasets: Iterable[Dataset], scoring: Scoring | None = None
    ) -> KnownInputs:
        sets = {images.ref: images for images in datasets}
        return cls(sets.__getitem__, tuple(models), scoring or Scoring())

    def unlabelled(self, ref: DatasetRef, what: str) -> str | None:
        """Why something that needs labels cannot be measured on a dataset, or None."""
        images = self.images(ref)
        labels = labels_used(images.samples)
        if labels and (images.classes is None or any(self._meets(images.classes, one, labels) for one in self.of_models)):
            return None
        whose = " that a model here knows" if labels else ""
        return f"{ref.name}: {what} needs labels, and no image has one{whose}"

    def _meets(self, of_set: Classes, of_model: Classes | None, labels: Iterable[int]) -> bool:
        """Whether any of these labels is left once they are matched with the outputs of a model."""
        if of_model is None:
            return True
        try:
            space = self.scoring.space(of_set, of_model, outputs=len(of_model))
        except ClassMismatch:
            return True  # which is an error of its own, told where they meet
        return any(space.label_of[label] >= 0 for label in labels)

    def has_facts(self, ref: DatasetRef, names: Iterable[str]) -> bool:
        """Whether some image has all of these facts."""
        wanted, samples = set(names), self.images(ref).samples
        # most often no image has them, or the first one
        return wanted <= {*fact_names(samples)} and any(wanted <= sample.facts.keys() for sample in samples)


def measurable(studies: Iterable[Study], known: KnownInputs) -> tuple[list[Study], list[str]]:
    """The studies that can measure something, and why the others cannot."""
    left: list[Study] = []
    reasons: list[str] = []
    for study in studies:
        why = study.why_nothing(known)
        left += [] if why else [study]
        reasons += [why] if why else []
    return left, list(dict.fromkeys(reasons))


def keeps_of(studies: Iterable[Study], least: Keep = "top5") -> dict[Run, Keep]:
    """Every run the studies name, once, with the least it must have stored."""
    keeps: dict[Run, Keep] = {}
    for study in studies:
        for run in study.runs():
            keeps[run] = richest([keeps.get(run, least), study.keep])
    return keeps


def plan_runs(
    studies: Iterable[Study], datasets: Iterable[Dataset], *, store: Store, scoring: Scoring | None = None
) -> list[dict[str, str | int]]:
    """Every run the studies name, once, with how much of it is stored."""
    sets = {images.ref: images for images in datasets}
    digests = {ref: cache(partial(digests_of, images, store)) for ref, images in sets.items()}
    rows: list[dict[str, str | int]] = []
    for run, keep in keeps_of(studies, (scoring or Scoring()).keep).items():
        stored = store.run(run.model, run.condition).contents(keep)
        plan = plan_blocks(sets[run.dataset], stored, digests[run.dataset])
        names: dict[str, str | int] = {"model": run.model.name, "dataset": run.dataset.name}
        wanted: dict[str, str | int] = {"condition": str(run.condition), "keep": keep}
        rows.append({**names, **wanted, "images": plan.total, "stored": plan.done, "to do": plan.total - plan.done})
    return rows
