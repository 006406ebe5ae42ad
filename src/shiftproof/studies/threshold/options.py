"""Options of the choice of a detection threshold."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from shiftproof.options import OODInputs, option
from shiftproof.studies.options import Assembled, Context, StudyOptions, detector_parameters, keep_of

if TYPE_CHECKING:
    from shiftproof.studies.options import Classifiers
    from shiftproof.types import Dataset


class ThresholdOptions(OODInputs, StudyOptions):
    """An OOD detector, and what its threshold is chosen for."""

    TITLE: ClassVar[str] = "Threshold"

    ood_detector: str | None = option(
        None, "OOD detector: required, see shiftproof list ood; msp+vim for an ensemble of two.", common=True
    )
    false_alarms: float | None = option(None, "Maximum false-positive rate, e.g. 0.05.", common=True)
    found: float | None = option(None, "Minimum true-positive rate, e.g. 0.75.", common=True)
    cheapest: bool = option(False, "Minimise the expected cost.", common=True)
    false_alarm_cost: float = option(1.0, "Cost of a false positive.", common=True)
    miss_cost: float = option(1.0, "Cost of a false negative.", common=True)
    ood_share: float | None = option(None, "Share of positives among future images.  [default: as among these]", common=True)
    goal: Literal["new-class", "failure"] = option(
        "new-class",
        "Positives: OOD images, or these and misclassified images.",
        choices=("new-class", "failure"),
        common=True,
    )

    def assemble(self, study: Callable[..., Any], models: Classifiers, dataset: Dataset, context: Context) -> Assembled:
        from shiftproof.errors import BadInput
        from shiftproof.studies.ood.options import ood_datasets
        from shiftproof.studies.threshold.study import ThresholdChoice

        if self.ood_detector is None:
            raise BadInput("name the OOD detector whose threshold to choose: --ood-detector, see shiftproof list ood")
        choice = ThresholdChoice(
            false_alarms=self.false_alarms,
            rejected=self.found,
            cheapest=self.cheapest,
            false_alarm_cost=self.false_alarm_cost,
            miss_cost=self.miss_cost,
            ood_share=self.ood_share,
        )
        sets = ood_datasets(self, models, dataset, context)
        made = study(
            models,
            dataset,
            self.ood_detector,
            choice,
            **sets._asdict(),
            preset=self.preset,
            parameters=detector_parameters(self.set),
            goal=self.goal,
            keep=keep_of(models, context.store),
        )
        return Assembled([made], [dataset, *sets.opened])
