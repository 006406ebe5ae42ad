"""Corruptions (ImageNet-C, ImageNet-C-bar) and perturbation sequences (ImageNet-P) of pictures.

`noise`, `blur`, `weather`, `digital` and `c_bar` have the corruptions, `sequences` the perturbations, each with its severity
parameters beside it and none of them heavy to import: the loops are in `kernels`, loaded when a picture is changed.
`apply` has `corrupt`, `sequences` has `perturb`.
"""

from __future__ import annotations

from shiftproof import catalog
from shiftproof.corruptions.editions import DEFAULT_EDITION
from shiftproof.corruptions.entry import Corruption, Perturbation, Severities, corruption_of, perturbation_of

IMAGENET_C = tuple(name for name in catalog.CORRUPTIONS.built_in if corruption_of(name).group not in ("extra", "c-bar"))
"""The test corruptions of ImageNet-C, which mCE is the mean over; the extra ones are for validation."""

IMAGENET_C_BAR, CIFAR_C_BAR = (
    tuple(name for name in catalog.CORRUPTIONS.built_in if dataset in corruption_of(name).published_in)
    for dataset in ("imagenet-c-bar", "cifar-c-bar")
)
"""The corruptions of ImageNet-C-bar and of CIFAR-10-C-bar, ten each, five of them the same."""

IMAGENET_P = tuple(name for name in catalog.PERTURBATIONS.built_in if perturbation_of(name).imagenet_p)
"""The test perturbations of ImageNet-P, which mFR and mT5D are means over; the others are for validation."""


def corruption_groups() -> dict[str, tuple[str, ...]]:
    """All corruptions by group, as the published archives and the paper sort them; those of plug-ins among them.

    >>> corruption_groups()["noise"]
    ('gaussian_noise', 'shot_noise', 'impulse_noise')
    """
    groups: dict[str, tuple[str, ...]] = {}
    for name, entry in catalog.CORRUPTIONS.loaded():
        groups[entry.group] = (*groups.get(entry.group, ()), name)
    return groups


__all__ = [
    "CIFAR_C_BAR",
    "DEFAULT_EDITION",
    "IMAGENET_C",
    "IMAGENET_C_BAR",
    "IMAGENET_P",
    "Corruption",
    "Perturbation",
    "Severities",
    "corruption_groups",
    "corruption_of",
    "perturbation_of",
]
