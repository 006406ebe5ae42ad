"""Severity parameters beside the figures of the authors' generator, which were taken from it by a program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shiftproof import catalog
from shiftproof.corruptions import corruption_of
from shiftproof.corruptions.editions import edition_of, severity_parameters

PUBLISHED: dict[str, Any] = json.loads(Path(__file__).with_name("published_severities.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("edition", catalog.EDITIONS)
@pytest.mark.parametrize("name", PUBLISHED)
def test_every_figure_is_the_published_one(name: str, edition: str) -> None:
    for severity, figures in enumerate(PUBLISHED[name][edition_of(edition).severities], start=1):
        assert list(severity_parameters(name, severity, edition).values()) == figures, severity


def test_pictures_twice_as_large_have_lengths_twice_as_large_and_all_else_alike() -> None:
    lengths = {name: corruption_of(name).severities.pixels for name in PUBLISHED}
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
    for name in PUBLISHED:
        severities, parameters = corruption_of(name).severities, severity_parameters(name, 5, "imagenet-224")
        assert severities.pixels <= set(severities.names)
        twice = {length: 2 * value if length in lengths[name] else value for length, value in parameters.items()}
        assert severities.scaled(parameters, 2) == twice
