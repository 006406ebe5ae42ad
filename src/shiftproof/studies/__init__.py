"""Questions asked of stored predictions; `measure` answers them and never predicts."""

from __future__ import annotations

import dataclasses
import platform
import shlex
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

import shiftproof
from shiftproof.corruptions.choosing import trained_with
from shiftproof.errors import BadInput, MissingRuns, listed
from shiftproof.image_sets import open_images
from shiftproof.image_sets.clusters import Clustering, clustering, looks_clustered
from shiftproof.image_sets.scoring import Scoring
from shiftproof.image_sets.views import labelled_among, unlabelled
from shiftproof.loading import StoredTraining, alike_in, digests_of, load_predictions, load_training, python_call
from shiftproof.loading_boxes import load_found
from shiftproof.models.sanity import accuracy_hint, precision_hint
from shiftproof.planning import Known, measurable
from shiftproof.store import Store, StoredModel
from shiftproof.stored_looks import AskedLooks, Looks, load_looks, to_columns
from shiftproof.stored_models import companion_told, older_told
from shiftproof.studies.results import ImageSetCard, ModelCard, Results
from shiftproof.types import (
    CLEAN,
    Finding,
    FoundObjects,
    ImageSet,
    ImageSetRef,
    Keep,
    Measurement,
    ModelRef,
    Predictions,
    Reading,
    Run,
    Seen,
    SetAside,
    Study,
    Training,
)

NAMED_VERSIONS = ("numpy", "pillow", "scipy", "onnxruntime", "torch", "opencv-python-headless", "numba", "av")
"""Libraries on which pixels or numbers depend; those installed are named in every result."""

Place: TypeAlias = tuple[str, str | None]
"""What tells image sets apart, see `ImageSetRef.place`."""

Loaded = TypeVar("Loaded", Predictions, StoredTraining, FoundObjects)

MOST_ROWS = 2_000_000
"""Top-5 answers that are kept in memory while a study is asked: about 100 MB."""


def measure(
    studies: Study | Sequence[Study],
    *,
    store: str | Path | Store = "runs",
    image_sets: Iterable[ImageSet] = (),
    scoring: Scoring | None = None,
    cluster: str | None = None,
) -> Results:
    """Everything the studies find in stored predictions.

    Sets are opened again by their location; give those that live in memory, or are open already, as `image_sets`.
    `cluster` names what counts as one case, see `image_sets.clusters`: a fact of the images such as "patient", a CSV file,
    or "image" for every image by itself; where it is not given, frames of a clip and versions of one photo are found,
    and near-duplicates where `curation.duplicates` looked for them with this store.
    MissingRuns names every run that was never made, with the command that makes it.
    """
    studies = [studies] if isinstance(studies, Study) else list(studies)
    loader = _Loader(store if isinstance(store, Store) else Store(store), image_sets, scoring, clustering(cluster))
    studies, reasons = measurable(studies, loader.known(studies))
    loader.check_clusters(dict.fromkeys(run.image_set for study in studies for run in study.runs()))
    told = [
        (tuple(loader.findings(study)), tuple(loader.said(study, "skipped")), tuple(loader.said(study, "warnings")))
        for study in studies
    ]
    findings = tuple(finding for found, _, _ in told for finding in found)
    runs = list(dict.fromkeys(run for study in studies for run in study.runs()))
    return Results(
        findings,
        models=_unique(loader.model_card(run) for run in {run.model: run for run in runs}.values()),
        image_sets=_unique(loader.image_set_card(run.image_set) for run in runs),
        warnings=tuple(
            dict.fromkeys(
                [
                    *(warning for run in runs for warning in loader.warnings(run, findings)),
                    *loader.seen_in_training(runs),
                    *(warning for _, _, warnings in told for warning in warnings),
                ]
            )
        ),
        skipped=tuple(dict.fromkeys([*reasons, *(reason for _, skipped, _ in told for reason in skipped)])),
        command=typed_command(),
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=versions(),
    )


def versions() -> dict[str, str]:
    """This package, Python and the libraries that numbers depend on, as they are installed here."""
    found = {"shiftproof": shiftproof.__version__, "python": platform.python_version()}
    for name in NAMED_VERSIONS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


class _Loader:
    """Predictions for studies, each run read once for as long as one study needs it."""

    def __init__(self, store: Store, image_sets: Iterable[ImageSet], scoring: Scoring | None, clusters: Clustering) -> None:
        self._store = store
        self._scoring = scoring
        self._clustering = clusters
        self._sets = {images.ref.place: images for images in image_sets}
        self._joined: dict[Place, Clustering] = {}
        self._digests: dict[Place, dict[str, str | None]] = {}
        self._reader: tuple[Study, _Load] | None = None
        self._aside: dict[Place, dict[str, SetAside]] = {}
        self._scored: dict[Run, int] = {}  # how many classes the answers of a run were scored among
        self._unmatched: dict[Run, int] = {}  # how many images lost their label, since the model lacks their class

    def check_clusters(self, refs: Iterable[ImageSetRef]) -> None:
        """UnknownName before anything is computed where no set has the fact that images are to be clustered by."""
        if self._clustering.by is not None:
            self._clustering.check(self.image_set(ref) for ref in refs)

    def clustering(self, ref: ImageSetRef) -> Clustering:
        """What counts as one case in this set, near-duplicates that were found joined unless something else was named."""
        if ref.place not in self._joined:
            images, named = self.image_set(ref), self._clustering.by is not None
            alike = {} if named else alike_in(images, self._store)
            self._joined[ref.place] = self._clustering.joining(images.samples, alike)
        return self._joined[ref.place]

    def known(self, studies: Iterable[Study]) -> Known:
        """What can be told of these studies before anything is read."""
        refs = dict.fromkeys(run.model for study in studies for run in study.runs())
        stored = [self._store.model(ref) for ref in refs]
        classes = tuple(None if model is None else model.classes for model in stored)
        return Known(self.image_set, classes, self._scoring or Scoring())

    def findings(self, study: Study) -> Iterator[Finding]:
        yield from study.measure(self._load(study))

    def said(self, study: Study, what: Literal["skipped", "warnings"]) -> Iterator[str]:
        """What a study has to say beside its numbers, where it has."""
        if hasattr(study, what):
            yield from getattr(study, what)(self._load(study))

    def warnings(self, run: Run, findings: Iterable[Finding]) -> Iterator[str]:
        """What spoils this set as a test of this model: its declared past, or signs that it is fed or read wrongly."""
        model, published = self.model(run), getattr(self.image_set(run.image_set), "published", None)
        if published and published in model.seen.filtered:
            yield (
                f"{model.ref.name} helped to choose {published}: images it got right were left out, "
                "so its accuracy there is low by construction"
            )
        if published and published in model.seen.training_data.split(", "):
            yield f"{model.ref.name} was trained on {published}: its accuracy there says nothing about new images"
        if lost := self._unmatched.get(run):
            yield (
                f"{run.image_set.name}: {lost:,} of {len(self.image_set(run.image_set).samples):,} images are of "
                f"classes that {model.ref.name} lacks; they count as unlabelled, so what needs labels goes without them"
            )
        about, measured = run.about(), [one for one in findings if isinstance(one, Measurement)]
        accuracies = [one for one in measured if one.metric == "top1_accuracy" and one.about == about]
        precisions = [
            one for one in measured if one.metric == "mean_average_precision" and about.items() <= one.about.items()
        ]
        if self._clustering.by is None and run.condition == CLEAN:
            samples = self.image_set(run.image_set).samples
            why = None if self._clustering.told(samples) else looks_clustered(samples)
            if why:
                yield (
                    f"{run.image_set.name}: {why}. If they come from one source they are one case: say which with --cluster "
                    "(a fact of the images, or a table), or intervals are too narrow; --cluster image says they do not"
                )
        if run.condition == CLEAN and (
            lacking := self._clustering.without(samples := self.image_set(run.image_set).samples)
        ):
            yield (
                f"{run.image_set.name}: {lacking:,} of {len(samples):,} images have nothing in {self._clustering.by} to "
                "cluster them by; each counts as a case of its own"
            )
        hints = [
            *(accuracy_hint(one.value, self._scored.get(run) or model.outputs or 0, one.images) for one in accuracies),
            precision_hint([one.value for one in precisions], max((one.images for one in precisions), default=0)),
        ]
        yield from (f"{model.ref.name} on {run.image_set.name}: {hint}" for hint in hints if hint)

    def seen_in_training(self, runs: Iterable[Run]) -> Iterator[str]:
        """What models are tested under although they declare to have been trained with it."""
        tested: dict[ModelRef, dict[str, None]] = {}
        in_set: dict[ImageSetRef, tuple[str, ...]] = {}
        for run in runs:
            if run.image_set not in in_set:
                facts = [sample.facts for sample in self.image_set(run.image_set).samples]
                held = (str(one.get(fact) or "") for fact in ("corruption", "perturbation") for one in facts)
                in_set[run.image_set] = tuple(dict.fromkeys(held))
            tested.setdefault(run.model, {}).update(dict.fromkeys([run.condition.name, *in_set[run.image_set]]))
        for ref, names in tested.items():
            declared = self.model(Run(ref, next(iter(in_set)))).seen.augmentations
            among = [name for name in names if name in trained_with(declared)]
            if among:
                yield (
                    f"{ref.name} declares {listed(declared)} as augmentation of its training and is tested under "
                    f"{listed(among)}: what it does there says nothing of shifts that are new to it. Numbers called unseen "
                    "leave this out; published means such as mCE do not"
                )

    def model(self, run: Run) -> StoredModel:
        model = self._store.model(run.model)
        if model is None:
            call = python_call(run, self._store, "top5")
            raise MissingRuns(f"nothing of {run.model.name} is stored in {self._store.root}", call=call)
        return dataclasses.replace(model, ref=run.model)

    def model_card(self, run: Run) -> ModelCard:
        model, versions = self.model(run), older_told(run.model, self._store)
        companion = companion_told(model, self._store)
        return ModelCard(
            model.ref.name,
            model.ref.fingerprint,
            gives=model.gives,
            preparation=model.preparation,
            seen=model.seen,
            classes=model.outputs,
            notes=(*model.notes, *([versions] if versions else [])),
            companion=companion,
        )

    def image_set(self, ref: ImageSetRef) -> ImageSet:
        if ref.place not in self._sets:
            if ref.location is None:
                raise BadInput(f"{ref.name} lives in memory; give it to measure as image_sets=[...]")
            self._sets[ref.place] = open_images(ref.location)
        return self._sets[ref.place]

    def image_set_card(self, ref: ImageSetRef) -> ImageSetCard:
        images = self.image_set(ref)
        clusters = self.clustering(ref).of(images.samples)
        return ImageSetCard(
            ref.name,
            ref.fingerprint,
            images=len(images.samples),
            labelled=sum(bool(sample.labels) for sample in images.samples) - self._without_match(ref),
            location=ref.location,
            classes=None if images.classes is None else len(images.classes),
            set_aside=tuple(self._aside.get(ref.place, {}).values()),
            notes=tuple(getattr(images, "notes", ())),
            credits=tuple(getattr(images, "credits", ())),
            clusters=None if clusters is None or clusters.numbers is None else clusters.count,
            unit="image" if clusters is None else clusters.case,
        )

    def _without_match(self, ref: ImageSetRef) -> int:
        """Images of a set that no model has the class of, by the model that has most."""
        return min((count for run, count in self._unmatched.items() if run.image_set.place == ref.place), default=0)

    def _load(self, study: Study) -> _Load:
        if self._reader is None or self._reader[0] is not study:
            self._reader = study, _Load(self, study)
        return self._reader[1]

    def load(
        self, how: Callable[..., Loaded], run: Run, keep: Keep, *, partial: bool, reading: Reading | None = None
    ) -> Loaded:
        answers = how(
            run,
            self._read_as(run.image_set, reading),
            store=self._store,
            keep=keep,
            scoring=self._scoring,
            clustering=self.clustering(run.image_set),
            partial=partial,
            digests=self.digests(run.image_set),
        )
        aside = self._aside.setdefault(run.image_set.place, {})
        aside.update((image.id, image) for image in answers.set_aside)
        self._scored[run] = len(answers.classes or ())
        if isinstance(answers, Predictions) and (reading is None or reading.labelled):
            stored = {sample.id for sample in self.image_set(run.image_set).samples if sample.labels}
            self._unmatched[run] = sum(image in stored for image in answers.ids) - int(answers.labelled.sum())
        return answers

    def looks(self, run: Run, asked: AskedLooks, method: str | None) -> Looks:
        return load_looks(run, asked, root=self._store.root, digests=self.digests(run.image_set), method=method)

    def digests(self, ref: ImageSetRef) -> dict[str, str | None]:
        if ref.place not in self._digests:
            self._digests[ref.place] = digests_of(self.image_set(ref), self._store)
        return self._digests[ref.place]

    def _read_as(self, ref: ImageSetRef, reading: Reading | None) -> ImageSet:
        """The set as its own labels have it, or as the study wants it read."""
        images = self.image_set(ref)
        if reading is None:
            return images
        classes = None if reading.among is None else self.image_set(reading.among).classes
        if not reading.labelled:
            return unlabelled(images, classes)
        # among all of a model's classes every set speaks for itself; a choice of them, or more, are those of the set named
        if self._scoring is None or (self._scoring.keep == "top5" and self._scoring.unmatched != "wrong"):
            return images
        if reading.among is not None and classes is None:
            raise BadInput(
                f"{reading.among.name} has no labels, so {ref.name} cannot be read among its classes; label it, or leave "
                "out --scored, --merge and --unmatched wrong"
            )
        return images if classes is None else labelled_among(images, classes)


class _Load:
    """What a study calls to read a run; studies ask for each several times, so as many as memory allows are kept."""

    def __init__(self, loader: _Loader, study: Study) -> None:
        self._loader, self._keep, self._partial = loader, study.keep, getattr(study, "partial", False)
        self._reading: Callable[[Run], Reading | None] = getattr(study, "reading", lambda _: None)
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
        """What an object detector found, beside what is really there."""
        return self._load(load_found, run)

    def _load(self, how: Callable[..., Loaded], run: Run) -> Loaded:
        return self._loader.load(how, run, self._keep, partial=self._partial, reading=self._reading(run))

    def images(self, ref: ImageSetRef) -> ImageSet:
        """The images themselves, for what is known of them beside their answers, such as the boxes in them."""
        return self._loader.image_set(ref)

    def looks(self, run: Run, predictions: Predictions, asked: AskedLooks, method: str | None) -> Looks:
        """Where the model looks in these images, each for these places in the classes of the predictions."""
        columns = to_columns(asked, predictions.classes, self._loader.model(run).classes)
        return self._loader.looks(run, columns, method)

    def images_in_both(self, first: ImageSetRef, second: ImageSetRef) -> int:
        """How many images of the first set the second one holds too, byte for byte."""
        ours, theirs = ({digest for digest in self._loader.digests(ref).values() if digest} for ref in (first, second))
        return len(ours & theirs)


Card = TypeVar("Card", ModelCard, ImageSetCard)


def _unique(cards: Iterable[Card]) -> tuple[Card, ...]:
    found: dict[Hashable, Card] = {}
    for card in cards:
        found.setdefault((card.fingerprint, getattr(card, "location", None)), card)
    return tuple(found.values())


def typed_command() -> str:
    """The command that this process runs; nothing where Python called."""
    return shlex.join(["shiftproof", *sys.argv[1:]]) if Path(sys.argv[0]).stem in ("shiftproof", "__main__") else ""
