"""Networks to train: any torch classifier as a body and its last linear layer, and small residual networks from scratch."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from shiftproof.datasets.classes import match_columns
from shiftproof.errors import BadInput, ClassMismatch
from shiftproof.models import load_model, runs_code
from shiftproof.models.by_settings import load_classifier
from shiftproof.models.classifiers.lite import BATCH_NORM_EPSILON, SIZES, Block, blocks_of, checkpoint_of, lite_preprocessing
from shiftproof.models.classifiers.torch_network import TorchNetwork, first_tensor
from shiftproof.models.loaded import LoadedClassifier
from shiftproof.models.options import PRESETS, parse_preprocessing
from shiftproof.models.preprocessing import ImagePreprocessing, resized_to
from shiftproof.models.weights import load_checkpoint
from shiftproof.options import ModelSettings
from shiftproof.reference import ilsvrc_classes
from shiftproof.training.trained import Trained, architecture_of, read_weights, settings_of, trained_at
from shiftproof.types import Classes, Seen, fingerprint_of


class Network(nn.Module):
    """A classifier as its body, which gives features, and linear layers on them: the head, and branches of recipes."""

    def __init__(self, body: nn.Module, head: nn.Linear) -> None:
        super().__init__()
        self.body, self.head, self.branches = body, head, nn.ModuleDict()

    def forward(self, images: Tensor) -> dict[str, Tensor]:
        """Logits, features, and what each branch gives, by name."""
        features = first_tensor(self.body(images)).flatten(1)
        branches = {name: branch(features) for name, branch in self.branches.items()}
        return {"logits": self.head(features), "features": features, **branches}

    @property
    def first_layer(self) -> nn.Module:
        """The first convolution: what recipes that mix features change."""
        found = next((layer for layer in self.body.modules() if isinstance(layer, nn.Conv2d)), None)
        if found is None:
            raise BadInput("the network has no convolution, whose features a recipe could change")
        return found


@dataclass(frozen=True)
class Start:
    """A network before training, and what is known about the model that it was made of."""

    network: Network
    preprocessing: ImagePreprocessing
    seen: Seen = field(default_factory=Seen)  # in earlier training
    new_classes: bool = True  # whether rows of the head were drawn at random
    notes: tuple[str, ...] = ()


def fingerprint_of_model(spec: str, settings: ModelSettings) -> str:
    """What tells the model that a spec names from others; of one from scratch its name does."""
    if spec.startswith("scratch:"):
        return fingerprint_of(spec)
    return load_classifier(spec, _on_cpu(settings)).ref.fingerprint


def _on_cpu(settings: ModelSettings) -> ModelSettings:
    """The same where nobody asks which devices a model runs on: it is torch that trains it there."""
    return dataclasses.replace(settings, device=None)


def open_network(
    spec: str,
    classes: Classes,
    settings: ModelSettings | None = None,
    *,
    seed: int = 0,
    image_size: int | None = None,
) -> Start:
    """The network that a spec names, with a head over these classes; what is new in it is drawn from the seed.

    Beside the kinds of torch models there is ``lite:0`` to ``lite:2``, and ``scratch:resnet-20``, a residual network for
    small pictures without any training; ``scratch:resnet-14x2`` is twice as wide. A folder that training wrote is trained
    on, where its first model was one of these.
    """
    settings = settings or ModelSettings()
    architecture_of(spec, settings)  # an error where folders name one another
    kind, _, rest = spec.partition(":")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if (before := trained_at(spec)) is not None:
            start = _trained(before, classes, settings, seed)
        elif kind == "scratch":
            start = Start(_from_scratch(rest, len(classes)), PRESETS["cifar"])
        elif kind == "lite":
            start = _lite(rest, classes)
        else:
            start = _loaded(spec, classes, settings, seed)
    preprocessing = parse_preprocessing(settings.preprocess or "", start.preprocessing)
    if image_size is not None:
        preprocessing = resized_to(preprocessing, (image_size, image_size))
    return dataclasses.replace(start, preprocessing=preprocessing)


def _trained(before: Trained, classes: Classes, settings: ModelSettings, seed: int) -> Start:
    """The network of an earlier training with its weights, and a head over these classes; branches of recipes are left."""
    record, source = before.record, before.record.source
    if not settings.trust and not source.spec.startswith("scratch:") and runs_code(source.spec):
        raise BadInput(
            f"{before.folder} is trained on by opening {source.spec} first, which may run any code: say --trust if you know "
            "who made the folder"
        )
    first = open_network(source.spec, record.classes, settings_of(before, trust=settings.trust), seed=seed)
    weights = read_weights(before.folder)
    if record.level == "head":
        weights = {f"head.{name}": tensor for name, tensor in weights.items()}
        own: nn.Module = nn.ModuleDict({"head": first.network.head})
    else:
        weights = {name: tensor for name, tensor in weights.items() if not name.startswith("branches.")}
        own = first.network
    try:
        load_weights(own, weights)
    except (RuntimeError, KeyError, TypeError) as problem:
        raise BadInput(f"{before.folder} does not hold the weights of {source.spec}; train again") from problem
    head, new = head_over(classes, first.network.head, record.classes)
    return Start(Network(first.network.body, head), parse_preprocessing(record.preprocessing), record.seen, new)


def _loaded(spec: str, classes: Classes, settings: ModelSettings, seed: int) -> Start:
    """A classifier of torch, timm, torchvision or transformers, parted before its last linear layer."""
    model = load_classifier(spec, _on_cpu(settings))
    runner = model.forward if isinstance(model, LoadedClassifier) else None
    if not isinstance(runner, TorchNetwork) or not isinstance(model, LoadedClassifier):
        raise BadInput(
            f"{spec} is no network of torch, so only its head can be trained (--level head); whole networks are trained "
            "from torch:MODULE:FACTORY, timm:NAME, torchvision:NAME, hf:NAME, lite:0 or scratch:resnet-20"
        )
    if isinstance(runner.module, (torch.jit.ScriptModule, torch.fx.GraphModule)):
        raise BadInput(
            f"{spec} is an exported program, whose layers are fixed; name the code that makes it: torch:FILE.py:FACTORY"
        )
    if model.head is None or runner.features is None:
        raise BadInput(f"{spec} does not end in a linear layer, so there is no head to train: {' '.join(model.notes)}")
    if not isinstance(model.preprocessing, ImagePreprocessing) or model.preprocessing.layout != "nchw":
        raise BadInput(
            f"{spec} takes its inputs in a layout that is not trained here; it should be (channels, rows, columns)"
        )
    body, name = runner.module.cpu(), runner.features
    old = body.get_submodule(name)
    assert isinstance(old, nn.Linear)  # noqa: S101 - a model with a head has it there
    parent, _, own_name = name.rpartition(".")
    setattr(body.get_submodule(parent), own_name, nn.Identity())
    for parameter in body.parameters():
        parameter.requires_grad = True
    torch.manual_seed(seed)  # whatever the code that made the module did with it
    head, new = head_over(classes, old, model.classes)
    return Start(Network(body, head), model.preprocessing, model.seen, new, model.notes)


def head_over(classes: Classes, old: nn.Linear, old_classes: Classes | None) -> tuple[nn.Linear, bool]:
    """A linear layer over these classes: rows of the old one where it has the class; and whether some are new."""
    try:
        columns = match_columns(classes, old_classes, old.out_features).columns
    except ClassMismatch:
        columns = (-1,) * len(classes)
    head = nn.Linear(old.in_features, len(classes))
    with torch.no_grad():
        for row, column in enumerate(columns):
            if column >= 0:
                head.weight[row] = old.weight[column]
                head.bias[row] = 0.0 if old.bias is None else old.bias[column]
    return head, min(columns) < 0


class LiteBlock(nn.Module):
    """One inverted residual of EfficientNet-Lite; layers are named as in the published weights."""

    def __init__(self, block: Block) -> None:
        super().__init__()
        hidden = block.channels_in * block.expansion
        self.has_shortcut = block.has_shortcut
        if block.expansion != 1:
            self._expand_conv, self._bn0 = SamePadding(block.channels_in, hidden, 1), _lite_norm(hidden)
        self._depthwise_conv = SamePadding(hidden, hidden, block.kernel, block.stride, groups=hidden)
        self._bn1 = _lite_norm(hidden)
        self._project_conv, self._bn2 = SamePadding(hidden, block.channels_out, 1), _lite_norm(block.channels_out)

    def forward(self, images: Tensor) -> Tensor:
        value = images
        if hasattr(self, "_expand_conv"):
            value = functional.relu6(self._bn0(self._expand_conv(value)))
        value = functional.relu6(self._bn1(self._depthwise_conv(value)))
        projected: Tensor = self._bn2(self._project_conv(value))
        return projected + images if self.has_shortcut else projected


class SamePadding(nn.Conv2d):
    """A convolution padded so that a stride of 1 keeps the size; where one side gets more it is the right or the lower."""

    def __init__(self, channels_in: int, channels_out: int, kernel: int, stride: int = 1, groups: int = 1) -> None:
        super().__init__(channels_in, channels_out, kernel, stride, groups=groups, bias=False)

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - torch's name
        (kernel, _), (stride, _) = self.kernel_size, self.stride
        spare = [max((-(-size // stride) - 1) * stride + kernel - size, 0) for size in map(int, input.shape[:1:-1])]
        sides = [side for total in spare for side in (total // 2, total - total // 2)]
        padded = functional.pad(input, sides) if any(sides) else input
        return functional.conv2d(padded, self.weight, None, self.stride, groups=self.groups)


class Lite(nn.Module):
    """EfficientNet-Lite without its last layer (Tan and Le, 2019)."""

    def __init__(self, number: int, features: int) -> None:
        super().__init__()
        blocks = list(blocks_of(number))
        self._conv_stem, self._bn0 = SamePadding(3, blocks[0].channels_in, 3, 2), _lite_norm(blocks[0].channels_in)
        self._blocks = nn.Sequential(*map(LiteBlock, blocks))
        self._conv_head, self._bn1 = SamePadding(blocks[-1].channels_out, features, 1), _lite_norm(features)

    def forward(self, images: Tensor) -> Tensor:
        value = functional.relu6(self._bn0(self._conv_stem(images)))
        value = functional.relu6(self._bn1(self._conv_head(self._blocks(value))))
        return functional.adaptive_avg_pool2d(value, 1).flatten(1)


def _lite_norm(channels: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(channels, eps=BATCH_NORM_EPSILON, momentum=0.01)


def _lite(number: str, classes: Classes) -> Start:
    """EfficientNet-Lite with its ImageNet weights, in torch."""
    model = load_model(f"lite:{number}")  # an unknown number or missing weights are told there
    tensors = {
        name: torch.from_numpy(np.array(array)) for name, array in load_checkpoint(checkpoint_of(int(number))).arrays.items()
    }
    classes_before, features = tensors["_fc.weight"].shape
    old = nn.Linear(features, classes_before)
    old.load_state_dict({part: tensors.pop(f"_fc.{part}") for part in ("weight", "bias")})
    body = Lite(int(number), features)
    body.load_state_dict(tensors)
    preprocessing = lite_preprocessing(SIZES[int(number)])
    head, new = head_over(classes, old, ilsvrc_classes())
    return Start(Network(body, head), preprocessing, model.seen if isinstance(model, LoadedClassifier) else Seen(), new)


class ResidualBlock(nn.Module):
    """Two convolutions beside a shortcut without weights, as for CIFAR (He et al., 2016, option A)."""

    def __init__(self, channels_in: int, channels_out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels_out, 3, stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels_out)
        self.conv2 = nn.Conv2d(channels_out, channels_out, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels_out)
        self.stride, self.more = stride, channels_out - channels_in

    def forward(self, images: Tensor) -> Tensor:
        value = functional.relu(self.norm1(self.conv1(images)))
        value = self.norm2(self.conv2(value))
        if self.stride > 1 or self.more:
            shortcut = images[:, :, :: self.stride, :: self.stride]
            images = functional.pad(shortcut, (0, 0, 0, 0, self.more // 2, self.more - self.more // 2))
        return functional.relu(value + images)


def residual_network(depth: int, width: int = 1) -> tuple[nn.Sequential, int]:
    """The body of a residual network for small pictures, and how many features it gives (He et al., 2016).

    Three stages of (depth - 2) / 6 blocks with 16, 32 and 64 channels, times the width.
    """
    blocks, rest = divmod(depth - 2, 6)
    if rest or blocks < 1:
        raise BadInput(f"the depth of a residual network for small pictures is 6 n + 2, such as 8, 14 or 20, got {depth}")
    channels = [16, *(width * planes for planes in (16, 32, 64))]
    layers: list[nn.Module] = [nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    for stage, (before, after) in enumerate(pairwise(channels)):
        layers += [ResidualBlock(before, after, 2 if stage else 1)]
        layers += [ResidualBlock(after, after, 1) for _ in range(blocks - 1)]
    body = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
    for layer in body.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
    return body, channels[-1]


def _from_scratch(name: str, classes: int) -> Network:
    found = re.fullmatch(r"resnet-(\d{1,3})(?:x(\d{1,2}))?", name)
    if found is None:
        raise BadInput(
            f"no architecture called {name!r}; there is scratch:resnet-N for N = 8, 14, 20 and so on, and W times as wide "
            "scratch:resnet-NxW; others start untrained as timm:NAME with --weights random, or as torch:FILE.py:FACTORY"
        )
    body, features = residual_network(int(found[1]), int(found[2] or 1))
    return Network(body, nn.Linear(features, classes))


def with_branch(name: str, outputs: int) -> Callable[..., Network]:
    """A function that adds a linear layer on the features: what recipes name as `extend`."""

    def extended(network: Network, classes: int) -> Network:  # noqa: ARG001 - the seam gives it
        network.branches[name] = nn.Linear(network.head.in_features, outputs)
        return network

    return extended


with_confidence = with_branch("confidence", 1)
with_rotation = with_branch("rotation", 4)
with_reject = with_branch("reject", 1)


def to_weights(network: nn.Module) -> dict[str, NDArray[Any]]:
    """Every tensor of a network by name, as numpy arrays of their own."""
    return to_arrays(network.state_dict())


def to_arrays(tensors: Mapping[str, Tensor]) -> dict[str, NDArray[Any]]:
    """Tensors as numpy arrays of their own."""
    return {name: tensor.detach().cpu().numpy().copy() for name, tensor in tensors.items()}


def load_weights(network: nn.Module, weights: Mapping[str, NDArray[Any]]) -> None:
    """Put weights into a network; counters that a recipe's arithmetic made fractions of are cut to whole numbers."""
    own = network.state_dict()
    network.load_state_dict({name: torch.from_numpy(np.array(array)).to(own[name].dtype) for name, array in weights.items()})
