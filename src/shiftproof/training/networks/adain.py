"""Style transfer by adaptive instance normalisation, with the user's weights (Huang & Belongie, 2017).

The encoder is VGG-19 up to its first convolution of the fourth stage, the decoder its mirror image.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from shiftproof.errors import BadInput
from shiftproof.models.classifiers.torch import load_weights
from shiftproof.types import Image

Plan: TypeAlias = tuple[tuple[int, int] | str, ...]
"""Convolutions of 3 x 3 by channels in and out, each after a reflected border and before a ReLU; and changes of size."""

POOL, UP = "halved by its maxima", "doubled"
ENCODER: Plan = (
    *((3, 64), (64, 64), POOL),
    *((64, 128), (128, 128), POOL),
    *((128, 256), (256, 256), (256, 256), (256, 256), POOL),
    (256, 512),
)
DECODER: Plan = (
    *((512, 256), UP),
    *((256, 256), (256, 256), (256, 256), (256, 128), UP),
    *((128, 128), (128, 64), UP),
    *((64, 64), (64, 3)),
)

EPSILON = 1e-5


def adain(content: Tensor, style: Tensor) -> Tensor:
    """The content's features with the mean and standard deviation that the style's have in each channel."""
    mean, deviation = _moments(content)
    style_mean, style_deviation = _moments(style)
    return (content - mean) / deviation * style_deviation + style_mean


def _moments(features: Tensor) -> tuple[Tensor, Tensor]:
    variance, mean = torch.var_mean(features, dim=(2, 3), keepdim=True)
    return mean, (variance + EPSILON).sqrt()


@torch.inference_mode()
def transferred(image: Image, style: Image, strength: float, encoder: str, decoder: str) -> Image:
    """The picture in the style of another, or part of the way there."""
    encode, decode = opened(encoder, decoder)
    content, target = (encode(_tensor(picture)) for picture in (image, style))
    features = strength * adain(content, target) + (1 - strength) * content
    height, width = image.shape[:2]
    pixels = decode(features)[0, :, :height, :width].permute(1, 2, 0)
    return np.ascontiguousarray((pixels * 255).round().clamp(0, 255).byte().numpy())


def _tensor(picture: Image) -> Tensor:
    return torch.from_numpy(np.array(picture, np.float32)).permute(2, 0, 1)[None] / 255


@cache
def opened(encoder: str, decoder: str) -> tuple[nn.Sequential, nn.Sequential]:
    """Both networks with the weights of these files."""
    return network_of(ENCODER, Path(encoder)), network_of(DECODER, Path(decoder))


def network_of(plan: Plan, path: Path) -> nn.Sequential:
    """A network with the convolutions of a file, taken in their order; BadInput where one does not fit.

    Published encoders begin with a convolution of one pixel, which scales colours; others take pictures from 0 to 1.
    """
    found = _convolutions(path)
    layers: list[nn.Module] = []
    if plan is ENCODER and found and found[0].kernel_size == (1, 1):
        layers.append(found.pop(0))
    there = iter(found)
    for step in plan:
        if isinstance(step, str):
            layers.append(nn.Upsample(scale_factor=2) if step == UP else nn.MaxPool2d(2, ceil_mode=True))
            continue
        layer = next(there, None)
        shape = None if layer is None else (layer.in_channels, layer.out_channels, *layer.kernel_size)
        if layer is None or shape != (*step, 3, 3):
            what = "encoder" if plan is ENCODER else "decoder"
            raise BadInput(
                f"{path} holds no {what} of style transfer: a convolution of 3 x 3 from {step[0]} to {step[1]} channels "
                f"should come next, got {'none' if shape is None else '{} to {}, {} x {}'.format(*shape)}"
            )
        layers += [nn.ReflectionPad2d(1), layer, nn.ReLU()]
    return nn.Sequential(*layers[: -1 if plan is DECODER else None]).eval()


def _convolutions(path: Path) -> list[nn.Conv2d]:
    weights, _ = load_weights(path)
    return list(_made(weights))


def _made(weights: dict[str, Tensor]) -> Iterator[nn.Conv2d]:
    for name, weight in sorted(weights.items(), key=lambda item: _numbers(item[0])):
        bias = weights.get(f"{name.removesuffix('weight')}bias")
        if weight.dim() == 4 and name.endswith("weight"):
            layer = nn.Conv2d(weight.shape[1], weight.shape[0], (weight.shape[2], weight.shape[3]), bias=bias is not None)
            layer.load_state_dict({"weight": weight} | ({} if bias is None else {"bias": bias}))
            yield layer


def _numbers(name: str) -> list[tuple[int, str]]:
    """The parts of a name, numbers by their size: layers are numbered in their order, and files may have another."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in name.split(".")]
