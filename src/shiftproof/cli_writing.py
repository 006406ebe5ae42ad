"""The commands that write sets of images: corrupted pictures and perturbation sequences."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import click

from shiftproof.cli_models import Options
from shiftproof.cli_options import (
    about_corruptions,
    about_images,
    about_perturbations,
    about_pictures,
    about_writing,
    as_json_option,
)
from shiftproof.cli_steps import images_at, interruptible, say_edition
from shiftproof.errors import BadInput

if TYPE_CHECKING:
    from shiftproof.image_sets.image_list import ImageList
    from shiftproof.writing import Written


@click.command()
@click.argument("source")
@click.argument("destination")
@about_corruptions
@about_pictures
@click.option(
    "--layout",
    type=click.Choice(["imagenet-c", "cifar-c"]),
    default="imagenet-c",
    show_default=True,
    help="A file for each picture, JPEG as published or PNG where --output is raw; or an array for each corruption.",
)
@about_images
@about_writing
@as_json_option
def corrupt(source: str, destination: str, **options: Any) -> None:
    """Write the images of SOURCE under corruptions into the folder DESTINATION; what is there is not made again.

    Example: shiftproof corrupt photos/ photos-c/ --corruptions fog,frost --severities 1,3,5
    """
    from shiftproof.corruptions.choosing import corruptions_named, whole_numbers

    corruptions = corruptions_named(options["corruptions"])
    severities = whole_numbers(options["severities"], least=1, most=5, what="severities")
    if options["at"] == "model-size":
        raise BadInput("--at model-size needs a model, and none is asked here; choose picture or image")
    from shiftproof.console import Bar
    from shiftproof.corruptions.frost_pictures import frost_pictures
    from shiftproof.image_sets.picture_sizes import edition_for
    from shiftproof.writing import write_corrupted

    frost = None if options["frost_folder"] is None else frost_pictures(options["frost_folder"])
    images = some_of(images_at(source, options), options["limit"])
    fit = None if options["edition"] else edition_for(images, picture="image" if options["at"] == "image" else None)
    say_edition(fit, options)
    with interruptible(Bar(quiet=options["quiet"], unit="pictures", before="written before")) as progress:
        written = write_corrupted(
            images,
            destination,
            corruptions=corruptions,
            severities=severities,
            edition=fit.edition if fit else options["edition"],
            output=options["output"],
            seed=options["seed"],
            frost=frost,
            scale_strengths=options["scale_strengths"],
            picture="image" if options["at"] == "image" else None,
            layout=options["layout"],
            workers=options["workers"],
            progress=progress,
        )
    _show(written, "pictures", options)


@click.command()
@click.argument("source")
@click.argument("destination")
@about_perturbations
@click.option("--edition", help="Whose parameters, see shiftproof list editions; by the size of the pictures else.")
@click.option("--seed", type=int, default=0, show_default=True, help="Where the random numbers start.")
@click.option(
    "--layout",
    type=click.Choice(["imagenet-p", "cifar-p"]),
    default="imagenet-p",
    show_default=True,
    help="A video for each sequence, lossy as published; or an array for each perturbation, exact.",
)
@about_images
@about_writing
@as_json_option
def perturb(source: str, destination: str, **options: Any) -> None:
    """Write the images of SOURCE as perturbation sequences into the folder DESTINATION; what is there is not made again.

    Example: shiftproof perturb photos/ photos-p/ --perturbations tilt,brightness --limit 100
    """
    from shiftproof.corruptions.choosing import perturbations_named, whole_numbers

    perturbations = perturbations_named(options["perturbations"])
    levels = whole_numbers(options["levels"], least=1, most=3, what="levels")
    from shiftproof.console import Bar
    from shiftproof.image_sets.picture_sizes import edition_for
    from shiftproof.writing import write_perturbed

    images = some_of(images_at(source, options), options["limit"])
    fit = None if options["edition"] else edition_for(images)
    say_edition(fit, options)
    with interruptible(Bar(quiet=options["quiet"], unit="sequences", before="written before")) as progress:
        written = write_perturbed(
            images,
            destination,
            perturbations=perturbations,
            levels=levels,
            edition=fit.edition if fit else options["edition"],
            seed=options["seed"],
            layout=options["layout"],
            workers=options["workers"],
            progress=progress,
        )
    _show(written, "sequences", options)


def some_of(images: ImageList, limit: int | None) -> ImageList:
    """So many of the images, spread evenly: sets are ordered by class, and the first would be of few."""
    from shiftproof.image_sets.views import spread_over

    return dataclasses.replace(images, samples=spread_over(images.samples, limit))


def _show(written: Written, unit: str, options: Options) -> None:
    from shiftproof.console import remark, say, say_json

    if options["as_json"]:
        aside = [{"id": image.id, "reason": image.reason} for image in written.set_aside]
        counts = {"written": written.written, "written_before": written.written_before}
        say_json({"destination": str(written.destination), **counts, "set_aside": aside})
        return
    for image in written.set_aside:
        remark(f"set aside: {image.id}: {image.reason}")
    before = f", {written.written_before:,} were written before" if written.written_before else ""
    remark(f"{written.written:,} {unit} written{before}, {len(written.set_aside):,} images set aside")
    say(str(written.destination))
