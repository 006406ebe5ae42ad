"""The command that finds images which are there twice, or which a model was trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shiftproof.cli_models import Options, stored_or_loaded
from shiftproof.cli_options import about_model, about_store, as_json_option
from shiftproof.cli_steps import interruptible

if TYPE_CHECKING:
    from shiftproof.curation.duplicates import DuplicateChoice, FeatureDistances, Likeness
    from shiftproof.image_sets.image_list import ImageList

SHOWN = 20
"""Rows printed; the table that is written has all."""


@click.command()
@click.argument("images")
@click.option("--against", help="Images that none of IMAGES should look like, such as a training set.")
@click.option(
    "--bits", type=click.IntRange(0, 31), default=8, show_default=True, help="Bits of 64 that may differ between hashes."
)
@click.option("--model", help="Whose stored features are compared too, for what hashes miss: mirrored, or cut further.")
@click.option(
    "--most-distance",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.1,
    show_default=True,
    help="Cosine distance of features up to which two images are taken for one.",
)
@click.option("-o", "--output", help="Folder for manifest.csv, which lists what is left, and duplicates.csv.")
@click.option("--report", help="HTML file that shows the pairs side by side.")
@click.option("--workers", type=click.IntRange(0), help="Processes that open images; as many as it takes else.")
@click.option("--quiet", is_flag=True, help="No progress.")
@about_model
@about_store
@as_json_option
def duplicates(images: str, **options: Any) -> None:
    """Find images of IMAGES that look like another, or like one of a training set; the first of several stays.

    Example: shiftproof curate duplicates photos/ --against training/ -o distinct/
    """
    from shiftproof.console import Bar
    from shiftproof.curation.duplicates import without_duplicates
    from shiftproof.image_sets import open_images

    own = open_images(images)
    against = open_images(options["against"]) if options["against"] else None
    with interruptible(Bar(quiet=options["quiet"], before="hashed before")) as progress:
        choice = without_duplicates(
            own,
            against=against,
            bits=options["bits"],
            features=_features(options),
            store=options["store"],
            workers=options["workers"],
            progress=progress,
        )
    if options["output"]:
        _save(choice, own, Path(options["output"]))
    if options["report"]:
        _save_report(choice, [one for one in (own, against) if one is not None], options)
    _show(choice, options)


def _features(options: Options) -> FeatureDistances | None:
    from shiftproof.curation.duplicates import FeatureDistances
    from shiftproof.store import Store

    if not options["model"]:
        return None
    return FeatureDistances(stored_or_loaded(options["model"], options), Store(options["store"]), options["most_distance"])


def _save(choice: DuplicateChoice, images: ImageList, folder: Path) -> None:
    from shiftproof.curation.listings import save_listing
    from shiftproof.curation.tables import table_bytes
    from shiftproof.files import write_whole

    rows = _rows(choice)
    columns = ("id", "step", "reason", "other", "other_set", "by", "distance")
    write_whole(folder / "duplicates.csv", table_bytes([columns, *([row[name] for name in columns] for row in rows)]))
    save_listing(folder / "manifest.csv", images, choice.left)


def _rows(choice: DuplicateChoice) -> list[dict[str, Any]]:
    """What went and why, one row each."""
    return [
        {"id": gone.item, "step": gone.step, "reason": str(gone.reason), **_likeness(gone.reason)} for gone in choice.gone
    ]


def _likeness(reason: Likeness | str) -> dict[str, Any]:
    if isinstance(reason, str):
        return dict.fromkeys(("other", "other_set", "by", "distance"), "")
    distance = round(reason.distance, 6)
    return {"other": reason.other, "other_set": reason.image_set.name, "by": reason.by, "distance": distance}


def _save_report(choice: DuplicateChoice, image_sets: Sequence[ImageList], options: Options) -> None:
    from shiftproof.image_sets.opener import image_opener
    from shiftproof.reports import save_report
    from shiftproof.reports.duplicates import duplicate_results

    results = duplicate_results(choice, image_sets)
    title = f"Duplicates in {image_sets[0].name}"
    save_report(options["report"], results, open_image=image_opener(image_sets), title=title)


def _show(choice: DuplicateChoice, options: Options) -> None:
    from shiftproof.console import remark, say, say_json, say_steps

    rows = _rows(choice)
    if options["as_json"]:
        say_json({"steps": [asdict(step) for step in choice.steps], "left": choice.left, "removed": rows})
        return
    say_steps(choice.steps, "images")
    for row in rows[:SHOWN]:
        remark(f"{row['id']}: {row['reason']}")
    if len(rows) > SHOWN:
        remark(f"{len(rows) - SHOWN:,} more; -o writes them all into a table")
    if options["output"]:
        remark(f"the images stay where they are; open what is left as {options['output']}?allow_outside=true")
    for path in filter(None, (options["output"], options["report"])):
        say(path)
