"""What studies that corrupt images have in common: which corruptions, how strongly, on which picture of the image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shiftproof import catalog
from shiftproof.corruptions import DEFAULT_EDITION, IMAGENET_C
from shiftproof.errors import BadInput, UnknownName
from shiftproof.preparing import PICTURES
from shiftproof.studies.clean_study import CleanStudy
from shiftproof.studies.published_baselines import EVERY_SEVERITY
from shiftproof.types import Condition, FrostPictures, ModelRef, Output, Run


@dataclass(frozen=True)
class CorruptedStudy(CleanStudy):
    """Some models on one image set, unchanged and under every corruption at every severity."""

    corruptions: Sequence[str] = IMAGENET_C
    severities: Sequence[int] = EVERY_SEVERITY
    edition: str = DEFAULT_EDITION
    output: Output | None = None  # None: what the study takes by itself
    picture: str | None = None  # None: the same
    seed: int = 0
    frost: FrostPictures | None = None
    scale_strengths: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "corruptions", _without_repeats("corruption", self.corruptions))
        object.__setattr__(self, "severities", _without_repeats("severity", self.severities))
        for name in self.corruptions:
            catalog.CORRUPTIONS[name]
        catalog.EDITIONS[self.edition]
        if self.picture is not None and self.picture not in (*PICTURES, *catalog.EDITIONS):
            raise UnknownName("picture", self.picture, [*PICTURES, *catalog.EDITIONS])
        self.conditions()  # a severity that there is not is told now

    def conditions(self) -> list[Condition]:
        """The unchanged picture, then every cell."""
        cells = [self.condition(name, severity) for name in self.corruptions for severity in self.severities]
        return [Condition("clean", picture=self._picture), *cells]

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

    @property
    def _picture(self) -> str:
        return self.picture or self.edition

    @property
    def _output(self) -> Output:
        return self.output or "raw"

    def _runs_of(self, model: ModelRef) -> list[Run]:
        image_set = CleanStudy.runs(self)[0].image_set
        return [Run(model, image_set, condition) for condition in self.conditions()]

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
