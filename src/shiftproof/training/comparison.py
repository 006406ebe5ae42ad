"""What a grid of recipes answers: does a recipe help, on what, and at what cost on clean images."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from shiftproof.corruptions import corruption_of
from shiftproof.corruptions.selection import trained_with
from shiftproof.errors import BadInput
from shiftproof.metrics.gains import Gain, recipe_gains
from shiftproof.metrics.intervals import Groups
from shiftproof.studies.base import dataset_ref
from shiftproof.studies.corruption.cells import Cells, Part, common_cells
from shiftproof.studies.corruption.study import NEEDS_LABELS, CorruptedStudy, clean_runs
from shiftproof.studies.evidence import why_unlabelled, why_unread
from shiftproof.types import (
    About,
    Caution,
    Finding,
    Interval,
    Known,
    LoadPredictions,
    LoadsSeen,
    Measurement,
    ModelRef,
    NoInterval,
    Note,
    Run,
    Skipped,
)

CLEAN = "clean"
METHOD = "crossed images and seeds, Satterthwaite's t"


@dataclass(frozen=True)
class TrainedRecipe:
    """A recipe trained with some seeds, and which images each of these models gets right under each shift."""

    name: str
    correct: Mapping[str, NDArray[np.bool_]]  # (seeds, images) by shift; clean images are one of them
    seen: frozenset[str] = field(default_factory=frozenset)  # shifts that took part in its training

    @property
    def shifts(self) -> list[str]:
        """The shifts it was measured under."""
        return [shift for shift in self.correct if shift != CLEAN]

    @property
    def seeds(self) -> int:
        return len(next(iter(self.correct.values())))


def compare_recipes(
    baseline: TrainedRecipe, recipes: Sequence[TrainedRecipe], *, dataset: str, clusters: Groups | None = None
) -> Iterator[Measurement | Skipped | Caution]:
    """Gains of recipes over the baseline on shifts that none was trained with, under each shift, and on clean images.

    All are judged on the same shifts, those that took no part in any training of the grid: a mean over other shifts for each
    recipe could not be compared. Intervals and p-values of the mean gain and of clean images hold for all recipes together.
    """
    trained = (baseline, *recipes)
    for one in recipes:
        if {*one.correct} != {*baseline.correct}:
            raise BadInput(f"{one.name} and {baseline.name} should be measured under the same shifts")
    if min(one.seeds for one in trained) < 2:
        yield Caution(
            "one seed says nothing of the noise of training: gains have no confidence interval; train with two or more"
        )
    unseen = [shift for shift in baseline.shifts if not any(shift in one.seen for one in trained)]
    of_all = {"seeds": str(min(one.seeds for one in trained)), "recipes": str(len(recipes))}
    if unseen:
        tables = [np.stack([one.correct[shift] for shift in unseen], axis=2) for one in trained]
        told = {**of_all, "shifts": f"{len(unseen)} of {len(baseline.shifts)}, in no training"}
        for one, gain in zip(recipes, recipe_gains(tables[0], tables[1:], clusters=clusters), strict=True):
            about = {"dataset": dataset, "recipe": one.name, "versus": baseline.name}
            yield _measured("recipe_gain", gain, about, tables[0], told, clusters)
            if gain.p is not None:
                test = {**told, "test": f"{METHOD}, Bonferroni's correction for {len(recipes)} recipes"}
                yield Measurement("recipe_gain_p", gain.p, about, tables[0].shape[1], test, clusters=_count(clusters))
    else:
        yield Skipped("every shift took part in the training of some recipe: none is left to judge all of them on")
    for shift in baseline.correct:
        judged = [one for one in recipes if shift not in one.seen | baseline.seen]
        own, *others = (one.correct[shift] for one in (baseline, *judged))
        for one, gain in zip(judged, recipe_gains(own, others, clusters=clusters), strict=True):
            about = {"dataset": dataset, "recipe": one.name, "versus": baseline.name}
            if shift == CLEAN:
                yield _measured("recipe_clean_change", gain, about, own, of_all, clusters)
            else:
                yield _measured("recipe_shift_gain", gain, {**about, "shift": shift}, own, of_all, clusters, alone=True)


def _measured(
    metric: str,
    gain: Gain,
    about: About,
    table: NDArray[np.bool_],
    convention: Mapping[str, str],
    clusters: Groups | None,
    *,
    alone: bool = False,
) -> Measurement:
    """A gain as a finding; `alone`: with an interval that is not widened for the other recipes."""
    within = gain.interval if alone else gain.simultaneous
    method = METHOD if alone else f"{METHOD}; all recipes together (Bonferroni)"
    interval = None if within is None else Interval(*within, method=method)
    why = None if within is not None else NoInterval("of one seed, or of fewer than five clusters", too_few=True)
    noise = {"standard error": f"{100 * gain.image_error:.1f} points by images, {100 * gain.seed_error:.1f} by seeds"}
    return Measurement(
        metric,
        gain.gain,
        about,
        table.shape[1],
        {**convention, **noise},
        interval,
        clusters=_count(clusters),
        no_interval=why,
    )


def _count(clusters: Groups | None) -> int | None:
    return None if clusters is None else len(np.unique(clusters))


@dataclass(frozen=True)
class RecipeStudy(CorruptedStudy):
    """Models of several recipes and seeds on the same images, clean and corrupted, beside those of the first recipe."""

    grid: Mapping[str, Sequence[ModelRef]] = field(default_factory=dict)  # the models of each recipe, one for each seed

    def measure(self, load: LoadPredictions) -> Iterator[Finding | Note]:
        yield from self._cautions()
        cells: dict[ModelRef, Cells] = {}
        for model in (run.model for run in clean_runs(self)):
            found = self._cells(model, load)
            if isinstance(found, str):
                yield Skipped(f"{model.name}: {found}")
                return
            cells[model] = found
        ids = sorted(set.intersection(*(set(one.ids) for one in cells.values())))  # read by every model everywhere
        cells = {model: one.take(ids) for model, one in cells.items()}
        if not ids:
            yield Skipped("no image was read by every model in every cell")
            return
        trained = [
            TrainedRecipe(recipe, self._correct([cells[model] for model in models]), self._seen(models[0], load))
            for recipe, models in self.grid.items()
        ]
        clusters = next(iter(cells.values())).clusters
        yield from compare_recipes(
            trained[0], trained[1:], dataset=dataset_ref(self.dataset).name, clusters=clusters.numbers
        )

    def why_nothing(self, known: Known) -> str | None:
        """Errors need labels."""
        return known.unlabelled(dataset_ref(self.dataset), NEEDS_LABELS)

    def _cells(self, model: ModelRef, load: LoadPredictions) -> Cells | str:
        """What a model gets wrong in each cell and on clean pictures, or why that is not known."""
        parts: list[Part] = []
        for run in self._runs_of(model):
            predictions = load(run)
            reason = why_unread(predictions) or why_unlabelled(predictions, NEEDS_LABELS)
            if reason:
                return reason
            parts.append(Part.of(predictions))
        return common_cells([*parts[1:], parts[0]], self.corruptions, self.severities)

    def _correct(self, seeds: Sequence[Cells]) -> dict[str, NDArray[np.bool_]]:
        """Which images are right with each seed, (seeds, images), clean and in each cell."""
        right = ~np.stack([one.columns for one in seeds]).astype(bool)
        return {CLEAN: right[:, :, -1]} | {shift: right[:, :, place] for place, shift in enumerate(self._shifts.values())}

    @property
    def _shifts(self) -> dict[tuple[str, int], str]:
        """The cells in their order, by the name that findings have for them."""
        cells = [(name, severity) for name in self.corruptions for severity in self.severities]
        return {(name, severity): f"{corruption_of(name).title}, severity {severity}" for name, severity in cells}

    def _seen(self, model: ModelRef, load: LoadPredictions) -> frozenset[str]:
        """The shifts that took part in the training of a recipe."""
        if not isinstance(load, LoadsSeen):
            return frozenset()
        seen = trained_with(load.seen(Run(model, dataset_ref(self.dataset))).augmentations)
        return frozenset(shift for (name, _), shift in self._shifts.items() if name in seen)
