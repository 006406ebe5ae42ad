"""The command: each sub-command is one function of the library plus printing.

Commands import what they need inside their bodies, so that help and mistakes in typing are answered at once.
"""

from __future__ import annotations

import errno
import io
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

import shiftproof
from shiftproof import catalog
from shiftproof.cli_curation import curate
from shiftproof.cli_models import compared_models, model_asked, stored_or_loaded
from shiftproof.cli_models import models as models_command
from shiftproof.cli_operating import threshold
from shiftproof.cli_options import (
    about_detection,
    about_frames,
    about_images,
    about_looking,
    about_novelty,
    about_objects,
    about_output,
    about_predicting,
    about_shifts,
    about_store,
    about_studies,
    as_json_option,
    model_and_images,
)
from shiftproof.cli_probe import probe
from shiftproof.cli_review import review, verdicts
from shiftproof.cli_steps import (
    bench_of,
    fill_bench,
    fill_images,
    images_asked,
    images_at,
    interruptible,
    measured,
    save_report_of,
    say_editions,
    scoring_of,
    show,
    tell_unmeasurable,
)
from shiftproof.cli_writing import corrupt, perturb
from shiftproof.errors import BadInput, DamagedFile, MissingRuns, ShiftproofError, StoreWarning
from shiftproof.files import printable
from shiftproof.registry import Registry, missing_extra

REFUSALS = (
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE),
    *(errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR, errno.EISDIR),
)
"""What a machine says where there is no permission or no room, or a name leads nowhere: no traceback would explain it."""


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(shiftproof.__version__, message="shiftproof %(version)s")
def cli() -> None:
    """Measure how a vision model holds up outside its test set.

    Start with `shiftproof demo`, then `shiftproof run MODEL IMAGES`.
    """


def main() -> None:
    """The entry point: mistakes of the user are one line and exit code 1, bugs keep their traceback."""
    _settle_streams()
    _settle_warnings()
    try:
        cli()
    except MissingRuns as error:
        told = error.for_command()
    except ShiftproofError as error:
        told = str(error)
    except ModuleNotFoundError as missing:
        needed = missing_extra("this command", missing)
        if needed is missing:
            raise
        told = str(needed)
    except OSError as error:
        if error.errno not in REFUSALS:
            raise
        told = ": ".join(map(str, filter(None, (error.strerror, error.filename))))
    else:
        return
    print(f"shiftproof: {printable(told)}", file=sys.stderr)  # noqa: T201
    _drop_unprinted()
    sys.exit(1)


def _drop_unprinted() -> None:
    """What cannot be printed is not tried again at the end, where Python would answer with an exit code of its own."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _settle_streams() -> None:
    """Every line can be printed: in UTF-8 whatever the locale says, and to nowhere where a stream is closed."""
    for name in ("stdin", "stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("r" if name == "stdin" else "w"))  # noqa: SIM115 for good
        elif name != "stdin" and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _settle_warnings() -> None:
    """What is damaged in a store is said in a line, as other warnings of a command are."""
    show = warnings.showwarning

    def said(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if issubclass(category, StoreWarning):
            print(f"warning: {printable(str(message))}", file=sys.stderr)  # noqa: T201
        else:
            show(message, category, *where, **more)

    warnings.showwarning = said
    warnings.simplefilter("always", StoreWarning)


@cli.command()
@click.option("-o", "--output", default="shiftproof-demo", show_default=True, help="Folder for report and predictions.")
@click.option("--quiet", is_flag=True, help="No progress.")
@as_json_option
def demo(output: str, quiet: bool, as_json: bool) -> None:
    """A real network and real photos through the whole bench; the last line is the report's path.

    Example: shiftproof demo -o try
    """
    from shiftproof.console import Bar, remark, say, say_json, say_results
    from shiftproof.demo import run_demo

    with interruptible(Bar(quiet=quiet)) as progress:
        made = run_demo(Path(output), progress=progress, tell=remark)
    if as_json:
        say_json(made.results.to_json(indent=1))
    else:
        say_results(made.results)
    remark(f"to judge a dozen of the photos in a browser: shiftproof review {made.review.folder} --invite me")
    (remark if as_json else say)(str(made.report))


@cli.command()
@model_and_images
@about_studies
@about_shifts
@about_novelty
@about_frames
@about_detection
@about_objects
@about_looking
@about_predicting
@about_store
@about_output
@click.option("-o", "--report", default="report.html", show_default=True, help="Where to write the report.")
def run(model: str, images: str, report: str, **options: Any) -> None:
    """Predict, measure and report: the whole job in one command.

    Example: shiftproof run lite:0 photos/ -o report.html
    """
    from shiftproof.prediction import check_classes

    asked, image_set = model_asked(model, options), images_asked(images, options)
    bench = bench_of([asked], image_set, options)
    check_classes(asked, image_set, scoring_of(options))
    fill_bench(asked, bench, options)
    results = measured(bench, options)
    show(results, options)
    save_report_of(results, bench, report, options)


@cli.command()
@model_and_images
@about_predicting
@about_store
@click.option(
    "--shard",
    default="1/1",
    callback=lambda _context, _option, text: _shard(text),
    help="This machine's part of the work, as 2/8; join the stores later with shiftproof merge.",
)
@as_json_option
def predict(model: str, images: str, shard: tuple[int, int], **options: Any) -> None:
    """Put the model's answers into the store; what is there already is not done again.

    Example: shiftproof predict lite:0 photos/ --keep features
    """
    from shiftproof.console import remark, say_json

    tally = fill_images(model_asked(model, options), images_at(images, options), options, shard=shard)
    if options["as_json"]:
        aside = [{"id": image.id, "reason": image.reason} for image in tally.set_aside]
        say_json({"predicted": tally.predicted, "stored_before": tally.stored_before, "set_aside": aside})
        return
    for image in tally.set_aside:
        remark(f"set aside: {image.id}: {image.reason}")
    before = f", {tally.stored_before:,} were stored before" if tally.stored_before else ""
    remark(f"{tally.predicted:,} images predicted{before}, {len(tally.set_aside):,} set aside; store: {options['store']}")


@cli.command()
@model_and_images
@about_studies
@about_shifts
@about_novelty
@about_frames
@about_detection
@about_objects
@about_looking
@about_store
@as_json_option
def plan(model: str, images: str, **options: Any) -> None:
    """Show the runs the studies need, and how much of each is stored already.

    Example: shiftproof plan lite:0 photos/
    """
    from shiftproof.console import say_json, say_table
    from shiftproof.planning import plan_runs
    from shiftproof.store import Store

    asked, image_set = model_asked(model, options), images_asked(images, options)
    bench = bench_of([asked], image_set, options)
    studies = tell_unmeasurable(bench, [asked], options)
    say_editions(bench, options)
    rows = plan_runs(studies, bench.image_sets, store=Store(options["store"]), scoring=scoring_of(options))
    if options["as_json"]:
        say_json(rows)
    else:
        say_table(rows, right=("images", "stored", "to do"))


@cli.command()
@model_and_images
@about_studies
@about_shifts
@about_novelty
@about_frames
@about_detection
@about_objects
@about_looking
@about_store
@about_output
def measure(model: str, images: str, **options: Any) -> None:
    """Ask the studies of stored predictions; never runs the model.

    MODEL may also be the name of a stored model. Example: shiftproof measure lite:0 photos/ --studies accuracy
    """
    bench = bench_of([stored_or_loaded(model, options)], images_asked(images, options), options)
    show(measured(bench, options), options)


@cli.command()
@model_and_images
@about_studies
@about_shifts
@about_novelty
@about_frames
@about_detection
@about_objects
@about_looking
@about_store
@about_output
@click.option("-o", "--report", default="report.html", show_default=True, help="Where to write the report.")
def report(model: str, images: str, report: str, **options: Any) -> None:
    """Write the report of stored predictions; never runs the model.

    Example: shiftproof report lite:0 photos/ -o report.html
    """
    bench = bench_of([stored_or_loaded(model, options)], images_asked(images, options), options)
    results = measured(bench, options)
    show(results, options)
    save_report_of(results, bench, report, options)


@cli.command()
@click.argument("models", nargs=-1)
@click.argument("images")
@about_images
@about_studies
@about_shifts
@about_novelty
@about_frames
@about_detection
@about_objects
@about_looking
@about_store
@about_output
@click.option("-o", "--report", help="Also write a report.")
def compare(models: Sequence[str], images: str, report: str | None, **options: Any) -> None:
    """Put stored models side by side on the same images, with paired tests.

    Without MODELS, every stored model that has answered these images; networks that were made of one for a study are not
    among them. Example: shiftproof compare lite:0 lite:1 photos/
    """
    from shiftproof.store import Store

    image_set = images_asked(images, options)
    chosen = compared_models(models, image_set, Store(options["store"]))
    bench = bench_of(chosen, image_set, options)
    say_editions(bench, options)  # before what was never run under this one is missed
    results = measured(bench, options)
    show(results, options)
    if report:
        save_report_of(results, bench, report, options)


@cli.command()
@click.argument("images", required=False)
@about_images
@click.option("--store", help="A store to check instead: every stored file is read and held against its checksum.")
@click.option("--published", help="The published set it should be, e.g. imagenet-a; recognised by itself where possible.")
@as_json_option
def check(images: str | None, store: str | None, published: str | None, as_json: bool, **options: Any) -> None:
    """Say what an image set is, and how it differs from the published one it looks like; opens no image.

    With --store, say instead what is damaged in a store: it is set aside, and the next run computes it again.

    Example: shiftproof check /data/imagenet-a --published imagenet-a
    """
    if (images is None) == (store is None):
        raise click.UsageError("name either an image set or, with --store, a store")
    if images is None:
        _check_store(str(store), as_json=as_json)
        return
    from shiftproof.console import say, say_json
    from shiftproof.image_sets.published import check_published

    image_set = images_at(images, options)
    name = published or image_set.published
    problems = check_published(image_set, name) if name else []
    labelled = sum(bool(sample.labels) for sample in image_set.samples)
    classes = len(image_set.classes or ())
    if as_json:
        counts = {"images": len(image_set.samples), "labelled": labelled, "classes": classes}
        say_json({**counts, "notes": image_set.notes, "published": name, "differences": problems})
    else:
        say(f"{image_set.ref.name}: {len(image_set.samples):,} images, {labelled:,} labelled, {classes:,} classes")
        for note in image_set.notes:
            say(note)
        for problem in problems:
            say(f"differs from {name}: {problem}")
    if published and problems:
        sys.exit(1)


def _check_store(root: str, *, as_json: bool) -> None:
    from shiftproof.console import remark, say_json, say_table
    from shiftproof.store import Store

    checked = Store(root).check()
    if not checked:
        raise BadInput(f"no store at {root}: expected a folder made by shiftproof predict")
    damaged = [_damage(one) for found in checked for one in found.damaged]
    rows = [
        {
            "folder": found.folder.relative_to(root).as_posix(),
            "files": found.files,
            "rows": found.rows,
            "damaged": len(found.damaged),
            "damaged before": found.damaged_before,
            "without checksums": found.without_checksums,
        }
        for found in checked
    ]
    if as_json:
        plain = [{name.replace(" ", "_"): value for name, value in row.items()} for row in rows]
        say_json({"store": root, "folders": plain, "damaged": damaged})
    else:
        say_table(rows, right=("files", "rows", "damaged", "damaged before", "without checksums"))
        unchecked = sum(found.without_checksums for found in checked)
        if unchecked:
            remark(f"{unchecked:,} files were written before there were checksums: what they hold cannot be verified")
    if damaged:
        sys.exit(1)


def _damage(found: DamagedFile) -> dict[str, str]:
    return {"file": str(found.path), "reason": found.reason}


@cli.command()
@click.argument("store")
@click.argument("others", nargs=-1, required=True)
@as_json_option
def merge(store: str, others: Sequence[str], as_json: bool) -> None:
    """Join other stores into STORE, as after a run split with --shard.

    Example: shiftproof merge runs machine-1/runs machine-2/runs
    """
    from shiftproof.console import remark, say_json
    from shiftproof.store import Store

    merged = {other: Store(store).absorb(Store(other)) for other in others}
    if as_json:
        rows = [(other, found.new_files, [_damage(one) for one in found.damaged]) for other, found in merged.items()]
        say_json([dict(zip(("store", "new_files", "damaged"), row, strict=True)) for row in rows])
        return
    for other, found in merged.items():
        remark(f"{other}: {found.new_files:,} new files")
        for one in found.damaged:
            remark(f"not merged: {one.path} is damaged ({one.reason})")


@cli.command(name="list")
@click.argument("kind", type=click.Choice(list(catalog.KINDS)))
@as_json_option
def list_(kind: str, as_json: bool) -> None:
    """List what there is of one kind, each with a line that says what it is.

    Example: shiftproof list models
    """
    from shiftproof.console import say_json, say_table

    registry = catalog.KINDS[kind]
    rows = [{"name": name, "what it is": _first_line(registry, name)} for name in registry]
    if as_json:
        say_json(rows)
    else:
        say_table(rows)


cli.add_command(corrupt)
cli.add_command(curate)
cli.add_command(models_command)
cli.add_command(perturb)
cli.add_command(probe)
cli.add_command(review)
cli.add_command(threshold)
cli.add_command(verdicts)


def _first_line(registry: Registry, name: str) -> str:
    try:
        entry = registry.load(name)
        about = entry.about if registry is catalog.EDITIONS else entry.__doc__
        return str(about or "").strip().partition("\n")[0]
    except ShiftproofError as missing:
        return f"({missing})"


def _shard(text: str) -> tuple[int, int]:
    part, _, parts = text.partition("/")
    if not (part.isdigit() and parts.isdigit() and 1 <= int(part) <= int(parts)):
        raise click.BadParameter(f"expected i/n with 1 <= i <= n, as 2/8; got {text!r}")
    return int(part), int(parts)
