"""Perturbation sequences, frame by frame: how often the prediction flips, and how far the top classes move."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeVar

import numpy as np

from shiftproof.corruptions import IMAGENET_P
from shiftproof.corruptions.editions import Fit
from shiftproof.datasets.perturbed import PerturbedDataset
from shiftproof.errors import BadInput, listed
from shiftproof.metrics.resampling import Resampled, left_out_interval, resampled_means
from shiftproof.metrics.table import unseen
from shiftproof.studies import evidence
from shiftproof.studies.base import dataset_ref, model_refs, published_name, settle
from shiftproof.studies.corruption.cells import ALEXNET, alexnet_flips, checked_baseline
from shiftproof.studies.corruption.numbers import seen_told
from shiftproof.studies.corruption.study import seen_in_training
from shiftproof.studies.perturbation.stability import NEEDED, Cell, Gathered, Stability
from shiftproof.types import (
    EXAMPLES,
    About,
    BaselineRef,
    Caution,
    Classifier,
    Condition,
    Dataset,
    DatasetRef,
    Finding,
    Gallery,
    GalleryItem,
    Keep,
    Known,
    LoadPredictions,
    Measurement,
    ModelRef,
    Note,
    Run,
    Skipped,
    Study,
)

WHOLE = Condition("clean", picture="whole")
"""Frames are pictures already: they are resized whole to the model's size."""

LIKE_IMAGENET_P = 10_000
"""Images that published flip probabilities, which are of all 50,000, need before they are said to be of these videos."""

JOINT = "jackknife, each in all its sequences together,"
BOUNDS = {metric: (0.0, 1.0) for name in ("flip_probability", "mean_flip_probability") for metric in (name, unseen(name))}
"""Of numbers that are shares."""


KINDS = {
    "flip_probability": ("mean_flip_probability", "flip_rate", "mean_flip_rate"),
    "top5_distance": ("mean_top5_distance", "top5_distance_ratio", "mean_top5_distance_ratio"),
    "zipf_distance": ("mean_zipf_distance", None, None),
}
"""What is measured along sequences: its mean over perturbations, and both in multiples of a baseline's."""

NO_SEQUENCES = f"stability needs sequences, images with the facts {', '.join(NEEDED)}; see shiftproof perturb"


@dataclass(frozen=True)
class PerturbationStudy(Study):
    """Flip probability and top-5 distance of every perturbation; with a baseline the flip rate and mFR, T5D and mT5D.

    Sets are sequence sets: their samples have the facts `sequence`, `frame`, `perturbation` and `level`. Labels are not
    needed. Several sets, such as one a perturbation, are measured together under one `name`.
    """

    models: Sequence[ModelRef | Classifier]
    dataset: DatasetRef | Dataset | None = None
    datasets: Sequence[DatasetRef | Dataset] = ()  # further ones, or all of them
    baseline: ModelRef | Classifier | str | None = None
    zipf: bool = False  # the distance over all classes too, which needs all logits
    name: str | None = None  # what the sets are called together; None: the name of the first
    published: str | None = None  # which published set these are; taken from the sets where they are given
    shown: int = 24  # images in the gallery
    edition: str | None = None  # whose sequences these are; taken from the sets where they are given
    fit: Fit | None = None  # why that edition, where nobody named it; the same

    needs_labels: ClassVar[bool] = False

    def __post_init__(self) -> None:
        given = [images for images in (self.dataset, *self.datasets) if images is not None]
        if not given:
            raise BadInput("a study needs at least one dataset")
        refs = tuple(dict.fromkeys(dataset_ref(images) for images in given))
        made = [images if isinstance(images, PerturbedDataset) else None for images in given]
        settle(
            self,
            models=model_refs(self.models),
            dataset=refs[0],
            datasets=refs,
            name=self.name or refs[0].name,
            baseline=checked_baseline(self.baseline),
            published=self.published or _common(map(published_name, given)),
            edition=self.edition or _common(one and one.edition for one in made),
            fit=self.fit or _common(one and one.fit for one in made),
        )

    @property
    def keep(self) -> Keep:
        return "logits" if self.zipf else "top5"

    def runs(self) -> list[Run]:
        """Every model on every set; a baseline that is not among the models comes last."""
        models = list(model_refs(self.models))
        if isinstance(self.baseline, ModelRef) and self.baseline not in models:
            models.append(self.baseline)
        return [run for model in models for run in self._runs_of(model)]

    def measure(self, load: LoadPredictions) -> Iterator[Finding | Note]:
        yield from (Caution(f"{self.name}: {told}") for told in (self.fit.warnings() if self.fit else ()))
        given = self._given(load)
        for model in model_refs(self.models):
            found = self._answers(model, load)
            if isinstance(found, str):
                yield Skipped(f"{self.name}: {found}")
                continue
            baseline = given or self._published(found.table)
            yield from evidence.skipped(str(self.name), *found.reasons, *_undefined(found.table, baseline))
            table, other = _shared(found.table, baseline.table)
            if len(table):
                about = {"model": model.name, "dataset": str(self.name)}
                seen = seen_in_training(load, self._runs_of(model)[0])
                subject = evidence.Subject(about, found.convention, table.clusters)
                yield from _numbers(table, other, baseline, subject, seen)
                yield from _unstable_photos(table, about, shown=self.shown)
                yield from _least_stable(table, about)

    def why_nothing(self, known: Known) -> str | None:
        """Stability is of sequences."""
        told = any(known.has_facts(dataset_ref(images), NEEDED) for images in self.datasets)
        return None if told else f"{self.name}: {NO_SEQUENCES}"

    def _runs_of(self, model: ModelRef) -> list[Run]:
        return [Run(model, dataset_ref(images), WHOLE) for images in self.datasets]

    def _given(self, load: LoadPredictions) -> _Baseline | None:
        """The model that flips and distances are divided by; None where none was given."""
        if not isinstance(self.baseline, ModelRef):
            return None
        found = self._answers(self.baseline, load)
        if isinstance(found, str):
            return _Baseline(BaselineRef.of(self.baseline), reasons=(found,))
        return _Baseline(BaselineRef.of(self.baseline), found.table)

    def _published(self, table: Stability) -> _Baseline:
        """AlexNet's published flip probabilities where they belong or are insisted on, or why not."""
        unknown = "AlexNet's top-5 distance is not public; for T5D and mT5D give --baseline MODEL, run on the same sequences"
        at_home = self.published == "imagenet-p" and len(table) >= LIKE_IMAGENET_P
        if self.baseline == ALEXNET or at_home:
            where = "on these videos" if at_home else "which are of other images: the videos of ImageNet-P"
            name = f"AlexNet's published flip probabilities, {where}"
            ref = BaselineRef(name, alexnet=True, published=True, same_images=at_home)
            return _Baseline(ref, flips=alexnet_flips(), reasons=(unknown,))
        unnormalised = (
            "flip probabilities are not divided by a baseline's, because AlexNet's published ones are of other images: "
            "the videos of ImageNet-P; give --baseline MODEL for a model run on the same sequences, or "
            f"--baseline {ALEXNET} for the published ones all the same"
        )
        return _Baseline(None, reasons=(unnormalised, unknown))

    def _answers(self, model: ModelRef, load: LoadPredictions) -> _Answers | str:
        """How stable a model is along every sequence, or why that cannot be said."""
        gathered, aside, read = Gathered(self.zipf), 0, 0
        told: dict[str, str] = {}
        for run in self._runs_of(model):
            predictions = load(run)
            gathered.take(predictions, run.dataset)
            aside, read = aside + len(predictions.skipped_images), read + len(predictions)
            told |= {**run.convention(), **predictions.convention}
        told |= {} if self.edition is None else {"edition": self.edition}
        told |= {} if self.fit is None else {"why this edition": self.fit.why}
        if not read:
            return f"nothing to measure, {f'all {aside} images were skipped' if aside else 'there are no images'}"
        table = gathered.table()
        if not table.cells:
            return NO_SEQUENCES
        if not len(table):
            return f"no image was read by {model.name} in all of its sequences"
        told |= evidence.left_out(skipped_images=aside, read=read, labelled=0)
        if gathered.incomplete:
            told["sequences left out"] = f"{gathered.incomplete}, because frames are missing"
        if table.partial:
            told["images left out"] = f"{table.partial}, because some of their sequences are missing"
        short = listed(dict.fromkeys(gathered.too_short))
        return _Answers(table, told, (f"sequences are too short for {short}",) if short else ())


Value = TypeVar("Value")


def _common(values: Iterable[Value | None]) -> Value | None:
    """What all of them are, or None where they differ."""
    distinct = set(values)
    return distinct.pop() if len(distinct) == 1 else None


class _Answers(NamedTuple):
    table: Stability
    convention: Mapping[str, str]
    reasons: tuple[str, ...]  # what cannot be measured, and why


class _Baseline(NamedTuple):
    """What flips and distances are divided by: a model's on the same sequences, or published flip probabilities."""

    ref: BaselineRef | None
    table: Stability | None = None
    flips: Mapping[str, float] = {}
    reasons: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.ref.name if self.ref else ""


def _shared(table: Stability, other: Stability | None) -> tuple[Stability, Stability | None]:
    """Both for the images that both have."""
    if other is None:
        return table, None
    answered = set(other.sources)
    sources = [source for source in table.sources if source in answered]
    return table.take(sources), other.take(sources)


def _undefined(table: Stability, baseline: _Baseline) -> list[str]:
    """Why some ratio to the baseline is no number."""
    table, other = _shared(table, baseline.table)
    if other is None:
        return list(baseline.reasons)
    if not len(table):
        return [f"no image was read in all of its sequences by {baseline.name} too"]
    still = [
        f"{cell.perturbation} at difficulty {cell.difficulty}"
        for place, cell in enumerate(other.cells)
        if not other.values[:, place, 0].any()
    ]
    return [f"{baseline.name} never flips under {listed(still)}, so the flip rate is undefined"] if still else []


def _numbers(
    table: Stability, other: Stability | None, baseline: _Baseline, subject: evidence.Subject, seen: Collection[str]
) -> Iterator[Measurement]:
    for kind, metric in enumerate(list(KINDS)[: table.values.shape[2]]):
        mean, ratio, mean_ratio = KINDS[metric]
        means = resampled_means(table.values[:, :, kind], clusters=table.clusters.numbers, resamples=0)
        yield from _each_and_mean(metric, mean, means, table, subject, seen)
        if ratio is not None:
            divided, beside = _divided(means, table, other, baseline, kind), subject.also(told={"baseline": baseline.name})
            ratios = _each_and_mean(ratio, mean_ratio, divided, table, beside, seen)
            yield from (dataclasses.replace(one, baseline=baseline.ref) for one in ratios)


def _divided(means: Resampled, table: Stability, other: Stability | None, baseline: _Baseline, kind: int) -> Resampled:
    """The same in multiples of the baseline's, not a number where it has none; images are drawn alike for both."""
    if other is not None:
        columns = [other.cells.index(cell) if cell in other.cells else -1 for cell in table.cells]
        theirs = resampled_means(other.values[:, :, kind], clusters=table.clusters.numbers, resamples=0)
        divisors = [np.where(np.array(columns) < 0, np.nan, part[:, columns]) for part in theirs]
    else:
        # published at the first difficulty alone, and of flips alone
        known = [baseline.flips.get(cell.perturbation) if cell.difficulty == 1 else None for cell in table.cells]
        constants = np.array([[np.nan if value is None or kind else value for value in known]])
        divisors = [constants] * len(means)
    with np.errstate(divide="ignore", invalid="ignore"):
        return Resampled(*(own / divisor for own, divisor in zip(means, divisors, strict=True)))


def _each_and_mean(
    metric: str, mean: str | None, means: Resampled, table: Stability, subject: evidence.Subject, seen: Collection[str]
) -> Iterator[Measurement]:
    """One number a cell, and the mean over the perturbations of each difficulty: all of them, and those not seen before."""
    for place, cell in enumerate(table.cells):
        told = {"frames": str(table.frames[place]), "compared": cell.told, **seen_told([cell.perturbation], seen)}
        of_cell = subject.also({"perturbation": cell.perturbation, "difficulty": cell.difficulty}, told)
        yield from _measured(metric, Resampled(*(part[:, place] for part in means)), of_cell)
    for difficulty in dict.fromkeys(cell.difficulty for cell in table.cells):
        every = _averaged(table.cells, difficulty)
        left = [place for place in every if table.cells[place].perturbation not in seen]
        # the published means are of the first difficulty, so that one needs no further name
        of_level = subject if difficulty == 1 else subject.also({"difficulty": difficulty})
        for name, places in [(mean, every), *([(mean and unseen(mean), left)] if left and left != every else [])]:
            names = [table.cells[place].perturbation for place in places]
            told = {"perturbations": averaged_perturbations(names), "difficulty": str(difficulty), **seen_told(names, seen)}
            if name is not None:
                over = Resampled(*(part[:, places].mean(axis=1) for part in means))
                yield from _measured(name, over, of_level.also(told=told))


def _measured(metric: str, means: Resampled, subject: evidence.Subject) -> Iterator[Measurement]:
    if np.isfinite(means.seen[0]):
        cases = subject.clusters.count
        ends = left_out_interval(means.seen, means.left_out, bounds=BOUNDS.get(metric), cases=cases)
        yield subject.resampled(metric, float(means.seen[0]), JOINT, ends)


def _averaged(cells: Sequence[Cell], difficulty: int) -> list[int]:
    """The cells a mean is over: those of the ten, or all where none of the ten is there."""
    places = [place for place, cell in enumerate(cells) if cell.difficulty == difficulty]
    tested = [place for place in places if cells[place].perturbation in IMAGENET_P]
    return tested or places


def averaged_perturbations(names: Sequence[str]) -> str:
    """Which perturbations a mean is over, in words.

    >>> averaged_perturbations(IMAGENET_P), averaged_perturbations(["tilt", "scale"])
    ('the 10 of ImageNet-P', 'tilt, scale')
    """
    return f"the {len(IMAGENET_P)} of ImageNet-P" if set(names) == set(IMAGENET_P) else ", ".join(names)


def _unstable_photos(table: Stability, about: About, *, shown: int) -> Iterator[Gallery]:
    """The sequences with the most flips at the first difficulty, by the set they are in."""
    columns = [place for place, cell in enumerate(table.cells) if cell.difficulty == 1]
    flips = table.values[:, columns, 0]
    order = np.argsort(-flips.ravel(), kind="stable")[:shown]
    chosen = [divmod(place, len(columns)) for place in order.tolist() if flips.ravel()[place] > 0]
    items: dict[DatasetRef, list[GalleryItem]] = {}
    for row, column in chosen:
        dataset, item = _flipping(table, row, columns[column])
        items.setdefault(dataset, []).append(item)
    for dataset, found in items.items():
        yield Gallery("unstable_photos", about, dataset, "Least stable photos", tuple(found))


def _least_stable(table: Stability, about: About) -> Iterator[Gallery]:
    """Of each perturbation the sequence with the most flips."""
    for column, cell in enumerate(table.cells):
        row = int(np.argmax(table.values[:, column, 0]))
        if table.values[row, column, 0] > 0:
            dataset, item = _flipping(table, row, column)
            named = {**about, "perturbation": cell.perturbation, "difficulty": cell.difficulty}
            yield Gallery(EXAMPLES, named, dataset, "Least stable photo", (item,))


def _flipping(table: Stability, row: int, column: int) -> tuple[DatasetRef, GalleryItem]:
    """The first frame of a sequence, and how often the prediction flips along it."""
    cell, frame = table.cells[column], table.first_frames[row][column]
    steps = table.frames[column] - 1
    what = "differs from the first frame in" if cell.rule[0] == "first" else "flips in"
    caption = f"{cell.perturbation}: {what} {round(table.values[row, column, 0] * steps)} of {steps}"
    return frame.dataset, GalleryItem(frame.id, caption)
