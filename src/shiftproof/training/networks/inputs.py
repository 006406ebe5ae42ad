"""Bytes of pictures to a network's inputs, on its device."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from shiftproof.models.classifiers.torch_device import transfers_of
from shiftproof.models.preprocessing import ImagePreprocessing


class Inputs:
    """Bytes of pictures to a model's inputs, on a device."""

    def __init__(self, preprocessing: ImagePreprocessing, device: torch.device) -> None:
        self.device, self.order = device, preprocessing.channels
        self.transfers = transfers_of(device)
        scale = np.ravel(preprocessing.contrast) / 255
        black = np.zeros((1, 1, 3), np.uint8)
        shift = np.ravel(ImagePreprocessing.from_picture(_bare(preprocessing), black))
        self.scale, self.black = (
            torch.from_numpy(np.float32(values)).to(device)[:, None, None] for values in (scale, shift)
        )
        self.white = self.black + 255 * self.scale

    def __call__(self, pictures: NDArray[np.uint8]) -> Tensor:
        """Inputs (images, channels, rows, columns) of pictures (images, rows, columns, 3)."""
        tensor = torch.from_numpy(np.array(pictures, copy=None))
        if self.transfers is not None:
            tensor = self.transfers.arrived(self.transfers.upload(tensor))
        tensor = tensor.permute(0, 3, 1, 2)
        if self.order == "bgr":
            tensor = tensor.flip(1)
        elif self.order == "grey":
            # Pillow's luma, rounded as it rounds
            luma = torch.tensor([19595, 38470, 7471], device=self.device)[:, None, None]
            tensor = ((tensor.int() * luma).sum(dim=1, keepdim=True) + 0x8000) >> 16
        # the channels stay last in memory, where they are in pictures: convolutions are faster so
        return tensor.float().mul_(self.scale).add_(self.black)

    def pictures(self, inputs: NDArray[np.generic]) -> NDArray[np.uint8]:
        """The pictures that inputs were made of, to the byte; of grey ones all channels are alike."""
        scale, black = (values.cpu().numpy() for values in (self.scale, self.black))
        levels = ((inputs - black) / scale).round().clip(0, 255).astype(np.uint8).transpose(0, 2, 3, 1)
        return np.ascontiguousarray(np.repeat(levels, 3, axis=3) if self.order == "grey" else levels[..., :: self._step])

    @property
    def _step(self) -> int:
        return -1 if self.order == "bgr" else 1


def _bare(preprocessing: ImagePreprocessing) -> ImagePreprocessing:
    """Its normalisation alone."""
    return ImagePreprocessing(
        size=None,
        rule="none",
        value_range=preprocessing.value_range,
        mean=preprocessing.mean,
        std=preprocessing.std,
        channels=preprocessing.channels,
    )
