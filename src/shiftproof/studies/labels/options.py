"""Options of the search for label errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from shiftproof.options import Bounds, option
from shiftproof.studies.options import Assembled, Context, StudyOptions

if TYPE_CHECKING:
    from shiftproof.studies.options import Classifiers
    from shiftproof.types import Classifier, Dataset, ModelRef


class LabelOptions(StudyOptions):
    """Whose probabilities labels are held against, and how many images are candidates."""

    TITLE: ClassVar[str] = "Label errors"

    judge: Literal["auto", "model", "head"] = option(
        "auto",
        "Probabilities of the model, or of linear heads that are cross-validated on its features. auto: heads where the "
        "model lacks classes of the images or declares that it was trained on them.",
    )
    folds: int = option(5, "Cross-validation folds of the heads.", bounds=Bounds(2))
    suspects: float = option(0.1, "Share of the images to show, the likeliest label errors first.", bounds=Bounds(0, 1))

    def assemble(self, study: Callable[..., Any], models: Classifiers, dataset: Dataset, context: Context) -> Assembled:
        heads = {self.needs_head(model, dataset, context) for model in models}
        made = [
            study(models=some, dataset=dataset, head=head, folds=self.folds, suspects=self.suspects)
            for head in sorted(heads)
            if (some := [model for model in models if self.needs_head(model, dataset, context) == head])
        ]
        return Assembled(made, [dataset])

    def needs_head(self, model: Classifier | ModelRef, dataset: Dataset, context: Context) -> bool:
        """Whether the model's own probabilities are none of these classes, or of images it has learned from."""
        from shiftproof.types import ModelRef

        if self.judge != "auto":
            return self.judge == "head"
        known = context.store.model(model) if isinstance(model, ModelRef) else model
        if known is None or dataset.classes is None:
            return False
        origin = {dataset.ref.name, dataset.published, dataset.origin.name if dataset.origin else None} - {None}
        if origin & {known.seen.training_data, *known.seen.trained_on}:
            return True
        return known.classes is not None and not _has_all(dataset, known.classes)


def _has_all(dataset: Dataset, classes: Any) -> bool:
    """Whether a model of these classes has every class that is the label of an image."""
    from shiftproof.datasets.classes import match_columns
    from shiftproof.errors import ClassMismatch

    assert dataset.classes is not None  # noqa: S101 as the caller has seen
    try:
        columns = match_columns(dataset.classes, classes, len(classes)).columns
    except ClassMismatch:
        return False
    return all(columns[label] >= 0 for sample in dataset.samples for label in sample.labels)
