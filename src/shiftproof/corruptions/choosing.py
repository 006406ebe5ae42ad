"""Names as people type them on the command line, looked up before any image is opened."""

from __future__ import annotations

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
