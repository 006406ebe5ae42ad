"""What every study of boxes in the catalog promises, whatever was found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shiftproof import catalog
from shiftproof.types import Curve, FoundObjects, Gallery, ImageSetRef, Measurement, ModelRef, Study
from studies.contracts import check_number
from studies.found_world import ANIMALS, Loads, world

OF_BOXES = [name for name in catalog.STUDIES if getattr(catalog.STUDIES.load(name), "keep", None) == "boxes"]
MODELS = [ModelRef("first", "1"), ModelRef("second", "2")]
PHOTOS = ImageSetRef("photos", "photos")
FEW = {"detection-corruption": {"corruptions": ("fog", "snow"), "severities": (1, 5)}}
"""Enough cells to tell them apart."""


def drawn(case: str, seed: int) -> FoundObjects:
    """Up to three objects an image, most of them found, among false alarms."""
    rng = np.random.default_rng(seed)
    images = {"one image": 1, "all set aside": 0}.get(case, 25)
    classes = 1 if case == "one class" else 3
    scenes = {}
    for place in range(images):
        names = [ANIMALS.names[kind] for kind in rng.integers(classes, size=rng.integers(0 if images > 1 else 1, 4))]
        real = [] if case == "nothing to find" else [(name, 30.0 * number) for number, name in enumerate(names)]
        hits = [(name, start + 2, float(rng.random())) for name, start in real if rng.random() < 0.8]
        alarms = [(ANIMALS.names[rng.integers(classes)], float(rng.integers(70)), float(rng.random() / 2))]
        scenes[f"{place:03}.png"] = (real, [] if case == "nothing found" else [*hits, *alarms])
    facts: dict[str, Any] = {"site": ["pier"] * images}
    if case == "frames":
        facts |= {
            "anchor": [f"{place // 5}" for place in range(images)],
            "offset": [place % 5 - 2 for place in range(images)],
        }
    return world(scenes, boxed=case != "no boxes", facts=facts, set_aside=3)


CASES = [
    "ordinary",
    "one image",
    "one class",
    "all set aside",
    "no boxes",
    "nothing found",
    "nothing to find",
    "frames",
]


@pytest.fixture(params=CASES)
def loads(request: pytest.FixtureRequest) -> Loads:
    return Loads({"first": drawn(request.param, 3), "second": drawn(request.param, 4)})


def study_called(name: str) -> Any:
    return catalog.STUDIES.load(name)(MODELS, PHOTOS, **FEW.get(name, {}))


@pytest.mark.parametrize("name", OF_BOXES)
def test_a_study_names_its_runs_first_reads_no_others_and_repeats(name: str, loads: Loads) -> None:
    study = study_called(name)
    runs = study.runs()
    assert isinstance(study_called(name), Study)
    assert loads.asked == []
    findings, reasons = list(study.measure(loads)), list(study.skipped(loads))
    assert set(loads.asked) <= set(runs)
    assert repr(findings) == repr(list(study_called(name).measure(loads)))
    assert findings or reasons


@pytest.mark.parametrize("name", OF_BOXES)
def test_every_number_says_what_it_is_of_how_many_images_and_by_which_convention(name: str, loads: Loads) -> None:
    for found in study_called(name).measure(loads):
        assert found.about["image_set"] == "photos"
        read = loads.stored[str(found.about["model"])]
        if isinstance(found, Gallery):
            assert {item.id for item in found.items} <= set(read.detections.ids)
            assert all(0 <= side <= 1 for item in found.items for box in item.boxes for side in box.box)
            continue
        assert 1 <= found.images <= len(read)
        assert found.convention["classes"] == "3 of 3, by name"
        assert found.convention["picture"]
        assert found.convention["set aside"] == f"3 of {len(read) + 3}"
        if isinstance(found, Measurement):
            check_number(found)
        if isinstance(found, Curve):
            assert found.counts is not None
            assert max(found.counts) == found.images


@pytest.mark.parametrize("name", OF_BOXES)
@pytest.mark.parametrize("case", ["all set aside", "no boxes", "nothing to find"])
def test_without_anything_to_find_the_reason_is_given(name: str, case: str) -> None:
    loads = Loads({"first": drawn(case, 3), "second": drawn(case, 4)})
    reasons = set(study_called(name).skipped(loads))
    assert len(reasons) == 1
    assert reasons.pop().startswith("photos: nothing to measure" if case == "all set aside" else "photos: average precision")
