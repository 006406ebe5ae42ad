"""Jobs of object detectors, from the request to the result folder."""

from __future__ import annotations

from dataclasses import dataclass

from shiftproof.errors import BadInput
from shiftproof.options import ModelSettings
from shiftproof.training.detectors.engine import train_detector, untrained_detector
from shiftproof.training.detectors.networks import fingerprint_of_detector
from shiftproof.training.job import Job
from shiftproof.training.networks.course import Tell, TrainedNetwork, device_of
from shiftproof.training.networks.trainer import NetworkTrainer


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
