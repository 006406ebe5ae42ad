"""The commands that let models choose what people look at: images that they get wrong, and images that fool them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from shiftproof.cli_models import Options
from shiftproof.cli_options import about_asking, about_filters, about_images, about_store, about_writing, as_json_option
from shiftproof.cli_steps import asked_of_people, images_at, interruptible, known_images, say_preparation, wnids_named
from shiftproof.cli_writing import some_of
from shiftproof.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shiftproof.curation.class_choice import ClassChoice
    from shiftproof.curation.filter_models import FilterModels
    from shiftproof.curation.filtered_project import Asking, FilteredProject
    from shiftproof.curation.screens import Screen
    from shiftproof.prediction import Progress
    from shiftproof.types import Classifier


@click.command()
@click.argument("images")
@click.argument("project")
@about_filters
@click.option(
    "--most-share",
    type=click.FloatRange(0, 1),
    default=0.15,
    show_default=True,
    help="Leave out images of which a model gives the true class more than this.",
)
@click.option(
    "--per-confusion",
    type=click.IntRange(1),
    default=15,
    show_default=True,
    help="Images of a class that are taken for the same other class, at most.",
)
@about_asking
@about_images
@about_store
@about_writing
@as_json_option
def adversarial(images: str, project: str, **options: Any) -> None:
    """Make a review project of the IMAGES that no filter model recognises, in the folder PROJECT, as ImageNet-A was made.

    An image goes if any model gets any of ten crops of it right, or gives its class more than 15 %. What is left is ordered,
    the images first whose class the models find least likely. Every image has its reason in images.csv.

    Example: shiftproof curate adversarial photos/ hard/ --filter lite:0 --filter onnx:mobilenet.onnx?prepare=imagenet
    """
    from shiftproof.console import Bar
    from shiftproof.curation.adversarial import filter_adversarial
    from shiftproof.curation.filtered_project import save_filtered
    from shiftproof.curation.screens import CLARITY

    asking, models = _asking(options, CLARITY), _models(options)
    opened = some_of(images_at(images, options), options["limit"])
    with interruptible(Bar(quiet=options["quiet"], unit="images", before="done before")) as progress:
        filters = _filters(models, options, progress)
        filtered = filter_adversarial(
            opened,
            filters,
            most_share=options["most_share"],
            per_confusion=options["per_confusion"],
            per_class=options["per_class"],
        )
        made = save_filtered(filtered, opened, project, asking=_with_shown(asking, filters), progress=progress)
    _show(made, options)


@click.command()
@click.argument("images")
@click.argument("project")
@about_filters
@click.option(
    "--inside",
    default="ilsvrc2012",
    show_default=True,
    help="Classes the models know: ilsvrc2012, or a file of wnids or names; none to leave no class out.",
)
@click.option("--without", multiple=True, help="Leave out all that is a kind of this, such as organism; repeatable.")
@click.option(
    "--least-share",
    type=click.FloatRange(0, 1),
    default=0.5,
    show_default=True,
    help="Leave out images of which a model gives no class this much.",
)
@click.option("--inside-images", help="Images of the inside classes: each candidate is shown beside the one nearest it.")
@about_asking
@about_images
@about_store
@about_writing
@as_json_option
def novel(images: str, project: str, **options: Any) -> None:
    """Make a review project of IMAGES of new classes that fool every filter model, in the folder PROJECT, like ImageNet-O.

    IMAGES is what curate novel-classes wrote, or a folder with a folder for each wnid. Classes that are inside, a kind of an
    inside class or above one go; so do images of which a model is not sure. The surest mistakes come first.

    Example: shiftproof curate novel novel/manifest.csv fooled/ --filter lite:0 --per-class 10
    """
    from shiftproof.console import Bar
    from shiftproof.curation.filtered_project import save_filtered
    from shiftproof.curation.novel import filter_novel, nearest_inside
    from shiftproof.curation.screens import CLARITY, NEAREST_PAIR
    from shiftproof.curation.wnid_lists import noun_named, wnids_from
    from shiftproof.image_sets import open_images

    asking, models = _asking(options, NEAREST_PAIR if options["inside_images"] else CLARITY), _models(options)
    opened = some_of(images_at(images, options), options["limit"])
    known = open_images(options["inside_images"]) if options["inside_images"] else None
    with interruptible(Bar(quiet=options["quiet"], unit="images", before="done before")) as progress:
        filters = _filters(models, options, progress)
        filtered = filter_novel(
            opened,
            filters,
            None if options["inside"] == "none" else wnids_from(options["inside"]),
            subtrees=[noun_named(word) for word in options["without"]],
            least_share=options["least_share"],
            per_class=options["per_class"],
        )
        beside = nearest_inside(filtered, opened, known, filters) if known else None
        asking = _with_shown(asking, filters)
        made = save_filtered(filtered, opened, project, asking=asking, beside=beside, progress=progress)
    _show(made, options)


def _models(options: Options) -> list[Classifier]:
    """The filter models, each told about before it is asked."""
    from shiftproof.models.spelled import load_spelled

    models = [load_spelled(text, trust=options["trust"]) for text in options["filters"]]
    for model in models:
        say_preparation(model, [], options)
    return models


def _filters(models: Sequence[Classifier], options: Options, progress: Progress) -> FilterModels:
    from shiftproof.curation.filter_models import FilterModels
    from shiftproof.store import Store

    chosen = _chosen(models[0], options)
    return FilterModels(models, Store(options["store"]), chosen, workers=options["workers"], progress=progress)


def _chosen(model: Classifier, options: Options) -> ClassChoice | None:
    """The classes that answers are taken over; None for all."""
    from shiftproof.curation.class_choice import choose_some, load_left_out

    if not (options["only_classes"] or options["without_classes"]):
        return None
    if model.classes is None:
        raise BadInput(
            f"{model.ref.name} does not name its classes, so none can be chosen; --filter MODEL?classes=FILE does"
        )
    return choose_some(
        model.classes,
        only=wnids_named(options["only_classes"]) if options["only_classes"] else None,
        left_out=load_left_out(options["without_classes"]) if options["without_classes"] else None,
    )


def _asking(options: Options, screen: Screen) -> Asking:
    from shiftproof.curation.filtered_project import Asking

    known = known_images(options, screen)
    return Asking(options["title"], target=options["target"], known=known, **asked_of_people(options))


def _with_shown(asking: Asking, filters: FilterModels) -> Asking:
    """The same with what the models take the known images for; without it they could be told from the others."""
    return asking if asking.known is None else replace(asking, known_shown=filters.shown(asking.known))


def _show(made: FilteredProject, options: Options) -> None:
    from shiftproof.console import remark, say, say_json, say_steps

    choice, target = made.filtered.choice, made.project.target
    if options["as_json"]:
        say_json(
            {
                "project": str(made.project.folder),
                "steps": [{"name": step.name, "left": step.left} for step in choice.steps],
                "kept": [sample.id for sample in choice.left],
                "removed": [{"id": gone.item.id, "step": gone.step, "reason": gone.reason} for gone in choice.gone],
                "short_classes": made.short_classes,
            }
        )
        return
    say_steps(choice.steps, "images")
    if made.short_classes:
        remark(f"note: {len(made.short_classes):,} classes have fewer than the {target} candidates that people should keep")
    remark(f"people look at them with: shiftproof review {made.project.folder}")
    say(str(made.project.folder))
