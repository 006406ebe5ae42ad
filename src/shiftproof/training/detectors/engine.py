"""The training loop of object detectors: pictures mirrored at random, torchvision's losses, mAP on the validation split."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from lightning_fabric import Fabric
from numpy.typing import NDArray
from torch import Tensor, nn

from shiftproof.errors import BadInput
from shiftproof.metrics.detection import mean_average_precision
from shiftproof.models.classifiers.torch_network import traced
from shiftproof.models.object_detectors.loaded import to_original
from shiftproof.models.preprocessing import ImagePreprocessing
from shiftproof.options import ModelSettings
from shiftproof.runs.workers import Workers
from shiftproof.training.detectors.networks import (
    Answer,
    Detected,
    Detector,
    FasterRCNN,
    fingerprint_of_detector,
    open_detector,
)
from shiftproof.training.detectors.recipe import FIRST_BLOCK, is_mirrored, size_of, steps_of_epoch
from shiftproof.training.detectors.targets import Objects, Targets, targets_of
from shiftproof.training.detectors.trained import PROPOSALS
from shiftproof.training.job import Job
from shiftproof.training.networks.course import Course, Tell, TrainedNetwork, device_of, fabric_of
from shiftproof.training.networks.inputs import Inputs
from shiftproof.training.networks.modules import to_weights
from shiftproof.training.networks.trainer import NetworkTrainer
from shiftproof.training.options import TrainOptions
from shiftproof.training.pictures import Augmenting, StoredPictures, augmented
from shiftproof.training.recipe import preprocessing_of
from shiftproof.types import Boxes, Dataset, Detections

EVALUATED_AT_A_TIME = 8

TOLD = ("learning_rate", "epochs", "batch_size", "optimizer", "momentum", "weight_decay", "schedule", "milestones", "warmup")
"""Options that the record of a training has, since a preset may have set them."""


def train_detector(job: Job, *, progress: Tell | None = None) -> TrainedNetwork:
    """Train an object detector as the job says, going on where an earlier process was stopped."""
    with Workers() as workers:
        return DetectorCourse(job, fabric_of(job), workers, progress).run()


def untrained_detector(job: Job) -> TrainedNetwork:
    """The detector of a job as it is before training, to judge and export other weights of it."""
    with Workers() as workers:
        return DetectorCourse(job, fabric_of(job), workers, None).result()


class Shown(NamedTuple):
    """The pictures of a step and the objects in each, and their share of the batch against that of other processes."""

    images: Tensor
    targets: list[Objects]
    share: float


class DetectorCourse(Course):
    """The training of an object detector."""

    network: Detector
    nesterov = False  # as both papers and torchvision train
    counts_right = False

    def __init__(self, job: Job, fabric: Fabric, workers: Workers, progress: Tell | None) -> None:
        self.settings: Mapping[str, Any] = next(one.settings for one in job.recipes if one.recipe.trainer is not None)
        self.source = open_detector(
            job.model,
            job.classes,
            job.model_options,
            size=size_of(self.settings["preset"]),
            regions=int(self.settings["regions"]),
            seed=job.seed,
            image_size=job.options.image_size,
        )
        super().__init__(job, fabric, workers, progress, _named_layers(job.options, self.source.network))
        self.network = self.source.network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.start = to_weights(self.network)
        self.preprocessing = preprocessing_of(job.recipes, self.source.preprocessing)
        self.inputs = Inputs(self.preprocessing, fabric.device)
        self.validation = self.stored(job.validation, self.preprocessing)
        self.validation_targets = self._targets(job.validation, self.validation)

    def open_training(self) -> None:
        self.training = self.stored(self.job.training, self.preprocessing)
        self.targets = self._targets(self.job.training, self.training)
        if not any(len(one.boxes) for one in self.targets.objects):
            raise BadInput(
                f"no box of {self.job.training.ref.name} lies in its image and is a pixel large in the input; boxes are in "
                "pixels of the stored image"
            )
        if self.targets.are_partly_labelled:
            raise BadInput(
                f"in every image of {self.job.training.ref.name} some classes were not annotated, so nothing in it is known "
                "to be background; add images in which all were, or say boxes?unlabelled=background, as published"
            )
        self.batch = min(self.options.batch_size or 1, len(self.training))
        self.steps = steps_of_epoch(len(self.training), self.batch, self.settings["preset"])
        self.quicken_batch_norms()

    def _targets(self, dataset: Dataset, pictures: StoredPictures) -> Targets:
        assert dataset.truths is not None  # noqa: S101 - datasets without boxes are refused
        return targets_of(
            pictures.samples,
            pictures.sizes,
            dataset.truths,
            self.job.classes,
            self.preprocessing,
            all_annotated=self.settings["unlabelled"] == "background",
        )

    # the course of a training

    def result(self) -> TrainedNetwork:
        """What the network is now, beside what it was at the start."""
        told = {name: getattr(self.options, name) for name in TOLD} | {"freeze": self.options.freeze}
        return TrainedNetwork(
            start=self.start,
            end=self.end(),
            curves=self.curves(),
            options=told | {"learning_rate": float(self.state.rate or 0.0), **self.settings},
            preprocessing=self.preprocessing,
            seen=self.source.seen,
            notes=(*self.source.notes, *self._notes()),
            outputs=tuple(Exported(self.network).names),
            writes=self.fabric.is_global_zero,
            score=self.score,
            export=lambda weights: to_onnx(self._with_weights(weights), self.preprocessing),
        )

    def _with_weights(self, weights: Mapping[str, NDArray[Any]]) -> Detector:
        network = self.with_weights(weights)
        assert isinstance(network, Detector)  # noqa: S101 - as it is a copy of one
        return network

    def first_rate(self) -> float:
        raise BadInput("an object detector is trained with a learning rate that is named (--learning-rate)")

    def train_mode(self) -> None:
        """Statistics of a trained backbone's batch norms stay as they are: batches are too small to find others."""
        super().train_mode()
        if self.source.pretrained:
            for layer in self.network.backbone.modules():
                if isinstance(layer, nn.BatchNorm2d):
                    layer.eval()

    def batches(self, epoch: int, steps: range, wrapped: nn.Module) -> Iterator[Shown]:  # noqa: ARG002 - the seam gives it
        order = self.order(epoch)
        parts = [self.part(order[step * self.batch : (step + 1) * self.batch]) for step in steps]
        for step, part, block in zip(
            steps, parts, self.workers.blocks(augmented, [self._augmenting(part, epoch) for part in parts]), strict=True
        ):
            self.seeded(step, epoch)
            share = len(part) * self.fabric.world_size / self.batch
            yield Shown(self.inputs(block.batch[0][0]), [self._seen(row, epoch) for row in part.tolist()], share)

    def _augmenting(self, rows: NDArray[np.intp], epoch: int) -> Augmenting:
        keys = [self.training.samples[row].id for row in rows]
        job = self.job
        return Augmenting(self.training.file, rows.tolist(), keys, job.recipes, self.preprocessing, job.seed, epoch)

    def _seen(self, row: int, epoch: int) -> Objects:
        """The objects of a training picture as it is shown in an epoch."""
        objects, key = self.targets.objects[row], self.training.samples[row].id
        if not is_mirrored(key, epoch, self.job.seed, self.settings["flip"]):
            return objects
        return objects.mirrored(int(self.inputs_size[1]))

    @property
    def inputs_size(self) -> tuple[int, int]:
        assert self.preprocessing.size is not None  # noqa: S101 - it was checked
        return self.preprocessing.size

    def learn(self, shown: Shown, wrapped: nn.Module, optimizer: Any) -> None:
        self.train_mode()
        answer: Answer = wrapped(shown.images, shown.targets)
        loss = torch.stack(list(answer.losses.values())).sum()
        self.stepped(loss * shown.share, wrapped, optimizer)
        self.count(loss.detach() * len(shown.images), 0.0, len(shown.images))

    # mAP on held-out images

    @torch.no_grad()
    def evaluated(self, network: nn.Module, most: int | None = None) -> tuple[float, float]:  # noqa: ARG002 - all of them
        """Mean loss and mAP at an IoU of 0.5; every process looks at all images, since mAP is not a sum over them."""
        network = network.to(self.fabric.device).eval()
        found: list[Detected] = []
        total = 0.0
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.job.seed)  # which anchors and proposals count in the loss is drawn
            for start in range(0, len(self.validation), EVALUATED_AT_A_TIME):
                rows = range(start, min(start + EVALUATED_AT_A_TIME, len(self.validation)))
                pictures = np.stack([self.preprocessing.filtered(self.validation.file[row]) for row in rows])
                with self.fabric.autocast():
                    answer: Answer = network(self.inputs(pictures), [self.validation_targets.objects[row] for row in rows])
                total += float(torch.stack(list(answer.losses.values())).sum()) * len(rows)
                found += answer.detected
        return total / len(self.validation), self._precision(found)

    def _precision(self, found: list[Detected]) -> float:
        dataset, pictures = self.job.validation, self.validation
        assert dataset.truths is not None  # noqa: S101 - datasets without boxes are refused
        ids = tuple(sample.id for sample in pictures.samples)
        boxes = [self._in_image(one.boxes, size) for one, size in zip(found, pictures.sizes, strict=True)]
        detections = Detections(
            ids,
            np.repeat(np.arange(len(found)), [len(one) for one in boxes]),
            np.concatenate(boxes),
            np.concatenate([one.scores.float().cpu().numpy() for one in found]),
            np.concatenate([one.classes.cpu().numpy() for one in found]),
        )
        value = mean_average_precision(detections, dataset.truths.of_images(ids))
        return 0.0 if np.isnan(value) else value

    def _in_image(self, boxes: Tensor, size: tuple[int, int]) -> Boxes:
        return to_original(boxes.double().cpu().numpy(), self.inputs_size, self.preprocessing.window(*size))

    def _notes(self) -> Iterator[str]:
        yield from self.unreadable()
        if hasattr(self, "targets"):
            yield from self.targets.notes


def _named_layers(options: TrainOptions, network: Detector) -> TrainOptions:
    """The options with the layers that are meant by the first block."""
    layers = [part for one in options.freeze for part in (network.first_block if one == FIRST_BLOCK else (one,))]
    return dataclasses.replace(options, freeze=tuple(layers))


BOXES = ("boxes", "scores", "labels")


class Exported(nn.Module):
    """The boxes found in one image; and its region proposals, where the network has some."""

    def __init__(self, network: Detector) -> None:
        super().__init__()
        self.network = network
        self.names = [*BOXES, *(PROPOSALS if isinstance(network, FasterRCNN) else ())]

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        network = self.network
        if not isinstance(network, FasterRCNN):
            (found,) = network(images).detected
            return tuple(found)
        batch, features = network.pyramid(images)
        proposals, objectness, _ = network.propose(batch, features)
        (found,) = network.detected(features, proposals, batch.image_sizes)
        return (*found, proposals[0], objectness[0])


def to_onnx(network: Detector, preprocessing: ImagePreprocessing) -> bytes:
    """The network as ONNX: one image of its size to any number of boxes."""
    exported = Exported(network).cpu().float().eval()
    assert preprocessing.size is not None  # noqa: S101 - it is trained at one size
    example = torch.rand(1, 3, *preprocessing.size, generator=torch.Generator().manual_seed(0))
    found = {name: {0: "proposed" if name in PROPOSALS else "found"} for name in exported.names}
    return traced(exported, example, exported.names, found)


@dataclass(frozen=True)
class DetectorTrainer(NetworkTrainer):
    """Trains object detectors."""

    measure = "mAP"
    figure = "mAP at an IoU of 0.5"

    def source(self, model: object, settings: ModelSettings) -> str:
        if not isinstance(model, str):
            raise BadInput("an object detector is trained from the name of its network, and not from an object")
        device_of(settings)  # a slip is told before pictures are made
        return fingerprint_of_detector(model, settings)

    def trained(self, job: Job, progress: Tell) -> TrainedNetwork:
        return train_detector(job, progress=progress)

    def untrained(self, job: Job) -> TrainedNetwork:
        return untrained_detector(job)
