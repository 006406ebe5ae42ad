"""The command that makes a test set of crops: objects that models miss, each with as much around it as is usual."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from shiftproof.cli_models import Options, model_of
from shiftproof.cli_options import (
    about_matching,
    about_model,
    about_store,
    about_writing,
    as_json_option,
    instructions_option,
    known_option,
    reviewers_option,
    verify_option,
)
from shiftproof.cli_review import database_option, reviewed
from shiftproof.cli_steps import asked_of_people, interruptible, known_images, say_preparation, scoring_of
from shiftproof.cli_writing import some_of
from shiftproof.errors import BadInput

if TYPE_CHECKING:
    from shiftproof.curation.crop_set import CropSet
    from shiftproof.curation.reference_models import ReferenceModels
    from shiftproof.curation.usual_shares import UsualShares
    from shiftproof.image_sets.image_list import ImageList


@click.command()
@click.argument("images")
@click.argument("destination")
@click.option(
    "--reference", help="Boxed images whose objects are as large as is usual, such as the ILSVRC localization set."
)
@click.option("--shares", help="The same as a CSV file: a wnid or class, and the mean share of an image it fills.")
@click.option(
    "--times-smaller",
    type=click.FloatRange(0, min_open=True),
    default=8,
    show_default=True,
    help="Leave out objects that fill so many times less of their image than is usual for their class.",
)
@click.option("--recognised-by", multiple=True, help="Leave out what this model recognises, such as lite:0; repeatable.")
@click.option(
    "--recognised-in",
    type=click.Choice(["tight", "final"]),
    default="tight",
    show_default=True,
    help="Which crop the models see: the box alone, or the crop that is written.",
)
@click.option(
    "--output",
    type=click.Choice(["raw", "jpeg85"]),
    default="raw",
    show_default=True,
    help="PNG files without loss, or JPEG files of quality 85.",
)
@click.option("--drawn", metavar="PROJECT", help="Take the boxes that people drew in this review project.")
@database_option
@click.option("--project", help="Folder for a review project in which people judge the crops.")
@reviewers_option
@verify_option
@instructions_option
@known_option
@about_matching
@about_model
@about_store
@about_writing
@as_json_option
def crops(images: str, destination: str, **options: Any) -> None:
    """Write objects of the boxed set IMAGES as crops into the folder DESTINATION, as ImageNet-A-Plus was made.

    One box over all instances of a class in an image; objects too small for their class go, and those that a model
    recognises; the others are cut out so that they fill as much of the crop as is usual for their class. Every object that
    goes has its reason in objects.csv.

    Example: shiftproof curate crops boxes.json hard-crops/ --reference usual.json --recognised-by lite:0
    """
    from shiftproof.console import Bar
    from shiftproof.curation.crop_set import curate_crops
    from shiftproof.curation.object_projects import crop_project
    from shiftproof.curation.screens import CLARITY
    from shiftproof.image_sets import open_images

    usual, reference = _usual_shares(options), _reference_models(options)
    known, asked = known_images(options, CLARITY), asked_of_people(options)
    boxed = some_of(_with_drawn(open_images(images), options), options["limit"])
    for model in reference.models if reference else ():
        say_preparation(model, [], options)
    with interruptible(Bar(quiet=options["quiet"], unit="crops", before="done before")) as progress:
        made = curate_crops(
            boxed,
            destination,
            usual,
            times_smaller=options["times_smaller"],
            reference=reference,
            output=options["output"],
            workers=options["workers"],
            progress=progress,
        )
        if options["project"]:
            crop_project(
                made,
                boxed,
                options["project"],
                reference=reference,
                known=known,
                **asked,
                progress=progress,
            )
    _show(made, options)


@click.command()
@click.argument("images")
@click.argument("project")
@click.option("--limit", type=click.IntRange(1), help="So many images, spread evenly over the set.")
@reviewers_option
@instructions_option
@known_option
@click.option("--quiet", is_flag=True, help="No progress.")
@as_json_option
def boxes(images: str, project: str, **options: Any) -> None:
    """Make a review project in the folder PROJECT, in which people find the objects of the labelled set IMAGES.

    They click the four extreme points of what an image is labelled with; curate crops --drawn PROJECT takes the boxes.

    Example: shiftproof curate boxes photos/ boxes/
    """
    from shiftproof.console import Bar, say, say_json, say_steps
    from shiftproof.curation.object_projects import box_project
    from shiftproof.image_sets import open_images

    asked = asked_of_people(options)
    with interruptible(Bar(quiet=options["quiet"], before="there before")) as progress:
        made = box_project(
            some_of(open_images(images), options["limit"]),
            project,
            known=known_images(options),
            **asked,
            progress=progress,
        )
    if options["as_json"]:
        say_json({"project": project, "items": len(made.items), "steps": [asdict(step) for step in made.making.steps]})
    else:
        say_steps(made.making.steps, "images")
        say(project)


def _with_drawn(images: ImageList, options: Options) -> ImageList:
    """The images with the boxes that people drew, where such are named."""
    if not options["drawn"]:
        return images
    from shiftproof.review.drawn_boxes import drawn_boxes

    project, found = reviewed(options["drawn"], options["database"])
    return drawn_boxes(project, found.verdicts, images)


def _usual_shares(options: Options) -> UsualShares:
    from shiftproof.curation.usual_shares import load_shares, measured_shares
    from shiftproof.image_sets import open_images

    if bool(options["reference"]) == bool(options["shares"]):
        raise BadInput("say how much of an image each class usually fills: with --reference BOXES or with --shares TABLE")
    return load_shares(options["shares"]) if options["shares"] else measured_shares(open_images(options["reference"]))


def _reference_models(options: Options) -> ReferenceModels | None:
    from shiftproof.curation.reference_models import ReferenceModels
    from shiftproof.store import Store

    if not options["recognised_by"]:
        return None
    if options["name"] and len(options["recognised_by"]) > 1:
        raise BadInput("--name is what to call one model, but several are asked with --recognised-by")
    models = [model_of(spec, options) for spec in options["recognised_by"]]
    return ReferenceModels(models, Store(options["store"]), options["recognised_in"], scoring_of(options))


def _show(made: CropSet, options: Options) -> None:
    from shiftproof.console import remark, say, say_json, say_steps

    if options["as_json"]:
        say_json(_told(made))
        return
    say_steps(made.choice.steps, "objects")
    for note in made.notes:
        remark(f"note: {note}")
    if made.whole_images:
        remark(f"note: {made.whole_images:,} crops are whole images, of which the object fills more than is usual")
    say(str(made.written.destination))


def _told(made: CropSet) -> dict[str, object]:
    return {
        "destination": str(made.written.destination),
        "steps": [asdict(step) for step in made.choice.steps],
        "written": made.written.written,
        "written_before": made.written.written_before,
        "whole_images": made.whole_images,
        "removed": [{"id": gone.item.id, "step": gone.step, "reason": gone.reason} for gone in made.choice.gone],
        "notes": made.notes,
    }
