"""Options of the study of natural adversarial photos."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from shiftproof.errors import BadInput, listed
from shiftproof.options import OODDatasetSettings, OODDetectorChoice, OODParameters
from shiftproof.studies.options import (
    Assembled,
    CleanImages,
    Context,
    PublishedBins,
    StudyOptions,
    detector_names,
    detector_parameters,
    keep_of,
    named_datasets,
)

if TYPE_CHECKING:
    from shiftproof.studies.options import Classifiers
    from shiftproof.types import Dataset


class NaturalAdversarialOptions(
    OODDatasetSettings, OODParameters, OODDetectorChoice, PublishedBins, CleanImages, StudyOptions
):
    """Hard photos, ordinary ones of the same classes, and OOD photos for the OOD detectors."""

    TITLE: ClassVar[str] = "Natural adversarial photos"

    def assemble(self, study: Callable[..., Any], models: Classifiers, dataset: Dataset, context: Context) -> Assembled:
        from shiftproof.datasets import open_dataset
        from shiftproof.ood import needs_training
        from shiftproof.studies.natural_adversarial.study import PUBLISHED_DETECTORS

        ordinary = open_dataset(self.clean_images) if self.clean_images else None
        novel = list(named_datasets("--ood", self.ood).values())
        if len(novel) > 1:
            raise BadInput(f"natural-adversarial takes one dataset of OOD photos; got {listed(one.name for one in novel)}")
        detectors = detector_names(self) or PUBLISHED_DETECTORS
        fitted = self.training and any(map(needs_training, detectors))
        training = open_dataset(self.training) if self.training and fitted else None
        keep = {"keep": keep_of(models, context.store)} if set(detectors) - set(PUBLISHED_DETECTORS) else {}
        made = study(
            models=models,
            dataset=dataset,
            ordinary=ordinary,
            novel=novel[0] if novel else None,
            published_bins=self.published_bins,
            detectors=detectors,
            **keep,
            training=training,
            preset=self.preset,
            parameters=detector_parameters(self.set),
        )
        return Assembled([made], [dataset, *(one for one in (ordinary, training) if one), *novel])

    def takes(self, name: str) -> bool:
        return name == "ood" or (name == "training" and bool(self.ood_detectors))
