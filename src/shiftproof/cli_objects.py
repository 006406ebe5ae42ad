"""Studies of objects and of input sizes as the command line asks for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from shiftproof.cli_models import Options
from shiftproof.cli_steps import Bench
from shiftproof.corruptions.choosing import whole_numbers
from shiftproof.errors import BadInput, UnknownName
from shiftproof.image_sets import ImageList, open_images
from shiftproof.image_sets.crops import crops
from shiftproof.image_sets.cutting import Look
from shiftproof.image_sets.views import View
from shiftproof.models.input_sizes import (
    InputSize,
    Sizing,
    at_input_size,
    height_and_width,
    own_size,
    short_size,
    sized_ref,
    sizing_of,
    takes_size,
)
from shiftproof.store import Store
from shiftproof.studies.clean_study import model_ref
from shiftproof.studies.input_sizes import Sized
from shiftproof.studies.object_scales import ScaledCrops, factor_name, samples_by_factor, side_of
from shiftproof.types import Classifier, ImageSet, ModelRef

SMALLEST, LARGEST = 8, 4096
"""Sides of inputs that may be asked for."""


def make_objects(kind: Any, models: Sequence[Classifier | ModelRef], images: ImageSet, options: Options) -> Bench:
    """The objects of a boxed set in the looks that were asked for; of another set nothing, and the study says why."""
    if getattr(images, "truths", None) is None:
        return Bench([kind(models=models, image_set=images)], [images])
    if not isinstance(images, ImageList):
        raise BadInput("objects are cut out of a whole set; leave out --only-classes and --above")
    together = not options["each_object"]
    looks = {
        look: crops(images, look=look, padding=options["padding"], together=together) for look in _looks(options["looks"])
    }
    other = open_images(options["beside_boxes"]) if options["beside_boxes"] else None
    beside = crops(other, together=together, name=other.name) if other else None
    cut = looks.get("crop") or crops(images, padding=options["padding"], together=together)
    crop_sizes, bins = _crop_sizes(options["crop_sizes"]), _by_factor(cut)
    store = Store(options["store"])
    scaled = {model_ref(model).name: list(_scaled(model, bins, crop_sizes, store)) for model in models}
    study = kind(
        models=models,
        image_set=images,
        looks=looks,
        beside=beside,
        scaled=scaled,
        factors=tuple(bins),
        crop_sizes=crop_sizes,
    )
    shown = {one.model.ref: one.model for some in scaled.values() for one in some if not isinstance(one.model, ModelRef)}
    sets: list[ImageSet] = [images, *looks.values(), *([beside] if beside else []), *bins.values()]
    return Bench([study], sets, list(shown.values()))


def _crop_sizes(text: str) -> tuple[int, ...]:
    return () if text == "none" else whole_numbers(text, least=SMALLEST, most=LARGEST, what="crop sizes")


def _by_factor(cut: ImageSet) -> dict[float, View]:
    """The crops of each scale factor as a set of their own."""
    return {
        factor: View(cut, cut.classes, some, f"{cut.ref.name}, scale factor {factor_name(factor)}")
        for factor, some in samples_by_factor(cut).items()
    }


def _scaled(
    model: Classifier | ModelRef, bins: Mapping[float, View], crop_sizes: Sequence[int], store: Store
) -> Iterator[ScaledCrops]:
    """The crops of each scale factor, and the model at the sizes that they are shown at, as far as it can be had at them."""
    sides = sorted({side_of(factor, times) for factor in bins for times in crop_sizes})
    made = {side: _whole(model, side, store) for side in sides}
    for times in crop_sizes:
        for factor, crops_of_factor in bins.items():
            found = made[side_of(factor, times)]
            if found is not None:
                yield ScaledCrops(factor, times, found[0], crops_of_factor, found[1])


def _whole(model: Classifier | ModelRef, side: int, store: Store) -> tuple[Classifier | ModelRef, Sizing] | None:
    """The model on whole crops of this side, and what has the size; None where it cannot be had."""
    if isinstance(model, ModelRef):
        known = store.model(model)
        squashes = known is not None and known.preparation.get("resize") == "squash"
        if squashes and known is not None and known.preparation.get("size") == f"{side}x{side}":
            return model, "input"
        stored = [(sized_ref(model, side, way, whole=not squashes), way) for way in get_args(Sizing)]
        return next((one for one in stored if store.model(one[0]) is not None), None)
    try:
        sized = at_input_size(model, side, whole=True)
    except BadInput:  # the study says which crops it was not shown
        return None
    return (sized, sizing_of(model)) if takes_size(sized) else None


def _looks(text: str) -> tuple[Look, ...]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    unknown = [word for word in words if word not in get_args(Look)]
    if unknown or not words:
        raise UnknownName("look of an object", unknown[0] if unknown else text, get_args(Look))
    return tuple(look for look in get_args(Look) if look in words)


def make_input_sizes(kind: Any, models: Sequence[Classifier | ModelRef], images: ImageSet, options: Options) -> Bench:
    """Every model at its own size and at those that were asked for, as far as it can be had at them."""
    sizes_asked = _sizes(options["sizes"])
    sizing: Sizing | None = "picture" if options["small_pictures"] else None
    store = Store(options["store"])
    sizes = {
        model_ref(model).name: [
            Sized(*one)
            for one in (
                _stored(model, sizes_asked, sizing, store)
                if isinstance(model, ModelRef)
                else _made(model, sizes_asked, sizing)
            )
        ]
        for model in models
    }
    companions = [one.model for some in sizes.values() for one in some if not isinstance(one.model, ModelRef)]
    return Bench([kind(models=models, image_set=images, sizes=sizes, wanted=sizes_asked)], [images], companions)


def _sizes(text: str) -> tuple[InputSize, ...]:
    """Sizes as they are typed: sides of squares, or height and width.

    >>> _sizes("96,600x800")
    (96, (600, 800))
    """
    words = [word.strip().split("x") for word in text.split(",") if word.strip()]
    fit = all(side.isdigit() and SMALLEST <= int(side) <= LARGEST for sides in words for side in sides)
    if not words or not fit or max(map(len, words)) > 2:
        raise BadInput(
            f"sizes should be some of {SMALLEST} to {LARGEST} with commas between them, height first where they are not "
            f"square, as 96,600x800; got {text!r}"
        )
    return tuple(dict.fromkeys(short_size((int(sides[0]), int(sides[-1]))) for sides in words))


def _made(
    model: Classifier, sizes: Sequence[InputSize], sizing: Sizing | None
) -> Iterator[tuple[InputSize, Classifier | ModelRef, Sizing]]:
    """The model at hand; small pictures are enlarged to its own size, so that larger ones are left out."""
    own, chosen = own_size(model), sizing or sizing_of(model)
    for size in dict.fromkeys([*sizes, short_size(own)]):
        height, width = height_and_width(size)
        if chosen == "input" or (height <= own[0] and width <= own[1]):
            yield size, at_input_size(model, size, sizing=chosen), "input" if (height, width) == own else chosen


def _stored(
    model: ModelRef, sizes: Sequence[InputSize], sizing: Sizing | None, store: Store
) -> Iterator[tuple[InputSize, Classifier | ModelRef, Sizing]]:
    """Those of the sizes at which a stored model was asked before."""
    known = store.model(model)
    height, _, width = str(known.preparation.get("size", "") if known else "").partition("x")
    if not height.isdigit() or not width.isdigit():
        raise BadInput(f"{model.name} was stored without an input size of its own, so it has no other sizes")
    own = short_size((int(height), int(width)))
    yield own, model, "input"
    for size in sizes:
        for way in [sizing] if sizing else get_args(Sizing):
            if size != own and store.model(sized_ref(model, size, way)) is not None:
                yield size, sized_ref(model, size, way), way
                break
