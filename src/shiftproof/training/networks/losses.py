"""What networks are trained to do: losses as functions of one step, each named by a recipe.

A loss calls ``step.network`` once, on all pictures that it needs together: with several processes, gradients are averaged
over them after each such call. Whole numbers and shares are drawn from ``step.rng``, tensors by torch, whose generator is
seeded for each step: all follow from the seed, the epoch and the step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from shiftproof.errors import BadInput
from shiftproof.training.networks.modules import Network


@dataclass(frozen=True)
class Step:
    """One batch of training, as a loss sees it."""

    network: Callable[[Tensor], dict[str, Tensor]]
    images: Tensor  # (images, channels, rows, columns), normalised as the model takes them
    targets: Tensor  # (images, classes): the share of each class, rows sum to 1; of a multi-label recipe 0 or 1 each
    rng: np.random.Generator
    copies: tuple[Tensor, ...] = ()  # augmented copies of the images, as many tensors as the recipe asks for
    outliers: Tensor | None = None
    plain: Network | None = None  # the network itself, for passes without a gradient on its weights
    black: Tensor = field(default_factory=lambda: torch.zeros(1))  # what black and white are in the inputs, by channel
    white: Tensor = field(default_factory=lambda: torch.ones(1))
    kept: dict[str, Tensor] = field(default_factory=dict)  # what the loss remembers from step to step
    replay: int = 0  # how often this batch has been trained on just before
    mean: Callable[[Tensor], Tensor] = lambda value: value  # over all processes


def cross_entropy(step: Step, *, smoothing: float = 0.0) -> Tensor:
    """Cross-entropy; of `smoothing` all classes get an equal share (Szegedy et al., 2016)."""
    return functional.cross_entropy(step.network(step.images)["logits"], step.targets, label_smoothing=smoothing)


def multi_label(step: Step, *, loss: str = "sigmoid") -> Tensor:
    """Binary cross-entropy of a sigmoid for each class, mean over images and classes; or labels share a softmax."""
    return label_loss(step.network(step.images)["logits"], step.targets, multi_label=loss == "sigmoid")


def label_loss(logits: Tensor, targets: Tensor, *, multi_label: bool = False, reduction: str = "mean") -> Tensor:
    """Cross-entropy of plain training; with `multi_label` that of every class alone, mean over the classes of an image."""
    if not multi_label:
        return functional.cross_entropy(logits, targets, reduction=reduction)
    found = functional.binary_cross_entropy_with_logits(logits, targets, reduction=reduction)
    return found if reduction == "mean" else found / targets.shape[1]


def mixup(step: Step, *, alpha: float = 1.0) -> Tensor:
    """Cross-entropy on weighted means of two pictures and of their labels (Zhang et al., 2018)."""
    share = float(step.rng.beta(alpha, alpha))
    others = _shuffled(step)
    images = share * step.images + (1 - share) * step.images[others]
    targets = share * step.targets + (1 - share) * step.targets[others]
    return functional.cross_entropy(step.network(images)["logits"], targets)


def cutmix(step: Step, *, alpha: float = 1.0, probability: float = 0.5) -> Tensor:
    """Cross-entropy on pictures with a rectangle of another; labels are shared by area (Yun et al., 2019)."""
    if step.rng.random() >= probability:
        return cross_entropy(step)
    others = _shuffled(step)
    height, width = step.images.shape[-2:]
    rows, columns = _rectangle(height, width, 1 - float(step.rng.beta(alpha, alpha)), step.rng)
    images = step.images.clone()
    images[..., rows, columns] = step.images[others][..., rows, columns]
    other = (rows.stop - rows.start) * (columns.stop - columns.start) / (height * width)
    targets = (1 - other) * step.targets + other * step.targets[others]
    return functional.cross_entropy(step.network(images)["logits"], targets)


def _rectangle(height: int, width: int, share: float, rng: np.random.Generator) -> tuple[slice, slice]:
    """A rectangle in the picture's own proportions with this share of its area, less where it is cut off at a border."""
    sides = (int(height * share**0.5), int(width * share**0.5))
    middles = (int(rng.integers(height)), int(rng.integers(width)))
    spans = zip(middles, sides, (height, width), strict=True)
    rows, columns = (slice(max(0, at - side // 2), min(most, at + side // 2)) for at, side, most in spans)
    return rows, columns


def moex(step: Step, *, share: float = 0.9, probability: float = 1.0) -> Tensor:
    """Cross-entropy with the moments of early features exchanged between pictures (Li et al., 2021).

    Mean and deviation over the channels at every place, after the first convolution, are those of another picture, which
    has 1 - `share` of the label.
    """
    assert step.plain is not None  # noqa: S101 - the engine gives it
    if step.rng.random() >= probability:
        return cross_entropy(step)
    others = _shuffled(step)
    hook = step.plain.first_layer.register_forward_hook(lambda _, __, features: exchanged_moments(features, others))
    try:
        logits = step.network(step.images)["logits"]
    finally:
        hook.remove()
    return functional.cross_entropy(logits, share * step.targets + (1 - share) * step.targets[others])


def exchanged_moments(features: Tensor, others: Tensor) -> Tensor:
    """Features with the mean and the deviation over channels that those of other images of the batch have."""
    mean = features.mean(dim=1, keepdim=True)
    deviation = (features.var(dim=1, keepdim=True, correction=0) + 1e-5).sqrt()
    return (features - mean) / deviation * deviation[others] + mean[others]


def augmix(step: Step, *, consistency: float = 12.0) -> Tensor:
    """Cross-entropy on plain pictures, and the divergence of answers to their copies (Hendrycks et al., 2020)."""
    logits = step.network(torch.cat([step.images, *step.copies]))["logits"].chunk(1 + len(step.copies))
    divergence = jensen_shannon([functional.log_softmax(one, dim=1) for one in logits])
    return functional.cross_entropy(logits[0], step.targets) + consistency * divergence


def jensen_shannon(logarithms: list[Tensor]) -> Tensor:
    """Mean divergence of distributions, given as logarithms, from their mixture; in nats, mean over images."""
    mixture = torch.stack(logarithms).exp().mean(dim=0).clamp(1e-7, 1).log()
    divergences = [functional.kl_div(mixture, one, reduction="batchmean", log_target=True) for one in logarithms]
    return torch.stack(divergences).mean()


def adversarial(step: Step, *, epsilon: float = 8.0, stride: float = 1.25, replays: int = 1) -> Tensor:
    """Cross-entropy on pictures moved to raise it: one step from a random start, at most `epsilon` of 255 levels.

    Fast adversarial training (Wong et al., 2020), with a step of `stride` times epsilon. With `replays` above 1 each
    batch is trained on so often in a row, and the gradient on the pictures comes with that on the weights of the replay
    before: free adversarial training (Shafahi et al., 2019).
    """
    assert step.plain is not None  # noqa: S101 - the engine gives it
    most = (step.white - step.black).abs() * (epsilon / 255)
    if replays > 1 and step.replay > 0:
        before = step.kept["noise"]
        assert before.grad is not None  # noqa: S101 - the replay before went through it
        noise = _moved(step, before.detach(), before.grad, most, 1.0)
    else:
        noise = (2 * torch.rand_like(step.images) - 1) * most
        if replays == 1:
            start = noise.requires_grad_()
            loss = functional.cross_entropy(step.plain(step.images + start)["logits"], step.targets)
            (gradient,) = torch.autograd.grad(loss, start)
            noise = _moved(step, start.detach(), gradient, most, stride)
    if replays > 1:
        step.kept["noise"] = noise = noise.detach().requires_grad_()
    return functional.cross_entropy(step.network(step.images + noise)["logits"], step.targets)


def _moved(step: Step, noise: Tensor, gradient: Tensor, most: Tensor, stride: float) -> Tensor:
    """Noise after a step along the gradient's sign, within its bounds and within black and white."""
    noise = torch.clamp(noise + stride * most * gradient.sign(), -most, most)
    low, high = torch.minimum(step.black, step.white), torch.maximum(step.black, step.white)
    return torch.clamp(step.images + noise, low, high) - step.images


def confidence_branch(step: Step, *, budget: float = 0.3, weight: float = 0.1, hints: float = 0.5) -> Tensor:
    """Answers moved to the truth by as much as the network is unsure, at a price (DeVries & Taylor, 2018).

    A branch learns confidence c: half of the pictures, drawn by `hints`, are answered c p + (1 - c) y. The price, -log c,
    has a weight that starts at `weight` and moves by a hundredth each step to keep the price at `budget`.
    """
    outputs = step.network(step.images)
    confidence = torch.sigmoid(outputs["confidence"].float())
    hinted = (torch.rand_like(confidence) < hints).float()
    trusted = confidence * hinted + (1 - hinted)
    shares = torch.softmax(outputs["logits"].float(), dim=1) * trusted + step.targets * (1 - trusted)
    loss = -(step.targets * shares.clamp_min(1e-12).log()).sum(dim=1).mean()
    price = -confidence.clamp_min(1e-12).log().mean()
    factor = step.kept.get("price weight", torch.tensor(weight)).to(price.device)
    step.kept["price weight"] = factor / 1.01 if step.mean(price.detach()) < budget else factor / 0.99
    return loss + factor * price


def rotation_head(step: Step, *, weight: float = 0.5) -> Tensor:
    """Cross-entropy, and that of a branch which tells by how much each picture was rotated (Hendrycks et al., 2019)."""
    if step.images.shape[-1] != step.images.shape[-2]:
        raise BadInput(f"only square pictures can be rotated by 90 degrees, got {tuple(step.images.shape[-2:])}")
    images = len(step.images)
    rotated = torch.cat([torch.rot90(step.images, turns, (2, 3)) for turns in range(4)])
    outputs = step.network(rotated)
    turned = torch.arange(4, device=rotated.device).repeat_interleave(images)
    upright = functional.cross_entropy(outputs["logits"][:images], step.targets)
    return upright + weight * functional.cross_entropy(outputs["rotation"], turned)


def outlier_exposure(step: Step, *, weight: float = 0.5, ratio: float = 2.0) -> Tensor:  # noqa: ARG001 - the engine's
    """Cross-entropy, and that of the uniform distribution on outliers, `ratio` to a picture (Hendrycks et al., 2019)."""
    images, outliers = step.images, _outliers(step)
    logits = step.network(torch.cat([images, outliers]))["logits"]
    uniform = -functional.log_softmax(logits[len(images) :], dim=1).mean()
    return functional.cross_entropy(logits[: len(images)], step.targets) + weight * uniform


def reject_class(step: Step, *, ratio: float = 1.0) -> Tensor:  # noqa: ARG001 - the engine's
    """Cross-entropy over one class more, which all outliers belong to, `ratio` to a picture (Hendrycks et al., 2021)."""
    images, outliers = step.images, _outliers(step)
    outputs = step.network(torch.cat([images, outliers]))
    logits = torch.cat([outputs["logits"], outputs["reject"]], dim=1)
    inside = functional.pad(step.targets, (0, 1))
    outside = torch.zeros(len(outliers), logits.shape[1], device=logits.device)
    outside[:, -1] = 1
    return functional.cross_entropy(logits, torch.cat([inside, outside]))


def _shuffled(step: Step) -> Tensor:
    return torch.from_numpy(step.rng.permutation(len(step.images))).to(step.images.device)


def _outliers(step: Step) -> Tensor:
    assert step.outliers is not None  # noqa: S101 - the engine checks what a recipe needs
    return step.outliers
