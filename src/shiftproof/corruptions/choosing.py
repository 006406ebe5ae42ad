"""Names as people type them on the command line, looked up before any image is opened."""

from __future__ import annotations

import re
from collections.abc import Iterable

from shiftproof import catalog
from shiftproof.corruptions import GROUPS, IMAGENET_C, IMAGENET_P
from shiftproof.errors import BadInput
from shiftproof.registry import Registry


def corruptions_named(text: str) -> tuple[str, ...]:
    """The corruptions that ``imagenet-c``, ``all``, a group or names with commas between them stand for.

    >>> corruptions_named("noise,fog")
    ('gaussian_noise', 'shot_noise', 'impulse_noise', 'fog')
    """
    sets = {"imagenet-c": IMAGENET_C, "all": tuple(catalog.CORRUPTIONS), **GROUPS}
    return _chosen(text, sets, catalog.CORRUPTIONS)


def perturbations_named(text: str) -> tuple[str, ...]:
    """The perturbations that ``imagenet-p``, ``all`` or names with commas between them stand for.

    >>> perturbations_named("tilt, scale")
    ('tilt', 'scale')
    """
    return _chosen(text, {"imagenet-p": IMAGENET_P, "all": tuple(catalog.PERTURBATIONS)}, catalog.PERTURBATIONS)


COLOURS = ("brightness", "contrast", "saturate")
ALSO_CALLED: dict[str, tuple[str, ...]] = {
    "noise": (*GROUPS["noise"], "speckle_noise"),
    "blur": (*GROUPS["blur"], "gaussian_blur"),
    "weather": (*GROUPS["weather"], "spatter"),
    "digital": GROUPS["digital"],
    "imagenet-c": IMAGENET_C,
    "imagenet-p": IMAGENET_P,
    "additive gaussian noise": ("gaussian_noise",),
    "gauss noise": ("gaussian_noise",),
    "shot": ("shot_noise",),
    "poisson": ("shot_noise",),
    "poisson noise": ("shot_noise",),
    "impulse": ("impulse_noise",),
    "salt and pepper": ("impulse_noise",),
    "speckle": ("speckle_noise",),
    "multiplicative noise": ("speckle_noise",),
    "defocus": ("defocus_blur",),
    "glass": ("glass_blur",),
    "motion": ("motion_blur",),
    "zoom": ("zoom_blur",),
    "elastic": ("elastic_transform",),
    "elastic deformation": ("elastic_transform",),
    "pixelation": ("pixelate",),
    "downscale": ("pixelate",),
    "jpeg": ("jpeg_compression",),
    "jpg": ("jpeg_compression",),
    "compression": ("jpeg_compression",),
    "image compression": ("jpeg_compression",),
    "saturation": ("saturate",),
    "color": ("saturate",),
    "colour": ("saturate",),
    "color jitter": COLOURS,
    "colour jitter": COLOURS,
    # the authors of AugMix left these operations out of theirs, because ImageNet-C has them
    "autoaugment": COLOURS,
    "randaugment": COLOURS,
    "trivialaugment": COLOURS,
    "translation": ("translate",),
    "rotation": ("rotate",),
    "scaling": ("scale",),
    "shearing": ("shear",),
    "affine": ("translate", "rotate", "scale", "shear"),
}
"""What augmentations of training are called, and the corruptions and perturbations that they are."""


def trained_with(augmentations: Iterable[str]) -> frozenset[str]:
    """The corruptions and perturbations among the augmentations that a model declares, whatever they are called there.

    >>> sorted(trained_with(["Gaussian noise (sigma 0.1)", "RandomRotation", "mixup", "jpeg"]))
    ['gaussian_noise', 'jpeg_compression', 'rotate']
    """
    own = {name: (name,) for name in (*catalog.CORRUPTIONS, *catalog.PERTURBATIONS)}
    known = {_bare(name): names for name, names in {**own, **ALSO_CALLED}.items()}
    words = [_bare(word) for text in augmentations for word in re.sub(r"\([^)]*\)", "", text).split(",")]
    found = (known.get(word) or known.get(word.removeprefix("random")) or () for word in words)
    return frozenset(name for names in found for name in names)


def _bare(text: str) -> str:
    """Letters and digits alone, so that GaussianBlur, gaussian-blur and gaussian_blur are one."""
    return re.sub(r"[^a-z0-9]", "", text.lower())


def whole_numbers(text: str, *, least: int, most: int, what: str) -> tuple[int, ...]:
    """Numbers with commas between them, each once and within bounds.

    >>> whole_numbers("1,3,3", least=1, most=5, what="severities")
    (1, 3)
    """
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words or not all(word.isdigit() and least <= int(word) <= most for word in words):
        raise BadInput(
            f"{what} should be some of {least} to {most} with commas between them, as {least},{most}; got {text!r}"
        )
    return tuple(dict.fromkeys(int(word) for word in words))


def _chosen(text: str, sets: dict[str, tuple[str, ...]], known: Registry) -> tuple[str, ...]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words:
        raise BadInput(f"expected names with commas between them, or one of {', '.join(sets)}; got {text!r}")
    names = [name for word in words for name in sets.get(word, (word,))]
    for name in names:
        known[name]  # an unknown name is answered with the nearest
    return tuple(dict.fromkeys(names))
