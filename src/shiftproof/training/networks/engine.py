"""The training loop of networks, carried by lightning-fabric: devices, mixed precision, several processes.

Everything random follows from the seed, the epoch and the step, so that a training that was killed goes on from its last
checkpoint and ends with the weights of one that was not: bit for bit on a CPU with the same number of threads.

Several processes are started by torch's own command, ``torchrun --nproc-per-node 2 -m shiftproof train ...``. Each trains
on its part of every batch and gradients are averaged, which equals one process but for rounding where a network has no
batch norm, or it is frozen. On GPUs batch norms take their figures over all processes (SyncBatchNorm).
"""

from __future__ import annotations

import copy
import dataclasses
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from lightning_fabric import Fabric
from numpy.typing import NDArray
from torch import Tensor, nn

from shiftproof.errors import BadInput, listed
from shiftproof.models.preprocessing import ImagePreprocessing
from shiftproof.randomness import rng_for
from shiftproof.runs.workers import Workers
from shiftproof.training.job import Job
from shiftproof.training.networks.checkpoints import EpochRow, State, load_checkpoint, save_checkpoint
from shiftproof.training.networks.inputs import Inputs
from shiftproof.training.networks.lora import merged
from shiftproof.training.networks.losses import Step, cross_entropy, label_loss
from shiftproof.training.networks.modules import Network, Start, load_weights, open_network, to_arrays, to_weights
from shiftproof.training.networks.schedule import Rates, epochs_of
from shiftproof.training.pictures import Augmenting, StoredPictures, augmented, stored_pictures
from shiftproof.training.recipe import ChosenRecipe, Level, Stage, accepted, preprocessing_of, torch_part
from shiftproof.types import Dataset, fingerprint_of

PRECISIONS: Mapping[str, Any] = {"float32": "32-true", "bfloat16": "bf16-mixed", "float16": "16-mixed"}

BATCH_SIZE = 64
CHECKPOINT_SECONDS = 120.0
"""Between checkpoints within an epoch; at its end there is always one."""

RATES = {"sgd": (0.001, 0.003, 0.01, 0.03, 0.1, 0.3), "adamw": (3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2)}
"""Learning rates that a search tries."""

SEARCH_STEPS = 60
"""Steps of training with each of them, before its loss on held-out images is looked at."""

SEARCH_IMAGES = 2048

BATCH_NORM_MOMENTUM = 0.1
"""torch's own, and the most that a network's is raised to."""

BATCH_NORM_SPANS = 5
"""How often a training is at least as long as the span that batch norms average over."""

CHECK_STEPS = 20
"""On a GPU, steps after which the loss is looked at."""

TOLD_SECONDS = 0.2

CHECKPOINT = "training.pt"


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
    accuracy: float


Tell: TypeAlias = Callable[[Reached | EpochRow], None]
"""Told of steps, a few times a second, and of every epoch."""


@dataclass(frozen=True)
class TrainedNetwork:
    """The weights a training started and ended with, and how to judge and export others of the same network."""

    start: dict[str, NDArray[Any]]  # of the whole network: after a stage that trained the head alone, where there was one
    end: dict[str, NDArray[Any]]
    curves: tuple[EpochRow, ...]
    learning_rate: float
    preprocessing: ImagePreprocessing
    source: Start
    notes: tuple[str, ...]
    outputs: tuple[str, ...]  # of the exported network
    writes: bool  # whether it is this one of several processes that writes the result
    score: Callable[[Mapping[str, NDArray[Any]]], float]  # accuracy of weights on the validation split
    export: Callable[[Mapping[str, NDArray[Any]]], bytes]  # ONNX


def train_network(job: Job, *, progress: Tell | None = None) -> TrainedNetwork:
    """Train a network as the job says, going on where an earlier process was stopped."""
    with Workers() as workers:
        return _Training(job, fabric_of(job), workers, progress).run()


def untrained_network(job: Job) -> TrainedNetwork:
    """The network of a job as it is before training, to judge and export other weights of it."""
    with Workers() as workers:
        return _Training(job, fabric_of(job), workers, None).result()


def fabric_of(job: Job) -> Fabric:
    """The devices and processes to train with; more than one process where torchrun started this one."""
    precision = job.model_options.precision
    if precision not in PRECISIONS:
        raise BadInput(f"precision should be one of {', '.join(PRECISIONS)}, got {precision!r}")
    device, _, number = (job.model_options.device or "cpu").partition(":")
    if device not in {"cpu", "cuda", "mps"} or (device == "cuda" and not torch.cuda.is_available()):
        raise BadInput(f"torch cannot train on device {job.model_options.device!r} here; --device is cpu, cuda or cuda:1")
    processes = int(os.environ.get("LOCAL_WORLD_SIZE", 1))
    several = int(os.environ.get("WORLD_SIZE", 1)) > 1
    fabric = Fabric(
        accelerator=device,
        devices=[int(number)] if number else processes,
        num_nodes=int(os.environ.get("WORLD_SIZE", 1)) // processes if several else 1,
        strategy="ddp" if several else "auto",
        precision=PRECISIONS[precision],
    )
    fabric.launch()
    return fabric


class Shown(NamedTuple):
    """A step, what the network answered in it, and its share of the batch against that of other processes."""

    step: Step
    seen: dict[str, Tensor]
    share: float


def _through(wrapped: nn.Module, seen: dict[str, Tensor], images: Tensor) -> dict[str, Tensor]:
    outputs: dict[str, Tensor] = wrapped(images)
    seen["logits"] = outputs["logits"].detach()
    return outputs


class _Training:
    """One training as it runs."""

    def __init__(self, job: Job, fabric: Fabric, workers: Workers, progress: Tell | None) -> None:
        self.job, self.fabric, self.workers, self.progress = job, fabric, workers, progress
        self.options = job.options
        self.source = open_network(
            job.model, job.classes, job.model_options, seed=job.seed, image_size=job.options.image_size
        )
        self.preprocessing = preprocessing_of(job.recipes, self.source.preprocessing)
        # as the inputs lie in memory
        self.network: Network = self._extended(self.source.network).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.fixed = frozenset(name for name, one in self.network.named_parameters() if not one.requires_grad)
        self.start = to_weights(merged(self.network))
        self.loss, self.loss_settings = self._loss()
        self.stages = next((one.recipe.stages for one in job.recipes if "stages" in one.recipe.parts), (Stage(1.0),))
        self.folder = job.folder / "checkpoints"
        self.inputs = Inputs(self.preprocessing, fabric.device)
        self.opened: list[StoredPictures] = []
        self.validation = self._stored(job.validation)
        self.validation_targets = self._targets(self.validation)
        self.state = State()
        self.resumed: Any = None  # of the optimizer
        self.frozen: tuple[str, ...] = ()
        self.saved = self.told = time.monotonic()

    def _open_training(self) -> None:
        job = self.job
        needing = next((one for one in job.recipes if one.recipe.needs_outliers), None)
        if needing is not None and job.outliers is None:
            raise BadInput(f"{needing.name} needs images of none of the classes; name a dataset of them (--outliers)")
        self.training = self._stored(job.training)
        self.outliers = None if job.outliers is None or needing is None else self._stored(job.outliers)
        self.targets = self._targets(self.training)
        if int((self.targets.sum(dim=0) > 0).sum()) < 2:
            raise BadInput(f"the training images of {job.training.ref.name} are of one class only; a classifier needs two")
        self.batch = min(self.options.batch_size or BATCH_SIZE, len(self.training))
        self.steps = len(self.training) // self.batch
        self._quicken_batch_norms()

    def _quicken_batch_norms(self) -> None:
        """Batch norms whose means look back over more steps than there are would end with those of the start.

        Networks that were trained for weeks have a momentum of 0.01 or less; a short fine-tuning has fewer than 100 steps.
        """
        least = min(BATCH_NORM_MOMENTUM, BATCH_NORM_SPANS / (self.steps * self.options.epochs))
        for layer in self.network.modules():
            if isinstance(layer, nn.modules.batchnorm._BatchNorm) and layer.momentum is not None:
                layer.momentum = max(layer.momentum, least)

    # what is trained, and on what

    def _extended(self, network: Network) -> Network:
        chosen = _with_part(self.job.recipes, "extend")
        if chosen is None or chosen.recipe.extend is None:
            return network
        extend = torch_part(chosen.recipe.extend)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.job.seed + 1)
            extended: Network = extend(network, len(self.job.classes), **accepted(extend, chosen.settings))
        return extended

    def _loss(self) -> tuple[Callable[..., Tensor], dict[str, Any]]:
        chosen = _with_part(self.job.recipes, "loss")
        if chosen is None or chosen.recipe.loss is None:
            return cross_entropy, {}
        loss = torch_part(chosen.recipe.loss)
        return loss, accepted(loss, chosen.settings)

    def _stored(self, dataset: Dataset) -> StoredPictures:
        if self.fabric.is_global_zero:
            stored_pictures(dataset, self.preprocessing, self.folder, self.workers)
        self.fabric.barrier()
        self.opened.append(stored_pictures(dataset, self.preprocessing, self.folder, self.workers, writes=False))
        return self.opened[-1]

    def _targets(self, pictures: StoredPictures) -> Tensor:
        return torch.from_numpy(self.job.targets(pictures.samples)).float()

    @property
    def replays(self) -> int:
        return int(self.loss_settings.get("replays", 1))

    @property
    def ratio(self) -> float:
        """Outliers to a picture."""
        return float(self.loss_settings.get("ratio", 1.0))

    # the course of a training

    def run(self) -> TrainedNetwork:
        self._open_training()
        self._resume()
        if not self.state.done:
            if self.state.rate is None:
                self.state.rate = self.options.learning_rate or self._searched_rate()
            first = 0
            for stage, epochs in zip(self.stages, epochs_of(self.stages, self.options.epochs), strict=True):
                if self.state.epoch < first + epochs and not self.state.done:
                    self._run_stage(stage, first, epochs)
                first += epochs
                at_its_end = (self.state.epoch, self.state.step) == (first, 0)
                if stage.trains == "head" and at_its_end and first < self.options.epochs:
                    weights = merged(self.network).state_dict()
                    self.state.probed = {name: tensor.detach().clone() for name, tensor in weights.items()}
            self._finish()
        return self.result()

    def result(self) -> TrainedNetwork:
        """What the network is now, beside what it was at the start."""
        from shiftproof.training.networks.export import Exported

        self.network = merged(self.network)
        return TrainedNetwork(
            start=self.start if not self.state.probed else to_arrays(self.state.probed),
            end=to_weights(self.network),
            curves=tuple(EpochRow(**row) for row in self.state.curves),
            learning_rate=float(self.state.rate or 0.0),
            preprocessing=self.preprocessing,
            source=self.source,
            notes=(*self.source.notes, *self._notes()),
            outputs=tuple(Exported(self.network).names),
            writes=self.fabric.is_global_zero,
            score=self._score,
            export=self._export,
        )

    def _run_stage(self, stage: Stage, first: int, epochs: int) -> None:
        """The epochs of a stage that are still to be done."""
        trainable = self._prepare(stage.trains)
        wrapped = self.fabric.setup_module(self.network)
        optimizer: Any = self.fabric.setup_optimizers(self._optimizer(trainable))
        if self.resumed is not None and self.state.epoch * self.steps + self.state.step > first * self.steps:
            optimizer.load_state_dict(self.resumed)
        self.resumed = None
        rates = Rates(self.options, self.steps, epochs)
        base = float(self.state.rate or 0.0) * stage.rate
        while self.state.epoch < first + epochs and not self.state.done:
            started = time.monotonic()
            losses = [row["validation_loss"] for row in self.state.curves[first:]]
            rate = base
            for shown in self._batches(self.state.epoch, range(self.state.step, self.steps), wrapped):
                rate = base * rates.at((self.state.epoch - first) * self.steps + self.state.step, losses)
                for group in optimizer.param_groups:
                    group["lr"] = rate
                self._learn(shown, wrapped, optimizer)
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

    def _prepare(self, trains: Level) -> list[nn.Parameter]:
        """Freezes what is not trained in a stage, and gives what is."""
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
        return trainable

    def _train_mode(self) -> None:
        """Frozen layers stay in evaluation mode, so that their batch norms do not move either."""
        self.network.train()
        for name, layer in self.network.named_modules():
            own = [parameter.requires_grad for parameter in layer.parameters(recurse=False)]
            if any(_begins(name, beginning) for beginning in self.frozen) or (own and not any(own)):
                layer.eval()

    def _optimizer(self, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
        options = self.options
        if options.optimizer == "adamw":
            return torch.optim.AdamW(parameters, lr=1.0, weight_decay=options.weight_decay)
        nesterov = options.momentum > 0
        return torch.optim.SGD(
            parameters, lr=1.0, momentum=options.momentum, weight_decay=options.weight_decay, nesterov=nesterov
        )

    def _batches(self, epoch: int, steps: range, wrapped: nn.Module) -> Iterator[Shown]:
        """Steps of an epoch: pictures augmented ahead by workers, in an order drawn for the epoch."""
        order = self._order(epoch)
        parts = [self._part(order[step * self.batch : (step + 1) * self.batch]) for step in steps]
        jobs = [self._augmenting(self.training, part, epoch, self.job.recipes) for part in parts]
        outside = None if self.outliers is None else self._outliers(epoch, parts, steps)
        for step, part, block in zip(steps, parts, self.workers.blocks(augmented, jobs), strict=True):
            rng = rng_for(f"step {step}", f"epoch {epoch} process {self.fabric.global_rank}", self.job.seed)
            torch.manual_seed(int(rng.integers(2**62)))
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
                mean=self._mean,
            )
            # processes whose parts differ by an image count by their images, as in one process
            share = len(part) * self.fabric.world_size / self.batch
            yield Shown(made, seen, share)

    def _order(self, epoch: int) -> NDArray[np.intp]:
        """The training images of an epoch: each once, or drawn by the weights that a recipe gives them."""
        rng = rng_for("order", f"epoch {epoch}", self.job.seed)
        chosen = _with_part(self.job.recipes, "weigh")
        if chosen is None or chosen.recipe.weigh is None:
            return rng.permutation(len(self.training))
        weights = chosen.recipe.weigh(self.training.samples, **chosen.settings)
        return rng.choice(len(self.training), len(self.training), p=weights / weights.sum())

    def _part(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        return np.array_split(rows, self.fabric.world_size)[self.fabric.global_rank]

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

    def _learn(self, shown: Shown, wrapped: nn.Module, optimizer: Any) -> None:
        """One step: as many replays of a batch as the recipe asks for."""
        step, seen, share = shown
        for replay in range(self.replays):
            self._train_mode()
            loss = self.loss(_replayed(step, replay), **self.loss_settings)
            optimizer.zero_grad()
            self.fabric.backward(loss * share)
            if self.options.clip_gradient is not None:
                self.fabric.clip_gradients(wrapped, optimizer, max_norm=self.options.clip_gradient)
            optimizer.step()
        self.state.kept.pop("noise", None)
        self._count(loss.detach(), seen["logits"], step)
        self._average()

    def _count(self, loss: Tensor, logits: Tensor, step: Step) -> None:
        images = len(step.images)
        right = step.targets.gather(1, logits[:images].argmax(dim=1, keepdim=True)) > 0
        # on the device: a GPU that is asked for a number has to end what it is doing first
        sums = torch.stack([loss.double() * images, right.sum().double(), loss.new_tensor(images, dtype=torch.float64)])
        self.state.sums = self.state.sums.to(sums.device) + sums
        if sums.device.type == "cpu" or self.state.step % CHECK_STEPS == 0:
            self._check_loss()

    def _check_loss(self) -> None:
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
        loss, accuracy = self._evaluated(self.network if not state.averaged else self._averaged_network())
        self._check_loss()
        total, right, images = self._total(state.sums).tolist()
        row = EpochRow(
            epoch=state.epoch + 1,
            rate=rate,
            loss=total / images,
            accuracy=right / images,
            validation_loss=loss,
            validation_accuracy=accuracy,
            seconds=round(state.seconds, 3),
        )
        state.curves.append(dataclasses.asdict(row))
        state.epoch, state.step, state.seconds, state.sums = state.epoch + 1, 0, 0.0, torch.zeros_like(state.sums)
        return row

    def _wait_for_better(self, accuracy: float, patience: int) -> None:
        state = self.state
        if accuracy > state.best:
            state.best, state.waited = accuracy, 0
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

    def _averaged_network(self) -> Network:
        network = copy.deepcopy(self.network)
        network.load_state_dict(self.state.averaged)
        return network

    def _tell(self, rate: float) -> None:
        now, state = time.monotonic(), self.state
        late = now - self.told > TOLD_SECONDS or state.step == self.steps
        if self.progress is None or not self.fabric.is_global_zero or not late:
            return
        self.told = now
        loss, right, images = state.sums.tolist()
        epochs, each = self.options.epochs, self.batch
        self.progress(Reached(state.epoch + 1, epochs, state.step, self.steps, rate, each, loss / images, right / images))

    # accuracy on held-out images

    @torch.no_grad()
    def _evaluated(self, network: nn.Module, most: int | None = None) -> tuple[float, float]:
        """Mean loss and accuracy on the validation split, clean; of the first `most` images in a drawn order."""
        network = network.to(self.fabric.device).eval()
        rows = rng_for("validation", "order", self.job.seed).permutation(len(self.validation))[:most]
        rows = self._part(rows)
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
        total, right, images = self._total(totals).tolist()
        return total / images, right / images

    def _score(self, weights: Mapping[str, NDArray[Any]]) -> float:
        network = copy.deepcopy(self.network)
        load_weights(network, weights)
        return self._evaluated(network)[1]

    def _export(self, weights: Mapping[str, NDArray[Any]]) -> bytes:
        from shiftproof.training.networks.export import to_onnx

        network = copy.deepcopy(self.network)
        load_weights(network, weights)
        return to_onnx(network, self.preprocessing)

    def _searched_rate(self) -> float:
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
        trainable = self._prepare("network")
        wrapped = self.fabric.setup_module(self.network)
        optimizer: Any = self.fabric.setup_optimizers(self._optimizer(trainable))
        for group in optimizer.param_groups:
            group["lr"] = rate
        try:
            for shown in self._batches(0, range(min(SEARCH_STEPS, self.steps)), wrapped):
                self._learn(shown, wrapped, optimizer)
            self._check_loss()
        except BadInput:  # the loss is not finite
            return math.inf
        loss, _ = self._evaluated(self.network, SEARCH_IMAGES)
        return loss if math.isfinite(loss) else math.inf

    # several processes

    def _total(self, values: Tensor) -> Tensor:
        if self.fabric.world_size == 1:
            return values
        total = self.fabric.all_reduce(values.to(self.fabric.device), reduce_op="sum")
        assert isinstance(total, Tensor)  # noqa: S101 - a tensor was given
        return total.cpu()

    def _mean(self, value: Tensor) -> Tensor:
        return value if self.fabric.world_size == 1 else self._total(value) / self.fabric.world_size

    # checkpoints

    @property
    def key(self) -> str:
        """What the weights depend on: the job, the precision and the number of processes."""
        return fingerprint_of(self.job.key, self.job.model_options.precision, self.fabric.world_size)

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

    def _notes(self) -> Iterator[str]:
        skipped = [one for part in self.opened for one in part.skipped]
        if skipped:
            told = f"such as {skipped[0].id}: {skipped[0].reason}"
            yield f"{len(skipped):,} images could not be read and took no part, {told}"
        before = next((one.name for one in self.job.recipes if one.recipe.finish and not one.recipe.joins_seeds), None)
        if before is not None and self.source.new_classes and not self.state.probed:
            yield f"{before}: the head before training was drawn at random, having new classes; join it with lp-ft"


def _with_part(recipes: tuple[ChosenRecipe, ...], part: str) -> ChosenRecipe | None:
    return next((one for one in recipes if part in one.recipe.parts), None)


def _begins(name: str, beginning: str) -> bool:
    """Whether a layer's name begins so, as the network has it or as its own module did, in whole words."""
    return any(one == beginning or one.startswith(f"{beginning}.") for one in (name, name.removeprefix("body.")))


def _outer_layers(network: Network) -> list[str]:
    return [
        name.removeprefix("body.") for name, _ in network.named_modules() if name and name.count(".") <= 1 and name != "body"
    ]


def _replayed(step: Step, replay: int) -> Step:
    return step if replay == 0 else dataclasses.replace(step, replay=replay)
