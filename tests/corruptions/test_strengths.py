"""The table of strengths beside the figures of the authors' generator, which were taken from it by a program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shiftproof import catalog
from shiftproof.corruptions.editions import edition_of
from shiftproof.corruptions.strengths import LENGTHS, STRENGTHS, scaled, strengths_of

PUBLISHED: dict[str, Any] = json.loads(Path(__file__).with_name("published_strengths.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("edition", catalog.EDITIONS)
@pytest.mark.parametrize("name", catalog.CORRUPTIONS)
def test_every_figure_is_the_published_one(name: str, edition: str) -> None:
    for severity, figures in enumerate(PUBLISHED[name][edition_of(edition).strengths], start=1):
        assert list(strengths_of(name, severity, edition).values()) == figures, severity


def test_pictures_twice_as_large_have_lengths_twice_as_large_and_all_else_alike() -> None:
    lengths = {name: {length for length in table.names.split() if length in LENGTHS} for name, table in STRENGTHS.items()}
    assert {name: found for name, found in lengths.items() if found} == {
        "defocus_blur": {"radius", "softness"},
        "glass_blur": {"sigma", "reach"},
        "motion_blur": {"radius", "sigma"},
        "snow": {"radius", "sigma"},
        "frost": {"frost_scale"},
        "elastic_transform": {"amplitude", "sigma", "jitter"},
        "gaussian_blur": {"sigma"},
        "spatter": {"sigma"},
    }
    for name in catalog.CORRUPTIONS:
        strengths = strengths_of(name, 5, "imagenet-224")
        twice = {length: 2 * value if length in LENGTHS else value for length, value in strengths.items()}
        assert scaled(strengths, 2) == twice
