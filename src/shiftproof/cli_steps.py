"""The steps that commands are made of: from typed options to models, image sets, studies, results and a report."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shiftproof.cli_models import Options, answer_with_boxes, answers_with_boxes, tell_versions
from shiftproof.errors import BadInput

if TYPE_CHECKING:
    from shiftproof.answers import Model
    from shiftproof.corruptions.editions import Fit
    from shiftproof.curation.screens import Screen
    from shiftproof.image_sets.image_list import ImageList
    from shiftproof.image_sets.scoring import Scoring
    from shiftproof.prediction import Tally
    from shiftproof.studies.results import Results
    from shiftproof.types import Classifier, ImageSet, ModelRef, Precision, Study

INTERRUPTED = 130
LONGEST_TEXT = 50_000
"""Letters of a text that people read before they begin."""


@dataclass(frozen=True)
class Bench:
    """The studies that were asked for, every image set they look at, and models that are asked beside the one named."""

    studies: Sequence[Study]
    image_sets: Sequence[ImageSet]
    companions: Sequence[Classifier] = ()


def images_at(location: str, options: Options) -> ImageList:
    """The image set at a location, read as the options say."""
    from shiftproof.image_sets import open_images

    return open_images(
        location,
        kind=options["kind"],
        labels=options["labels"],
        label=options["label"],
        allow_outside=options.get("allow_outside") or None,  # only manifests have this option
    )


def images_asked(location: str, options: Options) -> ImageSet:
    """The image set that is to be measured: all of it, or those classes that were asked for, labelled as was asked."""
    from shiftproof.class_lists import classes_from

    images: ImageSet = images_at(location, options)
    if options["only_classes"] is not None:
        from shiftproof.image_sets.views import of_classes

        images = of_classes(images, wnids_named(options["only_classes"]))
    if options["above"] is not None:
        from shiftproof.image_sets.coarser_classes import labelled_above

        images = labelled_above(images, classes_from(options["above"]))
    return images


def known_images(options: Options, screen: Screen | None = None) -> ImageList | None:
    """The images whose answer is known, where such are named; with a screen, checked before anything else is done."""
    from shiftproof.curation.known_items import check_known
    from shiftproof.image_sets import open_images

    if not options["known"]:
        return None
    if not options.get("project", True):
        raise BadInput("--known is for a review project; say into which folder it goes with --project")
    known = open_images(options["known"])
    if screen is not None:
        check_known(known, screen)
    return known


def asked_of_people(options: Options) -> dict[str, Any]:
    """How many people judge each item, which items are verified, and what people read before they begin."""
    from shiftproof.curation.project import FEWEST_VERIFYING, check_enough_verify

    verify = options.get("verify")
    told = {"instructions": instructions_in(options["instructions"]) if options["instructions"] else ""}
    if not options.get("project", True) and (verify or told["instructions"]):
        raise BadInput("--verify and --instructions are for a review project; say into which folder it goes with --project")
    each = options["reviewers_each"] or (FEWEST_VERIFYING if verify else 2)
    if not verify:
        return {**told, "reviewers_each": each}
    check_enough_verify(each)
    return {**told, "reviewers_each": each, "verify": verify}


def text_in(path: str, what: str) -> str:
    """The text in a file that people are shown; BadInput where it is none."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig").strip()
    except OSError as problem:
        raise BadInput(f"{path} cannot be read as {what}: {problem.strerror or problem}") from problem
    except UnicodeDecodeError as problem:
        raise BadInput(f"{path} cannot be read as {what}: it is no text in UTF-8") from problem
    if "\0" in text or len(text) > LONGEST_TEXT:
        raise BadInput(f"{path} should hold {what} of at most {LONGEST_TEXT:,} letters, in plain text")
    return text


def instructions_in(path: str) -> str:
    """What people read before they begin, out of a file; BadInput where nothing is in it."""
    text = text_in(path, "instructions")
    if not text:
        raise BadInput(f"{path} is empty; write into it what people should read before they begin")
    return text


def wnids_named(named: str) -> Sequence[str]:
    """The wnids of a published list of classes, or of a file."""
    from shiftproof.class_lists import classes_from
    from shiftproof.reference import wnids_of

    published = named in ("imagenet-a", "imagenet-o", "imagenet-r")
    return wnids_of(f"{named.replace('-', '_')}_classes") if published else classes_from(Path(named)).keys


def pictures_as_typed(
    options: Options, models: Sequence[Model | ModelRef], images: ImageSet, *, picture: str | None = None
) -> Options:
    """How pictures are cut and changed, as studies of corruption take it; `picture` is the one taken where none is typed."""
    from shiftproof.corruptions.frost_pictures import frost_pictures

    picture = picture if options["at"] == "picture" else options["at"]
    return {
        "edition": options["edition"],
        "fit": fit_of(options, models, images, picture=picture),
        "output": options["output"],
        "picture": picture,
        "seed": options["seed"],
        "frost": frost_pictures(options["frost_folder"]) if options["frost_folder"] else None,
        "scale_strengths": options["scale_strengths"],
    }


def fit_of(
    options: Options, models: Sequence[Model | ModelRef], images: ImageSet, *, picture: str | None = None
) -> Fit | None:
    """The edition for the size of these images and of the models' inputs; None where one was typed."""
    from shiftproof.image_sets.picture_sizes import edition_for
    from shiftproof.store import Store
    from shiftproof.types import ModelRef

    if options["edition"] is not None:
        return None
    store = Store(options["store"])
    prepared = [
        (model.name, stored.preparation if (stored := store.model(model)) else {})
        if isinstance(model, ModelRef)
        else (model.ref.name, model.preparation.describe())
        for model in models
    ]
    return edition_for(images, prepared, picture=picture)


def say_edition(fit: Fit | None, options: Options) -> None:
    """Tells which edition was taken where none was typed, and whether it fits."""
    from shiftproof.console import remark

    if fit is None or options.get("quiet"):
        return
    remark(f"edition {fit.edition}: {fit.why}")
    for warning in fit.warnings(scaled=bool(options.get("scale_strengths"))):
        remark(f"warning: {warning}")


def say_editions(bench: Bench, options: Options) -> None:
    """The same of every study that makes pictures."""
    for fit in dict.fromkeys(getattr(study, "fit", None) for study in bench.studies):
        say_edition(fit, options)


def bench_of(models: Sequence[Model | ModelRef], images: ImageSet, options: Options) -> Bench:
    """The chosen studies of the images, and of the same set before people reviewed it where that is named."""
    asked = [images, *([images_asked(options["unreviewed"], options)] if options["unreviewed"] else [])]
    if len({one.ref.name for one in asked}) < len(asked):
        raise BadInput(f"both sets are called {images.ref.name}, so nobody could tell their numbers apart; rename a folder")
    made = [bench for one in asked for bench in _benches(models, one, options)]
    sets = {one.ref: one for bench in [Bench([], asked), *made] for one in bench.image_sets}
    companions = {one.ref: one for bench in made for one in bench.companions}
    return Bench([study for bench in made for study in bench.studies], list(sets.values()), list(companions.values()))


def _benches(models: Sequence[Model | ModelRef], images: ImageSet, options: Options) -> list[Bench]:
    """The chosen studies, or all that are asked unasked and can say something about this many models."""
    from shiftproof.cli_studies import maker_of, studies_asked

    kinds = studies_asked(options, images, boxes=answer_with_boxes(models, options))
    fitting = {name: kind for name, kind in kinds.items() if len(models) >= getattr(kind, "least_models", 1)}
    if options["studies"] and len(fitting) < len(kinds):
        raise BadInput(f"some of {options['studies']} need several models; use shiftproof compare")
    return [maker_of(name)(kind, models, images, options) for name, kind in fitting.items()]


def fill_bench(model: Model, bench: Bench, options: Options) -> None:
    """Every run of this model and its companions that the studies name, and those of others checked to be there."""
    from shiftproof.console import Bar
    from shiftproof.image_sets.clusters import clustering
    from shiftproof.prediction import check_stored, fill_studies
    from shiftproof.store import Store
    from shiftproof.types import richest

    store = Store(options["store"])
    asked: list[Model] = [model, *bench.companions]
    studies = tell_unmeasurable(bench, [model], options)
    clustering(options.get("cluster")).check(bench.image_sets)
    check_stored(studies, bench.image_sets, store=store, besides=[one.ref for one in asked])
    say_preparation(model, bench.image_sets, options)
    say_editions(bench, options)
    with interruptible(Bar(quiet=options["quiet"])) as progress:
        for one in asked:
            fill_studies(
                one,
                [study for study in studies if one is model or any(run.model == one.ref for run in study.runs())],
                bench.image_sets,
                store=store,
                keep=richest([options["keep"] or "top5", scoring_of(options).keep]),
                precision=_precision(options),
                batch_size=options["batch_size"],
                workers=options["workers"],
                strict=options["strict"],
                scoring=scoring_of(options),
                progress=progress,
            )


def tell_unmeasurable(bench: Bench, models: Sequence[Model | ModelRef], options: Options) -> list[Study]:
    """The studies that can measure something; of the others it is said why not. BadInput where none is left."""
    from shiftproof.console import remark
    from shiftproof.planning import Known, measurable
    from shiftproof.store import Store
    from shiftproof.types import ModelRef

    store = Store(options["store"])
    known = [store.model(model) if isinstance(model, ModelRef) else model for model in models]
    classes = [None if model is None else model.classes for model in known]
    left, reasons = measurable(bench.studies, Known.of(classes, bench.image_sets, scoring_of(options)))
    if reasons and not left:
        raise BadInput(f"nothing can be measured: {'; '.join(reasons)}")
    for reason in reasons:
        remark(f"left out: {reason}")
    return left


def fill_images(model: Model, images: ImageSet, options: Options, *, shard: tuple[int, int]) -> Tally:
    """The unchanged images, or this machine's part of them."""
    from shiftproof.console import Bar, remark
    from shiftproof.prediction import fill
    from shiftproof.store import Store

    say_preparation(model, [images], options)
    if not any(sample.labels for sample in images.samples) and not options["quiet"]:
        remark(f"note: no image of {images.ref.name} has a label: until some have, only what needs none can be measured")
    with interruptible(Bar(quiet=options["quiet"])) as progress:
        return fill(
            model,
            images,
            store=Store(options["store"]),
            keep="boxes" if answers_with_boxes(model, options) else options["keep"] or "top5",
            precision=_precision(options),
            batch_size=options["batch_size"],
            workers=options["workers"],
            strict=options["strict"],
            shard=shard,
            progress=progress,
        )


def say_preparation(model: Model, image_sets: Sequence[ImageSet], options: Options) -> None:
    """Tells how images become the model's input, and what else is to be known of both, before a long run."""
    from shiftproof.console import remark
    from shiftproof.store import Store
    from shiftproof.stored_models import preparation_told

    if options["quiet"]:
        return
    remark(f"{model.ref.name}: {preparation_told(model.preparation.describe())}")
    notes = [*getattr(model, "notes", ()), *(note for images in image_sets for note in getattr(images, "notes", ()))]
    for note in dict.fromkeys(notes):
        remark(f"note: {note}")
    tell_versions(model.ref, Store(options["store"]))


def _precision(options: Options) -> Precision:
    return "float16" if options["half"] else "float32"


class interruptible:  # noqa: N801 reads as a statement
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


def measured(bench: Bench, options: Options) -> Results:
    """What the studies find in the store."""
    from shiftproof.studies import measure

    results = measure(
        bench.studies,
        store=options["store"],
        image_sets=bench.image_sets,
        scoring=scoring_of(options),
        cluster=options.get("cluster"),
    )
    if results.skipped and not results.models:  # no study read a single run
        raise BadInput(f"nothing can be measured: {'; '.join(results.skipped)}")
    return results


def scoring_of(options: Options) -> Scoring:
    """How answers are scored, as the options say."""
    from shiftproof.image_sets.scoring import Scoring, load_groups

    groups = load_groups(options["merge"]) if options["merge"] else None
    return Scoring(options["scored"], options["unmatched"], groups)


def show(results: Results, options: Options) -> None:
    """Results for people or as JSON, and as files where asked."""
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


def save_report_of(results: Results, bench: Bench, path: str, options: Options) -> None:
    """The report as a file; its path is the last line printed."""
    from shiftproof.console import remark, say
    from shiftproof.image_sets.opener import image_opener
    from shiftproof.reports import save_report

    saved = save_report(path, results, open_image=image_opener(bench.image_sets))
    (remark if options["as_json"] else say)(str(saved))
