"""Every corruption at every severity beside the unchanged images: errors, and how they compare with a baseline's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shiftproof.studies import evidence
from shiftproof.studies.cell_study import Answers, CellStudy, Load, alexnet_told, checked_baseline, why_unnormalised
from shiftproof.studies.cells import Baseline, Part, common_cells, left_out, right_classes
from shiftproof.studies.clean_study import CleanStudy
from shiftproof.studies.corrupted_study import CorruptedStudy
from shiftproof.studies.corruption_galleries import Photos
from shiftproof.studies.published_baselines import alexnet_errors
from shiftproof.types import Classifier, Condition, Keep, ModelRef, Output, Run


@dataclass(frozen=True)
class CorruptionStudy(CorruptedStudy, CellStudy):
    """Errors under corruption, by cell, corruption and group; their means; with a baseline CE, mCE and relative mCE.

    AlexNet's published errors are the baseline where they belong: the ImageNet validation images in the pictures, the files
    and the frost of the published set. Anywhere else give a model that was run on the same images.
    """

    baseline: ModelRef | Classifier | str | None = None
    published: str | None = None  # which published set these images are; taken from the set where that is given
    shown: int = 24  # images in the gallery

    keep: ClassVar[Keep] = "top5"
    by_default: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.published is None:
            object.__setattr__(self, "published", getattr(self.image_set, "published", None))
        super().__post_init__()
        object.__setattr__(self, "baseline", checked_baseline(self.baseline))

    def runs(self) -> list[Run]:
        """Every model under every condition; a baseline that is not among the models comes last."""
        refs = [run.model for run in CleanStudy.runs(self)]
        if isinstance(self.baseline, ModelRef) and self.baseline not in refs:
            refs.append(self.baseline)
        return [run for ref in refs for run in self._runs_of(ref)]

    @property
    def most_shown(self) -> int:
        return self.shown

    @property
    def given_baseline(self) -> ModelRef | str | None:
        return checked_baseline(self.baseline)

    def answers(self, model: ModelRef, load: Load) -> Answers | str:
        parts: list[Part] = []
        clean, *corrupted = runs = self._runs_of(model)
        for run in runs:
            predictions = load(run)
            needing = "the error under corruption"
            reason = evidence.nothing_read(run, predictions) or evidence.nothing_labelled(run, predictions, needing)
            if reason:
                return reason.removeprefix(f"{run.image_set.name}: ")
            parts.append(Part.of(predictions))
        cells = common_cells([*parts[1:], parts[0]], self.corruptions, self.severities)
        if not len(cells):
            return f"no image was read by {model.name} in every cell"
        told = {**predictions.convention, **left_out(parts)}
        return Answers(
            cells,
            right_classes(predictions),
            {**corrupted[0].convention(), **told, **self._edition_told(), **self._frost_told()},
            {**clean.convention(), **told},
            Photos(clean.image_set, {}, clean.image_set, self._place),
        )

    def published_baseline(self, answers: Answers) -> Baseline | str:  # noqa: ARG002 - the study alone decides
        foreign = self._why_not_published()
        if foreign and self.baseline is None:
            return why_unnormalised(foreign)
        return alexnet_errors(self.corruptions, self.severities, told=alexnet_told(foreign))

    @property
    def _output(self) -> Output:
        # as the published files were saved
        return self.output or ("raw" if self.edition == "cifar-32" else "jpeg85")

    def _why_not_published(self) -> str | None:
        """What the published errors were measured on that this is not, or None where they belong."""
        if self.published != "imagenet":
            return "of other images: the ImageNet validation set"
        if self.edition != "imagenet-224" or self._picture != self.edition or self.scale_strengths:
            return "of the pictures of edition imagenet-224"
        if self._output != "jpeg85":
            return "of files saved as jpeg85"
        if "frost" in self.corruptions and not self._original_frost():
            return "of the original frost pictures (--frost-folder)"
        return None

    def _place(self, image: str, corruption: str, severity: int) -> tuple[str, Condition]:
        return image, self.condition(corruption, severity)
