"""Test sets as calls: what `shiftproof curate` does, a function for each command.

A dataset is a location or a dataset, a model a spec such as ``lite:0`` or a model. Candidates for review become a review
project, a folder that `serve_review` serves to reviewers. What is worth knowing before a long run is given to `tell`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeAlias

from shiftproof.bench.steps import Bench, Tell
from shiftproof.curation.adversarial import filter_adversarial
from shiftproof.curation.boxes import UsualShares, load_shares, measured_shares
from shiftproof.curation.crop_set import CropSet, ReferenceModels, box_project, crop_project, curate_crops
from shiftproof.curation.duplicates import Duplicate, DuplicateChoice, FeatureDistances, save_listing, without_duplicates
from shiftproof.curation.duplicates_section import duplicate_results
from shiftproof.curation.filtered_project import FilteredProject, save_filtered
from shiftproof.curation.filtering import ClassChoice, FilterModels, choose_some, load_left_out
from shiftproof.curation.frames import FrameProject, label_anchors, pair_frames
from shiftproof.curation.human_test import CONSENT, Rounds, human_test_project
from shiftproof.curation.known_items import check_known
from shiftproof.curation.novel import filter_novel, nearest_id_images
from shiftproof.curation.novel_classes import Selection, noun_named, select_novel_classes, sister_pairs, wnids_from
from shiftproof.curation.ood_candidates import (
    DROP_REASONS,
    NearestPair,
    NewClasses,
    candidate_pairs,
    choose_images,
    class_pair_project,
    nearest_pair_project,
    save_manifest,
    save_pairs,
    with_folders,
)
from shiftproof.curation.options import (
    AdversarialOptions,
    CandidateSettings,
    CropOptions,
    DuplicateOptions,
    ExportOptions,
    FilterOptions,
    FrameOptions,
    GoldSettings,
    HumanTestOptions,
    NovelClassOptions,
    NovelOptions,
    PairOptions,
    ReviewerSettings,
    VerifySettings,
)
from shiftproof.curation.project import FEWEST_VERIFYING, Project, ReviewSettings, check_enough_verify, load_project
from shiftproof.curation.screens import CLARITY, CLASS_PAIR, NEAREST_PAIR, Screen
from shiftproof.datasets import open_dataset
from shiftproof.datasets.classes import classes_from, wnids_named
from shiftproof.datasets.image_list import ImageList, image_opener, some_of
from shiftproof.datasets.subsets import scoring_of
from shiftproof.datasets.wordnet import wordnet
from shiftproof.errors import BadInput, listed
from shiftproof.files import csv_bytes, write_whole
from shiftproof.models import load_spelled, spelled_options
from shiftproof.models.by_settings import load_classifier
from shiftproof.options import DatasetSettings, EngineSettings, MatchingSettings, ModelSettings, PredictionSettings
from shiftproof.places import local_path
from shiftproof.reports.build import save_report
from shiftproof.review.export import Exported, agreed_labels, drawn_boxes, export_classes, failure_mode_project
from shiftproof.review.export import export as export_images
from shiftproof.review.jobs import instructions_in, open_database, reviewed, text_in
from shiftproof.review.revision import Revision, continue_from
from shiftproof.runs.load import load_predictions
from shiftproof.runs.predict import Progress
from shiftproof.runs.store import Store
from shiftproof.types import Classifier, Model, ModelRef, Run

Images: TypeAlias = str | Path | ImageList
"""A dataset, or where one is."""

OF_ANCHORS = ("k", "anchors", "every", "count", "seed")
"""Options that say which frames there are, as datasets of clips take them."""


def adversarial(
    dataset: Images,
    project: str | Path,
    filters: Sequence[str | Classifier],
    *,
    options: AdversarialOptions | None = None,
    review: CandidateSettings | None = None,
    dataset_options: DatasetSettings | None = None,
    limit: int | None = None,
    store: str | Path | Store = "runs",
    workers: int | None = None,
    engine: str | EngineSettings | None = None,
    progress: Progress | None = None,
    tell: Tell | None = None,
) -> FilteredProject:
    """A review project of the images that every filter model misclassifies, as ImageNet-A was made."""
    options = options or AdversarialOptions()
    asked = _review(review, CLARITY)
    with Bench.of(store, dataset_options, tell=tell, engine=engine) as bench:
        models = _filter_models(filters, options, bench)
        images = some_of(bench.images(dataset), limit)
        classes = _class_choice(models, options)
        chosen = FilterModels(models, bench.store, classes, workers=workers, engine=bench.engine, progress=progress)
        filtered = filter_adversarial(
            images,
            chosen,
            most_share=options.max_probability,
            per_confusion=options.per_confusion,
            per_class=options.per_class,
        )
        return save_filtered(filtered, images, project, review=_with_shown(asked, chosen), progress=progress)


def novel(
    dataset: Images,
    project: str | Path,
    filters: Sequence[str | Classifier],
    *,
    options: NovelOptions | None = None,
    review: CandidateSettings | None = None,
    dataset_options: DatasetSettings | None = None,
    limit: int | None = None,
    store: str | Path | Store = "runs",
    workers: int | None = None,
    engine: str | EngineSettings | None = None,
    progress: Progress | None = None,
    tell: Tell | None = None,
) -> FilteredProject:
    """A review project of OOD images on which every filter model is confident, as ImageNet-O was made."""
    options = options or NovelOptions()
    asked = _review(review, NEAREST_PAIR if options.id_images else CLARITY)
    with Bench.of(store, dataset_options, tell=tell, engine=engine) as bench:
        models = _filter_models(filters, options, bench)
        images = some_of(bench.images(dataset), limit)
        id_images = open_dataset(options.id_images) if options.id_images else None
        classes = _class_choice(models, options)
        chosen = FilterModels(models, bench.store, classes, workers=workers, engine=bench.engine, progress=progress)
        filtered = filter_novel(
            images,
            chosen,
            None if options.id_classes == "none" else wnids_from(options.id_classes),
            subtrees=_synsets(options.exclude_hyponyms),
            least_share=options.min_confidence,
            per_class=options.per_class,
        )
        beside = nearest_id_images(filtered, images, id_images, chosen) if id_images else None
        asked = _with_shown(asked, chosen)
        return save_filtered(filtered, images, project, review=asked, beside=beside, progress=progress)


@dataclass(frozen=True)
class NovelClasses:
    """The OOD classes, the excluded ones with their reasons, and images of the former where some were asked for."""

    selection: Selection
    images: Mapping[str, Sequence[str]] | None

    @cached_property
    def removed(self) -> list[dict[str, str | None]]:
        """Each excluded class: its name, wnid, the step that excluded it, why, and the class that is the cause."""
        return [{"name": wordnet().name(one.wnid), **asdict(one)} for one in self.selection.removed]


def novel_classes(
    options: NovelClassOptions,
    *,
    output: str | Path | None = None,
    project: str | Path | None = None,
    review: VerifySettings | None = None,
    tell: Tell | None = None,
) -> NovelClasses:
    """OOD classes by WordNet: none is an ID class, or a hyponym or hypernym of one; every excluded class has its reason.

    `output` is a folder for `classes.csv`, `removed.csv` and, where images are chosen, `manifest.csv`; `project` one for a
    review project that shows each class beside its nearest ID classes.
    """
    if options.images and output is None:
        raise BadInput("--images writes a manifest of the images chosen; name its folder with -o")
    if project is not None and not options.images:
        raise BadInput("--project shows images of the classes; name their folder with --images")
    asked = _review(review, project=project)
    known, offered = wnids_from(options.id_classes), wnids_from(options.candidates)
    chosen = frozenset(wnids_from(options.chosen)) if options.chosen else None
    strangers = (chosen or frozenset()).difference(offered)
    if strangers and tell is not None:
        tell(f"{len(strangers):,} of {len(chosen or ()):,} chosen classes are no candidates: {listed(sorted(strangers))}")
    selection = select_novel_classes(
        known,
        offered,
        subtrees=_synsets(options.exclude_hyponyms),
        boundary=options.boundary,
        sisters_only=options.sisters,
        chosen=chosen,
    )
    images = None
    if options.images:
        images = choose_images(options.images, selection.classes, per_class=options.per_class, seed=options.seed)
    found = NovelClasses(selection, images)
    if output is not None:
        _save_classes(found, known, options, local_path(output, "a list of classes"))
    if project is not None:
        id_images = open_dataset(options.id_images) if options.id_images else None
        new = NewClasses(selection, known, options.images or "", images or {}, id_images)
        class_pair_project(new, project, references=options.per_class, review=asked)
    return found


def _save_classes(found: NovelClasses, id_classes: Sequence[str], options: NovelClassOptions, folder: Path) -> None:
    """Two tables of the candidates: kept classes with their nearest ID classes, excluded ones with the reason."""
    if found.images is not None:
        save_manifest(folder / "manifest.csv", options.images or "", found.images)
    tree, left, sisters = wordnet(), found.selection.classes, dict[str, list[str]]()
    for wnid, sister in sister_pairs(id_classes, left):
        sisters.setdefault(wnid, []).append(sister)
    kept = [(wnid, tree.name(wnid), ", ".join(tree.words(wnid)), "|".join(sisters.get(wnid, ()))) for wnid in left]
    columns = ("wnid", "name", "step", "reason", "cause")
    gone = [[row[column] or "" for column in columns] for row in found.removed]
    write_whole(folder / "classes.csv", csv_bytes([("wnid", "name", "words", "sisters"), *kept]))
    write_whole(folder / "removed.csv", csv_bytes([columns, *gone]))


@dataclass(frozen=True)
class Pairs:
    """OOD images, each with its nearest ID image, and the number of images of both."""

    pairs: Sequence[NearestPair]
    ood_images: int
    id_images: int
    drop_reasons: Sequence[str] = DROP_REASONS  # for the column drop of the list


def pairs(
    id_dataset: Images,
    ood_dataset: Images,
    model: str | Model | ModelRef,
    *,
    options: PairOptions | None = None,
    output: str | Path | None = None,
    project: str | Path | None = None,
    review: VerifySettings | None = None,
    model_options: ModelSettings | None = None,
    store: str | Path | Store = "runs",
    tell: Tell | None = None,
) -> Pairs:
    """Each OOD image with its nearest ID image in the stored features of a model, the nearest pairs first.

    `output` is a list to write, .csv or .jsonl; `project` a folder for a review project of the pairs.
    """
    asked = _review(review, project=project)
    with Bench.of(store, model_options=model_options, tell=tell) as bench:
        ref = bench.stored_or_loaded(model)
        inner, outer = bench.images(id_dataset), with_folders(bench.images(ood_dataset))
        known, new = (load_predictions(Run(ref, one.ref), one, store=bench.store, keep="features") for one in (inner, outer))
        found = candidate_pairs(new, known, first=(options or PairOptions()).first)
        if output is not None:
            save_pairs(local_path(output, "a list of pairs"), found)
        if project is not None:
            nearest_pair_project(found, outer, inner, project, model=ref, review=asked)
        return Pairs(found, len(new), len(known))


DUPLICATE_COLUMNS = ("id", "step", "reason", "other", "other_set", "by", "distance")


@dataclass(frozen=True)
class Duplicates:
    """The images kept, and their near-duplicates."""

    choice: DuplicateChoice

    @cached_property
    def removed(self) -> list[dict[str, Any]]:
        """What was removed and why, one row each."""
        return [
            {"id": gone.item, "step": gone.step, "reason": str(gone.reason), **_likeness(gone.reason)}
            for gone in self.choice.removed
        ]


def _likeness(reason: Duplicate | str) -> dict[str, Any]:
    if isinstance(reason, str):
        return dict.fromkeys(("other", "other_set", "by", "distance"), "")
    distance = round(reason.distance, 6)
    return {"other": reason.other, "other_set": reason.dataset.name, "by": reason.by, "distance": distance}


def duplicates(
    dataset: Images,
    *,
    options: DuplicateOptions | None = None,
    model: str | Model | ModelRef | None = None,
    output: str | Path | None = None,
    report: str | Path | None = None,
    model_options: ModelSettings | None = None,
    store: str | Path | Store = "runs",
    workers: int | None = None,
    progress: Progress | None = None,
    tell: Tell | None = None,
) -> Duplicates:
    """The images without near-duplicates of each other, or of a training set; the first of each group is kept.

    The stored features of a `model` are compared too where one is named. `output` is a folder for `manifest.csv`, which
    lists the images kept, and `duplicates.csv`; `report` an HTML file that shows the pairs side by side.
    """
    options = options or DuplicateOptions()
    with Bench.of(store, model_options=model_options, tell=tell) as bench:
        images = bench.images(dataset)
        against = open_dataset(options.against) if options.against else None
        features = None
        if model is not None:
            features = FeatureDistances(bench.stored_or_loaded(model), bench.store, options.max_distance)
        choice = without_duplicates(
            images,
            against=against,
            bits=options.bits,
            features=features,
            store=bench.store.root,
            workers=workers,
            progress=progress,
        )
        found = Duplicates(choice)
        if output is not None:
            rows = [[row[name] for name in DUPLICATE_COLUMNS] for row in found.removed]
            folder = local_path(output, "a list of duplicates")
            write_whole(folder / "duplicates.csv", csv_bytes([DUPLICATE_COLUMNS, *rows]))
            save_listing(folder / "manifest.csv", images, choice.left)
        if report is not None:
            sets = [one for one in (images, against) if one is not None]
            results = duplicate_results(choice, sets)
            save_report(report, results, open_image=image_opener(sets), title=f"Duplicates in {images.name}")
        return found


def crops(
    dataset: Images,
    destination: str | Path,
    filters: Sequence[str | Classifier] = (),
    *,
    options: CropOptions,
    project: str | Path | None = None,
    review: VerifySettings | None = None,
    database: str | None = None,
    model_options: ModelSettings | None = None,
    matching: MatchingSettings | None = None,
    limit: int | None = None,
    store: str | Path | Store = "runs",
    workers: int | None = None,
    progress: Progress | None = None,
    tell: Tell | None = None,
) -> CropSet:
    """Objects of a boxed dataset as crops, without those that are too small or classified correctly (ImageNet-A-Plus).

    `project` is a folder for a review project of the crops; `database` has the votes on annotated boxes.
    """
    asked, usual = _review(review, CLARITY, project=project), _usual_shares(options)
    with Bench.of(store, model_options=model_options, tell=tell) as bench:
        reference = _reference_models(filters, options, matching or MatchingSettings(), bench)
        images = bench.images(dataset)
        if options.annotated:
            found = reviewed(options.annotated, database)
            images = drawn_boxes(found.project, found.summary.verdicts, images)
        images = some_of(images, limit)
        made = curate_crops(
            images,
            destination,
            usual,
            times_smaller=options.times_smaller,
            reference=reference,
            output=options.encoding,
            workers=workers,
            progress=progress,
        )
        if project is not None:
            crop_project(made, images, project, reference=reference, review=asked, progress=progress)
        return made


def _usual_shares(options: CropOptions) -> UsualShares:
    if bool(options.reference) == bool(options.shares):
        raise BadInput("give the usual object proportion of each class: --reference BOXES or --shares TABLE")
    return load_shares(options.shares) if options.shares else measured_shares(open_dataset(options.reference or ""))


def _reference_models(
    filters: Sequence[str | Classifier], options: CropOptions, matching: MatchingSettings, bench: Bench
) -> ReferenceModels | None:
    if not filters:
        return None
    if bench.model_options.name and len(filters) > 1:
        raise BadInput("--name names one model, but --filter names several; name each as MODEL?name=NAME")
    models = [_filter_model(one, bench.model_options) if isinstance(one, str) else one for one in filters]
    for model in models:
        bench.tell_preprocessing(model, [], PredictionSettings())
    return ReferenceModels(models, bench.store, options.filter_crop, scoring_of(matching))


def _filter_model(spelled: str, options: ModelSettings) -> Classifier:
    """A model as --filter names it: options of its own win."""
    spec, own = spelled_options(spelled)
    return load_classifier(spec, dataclasses.replace(options, **own))


def boxes(
    dataset: Images,
    project: str | Path,
    *,
    review: GoldSettings | None = None,
    limit: int | None = None,
    progress: Progress | None = None,
) -> Project:
    """A review project in which reviewers annotate boxes on a labelled dataset by extreme points."""
    with Bench.of("runs") as bench:
        return box_project(some_of(bench.images(dataset), limit), project, review=_review(review), progress=progress)


def frames(
    clips: Images,
    project: str | Path,
    *,
    options: FrameOptions | None = None,
    review: VerifySettings | None = None,
    database: str | None = None,
    progress: Progress | None = None,
) -> FrameProject:
    """A review project of frames around anchor frames, each beside its anchor; or of the anchors alone, to label them.

    `database` has the votes of the review that labelled the anchors.
    """
    options = options or FrameOptions()
    if options.label_anchors and options.labelled:
        raise BadInput("--label-anchors annotates labels and --labelled takes annotated ones: choose one of them")
    if options.label_anchors and review is not None and review.verify:
        raise BadInput("--verify is for pairs; anchors are labelled by --reviewers-per-item reviewers each")
    asked, labels = _review(review), None
    if options.labelled:
        found = reviewed(options.labelled, database)
        labels = agreed_labels(found.project, found.summary.verdicts)
    chosen = {name: getattr(options, name) for name in OF_ANCHORS if name in options.given}
    images = clips if isinstance(clips, ImageList) else open_dataset(clips, **chosen)
    if options.label_anchors:
        classes = classes_from(options.anchor_classes) if options.anchor_classes else None
        return label_anchors(images, project, classes=classes, review=asked, progress=progress)
    return pair_frames(images, project, labels=labels, reasons=options.reasons, review=asked, progress=progress)


def human_test(
    dataset: Images,
    project: str | Path,
    *,
    options: HumanTestOptions | None = None,
    review: ReviewerSettings | None = None,
    progress: Progress | None = None,
) -> Project:
    """A review project that measures human accuracy on a dataset, as for ImageNet-A-Plus."""
    options = options or HumanTestOptions()
    asked = dataclasses.replace(_review(review), seed=options.seed)
    with Bench.of("runs") as bench:
        return human_test_project(
            bench.images(dataset),
            project,
            learned=open_dataset(options.training_images) if options.training_images else None,
            qualifying=open_dataset(options.qualification_images) if options.qualification_images else None,
            classes=wnids_named(options.only_classes) if options.only_classes else None,
            rounds=Rounds(options.training_per_class, options.qualify, options.test, options.attempts),
            even=options.balanced,
            pass_mark=options.pass_mark,
            consent=text_in(options.consent, "a consent text") if options.consent else CONSENT,
            review=asked,
            progress=progress,
        )


def export(
    project: str | Path,
    destination: str | Path,
    *,
    options: ExportOptions | None = None,
    database: str | None = None,
    progress: Progress | None = None,
) -> Exported:
    """The kept items as a dataset in a new folder with a data card and checksums; kept classes are a list."""
    options = options or ExportOptions()
    found = reviewed(project, database)
    if options.before_review and options.rejected_too:
        raise BadInput("--before-review writes every item, --rejected-too those with a verdict: choose one of them")
    if found.project.screen_name == CLASS_PAIR.name:
        if options.before_review or options.rejected_too or options.layout != "folder":
            title = found.project.title
            raise BadInput(f"{title} keeps classes and no images, so it is exported as a list, without other options")
        return export_classes(found.project, found.summary, destination, progress=progress)
    return export_images(
        found.project,
        found.summary,
        destination,
        part="asked" if options.before_review else "decided" if options.rejected_too else "kept",
        layout=options.layout,
        pixels=options.pixels,
        progress=progress,
    )


def failure_modes(
    kept_in: str | Path, project: str | Path, *, review: ReviewerSettings | None = None, database: str | None = None
) -> Project:
    """A review project in which reviewers annotate the failure modes of the images kept in another one."""
    asked, found = _review(review), reviewed(kept_in, database)
    return failure_mode_project(
        found.project,
        found.summary.verdicts,
        project,
        reviewers_each=asked.reviewers_each,
        instructions=asked.instructions,
    )


@dataclass(frozen=True)
class Revised:
    """A project, and what was carried over from an earlier one."""

    project: Project
    revision: Revision


def revise(
    project: str | Path,
    continued: str | Path,
    *,
    database: str | None = None,
    earlier_database: str | None = None,
) -> Revised:
    """Carries over the votes of an earlier review, so that only new items are reviewed."""
    new, old = load_project(project), load_project(continued)
    ours, theirs = open_database(new.folder, database), open_database(old.folder, earlier_database)
    revision = continue_from(new, ours, old, theirs)
    for opened in (ours, theirs):
        opened.close()
    return Revised(new, revision)


def _review(told: ReviewerSettings | None, screen: Screen | None = None, *, project: object = True) -> ReviewSettings:
    """The settings of a review, with the texts and gold items that the options name; checked before any work is done."""
    told = told or ReviewerSettings()
    verify = told.verify if isinstance(told, VerifySettings) else None
    gold = told.gold if isinstance(told, GoldSettings) else None
    if project is None and (verify or gold or told.instructions):
        raise BadInput("--gold, --verify and --instructions are for a review project; name its folder with --project")
    each = told.reviewers_per_item or (FEWEST_VERIFYING if verify else 2)
    if verify:
        check_enough_verify(each)
    known = open_dataset(gold) if gold else None
    if known is not None and screen is not None:
        check_known(known, screen)
    return ReviewSettings(
        told.title if isinstance(told, CandidateSettings) else None,
        reviewers_each=each,
        verify=verify,
        instructions=instructions_in(told.instructions) if told.instructions else "",
        target=told.target if isinstance(told, CandidateSettings) else None,
        known=known,
    )


def _with_shown(review: ReviewSettings, filters: FilterModels) -> ReviewSettings:
    """The same with the predictions on gold items; without them, reviewers could recognise gold items."""
    return review if review.known is None else dataclasses.replace(review, known_shown=filters.shown(review.known))


def _filter_models(filters: Sequence[str | Classifier], options: FilterOptions, bench: Bench) -> list[Classifier]:
    """The filter models, each reported before it is run."""
    models = []
    for one in filters:
        if isinstance(one, str):
            opener = partial(load_spelled, one, trust=options.trust)
            models.append(bench.sendable(opener(), opener))
        else:
            models.append(one)
    for model in models:
        bench.tell_preprocessing(model, [], PredictionSettings())
    return models


def _class_choice(models: Sequence[Classifier], options: FilterOptions) -> ClassChoice | None:
    """The classes that filter models predict among; None for all."""
    if not (options.among_classes or options.exclude_classes) or not models:
        return None
    if models[0].classes is None:
        raise BadInput(
            f"{models[0].ref.name} does not name its classes, so none can be chosen; --filter MODEL?classes=FILE does"
        )
    return choose_some(
        models[0].classes,
        only=wnids_named(options.among_classes) if options.among_classes else None,
        left_out=load_left_out(options.exclude_classes) if options.exclude_classes else None,
    )


def _synsets(words: Sequence[str]) -> list[str]:
    return [noun_named(word) for word in words if word != "none"]
