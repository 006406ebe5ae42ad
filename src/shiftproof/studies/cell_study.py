"""What studies of corruption have in common, whether the pixels are corrupted here or were in published files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from shiftproof.corruptions.choosing import trained_with
from shiftproof.errors import UnknownName
from shiftproof.planning import Known
from shiftproof.studies.cells import Baseline, Cells
from shiftproof.studies.clean_study import CleanStudy, model_ref
from shiftproof.studies.corruption_galleries import Photos, contact_sheet, fragile_photos
from shiftproof.studies.corruption_numbers import compared, findings, why_no_ratios
from shiftproof.studies.published_baselines import ALEXNET
from shiftproof.types import Classifier, Finding, ModelRef, Predictions, Run, Seen

Load = Callable[[Run], Predictions]


class Answers(NamedTuple):
    """What one model said in every cell."""

    cells: Cells
    names: Mapping[str, str]  # the right classes of each image, in words
    convention: Mapping[str, str]
    clean_convention: Mapping[str, str]
    photos: Photos
    reasons: tuple[str, ...] = ()  # what cannot be measured, and why


@dataclass(frozen=True)
class CellStudy(CleanStudy, ABC):
    """Some models on one set of images under every corruption; whoever is one says where the answers are."""

    def measure(self, load: Load) -> Iterator[Finding]:
        given = self._given(load)
        for run in CleanStudy.runs(self):
            answers = self.answers(run.model, load)
            if isinstance(answers, str):
                continue
            baseline = given or self.published_baseline(answers)
            cells, against = compared(answers.cells, baseline)
            if not len(cells):
                continue
            left = len(answers.cells) - len(cells)
            beside = {"without the baseline's answer": f"{left} of {len(answers.cells)}, left out"} if left else {}
            about, told = run.about(), {**answers.convention, **beside}
            clean_told = {**answers.clean_convention, **beside}
            seen = seen_in_training(load, run)
            yield from findings(cells, against, about, told, clean_convention=clean_told, seen=seen)
            yield from fragile_photos(cells, answers.names, about, answers.photos, shown=self.most_shown)
            yield contact_sheet(cells, about, answers.photos)

    def skipped(self, load: Load) -> Iterator[str]:
        given = self._given(load)
        for run in CleanStudy.runs(self):
            answers = self.answers(run.model, load)
            if isinstance(answers, str):
                yield f"{run.image_set.name}: {answers}"
                continue
            baseline = given or self.published_baseline(answers)
            reasons = [*answers.reasons, *why_no_ratios(answers.cells, baseline, run.model.name)]
            yield from (f"{run.image_set.name}: {reason}" for reason in reasons)

    def why_nothing(self, known: Known) -> str | None:
        """Errors need labels."""
        return known.unlabelled(CleanStudy.runs(self)[0].image_set, "the error under corruption")

    @property
    @abstractmethod
    def most_shown(self) -> int:
        """How many images a gallery has."""

    @property
    @abstractmethod
    def given_baseline(self) -> ModelRef | str | None:
        """A model, the published one by name, or None for what fits."""

    @abstractmethod
    def answers(self, model: ModelRef, load: Load) -> Answers | str:
        """What a model said in every cell, or why there is nothing to measure."""

    @abstractmethod
    def published_baseline(self, answers: Answers) -> Baseline | str:
        """AlexNet's published errors, or why they do not belong here."""

    def _given(self, load: Load) -> Baseline | str | None:
        """The model that errors are divided by, or why it cannot be; None where none was given."""
        given = self.given_baseline
        if not isinstance(given, ModelRef):
            return None
        theirs = self.answers(given, load)
        return (
            f"the baseline {given.name} has no answers: {theirs}"
            if isinstance(theirs, str)
            else Baseline(given.name, cells=theirs.cells)
        )


def seen_in_training(load: Load, run: Run) -> frozenset[str]:
    """Corruptions and perturbations that the model of a run declares as augmentations, where the store knows."""
    seen: Callable[[Run], Seen] | None = getattr(load, "seen", None)
    return trained_with(seen(run).augmentations) if seen else frozenset()


def checked_baseline(given: ModelRef | Classifier | str | None) -> ModelRef | str | None:
    """The baseline by reference; UnknownName where it is a name that is not the published one's."""
    if isinstance(given, str) and given != ALEXNET:
        raise UnknownName("published baseline", given, [ALEXNET])
    return given if given is None or isinstance(given, str) else model_ref(given)


def why_unnormalised(foreign: str) -> str:
    """Why errors stand as they are, and what to do for ratios."""
    return (
        f"errors are not divided by a baseline's, because AlexNet's published ones are {foreign}; give --baseline MODEL "
        f"for a model run on the same images, or --baseline {ALEXNET} for the published errors all the same"
    )


def alexnet_told(foreign: str | None) -> str:
    """The published errors, saying plainly where they are of something else."""
    return f"AlexNet's published errors, which are {foreign}" if foreign else "AlexNet's published errors on these images"
