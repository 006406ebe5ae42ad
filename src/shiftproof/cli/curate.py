"""The commands that build test sets: candidates chosen by models, their review, and the dataset as files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING

import shiftproof as sp
from shiftproof.cli.emit import emit, remark, steps_table
from shiftproof.cli.options import Asked, Commands, Output, command

if TYPE_CHECKING:
    from shiftproof.curation.filtered_project import FilteredProject
    from shiftproof.options import Options

BEFORE = "done before"
SHOWN = 20
"""Near-duplicates printed; the table has all."""


def _filtering() -> Iterable[type[Options]]:
    """Options that both kinds of filtering share."""
    return (
        *(sp.CandidateSettings, sp.DatasetSettings, sp.options.SubsetSettings),
        *(sp.options.StorePlace, sp.options.WorkerSettings, sp.options.EngineSettings),
    )


@command(
    "dataset",
    "project",
    options=lambda: (sp.options.FilterModelNames, sp.AdversarialOptions, *_filtering()),
)
def adversarial(asked: Asked) -> None:
    """Make a review project of the images that all filter models misclassify, in the folder PROJECT, as for ImageNet-A.

    Adversarial filtration: an image is removed if any model classifies any of its ten crops correctly, or gives the true
    class a probability above 0.15. The rest is sorted by the probability of the true class, lowest first. Every removed
    image has its reason in images.csv.

    Example: shiftproof curate adversarial photos/ hard/ --filter lite:0 --filter onnx:mobilenet.onnx?preprocess=imagenet
    """
    dataset, project, filters = asked.argument("dataset"), asked.argument("project"), asked[sp.options.FilterModelNames]
    with asked.work() as settings:
        made = sp.curate.adversarial(dataset, project, filters.filter, options=asked[sp.AdversarialOptions], **settings)
    _emit_filtered(made, as_json=asked.json)


@command(
    "dataset",
    "project",
    options=lambda: (sp.options.FilterModelNames, sp.NovelOptions, *_filtering()),
)
def novel(asked: Asked) -> None:
    """Make a review project of OOD images on which filter models are confident, in the folder PROJECT, as for ImageNet-O.

    DATASET is the manifest of curate novel-classes, or a folder with one folder per wnid. ID classes, their hyponyms and
    hypernyms are excluded; so are images below --min-confidence. The most confident misclassifications come first.

    Example: shiftproof curate novel novel/manifest.csv fooled/ --filter lite:0 --per-class 10
    """
    dataset, project, filters = asked.argument("dataset"), asked.argument("project"), asked[sp.options.FilterModelNames]
    with asked.work() as settings:
        made = sp.curate.novel(dataset, project, filters.filter, options=asked[sp.NovelOptions], **settings)
    _emit_filtered(made, as_json=asked.json)


def _emit_filtered(made: FilteredProject, *, as_json: bool) -> None:
    choice, short, folder = made.filtered.choice, made.short_classes, made.project.folder
    few = f"note: {len(short):,} classes have fewer candidates than the {made.project.target} to keep"
    emit(
        {
            "project": str(folder),
            "steps": [asdict(step) for step in choice.steps],
            "kept": [sample.id for sample in choice.left],
            "removed": [{"id": gone.item.id, "step": gone.step, "reason": gone.reason} for gone in choice.removed],
            "short_classes": short,
        },
        as_json=as_json,
        shown=[steps_table(choice.steps, "images")],
        remarks=[*([few] if short else []), f"start the review with: shiftproof review {folder}"],
        path=folder,
    )


@command(
    options=lambda: (sp.NovelClassOptions, sp.VerifySettings, sp.options.ProjectPlace),
    output=Output("a folder for classes.csv, removed.csv and, with --images, manifest.csv"),
)
def novel_classes(asked: Asked) -> None:
    """Select OOD classes by WordNet: no ID class, hyponym or hypernym of one; every excluded class has its reason.

    With --images and --project, a review project shows each class beside its nearest ID classes.

    Example: shiftproof curate novel-classes --id-classes ilsvrc2012 --candidates imagenet21k.txt -o novel/
    """
    output = asked.output
    found = sp.curate.novel_classes(asked[sp.NovelClassOptions], output=output, **asked.settings)
    classes, images, remarks = found.selection.classes, found.images, []
    if images is not None:
        total = sum(map(len, images.values()))
        remarks = [
            f"{total:,} images of {len(images):,} classes; {len(classes) - len(images):,} classes have none",
            f"the files are not copied; open them as {output}?allow_outside=true",
        ]
    told = {"steps": [asdict(step) for step in found.selection.steps], "classes": classes, "removed": found.removed}
    emit(
        told if images is None else {**told, "images": images},
        as_json=asked.json,
        shown=[steps_table(found.selection.steps, "classes")],
        remarks=remarks,
        path=output,
    )


@command(
    "id_dataset",
    "ood_dataset",
    options=lambda: (
        *(sp.options.FeatureModel, sp.PairOptions, sp.VerifySettings, sp.options.ProjectPlace),
        *(sp.ModelSettings, sp.options.StorePlace),
    ),
    output=Output("a list of the pairs, .csv or .jsonl", "pairs.csv"),
)
def pairs(asked: Asked) -> None:
    """Pair each image of OOD_DATASET with its nearest neighbour in ID_DATASET, in a model's feature space, for review.

    Example: shiftproof curate pairs photos/ novel/ --feature-model lite:0 -o pairs.csv
    """
    found = sp.curate.pairs(
        asked.argument("id_dataset"),
        asked.argument("ood_dataset"),
        asked[sp.options.FeatureModel].feature_model,
        options=asked[sp.PairOptions],
        output=asked.output,
        **asked.settings,
    )
    emit(
        {"pairs": len(found.pairs), "outside": found.ood_images, "inside": found.id_images, "list": asked.output},
        as_json=asked.json,
        remarks=[
            f"{len(found.pairs):,} of {found.ood_images:,} OOD images, each with its nearest neighbour among "
            f"{found.id_images:,} ID images",
            f"values of the column drop: {', '.join(found.drop_reasons)}",
        ],
        path=asked.output,
    )


@command(
    "dataset",
    options=lambda: (
        *(sp.DuplicateOptions, sp.options.MaybeFeatureModel, sp.options.DuplicateReport, sp.ModelSettings),
        *(sp.options.StorePlace, sp.options.WorkerSettings),
    ),
    output=Output("a folder for manifest.csv, which lists the images kept, and duplicates.csv"),
)
def duplicates(asked: Asked) -> None:
    """Find near-duplicates within DATASET, or of a training set; the first of each group is kept.

    Example: shiftproof curate duplicates photos/ --against training/ -o distinct/
    """
    report = asked[sp.options.DuplicateReport].report
    with asked.work() as settings:
        found = sp.curate.duplicates(
            asked.argument("dataset"),
            options=asked[sp.DuplicateOptions],
            model=asked[sp.options.MaybeFeatureModel].feature_model,
            output=asked.output,
            report=report,
            **{**settings, "tell": remark},
        )
    remarks = [f"{row['id']}: {row['reason']}" for row in found.removed[:SHOWN]]
    if len(found.removed) > SHOWN:
        remarks.append(f"{len(found.removed) - SHOWN:,} more; -o writes them all into a table")
    if asked.output:
        remarks.append(f"the files are not copied; open the images kept as {asked.output}?allow_outside=true")
    emit(
        {"steps": [asdict(step) for step in found.choice.steps], "left": found.choice.left, "removed": found.removed},
        as_json=asked.json,
        shown=[steps_table(found.choice.steps, "images"), *filter(None, (asked.output, report))],
        remarks=remarks,
    )


@command(
    "dataset",
    "destination",
    options=lambda: (
        *(sp.CropOptions, sp.options.MaybeFilterModels, sp.VerifySettings, sp.options.ProjectPlace),
        *(sp.options.DatabasePlace, sp.options.MatchingSettings, sp.ModelSettings, sp.options.SubsetSettings),
        *(sp.options.StorePlace, sp.options.WorkerSettings),
    ),
)
def crops(asked: Asked) -> None:
    """Write objects of the boxed dataset DATASET as crops into the folder DESTINATION, as for ImageNet-A-Plus.

    One box over all instances of a class in an image; objects too small for their class are excluded, and those that a
    filter model classifies correctly; the others are cropped to the usual object proportion of their class. Every excluded
    object has its reason in objects.csv.

    Example: shiftproof curate crops boxes.json hard-crops/ --reference usual.json --filter lite:0
    """
    with asked.work("crops") as settings:
        made = sp.curate.crops(
            asked.argument("dataset"),
            asked.argument("destination"),
            asked[sp.options.MaybeFilterModels].filter,
            options=asked[sp.CropOptions],
            **settings,
        )
    written, remarks = made.written, [f"note: {note}" for note in made.notes]
    if made.whole_images:
        remarks.append(
            f"note: {made.whole_images:,} crops are the whole image, because the object's proportion is larger than usual"
        )
    emit(
        {
            "destination": str(written.destination),
            "steps": [asdict(step) for step in made.choice.steps],
            "written": written.written,
            "written_before": written.written_before,
            "whole_images": made.whole_images,
            "removed": [{"id": gone.item.id, "step": gone.step, "reason": gone.reason} for gone in made.choice.removed],
            "notes": made.notes,
        },
        as_json=asked.json,
        shown=[steps_table(made.choice.steps, "objects")],
        remarks=remarks,
        path=written.destination,
    )


@command("dataset", "project", options=lambda: (sp.GoldSettings, sp.options.SubsetSettings, sp.options.Quiet))
def boxes(asked: Asked) -> None:
    """Make a review project in the folder PROJECT, in which reviewers annotate boxes on DATASET by extreme points.

    DATASET has labels: a box is asked for each. curate crops --annotated PROJECT uses the boxes.

    Example: shiftproof curate boxes photos/ boxes/
    """
    with asked.job("images", BEFORE, tells=False) as settings:
        made = sp.curate.boxes(asked.argument("dataset"), asked.argument("project"), **settings)
    steps = made.making.steps
    emit(
        {"project": str(made.folder), "items": len(made.items), "steps": [asdict(step) for step in steps]},
        as_json=asked.json,
        shown=[steps_table(steps, "images")],
        path=made.folder,
    )


@command(
    "clips", "project", options=lambda: (sp.FrameOptions, sp.VerifySettings, sp.options.DatabasePlace, sp.options.Quiet)
)
def frames(asked: Asked) -> None:
    """Make a review project of the frames around anchors of CLIPS, each beside its anchor, in the folder PROJECT.

    CLIPS is a video file, a folder of them or of their frames, a table, or a released frame set.

    Example: shiftproof curate frames clips/ pairs/ --k 10 --seed 1
    """
    clips, project, options = asked.argument("clips"), asked.argument("project"), asked[sp.FrameOptions]
    with asked.job("frames", BEFORE, tells=False) as settings:
        made = sp.curate.frames(clips, project, options=options, **settings)
    choice, project = made.choice, made.project
    emit(
        {
            "project": str(project.folder),
            "items": len(project.items),
            "steps": [asdict(step) for step in choice.steps],
            "removed": [{"id": gone.item.id, "step": gone.step, "reason": gone.reason} for gone in choice.removed],
        },
        as_json=asked.json,
        shown=[steps_table(choice.steps, "frames")],
        remarks=[*(f"note: {note}" for note in made.notes), f"start the review with: shiftproof review {project.folder}"],
        path=project.folder,
    )


@command(
    "dataset",
    options=lambda: (sp.HumanTestOptions, sp.ReviewerSettings, sp.options.Quiet),
    output=Output("a folder for the review project", required=True),
)
def human_test(asked: Asked) -> None:
    """Make a review project that measures human accuracy on DATASET, as for ImageNet-A-Plus.

    Participants get feedback in training, none in the qualification, and then take the test; shiftproof verdicts prints the
    results.

    Example: shiftproof curate human-test hard-crops/ -o people/ --training-images val/ --only-classes imagenet-a
    """
    dataset, options = asked.argument("dataset"), asked[sp.HumanTestOptions]
    with asked.job("images", BEFORE, tells=False) as settings:
        made = sp.curate.human_test(dataset, asked.output, options=options, **settings)
    counts, steps = Counter(item.role for item in made.items), made.making.steps
    emit(
        {
            "project": str(made.folder),
            "classes": len(made.classes),
            "items": dict(counts),
            "steps": [asdict(step) for step in steps],
        },
        as_json=asked.json,
        shown=[steps_table(steps, "images")],
        remarks=[
            f"{counts['training']:,} training, {counts['gold']:,} qualification and {counts['asked']:,} test images of "
            f"{len(made.classes):,} classes",
            f"start the test with: shiftproof review {made.folder}",
        ],
        path=made.folder,
    )


@command("project", "destination", options=lambda: (sp.ExportOptions, sp.options.DatabasePlace, sp.options.Quiet))
def export(asked: Asked) -> None:
    """Write the kept items of PROJECT into the new folder DESTINATION, with a data card and checksums.

    The folder appears when it is complete, and the same review gives the same bytes. The last line is the location to open
    it by. Kept classes become a list, for curate novel-classes --chosen.

    Example: shiftproof curate export hard-set/ hard-photos/ --layout imagenet-a
    """
    project, destination, options = asked.argument("project"), asked.argument("destination"), asked[sp.ExportOptions]
    with asked.job("files", BEFORE, tells=False) as settings:
        exported = sp.curate.export(project, destination, options=options, **settings)
    written, waiting = exported.written, exported.undecided
    before = f", {written.written_before:,} were written before" if written.written_before else ""
    emit(
        {
            "destination": str(written.destination),
            "location": exported.location,
            "written": written.written,
            "written_before": written.written_before,
            "card": exported.card,
        },
        as_json=asked.json,
        remarks=[
            *([f"note: {waiting:,} items have no verdict yet and are left out"] if waiting else []),
            f"{exported.amount}; {written.written:,} files written{before}",
        ],
        path=exported.location,
    )


@command("reviewed", "project", options=lambda: (sp.options.DatabasePlace, sp.ReviewerSettings))
def failure_modes(asked: Asked) -> None:
    """Make a review project in the folder PROJECT: reviewers annotate the failure modes of the images kept in REVIEWED.

    Example: shiftproof curate failure-modes hard-set/ mistakes/
    """
    made = sp.curate.failure_modes(
        asked.argument("reviewed"),
        asked.argument("project"),
        review=asked[sp.ReviewerSettings],
        database=asked[sp.options.DatabasePlace].database,
    )
    emit(
        {"project": str(made.folder), "items": len(made.items)},
        as_json=asked.json,
        remarks=[f"{len(made.items):,} kept images; annotate their failure modes with: shiftproof review {made.folder}"],
        path=made.folder,
    )


@command("project", options=lambda: (sp.options.EarlierReview, sp.options.DatabasePlace))
def revise(asked: Asked) -> None:
    """Carry over the votes of an earlier review into PROJECT, so that only new items are reviewed.

    Votes are carried over for items of the same id, pictures and class. Reviewers who voted need a new link: shiftproof
    review PROJECT --invite NAME.

    Example: shiftproof curate revise hard-set-2/ --continue-from hard-set/
    """
    earlier = asked[sp.options.EarlierReview]
    revised = sp.curate.revise(
        asked.argument("project"),
        earlier.continue_from,
        database=asked[sp.options.DatabasePlace].database,
        earlier_database=earlier.earlier_database,
    )
    revision, project = revised.revision, revised.project
    told = f"{revision.votes:,} votes on {revision.items:,} of {len(project.items):,} items"
    emit(
        {"revision": revision.number, "votes": revision.votes, "items": revision.items},
        as_json=asked.json,
        remarks=[f"revision {revision.number}: {told} carried over"],
        path=project.folder,
    )


curate = Commands("curate", help="Build a test set of images that models misclassify, or of OOD images.")
for one in (
    *(adversarial, novel, novel_classes, pairs, duplicates, crops, boxes, frames),
    *(human_test, export, failure_modes, revise),
):
    curate.add_command(one)
