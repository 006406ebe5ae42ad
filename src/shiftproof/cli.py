"""The command: each sub-command is one function of the library plus printing.

Commands import what they need inside their bodies, so that help and mistakes in typing are answered at once.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import shiftproof
from shiftproof import catalog
from shiftproof.cli_options import (
    about_images,
    about_output,
    about_predicting,
    about_store,
    about_studies,
    as_json_option,
    model_and_images,
)
from shiftproof.errors import BadInput, ShiftproofError
from shiftproof.registry import Registry

if TYPE_CHECKING:
    from shiftproof.image_sets.image_list import ImageList
    from shiftproof.image_sets.scoring import Scoring
    from shiftproof.store import Store
    from shiftproof.studies.results import Results
    from shiftproof.types import Classifier, ImageSet, Keep, ModelRef, Precision, Study

INTERRUPTED = 130
REFUSALS = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE)
"""What a machine says where there is no permission or no room: nothing that a traceback would explain."""

ABOUT_MODEL = ("name", "prepare", "classes", "gives", "features", "weights", "trained_on", "augmented", "filtered")
"""Options that say which model it is, or what to know of it."""


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(shiftproof.__version__, message="shiftproof %(version)s")
def cli() -> None:
    """Measure how a vision model holds up outside its test set.

    Start with `shiftproof demo`, then `shiftproof run MODEL IMAGES`.
    """


def main() -> None:
    """The entry point: mistakes of the user are one line and exit code 1, bugs keep their traceback."""
    _settle_streams()
    try:
        cli()
    except ShiftproofError as error:
        told = str(error)
    except OSError as error:
        if error.errno not in REFUSALS:
            raise
        told = ": ".join(map(str, filter(None, (error.strerror, error.filename))))
    else:
        return
    print(f"shiftproof: {told}", file=sys.stderr)  # noqa: T201
    sys.exit(1)


def _settle_streams() -> None:
    """Every line can be printed: in UTF-8 whatever the locale says, and to nowhere where a stream is closed."""
    for name in ("stdin", "stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("r" if name == "stdin" else "w"))  # noqa: SIM115 for good
        elif name != "stdin" and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


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

    with _interruptible(Bar(quiet=quiet)) as progress:
        results, report = run_demo(Path(output), progress=progress, tell=remark)
    if as_json:
        say_json(results.to_json(indent=1))
        remark(str(report))
    else:
        say_results(results)
        say(str(report))


@cli.command()
@model_and_images
@about_studies
@about_predicting
@about_store
@about_output
@click.option("-o", "--report", default="report.html", show_default=True, help="Where to write the report.")
def run(model: str, images: str, report: str, **options: Any) -> None:
    """Predict, measure and report: the whole job in one command.

    Example: shiftproof run lite:0 photos/ -o report.html
    """
    from shiftproof.prediction import check_classes

    classifier, image_set = _load_model(model, options), _open_images(images, options)
    studies = _studies([classifier], image_set, options)
    check_classes(classifier, image_set, _scoring(options))
    _fill(classifier, image_set, options, keep=_least_keep(studies, options))
    results = _measure(studies, image_set, options)
    _show(results, options)
    _save_report(report, results, image_set, options)


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

    tally = _fill(_load_model(model, options), _open_images(images, options), options, keep="top5", shard=shard)
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
@about_store
@as_json_option
def plan(model: str, images: str, **options: Any) -> None:
    """Show the runs the studies need, and how much of each is stored already.

    Example: shiftproof plan lite:0 photos/
    """
    from shiftproof.console import say_json, say_table
    from shiftproof.prediction import plan_runs
    from shiftproof.store import Store

    classifier, image_set = _load_model(model, options), _open_images(images, options)
    studies = _studies([classifier], image_set, options)
    rows = plan_runs(studies, [image_set], store=Store(options["store"]), scoring=_scoring(options))
    if options["as_json"]:
        say_json(rows)
    else:
        say_table(rows, right=("images", "stored", "to do"))


@cli.command()
@model_and_images
@about_studies
@about_store
@about_output
def measure(model: str, images: str, **options: Any) -> None:
    """Ask the studies of stored predictions; never runs the model.

    MODEL may also be the name of a stored model. Example: shiftproof measure lite:0 photos/ --studies accuracy
    """
    image_set = _open_images(images, options)
    studies = _studies([_stored_or_loaded(model, options)], image_set, options)
    _show(_measure(studies, image_set, options), options)


@cli.command()
@model_and_images
@about_studies
@about_store
@about_output
@click.option("-o", "--report", default="report.html", show_default=True, help="Where to write the report.")
def report(model: str, images: str, report: str, **options: Any) -> None:
    """Write the report of stored predictions; never runs the model.

    Example: shiftproof report lite:0 photos/ -o report.html
    """
    image_set = _open_images(images, options)
    studies = _studies([_stored_or_loaded(model, options)], image_set, options)
    results = _measure(studies, image_set, options)
    _show(results, options)
    _save_report(report, results, image_set, options)


@cli.command()
@click.argument("models", nargs=-1)
@click.argument("images")
@about_images
@about_studies
@about_store
@about_output
@click.option("-o", "--report", help="Also write a report.")
def compare(models: Sequence[str], images: str, report: str | None, **options: Any) -> None:
    """Put stored models side by side on the same images, with paired tests.

    Without MODELS, every stored model that has answered these images. Example: shiftproof compare lite:0 lite:1 photos/
    """
    from shiftproof.loading import has_answered
    from shiftproof.store import Store

    image_set = _open_images(images, options)
    store = Store(options["store"])
    if models:
        chosen = [_stored(name, store) for name in models]
    else:
        chosen = [model.ref for model in store.models() if has_answered(model.ref, image_set, store=store)]
    if len(chosen) < 2:
        found = ", ".join(model.ref.name for model in store.models()) or "none"
        raise BadInput(f"comparing needs two models with stored answers for {images}; stored in {store.root}: {found}")
    results = _measure(_studies(chosen, image_set, options), image_set, options)
    _show(results, options)
    if report:
        _save_report(report, results, image_set, options)


@cli.command()
@click.argument("images")
@about_images
@click.option("--published", help="The published set it should be, e.g. imagenet-a; recognised by itself where possible.")
@as_json_option
def check(images: str, published: str | None, as_json: bool, **options: Any) -> None:
    """Say what an image set is, and how it differs from the published one it looks like; opens no image.

    Example: shiftproof check /data/imagenet-a --published imagenet-a
    """
    from shiftproof.console import say, say_json
    from shiftproof.image_sets.published import check_published

    image_set = _open_images(images, options)
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

    new = {other: Store(store).absorb(Store(other)) for other in others}
    if as_json:
        say_json([{"store": other, "new_files": files} for other, files in new.items()])
    else:
        for other, files in new.items():
            remark(f"{other}: {files:,} new files")


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


def _first_line(registry: Registry, name: str) -> str:
    try:
        return str(registry.load(name).__doc__ or "").strip().partition("\n")[0]
    except ShiftproofError as missing:
        return f"({missing})"


def _load_model(spec: str, options: dict[str, Any]) -> Classifier:
    from shiftproof.models import load_model
    from shiftproof.types import Seen

    own_word = options["trained_on"] or options["augmented"] or options["filtered"]
    seen = Seen(options["trained_on"] or "not declared", tuple(options["augmented"]), tuple(options["filtered"]))
    return load_model(
        spec,
        name=options["name"],
        prepare=options["prepare"],
        classes=options["classes"],
        gives=options["gives"],
        features=options["features"],
        output=options["scores"],
        channels_last=options["channels_last"],
        weights=options["weights"],
        device=options["device"],
        precision=options["autocast"],
        threads=options["threads"],
        seen=seen if own_word else None,
    )


def _open_images(location: str, options: dict[str, Any]) -> ImageList:
    from shiftproof.image_sets import open_images

    return open_images(location, kind=options["kind"], labels=options["labels"], label=options["label"])


def _stored(name: str, store: Store) -> ModelRef:
    """A stored model by its name, or by the beginning of its fingerprint where names repeat."""
    from shiftproof.errors import UnknownName

    found = [model.ref for model in store.models() if name == model.ref.name or model.ref.fingerprint.startswith(name)]
    if len(found) > 1:
        prints = ", ".join(ref.fingerprint[:8] for ref in found)
        raise BadInput(f"{len(found)} stored models are called {name!r}; name one by its fingerprint: {prints}")
    if not found:
        raise UnknownName("stored model", name, (model.ref.name for model in store.models()))
    return found[0]


def _stored_or_loaded(name: str, options: dict[str, Any]) -> ModelRef:
    """A stored model by its name; the model itself where options say something of it, which the store then learns."""
    from shiftproof.errors import UnknownName
    from shiftproof.store import Store, StoredModel

    store = Store(options["store"])
    if not any(options[option] for option in ABOUT_MODEL):
        try:
            return _stored(name, store)
        except UnknownName:
            pass
    model = _load_model(name, options)
    if store.model(model.ref) is not None:
        store.save_model(StoredModel.of(model))
    return model.ref


def _studies(models: Sequence[Classifier | ModelRef], image_set: ImageSet, options: dict[str, Any]) -> list[Study]:
    """The chosen studies, or all that can say something about this many models."""
    chosen = options["studies"].split(",") if options["studies"] else list(catalog.STUDIES)
    kinds = [catalog.STUDIES.load(name.strip()) for name in chosen]
    fitting = [kind for kind in kinds if len(models) >= getattr(kind, "least_models", 1)]
    if options["studies"] and len(fitting) < len(kinds):
        raise BadInput(f"some of {options['studies']} need several models; use shiftproof compare")
    return [kind(models=models, image_set=image_set) for kind in fitting]


def _least_keep(studies: Sequence[Study], options: dict[str, Any]) -> Keep:
    from shiftproof.types import richest

    return richest([_scoring(options).keep, *(study.keep for study in studies)])


def _fill(
    model: Classifier, images: ImageSet, options: dict[str, Any], *, keep: Keep, shard: tuple[int, int] = (1, 1)
) -> Any:
    from shiftproof.console import Bar, remark
    from shiftproof.prediction import fill
    from shiftproof.store import Store
    from shiftproof.types import richest

    if not options["quiet"]:
        described = ", ".join(f"{key} {value}" for key, value in model.preparation.describe().items() if value is not None)
        remark(f"{model.ref.name}: {described}")
        for note in (*getattr(model, "notes", ()), *getattr(images, "notes", ())):
            remark(f"note: {note}")
    precision: Precision = "float16" if options["half"] else "float32"
    with _interruptible(Bar(quiet=options["quiet"])) as progress:
        return fill(
            model,
            images,
            store=Store(options["store"]),
            keep=richest([options["keep"] or keep, keep]),
            precision=precision,
            batch_size=options["batch_size"],
            workers=options["workers"],
            strict=options["strict"],
            shard=shard,
            progress=progress,
        )


class _interruptible:  # noqa: N801 reads as a statement
    """Ctrl-C becomes a sentence: nothing that was committed is lost."""

    def __init__(self, progress: Any) -> None:
        self._progress = progress

    def __enter__(self) -> Any:
        return self._progress

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self._progress.stop()
        if kind is KeyboardInterrupt:
            print("\nstopped; every finished batch is stored: the same command goes on from here", file=sys.stderr)  # noqa: T201
            sys.exit(INTERRUPTED)


def _shard(text: str) -> tuple[int, int]:
    part, _, parts = text.partition("/")
    if not (part.isdigit() and parts.isdigit() and 1 <= int(part) <= int(parts)):
        raise click.BadParameter(f"expected i/n with 1 <= i <= n, as 2/8; got {text!r}")
    return int(part), int(parts)


def _measure(studies: Sequence[Study], image_set: ImageSet, options: dict[str, Any]) -> Results:
    from shiftproof.studies import measure as measure_studies

    return measure_studies(studies, store=options["store"], image_sets=[image_set], scoring=_scoring(options))


def _scoring(options: dict[str, Any]) -> Scoring:
    from shiftproof.image_sets.scoring import Scoring, load_groups

    groups = load_groups(options["merge"]) if options["merge"] else None
    return Scoring(options["scored"], options["unmatched"], groups)


def _show(results: Results, options: dict[str, Any]) -> None:
    from shiftproof.console import say_json, say_results
    from shiftproof.files import write_whole

    if options["csv"]:
        write_whole(Path(options["csv"]), results.to_csv().encode())
    if options["parquet"]:
        write_whole(Path(options["parquet"]), results.to_parquet())
    if options["as_json"]:
        say_json(results.to_json(indent=1))
    else:
        say_results(results)


def _save_report(path: str, results: Results, image_set: ImageSet, options: dict[str, Any]) -> None:
    from shiftproof.console import remark, say
    from shiftproof.image_sets.opener import image_opener
    from shiftproof.reports import save_report

    saved = save_report(path, results, open_image=image_opener([image_set]))
    (remark if options["as_json"] else say)(str(saved))
