"""What every study of boxes in the catalog promises, whatever was found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shiftproof import catalog
from shiftproof.types import Curve, DatasetRef, FoundObjects, Gallery, Measurement, ModelRef, Study
from studies.contracts import check_number, findings_of, skipped_by
from studies.found_world import ANIMALS, Loads, world

BOX_OPTIONS = [name for name in catalog.STUDIES if catalog.STUDIES.load(name).needs == "boxes"]
MODELS = [ModelRef("first", "1"), ModelRef("second", "2")]
PHOTOS = DatasetRef("photos", "photos")
FEW = {"detection-corruption": {"corruptions": ("fog", "snow"), "severities": (1, 5)}}
"""Enough cells to tell them apart."""


def drawn(case: str, seed: int) -> FoundObjects:
    """Up to three objects an image, most of them found, among false alarms."""
    rng = np.random.default_rng(seed)
    images = {"one image": 1, "all skipped": 0}.get(case, 25)
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
    return world(scenes, boxed=case != "no boxes", facts=facts, skipped_images=3)


CASES = [
    "ordinary",
    "one image",
    "one class",
    "all skipped",
    "no boxes",
    "nothing found",
    "nothing to find",
    "frames",
]


@pytest.fixture(params=CASES)
def loads(request: pytest.FixtureRequest) -> Loads:
    return Loads({"first": drawn(request.param, 3), "second": drawn(request.param, 4)})


def study_called(name: str) -> Any:
    return catalog.STUDIES.load(name).load_study()(MODELS, PHOTOS, **FEW.get(name, {}))


@pytest.mark.parametrize("name", BOX_OPTIONS)
def test_a_study_names_its_runs_first_reads_no_others_and_repeats(name: str, loads: Loads) -> None:
    study = study_called(name)
    runs = study.runs()
    assert isinstance(study_called(name), Study)
    assert loads.asked == []
    findings, reasons = findings_of(study, loads), skipped_by(study, loads)
    assert set(loads.asked) <= set(runs)
    assert repr(findings) == repr(findings_of(study_called(name), loads))
    assert findings or reasons


@pytest.mark.parametrize("name", BOX_OPTIONS)
def test_every_number_says_what_it_is_of_how_many_images_and_by_which_convention(name: str, loads: Loads) -> None:
    for found in findings_of(study_called(name), loads):
        assert found.about["dataset"] == "photos"
        read = loads.stored[str(found.about["model"])]
        if isinstance(found, Gallery):
            assert {item.id for item in found.items} <= set(read.detections.ids)
            assert all(0 <= side <= 1 for item in found.items for box in item.boxes for side in box.box)
            continue
        assert 1 <= found.images <= len(read)
        assert found.convention["classes"] == "3 of 3, by name"
        assert found.convention["picture"]
        assert found.convention["skipped images"] == f"3 of {len(read) + 3}"
        if isinstance(found, Measurement):
            check_number(found)
        if isinstance(found, Curve):
            assert found.counts is not None
            assert max(found.counts) == found.images


@pytest.mark.parametrize("name", BOX_OPTIONS)
@pytest.mark.parametrize("case", ["all skipped", "no boxes", "nothing to find"])
def test_without_anything_to_find_the_reason_is_given(name: str, case: str) -> None:
    loads = Loads({"first": drawn(case, 3), "second": drawn(case, 4)})
    reasons = set(skipped_by(study_called(name), loads))
    assert len(reasons) == 1
    assert reasons.pop().startswith("photos: nothing to measure" if case == "all skipped" else "photos: average precision")
