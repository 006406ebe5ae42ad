"""Options of the study of objects and background."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, get_args

from shiftproof.errors import BadInput, UnknownName
from shiftproof.options import Bounds, option
from shiftproof.studies.options import SIDES, Assembled, Context, Parts, StudyOptions

if TYPE_CHECKING:
    from shiftproof.datasets.boxed.crops import ObjectView
    from shiftproof.datasets.subsets import View
    from shiftproof.models.input_sizes import Sizing
    from shiftproof.runs.store import Store
    from shiftproof.studies.objects.scales import ScaledCrops
    from shiftproof.studies.options import Classifiers
    from shiftproof.types import Classifier, Dataset, ModelRef


class ObjectOptions(StudyOptions):
    """The objects of a boxed dataset in these views; of another dataset nothing, and the study says why."""

    TITLE: ClassVar[str] = "Object and background"

    views: tuple[str, ...] = option(
        ("crop", "alone", "enlarged"), "Views of objects besides their whole image, comma-separated."
    )
    padding: float = option(0.0, "Context around the box of an object, as a share of its sides.", bounds=Bounds(0))
    each_object: bool = option(False, "Every object apart, not one box over all of a class in an image.")
    beside_boxes: str | None = option(None, "Another boxed dataset, to compare the object proportions with.")
    crop_sizes: tuple[int, ...] | None = option(
        (224, 448),
        "Show crops at their scale factor times these sides, as ImageNet-A-Plus does; none leaves it out.",
        bounds=SIDES,
    )

    def fits(self, dataset: Dataset) -> bool:
        from shiftproof.datasets import ImageList

        return dataset.truths is not None and isinstance(dataset, ImageList)

    def parts(self, dataset: Dataset) -> Parts | None:
        """Photos with all their objects."""
        from shiftproof.metrics.intervals import LEAST_CLUSTERS

        photos = len(dataset.samples)
        return Parts(min(photos, 2 * LEAST_CLUSTERS), photos, "object_accuracy") if self.fits(dataset) else None

    def assemble(self, study: Callable[..., Any], models: Classifiers, dataset: Dataset, context: Context) -> Assembled:
        from shiftproof.datasets import ImageList, open_dataset
        from shiftproof.datasets.boxed.crops import crops
        from shiftproof.studies.base import model_ref
        from shiftproof.types import ModelRef

        if dataset.truths is None:
            return Assembled([study(models=models, dataset=dataset)], [dataset])
        if not isinstance(dataset, ImageList):
            raise BadInput("objects are cut out of a whole dataset; leave out --only-classes and --coarse-classes")
        together = not self.each_object
        views = {view: crops(dataset, view=view, padding=self.padding, together=together) for view in self._chosen_views()}
        other = open_dataset(self.beside_boxes) if self.beside_boxes else None
        beside = crops(other, together=together, name=other.name) if other else None
        bins = _by_factor(views.get("crop") or crops(dataset, padding=self.padding, together=together))
        crop_sizes = self.crop_sizes or ()
        scaled = {model_ref(model).name: list(_scaled(model, bins, crop_sizes, context.store)) for model in models}
        made = study(
            models=models,
            dataset=dataset,
            views=views,
            beside=beside,
            scaled=scaled,
            factors=tuple(bins),
            crop_sizes=crop_sizes,
        )
        run = {one.model.ref: one.model for some in scaled.values() for one in some if not isinstance(one.model, ModelRef)}
        datasets: list[Dataset] = [dataset, *views.values(), *([beside] if beside else []), *bins.values()]
        return Assembled([made], datasets, list(run.values()))

    def _chosen_views(self) -> tuple[ObjectView, ...]:
        from shiftproof.datasets.boxed.crops import ObjectView

        known = get_args(ObjectView)
        unknown = [view for view in self.views if view not in known]
        if unknown or not self.views:
            raise UnknownName("view of an object", unknown[0] if unknown else "", known)
        return tuple(view for view in known if view in self.views)


def _by_factor(cut: Dataset) -> dict[float, View]:
    """The crops of each scale factor as a dataset of their own."""
    from shiftproof.datasets.subsets import View
    from shiftproof.studies.objects.scales import factor_name, samples_by_factor

    return {
        factor: View(cut, cut.classes, some, f"{cut.ref.name}, scale factor {factor_name(factor)}")
        for factor, some in samples_by_factor(cut).items()
    }


def _scaled(
    model: Classifier | ModelRef, bins: Mapping[float, View], crop_sizes: Sequence[int], store: Store
) -> Iterator[ScaledCrops]:
    """The crops of each scale factor, and the model at the sizes that they are shown at, as far as it can be had at them."""
    from shiftproof.studies.objects.scales import ScaledCrops, side_of

    sides = sorted({side_of(factor, times) for factor in bins for times in crop_sizes})
    made = {side: _at_side(model, side, store) for side in sides}
    for times in crop_sizes:
        for factor, crops_of_factor in bins.items():
            found = made[side_of(factor, times)]
            if found is not None:
                yield ScaledCrops(factor, times, found[0], crops_of_factor, found[1])


def _at_side(model: Classifier | ModelRef, side: int, store: Store) -> tuple[Classifier | ModelRef, Sizing] | None:
    """The model on whole crops of this side, and what has the size; None where it cannot be had."""
    from shiftproof.models.input_sizes import Sizing, at_input_size, sized_ref, sizing_of, takes_size
    from shiftproof.types import ModelRef

    if isinstance(model, ModelRef):
        known = store.model(model)
        squashes = known is not None and known.preprocessing.get("resize") == "squash"
        if squashes and known is not None and known.preprocessing.get("size") == f"{side}x{side}":
            return model, "input"
        stored = [(sized_ref(model, side, way, whole=not squashes), way) for way in get_args(Sizing)]
        return next((one for one in stored if store.model(one[0]) is not None), None)
    try:
        sized = at_input_size(model, side, whole=True)
    except BadInput:  # the study says which crops it was not shown
        return None
    return (sized, sizing_of(model)) if takes_size(sized) else None
