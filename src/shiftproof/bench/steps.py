"""The steps that jobs are made of: models and datasets by their settings, studies assembled, run, measured, reported."""

from __future__ import annotations

import dataclasses
import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from shiftproof import catalog
from shiftproof.corruptions.editions import Fit
from shiftproof.datasets.classes import classes_from, wnids_named
from shiftproof.datasets.clusters import clustering
from shiftproof.datasets.decoding import pixel_limit
from shiftproof.datasets.image_list import ImageList, image_opener
from shiftproof.datasets.label_spaces import Scoring
from shiftproof.datasets.subsets import drawn, of_classes, scoring_of, with_coarse_classes
from shiftproof.errors import BadInput, ClassMismatch, MissingRuns, UnknownName
from shiftproof.options import (
    DatasetSettings,
    EngineSettings,
    ModelSettings,
    PredictionSettings,
    PredictionTable,
    ScoringSettings,
    each_spelled,
    spelled,
)
from shiftproof.runs.load import has_predictions, locate
from shiftproof.runs.plan import KnownInputs, keeps_of, measurable
from shiftproof.runs.records import Reached, StoredModel
from shiftproof.runs.store import Store
from shiftproof.runs.stored_models import preprocessing_told, versions
from shiftproof.studies.base import model_ref
from shiftproof.studies.choice import EVERY, Studies, StudyEntry, choice_of, chosen_entries
from shiftproof.studies.measure import loader_of, measure
from shiftproof.studies.options import Assembled, Context, joined
from shiftproof.studies.timed_profile import common_reach
from shiftproof.types import (
    CLEAN,
    Again,
    Caution,
    Dataset,
    Loader,
    Model,
    ModelRef,
    ObjectDetector,
    RecordedDetector,
    Releasable,
    Results,
    Run,
    Study,
    richest,
)

if TYPE_CHECKING:
    from shiftproof.options import ForecastOptions
    from shiftproof.runs.engines import Engine
    from shiftproof.runs.forecast import Forecast, Planned
    from shiftproof.runs.predict import Progress
    from shiftproof.runs.workers import Workers

Tell: TypeAlias = Callable[[str], None]
"""Takes a line for the person who waits."""


@dataclass(frozen=True)
class Bench:
    """The steps that jobs are made of."""

    context: Context
    scoring_options: ScoringSettings
    scoring: Scoring
    model_options: ModelSettings
    engine: Engine | None = None  # where models run; None: here

    @classmethod
    @contextmanager
    def of(
        cls,
        store: str | Path | Store = "runs",
        dataset_options: DatasetSettings | None = None,
        scoring: ScoringSettings | None = None,
        model_options: ModelSettings | None = None,
        tell: Tell | None = None,
        engine: str | EngineSettings | None = None,
    ) -> Iterator[Bench]:
        """A bench for one job; images above the limit of pixels are skipped until it is done."""
        store = store if isinstance(store, Store) else Store(store)
        dataset_options, scoring = dataset_options or DatasetSettings(), scoring or ScoringSettings()
        model_options = model_options or ModelSettings()
        context = Context(store, dataset_options, model_options.trust, tell or (lambda _: None))
        with pixel_limit(dataset_options.max_pixels), engine_for(engine, context.tell) as opened:
            yield cls(context, scoring, scoring_of(scoring), model_options, opened)

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
        from shiftproof.models.by_settings import load_any, load_classifier  # what is stored is read without models

        def opener(options: ModelSettings) -> Callable[[], Model]:
            return partial(load_classifier, model, options) if classifier else partial(load_any, model, options, prediction)

        if self.engine is None:
            return opener(self.model_options)()
        # the device is that of workers: here the model only says what it is
        here = dataclasses.replace(self.model_options, device=None)
        return self.sendable(opener(here)(), opener(self.model_options))

    def sendable(self, model: Model, opener: Callable[[], Model]) -> Any:
        """The model again, which workers of the engine open by themselves."""
        if self.engine is not None:
            self.engine.openers[model.ref.fingerprint] = opener
        return model

    def adapted(self, model: Model, images: Dataset) -> Any:
        """The same; one that adapts at test time adapts to these images."""
        from shiftproof.runs.adapting import adapted_to  # as above

        return adapted_to(model, images, self.store)

    def stored_or_loaded(self, model: str | Model | ModelRef, images: Dataset | None = None) -> ModelRef:
        """A stored model by its name; the model itself where options say something of it, which the store then learns."""
        if isinstance(model, ModelRef):
            return model
        if isinstance(model, str) and not self.model_options.given - ModelSettings.NO_IDENTITY:
            try:
                return self.context.stored_model(model)
            except UnknownName:
                pass
        loaded: Model = self.model(model)
        if images is not None:
            loaded = self.adapted(loaded, images)
        if self.store.model(loaded.ref) is not None:
            self.store.save_model(StoredModel.of(loaded), asked=False)
        return loaded.ref

    def compared(self, models: Sequence[str | Model | ModelRef], images: Dataset) -> list[ModelRef]:
        """The stored models that were named; else the newest version of every name, if it has predicted these images."""
        if models:
            chosen = [self.context.stored_model(one) if isinstance(one, str) else model_ref(one) for one in models]
        else:
            predicted = [one for one in versions(self.store) if self._has_predicted(one.model.ref, images)]
            newest = [one.model for one in predicted if one.newest]
            chosen = [one.ref for one in newest if self._can_be_scored(one, images)]
            for ref in chosen:
                self.context.tell_versions(ref)
            for one in predicted:
                if not one.newest and one.model.ref.name not in {other.ref.name for other in newest}:
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
                made += self._stored(entries, models, one, choice_of(studies).names)
            else:
                made += [self.whole(entry, models, one, full, choice_of(studies).names) for entry in entries]
                made.append(Assembled([], [one]))
        return joined(made)

    def whole(
        self, entry: StudyEntry, models: Sequence[Model | ModelRef], images: Dataset, full: bool, names: Sequence[str] | None
    ) -> Assembled:
        """A study as its options say, or with all units it can have."""
        work = entry.assemble(models, images, self.context, entry.most(images) if full else None)
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
        choice, boxes = choice_of(studies), self._predict_boxes(models)
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
            wanted = units or named or (any_name and entry.kind.always)
            stored, missing = ([], []) if wanted else self._stored_runs(work)
            if not missing:
                yield work if any_name or named else dataclasses.replace(work, unasked=work.studies)
            elif stored:
                told = f"{entry.kind.title} is left out, for want of some of what it needs: {missing[0].for_command()}"
                yield Assembled([], [], cautions=[Caution(told)])

    def _stored_runs(self, work: Assembled) -> tuple[list[Run], list[MissingRuns]]:
        """Runs that these studies alone need and that are there, up to each model's first that is not, and what that says.

        Predictions for the clean images serve every study, so they show nothing but where saliency maps are needed too.
        """
        from shiftproof.runs.saliency import NeedsSaliency, check_saliency  # what is stored is read without models

        sets = {images.ref: images for images in work.datasets}
        stored: list[Run] = []
        missing: list[MissingRuns] = []
        for study in work.studies:
            lacking: set[ModelRef] = set()  # of these the rest is not looked for
            for run in (one for one in study.runs() if one.model not in lacking):
                try:
                    locate(run, sets[run.dataset], store=self.store, keep=study.keep)
                    if run.condition != CLEAN or isinstance(study, NeedsSaliency):
                        stored.append(run)
                    if isinstance(study, NeedsSaliency):
                        check_saliency(study, run, sets[run.dataset], store=self.store, scoring=self.scoring)
                except MissingRuns as problem:
                    missing.append(problem)
                    lacking.add(run.model)
        return stored, missing

    def _has_predicted(self, model: ModelRef, images: Dataset) -> bool:
        """Whether the store has its predictions for these images, or for those of a profile."""
        reached = self.store.reached(model, images.ref)
        some = drawn(images, reached.images) if reached else images
        return has_predictions(model, some, store=self.store)

    def _can_be_scored(self, model: StoredModel, images: Dataset) -> bool:
        """Whether its classes are those of the images; the network that a head was trained on often has others."""
        if images.classes is None or model.gives == "boxes" or model.outputs is None:
            return True
        try:
            self.scoring.space(images.classes, model.classes, outputs=model.outputs)
        except ClassMismatch as error:
            self.tell(f"note: {model.ref.name} is left out: {error}")
            return False
        return True

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
        from shiftproof.runs.predict import check_stored, fill_studies

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
                engine=self.engine_of(one),
            )
            if one is not model and isinstance(one, Releasable):  # one network after the other, not all in memory at once
                one.release()

    def engine_of(self, model: Model) -> Engine | None:
        """The engine, where the model can be sent to its workers; a companion that cannot be runs here."""
        if self.engine is None or model.companion is None:
            return self.engine
        from shiftproof.runs.engines import opener_of

        try:
            opener_of(self.engine, model)
        except BadInput:
            self.tell(f"note: {model.ref.name} is made of the model in this process, so it runs here and not on the engine")
            return None
        return self.engine

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
        predictions: str | Path | None = None,
    ) -> Results:
        """What the studies find in the store, with a report and predictions as files where asked for."""
        check_table(predictions)
        images = self.dataset(dataset)
        models = [loaded := self.stored_or_loaded(model, images)]
        work = self.assemble(models, images, studies, unreviewed=unreviewed, stored=True)
        self.measurable(work, models, told=False)  # the results tell it
        again = [self.again(model, loaded, dataset, images, studies)]
        return self.report(work, report, again=again, predictions=predictions)

    def loader(self, study: Study, work: Assembled) -> Loader:
        """What the study loads of the store, where more is made of it than findings."""
        return loader_of(
            study,
            store=self.store,
            datasets=work.datasets,
            scoring=self.scoring,
            cluster=self.scoring_options.cluster,
        )

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
        return dataclasses.replace(results, findings=(*results.findings, *work.cautions))

    def report(
        self,
        work: Assembled,
        path: str | Path | None,
        *,
        again: Iterable[Again] = (),
        predictions: str | Path | None = None,
    ) -> Results:
        """The same, with a report and predictions as files where asked for; `again` is for `Results.again`."""
        results = self.measure(work)
        if predictions is not None:
            self.save_predictions(predictions, [run for study in work.studies for run in study.runs()], work.datasets)
        return self.saved(dataclasses.replace(results, again=tuple(again)), work, path)

    def save_predictions(self, path: str | Path, runs: Sequence[Run], datasets: Iterable[Dataset]) -> None:
        """The stored predictions of runs, as a table for other programs."""
        from shiftproof.runs.prediction_tables import save_predictions

        save_predictions(path, runs, datasets, store=self.store, scoring=self.scoring)

    def forecasts(
        self, planned: Planned, model: Model, images: Dataset, studies: Sequence[Study], asked: ForecastOptions
    ) -> list[Forecast]:
        """What is left of a plan would take on so many machines as fast as was said, or as this one is found to be."""
        from shiftproof.runs.forecast import Speed, forecasts, probe

        speed = Speed(asked.rate or 0.0)
        if asked.probe:
            keeps = {run: keep for run, keep in keeps_of(studies, self.scoring.keep).items() if run.dataset == images.ref}
            conditions = list(dict.fromkeys(run.condition for run in keeps))
            speed = probe(model, images, conditions or [CLEAN], richest([*keeps.values()] or [self.scoring.keep]))
            stored = f"{speed.bytes_stored:.3g} bytes stored of each"
            self.tell(f"this machine does {speed.images_a_second:.3g} images a second, {stored}")
        left = sum(int(row["to do"]) for row in planned)
        return list(forecasts(left, asked.nodes or (1,), speed, asked.price))

    @staticmethod
    def saved(results: Results, work: Assembled, path: str | Path | None, *, title: str | None = None) -> Results:
        """Results, with a report as a file where one is asked for."""
        if path is not None:
            from shiftproof.reports.build import save_report

            save_report(path, results, open_image=image_opener(work.datasets), title=title)
        return results

    def again(
        self,
        model: str | Model | ModelRef,
        loaded: Model | ModelRef,
        dataset: str | Path | Dataset,
        images: Dataset,
        studies: Studies,
    ) -> Again:
        """How a model was measured on the images; without a command where it or they are not what can be typed."""
        location = dataset.ref.location if isinstance(dataset, Dataset) else os.fspath(dataset)
        name = model_ref(loaded).name
        given = {study: each_spelled(options) for study, options in choice_of(studies).options.items()}
        store = "" if self.store.root == Path("runs") else str(self.store.root)
        command = ""
        if location is not None and isinstance(model, str):
            settings = [self.model_options, self.context.dataset_options, self.scoring_options]
            words = [word for options in settings for word in spelled(options)]
            kept = ["--store", store] if store else []
            # of a stored one only the name is known, under which it goes on
            typed, named = (model, []) if can_be_loaded(model) else ("MODEL", ["--name", name])
            command = shlex.join(["shiftproof", "run", typed, location, *words, *named, *kept])
        return Again(name, images.ref.name, command, given, store)

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

    def tell_edition(self, fit: Fit, *, scaled: bool = False) -> None:
        for line in fit.told(scaled=scaled):
            self.tell(line)


@contextmanager
def engine_for(engine: str | EngineSettings | None, tell: Tell) -> Iterator[Engine | None]:
    """The engine of one job; None where work is done here."""
    if (engine.engine if isinstance(engine, EngineSettings) else engine or "local") == "local":
        yield None
        return
    from shiftproof.runs.engines import opened_engine  # which knows what runs models

    with opened_engine(engine, tell) as opened:
        yield opened


def check_table(predictions: str | Path | None) -> None:
    """BadInput where predictions cannot be written as what the name of the file says."""
    PredictionTable(predictions=None if predictions is None else os.fspath(predictions))


def can_be_loaded(model: str) -> bool:
    """Whether this is a model spec, and not only the name of a stored model."""
    return model.partition(":")[0] in catalog.MODELS or Path(model).exists()
