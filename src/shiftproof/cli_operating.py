"""The command that picks a detector's threshold and says what to expect of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shiftproof.cli_options import (
    about_other_images,
    about_parameters,
    about_pictures,
    about_predicting,
    about_scoring,
    about_store,
    about_training,
    as_json_option,
    model_and_images,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shiftproof.studies.exported_threshold import ExportedThreshold, Share


@click.command()
@model_and_images
@click.option("--detector", required=True, help="Whose scores: see shiftproof list detectors; msp+vim for two as one.")
@click.option("--false-alarms", type=float, help="Share of the images to let through that may be flagged, as 0.05.")
@click.option("--rejected", type=float, help="Share of the images to flag that must be, as 0.75.")
@click.option("--cheapest", is_flag=True, help="Where mistakes cost least.")
@click.option("--false-alarm-cost", type=float, default=1, show_default=True, help="Of an image flagged in vain.")
@click.option("--miss-cost", type=float, default=1, show_default=True, help="Of an image that should be flagged and is not.")
@click.option(
    "--outside-share", type=float, help="Share of the images to come that should be flagged; as many as here else."
)
@click.option(
    "--goal",
    type=click.Choice(["new-class", "failure"]),
    default="new-class",
    show_default=True,
    help="What to flag: images of other classes, or these and whatever is answered wrong.",
)
@about_other_images
@about_training
@about_parameters
@about_scoring
@about_pictures
@about_predicting
@about_store
@as_json_option
@click.option("-o", "--export", help="JSON file to write: the threshold, and what to expect of it.")
def threshold(model: str, images: str, detector: str, export: str | None, **options: Any) -> None:
    """Pick the score from which on a detector flags images, and say what to expect of it.

    Example: shiftproof threshold lite:0 photos/ --out-images clothes/ --detector energy --false-alarms 0.05 -o point.json
    """
    from shiftproof.cli_models import model_of
    from shiftproof.cli_novelty import keep_of, parameters_typed, sets_typed
    from shiftproof.cli_steps import Bench, fill_bench, images_asked, measured, scoring_of
    from shiftproof.console import remark, say, say_json
    from shiftproof.files import write_whole
    from shiftproof.prediction import check_classes
    from shiftproof.store import Store
    from shiftproof.studies.exported_threshold import ExportedThreshold
    from shiftproof.studies.operating_point import OperatingPointStudy
    from shiftproof.studies.threshold_choice import ThresholdChoice

    ways = ("false_alarms", "rejected", "cheapest", "false_alarm_cost", "miss_cost", "outside_share")
    choice = ThresholdChoice(**{name: options[name] for name in ways})
    classifier, image_set = model_of(model, options), images_asked(images, options)
    sets = sets_typed(options, [classifier], image_set)
    study = OperatingPointStudy(
        [classifier],
        image_set,
        detector,
        choice,
        **sets._asdict(),
        preset=options["preset"],
        parameters=parameters_typed(options["chosen"]),
        goal=options["goal"],
        keep=keep_of([classifier], Store(options["store"])),
    )
    check_classes(classifier, image_set, scoring_of(options))
    bench = Bench([study], [image_set, *sets.opened])
    fill_bench(classifier, bench, options)
    picked = ExportedThreshold.of(measured(bench, options))
    if export:
        write_whole(Path(export), picked.to_json().encode())
    if options["as_json"]:
        say_json(picked.to_json())
    else:
        _show(picked)
    if export:
        (remark if options["as_json"] else say)(export)


def _show(picked: ExportedThreshold) -> None:
    """What to expect as a table; then the threshold, its cost and on which images it was judged."""
    from shiftproof.console import remark, say, say_table
    from shiftproof.reports.words import figure

    told = picked.expected or picked.where_picked
    sets = dict(told.sets)
    if told.found not in [shares.get("found") for shares in sets.values()]:
        sets["all together"] = {"found": told.found}
    say_table([_row(name, shares) for name, shares in sets.items()], right=("false alarms", "found"))
    rule = f"flag an image where {picked.detector} scores at least that"
    flags_none = picked.threshold == float("inf")
    say(f"threshold: {'none, flag no image' if flags_none else f'{picked.threshold:.6g}, {rule}'} ({picked.chosen})")
    say(
        f"cost of an image: {told.cost:.4g} where {figure(picked.outside_share, 'share')} of them should be flagged, "
        f"a false alarm costs {picked.false_alarm_cost:g} and a miss {picked.miss_cost:g}"
    )
    remark(f"judged: {told.judged}")
    if picked.expected:
        there = picked.where_picked
        alarms, found = (figure(share.value, "share") for share in (there.false_alarms, there.found))
        remark(f"on the images it was picked on: {alarms} false alarms, {found} found, cost {there.cost:.4g}")
    for note in picked.notes:
        remark(f"note: {note}")


def _row(name: str, shares: Mapping[str, Share]) -> dict[str, str]:
    from shiftproof.reports.words import figure, span

    sides = {"false alarms": shares.get("false_alarms"), "found": shares.get("found")}
    return {
        "images": name,
        **{
            side: f"{figure(share.value, 'share')} ({span(share.interval, 'share')}) of {share.images:,}" if share else ""
            for side, share in sides.items()
        },
    }
