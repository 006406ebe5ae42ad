"""Names as people type them on the command line, looked up before any image is opened."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from shiftproof import catalog
from shiftproof.corruptions import CIFAR_C_BAR, IMAGENET_C, IMAGENET_C_BAR, IMAGENET_P, corruption_groups
from shiftproof.errors import BadInput
from shiftproof.registry import Registry


def corruptions_named(text: str) -> tuple[str, ...]:
    """The corruptions that a published dataset, ``all``, a group or names with commas between them stand for.

    ``c-bar`` are the ten of ImageNet-C-bar; those of CIFAR-10-C-bar are ``cifar-c-bar``.

    >>> corruptions_named("noise,fog")
    ('gaussian_noise', 'shot_noise', 'impulse_noise', 'fog')
    """
    sets = {**_published_sets(), "all": catalog.CORRUPTIONS.usable, **corruption_groups(), "c-bar": IMAGENET_C_BAR}
    return _chosen(text, sets, catalog.CORRUPTIONS)


def _published_sets() -> dict[str, tuple[str, ...]]:
    return {"imagenet-c": IMAGENET_C, "imagenet-c-bar": IMAGENET_C_BAR, "cifar-c-bar": CIFAR_C_BAR}


def perturbations_named(text: str) -> tuple[str, ...]:
    """The perturbations that ``imagenet-p``, ``all`` or names with commas between them stand for.

    >>> perturbations_named("tilt, scale")
    ('tilt', 'scale')
    """
    return _chosen(text, {"imagenet-p": IMAGENET_P, "all": catalog.PERTURBATIONS.usable}, catalog.PERTURBATIONS)


def trained_with(augmentations: Iterable[str]) -> frozenset[str]:
    """The corruptions and perturbations among the augmentations that a model declares, whatever they are called there.

    >>> sorted(trained_with(["Gaussian noise (sigma 0.1)", "RandomRotation", "mixup", "jpeg"]))
    ['gaussian_noise', 'jpeg_compression', 'rotate']
    """
    words = [_bare(word) for text in augmentations for word in re.sub(r"\([^)]*\)", "", text).split(",")]
    known = _augmentations() if words else {}
    found = (known.get(word) or known.get(word.removeprefix("random")) or () for word in words)
    return frozenset(name for names in found for name in names)


def _augmentations() -> dict[str, tuple[str, ...]]:
    """The corruptions and perturbations that an augmentation trains with, by its bare name."""
    sets = {**_published_sets(), "imagenet-p": IMAGENET_P, **corruption_groups()}
    called = {(word, name) for word, names in sets.items() if word != "extra" for name in names}
    for registry in (catalog.CORRUPTIONS, catalog.PERTURBATIONS):
        called |= {(word, name) for name, entry in registry.loaded() for word in (name, *entry.also_called)}
    known: dict[str, tuple[str, ...]] = {}
    for word, name in sorted(called):
        known[_bare(word)] = (*known.get(_bare(word), ()), name)
    return known


def _bare(text: str) -> str:
    """Letters and digits alone, so that GaussianBlur, gaussian-blur and gaussian_blur are one."""
    return re.sub(r"[^a-z0-9]", "", text.lower())


def whole_numbers(text: str, *, least: int, most: int | None, what: str) -> tuple[int, ...]:
    """Numbers with commas between them, each once and within bounds; None: there is no highest.

    >>> whole_numbers("1,3,3", least=1, most=5, what="severities")
    (1, 3)
    """
    words = [word.strip() for word in text.split(",") if word.strip()]
    highest = math.inf if most is None else most
    if not words or not all(word.isdecimal() and least <= int(word) <= highest for word in words):
        span = f"whole numbers from {least} on" if most is None else f"some of {least} to {most}"
        some = f"{least},{least + 2 if most is None else most}"
        raise BadInput(f"{what} should be {span} with commas between them, as {some}; got {text!r}")
    return tuple(dict.fromkeys(int(word) for word in words))


def _chosen(text: str, sets: dict[str, tuple[str, ...]], known: Registry) -> tuple[str, ...]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words:
        raise BadInput(f"expected names with commas between them, or one of {', '.join(sets)}; got {text!r}")
    names = [name for word in words for name in sets.get(word, (word,))]
    for name in names:
        known[name]  # an unknown name is answered with the nearest
    return tuple(dict.fromkeys(names))
