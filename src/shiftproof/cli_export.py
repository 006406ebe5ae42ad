"""The commands that come after a review: the set as files, a second question, a later revision of the set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from shiftproof.cli_models import Options
from shiftproof.cli_options import as_json_option, instructions_option, reviewers_option
from shiftproof.cli_review import database_option, open_database, reviewed
from shiftproof.cli_steps import asked_of_people, interruptible
from shiftproof.errors import BadInput

if TYPE_CHECKING:
    from shiftproof.review.export import Exported

FOLDER = "folder"
LAYOUT_NAMES = (FOLDER, "manifest", "webdataset", "coco", "imagenet-a", "imagenet-o", "imagenet-ood", "vid-robust")
"""Those of `writing.layouts`, which help should not have to import."""


@click.command()
@click.argument("project")
@click.argument("destination")
@click.option(
    "--layout",
    type=click.Choice(LAYOUT_NAMES),
    default=FOLDER,
    show_default=True,
    help="A folder a class, a table with facts, tar shards, boxes, or as a published set was released.",
)
@click.option(
    "--pixels",
    type=click.Choice(["source", "project"]),
    default="source",
    show_default=True,
    help="The files that images came from, or the pictures that reviewers saw, which may be smaller.",
)
@click.option(
    "--before-review",
    "part",
    flag_value="asked",
    help="All that people are asked about, to hold the reviewed set against.",
)
@click.option(
    "--rejected-too",
    "part",
    flag_value="decided",
    help="Of frames: also those that people rejected, with the reason; run then tells accuracy with and without them.",
)
@database_option
@click.option("--quiet", is_flag=True, help="No progress.")
@as_json_option
def export(project: str, destination: str, database: str | None, **options: Any) -> None:
    """Write what people kept of PROJECT into the new folder DESTINATION, with a data card and checksums.

    The folder is there when it is whole, and the same review gives the same bytes. The last line is what to open it by. Of
    new classes it is a list, for curate novel-classes --chosen.

    Example: shiftproof curate export hard-set/ hard-photos/ --layout imagenet-a
    """
    from shiftproof.console import Bar
    from shiftproof.curation.screens import CLASS_PAIR
    from shiftproof.review import export as exporting

    loaded, summary = reviewed(project, database)
    of_classes = loaded.screen_name == CLASS_PAIR.name
    if of_classes and (options["part"] or options["layout"] != FOLDER):
        raise BadInput(f"{loaded.title} keeps classes and no images, so it is exported as a list, without other options")
    with interruptible(Bar(quiet=options["quiet"], unit="files", before="written before")) as progress:
        if of_classes:
            exported = exporting.export_classes(loaded, summary, destination, progress=progress)
        else:
            exported = exporting.export(
                loaded,
                summary,
                destination,
                part=options["part"] or "kept",
                layout=options["layout"],
                pixels=options["pixels"],
                progress=progress,
            )
    _show(exported, options)


def _show(exported: Exported, options: Options) -> None:
    from shiftproof.console import remark, say, say_json
    from shiftproof.review.data_card import amount_of

    card, written = exported.card, exported.written
    if options["as_json"]:
        counts = {"written": written.written, "written_before": written.written_before}
        say_json({"destination": str(written.destination), "location": exported.location, **counts, "card": card})
        return
    if waiting := card["review"]["outcomes"]["open"]:
        remark(f"note: {waiting:,} items are not decided yet and are left out")
    before = f", {written.written_before:,} were written before" if written.written_before else ""
    remark(f"{amount_of(card)}; {written.written:,} files written{before}")
    say(exported.location)


@click.command("failure-modes")
@click.argument("judged")
@click.argument("project")
@database_option
@reviewers_option
@instructions_option
@as_json_option
def failure_modes(judged: str, project: str, database: str | None, as_json: bool, **options: Any) -> None:
    """Make a review project in the folder PROJECT: people say why models are wrong about what they kept in JUDGED.

    Example: shiftproof curate failure-modes hard-set/ mistakes/
    """
    from shiftproof.console import remark, say, say_json
    from shiftproof.review.failure_modes import failure_mode_project

    asked = asked_of_people(options)
    loaded, summary = reviewed(judged, database)
    made = failure_mode_project(loaded, summary.verdicts, project, **asked)
    if as_json:
        say_json({"project": str(made.folder), "items": len(made.items)})
        return
    remark(f"{len(made.items):,} images that people kept; shiftproof review {made.folder} asks for their failure modes")
    say(str(made.folder))


@click.command()
@click.argument("project")
@click.option("--continue-from", "earlier", required=True, metavar="PROJECT", help="The project that people judged before.")
@database_option
@click.option("--earlier-database", metavar="URL", help="Where the votes of the earlier project are, if not in its folder.")
@as_json_option
def revise(project: str, earlier: str, database: str | None, earlier_database: str | None, as_json: bool) -> None:
    """Take over the votes of an earlier review into PROJECT, so that people are asked only about what is new.

    Votes hold for items of the same id, pictures and class. Everybody who voted is known here too, and needs a new link:
    shiftproof review PROJECT --invite NAME.

    Example: shiftproof curate revise hard-set-2/ --continue-from hard-set/
    """
    from shiftproof.console import remark, say, say_json
    from shiftproof.curation.project import load_project
    from shiftproof.review.revision import continue_from

    new, old = load_project(project), load_project(earlier)
    ours, theirs = open_database(new.folder, database), open_database(old.folder, earlier_database)
    revision = continue_from(new, ours, old, theirs)
    for opened in (ours, theirs):
        opened.close()
    if as_json:
        say_json({"revision": revision.number, "votes": revision.votes, "items": revision.items})
        return
    remark(
        f"revision {revision.number}: {revision.votes:,} votes on {revision.items:,} of {len(new.items):,} items taken over"
    )
    say(str(new.folder))
