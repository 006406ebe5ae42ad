"""Recipes that change the loss, the network or the course of training; what they do stands in `networks`, in torch."""

from __future__ import annotations

import math

from shiftproof.errors import BadInput
from shiftproof.options import Bounds
from shiftproof.training.recipe import Recipe, Stage

LOSSES = "shiftproof.training.networks.losses"
MODULES = "shiftproof.training.networks.modules"
PART, SOME = Bounds(0, 1), Bounds(0, 1000, open_below=True)


def _check_lora(*, rank: int, alpha: float) -> None:
    if rank < 1 or not 0 <= alpha < math.inf:
        raise BadInput(f"lora: rank should be 1 at least and alpha 0 or more, got {rank} and {alpha:g}")


LABEL_SMOOTHING = Recipe(
    title="Label smoothing",
    description="A share of each label is spread over all classes.",
    cites=("szegedy2016rethinking",),
    settings={"smoothing": 0.1},
    bounds={"smoothing": PART},
    levels=("network",),
    loss=f"{LOSSES}:cross_entropy",
)

MIXUP = Recipe(
    title="Mixup",
    description="Weighted means of two images and of their labels; alpha is 1 for CIFAR, 0.2 for ImageNet.",
    cites=("zhang2018mixup",),
    settings={"alpha": 1.0},
    bounds={"alpha": SOME},
    levels=("network",),
    augmentations=("mixup",),
    loss=f"{LOSSES}:mixup",
)

CUTMIX = Recipe(
    title="CutMix",
    description="A rectangle is replaced by that of another image, and labels are mixed by area.",
    cites=("yun2019cutmix",),
    settings={"alpha": 1.0, "probability": 0.5},
    bounds={"alpha": SOME, "probability": PART},
    levels=("network",),
    augmentations=("cutmix",),
    loss=f"{LOSSES}:cutmix",
)

MOEX = Recipe(
    title="Moment exchange",
    description="Mean and standard deviation of early features are exchanged between images, and a tenth of their labels.",
    cites=("li2021feature",),
    settings={"share": 0.9, "probability": 1.0},
    bounds={"share": PART, "probability": PART},
    levels=("network",),
    augmentations=("moex",),
    loss=f"{LOSSES}:moex",
)

ADVERSARIAL = Recipe(
    title="Adversarial training",
    description="Adversarial training: FGSM from a random start, or free adversarial training with replays of each batch.",
    cites=("wong2020fast", "shafahi2019adversarial"),
    settings={"epsilon": 8.0, "stride": 1.25, "replays": 1},
    bounds={"epsilon": Bounds(0, 255), "stride": Bounds(0, 1000), "replays": Bounds(1, 100)},
    levels=("network",),
    augmentations=("adversarial",),
    loss=f"{LOSSES}:adversarial",
)

CONFIDENCE_BRANCH = Recipe(
    title="Confidence branch",
    description="An extra output learns the network's confidence, with hints at a cost; feeds the OOD detector confidence.",
    cites=("devries2018learning",),
    settings={"budget": 0.3, "weight": 0.1, "hints": 0.5},
    bounds={"budget": SOME, "weight": Bounds(0, 1000), "hints": PART},
    levels=("network",),
    loss=f"{LOSSES}:confidence_branch",
    extend=f"{MODULES}:with_confidence",
)

ROTATION_HEAD = Recipe(
    title="Rotation head",
    description="An extra output predicts by how much an image was rotated; feeds the OOD detector rotation.",
    cites=("hendrycks2019using",),
    settings={"weight": 0.5},
    bounds={"weight": Bounds(0, 1000)},
    levels=("network",),
    loss=f"{LOSSES}:rotation_head",
    extend=f"{MODULES}:with_rotation",
)

OUTLIER_EXPOSURE = Recipe(
    title="Outlier exposure",
    description="On outliers (images of none of the classes) the network learns to predict uniform probabilities.",
    cites=("hendrycks2019deep",),
    settings={"weight": 0.5, "ratio": 2.0},
    bounds={"weight": Bounds(0, 1000), "ratio": SOME},
    levels=("network",),
    needs_outliers=True,
    loss=f"{LOSSES}:outlier_exposure",
)

REJECT_CLASS = Recipe(
    title="Reject class",
    description="One more class, for outliers (images of none of the others); feeds the OOD detector confidence.",
    cites=("hendrycks2021natural",),
    settings={"ratio": 1.0},
    bounds={"ratio": SOME},
    levels=("network",),
    needs_outliers=True,
    loss=f"{LOSSES}:reject_class",
    extend=f"{MODULES}:with_reject",
)

LORA = Recipe(
    title="Low-rank adaptation",
    description="Low-rank adaptation: weights are frozen, and each layer learns a low-rank update of them.",
    cites=("hu2022lora",),
    settings={"rank": 8, "alpha": 16.0},
    levels=("network",),
    check=_check_lora,
    extend="shiftproof.training.networks.lora:with_lora",
)

LP_FT = Recipe(
    title="Linear probe, then fine-tuning",
    description="First the head alone (linear probe), then the network at a tenth of the rate: less feature distortion.",
    cites=("kumar2022fine",),
    levels=("network",),
    # with the statistics of batches the features would be others than those that the head was fitted to
    stages=(Stage(0.5, "head"), Stage(0.5, "network", rate=0.1, keeps_statistics=True)),
)

EMA = Recipe(
    title="Averaged weights",
    description="The result is an exponential moving average of the weights over the steps.",
    cites=("polyak1992acceleration",),
    settings={"decay": 0.999},
    bounds={"decay": Bounds(0, 1, open_above=True)},
    levels=("network",),
    averages=True,
)
