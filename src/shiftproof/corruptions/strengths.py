"""How strong each corruption is, by edition and severity: one table to hold against the paper.

A row has the five severities in order; a corruption with several strengths has a tuple of them for each severity, in the
order named first. The figures are those of the authors' generator (Hendrycks & Dietterich, 2019); lengths are pixels of the
edition's own size.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from shiftproof.corruptions.editions import edition_of
from shiftproof.errors import UnknownName

Strength: TypeAlias = float | int | bool


@dataclass(frozen=True)
class Table:
    """Names of the strengths of one corruption, and their figures: edition to five severities."""

    names: str
    editions: Mapping[str, tuple[Strength | tuple[Strength, ...], ...]]


STRENGTHS: Mapping[str, Table] = {
    "gaussian_noise": Table(
        "spread",
        {
            "imagenet-224": (0.08, 0.12, 0.18, 0.26, 0.38),
            "inception-299": (0.09, 0.13, 0.19, 0.27, 0.4),
            "tiny-64": (0.04, 0.08, 0.12, 0.15, 0.18),
            "cifar-32": (0.04, 0.06, 0.08, 0.09, 0.1),
        },
    ),
    "shot_noise": Table(
        "photons",
        {
            "imagenet-224": (60, 25, 12, 5, 3),
            "inception-299": (50, 20, 10, 5, 3),
            "tiny-64": (250, 100, 50, 30, 15),
            "cifar-32": (500, 250, 100, 75, 50),
        },
    ),
    "impulse_noise": Table(
        "amount",
        {
            "imagenet-224": (0.03, 0.06, 0.09, 0.17, 0.27),
            "inception-299": (0.04, 0.07, 0.1, 0.18, 0.28),
            "tiny-64": (0.01, 0.02, 0.05, 0.08, 0.14),
            "cifar-32": (0.01, 0.02, 0.03, 0.05, 0.07),
        },
    ),
    "defocus_blur": Table(
        "radius softness",
        {
            "imagenet-224": ((3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5)),
            "inception-299": ((4, 0.1), (5, 0.5), (7, 0.5), (10, 0.5), (12, 0.5)),
            "tiny-64": ((0.5, 0.6), (1, 0.1), (1.5, 0.1), (2.5, 0.01), (3, 0.1)),
            "cifar-32": ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1)),
        },
    ),
    "glass_blur": Table(
        "sigma reach rounds",
        {
            "imagenet-224": ((0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2)),
            "inception-299": ((0.8, 1, 3), (1, 3, 1), (1.1, 2, 4), (1.2, 4, 2), (1.6, 5, 2)),
            "tiny-64": ((0.1, 1, 1), (0.5, 1, 1), (0.6, 1, 2), (0.7, 2, 1), (0.9, 2, 2)),
            "cifar-32": ((0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2)),
        },
    ),
    "motion_blur": Table(
        "radius sigma",
        {
            "imagenet-224": ((10, 3), (15, 5), (15, 8), (15, 12), (20, 15)),
            "inception-299": ((12, 4), (17, 6), (17, 9), (17, 13), (22, 16)),
            "tiny-64": ((10, 1), (10, 1.5), (10, 2), (10, 2.5), (12, 3)),
            "cifar-32": ((6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5)),
        },
    ),
    "zoom_blur": Table(
        "stop step",
        {
            "imagenet-224": ((1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03)),
            "inception-299": ((1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03)),
            "tiny-64": ((1.06, 0.01), (1.11, 0.01), (1.16, 0.01), (1.21, 0.01), (1.26, 0.01)),
            "cifar-32": ((1.06, 0.01), (1.11, 0.01), (1.16, 0.01), (1.21, 0.01), (1.26, 0.01)),
        },
    ),
    "snow": Table(
        "mean spread zoom threshold radius sigma kept",
        {
            "imagenet-224": (
                (0.1, 0.3, 3, 0.5, 10, 4, 0.8),
                (0.2, 0.3, 2, 0.5, 12, 4, 0.7),
                (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
                (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
                (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
            ),
            "inception-299": (
                (0.1, 0.3, 3, 0.5, 10, 4, 0.8),
                (0.2, 0.3, 2, 0.5, 12, 4, 0.7),
                (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
                (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
                (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
            ),
            "tiny-64": (
                (0.1, 0.2, 1, 0.6, 8, 3, 0.8),
                (0.1, 0.2, 1, 0.5, 10, 4, 0.8),
                (0.15, 0.3, 1.75, 0.55, 10, 4, 0.7),
                (0.25, 0.3, 2.25, 0.6, 12, 6, 0.65),
                (0.3, 0.3, 1.25, 0.65, 14, 12, 0.6),
            ),
            "cifar-32": (
                (0.1, 0.2, 1, 0.6, 8, 3, 0.95),
                (0.1, 0.2, 1, 0.5, 10, 4, 0.9),
                (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9),
                (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85),
                (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8),
            ),
        },
    ),
    "frost": Table(
        "image_weight frost_weight frost_scale",
        {
            "imagenet-224": ((1, 0.4, 1), (0.8, 0.6, 1), (0.7, 0.7, 1), (0.65, 0.7, 1), (0.6, 0.75, 1)),
            "inception-299": ((1, 0.4, 1), (0.8, 0.6, 1), (0.7, 0.7, 1), (0.65, 0.7, 1), (0.6, 0.75, 1)),
            "tiny-64": ((1, 0.3, 0.3), (0.9, 0.4, 0.3), (0.8, 0.45, 0.3), (0.75, 0.5, 0.3), (0.7, 0.55, 0.3)),
            "cifar-32": ((1, 0.2, 0.2), (1, 0.3, 0.2), (0.9, 0.4, 0.2), (0.85, 0.4, 0.2), (0.75, 0.45, 0.2)),
        },
    ),
    "fog": Table(
        "strength decay",
        {
            "imagenet-224": ((1.5, 2), (2, 2), (2.5, 1.7), (2.5, 1.5), (3, 1.4)),
            "inception-299": ((1.5, 2), (2, 2), (2.5, 1.8), (2.5, 1.6), (3, 1.5)),
            "tiny-64": ((0.4, 3), (0.7, 3), (1, 2.5), (1.5, 2), (2, 1.75)),
            "cifar-32": ((0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75)),
        },
    ),
    "brightness": Table(
        "lift",
        {
            "imagenet-224": (0.1, 0.2, 0.3, 0.4, 0.5),
            "inception-299": (0.1, 0.2, 0.3, 0.4, 0.5),
            "tiny-64": (0.1, 0.2, 0.3, 0.4, 0.5),
            "cifar-32": (0.05, 0.1, 0.15, 0.2, 0.3),
        },
    ),
    "contrast": Table(
        "gain",
        {
            "imagenet-224": (0.4, 0.3, 0.2, 0.1, 0.05),
            "inception-299": (0.4, 0.3, 0.2, 0.1, 0.05),
            "tiny-64": (0.4, 0.3, 0.2, 0.1, 0.05),
            "cifar-32": (0.75, 0.5, 0.4, 0.3, 0.15),
        },
    ),
    "elastic_transform": Table(
        "amplitude sigma jitter",
        {
            "imagenet-224": (
                (488, 170.8, 24.4),
                (488, 19.52, 48.8),
                (12.2, 2.44, 4.88),
                (17.08, 2.44, 4.88),
                (29.28, 2.44, 4.88),
            ),
            "inception-299": ((720, 252, 36), (720, 28.8, 72), (18, 3.6, 7.2), (25.2, 3.6, 7.2), (43.2, 3.6, 7.2)),
            "tiny-64": ((0, 0, 5.12), (3.2, 19.2, 3.84), (6.4, 5.12, 3.84), (6.4, 1.92, 1.92), (10.24, 1.92, 1.28)),
            "cifar-32": ((0, 0, 2.56), (1.6, 6.4, 2.24), (2.56, 1.92, 1.92), (3.2, 1.28, 1.6), (3.2, 0.96, 0.96)),
        },
    ),
    "pixelate": Table(
        "share",
        {
            "imagenet-224": (0.6, 0.5, 0.4, 0.3, 0.25),
            "inception-299": (0.5, 0.4, 0.3, 0.25, 0.2),
            "tiny-64": (0.9, 0.8, 0.7, 0.6, 0.5),
            "cifar-32": (0.95, 0.9, 0.85, 0.75, 0.65),
        },
    ),
    "jpeg_compression": Table(
        "quality",
        {
            "imagenet-224": (25, 18, 15, 10, 7),
            "inception-299": (23, 16, 13, 8, 5),
            "tiny-64": (65, 58, 50, 40, 25),
            "cifar-32": (80, 65, 58, 50, 40),
        },
    ),
    "speckle_noise": Table(
        "spread",
        {
            "imagenet-224": (0.15, 0.2, 0.35, 0.45, 0.6),
            "inception-299": (0.16, 0.21, 0.36, 0.46, 0.61),
            "tiny-64": (0.15, 0.2, 0.25, 0.3, 0.35),
            "cifar-32": (0.06, 0.1, 0.12, 0.16, 0.2),
        },
    ),
    "gaussian_blur": Table(
        "sigma",
        {
            "imagenet-224": (1, 2, 3, 4, 6),
            "inception-299": (1.5, 2.5, 3.5, 4.5, 6.5),
            "tiny-64": (0.5, 0.75, 1, 1.25, 1.5),
            "cifar-32": (0.4, 0.6, 0.7, 0.8, 1),
        },
    ),
    "spatter": Table(
        "mean spread sigma threshold finish mud",
        {
            "imagenet-224": (
                (0.65, 0.3, 4, 0.69, 0.6, False),
                (0.65, 0.3, 3, 0.68, 0.6, False),
                (0.65, 0.3, 2, 0.68, 0.5, False),
                (0.65, 0.3, 1, 0.65, 1.5, True),
                (0.67, 0.4, 1, 0.65, 1.5, True),
            ),
            "inception-299": (
                (0.65, 0.3, 4, 0.69, 0.9, False),
                (0.65, 0.3, 3.5, 0.68, 0.9, False),
                (0.65, 0.3, 3, 0.68, 0.8, False),
                (0.65, 0.3, 1.2, 0.65, 1.8, True),
                (0.67, 0.4, 1.2, 0.65, 1.8, True),
            ),
            "tiny-64": (
                (0.62, 0.1, 0.7, 0.7, 0.6, False),
                (0.65, 0.1, 0.8, 0.7, 0.6, False),
                (0.65, 0.3, 1, 0.69, 0.6, False),
                (0.65, 0.1, 0.7, 0.68, 0.6, True),
                (0.65, 0.1, 0.5, 0.67, 0.6, True),
            ),
            "cifar-32": (
                (0.62, 0.1, 0.7, 0.7, 0.5, False),
                (0.65, 0.1, 0.8, 0.7, 0.5, False),
                (0.65, 0.3, 1, 0.69, 0.5, False),
                (0.65, 0.1, 0.7, 0.69, 0.6, True),
                (0.65, 0.1, 0.5, 0.68, 0.6, True),
            ),
        },
    ),
    "saturate": Table(
        "gain offset",
        {
            "imagenet-224": ((0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (20, 0.2)),
            "inception-299": ((0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (20, 0.2)),
            "tiny-64": ((0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (30, 0.2)),
            "cifar-32": ((0.3, 0), (0.1, 0), (1.5, 0), (2, 0.1), (2.5, 0.2)),
        },
    ),
}

LENGTHS = frozenset({"radius", "softness", "sigma", "reach", "amplitude", "jitter", "frost_scale"})
"""Strengths in pixels; where strengths are scaled to another size of picture, these grow with it."""

WHOLE = frozenset({"radius", "reach"})
"""Lengths that count pixels, and stay whole and at least 1 when they are scaled."""


def strengths_of(corruption: str, severity: int, edition: str) -> dict[str, Strength]:
    """What a corruption is given at this severity of this edition.

    >>> strengths_of("motion_blur", 5, "imagenet-224")
    {'radius': 20, 'sigma': 15}
    """
    column = edition_of(edition).strengths
    if corruption not in STRENGTHS:
        raise UnknownName("corruption", corruption, STRENGTHS)
    table = STRENGTHS[corruption]
    figures = table.editions[column][severity - 1]
    return dict(zip(table.names.split(), figures if isinstance(figures, tuple) else (figures,), strict=True))


def scaled(strengths: Mapping[str, Strength], times: float) -> dict[str, Strength]:
    """The same strengths for a picture so many times as large: lengths grow, shares and levels stay.

    >>> scaled({"radius": 10, "sigma": 3, "kept": 0.8}, 2.5)
    {'radius': 25, 'sigma': 7.5, 'kept': 0.8}
    """
    return {name: _scaled(name, value, times) for name, value in strengths.items()}


def _scaled(name: str, value: Strength, times: float) -> Strength:
    if name not in LENGTHS:
        return value
    grown = value * times
    return max(1, round(grown)) if name in WHOLE and isinstance(value, int) else grown
