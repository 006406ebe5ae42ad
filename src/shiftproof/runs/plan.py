"""What is left to predict: images without a stored row, and runs of the studies that can measure something."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import NamedTuple

from shiftproof.datasets.label_spaces import Scoring
from shiftproof.errors import ClassMismatch
from shiftproof.runs.load import digests_of
from shiftproof.runs.rows import Contents
from shiftproof.runs.store import Store
from shiftproof.types import Classes, Dataset, DatasetRef, Keep, Run, Sample, SkippedImage, Study, richest

BATCH = 32
"""Images in a batch, where the model has no number of its own."""


class Plan(NamedTuple):
    """What is left to predict of a run."""

    blocks: dict[int, list[Sample]]  # by their place in the dataset
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
    samples = images.samples
    starts = list(enumerate(range(0, len(samples), batch_size)))[part - 1 :: parts]
    wanted = None if only is None else frozenset(only)
    blocks = {
        place: [sample for sample in samples[start : start + batch_size] if wanted is None or sample.id in wanted]
        for place, start in starts
    }
    mine = [sample for block in blocks.values() for sample in block]
    if contents.rows or contents.skipped:
        of_file = digests()
        pairs = {sample.id: (sample.id, of_file[sample.id] or "") for sample in mine}
        stored = {key for key, pair in pairs.items() if pair in contents.rows}
        skipped = {
            key: contents.skipped[pair] for key, pair in pairs.items() if key not in stored and pair in contents.skipped
        }
        known = stored | skipped.keys()
        blocks = {place: [sample for sample in block if sample.id not in known] for place, block in blocks.items()}
    else:
        stored, skipped = set(), {}
    skipped_images = [SkippedImage(*entry) for entry in skipped.items()]
    left = {place: block for place, block in blocks.items() if block}
    return Plan(left, len(mine), len(stored) + len(skipped), skipped_images, only is None)


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

    def has_facts(self, ref: DatasetRef, names: Iterable[str]) -> bool:
        """Whether some image has all of these facts."""
        wanted = set(names)
        return any(wanted <= sample.facts.keys() for sample in self.images(ref).samples)


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
