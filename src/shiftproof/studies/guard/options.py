"""Options of guards, and of watching a stream with one."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from shiftproof.options import SHARE, Bounds, Options, option
from shiftproof.studies.threshold.options import ThresholdOptions

if TYPE_CHECKING:
    from shiftproof.studies.options import Assembled, Classifiers, Context
    from shiftproof.types import Dataset

FALSE_ALARMS = 0.05
SHIFTS = ("gaussian_noise:3", "motion_blur:3", "fog:3", "jpeg_compression:3")
NO_SHIFTS = "none"


class GuardOptions(ThresholdOptions):
    """An OOD detector, what its threshold is chosen for, and what the guard promises."""

    TITLE: ClassVar[str] = "Guard"

    ood_detector: str = option("msp", "OOD detector: see shiftproof list ood; msp+vim for an ensemble of two.", common=True)
    shifted: tuple[str, ...] = option(
        SHIFTS,
        "Covariate-shifted images of the same classes: NAME=DIR, or a corruption of DATASET as fog:3, on which coverage and "
        "false positives are measured too; repeatable; none to skip.",
        repeatable=True,
        common=True,
    )
    coverage: float = option(0.9, "Coverage that prediction sets promise.", bounds=SHARE, common=True)
    bank: int = option(2000, "Number of training images that KNN keeps in the guard.", bounds=Bounds(1))

    def assemble(self, study: Callable[..., Any], models: Classifiers, dataset: Dataset, context: Context) -> Assembled:
        """As for a threshold; an FPR of 5 % where nothing was chosen, and failures as positives where no OOD images are."""
        changes: dict[str, Any] = {}
        if self.false_alarms is None and self.found is None and not self.cheapest:
            changes["false_alarms"] = FALSE_ALARMS
        if not self.ood and "goal" not in self.given:
            changes["goal"] = "failure"
        if "knn" in self.ood_detector.split("+") and not any(text.startswith("knn.bank=") for text in self.set):
            changes["set"] = (*self.set, f"knn.bank={self.bank}")
        if self.shifted == (NO_SHIFTS,):
            changes["shifted"] = ()
        settled = dataclasses.replace(self, **changes)
        return super(GuardOptions, settled).assemble(study, models, dataset, context)


class WatchOptions(Options):
    """How a stream is watched."""

    TITLE: ClassVar[str] = "Watching"

    guarded_model: str | None = option(
        None, "The guard's model, named as MODEL elsewhere.  [default: guarded.onnx in the guard's folder]", common=True
    )
    false_alarm: float = option(
        0.01, "Probability that drift is ever reported where there is none.", bounds=SHARE, common=True
    )
    window: int = option(100, "Window size of the running shares, in images.", bounds=Bounds(1), common=True)
    threshold: str | None = option(None, "Another threshold of the guard: how it was chosen, as 'FPR at most 1 %'.")
