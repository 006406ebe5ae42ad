"""The whole job as a call: run, plan, measure again and compare, as the command does.

A model is a spec such as ``lite:0`` or a model; a dataset is a location or a dataset; studies are names, or names with
their options. What is worth knowing before a long run is given to `tell`, line by line.
"""

from __future__ import annotations

import dataclasses
import os
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, Unpack, overload

from shiftproof import catalog
from shiftproof.corruptions.editions import Fit
from shiftproof.datasets.classes import classes_from
from shiftproof.datasets.clusters import clustering
from shiftproof.datasets.decoding import LIMIT_VARIABLE, limit_from_environment
from shiftproof.datasets.image_list import ImageList, image_opener, spread_over
from shiftproof.datasets.label_spaces import Scoring
from shiftproof.datasets.subsets import drawn, load_class_map, load_groups, of_classes, unlabelled, with_coarse_classes
from shiftproof.errors import BadInput, ClassMismatch, MissingRuns, UnknownName, listed
from shiftproof.models import load_detector, load_model, names_detector
from shiftproof.options import (
    CorruptionChoice,
    DatasetSettings,
    MatchingSettings,
    ModelSettings,
    PerturbationChoice,
    PictureSettings,
    PredictionSettings,
    ScoringSettings,
    TimeLimit,
    as_typed,
    spelled,
)
from shiftproof.reference import wnids_of
from shiftproof.runs.load import has_predictions, locate
from shiftproof.runs.plan import KnownInputs, measurable, plan_runs
from shiftproof.runs.predict import (
    Progress,
    Tally,
    check_classes,
    check_stored,
    detect_objects,
    fill,
    fill_studies,
    predict_images,
    worker_pool,
)
from shiftproof.runs.store import Reached, Store, StoredModel
from shiftproof.runs.stored_models import preprocessing_told, versions
from shiftproof.runs.workers import Workers
from shiftproof.studies.base import model_ref
from shiftproof.studies.kind import StudyKind
from shiftproof.studies.measure import measure
from shiftproof.studies.options import Assembled, Context, StudyOptions
from shiftproof.studies.probe.options import ProbeOptions
from shiftproof.studies.threshold.exported import ExportedThreshold
from shiftproof.studies.threshold.options import ThresholdOptions
from shiftproof.studies.timed_profile import StudyEntry, TimedProfile, common_reach
from shiftproof.types import (
    CLEAN,
    Classifier,
    Condition,
    Dataset,
    FoundObjects,
    Keep,
    Model,
    ModelRef,
    ObjectDetector,
    Predictions,
    RecordedDetector,
    Results,
    Seen,
    Study,
    richest,
)

if TYPE_CHECKING:
    from shiftproof.writing import Written

Tell: TypeAlias = Callable[[str], None]
"""Takes a line for the person who waits."""

OF_CLASSIFIERS = (
    *("gives", "features", "extra_output", "rotated", "scores", "channels_last", "fill"),
    *("proposals", "max_proposals", "min_side", "proposal_output"),
)
"""Settings that do not apply to object detectors."""

NO_IDENTITY = frozenset(
    {
        *("trust", "device", "precision", "scores", "channels_last", "threads"),
        *("score_threshold", "nms_iou", "max_detections", "fill_seed"),
    }
)
"""Settings that do not say which model it is."""


@dataclass(frozen=True)
class StudyChoice:
    """Which studies, None for those that fit, and the options of each."""

    names: Sequence[str] | None = None
    options: Mapping[str, StudyOptions] = dataclasses.field(default_factory=dict)


Studies: TypeAlias = "StudyChoice | Mapping[str, StudyOptions | None] | Iterable[str] | None"
"""Names of studies, or names with their options; None for all that fit."""


def run(
    model: str | Model,
    dataset: str | Path | Dataset,
    *,
    studies: Studies = None,
    minutes: float | None = None,
    full: bool = False,
    store: str | Path | Store = "runs",
    report: str | Path | None = None,
    unreviewed: str | Path | Dataset | None = None,
    model_options: ModelSettings | None = None,
    dataset_options: DatasetSettings | None = None,
    scoring: ScoringSettings | None = None,
    prediction: PredictionSettings | None = None,
    progress: Progress | None = None,
    tell: Tell | None = None,
) -> Results:
    """Predicts what is not stored, measures the studies and writes a report where one is asked for.

    Without `studies` it is a robustness profile: every study that fits, within `minutes` or `full`. Named studies are run
    beside accuracy, in full unless there are `minutes`. `unreviewed` is the dataset before review: every study is measured
    on it too.
    """
    started, prediction = time.monotonic(), prediction or PredictionSettings()
    limit = TimeLimit(minutes=minutes, full=full).minutes_for(named=_choice(studies).names is not None)
    with Bench.of(store, dataset_options, scoring, model_options, tell) as bench:
        loaded = bench.model(model, prediction)
        images = bench.dataset(dataset)
        if limit is None:
            work = bench.assemble([loaded], images, studies, unreviewed=unreviewed, full=full)
            check_classes(loaded, images, bench.scoring)
            bench.fill(loaded, work, prediction, progress)
            bench.save_whole(loaded, images, studies, full=full)
        else:
            work = bench.profile(loaded, images, studies, limit, prediction, progress, started=started)
            if unreviewed is not None:
                before = bench.assemble([loaded], bench.before_review(unreviewed, images), studies)
                bench.fill(loaded, before, prediction, progress)
                work = joined([work, before])
        return bench.report(work, report, again=bench.again("run", [model], dataset))


def plan(
    model: str | Model,
    dataset: str | Path | Dataset,
    *,
    studies: Studies = None,
    store: str | Path | Store = "runs",
    unreviewed: str | Path | Dataset | None = None,
    model_options: ModelSettings | None = None,
    dataset_options: DatasetSettings | None = None,
    scoring: ScoringSettings | None = None,
    tell: Tell | None = None,
) -> list[dict[str, str | int]]:
    """The runs that the studies need, a row each, with how many images are stored already."""
    with Bench.of(store, dataset_options, scoring, model_options, tell) as bench:
        loaded = bench.model(model)
        whole = _choice(studies).names is None  # of a profile everything, as with --full
        work = bench.assemble([loaded], bench.dataset(dataset), studies, unreviewed=unreviewed, full=whole)
        left = bench.measurable(work, [loaded])
        bench.tell_editions(work)
        return plan_runs(left, work.datasets, store=bench.store, scoring=bench.scoring)


def measure_stored(
    model: str | Model | ModelRef,
    dataset: str | Path | Dataset,
    *,
    studies: Studies = None,
    store: str | Path | Store = "runs",
    unreviewed: str | Path | Dataset | None = None,
    model_options: ModelSettings | None = None,
    dataset_options: DatasetSettings | None = None,
    scoring: ScoringSettings | None = None,
    tell: Tell | None = None,
) -> Results:
    """Measures stored predictions; never runs the model, which may also be the name of a stored one."""
    with Bench.of(store, dataset_options, scoring, model_options, tell) as bench:
        return bench.measured(model, dataset, studies, unreviewed=unreviewed)


def report(
    model: str | Model | ModelRef,
    dataset: str | Path | Dataset,
    path: str | Path = "report.html",
    *,
    studies: Studies = None,
    store: str | Path | Store = "runs",
    unreviewed: str | Path | Dataset | None = None,
    model_options: ModelSettings | None = None,
    dataset_options: DatasetSettings | None = None,
    scoring: ScoringSettings | None = None,
    tell: Tell | None = None,
) -> Results:
    """The same, with a report as an HTML file."""
    with Bench.of(store, dataset_options, scoring, model_options, tell) as bench:
        return bench.measured(model, dataset, studies, unreviewed=unreviewed, report=path)


def compare(
    models: Sequence[str | Model | ModelRef],
    dataset: str | Path | Dataset,
    *,
    studies: Studies = None,
    store: str | Path | Store = "runs",
    report: str | Path | None = None,
    unreviewed: str | Path | Dataset | None = None,
    dataset_options: DatasetSettings | None = None,
    scoring: ScoringSettings | None = None,
    tell: Tell | None = None,
) -> Results:
    """Stored models side by side on the same images, with paired tests.

    Without models, every stored model that has predicted these images, except companion networks that a study made of one.
    """
    with Bench.of(store, dataset_options, scoring, None, tell) as bench:
        images = bench.dataset(dataset)
        work = bench.assemble(bench.compared(models, images), images, studies, unreviewed=unreviewed, stored=True)
        bench.tell_editions(work)  # before what was never run under this one is missed
        return bench.report(work, report, again=bench.again("compare", models, dataset))


class PredictKeywords(TypedDict, total=False):
    """What `predict` takes besides model and dataset."""

    condition: Condition
    store: str | Path | Store
    keep: Literal["top5", "logits", "features"] | None
    half: bool
    batch_size: int | None
    workers: int | None
    strict: bool
    scoring: Scoring | None
    model_options: ModelSettings | None
    dataset_options: DatasetSettings | None
    progress: Progress | None


@overload
def predict(model: Classifier, dataset: str | Path | Dataset, **how: Unpack[PredictKeywords]) -> Predictions: ...
@overload
def predict(model: ObjectDetector, dataset: str | Path | Dataset, **how: Unpack[PredictKeywords]) -> FoundObjects: ...
@overload
def predict(model: str, dataset: str | Path | Dataset, **how: Unpack[PredictKeywords]) -> Predictions | FoundObjects: ...
def predict(
    model: str | Model,
    dataset: str | Path | Dataset,
    *,
    condition: Condition = CLEAN,
    store: str | Path | Store = "runs",
    keep: Literal["top5", "logits", "features"] | None = None,
    half: bool = False,
    batch_size: int | None = None,
    workers: int | None = None,
    strict: bool = False,
    scoring: Scoring | None = None,
    model_options: ModelSettings | None = None,
    dataset_options: DatasetSettings | None = None,
    progress: Progress | None = None,
) -> Predictions | FoundObjects:
    """The predictions of a classifier for every image, or the detections of an object detector with the ground truth.

    Only images that are not stored are predicted. Images whose class the model lacks have no label, and none has one where
    classes and outputs cannot be matched at all; with a `scoring` of your own that is an error, or as it says.
    """
    settings = PredictionSettings(keep=keep, half=half, batch_size=batch_size, workers=workers, strict=strict)
    with Bench.of(store, dataset_options, None, model_options) as bench:
        loaded: Model = bench.model(model)
        images = bench.dataset(dataset)

        def predicted(images: Dataset) -> Predictions | FoundObjects:
            rule = scoring or Scoring(unmatched="unlabelled")
            if isinstance(loaded, ObjectDetector):
                return detect_objects(
                    loaded, images, condition, store=bench.store, settings=settings, scoring=rule, progress=progress
                )
            return predict_images(
                loaded, images, condition, store=bench.store, settings=settings, scoring=rule, progress=progress
            )

        try:
            return predicted(images)
        except ClassMismatch:
            if scoring is not None:
                raise
            return predicted(unlabelled(images))


def store_predictions(
    model: str | Model,
    dataset: str | Path | Dataset | Sequence[Dataset],
    *,
    studies: Sequence[Study] | None = None,
    store: str | Path | Store = "runs",
    shard: tuple[int, int] = (1, 1),
    model_options: ModelSettings | None = None,
    dataset_options: DatasetSettings | None = None,
    scoring: ScoringSettings | None = None,
    prediction: PredictionSettings | None = None,
    progress: Progress | None = None,
    tell: Tell | None = None,
) -> Tally:
    """Predicts the images that are not stored, or this machine's part `shard` of them.

    With `studies`, every run of this model that they name, on all their datasets.
    """
    prediction = prediction or PredictionSettings()
    with Bench.of(store, dataset_options, scoring, model_options, tell) as bench:
        loaded = bench.model(model, prediction)
        several = [dataset] if isinstance(dataset, (str, Path, Dataset)) else dataset
        datasets = [bench.dataset(one) for one in several]
        bench.tell_preprocessing(loaded, datasets, prediction)
        if studies is not None:
            return fill_studies(
                loaded,
                studies,
                datasets,
                store=bench.store,
                settings=prediction,
                scoring=bench.scoring,
                progress=progress,
            )
        done = Tally(0, 0, ())
        for images in datasets:
            if not any(sample.labels for sample in images.samples) and not prediction.quiet:
                bench.tell(
                    f"note: no image of {images.ref.name} has a label: until some have, only what needs none can be measured"
                )
            done += fill(loaded, images, store=bench.store, settings=prediction, shard=shard, progress=progress)
        return done


def probe(
    photo: str | Path,
    model: str | Classifier = "lite:0",
    *,
    options: ProbeOptions | None = None,
    store: str | Path | Store = "runs",
    report: str | Path | None = None,
    model_options: ModelSettings | None = None,
    prediction: PredictionSettings | None = None,
    progress: Progress | None = None,
    tell: Tell | None = None,
) -> Results:
    """One photo, varied step by step: what the model predicts, and how each OOD detector scores it."""
    from shiftproof.studies.probe.study import ProbeStudy

    prediction, scoring = prediction or PredictionSettings(), ScoringSettings(unmatched="unlabelled")  # labels do not matter
    with Bench.of(store, None, scoring, model_options, tell) as bench:
        loaded = bench.model(model, prediction, classifier=True)
        work = (options or ProbeOptions()).assemble_photo(ProbeStudy, [loaded], os.fspath(photo), bench.context)
        bench.fill(loaded, work, prediction, progress)
        return bench.report(work, report)


def threshold(
    model: str | Classifier,
    dataset: str | Path | Dataset,
    options: ThresholdOptions,
    *,
    store: str | Path | Store = "runs",
    model_options: ModelSettings | None = None,
    dataset_options: DatasetSettings | None = None,
    scoring: ScoringSettings | None = None,
    prediction: PredictionSettings | None = None,
    progress: Progress | None = None,
    tell: Tell | None = None,
) -> ExportedThreshold:
    """A detection threshold of an OOD detector, and what to expect of it."""
    from shiftproof.studies.threshold.study import OperatingPointStudy

    prediction = prediction or PredictionSettings()
    with Bench.of(store, dataset_options, scoring, model_options, tell) as bench:
        loaded, images = bench.model(model, prediction, classifier=True), bench.dataset(dataset)
        work = options.assemble(OperatingPointStudy, [loaded], images, bench.context)
        check_classes(loaded, images, bench.scoring)
        bench.fill(loaded, work, prediction, progress)
        return ExportedThreshold.of(bench.measure(work))


def corrupt_dataset(
    dataset: str | Path | ImageList,
    destination: str | Path,
    *,
    corruptions: CorruptionChoice | None = None,
    pictures: PictureSettings | None = None,
    layout: Literal["imagenet-c", "cifar-c"] = "imagenet-c",
    limit: int | None = None,
    dataset_options: DatasetSettings | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
    tell: Tell | None = None,
) -> Written:
    """Writes the images under corruptions into a folder, in a published layout; what is there is not made again."""
    from shiftproof.corruptions.frost_pictures import frost_pictures
    from shiftproof.corruptions.selection import corruptions_named
    from shiftproof.datasets.perturbed import edition_for
    from shiftproof.writing import write_corrupted

    chosen, pictures = corruptions or CorruptionChoice(), pictures or PictureSettings()
    names = corruptions_named(",".join(chosen.corruptions))
    if pictures.at == "model-size":
        raise BadInput("--at model-size needs a model, and none is run here; choose picture or image")
    picture = "image" if pictures.at == "image" else None
    frost = None if pictures.frost_folder is None else frost_pictures(pictures.frost_folder)
    with Bench.of("runs", dataset_options, tell=tell) as bench:
        images = some_of(bench.images(dataset), limit)
        fit = None if pictures.edition else edition_for(images, picture=picture)
        edition = fit.edition if fit else str(pictures.edition)
        bench.tell_edition(fit, scaled=pictures.scale_severity)
        return write_corrupted(
            images,
            destination,
            corruptions=names,
            severities=chosen.severities,
            edition=edition,
            output=pictures.encoding,
            seed=pictures.seed,
            frost=frost,
            scale_severity=pictures.scale_severity,
            picture=picture,
            layout=layout,
            workers=workers,
            progress=progress,
        )


def perturb_dataset(
    dataset: str | Path | ImageList,
    destination: str | Path,
    *,
    perturbations: PerturbationChoice | None = None,
    edition: str | None = None,
    seed: int = 0,
    layout: Literal["imagenet-p", "cifar-p"] = "imagenet-p",
    limit: int | None = None,
    dataset_options: DatasetSettings | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
    tell: Tell | None = None,
) -> Written:
    """Writes the images as perturbation sequences into a folder, in a published layout; what is there is not made again."""
    from shiftproof.corruptions.selection import perturbations_named
    from shiftproof.datasets.perturbed import edition_for
    from shiftproof.writing import write_perturbed

    chosen = perturbations or PerturbationChoice()
    names = perturbations_named(",".join(chosen.perturbations))
    with Bench.of("runs", dataset_options, tell=tell) as bench:
        images = some_of(bench.images(dataset), limit)
        fit = None if edition else edition_for(images)
        bench.tell_edition(fit)
        return write_perturbed(
            images,
            destination,
            perturbations=names,
            levels=chosen.levels,
            edition=fit.edition if fit else str(edition),
            seed=seed,
            layout=layout,
            workers=workers,
            progress=progress,
        )


def some_of(images: ImageList, limit: int | None) -> ImageList:
    """At most this many images, spread evenly: datasets are ordered by class, and the first would be of few."""
    return dataclasses.replace(images, samples=spread_over(images.samples, limit))


def wnids_named(named: str) -> Sequence[str]:
    """The wnids of a published list of classes, or of a file."""
    published = named in ("imagenet-a", "imagenet-o", "imagenet-r")
    return wnids_of(f"{named.replace('-', '_')}_classes") if published else classes_from(Path(named)).keys


def scoring_of(options: MatchingSettings) -> Scoring:
    """How predictions are scored, as the options say."""
    groups = load_groups(options.class_groups) if options.class_groups else None
    class_map = load_class_map(options.class_map) if options.class_map else None
    return Scoring(options.scored, options.unmatched, groups, class_map=class_map)


def load_classifier(spec: str, options: ModelSettings) -> Classifier:
    """The classifier that a spec names, as the settings say."""
    return load_model(
        spec,
        name=options.name,
        preprocess=options.preprocess,
        classes=options.classes,
        gives=options.gives,
        features=options.features,
        output=options.scores,
        extra_output=options.extra_output,
        rotated=options.rotated,
        channels_last=options.channels_last,
        weights=options.weights,
        trust=options.trust,
        device=options.device,
        precision=options.precision,
        threads=options.threads,
        seen=_seen(options),
        boxes=_layout(options),
        score_threshold=options.score_threshold,
        nms_iou=options.nms_iou,
        max_detections=options.max_detections,
        fill=options.fill,
        fill_seed=options.fill_seed,
        proposals=options.proposals,
        max_proposals=options.max_proposals,
        min_side=options.min_side,
        proposal_output=options.proposal_output,
    )


def _load_any(spec: str, options: ModelSettings, prediction: PredictionSettings | None) -> Model:
    """The classifier or object detector that a spec names."""
    if not names_detector(spec, boxes=bool(options.boxes)):
        return load_classifier(spec, options)
    said = {name: getattr(options, name) for name in OF_CLASSIFIERS}
    said |= {"keep": prediction.keep, "half": prediction.half} if prediction else {}
    typed = [as_typed(name) for name, value in said.items() if value]
    if typed:
        raise BadInput(f"{spec} predicts boxes and takes no {listed(typed)}; that is for classifiers, as boxes:MODEL is one")
    return load_detector(
        spec,
        name=options.name,
        layout=_layout(options),
        preprocess=options.preprocess,
        classes=options.classes,
        weights=options.weights,
        trust=options.trust,
        device=options.device,
        precision=options.precision,
        threads=options.threads,
        score_threshold=options.score_threshold,
        nms_iou=options.nms_iou,
        max_detections=options.max_detections,
        seen=_seen(options),
    )


def _layout(options: ModelSettings) -> str | None:
    """The layout of a detector's outputs; None to infer it from their shapes."""
    return None if options.boxes == "auto" else options.boxes


def _seen(options: ModelSettings) -> Seen | None:
    """What the user declares of a model's training; None where nothing was declared."""
    said = options.trained_on or options.augmented or options.filtered
    past = Seen(options.trained_on or "not declared", tuple(options.augmented), tuple(options.filtered))
    return past if said else None


@contextmanager
def pixel_limit(most: int | None) -> Iterator[None]:
    """Larger images are skipped unread, in this process and its workers."""
    if most is None:
        yield
        return
    before = os.environ.get(LIMIT_VARIABLE)
    os.environ[LIMIT_VARIABLE] = str(most)
    limit_from_environment.cache_clear()
    try:
        yield
    finally:
        os.environ.pop(LIMIT_VARIABLE)
        os.environ.update({} if before is None else {LIMIT_VARIABLE: before})
        limit_from_environment.cache_clear()


@dataclass(frozen=True)
class Bench:
    """The steps that jobs are made of."""

    context: Context
    scoring_options: ScoringSettings
    scoring: Scoring
    model_options: ModelSettings

    @classmethod
    @contextmanager
    def of(
        cls,
        store: str | Path | Store,
        dataset_options: DatasetSettings | None = None,
        scoring: ScoringSettings | None = None,
        model_options: ModelSettings | None = None,
        tell: Tell | None = None,
    ) -> Iterator[Bench]:
        """A bench for one job; images above the limit of pixels are skipped until it is done."""
        store = store if isinstance(store, Store) else Store(store)
        dataset_options, scoring = dataset_options or DatasetSettings(), scoring or ScoringSettings()
        model_options = model_options or ModelSettings()
        context = Context(store, dataset_options, model_options.trust, tell or (lambda _: None))
        with pixel_limit(dataset_options.max_pixels):
            yield cls(context, scoring, scoring_of(scoring), model_options)

    @property
    def store(self) -> Store:
        return self.context.store

    @property
    def tell(self) -> Tell:
        return self.context.tell

    def model(self, model: str | Model, prediction: PredictionSettings | None = None, *, classifier: bool = False) -> Any:
        """The model itself, loaded where it is a spec."""
        if not isinstance(model, str):
            return model
        return load_classifier(model, self.model_options) if classifier else _load_any(model, self.model_options, prediction)

    def stored_or_loaded(self, model: str | Model | ModelRef) -> ModelRef:
        """A stored model by its name; the model itself where options say something of it, which the store then learns."""
        if isinstance(model, ModelRef):
            return model
        if isinstance(model, str) and not self.model_options.given - NO_IDENTITY:
            try:
                return self.context.stored_model(model)
            except UnknownName:
                pass
        loaded: Model = self.model(model)
        if self.store.model(loaded.ref) is not None:
            self.store.save_model(StoredModel.of(loaded), asked=False)
        return loaded.ref

    def compared(self, models: Sequence[str | Model | ModelRef], images: Dataset) -> list[ModelRef]:
        """The stored models that were named; else the newest version of every name, if it has predicted these images."""
        if models:
            chosen = [self.context.stored_model(one) if isinstance(one, str) else model_ref(one) for one in models]
        else:
            predicted = [one for one in versions(self.store) if self._has_predicted(one.model.ref, images)]
            chosen = [one.ref for one in predicted if one.newest]
            for ref in chosen:
                self.context.tell_versions(ref)
            for one in predicted:
                if not one.newest and one.model.ref.name not in {ref.name for ref in chosen}:
                    self.tell(
                        f"note: {one.name} has predicted {images.ref.name}, but it is an older version; predict with the "
                        "newest"
                    )
        if len(chosen) < 2:
            found = ", ".join(one.name for one in versions(self.store)) or "none"
            place = images.ref.location or images.ref.name
            raise BadInput(
                f"comparing needs two models with stored predictions for {place}; stored in {self.store.root}: {found}"
            )
        return chosen

    def images(self, dataset: str | Path | ImageList) -> ImageList:
        """The whole dataset, opened where it is a location."""
        return self.context.open_dataset(os.fspath(dataset)) if isinstance(dataset, (str, Path)) else dataset

    def dataset(self, dataset: str | Path | Dataset) -> Dataset:
        """The dataset to measure: all of it, or the classes that were chosen, labelled as was chosen."""
        images: Dataset = self.context.open_dataset(os.fspath(dataset)) if isinstance(dataset, (str, Path)) else dataset
        if self.scoring_options.only_classes is not None:
            images = of_classes(images, wnids_named(self.scoring_options.only_classes))
        if self.scoring_options.coarse_classes is not None:
            images = with_coarse_classes(images, classes_from(self.scoring_options.coarse_classes))
        return images

    def assemble(
        self,
        models: Sequence[Model | ModelRef],
        images: Dataset,
        studies: Studies,
        *,
        unreviewed: str | Path | Dataset | None = None,
        full: bool = False,
        stored: bool = False,
    ) -> Assembled:
        """The studies of the images, and of the same dataset before review where that is named.

        With `full` all units of studies that can be done in parts; with `stored` as many as a profile has come to.
        """
        datasets = [images, *([self.before_review(unreviewed, images)] if unreviewed else [])]
        made = [Assembled([], [])]
        for one in datasets:
            entries = self.entries(models, one, studies)
            if stored:
                made += self._stored(entries, models, one, _choice(studies).names)
            else:
                made += [self._whole(entry, models, one, full, _choice(studies).names) for entry in entries]
                made.append(Assembled([], [one]))
        return joined(made)

    def _whole(
        self, entry: StudyEntry, models: Sequence[Model | ModelRef], images: Dataset, full: bool, names: Sequence[str] | None
    ) -> Assembled:
        """A study as its options say, or with all units it can have."""
        work = entry.assemble(models, images, self.context, _most(entry, images) if full else None)
        asked = names is None or EVERY in names or entry.name in names
        return work if asked else dataclasses.replace(work, unasked=work.studies)

    def before_review(self, unreviewed: str | Path | Dataset, images: Dataset) -> Dataset:
        """The dataset before review; BadInput where it cannot be told apart by its name."""
        before, name = self.dataset(unreviewed), images.ref.name
        if before.ref.name == name:
            raise BadInput(f"both datasets are called {name}, so their numbers could not be told apart; rename a folder")
        return before

    def entries(self, models: Sequence[Model | ModelRef], images: Dataset, studies: Studies) -> list[StudyEntry]:
        """The studies that were named, or those of a profile, with their options."""
        choice, boxes = _choice(studies), self._predict_boxes(models)
        if boxes:
            self.scoring_options.refuse(
                ("class_groups", "scored"),
                "boxes are compared class by class",
                "join or choose classes in the file of boxes",
            )
        entries = chosen_entries(choice, images, boxes=boxes, models=len(models))
        if choice.names is None and any(isinstance(model, RecordedDetector) for model in models):
            # it holds detections in the images as they are
            works = [(entry, entry.assemble(models, images, self.context)) for entry in entries]
            entries = [
                entry for entry, work in works if all(run.condition == CLEAN for one in work.studies for run in one.runs())
            ]
        return entries

    def _stored(
        self, entries: Sequence[StudyEntry], models: Sequence[Model | ModelRef], images: Dataset, names: Sequence[str] | None
    ) -> Iterator[Assembled]:
        """Studies as far as a profile of these models has come; of others those that are stored whole, and those named."""
        every = [self.store.reached(model_ref(model), images.ref) or Reached() for model in models]
        common = common_reach(every)
        everything = all(has_predictions(model_ref(model), images, store=self.store) for model in models)
        some = images if everything else drawn(images, common.images or len(images.samples))
        yield Assembled([], [some])
        for entry in entries:
            own = entry.images(images, common)
            parts, units = entry.parts(own), common.units.get(entry.key)
            if parts is None or (not parts.nested and len({one.drawn.get(entry.key) for one in every}) > 1):
                units = None  # of other images no part is the same
            work = entry.assemble(models, own if units else some, self.context, units)
            any_name = names is None or EVERY in names
            named = names is not None and entry.name in names
            if units or named or (any_name and entry.kind.always) or self._is_stored(work):
                yield work if any_name or named else dataclasses.replace(work, unasked=work.studies)

    def _is_stored(self, work: Assembled) -> bool:
        """Whether every run of these studies is there."""
        sets = {images.ref: images for images in work.datasets}
        try:
            for study in work.studies:
                for run in study.runs():
                    locate(run, sets[run.dataset], store=self.store, keep=study.keep)
        except MissingRuns:
            return False
        return True

    def _has_predicted(self, model: ModelRef, images: Dataset) -> bool:
        """Whether the store has its predictions for these images, or for those of a profile."""
        reached = self.store.reached(model, images.ref)
        some = drawn(images, reached.images) if reached else images
        return has_predictions(model, some, store=self.store)

    def profile(
        self,
        model: Model,
        images: Dataset,
        studies: Studies,
        minutes: float,
        prediction: PredictionSettings,
        progress: Progress | None,
        *,
        started: float,
    ) -> Assembled:
        """The studies as far as they come within so many minutes of forward passes."""
        names = _choice(studies).names
        works = [
            (entry, self._whole(entry, [model], images, False, names)) for entry in self.entries([model], images, studies)
        ]
        check_classes(model, images, self.scoring)
        left = self.measurable(joined(work for _, work in works), [model])
        entries = [entry for entry, work in works if any(study is one for study in work.studies for one in left)]
        clustering(self.scoring_options.cluster).check([images])
        self.tell_preprocessing(model, [images], prediction)
        if not prediction.quiet:
            told = listed(entry.name for entry in entries)
            self.tell(f"profile of {model.ref.name} on {images.ref.name} within {minutes:g} minutes: {told}")
        with worker_pool(prediction.workers, model.preprocessing, images) as workers:
            desk = _Desk(self, model, images, prediction, workers)
            reached = TimedProfile(
                entries,
                images,
                desk,
                minutes=minutes,
                reached=self.store.reached(model.ref, images.ref),
                started=started,
                progress=progress,
            ).spend()
        done = [entry for entry in entries if entry.key in reached.units]
        return joined(desk.assemble(entry, entry.images(images, reached), reached.units[entry.key]) for entry in done)

    def save_whole(self, model: Model, images: Dataset, studies: Studies, *, full: bool) -> None:
        """Keeps in mind that these studies are stored whole."""
        known, size = self.store.reached(model.ref, images.ref) or Reached(), len(images.samples)
        done = {entry.key: _most(entry, images) if full else None for entry in self.entries([model], images, studies)}
        others = known.units if known.images == size else {}
        drawn_for = {key: count for key, count in known.drawn.items() if key not in done and key in others}
        reached = dataclasses.replace(known, images=size, units={**others, **done}, drawn=drawn_for)
        self.store.save_reached(model.ref, images.ref, reached)

    def _predict_boxes(self, models: Sequence[Model | ModelRef]) -> bool:
        """Whether models predict boxes; BadInput where some do and others do not."""
        names = {self._predicts_boxes(model): model_ref(model).name for model in models}
        if len(names) > 1:
            raise BadInput(f"{names[True]} predicts boxes and {names[False]} classes; compare models that predict the same")
        return True in names

    def _predicts_boxes(self, model: Model | ModelRef) -> bool:
        if not isinstance(model, ModelRef):
            return isinstance(model, ObjectDetector)
        stored = self.store.model(model)
        return stored is not None and stored.gives == "boxes"

    def fill(self, model: Model, work: Assembled, prediction: PredictionSettings, progress: Progress | None) -> None:
        """Every run of this model and its companions that the studies name, and those of others checked to be there."""
        studies = self.measurable(work, [model])
        clustering(self.scoring_options.cluster).check(work.datasets)
        self.tell_preprocessing(model, work.datasets, prediction)
        if not prediction.quiet:
            self.tell_editions(work)
        self.fill_runs(model, dataclasses.replace(work, studies=studies), prediction, progress)

    def fill_runs(
        self,
        model: Model,
        work: Assembled,
        prediction: PredictionSettings,
        progress: Progress | None,
        workers: Workers | None = None,
    ) -> None:
        """Every run of the model and its companions that is not stored; `workers` are processes of the caller's."""
        run_now: list[Model] = [model, *work.companions]
        studies = work.studies
        check_stored(studies, work.datasets, store=self.store, besides=[one.ref for one in run_now])
        for one in run_now:
            fill_studies(
                one,
                [study for study in studies if one is model or any(run.model == one.ref for run in study.runs())],
                work.datasets,
                store=self.store,
                scoring=self.scoring,
                progress=progress,
                settings=prediction,
                workers=workers,
            )

    def measurable(self, work: Assembled, models: Sequence[Model | ModelRef], *, told: bool = True) -> list[Study]:
        """The studies that can measure something; of others it is `told` why not. BadInput where none asked for is left."""
        known = [self.store.model(model) if isinstance(model, ModelRef) else model for model in models]
        classes = [None if model is None else model.classes for model in known]
        left, reasons = measurable(work.studies, KnownInputs.of(classes, work.datasets, self.scoring))
        if reasons and all(any(one is other for other in work.unasked) for one in left):
            raise BadInput(f"nothing can be measured: {'; '.join(reasons)}")
        for reason in reasons if told else ():
            self.tell(f"left out: {reason}")
        return left

    def measured(
        self,
        model: str | Model | ModelRef,
        dataset: str | Path | Dataset,
        studies: Studies,
        *,
        unreviewed: str | Path | Dataset | None = None,
        report: str | Path | None = None,
    ) -> Results:
        """What the studies find in the store, with a report as a file where one is asked for."""
        images, models = self.dataset(dataset), [self.stored_or_loaded(model)]
        work = self.assemble(models, images, studies, unreviewed=unreviewed, stored=True)
        self.measurable(work, models, told=False)  # the results tell it
        return self.report(work, report, again=self.again("run", [model], dataset))

    def measure(self, work: Assembled) -> Results:
        """What the studies find in the store."""
        results = measure(
            work.studies,
            store=self.store,
            datasets=work.datasets,
            scoring=self.scoring,
            cluster=self.scoring_options.cluster,
        )
        if results.skipped and not results.models:  # no study read a single run
            raise BadInput(f"nothing can be measured: {'; '.join(results.skipped)}")
        return results

    def report(self, work: Assembled, path: str | Path | None, *, again: str = "") -> Results:
        """The same, with a report as a file where one is asked for; `again` is the command for `Results.again`."""
        results = dataclasses.replace(self.measure(work), again=again)
        if path is not None:
            from shiftproof.reports.build import save_report

            save_report(path, results, open_image=image_opener(work.datasets))
        return results

    def again(self, command: str, models: Sequence[str | Model | ModelRef], dataset: str | Path | Dataset) -> str:
        """A command for the same models, dataset and settings; nothing where these are not what can be typed."""
        location = dataset.ref.location if isinstance(dataset, Dataset) else os.fspath(dataset)
        # compare takes names of stored models, run what can be loaded
        named = [model for model in models if isinstance(model, str) and (command != "run" or _can_be_loaded(model))]
        if location is None or len(named) < len(models):
            return ""
        settings = [self.context.dataset_options, self.scoring_options]
        settings += [self.model_options] if command == "run" else []
        given = [word for options in settings for word in spelled(options)]
        store = [] if self.store.root == Path("runs") else ["--store", str(self.store.root)]
        return shlex.join(["shiftproof", command, *named, location, *given, *store])

    def tell_preprocessing(self, model: Model, datasets: Sequence[Dataset], prediction: PredictionSettings) -> None:
        """How images become the model's input, and what else is to be known of both, before a long run."""
        if prediction.quiet:
            return
        self.tell(f"{model.ref.name}: {preprocessing_told(model.preprocessing.describe())}")
        notes = [*model.notes, *(note for images in datasets for note in images.notes)]
        for note in dict.fromkeys(notes):
            self.tell(f"note: {note}")
        self.context.tell_versions(model.ref)

    def tell_editions(self, work: Assembled) -> None:
        """Which editions were taken where none was named, and whether they fit."""
        for fit, scaled in work.editions.items():
            self.tell_edition(fit, scaled=scaled)

    def tell_edition(self, fit: Fit | None, *, scaled: bool = False) -> None:
        if fit is None:
            return
        self.tell(f"edition {fit.edition}: {fit.why}")
        for warning in fit.warnings(scaled=scaled):
            self.tell(f"warning: {warning}")


def _can_be_loaded(model: str) -> bool:
    """Whether this is a model spec, and not only the name of a stored model."""
    return model.partition(":")[0] in catalog.MODELS or Path(model).exists()


@dataclass
class _Desk:
    """What a profile has done for it, at one bench for one model."""

    bench: Bench
    model: Model
    images: Dataset
    prediction: PredictionSettings
    workers: Workers
    editions: set[Fit] = dataclasses.field(default_factory=set)  # told already

    def assemble(self, entry: StudyEntry, images: Dataset, units: int | None = None) -> Assembled:
        work = entry.assemble([self.model], images, self.bench.context, units)
        for fit, scaled in work.editions.items():
            if fit not in self.editions and not self.prediction.quiet:
                self.editions.add(fit)
                self.bench.tell_edition(fit, scaled=scaled)
        return work

    def fill(self, works: Sequence[Assembled], progress: Progress, *, keep: Keep | None = None) -> None:
        keeps = [one for one in (keep, self.prediction.keep) if one is not None]
        settings = dataclasses.replace(self.prediction, keep=richest(keeps)) if keeps else self.prediction  # type: ignore[arg-type]  # never boxes
        self.bench.fill_runs(self.model, joined(works), settings, progress, self.workers)

    def measure(self, work: Assembled) -> Results:
        return self.bench.measure(work)

    def save(self, reached: Reached) -> None:
        self.bench.store.save_reached(self.model.ref, self.images.ref, reached)

    def tell(self, text: str) -> None:
        if not self.prediction.quiet:
            self.bench.tell(text)


EVERY = "all"
"""The name of all studies."""


def joined(works: Iterable[Assembled]) -> Assembled:
    """Several assemblies as one; what they share is there once."""
    works = list(works)
    sets = {one.ref: one for work in works for one in work.datasets}
    companions = {one.ref: one for work in works for one in work.companions}
    return Assembled(
        [study for work in works for study in work.studies],
        list(sets.values()),
        list(companions.values()),
        {fit: scaled for work in works for fit, scaled in work.editions.items()},
        [study for work in works for study in work.unasked],
    )


def _most(entry: StudyEntry, images: Dataset) -> int | None:
    """All units of a study that can be done in parts."""
    parts = entry.parts(images)
    return None if parts is None else parts.most


def _choice(studies: Studies) -> StudyChoice:
    """Studies as a caller may name them."""
    if studies is None or isinstance(studies, StudyChoice):
        return studies or StudyChoice()
    if isinstance(studies, str):
        raise BadInput(f"studies should be a list of names, as [{studies!r}]")
    options = {name: one for name, one in studies.items() if one is not None} if isinstance(studies, Mapping) else {}
    return StudyChoice(tuple(studies), options)


def chosen_entries(choice: StudyChoice, images: Dataset, *, boxes: bool, models: int = 1) -> list[StudyEntry]:
    """The studies that were named and those that always run; or those of a profile and those that other options ask for.

    ``all`` names every study of what the models predict.
    """
    every: dict[str, StudyKind] = dict(catalog.STUDIES.loaded())
    fitting = {
        name: kind for name, kind in every.items() if (kind.needs == "boxes") == boxes and kind.least_models <= models
    }

    def entry(name: str, kind: StudyKind) -> StudyEntry:
        options = choice.options.get(name)
        return StudyEntry(name, kind, kind.load_options()() if options is None and kind.options is not None else options)

    def asked(name: str) -> bool:
        options = choice.options.get(name)
        return options is not None and bool(_that_run(options))

    if choice.names is None:
        entries = [entry(name, kind) for name, kind in fitting.items() if kind.by_default or asked(name)]
        return [one for one in entries if one.options is None or asked(one.name) or one.options.fits(images)]
    if not choice.names:
        raise BadInput("expected names of studies with commas between them, see shiftproof list studies")
    if EVERY in choice.names:
        return [
            one for one in (entry(*named) for named in fitting.items()) if one.options is None or one.options.fits(images)
        ]
    named = {name: catalog.STUDIES.load(name) for name in choice.names}
    for name, kind in named.items():
        _check_predictions(name, kind, boxes=boxes)
        if kind.least_models > models:
            raise BadInput(f"some of {','.join(choice.names)} need several models; use shiftproof compare")
    for name, options in choice.options.items():
        wanted = [one for one in _that_run(options) if not any(_takes(choice, chosen, one) for chosen in named)]
        if wanted and name not in named:
            typed = " and ".join(map(as_typed, wanted))
            raise BadInput(f"{typed}: only the study {name} uses these; name it in --studies too")
    always = {name: kind for name, kind in fitting.items() if kind.always and name not in named}
    return [entry(name, kind) for name, kind in (always | named).items()]


def _that_run(options: StudyOptions) -> list[str]:
    """Options given that ask for the study they belong to."""
    fields = (one.name for one in dataclasses.fields(options))
    return [name for name in fields if name in options.RUN_BY and getattr(options, name)]


def _takes(choice: StudyChoice, study: str, option: str) -> bool:
    return study in choice.options and choice.options[study].takes(option)


def _check_predictions(name: str, kind: StudyKind, *, boxes: bool) -> None:
    """BadInput where a study of classes is asked of an object detector, or the other way round."""
    if kind.needs == "boxes" and not boxes:
        raise BadInput(f"the study {name} needs boxes; name an object detector, and the layout of its outputs as --boxes")
    if boxes and kind.needs != "boxes":
        raise BadInput(f"the study {name} needs classes and the model predicts boxes; name it as boxes:MODEL")
