"""Studies of objects and of input sizes as the command line asks for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, get_args

from shiftproof.cli_models import Options
from shiftproof.cli_steps import Bench
from shiftproof.corruptions.choosing import whole_numbers
from shiftproof.errors import BadInput, UnknownName
from shiftproof.image_sets import ImageList, open_images
from shiftproof.image_sets.crops import crops
from shiftproof.image_sets.cutting import Look
from shiftproof.models.input_sizes import Sizing, at_input_size, own_side, sized_ref, sizing_of
from shiftproof.store import Store
from shiftproof.studies.clean_study import model_ref
from shiftproof.studies.input_sizes import Sized
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
    study = kind(models=models, image_set=images, looks=looks, beside=beside)
    return Bench([study], [images, *looks.values(), *([beside] if beside else [])])


def _looks(text: str) -> tuple[Look, ...]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    unknown = [word for word in words if word not in get_args(Look)]
    if unknown or not words:
        raise UnknownName("look of an object", unknown[0] if unknown else text, get_args(Look))
    return tuple(look for look in get_args(Look) if look in words)


def make_input_sizes(kind: Any, models: Sequence[Classifier | ModelRef], images: ImageSet, options: Options) -> Bench:
    """Every model at its own size and at those that were asked for, as far as it can be had at them."""
    sides = whole_numbers(options["sizes"], least=SMALLEST, most=LARGEST, what="sizes")
    sizing: Sizing | None = "picture" if options["small_pictures"] else None
    store = Store(options["store"])
    sizes = {
        model_ref(model).name: [
            Sized(*one)
            for one in (_stored(model, sides, sizing, store) if isinstance(model, ModelRef) else _made(model, sides, sizing))
        ]
        for model in models
    }
    companions = [one.model for some in sizes.values() for one in some if not isinstance(one.model, ModelRef)]
    return Bench([kind(models=models, image_set=images, sizes=sizes, wanted=sides)], [images], companions)


def _made(
    model: Classifier, sides: Sequence[int], sizing: Sizing | None
) -> Iterator[tuple[int, Classifier | ModelRef, Sizing]]:
    """The model at hand; small pictures are enlarged to its own size, so that larger ones are left out."""
    own, chosen = own_side(model), sizing or sizing_of(model)
    for side in sorted({*sides, own}):
        if chosen == "input" or side <= own:
            yield side, at_input_size(model, side, sizing=chosen), "input" if side == own else chosen


def _stored(
    model: ModelRef, sides: Sequence[int], sizing: Sizing | None, store: Store
) -> Iterator[tuple[int, Classifier | ModelRef, Sizing]]:
    """Those of the sizes at which a stored model was asked before."""
    known = store.model(model)
    height, _, width = str(known.preparation.get("size", "") if known else "").partition("x")
    if height != width or not height.isdigit():
        raise BadInput(f"{model.name} was stored without a square input of its own, so it has no other sizes")
    yield int(height), model, "input"
    for side in sides:
        for way in [sizing] if sizing else get_args(Sizing):
            if side != int(height) and store.model(sized_ref(model, side, way)) is not None:
                yield side, sized_ref(model, side, way), way
                break
