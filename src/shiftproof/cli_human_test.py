"""A test of people: the command that makes one out of an image set, and what it came to."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from shiftproof.cli_models import Options
from shiftproof.cli_options import as_json_option, instructions_option, reviewers_option
from shiftproof.cli_steps import asked_of_people, interruptible, text_in, wnids_named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shiftproof.curation.project import Project
    from shiftproof.review.database import Database
    from shiftproof.types import Finding


@click.command("human-test")
@click.argument("images")
@click.option("-o", "--output", "project", required=True, metavar="PROJECT", help="Folder for the review project.")
@click.option("--learned-from", metavar="IMAGES", help="Images to train and qualify with, if not IMAGES; as easy as usual.")
@click.option("--qualify-from", metavar="IMAGES", help="Images to qualify with, if not those to train with.")
@click.option("--classes", help="Only these classes: imagenet-a, imagenet-o, imagenet-r, or a file of wnids or names.")
@click.option("--training", type=click.IntRange(0), default=3, show_default=True, help="Images of each class to train with.")
@click.option("--qualify", type=click.IntRange(0), default=200, show_default=True, help="Images of a qualification.")
@click.option("--test", type=click.IntRange(1), default=600, show_default=True, help="Images of the test.")
@click.option("--even", is_flag=True, help="Test as many images of every class; they are drawn at random from all else.")
@click.option(
    "--pass-mark",
    type=click.FloatRange(0, 1),
    default=0.9,
    show_default=True,
    help="Share of the qualification that must be right.",
)
@click.option("--tries", type=click.IntRange(1), default=1, show_default=True, help="Qualifications, each of other images.")
@click.option("--consent", metavar="FILE", help="Text that people agree to before they begin, instead of our own.")
@click.option("--seed", type=int, default=0, show_default=True, help="Which images are drawn.")
@reviewers_option
@instructions_option
@click.option("--quiet", is_flag=True, help="No progress.")
@as_json_option
def human_test(images: str, project: str, **options: Any) -> None:
    """Make a review project that tests how well people tell the classes of IMAGES, as beside ImageNet-A-Plus.

    They are trained with the answer after each image, qualify without, and are then tested; shiftproof verdicts tells how
    they did.

    Example: shiftproof curate human-test hard-crops/ -o people/ --learned-from val/ --classes imagenet-a
    """
    from shiftproof.console import Bar
    from shiftproof.curation.human_test import CONSENT, Rounds, human_test_project
    from shiftproof.image_sets import open_images

    asked = asked_of_people(options)
    with interruptible(Bar(quiet=options["quiet"], before="there before")) as progress:
        made = human_test_project(
            open_images(images),
            project,
            learned=open_images(options["learned_from"]) if options["learned_from"] else None,
            qualifying=open_images(options["qualify_from"]) if options["qualify_from"] else None,
            classes=wnids_named(options["classes"]) if options["classes"] else None,
            rounds=Rounds(options["training"], options["qualify"], options["test"], options["tries"]),
            even=options["even"],
            pass_mark=options["pass_mark"],
            consent=text_in(options["consent"], "a text that people agree to") if options["consent"] else CONSENT,
            **asked,
            seed=options["seed"],
            progress=progress,
        )
    _show(made, options)


def _show(made: Project, options: Options) -> None:
    from shiftproof.console import remark, say, say_json, say_steps

    counts = Counter(item.role for item in made.items)
    if options["as_json"]:
        steps = [vars(step) for step in made.making.steps]
        say_json({"project": str(made.folder), "classes": len(made.classes), "items": dict(counts), "steps": steps})
        return
    say_steps(made.making.steps, "images")
    remark(
        f"{counts['training']:,} images to train with, {counts['gold']:,} to qualify, {counts['asked']:,} to be tested on, "
        f"of {len(made.classes):,} classes"
    )
    remark(f"people take the test with: shiftproof review {made.folder}")
    say(str(made.folder))


def human_test_findings(project: Project, database: Database, options: Options) -> Sequence[Finding]:
    """How people did, with the stored models that the options name beside them."""
    from shiftproof.cli_models import stored_model
    from shiftproof.review.human_test import human_findings, human_test_of, models_on
    from shiftproof.store import Store

    test = human_test_of(project, database.votes(), database.reviewers(), database.lookups())
    database.close()
    store = Store(options["store"])
    models = [stored_model(name, store) for name in options["models"]]
    return human_findings(project, test, models_on(project, test, models, store))


def human_test_as_json(found: Sequence[Finding]) -> dict[str, Any]:
    """The numbers of a test of people; nothing where there was none."""
    from dataclasses import asdict

    from shiftproof.types import Measurement

    numbers = [asdict(one) for one in found if isinstance(one, Measurement)]
    return {"human_test": numbers} if numbers else {}


def say_human_test(found: Sequence[Finding]) -> None:
    """The same as a table."""
    from shiftproof.console import say_table
    from shiftproof.metrics.meanings import meaning_of
    from shiftproof.reports.words import figure, span
    from shiftproof.types import Measurement

    rows = [
        {
            "who": str(one.about.get("reviewer") or one.about.get("model") or one.about.get("people", "everybody")),
            "number": meaning_of(one.metric).title,
            "of": str(one.about.get("subset") or one.about.get("right", "")),
            "value": figure(one.value, meaning_of(one.metric).unit),
            "interval": span(one.interval, meaning_of(one.metric).unit) if one.interval else "",
            "images": f"{one.images:,}",
        }
        for one in found
        if isinstance(one, Measurement)
    ]
    if rows:
        say_table(rows, right=("value", "interval", "images"))
