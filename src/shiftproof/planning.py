"""What is left to do: the images of a set without a stored answer, and the runs of studies that can measure something."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol, runtime_checkable

from shiftproof.errors import ClassMismatch
from shiftproof.image_sets.scoring import Scoring
from shiftproof.loading import digests_of
from shiftproof.store import Store
from shiftproof.stored_rows import Contents
from shiftproof.types import Classes, ImageSet, ImageSetRef, Keep, Run, Sample, SetAside, Study, richest

BATCH = 32
"""Images in a batch, where the model has no number of its own."""


class Plan(NamedTuple):
    """What is left to do of a run."""

    blocks: dict[int, list[Sample]]  # by their place in the set
    total: int
    done: int
    set_aside: list[SetAside]
    whole: bool = True  # False where only some images were asked for


class Digests:
    """The digest of every image of a set by its id, read when they are first needed; None for one that cannot be read."""

    def __init__(self, images: ImageSet, store: Store) -> None:
        self._images, self._store = images, store

    @cached_property
    def of(self) -> dict[str, str | None]:
        return digests_of(self._images, self._store)


def plan_blocks(
    images: ImageSet,
    contents: Contents,
    digests: Digests,
    *,
    batch_size: int = BATCH,
    shard: tuple[int, int] = (1, 1),
    only: Collection[str] | None = None,
) -> Plan:
    """The images without a stored answer, in blocks that any machine would cut alike."""
    part, parts = shard
    samples = images.samples
    starts = list(enumerate(range(0, len(samples), batch_size)))[part - 1 :: parts]
    wanted = None if only is None else frozenset(only)
    blocks = {
        place: [sample for sample in samples[start : start + batch_size] if wanted is None or sample.id in wanted]
        for place, start in starts
    }
    mine = [sample for block in blocks.values() for sample in block]
    if contents.rows or contents.aside:
        pairs = {sample.id: (sample.id, digests.of[sample.id] or "") for sample in mine}
        answered = {key for key, pair in pairs.items() if pair in contents.rows}
        aside = {key: contents.aside[pair] for key, pair in pairs.items() if key not in answered and pair in contents.aside}
        known = answered | aside.keys()
        blocks = {place: [sample for sample in block if sample.id not in known] for place, block in blocks.items()}
    else:
        answered, aside = set(), {}
    set_aside = [SetAside(*entry) for entry in aside.items()]
    left = {place: block for place, block in blocks.items() if block}
    return Plan(left, len(mine), len(answered) + len(aside), set_aside, only is None)


@dataclass(frozen=True)
class Known:
    """What is known of image sets and models before any image is opened or any model asked."""

    images: Callable[[ImageSetRef], ImageSet]
    of_models: Sequence[Classes | None]  # what each model's outputs are; None where it does not say
    scoring: Scoring

    @classmethod
    def of(cls, models: Iterable[Classes | None], image_sets: Iterable[ImageSet], scoring: Scoring | None = None) -> Known:
        sets = {images.ref: images for images in image_sets}
        return cls(sets.__getitem__, tuple(models), scoring or Scoring())

    def unlabelled(self, ref: ImageSetRef, what: str) -> str | None:
        """Why something that needs labels cannot be had of a set, or None."""
        images = self.images(ref)
        labels = {label for sample in images.samples for label in sample.labels}
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

    def has_facts(self, ref: ImageSetRef, names: Iterable[str]) -> bool:
        """Whether there are images of which all of this is known."""
        wanted = set(names)
        return any(wanted <= sample.facts.keys() for sample in self.images(ref).samples)


@runtime_checkable
class ForeseeingStudy(Study, Protocol):
    """A study that can tell from images and models alone that it would measure nothing."""

    def why_nothing(self, known: Known) -> str | None:
        """Why nothing can be measured, however models answer; None where something can."""


def measurable(studies: Iterable[Study], known: Known) -> tuple[list[Study], list[str]]:
    """The studies that can measure something, and why the others cannot."""
    left: list[Study] = []
    reasons: list[str] = []
    for study in studies:
        why = study.why_nothing(known) if isinstance(study, ForeseeingStudy) else None
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
    studies: Iterable[Study], image_sets: Iterable[ImageSet], *, store: Store, scoring: Scoring | None = None
) -> list[dict[str, str | int]]:
    """Every run the studies name, once, with how much of it is stored."""
    sets = {images.ref: images for images in image_sets}
    digests = {ref: Digests(images, store) for ref, images in sets.items()}
    rows: list[dict[str, str | int]] = []
    for run, keep in keeps_of(studies, (scoring or Scoring()).keep).items():
        stored = store.run(run.model, run.condition).contents(keep)
        plan = plan_blocks(sets[run.image_set], stored, digests[run.image_set])
        names: dict[str, str | int] = {"model": run.model.name, "image set": run.image_set.name}
        asked: dict[str, str | int] = {"condition": str(run.condition), "keep": keep}
        rows.append({**names, **asked, "images": plan.total, "stored": plan.done, "to do": plan.total - plan.done})
    return rows
