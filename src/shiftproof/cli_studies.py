"""Studies as the command line asks for them: each with those options that are its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import click
from click.core import ParameterSource

from shiftproof import catalog
from shiftproof.cli_models import Options, stored_model
from shiftproof.cli_novelty import (
    OF_NOVELTY,
    detectors_typed,
    keep_of,
    make_out_of_distribution,
    named_sets,
    parameters_typed,
)
from shiftproof.cli_objects import make_input_sizes, make_objects
from shiftproof.cli_steps import Bench, images_at, pictures_as_typed
from shiftproof.corruptions.choosing import corruptions_named, perturbations_named, whole_numbers
from shiftproof.detectors import needs_training
from shiftproof.errors import BadInput, listed
from shiftproof.image_sets import open_images
from shiftproof.store import Store
from shiftproof.types import Classifier, ImageSet, ModelRef, ObjectDetector

Models: TypeAlias = Sequence[Classifier | ObjectDetector | ModelRef]
Maker: TypeAlias = Callable[[Any, Any, ImageSet, Options], Bench]
"""The kind of study, the models of the sort it asks, the images and the options to the work there is to do."""


OF_MAKING_PICTURES = ("corruptions", "severities", "output", "scale_strengths", "frost_folder", "budget", "precision")
OF_MAKING_SEQUENCES = ("perturbations", "levels", "sequences")
"""Options that say nothing about what was made before."""

ASK_THE_ORIGINALS = "name the images it was made from, or one of its folders"

OF_SCORING_CLASSES = ("merge", "scored")
OF_SOME_CELLS = ("budget", "precision", "baseline")
"""Options that boxes have no use for."""

OF_FRAMES = ("anchor", "offset")
"""Facts of frames around anchor frames."""

BESIDE = {"imagenet-vid": "imagenet_vid_robust_models", "ytbb": "ytbb_robust_models"}
"""Published models that robustness over time is measured beside."""


NOVELTY, HARD_PHOTOS, FRAMES, BOXES = "out-of-distribution", "natural-adversarial", "temporal", "detection"


def studies_asked(options: Options, images: ImageSet, *, boxes: bool = False) -> dict[str, Any]:
    """The kinds of study that were named, or those that are asked unasked and those that other options ask for.

    Of frames of video only the study of frames is asked: others would take frames that hardly differ for so many images.
    Of an object detector, whose answers are `boxes`, only the study of detection.
    """
    usual = BOXES if boxes else FRAMES if _has_facts(images, *OF_FRAMES) else None
    kinds = studies_named(options["studies"] or usual)
    for name, kind in kinds.items():
        _check_answers(name, kind, boxes)
    if boxes:
        _refuse_typed(OF_SCORING_CLASSES, "boxes are compared class by class", "join or choose classes in the file of boxes")
    elsewhere = {"out_images", *(["training"] if options["detectors"] else [])} if HARD_PHOTOS in kinds else set()
    typed = [option for name, option in OF_NOVELTY.items() if options[name] and name not in elsewhere]
    if typed and NOVELTY not in kinds:
        if options["studies"] is not None:
            raise BadInput(f"{' and '.join(typed)}: only the study {NOVELTY} looks at these; name it in --studies too")
        kinds[NOVELTY] = catalog.STUDIES.load(NOVELTY)
    return kinds


def studies_named(text: str | None) -> dict[str, Any]:
    """The kinds of study that were named, or those that are asked unasked."""
    if text is not None:
        names = [word.strip() for word in text.split(",") if word.strip()]
        if not names:
            raise BadInput(f"expected names of studies with commas between them, see shiftproof list studies; got {text!r}")
        return {name: catalog.STUDIES.load(name) for name in names}
    kinds = {name: catalog.STUDIES.load(name) for name in catalog.STUDIES}
    return {name: kind for name, kind in kinds.items() if getattr(kind, "by_default", True)}


def _check_answers(name: str, kind: Any, boxes: bool) -> None:
    """BadInput where a study of classes is asked of an object detector, or the other way round."""
    of_boxes = getattr(kind, "keep", None) == "boxes"
    if of_boxes and not boxes:
        raise BadInput(f"the study {name} asks for boxes; name an object detector, and the layout of its outputs as --boxes")
    if boxes and not of_boxes:
        raise BadInput(f"the study {name} asks for classes and the model answers with boxes; name it as boxes:MODEL")


def make_plainly(kind: Any, models: Models, images: ImageSet, options: Options) -> Bench:  # noqa: ARG001 a Maker
    """A study that needs to know no more than the models and the images."""
    return Bench([kind(models=models, image_set=images)], [images])


def make_calibration(kind: Any, models: Models, images: ImageSet, options: Options) -> Bench:
    """Calibration from first answers, or from all logits."""
    chosen = {"thorough": options["thorough_calibration"], "published_bins": options["published_bins"]}
    return Bench([kind(models=models, image_set=images, **chosen)], [images])


def make_temporal(kind: Any, models: Models, images: ImageSet, options: Options) -> Bench:
    """Frames around anchors, as far as was asked."""
    chosen = {"largest_k": options["largest_k"], "include_anchor": not options["without_anchor"]}
    chosen |= {"published": BESIDE[options["beside"]], "published_intervals": options["published_intervals"]}
    return Bench([kind(models=models, image_set=images, **chosen)], [images])


def make_detection(kind: Any, models: Models, images: ImageSet, options: Options) -> Bench:
    """Boxes at the overlaps that were asked for; of frames around anchors as far as was asked."""
    chosen = {"largest_k": options["largest_k"], "include_anchor": not options["without_anchor"]}
    return Bench([kind(models=models, image_set=images, iou=overlaps_named(options["iou"]), **chosen)], [images])


def make_detection_corruption(kind: Any, models: Models, images: ImageSet, options: Options) -> Bench:
    """Boxes at the first overlap, on images corrupted as they are stored."""
    _refuse_typed(OF_SOME_CELLS, "detectors are asked about every corruption and severity", "name fewer of them")
    study = kind(
        models=models,
        image_set=images,
        corruptions=corruptions_named(options["corruptions"]),
        severities=whole_numbers(options["severities"], least=1, most=5, what="severities"),
        **pictures_as_typed(options),
        iou=overlaps_named(options["iou"])[0],
    )
    return Bench([study], [images])


def overlaps_named(text: str) -> tuple[float | str, ...]:
    """Overlaps as they are typed.

    >>> overlaps_named("0.5,coco")
    (0.5, 'coco')
    """
    words = [word.strip() for word in text.split(",") if word.strip()]
    try:
        overlaps = tuple(word if word in ("coco", "ilsvrc") else float(word) for word in words)
    except ValueError as problem:
        raise BadInput(f"--iou should be numbers, coco or ilsvrc, comma-separated; got {text!r}") from problem
    if not overlaps:
        raise BadInput("--iou should name at least one overlap, such as 0.5")
    return overlaps


def make_corruption(kind: Any, models: Models, images: ImageSet, options: Options) -> Bench:
    """Corruptions made here; of a set that holds corrupted images already, those it holds."""
    if _has_facts(images, "corruption", "severity"):
        return _make_published_corruption(models, images, options)
    limits = {}
    if options["budget"] is not None or options["precision"] is not None:
        from shiftproof.studies.budgeted_corruption import BudgetedCorruptionStudy

        points = options["precision"]
        kind, limits = BudgetedCorruptionStudy, {"budget": options["budget"], "precision": points and points / 100}
    study = kind(
        models=models,
        image_set=images,
        corruptions=corruptions_named(options["corruptions"]),
        severities=whole_numbers(options["severities"], least=1, most=5, what="severities"),
        **pictures_as_typed(options),
        baseline=_baseline(options),
        **limits,
    )
    return Bench([study], [images])


def _make_published_corruption(models: Models, images: ImageSet, options: Options) -> Bench:
    from shiftproof.studies.published_corruption import PublishedCorruptionStudy

    _refuse_typed(OF_MAKING_PICTURES, f"{images.ref.name} holds corrupted images already", ASK_THE_ORIGINALS)
    clean = images_at(options["clean_images"], options) if options["clean_images"] else None
    study = PublishedCorruptionStudy(models=models, image_set=images, clean_set=clean, baseline=_baseline(options))
    return Bench([study], [images, *([clean] if clean else [])])


def make_perturbation(kind: Any, models: Models, images: ImageSet, options: Options) -> Bench:
    """Sequences made here of images spread evenly over the set; a set of sequences as it is."""
    if _has_facts(images, "sequence", "frame"):
        _refuse_typed(OF_MAKING_SEQUENCES, f"{images.ref.name} holds sequences already", ASK_THE_ORIGINALS)
        return Bench([kind(models=models, image_sets=[images], baseline=_baseline(options))], [images])
    from shiftproof.image_sets.perturbed import perturbed

    levels = whole_numbers(options["levels"], least=1, most=3, what="levels")
    names = perturbations_named(options["perturbations"])
    sets = [
        perturbed(images, name, level=level, edition=options["edition"], seed=options["seed"], limit=options["sequences"])
        for name in names
        for level in (levels if name.endswith("noise") else (1,))
    ]
    name = f"{images.ref.name}, perturbed"
    return Bench([kind(models=models, image_sets=sets, baseline=_baseline(options), name=name)], [images, *sets])


def make_natural_adversarial(
    kind: Any, models: Sequence[Classifier | ModelRef], images: ImageSet, options: Options
) -> Bench:
    """Hard photos, beside them ordinary ones of the same classes, and novel ones of none, which detectors look for."""
    ordinary = open_images(options["clean_images"]) if options["clean_images"] else None
    novel = list(named_sets("--out-images", options["out_images"]).values())
    if len(novel) > 1:
        raise BadInput(f"{HARD_PHOTOS} takes one set of novel photos; got {listed(one.name for one in novel)}")
    detectors = detectors_typed(options["detectors"]) or kind.detectors
    training = open_images(options["training"]) if options["training"] and any(map(needs_training, detectors)) else None
    study = kind(
        models=models,
        image_set=images,
        ordinary=ordinary,
        novel=novel[0] if novel else None,
        published_bins=options["published_bins"],
        detectors=detectors,
        keep=keep_of(models, Store(options["store"])) if set(detectors) - set(kind.detectors) else kind.keep,
        training=training,
        preset=options["preset"],
        parameters=parameters_typed(options["chosen"]),
    )
    return Bench([study], [images, *(one for one in (ordinary, training) if one), *novel])


def make_heat_maps(kind: Any, models: Models, images: ImageSet, options: Options) -> Bench:
    """Some mistakes and right answers looked into, as was asked."""
    chosen = {"looked_at": options["looked_at"], "method": options["look_by"], "hottest": options["hottest"]}
    return Bench([kind(models=models, image_set=images, **chosen)], [images])


MAKERS: Mapping[str, Maker] = {
    "calibration": make_calibration,
    "corruption": make_corruption,
    "perturbation": make_perturbation,
    FRAMES: make_temporal,
    BOXES: make_detection,
    "detection-corruption": make_detection_corruption,
    "objects": make_objects,
    "input-sizes": make_input_sizes,
    "heat-maps": make_heat_maps,
    HARD_PHOTOS: make_natural_adversarial,
    NOVELTY: make_out_of_distribution,
}
"""Studies with options of their own."""


def maker_of(study: str) -> Maker:
    """How a study is made of what was typed."""
    return MAKERS.get(study, make_plainly)


def _refuse_typed(names: Sequence[str], reason: str, advice: str) -> None:
    """BadInput where one of these options was typed, which would otherwise be passed over in silence."""
    context = click.get_current_context(silent=True)
    typed = [name for name in names if context and context.get_parameter_source(name) is ParameterSource.COMMANDLINE]
    if typed:
        told = " and ".join(f"--{name.replace('_', '-')}" for name in typed)
        raise BadInput(f"{reason}, so {told} cannot be asked for; {advice}")


def _has_facts(images: ImageSet, *names: str) -> bool:
    return bool(images.samples) and all(name in images.samples[0].facts for name in names)


def _baseline(options: Options) -> ModelRef | str | None:
    name = options["baseline"]
    return name if name in (None, "alexnet") else stored_model(name, Store(options["store"]))
