"""Options of the perturbation study."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from shiftproof.options import Bounds, PerturbationChoice, PictureSettings, option
from shiftproof.studies.options import Assembled, BaselineSettings, Context, Parts, StudyOptions, fit_of, has_facts

if TYPE_CHECKING:
    from shiftproof.types import Dataset


class PerturbationOptions(PerturbationChoice, PictureSettings, BaselineSettings, StudyOptions):
    """Sequences made here of images spread evenly over the dataset; a dataset of sequences as it is."""

    TITLE: ClassVar[str] = "Perturbation stability"

    sequences: int = option(100, "Number of images to perturb.", bounds=Bounds(1))

    def fits(self, dataset: Dataset) -> bool:
        return not has_facts(dataset, "corruption", "severity")

    def of(self, dataset: Dataset) -> Dataset:
        from shiftproof.datasets.subsets import anchors_of

        return anchors_of(dataset)

    def parts(self, dataset: Dataset) -> Parts | None:
        """Photos, each in all its sequences."""
        from shiftproof.metrics.intervals import LEAST_CLUSTERS

        if "sequences" in self.given or has_facts(dataset, "sequence", "frame"):
            return None
        photos = len(dataset.samples)
        return Parts(min(photos, LEAST_CLUSTERS), photos, "mean_flip_probability")

    def within(self, units: int, dataset: Dataset) -> tuple[StudyOptions, Dataset]:
        _, some = super().within(units, dataset)
        return dataclasses.replace(self, sequences=len(some.samples)), some

    def assemble(self, study: Callable[..., Any], models: Any, dataset: Dataset, context: Context) -> Assembled:
        from shiftproof.corruptions import perturbation_of
        from shiftproof.corruptions.selection import perturbations_named
        from shiftproof.datasets.perturbed import perturbed

        baseline = self.baseline_in(context)
        if has_facts(dataset, "sequence", "frame"):
            self.refuse(
                ("perturbations", "levels", "sequences"),
                f"{dataset.ref.name} holds sequences already",
                "name the images it was made from, or one of its folders",
            )
            return Assembled([study(models=models, datasets=[dataset], baseline=baseline)], [dataset])
        fit = fit_of(self.edition, models, dataset, context)
        sets = [
            perturbed(dataset, name, level=level, seed=self.seed, limit=self.sequences, edition=self.edition, fit=fit)
            for name in perturbations_named(",".join(self.perturbations))
            for level in (self.levels if len(perturbation_of(name).levels) > 1 else (1,))
        ]
        made = study(models=models, datasets=sets, baseline=baseline, name=dataset.ref.name)
        return Assembled([made], [dataset, *sets], editions={fit: self.scale_severity} if fit else {})
