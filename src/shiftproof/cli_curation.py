"""The commands that build test sets: which classes are new to a model, and which images people should look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shiftproof.cli_crops import boxes, crops
from shiftproof.cli_duplicates import duplicates
from shiftproof.cli_export import export, failure_modes, revise
from shiftproof.cli_filtering import adversarial, novel
from shiftproof.cli_frames import frames
from shiftproof.cli_human_test import human_test
from shiftproof.cli_models import Options, stored_or_loaded
from shiftproof.cli_options import (
    about_model,
    about_store,
    as_json_option,
    instructions_option,
    known_option,
    reviewers_option,
    verify_option,
)
from shiftproof.cli_steps import asked_of_people, known_images
from shiftproof.errors import BadInput, listed

if TYPE_CHECKING:
    from shiftproof.curation.novel_classes import Selection
    from shiftproof.image_sets.image_list import ImageList


@click.group()
def curate() -> None:
    """Build a test set of what a model has never seen, or gets wrong."""


curate.add_command(adversarial)
curate.add_command(boxes)
curate.add_command(crops)
curate.add_command(duplicates)
curate.add_command(export)
curate.add_command(failure_modes)
curate.add_command(revise)
curate.add_command(novel)
curate.add_command(frames)
curate.add_command(human_test)


@curate.command("novel-classes")
@click.option("--inside", required=True, help="Classes the model knows: ilsvrc2012, or a file of wnids or names.")
@click.option("--candidates", required=True, help="Classes to choose from: a file of wnids or names, such as a 21K list.")
@click.option(
    "--without",
    multiple=True,
    default=("organism",),
    show_default=True,
    help="Leave out all that is a kind of this: a word or wnid; repeatable; none for nothing.",
)
@click.option(
    "--boundary",
    type=click.Choice(["before", "after"]),
    help="Leave out what lies under the most general decision boundary, before or after --sisters and --chosen.",
)
@click.option("--sisters", is_flag=True, help="Keep only classes right beside an inside class in WordNet.")
@click.option("--chosen", help="Keep only these classes, which a person chose: a file of wnids or names.")
@click.option("--images", help="Folder with a folder of images for each wnid, to choose images of the classes from.")
@click.option("--per-class", type=click.IntRange(1), default=50, show_default=True, help="Images of each class, at most.")
@click.option("--seed", type=int, default=0, show_default=True, help="Which images are chosen.")
@click.option("-o", "--output", help="Folder for classes.csv, removed.csv and, with --images, manifest.csv.")
@click.option("--project", help="With --images, folder for a review project: each class beside the known ones next to it.")
@click.option("--inside-images", help="Images of the known classes, labelled with wnids, to show there.")
@reviewers_option
@verify_option
@instructions_option
@known_option
@as_json_option
def novel_classes(inside: str, candidates: str, **options: Any) -> None:
    """Choose classes that mean something else than a model's own; every class that goes has its reason.

    Example: shiftproof curate novel-classes --inside ilsvrc2012 --candidates imagenet21k.txt -o novel/
    """
    from shiftproof.console import remark
    from shiftproof.curation.novel_classes import select_novel_classes
    from shiftproof.curation.wnid_lists import noun_named, wnids_from

    if options["images"] and not options["output"]:
        raise BadInput("--images writes a manifest of the images chosen; say into which folder with -o")
    if options["project"] and not options["images"]:
        raise BadInput("--project shows images of the classes; say where they are with --images")
    answered, asked = known_images(options), asked_of_people(options)
    known, offered = wnids_from(inside), wnids_from(candidates)
    chosen = frozenset(wnids_from(options["chosen"])) if options["chosen"] else None
    if strangers := (chosen or frozenset()).difference(offered):
        remark(f"{len(strangers):,} of {len(chosen or ()):,} chosen classes are no candidates: {listed(sorted(strangers))}")
    selection = select_novel_classes(
        known,
        offered,
        subtrees=[noun_named(word) for word in options["without"] if word != "none"],
        boundary=options["boundary"],
        sisters_only=options["sisters"],
        chosen=chosen,
    )
    images = _images(selection, options)
    if options["output"]:
        _save(selection, known, Path(options["output"]))
    if options["project"]:
        _save_project(selection, known, images or {}, answered, asked, options)
    _show(selection, images, options)


@curate.command()
@click.argument("inside")
@click.argument("outside")
@click.option("--model", required=True, help="Whose stored features tell what looks alike.")
@click.option("--first", type=click.IntRange(1), default=1000, show_default=True, help="Pairs to list, the nearest first.")
@click.option("-o", "--output", default="pairs.csv", show_default=True, help="List to write: .csv or .jsonl.")
@click.option("--project", help="Folder for a review project of the pairs.")
@reviewers_option
@verify_option
@instructions_option
@known_option
@about_model
@about_store
@as_json_option
def pairs(inside: str, outside: str, model: str, first: int, output: str, **options: Any) -> None:
    """List each image of OUTSIDE beside the image of INSIDE nearest it in a model's features, for people to review.

    Example: shiftproof curate pairs photos/ novel/ --model lite:0 -o pairs.csv
    """
    from shiftproof.console import remark, say, say_json
    from shiftproof.curation.candidates import DROP_REASONS, candidate_pairs, save_pairs, with_folders
    from shiftproof.curation.novelty_projects import nearest_pair_project
    from shiftproof.image_sets import open_images
    from shiftproof.loading import load_predictions
    from shiftproof.store import Store
    from shiftproof.types import Run

    answered, asked = known_images(options), asked_of_people(options)
    ref, store = stored_or_loaded(model, options), Store(options["store"])
    inner, outer = open_images(inside), with_folders(open_images(outside))
    known, new = (load_predictions(Run(ref, one.ref), one, store=store, keep="features") for one in (inner, outer))
    found = candidate_pairs(new, known, first=first)
    save_pairs(Path(output), found)
    if options["project"]:
        nearest_pair_project(found, outer, inner, options["project"], model=ref, known=answered, **asked)
    if options["as_json"]:
        say_json({"pairs": len(found), "outside": len(new), "inside": len(known), "list": output})
    else:
        remark(f"{len(found):,} of {len(new):,} outside images, each with the nearest of {len(known):,} inside images")
        remark(f"reasons for dropping, for the column drop: {', '.join(DROP_REASONS)}")
        say(output)


def _images(selection: Selection, options: Options) -> Mapping[str, Sequence[str]] | None:
    """The images chosen for each class, written as a manifest; None where none were asked for."""
    from shiftproof.curation.candidates import choose_images, save_manifest

    if not options["images"]:
        return None
    images = choose_images(options["images"], selection.classes, per_class=options["per_class"], seed=options["seed"])
    save_manifest(Path(options["output"]) / "manifest.csv", options["images"], images)
    return images


def _save(selection: Selection, inside: Sequence[str], folder: Path) -> None:
    """Every candidate in one of two tables: what stays with the inside classes beside it, what goes with its reason."""
    from shiftproof.curation.novel_classes import sister_pairs
    from shiftproof.curation.tables import table_bytes
    from shiftproof.files import write_whole
    from shiftproof.image_sets.wordnet import wordnet

    tree, sisters = wordnet(), dict[str, list[str]]()
    for wnid, sister in sister_pairs(inside, selection.classes):
        sisters.setdefault(wnid, []).append(sister)
    kept = [
        (wnid, tree.name(wnid), ", ".join(tree.words(wnid)), "|".join(sisters.get(wnid, ()))) for wnid in selection.classes
    ]
    gone = [(one["wnid"], one["name"], one["step"], one["reason"], one["cause"] or "") for one in _removals(selection)]
    write_whole(folder / "classes.csv", table_bytes([("wnid", "name", "words", "sisters"), *kept]))
    write_whole(folder / "removed.csv", table_bytes([("wnid", "name", "step", "reason", "cause"), *gone]))


def _save_project(
    selection: Selection,
    inside: Sequence[str],
    images: Mapping[str, Sequence[str]],
    answered: ImageList | None,
    asked: Mapping[str, Any],
    options: Options,
) -> None:
    from shiftproof.curation.novelty_projects import NewClasses, class_pair_project
    from shiftproof.image_sets import open_images

    known = open_images(options["inside_images"]) if options["inside_images"] else None
    new = NewClasses(selection, inside, options["images"], images, known)
    class_pair_project(new, options["project"], references=options["per_class"], known=answered, **asked)


def _removals(selection: Selection) -> list[dict[str, str | None]]:
    from dataclasses import asdict

    from shiftproof.image_sets.wordnet import wordnet

    return [{"name": wordnet().name(one.wnid), **asdict(one)} for one in selection.removed]


def _show(selection: Selection, images: Mapping[str, Sequence[str]] | None, options: Options) -> None:
    from shiftproof.console import remark, say, say_json, say_table

    steps = [{"name": step.name, "left": step.left} for step in selection.steps]
    if options["as_json"]:
        told = {"steps": steps, "classes": selection.classes, "removed": _removals(selection)}
        say_json(told if images is None else {**told, "images": images})
        return
    say_table([{"step": one["name"], "classes left": f"{one['left']:,}"} for one in steps], right=("classes left",))
    if images is not None:
        total = sum(map(len, images.values()))
        remark(f"{total:,} images of {len(images):,} classes; {len(selection.classes) - len(images):,} classes have none")
        remark(f"they stay where they are; open them as {options['output']}?allow_outside=true")
    if options["output"]:
        say(options["output"])
