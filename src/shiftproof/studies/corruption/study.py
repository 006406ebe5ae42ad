"""Errors under every corruption at every severity and on clean images, compared with a baseline's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from shiftproof import catalog
from shiftproof.corruptions import DEFAULT_EDITION, IMAGENET_C, corruption_of
from shiftproof.corruptions.editions import Fit
from shiftproof.corruptions.selection import trained_with
from shiftproof.errors import BadInput, UnknownName
from shiftproof.runs.prepare import PICTURES
from shiftproof.studies import evidence
from shiftproof.studies.base import CleanStudy, dataset_ref, model_ref, published_name, settle
from shiftproof.studies.corruption.cells import (
    EVERY_SEVERITY,
    Baseline,
    ModelCells,
    Part,
    Photos,
    alexnet_errors,
    cell_examples,
    checked_baseline,
    common_cells,
    contact_sheet,
    fragile_photos,
    left_out,
    right_classes,
    why_unnormalised,
)
from shiftproof.studies.corruption.numbers import compared, findings, why_no_ratios
from shiftproof.types import (
    BaselineRef,
    Caution,
    Classifier,
    Condition,
    Dataset,
    DatasetRef,
    Finding,
    FrostPictures,
    Keep,
    Known,
    LoadPredictions,
    LoadsSeen,
    ModelRef,
    Note,
    ObjectDetector,
    Output,
    Run,
    Skipped,
)

NEEDS_LABELS = "the error under corruption"


@dataclass(frozen=True)
class CorruptedStudy(CleanStudy):
    """Some models on one dataset, unchanged and under every corruption at every severity.

    Without an `edition` the one is taken that is made for the size of the pictures and of the models' inputs, where models
    and images are given themselves; `fit` says which and why.
    """

    corruptions: Sequence[str] = IMAGENET_C
    severities: Sequence[int] = EVERY_SEVERITY
    edition: str | None = None
    output: Output | None = None  # None: what the study takes by itself
    picture: str | None = None  # None: the same
    seed: int = 0
    frost: FrostPictures | None = None
    scale_severity: bool = False
    clean_output: Output = "raw"  # jpeg85: the unchanged pictures after the same save as corrupted ones
    fit: Fit | None = None

    def __post_init__(self) -> None:
        if self.edition is None:
            fit = self.fit or self._fitting()
            settle(self, fit=fit, edition=fit.edition)
        super().__post_init__()
        settle(
            self,
            corruptions=_without_repeats("corruption", self.corruptions),
            severities=_without_repeats("severity", self.severities),
        )
        for name in self.corruptions:
            catalog.CORRUPTIONS[name]
        catalog.EDITIONS[self._edition]
        if self.picture is not None and self.picture not in (*PICTURES, *catalog.EDITIONS):
            raise UnknownName("picture", self.picture, [*PICTURES, *catalog.EDITIONS])
        self.conditions()  # a severity that there is not is told now

    def conditions(self) -> list[Condition]:
        """The unchanged picture, then every cell."""
        cells = [self.condition(name, severity) for name in self.corruptions for severity in self.severities]
        return [Condition("clean", picture=self._picture, output=self.clean_output), *cells]

    def condition(self, corruption: str, severity: int) -> Condition:
        """One cell."""
        return Condition(
            corruption,
            severity,
            edition=self.edition,
            output=self._output,
            picture=self._picture,
            seed=self.seed,
            scale_severity=self.scale_severity,
            frost=self.frost if corruption_of(corruption).takes_frost else None,
        )

    def runs(self) -> list[Run]:
        """Every model under every condition."""
        return [run for clean in clean_runs(self) for run in self._runs_of(clean.model)]

    def _cautions(self) -> Iterator[Caution]:
        """What the edition is not made for, where nobody named it."""
        told = self.fit.warnings(scaled=self.scale_severity) if self.fit else ()
        return (Caution(f"{dataset_ref(self.dataset).name}: {one}") for one in told)

    @property
    def _edition(self) -> str:
        return self.edition or DEFAULT_EDITION

    @property
    def _picture(self) -> str:
        return self.picture or self._edition

    @property
    def _output(self) -> Output:
        return self.output or "raw"

    def _runs_of(self, model: ModelRef) -> list[Run]:
        dataset = clean_runs(self)[0].dataset
        return [Run(model, dataset, condition) for condition in self.conditions()]

    def _fitting(self) -> Fit:
        from shiftproof.datasets.perturbed import edition_for

        images = self.dataset if isinstance(self.dataset, Dataset) else None
        prepared = [
            (model_ref(model).name, model.preprocessing.describe())
            for model in self.models
            if not isinstance(model, ModelRef)
        ]
        return edition_for(images, prepared, picture=self._at)

    @property
    def _at(self) -> str | None:
        """What is corrupted, where that is not the edition's cut."""
        return self.picture if self.picture in PICTURES else None

    def _edition_told(self) -> dict[str, str]:
        return {} if self.fit is None else {"why this edition": self.fit.why}

    def _shows_frost(self) -> bool:
        return any(corruption_of(name).takes_frost for name in self.corruptions)

    def _original_frost(self) -> bool:
        if self.frost is None:
            return False
        from shiftproof.corruptions.frost_pictures import ORIGINAL_FROST

        return self.frost.digest == ORIGINAL_FROST

    def _frost_told(self) -> dict[str, str]:
        if not self._shows_frost():
            return {}
        original = "the authors' frost pictures" if self._original_frost() else None
        return {"frost pictures": original or ("our own" if self.frost is None else self.frost.digest)}


def _without_repeats(what: str, values: Sequence[object]) -> tuple[object, ...]:
    if not values or len(set(values)) < len(values):
        raise BadInput(f"name every {what} once, and at least one; got {', '.join(map(str, values)) or 'none'}")
    return tuple(values)


class CellSource(Protocol):
    """A study that knows every model in every cell; `cell_findings` turns that into numbers."""

    @property
    def models(self) -> Sequence[ModelRef | Classifier | ObjectDetector]: ...

    @property
    def dataset(self) -> DatasetRef | Dataset: ...

    @property
    def shown(self) -> int:
        """Images in the gallery."""

    @property
    def given_baseline(self) -> ModelRef | str | None:
        """A model, the published one by name, or None for what fits."""

    def model_cells(self, model: ModelRef, load: LoadPredictions) -> ModelCells | str:
        """A model in every cell, or why there is nothing to measure."""

    def published_baseline(self, of: ModelCells) -> Baseline | str:
        """AlexNet's published errors, or why they do not apply."""


def cell_findings(source: CellSource, load: LoadPredictions) -> Iterator[Finding | Note]:
    """Errors of every model in every cell, their means and ratios, and photos to look at."""
    given = _given_baseline(source, load)
    for run in clean_runs(source):
        found = source.model_cells(run.model, load)
        if isinstance(found, str):
            yield Skipped(f"{run.dataset.name}: {found}")
            continue
        baseline = given or source.published_baseline(found)
        no_ratios = why_no_ratios(found.cells, baseline, run.model.name)
        yield from evidence.skipped(run.dataset.name, *found.reasons, *no_ratios)
        cells, against = compared(found.cells, baseline)
        if not len(cells):
            continue
        left = len(found.cells) - len(cells)
        beside = {"without the baseline's prediction": f"{left} of {len(found.cells)}, left out"} if left else {}
        about, told = run.about(), {**found.convention, **beside}
        clean_told = {**found.clean_convention, **beside}
        seen = seen_in_training(load, run)
        yield from findings(cells, against, about, told, clean_convention=clean_told, seen=seen)
        yield from fragile_photos(cells, found.names, about, found.photos, shown=source.shown)
        yield contact_sheet(cells, about, found.photos)
        yield from cell_examples(cells, found.names, about, found.photos)


def clean_runs(source: CellSource | CleanStudy) -> list[Run]:
    """Every model on the unchanged images."""
    dataset = dataset_ref(source.dataset)
    return [Run(model_ref(model), dataset) for model in source.models]


def _given_baseline(source: CellSource, load: LoadPredictions) -> Baseline | str | None:
    """The model that errors are divided by, or why it cannot be; None where none was given."""
    given = source.given_baseline
    if not isinstance(given, ModelRef):
        return None
    theirs = source.model_cells(given, load)
    if isinstance(theirs, str):
        return f"the baseline {given.name} has no predictions: {theirs}"
    return Baseline(BaselineRef.of(given), cells=theirs.cells)


def seen_in_training(load: LoadPredictions, run: Run) -> frozenset[str]:
    """Corruptions and perturbations that the model of a run declares as augmentations, where the store knows."""
    return trained_with(load.seen(run).augmentations) if isinstance(load, LoadsSeen) else frozenset()


@dataclass(frozen=True)
class CorruptionStudy(CorruptedStudy):
    """Errors under corruption, by cell, corruption and group; their means; with a baseline CE, mCE and relative mCE.

    AlexNet's published errors are the baseline where they belong: the ImageNet validation images in the pictures, the files
    and the frost of the published set. Anywhere else give a model that was run on the same images.
    """

    baseline: ModelRef | Classifier | str | None = None
    published: str | None = None  # which published set these images are; taken from the set where that is given
    shown: int = 24  # images in the gallery

    keep: ClassVar[Keep] = "top5"

    def __post_init__(self) -> None:
        published = self.published or published_name(self.dataset)
        settle(self, published=published, baseline=checked_baseline(self.baseline))
        super().__post_init__()

    def runs(self) -> list[Run]:
        """Every model under every condition; a baseline that is not among the models comes last."""
        refs = [run.model for run in clean_runs(self)]
        if isinstance(self.baseline, ModelRef) and self.baseline not in refs:
            refs.append(self.baseline)
        return [run for ref in refs for run in self._runs_of(ref)]

    def measure(self, load: LoadPredictions) -> Iterator[Finding | Note]:
        yield from self._cautions()
        yield from cell_findings(self, load)

    def why_nothing(self, known: Known) -> str | None:
        """Errors need labels."""
        return known.unlabelled(dataset_ref(self.dataset), NEEDS_LABELS)

    @property
    def given_baseline(self) -> ModelRef | str | None:
        return checked_baseline(self.baseline)

    def model_cells(self, model: ModelRef, load: LoadPredictions) -> ModelCells | str:
        parts: list[Part] = []
        clean, *corrupted = runs = self._runs_of(model)
        for run in runs:
            predictions = load(run)
            reason = evidence.why_unread(predictions) or evidence.why_unlabelled(predictions, NEEDS_LABELS)
            if reason:
                return reason
            parts.append(Part.of(predictions))
        cells = common_cells([*parts[1:], parts[0]], self.corruptions, self.severities)
        if not len(cells):
            return f"no image was read by {model.name} in every cell"
        told = {**predictions.convention, **left_out(parts)}
        return ModelCells(
            cells,
            right_classes(predictions),
            {**corrupted[0].convention(), **told, **self._edition_told(), **self._frost_told()},
            {**clean.convention(), **told},
            Photos(clean.dataset, {}, clean.dataset, self._place),
        )

    def published_baseline(self, of: ModelCells) -> Baseline | str:  # noqa: ARG002 - the study alone decides
        measured_on = self._why_not_published()
        if measured_on and self.baseline is None:
            return why_unnormalised(measured_on)
        return alexnet_errors(self.corruptions, self.severities, measured_on=measured_on)

    @property
    def _output(self) -> Output:
        # as the published files were saved
        return self.output or ("raw" if self.edition == "cifar-32" else "jpeg85")

    def _why_not_published(self) -> str | None:
        """What the published errors were measured on that this is not, or None where they belong."""
        if self.published != "imagenet":
            return "of other images: the ImageNet validation set"
        if self.edition != "imagenet-224" or self._picture != self.edition or self.scale_severity:
            return "of the pictures of edition imagenet-224"
        if self._output != "jpeg85":
            return "of files saved as jpeg85"
        if self._shows_frost() and not self._original_frost():
            return "of the original frost pictures (--frost-folder)"
        return None

    def _place(self, image: str, corruption: str, severity: int) -> tuple[str, Condition]:
        return image, self.condition(corruption, severity)
