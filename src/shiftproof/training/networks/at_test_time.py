"""What recipes of test time do to networks: statistics of batch norms, entropy minimised, one image at a time or many."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from shiftproof.errors import BadInput
from shiftproof.models import runs_code
from shiftproof.models.classifiers.torch import network_of
from shiftproof.models.classifiers.torch_network import TorchNetwork, first_tensor
from shiftproof.models.loaded import Adaptation, LoadedClassifier, joined
from shiftproof.models.options import ModelOptions
from shiftproof.models.preprocessing import ImagePreprocessing
from shiftproof.randomness import rng_for
from shiftproof.training.augmentations.policies import augmix
from shiftproof.training.augmentations.simple import crop_and_flip
from shiftproof.training.networks.inputs import Inputs
from shiftproof.training.networks.lora import merged
from shiftproof.training.networks.modules import Network, load_weights, open_network
from shiftproof.training.recipe import accepted, chosen_recipes, torch_part
from shiftproof.training.trained import holding, read_trained, read_weights, settings_of
from shiftproof.types import Inputs as Batch
from shiftproof.types import Outputs

MEMO_SEVERITY = 1.0
"""Of AugMix in the views of memo, as its authors have it."""


def in_torch(spec: str, model: LoadedClassifier, options: ModelOptions) -> LoadedClassifier:
    """The same model with its network in torch; BadInput where it cannot be had so."""
    if isinstance(model.forward, TorchNetwork):
        if isinstance(model.forward.module, (torch.jit.ScriptModule, torch.fx.GraphModule)):
            raise BadInput(
                f"{spec} is an exported program, whose layers are fixed; name the code that makes it: torch:FILE.py:FACTORY"
            )
        return dataclasses.replace(model, concurrent_batches=1)
    network = _rebuilt(spec, model, options)
    forward = dataclasses.replace(network_of(network, options), features="head", extra=next(iter(network.branches), None))
    return dataclasses.replace(model, forward=forward, fixed_batch_size=None, default_batch_size=32, concurrent_batches=1)


def _rebuilt(spec: str, model: LoadedClassifier, options: ModelOptions) -> Network:
    """The network of ``lite:``, or of a folder that holds a training."""
    if spec.startswith("lite:") and model.classes is not None:
        return open_network(spec, model.classes).network
    folder = Path(spec.removeprefix("trained:"))
    found = read_trained(folder)
    if found is None:
        raise BadInput(
            f"{model.ref.name} is no network of torch, which this recipe could change; --adapt tta can be had of any model, "
            "the others of torch:, timm:, torchvision:, hf: and lite: models, and of what was trained from these"
        )
    record = found.record
    source = record.source.spec
    if not options.trust and not source.startswith("scratch:") and runs_code(source):
        raise BadInput(
            f"{folder} was trained from {source}, whose code makes its network; loading that may run any code: "
            "say --trust if you know who made the folder"
        )
    network = open_network(source, record.classes, settings_of(found, trust=options.trust, device=None)).network
    for one in chosen_recipes("+".join(record.recipes)):
        if one.recipe.extend is not None:
            extend = torch_part(one.recipe.extend)
            network = merged(extend(network, len(record.classes), **accepted(extend, one.settings)))
    if "reject" in network.branches:
        raise BadInput(f"{folder} has a reject class, which is kept in its graph alone; --adapt tta can be had of it")
    weights = read_weights(holding(folder))
    load_weights(network.head if record.level == "head" else network, weights)
    return network


def norms_of(module: nn.Module) -> list[_BatchNorm]:
    """The batch norms of a network that have statistics; BadInput where there is none."""
    found = [layer for layer in module.modules() if isinstance(layer, _BatchNorm) and layer.running_mean is not None]
    if not found:
        raise BadInput("the network has no batch norms with statistics to adapt; tta and memo can be had of any network")
    return found


class Statistics:
    """Of a batch norm: those of training, and those of the inputs that it sees meanwhile."""

    def __init__(self, norm: _BatchNorm, source: float) -> None:
        assert norm.running_mean is not None  # noqa: S101 - chosen by that
        assert norm.running_var is not None  # noqa: S101
        self.mean, self.variance, self.source = norm.running_mean, norm.running_var, source
        self.of_training = norm.running_mean.clone(), norm.running_var.clone()
        self.images, self.sums = 0, torch.zeros(2, len(self.mean), dtype=torch.float64, device=self.mean.device)

    @torch.no_grad()
    def see(self, values: Tensor, images: int) -> None:
        """Takes the statistics of a batch, which counts as so many images, mixed with those of training."""
        axes = [axis for axis in range(values.dim()) if axis != 1]
        mean, variance = values.mean(axes), values.var(axes, unbiased=False)
        self.images += len(values)
        self.sums += len(values) * torch.stack([mean, variance + mean**2]).double()
        self._mix(mean, variance, images)

    @torch.no_grad()
    def pool(self) -> None:
        """Takes the statistics of all batches together."""
        if self.images:
            mean, squares = self.sums / self.images
            self._mix(mean.float(), (squares - mean**2).float(), self.images)

    def _mix(self, mean: Tensor, variance: Tensor, images: int) -> None:
        share = images / (images + self.source)
        for own, ours, theirs in zip((self.mean, self.variance), (mean, variance), self.of_training, strict=True):
            own.copy_(theirs if share == 0 else share * ours + (1 - share) * theirs)


@contextmanager
def watched(module: nn.Module, source: float, images: int) -> Iterator[list[Statistics]]:
    """While this holds, batch norms normalise by what they see, mixed with the statistics of training."""
    hooks, found = [], []
    for norm in norms_of(module):
        found.append(statistics := Statistics(norm, source))
        hooks.append(norm.register_forward_pre_hook(_seeing(statistics, images)))
    try:
        yield found
    finally:
        for hook in hooks:
            hook.remove()


def _seeing(statistics: Statistics, images: int) -> Callable[[nn.Module, tuple[Tensor, ...]], None]:
    return lambda _, given: statistics.see(given[0], images)


@torch.no_grad()
def take_statistics(network: TorchNetwork, batches: Sequence[Batch], source: float) -> None:
    """Gives the batch norms the statistics of all batches; those of training count as `source` images.

    Each batch is normalised by its own on the way, as in training. Means and variances are mixed as by Schneider et al.
    (2020).
    """
    # with the share that the end will have, so that layers see what those before them will then give
    with watched(network.module, source, images=sum(map(len, batches))) as found:
        for batch in batches:
            network.module(network.to_device(batch))
    for statistics in found:
        statistics.pool()


def bn_adapt(model: LoadedClassifier, *, images: int, source: float) -> LoadedClassifier:
    """The model with statistics of test images in its batch norms."""

    def adapt(network: TorchNetwork, batches: Sequence[Batch]) -> None:
        take_statistics(network, batches, source)

    return _adapting(
        model, adapt, images, f"bn-adapt: statistics of batch norms; those of training count as {source:g} images"
    )


def tent(model: LoadedClassifier, *, images: int, source: float, rate: float, epochs: int) -> LoadedClassifier:
    """The model with affine parameters of its batch norms trained on test images, and statistics of these."""

    def adapt(network: TorchNetwork, batches: Sequence[Batch]) -> None:
        minimise_entropy(network, batches, rate=rate, epochs=epochs)
        take_statistics(network, batches, source)

    told = (
        f"tent: adapted before it predicts, {epochs} times over its images at rate {rate:g}; online it would predict each "
        "batch while it adapts, which depends on the order of images"
    )
    return _adapting(model, adapt, images, told)


def minimise_entropy(network: TorchNetwork, batches: Sequence[Batch], *, rate: float, epochs: int) -> None:
    """Trains scales and shifts of the batch norms to lower the mean entropy; batches have their own statistics meanwhile."""
    norms = norms_of(network.module)
    parameters = [one for norm in norms for one in (norm.weight, norm.bias) if one is not None]
    if not parameters:
        raise BadInput("the batch norms of the network have no scales and shifts that tent could train")
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.train()
        norm.momentum = 0.0  # running statistics stay
    for parameter in parameters:
        parameter.requires_grad = True
    optimizer = torch.optim.SGD(parameters, lr=rate, momentum=0.9)
    for _ in range(epochs):
        for batch in (one for one in batches if len(one) > 1):
            optimizer.zero_grad()
            with torch.enable_grad():
                entropy(_logits(network, network.to_device(batch))).mean().backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    for parameter in parameters:
        parameter.requires_grad, parameter.grad = False, None
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.eval()
        norm.momentum = momentum


def entropy(logits: Tensor) -> Tensor:
    """Of the softmax of each row."""
    logs = logits.log_softmax(dim=-1)
    return -(logs.exp() * logs).sum(dim=-1)


def marginal_entropy(logits: Tensor) -> Tensor:
    """The entropy of the mean probability of the rows, which are views of one image (Zhang et al., 2022)."""
    mean = logits.log_softmax(dim=1).logsumexp(dim=0) - math.log(len(logits))
    return -(mean.exp() * mean).sum()


def _logits(network: TorchNetwork, inputs: Tensor) -> Tensor:
    logits: Tensor = first_tensor(network.module(inputs)).reshape(len(inputs), -1).float()
    return logits


def _adapting(
    model: LoadedClassifier, adapt: Callable[[TorchNetwork, Sequence[Batch]], None], images: int, note: str
) -> LoadedClassifier:
    """The model, of whose network a copy adapts."""
    network = _of_logits(model)
    norms_of(network.module)  # a network without any is told now

    def adapted(batches: Sequence[Batch]) -> TorchNetwork:
        changed = dataclasses.replace(network, module=copy.deepcopy(network.module))
        adapt(changed, batches)
        return changed

    return dataclasses.replace(
        model,
        forward=lambda inputs, features: adapted([inputs])(inputs, features),
        notes=(*model.notes, note),
        adaptation=Adaptation(adapted, images),
    )


def _of_logits(model: LoadedClassifier) -> TorchNetwork:
    network = model.forward
    assert isinstance(network, TorchNetwork)  # noqa: S101 - `in_torch` has seen to that
    if model.gives != "logits":
        raise BadInput(f"{model.ref.name} gives {model.gives}; entropy is minimised, and statistics taken, of logits")
    return network


@dataclass(frozen=True)
class Agreeing:
    """Outputs of a network that is trained anew for each image, to agree on views of it."""

    network: TorchNetwork
    inputs: Inputs
    views: int
    rate: float
    steps: int
    source: float

    def __call__(self, inputs: Batch, features: bool) -> Outputs:
        return joined([self._one(inputs[place : place + 1], features) for place in range(len(inputs))])

    def _one(self, image: Batch, features: bool) -> Outputs:
        changed = dataclasses.replace(self.network, module=copy.deepcopy(self.network.module))
        has_norms = any(isinstance(layer, _BatchNorm) for layer in changed.module.modules())
        with watched(changed.module, self.source, images=1) if has_norms else _nothing():
            self._train(changed, self.inputs(self._views(image)))
            return changed(image, features)

    def _train(self, network: TorchNetwork, views: Tensor) -> None:
        parameters = [one for one in network.module.parameters() if one.is_floating_point()]
        for parameter in parameters:
            parameter.requires_grad = True
        optimizer = torch.optim.SGD(parameters, lr=self.rate)
        for _ in range(self.steps):
            optimizer.zero_grad()
            with torch.enable_grad():
                marginal_entropy(_logits(network, views)).backward()  # type: ignore[no-untyped-call]
            optimizer.step()

    def _views(self, image: Batch) -> Any:
        """Crops and flips of the picture, changed by AugMix; what is drawn follows from its pixels, in any batch."""
        (picture,) = self.inputs.pictures(image)
        rng = rng_for(hashlib.blake2b(picture.tobytes(), digest_size=16).hexdigest(), "memo")
        crops = (crop_and_flip(picture, rng, []) for _ in range(self.views))
        return np.stack([augmix(one, rng, [], severity=MEMO_SEVERITY) for one in crops])


@contextmanager
def _nothing() -> Iterator[None]:
    yield


def memo(model: LoadedClassifier, *, views: int, rate: float, steps: int, source: float) -> LoadedClassifier:
    """The model trained anew for each image (Zhang et al., 2022)."""
    import cv2  # noqa: F401 - views are made with it, and its want should be told now

    network, own = _of_logits(model), model.preprocessing
    if not isinstance(own, ImagePreprocessing) or own.layout != "nchw" or own.dtype != "float32":
        raise BadInput(
            f"{model.ref.name} has inputs that cannot be augmented; they should be float32 (channels, rows, columns)"
        )
    forward = Agreeing(network, Inputs(own, network.device), views, rate, steps, source)
    note = f"memo: {steps} steps at rate {rate:g} on {views} views of each image, after which the network is itself again"
    # the head of each image is another one
    return dataclasses.replace(model, forward=forward, read_head=lambda: None, notes=(*model.notes, note))
