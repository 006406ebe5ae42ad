"""The command that puts frames of clips before people: anchors to label, or each frame beside its anchor."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from shiftproof.cli_models import Options
from shiftproof.cli_options import as_json_option, instructions_option, known_option, reviewers_option, verify_option
from shiftproof.cli_review import database_option, reviewed
from shiftproof.cli_steps import asked_of_people, interruptible, known_images
from shiftproof.errors import BadInput

if TYPE_CHECKING:
    from shiftproof.curation.frames import AnchorLabels, FrameProject

OF_ANCHORS = ("k", "anchors", "every", "count", "seed")
"""Options that say which frames there are, as image sets of clips take them."""


@click.command()
@click.argument("clips")
@click.argument("project")
@click.option("--k", type=click.IntRange(0), help="Frames before and after each anchor; 10 else.")
@click.option(
    "--anchors", help="random for one of each clip, or frame numbers or times as 2.5s, comma-separated; see docs/video.md."
)
@click.option("--every", type=click.IntRange(1), help="An anchor every so many frames of each clip.")
@click.option("--count", type=click.IntRange(1), help="So many anchors, evenly spread over each clip.")
@click.option("--seed", type=int, help="Which random anchors; 0 else.")
@click.option("--label-anchors", is_flag=True, help="Ask first which classes the anchors show, for labels that are sparse.")
@click.option("--classes", help="Classes to choose among with --label-anchors: a file of names or wnids, or ilsvrc2012.")
@click.option("--labelled", metavar="PROJECT", help="Take the labels on which the reviewers of these anchors agreed.")
@database_option
@click.option(
    "--reasons",
    default="paper",
    show_default=True,
    help="Why frames may be dissimilar: paper, released (as in YTBB-Robust), or words with keys as rain:w,night:n.",
)
@reviewers_option
@verify_option
@instructions_option
@known_option
@click.option("--quiet", is_flag=True, help="No progress.")
@as_json_option
def frames(clips: str, project: str, **options: Any) -> None:
    """Make a review project of the frames around anchors of CLIPS, each beside its anchor, in the folder PROJECT.

    CLIPS is a video file, a folder of them or of their frames, a table, or a released frame set.

    Example: shiftproof curate frames clips/ pairs/ --k 10 --seed 1
    """
    from shiftproof.class_lists import classes_from
    from shiftproof.console import Bar
    from shiftproof.curation.frames import label_anchors, pair_frames
    from shiftproof.image_sets import open_images

    if options["label_anchors"] and options["labelled"]:
        raise BadInput("--label-anchors asks for labels and --labelled takes those that were given: say one of them")
    if options["label_anchors"] and options["verify"]:
        raise BadInput("--verify is for pairs: which classes an anchor shows is asked of as many people as --reviewers-each")
    asked = asked_of_people(options)
    labels = _labels(options) if options["labelled"] else None
    known = known_images(options)
    images = open_images(clips, **{name: options[name] for name in OF_ANCHORS if options[name] is not None})
    with interruptible(Bar(quiet=options["quiet"], unit="frames", before="there before")) as progress:
        if options["label_anchors"]:
            classes = classes_from(options["classes"]) if options["classes"] else None
            made = label_anchors(
                images,
                project,
                classes=classes,
                known=known,
                **asked,
                progress=progress,
            )
        else:
            made = pair_frames(
                images,
                project,
                labels=labels,
                reasons=options["reasons"],
                known=known,
                **asked,
                progress=progress,
            )
    _show(made, options)


def _labels(options: Options) -> AnchorLabels:
    from shiftproof.review.reviewed_frames import agreed_labels

    project, found = reviewed(options["labelled"], options["database"])
    return agreed_labels(project, found.verdicts)


def _show(made: FrameProject, options: Options) -> None:
    from shiftproof.console import remark, say, say_json, say_steps

    steps, project = made.choice.steps, made.project
    if options["as_json"]:
        gone = [{"id": one.item.id, "step": one.step, "reason": one.reason} for one in made.choice.gone]
        told = {"project": str(project.folder), "items": len(project.items), "steps": [asdict(step) for step in steps]}
        say_json({**told, "removed": gone})
        return
    say_steps(steps, "frames")
    for note in made.notes:
        remark(f"note: {note}")
    remark(f"shiftproof review {project.folder} lets people judge them")
    say(str(project.folder))
