"""The whole job as a call: run, plan, measure again and compare, as the command does.

A model is a spec such as ``lite:0`` or a model; a dataset is a location or a dataset; studies are names, or names with
their options. What is worth knowing before a long run is given to `tell`, line by line. Each job is made of the steps of
a `Bench`, and imports what runs models only where it does.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, overload

from shiftproof.bench.job import BenchKeywords, Job, JobKeywords, takes
from shiftproof.bench.steps import Bench, Tell, check_table
from shiftproof.datasets.label_spaces import Scoring
from shiftproof.datasets.subsets import unlabelled
from shiftproof.errors import BadInput, ClassMismatch
from shiftproof.options import DatasetSettings, EngineSettings, ModelSettings, PredictionSettings, ScoringSettings, TimeLimit
from shiftproof.places import local_path
from shiftproof.runs.plan import plan_runs
from shiftproof.runs.store import Store
from shiftproof.studies.choice import Studies, choice_of
from shiftproof.studies.options import joined
from shiftproof.types import (
    CLEAN,
    Classifier,
    Condition,
    Dataset,
    FoundObjects,
    Model,
    ModelRef,
    ObjectDetector,
    Predictions,
    Results,
    Run,
    Study,
)

if TYPE_CHECKING:
    from shiftproof.bench.label_errors import LabelErrors
    from shiftproof.curation.options import LabelReview
    from shiftproof.options import ForecastOptions, ImageChoice, WorkerSettings
    from shiftproof.runs.forecast import Planned
    from shiftproof.runs.predict import Progress, Tally
    from shiftproof.studies.estimate.options import EstimateOptions
    from shiftproof.studies.gate.outcome import Gate
    from shiftproof.studies.gate.rules import GateRule
    from shiftproof.studies.guard.guard import Guard
    from shiftproof.studies.guard.options import GuardOptions, WatchOptions
    from shiftproof.studies.guard.watching import Watch
    from shiftproof.studies.labels.options import LabelOptions
    from shiftproof.studies.probe.options import ProbeOptions
    from shiftproof.studies.slices.options import SliceOptions
    from shiftproof.studies.threshold.exported import ExportedThreshold
    from shiftproof.studies.threshold.options import ThresholdOptions
    from shiftproof.training.options import GridOptions, TrainOptions
    from shiftproof.training.trained import Trained


@takes(JobKeywords)
def run(
    model: str | Model,
    dataset: str | Path | Dataset,
    *,
    studies: Studies = None,
    minutes: float | None = None,
    full: bool = False,
    report: str | Path | None = None,
    unreviewed: str | Path | Dataset | None = None,
    engine: str | EngineSettings | None = None,
    **how: Unpack[JobKeywords],
) -> Results:
    """Predicts what is not stored, measures the studies and writes a report where one is asked for.

    Without `studies` it is a robustness profile: every study that fits, within `minutes` or `full`. Named studies are run
    beside accuracy, in full unless there are `minutes`. `unreviewed` is the dataset before review: every study is measured
    on it too. `engine` is where models run: ``local``, ``ray``, ``ray://HOST:PORT`` or ``slurm``.
    """
    from shiftproof.bench.timed import run_profile, save_whole

    started = time.monotonic()
    limit = TimeLimit(minutes=minutes, full=full).minutes_for(named=choice_of(studies).names is not None)
    with Job.of(model, dataset, classifier=False, engine=engine, **how) as job:
        bench, loaded, images = job.bench, job.model, job.images
        if limit is None:
            work = bench.assemble([loaded], images, studies, unreviewed=unreviewed, full=full)
            job.check_classes()
            job.fill(work)
            save_whole(job, studies, full=full)
        else:
            work = run_profile(job, studies, limit, started=started)
            if unreviewed is not None:
                before = bench.assemble([loaded], bench.before_review(unreviewed, images), studies)
                job.fill(before)
                work = joined([work, before])
        return bench.report(work, report, again=[bench.again(model, loaded, dataset, images, studies)])


@takes(BenchKeywords)
def plan(
    model: str | Model,
    dataset: str | Path | Dataset,
    *,
    studies: Studies = None,
    unreviewed: str | Path | Dataset | None = None,
    forecast: ForecastOptions | None = None,
    **how: Unpack[BenchKeywords],
) -> Planned:
    """The runs that the studies need, a row each, with how many images are stored already.

    With a `forecast`, also what is left of them would take on so many machines.
    """
    from shiftproof.runs.forecast import Planned

    with Bench.of(**how) as bench:
        loaded = bench.model(model)
        images = bench.dataset(dataset)
        loaded = bench.adapted(loaded, images)
        whole = choice_of(studies).names is None  # of a profile everything, as with --full
        work = bench.assemble([loaded], images, studies, unreviewed=unreviewed, full=whole)
        left = bench.measurable(work, [loaded])
        bench.tell_editions(work)
        planned = Planned(plan_runs(left, work.datasets, store=bench.store, scoring=bench.scoring))
        if forecast is not None and forecast.wanted:
            planned.forecasts = bench.forecasts(planned, loaded, images, left, forecast)
        return planned


@takes(BenchKeywords)
def measure_stored(
    model: str | Model | ModelRef,
    dataset: str | Path | Dataset,
    *,
    studies: Studies = None,
    predictions: str | Path | None = None,
    unreviewed: str | Path | Dataset | None = None,
    **how: Unpack[BenchKeywords],
) -> Results:
    """Measures stored predictions; never runs the model, which may also be the name of a stored one.

    `predictions` is a CSV or Parquet file for the prediction of each image in every run.
    """
    with Bench.of(**how) as bench:
        return bench.measured(model, dataset, studies, unreviewed=unreviewed, predictions=predictions)


@takes(BenchKeywords)
def report(
    model: str | Model | ModelRef,
    dataset: str | Path | Dataset,
    path: str | Path = "report.html",
    *,
    studies: Studies = None,
    predictions: str | Path | None = None,
    unreviewed: str | Path | Dataset | None = None,
    **how: Unpack[BenchKeywords],
) -> Results:
    """The same, with a report as an HTML file."""
    with Bench.of(**how) as bench:
        return bench.measured(model, dataset, studies, unreviewed=unreviewed, report=path, predictions=predictions)


def compare(
    models: Sequence[str | Model | ModelRef],
    dataset: str | Path | Dataset,
    *,
    studies: Studies = None,
    store: str | Path | Store = "runs",
    report: str | Path | None = None,
    predictions: str | Path | None = None,
    unreviewed: str | Path | Dataset | None = None,
    dataset_options: DatasetSettings | None = None,
    scoring: ScoringSettings | None = None,
    tell: Tell | None = None,
) -> Results:
    """Stored models side by side on the same images, with paired tests.

    Without models, every stored model that has predicted these images, except companion networks that a study made of one.
    """
    check_table(predictions)
    with Bench.of(store, dataset_options, scoring, None, tell) as bench:
        images = bench.dataset(dataset)
        compared = bench.compared(models, images)
        work = bench.assemble(compared, images, studies, unreviewed=unreviewed, stored=True)
        bench.tell_editions(work)  # before what was never run under this one is missed
        named = [one.name for one in compared]
        typed = [name if isinstance(one, str) else one for one, name in zip(models or named, named, strict=True)]
        again = [bench.again(one, ref, dataset, images, studies) for one, ref in zip(typed, compared, strict=True)]
        return bench.report(work, report, again=again, predictions=predictions)


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
    engine: str | EngineSettings | None
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
    engine: str | EngineSettings | None = None,
    progress: Progress | None = None,
) -> Predictions | FoundObjects:
    """The predictions of a classifier for every image, or the detections of an object detector with the ground truth.

    Only images that are not stored are predicted. Images whose class the model lacks have no label, and none has one where
    classes and outputs cannot be matched at all; with a `scoring` of your own that is an error, or as it says.
    """
    from shiftproof.runs.predict import detect_objects, predict_images

    settings = PredictionSettings(keep=keep, half=half, batch_size=batch_size, workers=workers, strict=strict)
    with Bench.of(store, dataset_options, None, model_options, engine=engine) as bench:
        loaded: Model = bench.model(model)
        images = bench.dataset(dataset)
        loaded = bench.adapted(loaded, images)

        def predicted(images: Dataset) -> Predictions | FoundObjects:
            rule = scoring or Scoring(unmatched="unlabelled")
            how: dict[str, Any] = {"settings": settings, "scoring": rule, "engine": bench.engine, "progress": progress}
            if isinstance(loaded, ObjectDetector):
                return detect_objects(loaded, images, condition, store=bench.store, **how)
            return predict_images(loaded, images, condition, store=bench.store, **how)

        try:
            return predicted(images)
        except ClassMismatch:
            if scoring is not None:
                raise
            return predicted(unlabelled(images))


@takes(JobKeywords)
def store_predictions(
    model: str | Model,
    dataset: str | Path | Dataset | Sequence[Dataset],
    *,
    studies: Sequence[Study] | None = None,
    shard: tuple[int, int] = (1, 1),
    predictions: str | Path | None = None,
    engine: str | EngineSettings | None = None,
    **how: Unpack[JobKeywords],
) -> Tally:
    """Predicts the images that are not stored, or this machine's part `shard` of them.

    With `studies`, every run of this model that they name, on all their datasets. `predictions` is a CSV or Parquet file for
    the prediction of each image, those stored before among them.
    """
    from shiftproof.runs.predict import Tally, fill, fill_studies

    check_table(predictions)
    first, *others = [dataset] if isinstance(dataset, (str, Path, Dataset)) else dataset
    with Job.of(model, first, classifier=False, engine=engine, **how) as job:
        bench, loaded, prediction, progress = job.bench, job.model, job.prediction, job.progress
        datasets = [job.images, *(bench.dataset(one) for one in others)]
        bench.tell_preprocessing(loaded, datasets, prediction)
        if studies is not None:
            runs = [run for study in studies for run in study.runs() if run.model == loaded.ref]
            done = fill_studies(
                loaded,
                studies,
                datasets,
                store=bench.store,
                settings=prediction,
                scoring=bench.scoring,
                engine=bench.engine,
                progress=progress,
            )
        else:
            runs = [Run(loaded.ref, images.ref) for images in datasets]
            done = Tally(0, 0, ())
            for images in datasets:
                if not any(sample.labels for sample in images.samples) and not prediction.quiet:
                    unmeasured = "until some have, only what needs none can be measured"
                    bench.tell(f"note: no image of {images.ref.name} has a label: {unmeasured}")
                done += fill(
                    loaded,
                    images,
                    store=bench.store,
                    settings=prediction,
                    shard=shard,
                    engine=bench.engine,
                    progress=progress,
                )
        if predictions is not None:
            bench.save_predictions(predictions, runs, datasets)
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
    from shiftproof.studies.probe.options import ProbeOptions
    from shiftproof.studies.probe.study import ProbeStudy

    prediction, scoring = prediction or PredictionSettings(), ScoringSettings(unmatched="unlabelled")  # labels do not matter
    with Bench.of(store, None, scoring, model_options, tell) as bench:
        loaded = bench.model(model, prediction, classifier=True)
        work = (options or ProbeOptions()).assemble_photo(ProbeStudy, [loaded], os.fspath(photo), bench.context)
        bench.fill(loaded, work, prediction, progress)
        return bench.report(work, report)


@takes(JobKeywords)
def threshold(
    model: str | Classifier,
    dataset: str | Path | Dataset,
    options: ThresholdOptions,
    **how: Unpack[JobKeywords],
) -> ExportedThreshold:
    """A detection threshold of an OOD detector, and what to expect of it."""
    from shiftproof.studies.threshold.exported import ExportedThreshold
    from shiftproof.studies.threshold.study import OperatingPointStudy

    with Job.of(model, dataset, **how) as job:
        work = options.assemble(OperatingPointStudy, [job.model], job.images, job.bench.context)
        job.check_classes()
        job.fill(work)
        return ExportedThreshold.of(job.bench.measure(work))


@takes(JobKeywords)
def guard(
    model: str | Classifier,
    dataset: str | Path | Dataset,
    output: str | Path = "guard",
    *,
    options: GuardOptions | None = None,
    **how: Unpack[JobKeywords],
) -> Guard:
    """A folder that accepts or abstains where the model is deployed: detector, thresholds, temperature, prediction sets.

    `load_guard` opens it with numpy alone; of an ONNX model it also holds the same network with the guard's outputs.
    """
    from shiftproof.bench.guarded import make_guard
    from shiftproof.studies.guard.options import GuardOptions

    folder = local_path(output, "a guard")
    with Job.of(model, dataset, **how) as job:
        return make_guard(job, options or GuardOptions(), folder)


def watch(
    guard: str | Path | Guard,
    source: str | Path,
    output: str | Path = "watch",
    *,
    options: WatchOptions | None = None,
    store: str | Path | Store = "runs",
    model_options: ModelSettings | None = None,
    dataset_options: DatasetSettings | None = None,
    prediction: PredictionSettings | None = None,
    progress: Progress | None = None,
    tell: Tell | None = None,
) -> Watch:
    """Takes in what is new of a stream, photos or scores, and tells of drift; false alarms are bounded over all time.

    `output` is a folder with a log and a page. What was stopped goes on, and photos that the log knows are not taken again.
    """
    from shiftproof.bench.watched import watch_stream
    from shiftproof.studies.guard.guard import Guard, load_guard
    from shiftproof.studies.guard.options import WatchOptions

    opened = guard if isinstance(guard, Guard) else load_guard(guard)
    folder, settings = local_path(output, "a watch"), prediction or PredictionSettings()
    with Bench.of(store, dataset_options, None, model_options, tell) as bench:
        return watch_stream(opened, os.fspath(source), folder, options or WatchOptions(), bench, settings, progress)


def gate(
    model: str | Model | ModelRef | None = None,
    dataset: str | Path | Dataset | None = None,
    *,
    against: str | Model | ModelRef | None = None,
    margin: float | None = None,
    least: float | None = None,
    most: float | None = None,
    metric: str | Sequence[str] = (),
    slices: str | Sequence[str] = (),
    under: str | Sequence[str] = (),
    rules: str | Path | Sequence[GateRule] | None = None,
    undecided: Literal["pass", "fail"] | None = None,
    write_baseline: str | Path | None = None,
    store: str | Path | Store | None = None,
    model_options: ModelSettings | None = None,
    dataset_options: DatasetSettings | None = None,
    scoring: ScoringSettings | None = None,
    prediction: PredictionSettings | None = None,
    progress: Progress | None = None,
    tell: Tell | None = None,
) -> Gate:
    """Whether a model may replace another: pass, fail or undecided, by confidence intervals of paired differences.

    What is not given is taken from a file of rules, `shiftproof.toml` of the working folder where there is one; limits that
    are given replace its rules. With `write_baseline` nothing is judged.
    """
    from shiftproof.bench.gated import Gated, collection
    from shiftproof.studies.gate.job import settled, written

    job = settled(
        rules,
        {"metrics": metric, "margin": margin, "least": least, "most": most, "slices": slices, "conditions": under},
        {"model": model, "dataset": dataset, "against": against, "undecided": undecided, "store": store},
        writing=write_baseline is not None,
    )
    if job.cluster is not None and (scoring is None or scoring.cluster is None):
        scoring = replace(scoring or ScoringSettings(), cluster=job.cluster)
    prediction = prediction or PredictionSettings()
    with collection(enabled=False), Bench.of(job.store, dataset_options, scoring, model_options, tell) as bench:
        gated = Gated(bench, bench.dataset(job.dataset), job.rules, prediction, progress)
        loaded = gated.model(job.model, bench.model_options)
        if write_baseline is not None:
            return written(gated.baseline(loaded), write_baseline)
        return gated.judged(loaded, job.against, job.undecided)


@takes(JobKeywords)
def estimate_accuracy(
    model: str | Classifier,
    labelled: str | Path | Dataset,
    unlabelled: Sequence[str] = (),
    *,
    options: EstimateOptions | None = None,
    report: str | Path | None = None,
    **how: Unpack[JobKeywords],
) -> Results:
    """The accuracy on images without labels, estimated from labelled images and what corruptions do to them.

    `unlabelled` are locations, as DIR or NAME=DIR, besides those that the options name.
    """
    from shiftproof.studies.estimate.options import EstimateOptions
    from shiftproof.studies.estimate.study import EstimateStudy

    options, scoring = options or EstimateOptions(), how.get("scoring")
    options = replace(options, unlabelled=(*options.unlabelled, *unlabelled))
    if scoring is not None and scoring.unmatched == "wrong":
        raise BadInput(
            "an estimate goes by the model's scores, and there are none for classes that it lacks: leave out "
            "--unmatched wrong, or leave their images unlabelled with --unmatched unlabelled"
        )
    with Job.of(model, labelled, **how) as job:
        work = options.assemble(EstimateStudy, [job.model], job.images, job.bench.context)
        job.check_classes()
        job.fill(work)
        return job.bench.report(work, report)


@takes(JobKeywords)
def find_label_errors(
    model: str | Classifier,
    dataset: str | Path | Dataset,
    *,
    options: LabelOptions | None = None,
    review: LabelReview | None = None,
    report: str | Path | None = None,
    **how: Unpack[JobKeywords],
) -> LabelErrors:
    """Images whose label is likely wrong, the likeliest first, by out-of-sample probabilities.

    `review` makes a review project of them, or takes in the verdicts of one: corrected labels, and the accuracy by them.
    """
    from shiftproof.bench.label_errors import label_errors
    from shiftproof.curation.options import LabelReview
    from shiftproof.studies.labels.options import LabelOptions

    with Job.of(model, dataset, **how) as job:
        return label_errors(job, options or LabelOptions(), review or LabelReview(), report)


@takes(JobKeywords)
def slices(
    model: str | Classifier,
    dataset: str | Path | Dataset,
    *,
    options: SliceOptions | None = None,
    manifest: str | Path | None = None,
    report: str | Path | None = None,
    **how: Unpack[JobKeywords],
) -> Results:
    """Groups of images with a high error rate, found on one half of the images and confirmed on the other.

    A `manifest` has them as facts of the images, for rules of the gate.
    """
    from shiftproof.bench.sliced import find_slices
    from shiftproof.studies.slices.options import SliceOptions

    with Job.of(model, dataset, **how) as job:
        return find_slices(job, options or SliceOptions(), manifest, report)


def train(
    model: str | Classifier,
    dataset: str | Path | Dataset,
    output: str | Path,
    *,
    options: TrainOptions | None = None,
    store: str | Path | Store = "runs",
    model_options: ModelSettings | None = None,
    dataset_options: DatasetSettings | None = None,
    images: ImageChoice | None = None,
    workers: WorkerSettings | None = None,
    progress: Progress | None = None,
    tell: Tell | None = None,
    courses: Path | None = None,
) -> Trained:
    """Trains the model on labelled images, as a recipe says, into a folder that opens wherever a model does.

    What was stopped goes on, and ends with the same weights; a folder that holds this training is left as it is.
    In the folder `courses` checkpoints stay, for trainings whose recipes differ only in what is made of the weights at the
    end, as `lp-ft` and `lp-ft+wise-ft`: the second is not trained again. Whoever names it removes it.
    """
    from shiftproof.datasets.clusters import clustering
    from shiftproof.options import ImageChoice
    from shiftproof.runs.load import alike_in
    from shiftproof.training.head_level import HeadTrainer, with_preprocessing
    from shiftproof.training.options import TrainOptions
    from shiftproof.training.trainings import Request, Trainer, checked_recipes, jobs_of, network_trainer, train_jobs

    options, images = options or TrainOptions(), images or ImageChoice()
    recipes = checked_recipes(options, outliers=options.outliers is not None)  # a slip costs a second and not an hour
    settings = PredictionSettings(workers=None if workers is None else workers.workers)
    with Bench.of(store, dataset_options, _scoring(images), model_options, tell) as bench:
        trainer: Trainer
        if options.level == "network":
            trainer = networks = network_trainer(recipes, progress, bench.tell)
            source = networks.source(model, bench.model_options)
        else:
            loaded: Classifier = with_preprocessing(bench.model(model, classifier=True), recipes)
            trainer, source = HeadTrainer(loaded, bench.store, settings, progress), loaded.ref.fingerprint
        data = bench.dataset(dataset)
        clusters = clustering(images.cluster)
        clusters.check([data])
        request = Request(
            model=model if isinstance(model, str) else "",
            source=source,
            model_options=bench.model_options,
            images=data,
            outliers=None if options.outliers is None else bench.dataset(options.outliers),
            clustering=clusters.joining(data.samples, alike_in(data, bench.store)),
            options=options,
            folder=local_path(output, "a trained model"),
            courses=courses,
        )
        return train_jobs(request, jobs_of(request, bench.store), trainer, bench.tell)


def recipes(
    model: str | Classifier,
    dataset: str | Path | Dataset,
    *,
    options: GridOptions | None = None,
    store: str | Path | Store = "runs",
    report: str | Path | None = None,
    model_options: ModelSettings | None = None,
    dataset_options: DatasetSettings | None = None,
    images: ImageChoice | None = None,
    workers: WorkerSettings | None = None,
    progress: Progress | None = None,
    tell: Tell | None = None,
) -> Results:
    """Trains the model by each recipe with several seeds, and compares them on held-out images and unseen shifts."""
    from shiftproof.bench.grid import compare_trained
    from shiftproof.options import ImageChoice
    from shiftproof.training.options import GridOptions

    images = images or ImageChoice()
    settings = PredictionSettings(workers=None if workers is None else workers.workers)
    with Bench.of(store, dataset_options, _scoring(images), model_options, tell) as bench:

        def train_one(data: Dataset, folder: Path, options: TrainOptions, courses: Path | None) -> Trained:
            return train(
                model,
                data,
                folder,
                options=options,
                store=bench.store,
                model_options=model_options,
                dataset_options=dataset_options,
                images=images,
                workers=workers,
                progress=progress,
                tell=tell,
                courses=courses,
            )

        return compare_trained(bench, dataset, options or GridOptions(), train_one, settings, progress, report)


def _scoring(images: ImageChoice) -> ScoringSettings:
    return ScoringSettings(**{name: getattr(images, name) for name in images.given})
