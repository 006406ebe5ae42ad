"""The training loop of classifiers: pictures augmented by recipes, a recipe's loss, accuracy on the validation split."""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from lightning_fabric import Fabric
from numpy.typing import NDArray
from torch import Tensor, nn

from shiftproof.errors import BadInput
from shiftproof.models.classifiers.torch_network import INPUT, traced
from shiftproof.models.preprocessing import ImagePreprocessing
from shiftproof.randomness import rng_for
from shiftproof.runs.workers import Workers
from shiftproof.training.job import Job
from shiftproof.training.networks.checkpoints import State
from shiftproof.training.networks.course import Course, Tell, TrainedNetwork, fabric_of, with_part
from shiftproof.training.networks.inputs import Inputs
from shiftproof.training.networks.lora import merged
from shiftproof.training.networks.losses import Step, cross_entropy, label_loss
from shiftproof.training.networks.modules import Network, open_network, to_weights
from shiftproof.training.pictures import Augmenting, StoredPictures, augmented
from shiftproof.training.recipe import ChosenRecipe, Stage, accepted, preprocessing_of, torch_part

BATCH_SIZE = 64
RATES = {"sgd": (0.001, 0.003, 0.01, 0.03, 0.1, 0.3), "adamw": (3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2)}
"""Learning rates that a search tries."""

SEARCH_STEPS = 60
"""Steps of training with each of them, before its loss on held-out images is looked at."""

SEARCH_IMAGES = 2048


def train_network(job: Job, *, progress: Tell | None = None) -> TrainedNetwork:
    """Train a network as the job says, going on where an earlier process was stopped."""
    with Workers() as workers:
        return ClassifierCourse(job, fabric_of(job), workers, progress).run()


def untrained_network(job: Job) -> TrainedNetwork:
    """The network of a job as it is before training, to judge and export other weights of it."""
    with Workers() as workers:
        return ClassifierCourse(job, fabric_of(job), workers, None).result()


class Shown(NamedTuple):
    """A step, what the network answered in it, and its share of the batch against that of other processes."""

    step: Step
    seen: dict[str, Tensor]
    share: float


def _through(wrapped: nn.Module, seen: dict[str, Tensor], images: Tensor) -> dict[str, Tensor]:
    outputs: dict[str, Tensor] = wrapped(images)
    seen["logits"] = outputs["logits"].detach()
    return outputs


class ClassifierCourse(Course):
    """The training of a classifier."""

    network: Network

    def __init__(self, job: Job, fabric: Fabric, workers: Workers, progress: Tell | None) -> None:
        super().__init__(job, fabric, workers, progress, job.options)
        self.source = open_network(
            job.model, job.classes, job.model_options, seed=job.seed, image_size=job.options.image_size
        )
        self.preprocessing = preprocessing_of(job.recipes, self.source.preprocessing)
        # as the inputs lie in memory
        self.network = self._extended(self.source.network).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.fixed = frozenset(name for name, one in self.network.named_parameters() if not one.requires_grad)
        self.start = to_weights(merged(self.network))
        self.loss, self.loss_settings = self._loss()
        self.stages = next((one.recipe.stages for one in job.recipes if "stages" in one.recipe.parts), (Stage(1.0),))
        self.inputs = Inputs(self.preprocessing, fabric.device)
        self.validation = self.stored(job.validation, self.preprocessing)
        self.validation_targets = self._targets(self.validation)

    def open_training(self) -> None:
        job = self.job
        needing = next((one for one in job.recipes if one.recipe.needs_outliers), None)
        if needing is not None and job.outliers is None:
            raise BadInput(f"{needing.name} needs images of none of the classes; name a dataset of them (--outliers)")
        self.training = self.stored(job.training, self.preprocessing)
        self.outliers = None if job.outliers is None or needing is None else self.stored(job.outliers, self.preprocessing)
        self.targets = self._targets(self.training)
        if int((self.targets.sum(dim=0) > 0).sum()) < 2:
            raise BadInput(f"the training images of {job.training.ref.name} are of one class only; a classifier needs two")
        self.batch = min(self.options.batch_size or BATCH_SIZE, len(self.training))
        self.steps = len(self.training) // self.batch
        self.quicken_batch_norms()

    # what is trained, and on what

    def plain_weights(self) -> dict[str, Tensor]:
        return merged(self.network).state_dict()

    def _extended(self, network: Network) -> Network:
        chosen = with_part(self.job.recipes, "extend")
        if chosen is None or chosen.recipe.extend is None:
            return network
        extend = torch_part(chosen.recipe.extend)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.job.seed + 1)
            extended: Network = extend(network, len(self.job.classes), **accepted(extend, chosen.settings))
        return extended

    def _loss(self) -> tuple[Callable[..., Tensor], dict[str, Any]]:
        chosen = with_part(self.job.recipes, "loss")
        if chosen is None or chosen.recipe.loss is None:
            return cross_entropy, {}
        loss = torch_part(chosen.recipe.loss)
        return loss, accepted(loss, chosen.settings)

    def _targets(self, pictures: StoredPictures) -> Tensor:
        return torch.from_numpy(self.job.targets(pictures.samples)).float()

    @property
    def replays(self) -> int:
        return int(self.loss_settings.get("replays", 1))

    @property
    def ratio(self) -> float:
        """Outliers to a picture."""
        return float(self.loss_settings.get("ratio", 1.0))

    def result(self) -> TrainedNetwork:
        """What the network is now, beside what it was at the start."""
        self.network = merged(self.network)
        return TrainedNetwork(
            start=self.probed() or self.start,
            end=self.end(),
            curves=self.curves(),
            options={
                "learning_rate": float(self.state.rate or 0.0),
                "epochs": self.options.epochs,
                "batch_size": self.options.batch_size or BATCH_SIZE,
                "schedule": self.options.schedule,
            },
            preprocessing=self.preprocessing,
            seen=self.source.seen,
            notes=(*self.source.notes, *self._notes()),
            outputs=tuple(Exported(self.network).names),
            writes=self.fabric.is_global_zero,
            score=self.score,
            export=self._export,
        )

    def batches(self, epoch: int, steps: range, wrapped: nn.Module) -> Iterator[Shown]:
        """Steps of an epoch: pictures augmented ahead by workers, in an order drawn for the epoch."""
        order = self.order(epoch)
        parts = [self.part(order[step * self.batch : (step + 1) * self.batch]) for step in steps]
        jobs = [self._augmenting(self.training, part, epoch, self.job.recipes) for part in parts]
        outside = None if self.outliers is None else self._outliers(epoch, parts, steps)
        for step, part, block in zip(steps, parts, self.workers.blocks(augmented, jobs), strict=True):
            rng = self.seeded(step, epoch)
            images, *copies = (self.inputs(row) for row in block.batch[0])
            seen: dict[str, Tensor] = {}
            made = Step(
                network=partial(_through, wrapped, seen),
                images=images,
                targets=self.targets[part].to(images.device),
                rng=rng,
                copies=tuple(copies),
                outliers=None if outside is None else self.inputs(next(outside)),
                plain=self.network,
                black=self.inputs.black,
                white=self.inputs.white,
                kept=self.state.kept,
                mean=self.mean,
            )
            # processes whose parts differ by an image count by their images, as in one process
            share = len(part) * self.fabric.world_size / self.batch
            yield Shown(made, seen, share)

    def _augmenting(
        self, pictures: StoredPictures, rows: NDArray[np.intp], epoch: int, recipes: tuple[ChosenRecipe, ...]
    ) -> Augmenting:
        keys = [pictures.samples[row].id for row in rows]
        return Augmenting(pictures.file, rows.tolist(), keys, recipes, self.preprocessing, self.job.seed, epoch)

    def _outliers(self, epoch: int, parts: list[NDArray[np.intp]], steps: range) -> Iterator[NDArray[np.uint8]]:
        """As many outliers to each batch as its recipe wants, cropped and flipped here: they are few."""
        plain = tuple(one for one in self.job.recipes if one.recipe.augment is None)
        assert self.outliers is not None  # noqa: S101 - the caller's
        for step, part in zip(steps, parts, strict=True):
            rng = rng_for(f"outliers {step}", f"epoch {epoch} process {self.fabric.global_rank}", self.job.seed)
            wanted = max(1, round(self.ratio * len(part)))
            rows = rng.choice(len(self.outliers), wanted, replace=wanted > len(self.outliers))
            (batch,), _ = augmented(self._augmenting(self.outliers, rows, epoch, plain))
            yield batch[0]

    def learn(self, shown: Shown, wrapped: nn.Module, optimizer: Any) -> None:
        """One step: as many replays of a batch as the recipe asks for."""
        step, seen, share = shown
        for replay in range(self.replays):
            self.train_mode()
            loss = self.loss(_replayed(step, replay), **self.loss_settings)
            self.stepped(loss * share, wrapped, optimizer)
        self.state.kept.pop("noise", None)
        images = len(step.images)
        right = step.targets.gather(1, seen["logits"][:images].argmax(dim=1, keepdim=True)) > 0
        self.count(loss.detach().double() * images, right.sum(), images)

    # accuracy on held-out images

    @torch.no_grad()
    def evaluated(self, network: nn.Module, most: int | None = None) -> tuple[float, float]:
        """Mean loss and accuracy on the validation split, clean; of the first `most` images in a drawn order."""
        network = network.to(self.fabric.device).eval()
        rows = rng_for("validation", "order", self.job.seed).permutation(len(self.validation))[:most]
        rows = self.part(rows)
        totals = torch.zeros(3, dtype=torch.float64)
        for start in range(0, len(rows), 256):
            some = np.sort(rows[start : start + 256])
            pictures = np.stack([self.preprocessing.filtered(self.validation.file[row]) for row in some])
            with self.fabric.autocast():
                logits = network(self.inputs(pictures))["logits"].float()
            targets = self.validation_targets[some].to(logits.device)
            right = (targets.gather(1, logits.argmax(dim=1, keepdim=True)) > 0).sum()
            loss = label_loss(logits, targets, multi_label=self.job.multi_label, reduction="sum")
            totals += torch.tensor([float(loss), float(right), len(some)])
        total, right, images = self.total(totals).tolist()
        return total / images, right / images

    def _export(self, weights: Mapping[str, NDArray[Any]]) -> bytes:

        network = self.with_weights(weights)
        assert isinstance(network, Network)  # noqa: S101 - as it is a copy of one
        return to_onnx(network, self.preprocessing)

    def first_rate(self) -> float:
        """The learning rate whose first steps lead to the lowest loss on held-out images."""
        losses: dict[float, float] = {}
        network, state = self.network, self.state
        for rate in RATES[self.options.optimizer]:
            self.network, self.state = copy.deepcopy(network), State(rate=rate)
            losses[rate] = self._tried(rate)
        self.network, self.state = network, state
        best = min(losses, key=losses.__getitem__)
        if not math.isfinite(losses[best]):
            raise BadInput("no learning rate of the search leads to a finite loss; choose one (--learning-rate)")
        return best

    def _tried(self, rate: float) -> float:
        wrapped, optimizer = self.prepared("network")
        for group in optimizer.param_groups:
            group["lr"] = rate
        try:
            for shown in self.batches(0, range(min(SEARCH_STEPS, self.steps)), wrapped):
                self.learn(shown, wrapped, optimizer)
            self.check_loss()
        except BadInput:  # the loss is not finite
            return math.inf
        loss, _ = self.evaluated(self.network, SEARCH_IMAGES)
        return loss if math.isfinite(loss) else math.inf

    def _notes(self) -> Iterator[str]:
        yield from self.unreadable()
        before = next((one.name for one in self.job.recipes if one.recipe.finish and not one.recipe.joins_seeds), None)
        if before is not None and self.source.new_classes and not self.state.probed:
            yield f"{before}: the head before training was drawn at random, having new classes; join it with lp-ft"


def _replayed(step: Step, replay: int) -> Step:
    return step if replay == 0 else dataclasses.replace(step, replay=replay)


class Exported(nn.Module):
    """The outputs of a network in a row, as ONNX has them; a reject class becomes a confidence."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network
        branches = ["confidence" if name == "reject" else name for name in network.branches]
        self.names = ["logits", "features", *branches]

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        outputs = self.network(images)
        if "reject" in outputs:
            # the log-odds of being of any class against being of none
            outputs["confidence"] = torch.logsumexp(outputs["logits"], dim=1, keepdim=True) - outputs["reject"]
        return tuple(outputs[name] for name in self.names)


def to_onnx(network: Network, preprocessing: ImagePreprocessing) -> bytes:
    """The network as ONNX: ``images`` in batches of any number to ``logits``, ``features`` and its branches."""
    exported = Exported(network).cpu().float().eval()
    size = preprocessing.size or (224, 224)
    example = torch.zeros(2, 1 if preprocessing.channels == "grey" else 3, *size)
    return traced(exported, example, exported.names, {name: {0: "batch"} for name in (INPUT, *exported.names)})
