"""A trained object detector as an ONNX file, its region proposals among the outputs."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from shiftproof.models.classifiers.torch_network import traced
from shiftproof.models.preprocessing import ImagePreprocessing
from shiftproof.training.detectors.networks import Detector, FasterRCNN
from shiftproof.training.detectors.trained import PROPOSALS

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
