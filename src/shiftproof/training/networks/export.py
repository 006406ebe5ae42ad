"""A trained network as an ONNX file that opens without torch."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from shiftproof.models.classifiers.torch_network import INPUT, traced
from shiftproof.models.preprocessing import ImagePreprocessing
from shiftproof.training.networks.modules import Network


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
