"""What the options of a model mean for an object detector, beside what is usual for the layout of its outputs."""

from __future__ import annotations

from collections.abc import Mapping

from shiftproof.catalog import BOX_LAYOUTS
from shiftproof.class_lists import ClassList, coco_classes, numbered_coco_classes
from shiftproof.errors import BadInput, listed
from shiftproof.models.box_layouts import Shape, may_be, readable_shape, usual_for
from shiftproof.models.candidates import BoxRules
from shiftproof.models.options import ModelOptions
from shiftproof.models.preparation import ImagePreparation
from shiftproof.models.presets import parse_preparation
from shiftproof.types import Classes


def layout_among(options: ModelOptions, shapes: Mapping[str, Shape], fitting: str | None) -> tuple[str, tuple[str, ...]]:
    """The layout of outputs of these shapes, and a note where nobody named it, or another fits; BadInput where none does."""
    told = listed([readable_shape(shape) for shape in shapes.values()])
    if options.boxes is not None:
        if not may_be(options.boxes, shapes, fitting):
            advice = f"they look like {fitting}" if fitting else "if it is a classifier, leave --boxes out"
            raise BadInput(f"outputs {told} are not laid out as {options.boxes}; {advice}")
        doubt = f"outputs {told} are read as {options.boxes}, as asked, but look like {fitting}"
        return options.boxes, (doubt,) if fitting not in (None, options.boxes) else ()
    if fitting is None:
        raise BadInput(f"how are boxes laid out in {told}? say --boxes with one of {', '.join(BOX_LAYOUTS)}")
    return fitting, (f"outputs {told} read as {fitting}; --boxes names another layout",)


def usual_preparation(options: ModelOptions, layout: str) -> tuple[ImagePreparation, tuple[str, ...]]:
    """How images are usually prepared for a layout, and a note where the user says nothing of it."""
    usual = usual_for(layout).prepare
    note = f"images are prepared as {usual}, as is usual for {layout}; --prepare changes it"
    return parse_preparation(usual), (note,) if options.prepare is None else ()


def classes_of_boxes(
    options: ModelOptions, count: int | None, own: ClassList | None = None
) -> tuple[Classes | None, tuple[str, ...]]:
    """What the numbers of classes mean, and a note where it was assumed."""
    coco = {len(classes): classes for classes in (coco_classes(), numbered_coco_classes())}
    if options.classes is None and own is None and count in coco:
        order = "in a row" if count == len(coco_classes()) else "by their numbers"
        return coco[count], (f"{count} classes taken as those of COCO {order}; --classes names others",)
    return options.classes_of(count, own)


def rules_of_boxes(options: ModelOptions, layout: str) -> BoxRules:
    """When a box counts, by the user's word or as is usual for the layout."""
    usual = usual_for(layout)
    return BoxRules(
        least_score=BoxRules.least_score if options.least_score is None else options.least_score,
        overlap=usual.overlap if options.overlap is None else options.overlap,
        most=BoxRules.most if options.most_boxes is None else options.most_boxes,
        several=usual.several if options.several is None else options.several,
    )
