"""Jobs at network level, from the request to the result folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.options import ModelSettings
from shiftproof.runs.predict import Progress
from shiftproof.training.job import Job
from shiftproof.training.networks.checkpoints import EpochRow
from shiftproof.training.networks.course import Reached, Tell, TrainedNetwork, device_of
from shiftproof.training.networks.engine import train_network, untrained_network
from shiftproof.training.networks.modules import fingerprint_of_model
from shiftproof.training.recipe import ChosenRecipe, Weights
from shiftproof.training.trained import Source, Trained, given, read_weights, record_of, write_trained


@dataclass(frozen=True)
class NetworkTrainer:
    """Trains whole networks."""

    progress: Progress | None = None
    tell: Callable[[str], None] = lambda _: None

    measure: ClassVar[str] = "accuracy"  # on the validation split
    figure: ClassVar[str] = "clean"  # what the record calls it

    def source(self, model: object, settings: ModelSettings) -> str:
        """The fingerprint of the model that a training begins with."""
        if not isinstance(model, str):
            raise BadInput(
                "a network is trained from the name of its model, as torch:FILE.py:FACTORY, and not from an object"
            )
        device_of(settings)  # a slip is told before pictures are made
        return fingerprint_of_model(model, settings)

    def trained(self, job: Job, progress: Tell) -> TrainedNetwork:
        """What a training comes to."""
        return train_network(job, progress=progress)

    def untrained(self, job: Job) -> TrainedNetwork:
        """The network before training."""
        return untrained_network(job)

    def train(self, job: Job) -> Trained:
        trained = self.trained(job, Shown(self.progress, self.tell, job, self.measure))
        end: Weights = trained.end
        for one in job.recipes:
            if one.recipe.finish is not None and not one.recipe.joins_seeds:
                end = one.recipe.finish(trained.start, [end], trained.score, **one.settings)
        return self._written(job, trained, end, trained.curves)

    def join(self, job: Job, recipe: ChosenRecipe, parts: Sequence[Trained]) -> Trained:
        finish = recipe.recipe.finish
        assert finish is not None  # noqa: S101 - a recipe that joins seeds does it by that
        found = self.untrained(job)
        ends = [read_weights(part.folder) for part in parts]
        joined = self._written(job, found, finish(found.start, ends, found.score, **recipe.settings), ())
        job.remove_checkpoints()
        return joined

    def _written(
        self, job: Job, trained: TrainedNetwork, weights: Mapping[str, NDArray[Any]], curves: Sequence[EpochRow]
    ) -> Trained:
        record = record_of(
            job,
            Source(job.model, job.source, given(job.model_options)),
            trained.seen,
            options=trained.options,
            preprocessing=str(trained.preprocessing),
            accuracy={self.figure: trained.score(weights)},
            curves=tuple(row.told(self.measure) for row in curves),
            outputs=trained.outputs,
            notes=trained.notes,
        )
        if not trained.writes:  # another process does
            return Trained(job.folder, record)
        return write_trained(job.folder, record, weights, trained.export(weights))


class Shown:
    """Shows how far a training has come: a bar over all of its images, and a line after every epoch."""

    def __init__(self, progress: Progress | None, tell: Callable[[str], None], job: Job, measure: str) -> None:
        self.progress, self.tell, self.job, self.measure = progress, tell, job, measure
        self.done: int | None = None  # images, None before the first step

    def __call__(self, now: Reached | EpochRow) -> None:
        epochs = self.job.options.epochs
        if isinstance(now, EpochRow):
            shown = "" if now.accuracy is None else f", {self.measure} {now.accuracy:.1%}"
            named = "" if shown else f"{self.measure} "
            self.tell(
                f"epoch {now.epoch} of {epochs}: loss {now.loss:.3f}{shown}, on the validation split "
                f"{now.validation_loss:.3f} and {named}{now.validation_accuracy:.1%}; learning rate {now.rate:.3g}"
            )
            if self.progress and now.epoch == epochs:
                self.progress.end()
            return
        done = ((now.epoch - 1) * now.steps + now.step) * now.images
        if self.done is None:
            self.done = done - now.images
            if self.progress:
                name = f"{self.job.model} · {'+'.join(map(str, self.job.recipes))}, seed {self.job.seed}"
                self.progress.begin(name, now.epochs * now.steps * now.images, self.done)
        if self.progress:
            self.progress.advance(done - self.done)
        self.done = done
