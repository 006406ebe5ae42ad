"""The course of a training, whatever is trained: stages, learning rates, checkpoints, early stopping, several processes.

Carried by lightning-fabric: devices, mixed precision, several processes. Everything random follows from the seed, the epoch
and the step, so that a training that was killed goes on from its last checkpoint and ends with the weights of one that was
not: bit for bit on a CPU with the same number of threads.

Several processes are started by torch's own command, ``torchrun --nproc-per-node 2 -m shiftproof train ...``. Each trains
on its part of every batch and gradients are averaged, which equals one process but for rounding where a network has no
batch norm, or it is frozen. On GPUs batch norms take their figures over all processes (SyncBatchNorm).
"""

from __future__ import annotations

import copy
import dataclasses
import math
import os
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from lightning_fabric import Fabric
from lightning_fabric.plugins.environments.lightning import LightningEnvironment
from lightning_fabric.plugins.environments.torchelastic import TorchElasticEnvironment
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm as BatchNorm

from shiftproof.errors import BadInput, listed
from shiftproof.models.preprocessing import ImagePreprocessing
from shiftproof.options import ModelSettings
from shiftproof.randomness import rng_for
from shiftproof.runs.workers import Workers
from shiftproof.training.job import Job
from shiftproof.training.networks.checkpoints import EpochRow, State, load_checkpoint, save_checkpoint
from shiftproof.training.networks.modules import load_weights, to_arrays, to_weights
from shiftproof.training.networks.schedule import Rates, epochs_of
from shiftproof.training.options import TrainOptions
from shiftproof.training.pictures import StoredPictures, stored_pictures
from shiftproof.training.recipe import ChosenRecipe, Level, Stage
from shiftproof.types import Dataset, Seen, fingerprint_of

PRECISIONS: Mapping[str, Any] = {"float32": "32-true", "bfloat16": "bf16-mixed", "float16": "16-mixed"}

CHECKPOINT_SECONDS = 120.0
"""Between checkpoints within an epoch; at its end there is always one."""

BATCH_NORM_MOMENTUM = 0.1
"""torch's own, and the most that a network's is raised to."""

BATCH_NORM_SPANS = 5
"""How often a training is at least as long as the span that batch norms average over."""

CHECK_STEPS = 20
"""On a GPU, steps after which the loss is looked at."""

TOLD_SECONDS = 0.2

CHECKPOINT = "training.pt"

BODIES = ("body.", "backbone.body.")
"""What stands before the names that a network's own module has for its layers."""


@dataclass(frozen=True)
class Reached:
    """How far a training has come."""

    epoch: int  # from 1
    epochs: int
    step: int  # of this epoch
    steps: int
    rate: float
    images: int  # of a step
    loss: float  # mean of this epoch so far


Tell: TypeAlias = Callable[[Reached | EpochRow], None]
"""Told of steps, a few times a second, and of every epoch."""


@dataclass(frozen=True)
class TrainedNetwork:
    """The weights a training started and ended with, and how to judge and export others of the same network."""

    start: dict[str, NDArray[Any]]  # of the whole network: after a stage that trained the head alone, where there was one
    end: dict[str, NDArray[Any]]
    curves: tuple[EpochRow, ...]
    options: Mapping[str, Any]  # of training, as they came out: the learning rate, the epochs
    preprocessing: ImagePreprocessing
    seen: Seen  # before training
    notes: tuple[str, ...]
    outputs: tuple[str, ...]  # of the exported network
    writes: bool  # whether it is this one of several processes that writes the result
    score: Callable[[Mapping[str, NDArray[Any]]], float]  # of weights on the validation split: accuracy, or mAP
    export: Callable[[Mapping[str, NDArray[Any]]], bytes]  # ONNX


def device_of(settings: ModelSettings) -> tuple[str, int | None]:
    """The kind of device to train on, and which of them; BadInput where torch has none here."""
    asked = settings.device or "cpu"
    found = re.fullmatch(r"(cpu|cuda|mps)(?::(\d+))?", asked)
    there = {"cpu": 1, "cuda": torch.cuda.device_count(), "mps": int(torch.backends.mps.is_available())}
    if found is None or int(found[2] or 0) >= there[found[1]]:
        here = " or ".join(name for name, count in there.items() if count)
        raise BadInput(f"torch cannot train on device {asked!r}: --device is {here} here")
    return found[1], None if found[2] is None or found[1] != "cuda" else int(found[2])


def fabric_of(job: Job) -> Fabric:
    """The devices and processes to train with; more than one process where torchrun started this one."""
    precision = job.model_options.precision
    if precision not in PRECISIONS:
        raise BadInput(f"precision should be one of {', '.join(PRECISIONS)}, got {precision!r}")
    device, number = device_of(job.model_options)
    processes = int(os.environ.get("LOCAL_WORLD_SIZE", 1))
    several = int(os.environ.get("WORLD_SIZE", 1)) > 1
    fabric = Fabric(
        accelerator=device,
        devices=processes if number is None else [number],
        num_nodes=int(os.environ.get("WORLD_SIZE", 1)) // processes if several else 1,
        strategy="ddp" if several else "auto",
        precision=PRECISIONS[precision],
        # not as it guesses: on a machine with Slurm it would warn, or take the tasks of a job for its processes
        plugins=TorchElasticEnvironment() if several else LightningEnvironment(),
    )
    fabric.launch()
    return fabric


class Course(ABC):
    """One training as it runs; what is learned in a step, and how it is judged, a subclass says.

    The subclass has opened its network, pictures and targets, and says how many images a step and steps an epoch has.
    """

    network: nn.Module
    training: StoredPictures
    batch: int
    steps: int
    stages: tuple[Stage, ...] = (Stage(1.0),)
    fixed: frozenset[str] = frozenset()  # parameters that no stage trains
    nesterov = True
    counts_right = True  # whether accuracy on the training pictures is known

    def __init__(self, job: Job, fabric: Fabric, workers: Workers, progress: Tell | None, options: TrainOptions) -> None:
        self.job, self.fabric, self.workers, self.progress = job, fabric, workers, progress
        self.options = options
        self.folder = job.checkpoints
        self.opened: list[StoredPictures] = []
        self.state = State()
        self.resumed: Any = None  # of the optimizer
        self.frozen: tuple[str, ...] = ()
        self.keeps_statistics = options.batch_norms == "frozen"
        self.saved = self.told = time.monotonic()

    @abstractmethod
    def open_training(self) -> None:
        """The pictures to learn from and their targets, opened; the batch and the steps of an epoch."""

    @abstractmethod
    def result(self) -> TrainedNetwork:
        """What the network is now, beside what it was at the start."""

    @abstractmethod
    def batches(self, epoch: int, steps: range, wrapped: nn.Module) -> Iterator[Any]:
        """What is learned from in these steps of an epoch, in order; random numbers follow from epoch and step."""

    @abstractmethod
    def learn(self, shown: Any, wrapped: nn.Module, optimizer: Any) -> None:
        """One step."""

    @abstractmethod
    def evaluated(self, network: nn.Module, most: int | None = None) -> tuple[float, float]:
        """Mean loss and score on the validation split; of the first `most` images in a drawn order."""

    @abstractmethod
    def first_rate(self) -> float:
        """The learning rate where the options name none."""

    # the course of a training

    def run(self) -> TrainedNetwork:
        self.open_training()
        self.course()
        return self.result()

    def course(self) -> None:
        """All that is still to be done."""
        self._resume()
        if self.state.done:
            return
        if self.state.rate is None:
            self.state.rate = self.options.learning_rate or self.first_rate()
        first = 0
        for stage, epochs in zip(self.stages, epochs_of(self.stages, self.options.epochs), strict=True):
            if self.state.epoch < first + epochs and not self.state.done:
                self._run_stage(stage, first, epochs)
            first += epochs
            at_its_end = (self.state.epoch, self.state.step) == (first, 0)
            if stage.trains == "head" and at_its_end and first < self.options.epochs:
                self.state.probed = {name: tensor.detach().clone() for name, tensor in self.plain_weights().items()}
        self._finish()

    def plain_weights(self) -> dict[str, Tensor]:
        """The weights as the network has them when training is over."""
        return self.network.state_dict()

    def quicken_batch_norms(self) -> None:
        """Batch norms whose means look back over more steps than there are would end with those of the start.

        Networks that were trained for weeks have a momentum of 0.01 or less; a short fine-tuning has fewer than 100 steps.
        """
        least = min(BATCH_NORM_MOMENTUM, BATCH_NORM_SPANS / (self.steps * self.options.epochs))
        for layer in self.network.modules():
            if isinstance(layer, BatchNorm) and layer.momentum is not None:
                layer.momentum = max(layer.momentum, least)

    def _run_stage(self, stage: Stage, first: int, epochs: int) -> None:
        """The epochs of a stage that are still to be done."""
        self.keeps_statistics = stage.keeps_statistics or self.options.batch_norms == "frozen"
        wrapped, optimizer = self.prepared(stage.trains)
        if self.resumed is not None and self.state.epoch * self.steps + self.state.step > first * self.steps:
            optimizer.load_state_dict(self.resumed)
        self.resumed = None
        rates = Rates(self.options, self.steps, epochs)
        base = float(self.state.rate or 0.0) * stage.rate
        while self.state.epoch < first + epochs and not self.state.done:
            started = time.monotonic()
            losses = [row["validation_loss"] for row in self.state.curves[first:]]
            rate = base
            for shown in self.batches(self.state.epoch, range(self.state.step, self.steps), wrapped):
                rate = base * rates.at((self.state.epoch - first) * self.steps + self.state.step, losses)
                for group in optimizer.param_groups:
                    group["lr"] = rate
                self.learn(shown, wrapped, optimizer)
                self.state.step += 1
                self._tell(rate)
                if time.monotonic() - self.saved > CHECKPOINT_SECONDS and self.state.step < self.steps:
                    self.state.seconds += time.monotonic() - started
                    started = time.monotonic()
                    self._save(optimizer)
            self.state.seconds += time.monotonic() - started
            row = self._end_epoch(rate)
            if self.options.patience is not None and stage is self.stages[-1]:
                self._wait_for_better(row.validation_accuracy, self.options.patience)
            self._save(optimizer)
            if self.progress is not None and self.fabric.is_global_zero:
                self.progress(row)

    def prepared(self, trains: Level) -> tuple[nn.Module, Any]:
        """The network and its optimizer as a stage trains them: what it does not train is frozen."""
        frozen = [*self.options.freeze, *(["body"] if trains == "head" else [])]
        names = [name for name, _ in self.network.named_modules()] + [name for name, _ in self.network.named_parameters()]
        for beginning in frozen:
            if not any(_begins(name, beginning) for name in names):
                raise BadInput(f"no layer begins with {beginning!r}; there are {listed(_outer_layers(self.network), 12)}")
        self.frozen = tuple(frozen)
        for name, parameter in self.network.named_parameters():
            parameter.requires_grad = name not in self.fixed and not any(_begins(name, beginning) for beginning in frozen)
        trainable = [parameter for parameter in self.network.parameters() if parameter.requires_grad]
        if not trainable:
            raise BadInput(f"all layers are frozen by {', '.join(frozen)}: there is nothing to train")
        if self.fabric.world_size > 1 and self.fabric.device.type == "cuda":
            self.network = nn.SyncBatchNorm.convert_sync_batchnorm(self.network)  # type: ignore[no-untyped-call]
        wrapped = self.fabric.setup_module(self.network)
        return wrapped, self.fabric.setup_optimizers(self._optimizer(trainable))

    def train_mode(self) -> None:
        """Frozen layers stay in evaluation mode, so that their batch norms do not move either; or all batch norms do."""
        self.network.train()
        for name, layer in self.network.named_modules():
            own = [parameter.requires_grad for parameter in layer.parameters(recurse=False)]
            kept = self.keeps_statistics and isinstance(layer, BatchNorm)
            if kept or any(_begins(name, beginning) for beginning in self.frozen) or (own and not any(own)):
                layer.eval()

    def _optimizer(self, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
        options = self.options
        if options.optimizer == "adamw":
            return torch.optim.AdamW(parameters, lr=1.0, weight_decay=options.weight_decay)
        nesterov = self.nesterov and options.momentum > 0
        return torch.optim.SGD(
            parameters, lr=1.0, momentum=options.momentum, weight_decay=options.weight_decay, nesterov=nesterov
        )

    def stepped(self, loss: Tensor, wrapped: nn.Module, optimizer: Any) -> None:
        """One step of the optimizer down this loss."""
        optimizer.zero_grad()
        self.fabric.backward(loss)
        if self.options.clip_gradient is not None:
            self.fabric.clip_gradients(wrapped, optimizer, max_norm=self.options.clip_gradient)
        optimizer.step()

    def stored(self, dataset: Dataset, preprocessing: ImagePreprocessing) -> StoredPictures:
        """The pictures of a dataset, which one of several processes writes."""
        if self.fabric.is_global_zero:
            stored_pictures(dataset, preprocessing, self.folder, self.workers)
        self.fabric.barrier()
        self.opened.append(stored_pictures(dataset, preprocessing, self.folder, self.workers, writes=False))
        return self.opened[-1]

    def order(self, epoch: int) -> NDArray[np.intp]:
        """The training images of an epoch: each once, or drawn by the weights that a recipe gives them."""
        rng = rng_for("order", f"epoch {epoch}", self.job.seed)
        chosen = with_part(self.job.recipes, "weigh")
        if chosen is None or chosen.recipe.weigh is None:
            return rng.permutation(len(self.training))
        weights = chosen.recipe.weigh(self.training.samples, **chosen.settings)
        return rng.choice(len(self.training), len(self.training), p=weights / weights.sum())

    def seeded(self, step: int, epoch: int) -> np.random.Generator:
        """The random numbers of a step, and torch's generator seeded by them."""
        rng = rng_for(f"step {step}", f"epoch {epoch} process {self.fabric.global_rank}", self.job.seed)
        torch.manual_seed(int(rng.integers(2**62)))  # of all devices: a plug-in may draw on another than the training does
        return rng

    def count(self, *sums: Tensor | float) -> None:
        """Adds to the sums of the epoch: first the loss times the images, last the images."""
        # on the device: a GPU that is asked for a number has to end what it is doing first
        device = self.fabric.device
        added = torch.stack([torch.as_tensor(value, dtype=torch.float64, device=device) for value in sums])
        self.state.sums = self.state.sums.to(device) + added
        if device.type == "cpu" or self.state.step % CHECK_STEPS == 0:
            self.check_loss()
        self._average()

    def check_loss(self) -> None:
        """BadInput where the loss is no number."""
        loss = float(self.state.sums[0])
        if not math.isfinite(loss):
            raise BadInput(
                f"the loss became {'infinite' if math.isinf(loss) else 'NaN'} in epoch {self.state.epoch + 1}, by step "
                f"{self.state.step + 1}: the learning rate {self.state.rate:g} may be too high; choose a lower one "
                "(--learning-rate), warm up (--warmup), or clip gradients (--clip-gradient)"
            )

    def _average(self) -> None:
        """The running mean of the weights, where a recipe keeps it (Polyak & Juditsky, 1992)."""
        decay = next((float(one.settings["decay"]) for one in self.job.recipes if one.recipe.averages), None)
        if decay is None:
            return
        weights = self.network.state_dict()
        if not self.state.averaged:
            self.state.averaged = {name: tensor.detach().clone() for name, tensor in weights.items()}
            return
        steps = self.state.epoch * self.steps + self.state.step
        decay = min(decay, (1 + steps) / (10 + steps))  # the first steps are soon forgotten
        for name, tensor in weights.items():
            mean = self.state.averaged[name] = self.state.averaged[name].to(tensor.device)
            if tensor.is_floating_point():
                mean.lerp_(tensor.detach(), 1 - decay)
            else:
                mean.copy_(tensor)

    def _end_epoch(self, rate: float) -> EpochRow:
        state = self.state
        loss, score = self.evaluated(self.network if not state.averaged else self._averaged_network())
        self.check_loss()
        total, right, images = self.total(state.sums).tolist()
        row = EpochRow(
            epoch=state.epoch + 1,
            rate=rate,
            loss=total / images,
            accuracy=right / images if self.counts_right else None,
            validation_loss=loss,
            validation_accuracy=score,
            seconds=round(state.seconds, 3),
        )
        state.curves.append(dataclasses.asdict(row))
        state.epoch, state.step, state.seconds, state.sums = state.epoch + 1, 0, 0.0, torch.zeros_like(state.sums)
        return row

    def _wait_for_better(self, score: float, patience: int) -> None:
        state = self.state
        if score > state.best:
            state.best, state.waited = score, 0
            weights = state.averaged or self.network.state_dict()
            state.best_weights = {name: tensor.detach().clone() for name, tensor in weights.items()}
        else:
            state.waited += 1
            state.done = state.waited >= patience

    def _finish(self) -> None:
        """The weights to keep: the best on the validation split where training may stop early, else the last ones."""
        kept = self.state.best_weights or self.state.averaged
        if kept:
            self.network.load_state_dict(kept)
        self.state.done = True
        self.state.averaged, self.state.best_weights = {}, {}
        self._save(None)

    def _averaged_network(self) -> nn.Module:
        network = copy.deepcopy(self.network)
        network.load_state_dict(self.state.averaged)
        return network

    def _tell(self, rate: float) -> None:
        now, state = time.monotonic(), self.state
        late = now - self.told > TOLD_SECONDS or state.step == self.steps
        if self.progress is None or not self.fabric.is_global_zero or not late:
            return
        self.told = now
        loss, _, images = state.sums.tolist()
        self.progress(Reached(state.epoch + 1, self.options.epochs, state.step, self.steps, rate, self.batch, loss / images))

    # other weights of the same network

    def with_weights(self, weights: Mapping[str, NDArray[Any]]) -> nn.Module:
        """A copy of the network with these weights."""
        network = copy.deepcopy(self.network)
        load_weights(network, weights)
        return network

    def score(self, weights: Mapping[str, NDArray[Any]]) -> float:
        """What these weights come to on the validation split."""
        return self.evaluated(self.with_weights(weights))[1]

    def curves(self) -> tuple[EpochRow, ...]:
        return tuple(EpochRow(**row) for row in self.state.curves)

    def end(self) -> dict[str, NDArray[Any]]:
        return to_weights(self.network)

    def probed(self) -> dict[str, NDArray[Any]] | None:
        """The weights after a stage that trained the head alone, where there was one."""
        return to_arrays(self.state.probed) if self.state.probed else None

    def unreadable(self) -> Iterator[str]:
        """A note on images that could not be read."""
        skipped = [one for part in self.opened for one in part.skipped]
        if skipped:
            told = f"such as {skipped[0].id}: {skipped[0].reason}"
            yield f"{len(skipped):,} images could not be read and took no part, {told}"

    # several processes

    def part(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Those of some rows that are this process's."""
        return np.array_split(rows, self.fabric.world_size)[self.fabric.global_rank]

    def total(self, values: Tensor) -> Tensor:
        """The sum over all processes."""
        if self.fabric.world_size == 1:
            return values
        total = self.fabric.all_reduce(values.to(self.fabric.device), reduce_op="sum")
        assert isinstance(total, Tensor)  # noqa: S101 - a tensor was given
        return total.cpu()

    def mean(self, value: Tensor) -> Tensor:
        """The mean over all processes."""
        return value if self.fabric.world_size == 1 else self.total(value) / self.fabric.world_size

    # checkpoints

    @property
    def key(self) -> str:
        """What the weights depend on: the job, the precision and the number of processes."""
        return fingerprint_of(self.job.course_key, self.job.model_options.precision, self.fabric.world_size)

    def _save(self, optimizer: Any) -> None:
        self.saved = time.monotonic()
        if self.fabric.is_global_zero:
            save_checkpoint(self.folder / CHECKPOINT, self.key, self.state, self.network, optimizer)

    def _resume(self) -> None:
        """Takes up the last checkpoint of this training."""
        found = load_checkpoint(self.folder / CHECKPOINT, self.key)
        if found is not None:
            self.network.load_state_dict(found.weights)
            self.state, self.resumed = found.state, found.optimizer


def with_part(recipes: tuple[ChosenRecipe, ...], part: str) -> ChosenRecipe | None:
    """The recipe that changes a part of training."""
    return next((one for one in recipes if part in one.recipe.parts), None)


def _begins(name: str, beginning: str) -> bool:
    """Whether a layer's name begins so, as the network has it or as its own module did, in whole words."""
    return any(one == beginning or one.startswith(f"{beginning}.") for one in (name, _own_name(name)))


def _own_name(name: str) -> str:
    return next((name.removeprefix(body) for body in BODIES if name.startswith(body)), name)


def _outer_layers(network: nn.Module) -> list[str]:
    names = [name for name, _ in network.named_modules() if name and name not in ("body", "backbone", "backbone.body")]
    return [own for own in dict.fromkeys(map(_own_name, names)) if "." not in own]
