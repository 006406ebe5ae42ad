"""What studies that corrupt images have in common: which corruptions, how strongly, on which picture of the image."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from shiftproof import catalog
from shiftproof.corruptions import DEFAULT_EDITION, IMAGENET_C
from shiftproof.corruptions.editions import Fit
from shiftproof.errors import BadInput, UnknownName
from shiftproof.preparing import PICTURES
from shiftproof.studies.clean_study import CleanStudy, model_ref
from shiftproof.studies.published_baselines import EVERY_SEVERITY
from shiftproof.types import Condition, FrostPictures, ImageSet, ModelRef, Output, Run


@dataclass(frozen=True)
class CorruptedStudy(CleanStudy):
    """Some models on one image set, unchanged and under every corruption at every severity.

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
    scale_strengths: bool = False
    clean_output: Output = "raw"  # jpeg85: the unchanged pictures after the same save as corrupted ones
    fit: Fit | None = None

    def __post_init__(self) -> None:
        if self.edition is None:
            object.__setattr__(self, "fit", self.fit or self._fitting())
            object.__setattr__(self, "edition", self.fit and self.fit.edition)
        super().__post_init__()
        object.__setattr__(self, "corruptions", _without_repeats("corruption", self.corruptions))
        object.__setattr__(self, "severities", _without_repeats("severity", self.severities))
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
            scale_strengths=self.scale_strengths,
            frost=self.frost if corruption == "frost" else None,
        )

    def runs(self) -> list[Run]:
        """Every model under every condition."""
        return [run for clean in CleanStudy.runs(self) for run in self._runs_of(clean.model)]

    def warnings(self, _: Callable[[Run], Any]) -> Iterator[str]:
        if self.fit is not None:
            name = self.runs()[0].image_set.name
            yield from (f"{name}: {told}" for told in self.fit.warnings(scaled=self.scale_strengths))

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
        image_set = CleanStudy.runs(self)[0].image_set
        return [Run(model, image_set, condition) for condition in self.conditions()]

    def _fitting(self) -> Fit:
        from shiftproof.image_sets.picture_sizes import edition_for

        images = self.image_set if isinstance(self.image_set, ImageSet) else None
        prepared = [
            (model_ref(model).name, model.preparation.describe()) for model in self.models if hasattr(model, "preparation")
        ]
        return edition_for(images, prepared, picture=self._at)

    @property
    def _at(self) -> str | None:
        """What is corrupted, where that is not the edition's cut."""
        return self.picture if self.picture in PICTURES else None

    def _edition_told(self) -> dict[str, str]:
        return {} if self.fit is None else {"why this edition": self.fit.why}

    def _original_frost(self) -> bool:
        if self.frost is None:
            return False
        from shiftproof.corruptions.frost_pictures import ORIGINAL_FROST

        return self.frost.digest == ORIGINAL_FROST

    def _frost_told(self) -> dict[str, str]:
        if "frost" not in self.corruptions:
            return {}
        original = "the original ones" if self._original_frost() else None
        return {"frost pictures": original or ("our own" if self.frost is None else self.frost.digest)}


def _without_repeats(what: str, values: Sequence[object]) -> tuple[object, ...]:
    if not values or len(set(values)) < len(values):
        raise BadInput(f"name every {what} once, and at least one; got {', '.join(map(str, values)) or 'none'}")
    return tuple(values)
