"""The guard at the bench: predictions become a detector with thresholds, a temperature and prediction sets, in a folder."""

from __future__ import annotations

import dataclasses
from collections.abc import Generator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from shiftproof.bench.job import Job
from shiftproof.bench.steps import Bench
from shiftproof.datasets.image_list import decoded
from shiftproof.errors import BadInput, MissingExtra, NotKept
from shiftproof.ood import detector_of
from shiftproof.ood.kept import keep_detector
from shiftproof.studies.base import model_ref
from shiftproof.studies.guard.card import card_of
from shiftproof.studies.guard.guard import GRAPH, Guard, GuardedModel, GuardRecord, save_guard
from shiftproof.studies.guard.making import (
    calibration_of,
    coverages_of,
    largest_difference,
    needed_of,
    points_of,
    sets_of,
)
from shiftproof.studies.guard.options import GuardOptions
from shiftproof.studies.measure import versions
from shiftproof.studies.ood.scores import Judged
from shiftproof.studies.threshold.expected import UsedImages
from shiftproof.studies.threshold.study import OperatingPointStudy
from shiftproof.types import Caution, Classifier, Dataset, Inputs, Loader, Note, Skipped

if TYPE_CHECKING:
    from shiftproof.studies.options import Assembled

T = TypeVar("T")
TRIED = 16
"""Images on which the ONNX file is compared with Python before it is written."""

CLOSE = 1e-4
"""How near they must be."""


@dataclass(frozen=True)
class Guarded:
    """One job: a model, its images as the detector scores them, and what a guard is made of them."""

    bench: Bench
    model: Classifier
    images: Dataset
    options: GuardOptions
    work: Assembled

    @cached_property
    def study(self) -> OperatingPointStudy:
        (study,) = self.work.studies
        assert isinstance(study, OperatingPointStudy)  # noqa: S101 - assembled as one
        return study

    @cached_property
    def load(self) -> Loader:
        return self.bench.loader(self.study, self.work)

    def written(self, folder: Path) -> Guard:
        """The guard in its folder."""
        guard, graph = self.with_graph(self.made())
        return save_guard(guard, folder, graph, card_of(guard.record, len(guard.reference)))

    def made(self) -> Guard:
        """The guard, without a network around it."""
        study, ref = self.study, model_ref(self.model)
        judged, notes = _drained(study.judged(ref, self.load))
        if judged is None or study.detector not in judged.detectors:
            why = "; ".join(one.reason for one in notes if isinstance(one, Skipped)) or "no image could be read"
            raise BadInput(f"no guard can be made: {why}")
        detector, runs = judged.detectors[study.detector], study.id_runs(ref)
        clean = self.load(runs.pop(judged.id_set.name))
        features, head = needed_of(detector, clean)
        points, doubts = points_of(study, judged)
        calibration, promised = calibration_of(clean), self.options.coverage
        sides, share = study.sides(judged), study.choice.ood_share
        record = GuardRecord(
            model=GuardedModel(
                ref.name,
                ref.fingerprint,
                clean.gives,
                clean.need_logits().shape[1],
                clean.need_features().shape[1] if features else 0,
                self.model.seen.training_data,
            ),
            detector=keep_detector(detector).plain,
            goal=study.goal,
            false_alarm_cost=study.choice.false_alarm_cost,
            miss_cost=study.choice.miss_cost,
            ood_share=len(sides.positives) / len(sides) if share is None else share,
            points=points,
            calibration=calibration,
            promised=promised,
            least_probability=sets_of(clean, calibration.temperature, promised),
            coverage=coverages_of(
                clean, {title: self.load(run) for title, run in runs.items()}, judged.id_set.name, promised
            ),
            datasets=[
                UsedImages(one.ref.name, one.ref.fingerprint, len(one.samples), _skipped(judged, one.ref.name))
                for one in self.work.datasets
            ],
            notes=[*(one.text for one in notes if isinstance(one, Caution)), *doubts],
            made=datetime.now(UTC).isoformat(timespec="seconds"),
            versions=versions(),
        )
        return Guard(record, detector, np.sort(judged.id_set.scores[study.detector].astype(np.float64)), head)

    def with_graph(self, guard: Guard) -> tuple[Guard, bytes | None]:
        """The guard and its model as one ONNX file, tried on some images; a note instead where that cannot be had."""
        try:
            return self._guarded_file(guard)
        except (BadInput, NotKept, MissingExtra) as problem:
            notes = (*guard.record.notes, f"there is no {GRAPH}: {problem}")
            return dataclasses.replace(guard, record=dataclasses.replace(guard.record, notes=notes)), None

    def _guarded_file(self, guard: Guard) -> tuple[Guard, bytes]:
        from shiftproof.models.loaded import LoadedClassifier
        from shiftproof.models.preprocessing import ImagePreprocessing

        network = self.model.graph if isinstance(self.model, LoadedClassifier) else None
        if network is None:
            raise NotKept(f"{self.model.ref.name} is no ONNX graph")
        try:
            from shiftproof.models.classifiers.onnx_guarded import tensors_of, with_further_outputs
        except ModuleNotFoundError as missing:
            raise MissingExtra(GRAPH, "onnx") from missing
        made, outputs = guard.graph()
        graph = with_further_outputs(network, made, outputs)
        inputs = self._some_inputs(self.model.fixed_batch_size if isinstance(self.model, LoadedClassifier) else None)
        given = self.model(inputs, features=bool(guard.record.model.features))
        gap = largest_difference(guard, given, tensors_of(graph, [*outputs], inputs))
        if not gap <= CLOSE:
            raise NotKept(f"its outputs differ from Python's by {gap:.2g}, on {len(inputs)} images")
        own = self.model.preprocessing
        preprocessing = str(own) if isinstance(own, ImagePreprocessing) else None
        features = network.features if guard.record.model.features else None
        model = dataclasses.replace(
            guard.record.model, preprocessing=preprocessing, scores=network.scores, features_tensor=features
        )
        record = dataclasses.replace(guard.record, model=model, onnx_difference=gap)
        return dataclasses.replace(guard, record=record), graph

    def _some_inputs(self, batch: int | None) -> Inputs:
        """Preprocessed images, spread over the dataset; as many as a batch of the model must have."""
        wanted, samples = batch or TRIED, self.images.samples
        inputs: list[NDArray[np.generic]] = []
        for sample in samples[:: max(1, len(samples) // wanted)]:
            image = decoded(self.images.source(sample))
            if not isinstance(image, str) and len(inputs) < wanted:
                inputs.append(self.model.preprocessing.from_image(image))
        if not inputs or len({one.shape for one in inputs}) > 1:
            raise NotKept("there are no images of one size to try it on")
        return np.stack([inputs[place % len(inputs)] for place in range(batch or len(inputs))])


def _skipped(judged: Judged, name: str) -> int:
    return next((one.skipped_images for one in (*judged.id_sets, *judged.ood) if one.name == name), 0)


def _drained(steps: Generator[Note, None, T]) -> tuple[T, list[Note]]:
    """What a generator returns, and what it said on the way."""
    notes: list[Note] = []
    while True:
        try:
            notes.append(next(steps))
        except StopIteration as end:
            return end.value, notes


def make_guard(job: Job, options: GuardOptions, folder: Path) -> Guard:
    """Predicts what is not stored and writes the folder."""
    model, scoring = job.model, job.bench.scoring
    if scoring.classes != "full" or scoring.groups is not None or scoring.unmatched == "wrong":
        raise BadInput(
            "a guard reads what the model gives, all classes of it and no others; leave out --scored, --class-groups and "
            "--unmatched wrong"
        )
    if model.gives == "scores":
        raise BadInput(f"{model.ref.name} gives scores; a guard needs logits or probabilities")
    if folder.is_file():
        raise BadInput(f"{folder} is a file, and a guard is a folder")
    for name in options.ood_detector.split("+"):
        detector_of(name)  # a slip costs a second and not an hour
    work = options.assemble(OperatingPointStudy, [model], job.images, job.bench.context)
    job.check_classes()
    job.fill(work)
    return Guarded(job.bench, model, job.images, options, work).written(folder)
