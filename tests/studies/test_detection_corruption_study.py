"""What corruption leaves of average precision, on images of which every number can be worked out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from shiftproof.datasets.image_list import ImageList
from shiftproof.datasets.label_spaces import Scoring
from shiftproof.errors import BadInput
from shiftproof.runs.plan import KnownInputs
from shiftproof.studies.detection_corruption.study import DetectionCorruptionStudy
from shiftproof.types import DatasetRef, Finding, FoundObjects, Gallery, Measurement, ModelRef, Run, Sample, Seen
from studies.contracts import findings_of, skipped_by
from studies.found_world import Loads, world

PHOTOS = DatasetRef("photos", "photos")
IMAGES = 40


def scene(found: int) -> FoundObjects:
    """A cat in each of forty images, found in so many of them and nowhere else."""
    return world(
        {f"{place:02}.png": ([("cat", 10)], [("cat", 10, 0.9)] if place < found else []) for place in range(IMAGES)}
    )


# COCO's precision is taken at 101 recalls, of which 1 + 100 * share are reached when a share of the objects is found
def precision(found: int) -> float:
    return (1 + 100 * found // IMAGES) / 101


CELLS = {"clean": 40, "fog 1": 30, "fog 3": 20, "snow 1": 10, "snow 3": 20}


def study(**choices: Any) -> DetectionCorruptionStudy:
    cells = {"corruptions": ("fog", "snow"), "severities": (1, 3)}
    return DetectionCorruptionStudy([ModelRef("net", "net")], PHOTOS, **{**cells, **choices})


def measured(stored: Mapping[str, FoundObjects] | None = None, **choices: Any) -> list[Finding]:
    stored = stored or {name: scene(found) for name, found in CELLS.items()}
    return findings_of(study(**choices), Loads(stored))


def numbers(findings: list[Finding], metric: str) -> list[Measurement]:
    return [one for one in findings if isinstance(one, Measurement) and one.metric == metric]


def test_every_cell_and_the_clean_images_have_their_precision() -> None:
    findings = measured()
    cells = {
        f"{one.about['corruption']} {one.about['severity']}": one.value
        for one in numbers(findings, "corrupted_average_precision")
    }
    assert cells == {name: pytest.approx(precision(found)) for name, found in CELLS.items() if name != "clean"}
    (clean,) = numbers(findings, "clean_average_precision")
    assert (clean.value, clean.images) == (1.0, IMAGES)
    # of 40 images in which everything is found, Wilson's at 40 cases: t^2 / (40 + t^2) may be missed
    assert clean.ends == pytest.approx((40 / (40 + 2.0227**2), 1.0), abs=1e-4)


def test_every_cell_is_judged_at_the_overlap_that_was_asked_for() -> None:
    beside = world({"a.png": ([("cat", 10)], [("cat", 12, 0.9)])})  # 18 x 18 of 476 pixels shared: 0.68
    for iou, reached in ((0.5, 1.0), (0.75, 0.0)):
        findings = measured(dict.fromkeys(CELLS, beside), iou=iou)
        cells = numbers(findings, "corrupted_average_precision")
        assert {one.value for one in [*cells, *numbers(findings, "clean_average_precision")]} == {reached}


def test_the_mean_over_cells_and_its_share_of_the_clean_precision() -> None:
    findings = measured()
    mean = sum(precision(CELLS[name]) for name in ("fog 1", "fog 3", "snow 1", "snow 3")) / 4
    (performance,) = numbers(findings, "mean_performance_under_corruption")
    (share,) = numbers(findings, "relative_performance_under_corruption")
    assert performance.value == pytest.approx(mean)
    assert share.value == pytest.approx(mean)  # of a clean precision of 1
    assert performance.convention["corruptions"] == "fog, snow"
    by_name = {one.about["corruption"]: one.value for one in numbers(findings, "corruption_mean_precision")}
    assert by_name["snow"] == pytest.approx((precision(10) + precision(20)) / 2)


def test_images_are_drawn_alike_in_all_cells() -> None:
    same = {name: scene(20) for name in CELLS}
    (share,) = numbers(measured(same), "relative_performance_under_corruption")
    assert share.value == 1
    assert share.ends is None  # cells that lose nothing lose nothing in every drawing
    (mean,) = numbers(measured(same), "mean_performance_under_corruption")
    (clean,) = numbers(measured(same), "clean_average_precision")
    assert mean.ends == pytest.approx(clean.ends)


def test_images_that_some_cell_lacks_are_left_out_of_all() -> None:
    lacking = {f"{place:02}.png": ([("cat", 10)], [("cat", 10, 0.9)]) for place in range(5, IMAGES)}
    findings = measured({**{name: scene(40) for name in CELLS}, "snow 3": world(lacking)})
    assert {one.images for one in findings if isinstance(one, Measurement)} == {IMAGES - 5}


def test_nothing_found_on_clean_images_has_no_share_left() -> None:
    findings = measured({name: scene(0) for name in CELLS})
    assert numbers(findings, "mean_performance_under_corruption")[0].value == 0
    assert numbers(findings, "relative_performance_under_corruption") == []


def test_one_image_is_shown_unchanged_and_at_the_highest_severity() -> None:
    (gallery,) = [one for one in measured() if isinstance(one, Gallery)]
    assert [item.caption for item in gallery.items] == ["clean: 1 of 1 found", "1 of 1 found", "1 of 1 found"]
    assert [item.condition and str(item.condition) for item in gallery.items] == [None, "fog 3", "snow 3"]
    assert all(item.condition is None or item.condition.picture == "image" for item in gallery.items)


def test_the_image_is_corrupted_as_it_is_stored() -> None:
    assert {run.condition.picture for run in study().runs()} == {"image"}
    assert len(study().runs()) == 5
    with pytest.raises(BadInput, match="boxes lie on the image"):
        study(picture="model-size")


def test_sets_without_boxes_say_what_to_do() -> None:
    plain = world({"a.png": ([], [("cat", 10, 0.9)])}, boxed=False)
    (reason,) = skipped_by(study(), Loads({"net": plain}))
    assert "needs ground-truth boxes" in reason
    assert findings_of(study(), Loads({"net": plain})) == []


def test_means_over_unseen_corruptions_stand_beside_those_over_all() -> None:
    class Declared(Loads):
        def seen(self, run: Run) -> Seen:
            return Seen(augmentations=("snow",))

    load = Declared({name: scene(found) for name, found in CELLS.items()})
    findings = findings_of(study(), load)
    fog = (precision(30) + precision(20)) / 2
    (mean,), (share,) = (numbers(findings, f"unseen_{name}_performance_under_corruption") for name in ("mean", "relative"))
    assert mean.value == share.value == pytest.approx(fog)  # the clean precision is 1
    assert mean.convention["corruptions"] == "fog"
    (every,) = numbers(findings, "mean_performance_under_corruption")
    assert every.value == pytest.approx((2 * fog + precision(10) + precision(20)) / 4)
    assert every.convention["seen in training"] == "snow"
    assert not numbers(measured(), "unseen_mean_performance_under_corruption")


def test_a_set_without_boxes_is_known_before_any_pass() -> None:
    images = ImageList("photos", [Sample("a.png")], None, lambda _: None)  # type: ignore[arg-type, return-value]
    told = study().why_nothing(KnownInputs(lambda _: images, [None], Scoring())) or ""
    assert told.startswith("photos: average precision needs ground-truth boxes, and the dataset has none")
    (reason,) = skipped_by(study(), Loads(dict.fromkeys(CELLS, world({"a.png": ([], [])}, boxed=False))))
    assert reason == told
