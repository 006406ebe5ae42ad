"""Measures stored predictions: `measure` runs studies on a store, and never predicts."""

from __future__ import annotations

import dataclasses
import platform
import shlex
import sys
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import shiftproof
from shiftproof import catalog
from shiftproof.columns import in_blocks
from shiftproof.corruptions.selection import trained_with
from shiftproof.datasets import open_dataset
from shiftproof.datasets.clusters import Clustering, clustering, looks_clustered
from shiftproof.datasets.label_spaces import Scoring
from shiftproof.datasets.sample_table import SampleTable, counted_samples, fact_names
from shiftproof.datasets.subsets import labelled_among, unlabelled
from shiftproof.errors import BadInput, MissingRuns, listed
from shiftproof.judging import profile
from shiftproof.reference import ilsvrc_classes
from shiftproof.runs.load import (
    StoredTraining,
    alike_in,
    digests_of,
    load_found,
    load_predictions,
    load_training,
    python_call,
)
from shiftproof.runs.plan import KnownInputs, measurable
from shiftproof.runs.records import StoredModel
from shiftproof.runs.store import Store
from shiftproof.runs.stored_models import companion_told, older_told
from shiftproof.types import (
    CLEAN,
    Caution,
    Dataset,
    DatasetCard,
    DatasetRef,
    Finding,
    FoundObjects,
    Keep,
    Loader,
    Measurement,
    ModelCard,
    ModelRef,
    Note,
    Predictions,
    Reading,
    Results,
    Run,
    Sample,
    Seen,
    Skipped,
    SkippedImage,
    Study,
    Training,
)

if TYPE_CHECKING:
    from shiftproof.runs.saliency import SaliencyMaps, SaliencyRequest

NAMED_VERSIONS = ("numpy", "pillow", "scipy", "onnxruntime", "torch", "opencv-python-headless", "numba", "av")
"""Libraries on which pixels or numbers depend; those installed are named in every result."""

Place: TypeAlias = tuple[str, str | None]
"""What tells datasets apart, see `DatasetRef.place`."""

Loaded = TypeVar("Loaded", Predictions, StoredTraining, FoundObjects)

MOST_ROWS = 2_000_000
"""Rows of top-5 predictions that are kept in memory during a study: about 100 MB."""


def measure(
    studies: Study | Sequence[Study],
    *,
    store: str | Path | Store = "runs",
    datasets: Iterable[Dataset] = (),
    scoring: Scoring | None = None,
    cluster: str | None = None,
) -> Results:
    """Everything the studies find in stored predictions.

    Sets are opened again by their location; give those that live in memory, or are open already, as `datasets`.
    `cluster` names what is one cluster, see `datasets.clusters`: a fact of the images such as "patient", a CSV file,
    or "image" for every image by itself; where it is not given, frames of a clip and versions of one photo are found,
    and near-duplicates where `curation.duplicates` looked for them with this store.
    MissingRuns names every run that was never made, with the command that makes it.
    """
    studies, datasets = [studies] if isinstance(studies, Study) else list(studies), list(datasets)
    loader = _Loader(store if isinstance(store, Store) else Store(store), datasets, scoring, clustering(cluster))
    studies, reasons = measurable(studies, loader.known(studies))
    loader.check_clusters(dict.fromkeys(run.dataset for study in studies for run in study.runs()))
    findings, notes = list[Finding](), list[Note](map(Skipped, reasons))
    for study in studies:
        for found in study.measure(loader.loading(study)):
            if isinstance(found, Skipped):
                notes.append(dataclasses.replace(found, study=type(study).__name__))
            elif isinstance(found, Caution):
                notes.append(found)
            else:
                findings.append(found)
    runs = list(dict.fromkeys(run for study in studies for run in study.runs()))
    cautions = [*(one for run in runs for one in loader.cautions(run, findings)), *loader.seen_in_training(runs)]
    beside = _named_in(findings, datasets, besides={run.dataset.name for run in runs})
    results = Results(
        (*findings, *cautions, *_unique(notes, repr)),
        models=_unique(
            (loader.model_card(run) for run in {run.model: run for run in runs}.values()), lambda card: card.fingerprint
        ),
        datasets=_unique(
            map(loader.dataset_card, dict.fromkeys([*(run.dataset for run in runs), *beside])),
            lambda card: (card.fingerprint, card.location),
        ),
        command=typed_command(),
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=versions(),
    )
    return dataclasses.replace(results, profiles=profile(results))


def loader_of(
    study: Study, *, store: Store, datasets: Iterable[Dataset], scoring: Scoring | None = None, cluster: str | None = None
) -> Loader:
    """What a study reads its runs by, for whoever needs more of them than what it finds; as `measure` does."""
    return _Loader(store, datasets, scoring, clustering(cluster)).loading(study)


def _named_in(findings: Iterable[Finding], datasets: Iterable[Dataset], besides: Collection[str]) -> list[DatasetRef]:
    """Datasets that findings name though no run is of them: the photos whose perturbation sequences were run."""
    names = {found.about["dataset"] for found in findings if "dataset" in found.about}
    return [images.ref for images in datasets if images.ref.name in names and images.ref.name not in besides]


def versions() -> dict[str, str]:
    """This package, Python, the libraries that numbers depend on and the plug-ins, as they are installed here."""
    found = {"shiftproof": shiftproof.__version__, "python": platform.python_version()}
    return found | _libraries() | catalog.plugins()


@cache
def _libraries() -> dict[str, str]:
    """The libraries that numbers depend on; reading what each says of itself takes as long as loading ten runs."""
    found = {}
    for name in NAMED_VERSIONS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


class _Loader:
    """Predictions for studies, each run read once for as long as one study needs it."""

    def __init__(self, store: Store, datasets: Iterable[Dataset], scoring: Scoring | None, clusters: Clustering) -> None:
        self._store = store
        self._scoring = scoring
        self._clustering = clusters
        self._sets = {images.ref.place: images for images in datasets}
        self._models: dict[ModelRef, StoredModel] = {}
        self._joined: dict[Place, Clustering] = {}
        self._digests: dict[Place, Mapping[str, str | None]] = {}
        self._aside: dict[Place, dict[str, SkippedImage]] = {}
        self._scored: dict[Run, int] = {}  # how many classes the predictions of a run were scored among
        self._unmatched: dict[Run, int] = {}  # how many images lost their label, since the model lacks their class

    def check_clusters(self, refs: Iterable[DatasetRef]) -> None:
        """UnknownName before anything is computed where no set has the fact that images are to be clustered by."""
        if self._clustering.by is not None:
            self._clustering.check(self.dataset(ref) for ref in refs)

    def clustering(self, ref: DatasetRef) -> Clustering:
        """What is one cluster in this dataset, near-duplicates that were found joined unless something else was named."""
        if ref.place not in self._joined:
            images, named = self.dataset(ref), self._clustering.by is not None
            alike = {} if named else alike_in(images, self._store)
            self._joined[ref.place] = self._clustering.joining(images.samples, alike)
        return self._joined[ref.place]

    def _trained_on(self, model: StoredModel, ref: DatasetRef) -> str | None:
        """The name under which the model declares this dataset, or the one that it is a part of, among its training data."""
        origin = self.dataset(ref).origin
        names = (ref.name, *([origin.name] if origin else []))
        return next((name for name in names if name in model.seen.trained_on), None)

    def known(self, studies: Iterable[Study]) -> KnownInputs:
        """What can be told of these studies before anything is read."""
        refs = dict.fromkeys(run.model for study in studies for run in study.runs())
        stored = [self._store.model(ref) for ref in refs]
        classes = tuple(None if model is None else model.classes for model in stored)
        return KnownInputs(self.dataset, classes, self._scoring or Scoring())

    def loading(self, study: Study) -> _Load:
        return _Load(self, study)

    def cautions(self, run: Run, findings: Iterable[Finding]) -> Iterator[Caution]:
        """What spoils this dataset as a test of this model: its declared past, or signs that it is fed or read wrongly."""
        about, model, published = run.about(), self.model(run), self.dataset(run.dataset).published
        if published and published in model.seen.filtered:
            text = (
                f"{model.ref.name} was a filter model of {published}: images it classified correctly were removed, "
                "so its accuracy is low by construction"
            )
            yield Caution(text, "past", about)
        if published and published in (model.seen.training_data, *model.seen.trained_on):
            text = f"{model.ref.name} was trained on {published}: its accuracy there says nothing about new images"
            yield Caution(text, "past", about)
        elif (name := self._trained_on(model, run.dataset)) is not None:
            text = (
                f"{model.ref.name} was trained on a dataset called {name}: where these are its images, accuracy on them "
                "says nothing about new ones"
            )
            yield Caution(text, "past", about)
        if lost := self._unmatched.get(run):
            text = (
                f"{run.dataset.name}: {lost:,} of {len(self.dataset(run.dataset).samples):,} images are of "
                f"classes that {model.ref.name} lacks; they count as unlabelled, so what needs labels goes without them"
            )
            yield Caution(text, "classes", about)
        measured = [one for one in findings if isinstance(one, Measurement)]
        accuracies = [one for one in measured if one.metric == "top1_accuracy" and one.about == about]
        precisions = [
            one for one in measured if one.metric == "mean_average_precision" and about.items() <= one.about.items()
        ]
        if self._clustering.by is None and run.condition == CLEAN:
            samples = self.dataset(run.dataset).samples
            why = None if self._clustering.unjoined(samples) else looks_clustered(samples)
            if why:
                text = (
                    f"{run.dataset.name}: {why}. If they come from one source they are one cluster: say which with "
                    "--cluster (a fact of the images, or a table), or CIs are too narrow; --cluster image says they do not"
                )
                yield Caution(text, "clusters", about)
        if run.condition == CLEAN and (lacking := self._clustering.without(samples := self.dataset(run.dataset).samples)):
            text = (
                f"{run.dataset.name}: {lacking:,} of {len(samples):,} images have nothing in {self._clustering.by} to "
                "cluster them by; each counts as a cluster of its own"
            )
            yield Caution(text, "clusters", about)
        hints = [
            *(accuracy_hint(one.value, self._scored.get(run) or model.outputs or 0, one.images) for one in accuracies),
            precision_hint([one.value for one in precisions], max((one.images for one in precisions), default=0)),
        ]
        told = (f"{model.ref.name} on {run.dataset.name}: {hint}" for hint in hints if hint)
        yield from (Caution(text, "implausible", about) for text in told)

    def seen_in_training(self, runs: Iterable[Run]) -> Iterator[Caution]:
        """What models are tested under although they declare to have been trained with it."""
        tested: dict[ModelRef, dict[str, None]] = {}
        in_set: dict[DatasetRef, tuple[str, ...]] = {}
        for run in runs:
            if run.dataset not in in_set:
                in_set[run.dataset] = _shifts_in(self.dataset(run.dataset).samples)
            tested.setdefault(run.model, {}).update(dict.fromkeys([run.condition.name, *in_set[run.dataset]]))
        for ref, names in tested.items():
            declared = self.model(Run(ref, next(iter(in_set)))).seen.augmentations
            among = [name for name in names if name in trained_with(declared)]
            if among:
                text = (
                    f"{ref.name} declares {listed(declared)} as augmentation of its training and is tested under "
                    f"{listed(among)}: robustness there says nothing about unseen shifts. Numbers called unseen exclude "
                    "these; published means such as mCE do not"
                )
                yield Caution(text, "past", {"model": ref.name})

    def model(self, run: Run) -> StoredModel:
        model = self._stored_model(run.model)
        if model is None:
            call = python_call(run, self._store, "top5")
            raise MissingRuns(f"nothing of {run.model.name} is stored in {self._store.root}", call=call)
        return dataclasses.replace(model, ref=run.model)

    def _stored_model(self, ref: ModelRef) -> StoredModel | None:
        """The model as the store has it, read once."""
        if ref not in self._models and (model := self._store.model(ref)) is not None:
            self._models[ref] = model
        return self._models.get(ref)

    def model_card(self, run: Run) -> ModelCard:
        model, versions = self.model(run), older_told(run.model, self._store)
        companion = companion_told(model, self._store)
        return ModelCard(
            model.ref.name,
            model.ref.fingerprint,
            gives=model.gives,
            preprocessing=model.preprocessing,
            seen=model.seen,
            classes=model.outputs,
            notes=(*model.notes, *([versions] if versions else [])),
            companion=companion,
            label_space="imagenet" if model.classes and model.classes.wnids == ilsvrc_classes().wnids else None,
        )

    def dataset(self, ref: DatasetRef) -> Dataset:
        if ref.place not in self._sets:
            if ref.location is None:
                raise BadInput(f"{ref.name} lives in memory; give it to measure as datasets=[...]")
            self._sets[ref.place] = open_dataset(ref.location)
        return self._sets[ref.place]

    def dataset_card(self, ref: DatasetRef) -> DatasetCard:
        images = self.dataset(ref)
        clusters = self.clustering(ref).of(images.samples)
        return DatasetCard(
            ref.name,
            ref.fingerprint,
            images=len(images.samples),
            labelled=counted_samples(images.samples).labelled - self._without_match(ref),
            location=ref.location,
            classes=None if images.classes is None else len(images.classes),
            skipped_images=tuple(self._aside.get(ref.place, {}).values()),
            notes=images.notes,
            credits=images.credits,
            clusters=None if clusters is None or clusters.numbers is None else clusters.count,
            unit="image" if clusters is None else clusters.case,
            published=images.published,
            origin=images.origin,
        )

    def _without_match(self, ref: DatasetRef) -> int:
        """Images of a set that no model has the class of, by the model that has most."""
        return min((count for run, count in self._unmatched.items() if run.dataset.place == ref.place), default=0)

    def load(
        self, how: Callable[..., Loaded], run: Run, keep: Keep, *, partial: bool, reading: Reading | None = None
    ) -> Loaded:
        answers = how(
            run,
            self._read_as(run.dataset, reading),
            store=self._store,
            keep=keep,
            scoring=self._scoring,
            clustering=self.clustering(run.dataset),
            partial=partial,
            digests=self.digests(run.dataset),
            model=self._stored_model(run.model),
        )
        aside = self._aside.setdefault(run.dataset.place, {})
        aside.update((image.id, image) for image in answers.skipped_images)
        self._scored[run] = len(answers.classes or ())
        if isinstance(answers, Predictions) and (reading is None or reading.labelled):
            labelled = _labelled_in(self.dataset(run.dataset).samples, answers.ids)
            self._unmatched[run] = labelled - int(answers.labelled.sum())
        return answers

    def saliency(self, run: Run, asked: SaliencyRequest, method: str | None) -> SaliencyMaps:
        from shiftproof.runs.saliency import load_saliency  # numbers are read without models

        return load_saliency(run, asked, root=self._store.root, digests=self.digests(run.dataset), method=method)

    def digests(self, ref: DatasetRef) -> Mapping[str, str | None]:
        if ref.place not in self._digests:
            self._digests[ref.place] = digests_of(self.dataset(ref), self._store)
        return self._digests[ref.place]

    def _read_as(self, ref: DatasetRef, reading: Reading | None) -> Dataset:
        """The set as its own labels have it, or as the study wants it read."""
        images = self.dataset(ref)
        if reading is None:
            return images
        classes = None if reading.among is None else self.dataset(reading.among).classes
        if not reading.labelled:
            return unlabelled(images, classes)
        # among all of a model's classes every set speaks for itself; a choice of them, or more, are those of the set named
        if self._scoring is None or (self._scoring.keep == "top5" and self._scoring.unmatched != "wrong"):
            return images
        if reading.among is not None and classes is None:
            raise BadInput(
                f"{reading.among.name} has no labels, so {ref.name} cannot be read among its classes; label it, or leave "
                "out --scored, --class-groups and --unmatched wrong"
            )
        return images if classes is None else labelled_among(images, classes)


def _labelled_in(samples: Sequence[Sample], ids: Sequence[str]) -> int:
    """How many of these images have a label in their dataset."""
    if len(ids) == len(samples):
        return counted_samples(samples).labelled
    if isinstance(samples, SampleTable):
        labelled = samples.labelled
        return sum(int(labelled[samples.ids.places(some)].sum()) for _, some in in_blocks(ids))
    stored = {sample.id for sample in samples if sample.labels}
    return sum(image in stored for image in ids)


def _shifts_in(samples: Sequence[Sample]) -> tuple[str, ...]:
    """The corruptions and perturbations that images were made with, as their facts say."""
    there = [name for name in ("corruption", "perturbation") if name in fact_names(samples)]
    held = (str(sample.facts.get(name) or "") for name in there for sample in samples)
    return tuple(dict.fromkeys(held)) or ("",)


class _Load:
    """What a study calls to read a run; studies ask for each several times, so as many as memory allows are kept."""

    def __init__(self, loader: _Loader, study: Study) -> None:
        self._loader, self._keep, self._partial = loader, study.keep, study.partial
        self._reading: Callable[[Run], Reading | None] = study.reading
        self._kept: dict[Run, Predictions] = {}

    def __call__(self, run: Run) -> Predictions:
        if run not in self._kept:
            predictions = self._load(load_predictions, run)
            most = MOST_ROWS if self._keep == "top5" else 0
            if sum(map(len, self._kept.values())) + len(predictions) > most:
                self._kept.clear()
            self._kept[run] = predictions
        return self._kept[run]

    def training(self, run: Run) -> Training:
        """The same for learning from, block by block: a training set need not fit into memory."""
        return self._load(load_training, run)

    def seen(self, run: Run) -> Seen:
        """What the model of a run says of its own past."""
        return self._loader.model(run).seen

    def found(self, run: Run) -> FoundObjects:
        """Detections and ground truth."""
        return self._load(load_found, run)

    def _load(self, how: Callable[..., Loaded], run: Run) -> Loaded:
        return self._loader.load(how, run, self._keep, partial=self._partial, reading=self._reading(run))

    def images(self, ref: DatasetRef) -> Dataset:
        """The images themselves, for what is known of them beside predictions, such as boxes."""
        return self._loader.dataset(ref)

    def saliency(self, run: Run, predictions: Predictions, asked: SaliencyRequest, method: str | None) -> SaliencyMaps:
        """Saliency maps of these images, each for these columns of the predictions' classes."""
        from shiftproof.runs.saliency import to_columns

        columns = to_columns(asked, predictions.classes, self._loader.model(run).classes)
        return self._loader.saliency(run, columns, method)

    def images_in_both(self, first: DatasetRef, second: DatasetRef) -> int:
        """How many images of the first set the second one holds too, byte for byte."""
        ours, theirs = ({digest for digest in self._loader.digests(ref).values() if digest} for ref in (first, second))
        return len(ours & theirs)


Value = TypeVar("Value")


def _unique(values: Iterable[Value], key: Callable[[Value], Hashable]) -> tuple[Value, ...]:
    """The first of each key."""
    found: dict[Hashable, Value] = {}
    for value in values:
        found.setdefault(key(value), value)
    return tuple(found.values())


def typed_command() -> str:
    """The command that this process runs; nothing where Python called."""
    return shlex.join(["shiftproof", *sys.argv[1:]]) if Path(sys.argv[0]).stem in ("shiftproof", "__main__") else ""


SURPRISE = 0.001
"""Accuracy that guessing reaches more often than this counts as near chance."""
ENOUGH_IMAGES = 10
"""In fewer a good detector may find nothing."""


def accuracy_hint(accuracy: float, classes: int, images: int) -> str | None:
    """A warning where accuracy is no better than chance (one-sided binomial test), else None.

    >>> accuracy_hint(0.88, classes=1000, images=200) is None
    True
    >>> accuracy_hint(0.005, classes=1000, images=200)
    'accuracy of 1 in 200: no better than chance among 1000 classes; check the preprocessing and the order of the classes'
    """
    from scipy.special import betainc

    correct = round(accuracy * images)
    # the chance that guessing gets at least as many correct; with none correct that is certain
    chance = betainc(correct, images - correct + 1, 1 / classes) if correct else 1.0
    too_few = correct > 0 and classes**-images >= SURPRISE  # all could be correct and it would say nothing
    if images == 0 or classes < 2 or too_few or chance < SURPRISE:
        return None
    return (
        f"accuracy of {correct} in {images}: no better than chance among {classes} classes; "
        "check the preprocessing and the order of the classes"
    )


def precision_hint(precisions: Sequence[float], images: int) -> str | None:
    """A warning where a detector has no true positive in many images at any IoU, else None.

    >>> precision_hint([0.0, 0.0], images=100)
    'no true positive in 100 images; check the layout of the outputs, the preprocessing and the order of the classes'
    """
    if not precisions or any(precisions) or images < ENOUGH_IMAGES:
        return None
    return (
        f"no true positive in {images:,} images; "
        "check the layout of the outputs, the preprocessing and the order of the classes"
    )
