"""Average precision of boxes, by hand on few images and beside the metrics on drawn ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shiftproof.errors import BadInput
from shiftproof.metrics import (
    image_average_precision,
    match,
    matched_average_precision,
    mean_average_precision,
    pm_k_average_precision_sweep,
)
from shiftproof.metrics.detection import average_precision_interval
from shiftproof.studies.detection.study import DetectionStudy
from shiftproof.types import Curve, DatasetRef, Finding, FoundObjects, Gallery, Measurement, ModelRef
from studies.contracts import cautions_of, findings_of, skipped_by
from studies.found_world import Box, Loads, Object, world

PHOTOS = DatasetRef("photos", "photos")


def found(objects: FoundObjects, **choices: Any) -> list[Finding]:
    return findings_of(DetectionStudy([ModelRef("net", "net")], PHOTOS, **choices), Loads({"net": objects}))


def skipped(objects: FoundObjects) -> list[str]:
    return skipped_by(DetectionStudy([ModelRef("net", "net")], PHOTOS), Loads({"net": objects}))


def numbers(findings: list[Finding], metric: str) -> list[Measurement]:
    return [one for one in findings if isinstance(one, Measurement) and one.metric == metric]


def gallery(findings: list[Finding], name: str) -> Gallery:
    (one,) = [one for one in findings if isinstance(one, Gallery) and one.name == name]
    return one


# the cat is found in the right place, the dog 5 of 20 pixels off on either axis (225 of 575 shared: overlap 0.39), the
# second cat not at all, and where nothing is a cat is seen with little doubt
PETS = {
    "a": ([("cat", 0), ("dog", 50)], [("cat", 0, 0.9), ("dog", 55, 0.8)]),
    "b": ([("cat", 30)], [("cat", 70, 0.95)]),
    "c": ([], [("eel", 10, 0.2)]),
}


def test_precision_and_recall_are_told_for_every_overlap() -> None:
    findings = found(world(PETS), iou=(0.5, 0.3))
    precision = {one.about["iou"]: one.value for one in numbers(findings, "mean_average_precision")}
    # cats: a false alarm, then one of two found, so precision 1/2 at the 51 recalls up to a half
    cats = 51 / 101 / 2
    assert precision == {"0.5": pytest.approx(cats / 2), "0.3": pytest.approx((cats + 1) / 2)}
    recall = {one.about["iou"]: one.value for one in numbers(findings, "mean_average_recall")}
    assert recall == {"0.5": 1 / 4, "0.3": 3 / 4}


def test_images_of_another_size_than_their_boxes_were_drawn_on_are_warned_about() -> None:
    # photos are 200 wide and 100 high; of the first the size is not told, the second lay on its side when boxes were drawn
    objects = world(PETS, facts={"width": [None, 100, 200], "height": [None, 200, 100]})
    study = DetectionStudy([ModelRef("net", "net")], PHOTOS)
    (warning,) = cautions_of(study, Loads({"net": objects}))
    assert warning == (
        "photos: 1 of 3 images are not of the size in the annotations, such as b (200 x 100, not 100 x 200): boxes may be "
        "misplaced"
    )
    assert not cautions_of(study, Loads({"net": world(PETS)}))


def test_classes_have_their_objects_and_the_images_that_show_them() -> None:
    findings = found(world(PETS))
    precision = {one.about["class"]: (one.value, one.images) for one in numbers(findings, "class_average_precision")}
    assert precision == {"cat": (pytest.approx(51 / 202), 2), "dog": (0.0, 1)}
    assert {one.about["class"]: one.value for one in numbers(findings, "class_objects")} == {"cat": 2, "dog": 1}
    counts = {name: numbers(findings, name)[0].value for name in ("objects_to_find", "objects_left_out", "boxes_found")}
    assert counts == {"objects_to_find": 3, "objects_left_out": 0, "boxes_found": 4}


def test_localization_asks_where_and_not_what() -> None:
    swapped = world({"a": ([("cat", 0), ("dog", 50)], [("dog", 0, 0.9), ("cat", 50, 0.8)])})
    findings = found(swapped)
    assert numbers(findings, "mean_average_precision")[0].value == 0
    (blind,) = numbers(findings, "localization_precision")
    assert blind.value == 1


def test_sizes_that_no_object_has_are_left_out() -> None:
    assert [one.about["size"] for one in numbers(found(world(PETS)), "size_average_precision")] == ["small"]


def test_the_curve_of_all_classes_is_the_mean_of_the_classes() -> None:
    overall, cats, dogs = (one for one in found(world(PETS)) if isinstance(one, Curve))
    assert (cats.about["class"], dogs.about["class"]) == ("cat", "dog")
    assert cats.y == (0.5,) * 51 + (0.0,) * 50
    assert np.allclose(overall.y, np.add(cats.y, dogs.y) / 2)
    assert np.mean(overall.y) == pytest.approx(numbers(found(world(PETS)), "mean_average_precision")[0].value)


def test_boxes_are_drawn_as_shares_of_the_image_in_their_kind() -> None:
    worst = gallery(found(world(PETS)), "worst_found")
    assert [item.id for item in worst.items] == ["b", "a"]  # c has nothing to find
    b, a = worst.items
    assert [(box.kind, box.caption) for box in b.boxes] == [("truth", "cat"), ("wrong", "cat 95 %")]
    assert b.boxes[0].box == (0.15, 0.3, 0.25, 0.5)  # 30 to 50 of 200 across and of 100 down
    # of a the cat is found, so the box on it says what it is
    assert [(box.kind, box.caption) for box in a.boxes[:2]] == [("truth", ""), ("truth", "dog")]
    assert [box.kind for box in a.boxes[2:]] == ["wrong", "right"]
    assert (a.caption, b.caption) == ("1 of 2 found, 1 false positive", "0 of 1 found, 1 false positive")


def test_boxes_of_a_low_score_are_not_drawn_and_what_is_ignored_is_neither() -> None:
    hidden = world({"a": ([("cat", 0), ("dog", 50)], [("cat", 0, 0.2), ("dog", 50, 0.9)])}, ignored=[1])
    (item,) = gallery(found(hidden, shown_score=0.3), "best_found").items
    assert [box.kind for box in item.boxes] == ["truth"]
    assert numbers(found(hidden), "objects_left_out")[0].value == 1


def test_without_boxes_there_is_a_count_of_what_is_found_and_a_reason() -> None:
    plain = world(PETS, boxed=False)
    findings = found(plain)
    assert {one.about["class"]: (one.value, one.images) for one in numbers(findings, "class_boxes")} == {
        "cat": (2, 2), "dog": (1, 1),
    }  # fmt: skip
    assert numbers(findings, "mean_average_precision") == []
    assert {box.kind for item in gallery(findings, "found_boxes").items for box in item.boxes} == {"found"}
    (reason,) = skipped(plain)
    assert reason.startswith("photos: average precision needs ground-truth boxes, and the dataset has none")
    assert skipped(world(PETS)) == []


def drawn(images: int, seed: int, **facts: Any) -> FoundObjects:
    return world(scenes(images, seed), facts=facts)


def scenes(images: int, seed: int) -> dict[str, tuple[list[Object], list[Box]]]:
    """Three objects an image, most of them found nearly in place, and two false alarms."""
    rng = np.random.default_rng(seed)
    names = ("cat", "dog", "eel")
    scenes: dict[str, tuple[list[Object], list[Box]]] = {}
    for place in range(images):
        real = [(names[rng.integers(3)], float(start)) for start in (0, 30, 60)]
        hits = [(name, start + rng.integers(0, 5), float(rng.random())) for name, start in real if rng.random() < 0.7]
        alarms = [(names[rng.integers(3)], float(rng.integers(75)), float(rng.random() / 2)) for _ in range(2)]
        scenes[f"{place:03}.png"] = (real, [*hits, *alarms])
    return scenes


def test_numbers_and_intervals_are_those_of_the_metrics() -> None:
    objects = drawn(40, seed=5)
    findings = found(objects)
    assert objects.truths is not None
    for measured, iou in zip(numbers(findings, "mean_average_precision"), (0.5, 0.75, "coco"), strict=True):
        assert measured.value == pytest.approx(mean_average_precision(objects.detections, objects.truths, iou=iou))  # type: ignore[arg-type]
        interval = average_precision_interval(match(objects.detections, objects.truths, iou=iou))  # type: ignore[arg-type]
        assert measured.ends == pytest.approx(interval)
        assert measured.ends is not None
        assert measured.ends[0] < measured.value < measured.ends[1]


def test_what_is_told_at_one_overlap_is_told_at_the_first() -> None:
    objects = drawn(40, seed=5)
    findings = found(objects, iou=(0.75, 0.5))
    assert objects.truths is not None
    boxes = (objects.detections, objects.truths)
    (size,) = numbers(findings, "size_average_precision")
    assert size.value == pytest.approx(mean_average_precision(*boxes, iou=0.75, size="small"))
    (blind,) = numbers(findings, "localization_precision")
    assert blind.value == pytest.approx(mean_average_precision(*boxes, iou=0.75, class_blind=True))
    classes = [one.value for one in numbers(findings, "class_average_precision")]
    assert np.mean(classes) == pytest.approx(mean_average_precision(*boxes, iou=0.75))


FRAMES: dict[str, list[Any]] = {
    "anchor": [f"{place // 5}/2" for place in range(60)],
    "offset": [place % 5 - 2 for place in range(60)],
    "frame_type": ["IP"[place // 5 % 2] for place in range(60)],
}


def test_around_anchors_precision_is_that_of_the_worst_frames() -> None:
    objects = drawn(60, seed=7, **FRAMES)
    findings = found(objects, largest_k=2)
    assert objects.truths is not None
    offsets, groups = np.array(FRAMES["offset"]), np.array(FRAMES["anchor"])
    for task, class_blind in (("detection", False), ("localization", True)):
        matches = match(objects.detections, objects.truths, class_blind=class_blind)
        sweep = pm_k_average_precision_sweep(matches, offsets, groups, largest_k=2)
        told = [one for name in ("anchor_average_precision", "pm_k_average_precision") for one in numbers(findings, name)]
        assert [one.value for one in told if one.about["task"] == task] == pytest.approx(sweep)
        (drop,) = [one for one in numbers(findings, "pm_k_precision_drop") if one.about["task"] == task]
        assert drop.value == pytest.approx(sweep[0] - sweep[2])
        assert drop.images == 12
        assert drop.ends is not None
        assert drop.ends[0] > 0


def test_without_the_anchor_its_neighbours_alone_may_be_worst_and_an_anchor_without_any_loses_nothing() -> None:
    facts = {name: [*values, last] for (name, values), last in zip(FRAMES.items(), ("lone", 0, "I"), strict=True)}
    objects = world(scenes(61, seed=7), facts=facts)
    findings = found(objects, largest_k=2, include_anchor=False)
    assert objects.truths is not None
    matches, offsets, groups = (
        match(objects.detections, objects.truths),
        np.array(facts["offset"]),
        np.array(facts["anchor"]),
    )
    sweep = pm_k_average_precision_sweep(matches, offsets, groups, largest_k=2, include_anchor=False)
    told = [one for one in numbers(findings, "pm_k_average_precision") if one.about["task"] == "detection"]
    assert [one.value for one in told] == pytest.approx(sweep[1:])
    drop = numbers(findings, "pm_k_precision_drop")[0]
    anchors = matched_average_precision(matches, times=(offsets == 0) & (groups != "lone"))
    assert drop.value == pytest.approx(anchors - sweep[2])
    assert drop.images == 12


def test_of_frames_the_anchors_alone_are_counted_as_images() -> None:
    findings = found(drawn(60, seed=7, **FRAMES), largest_k=2)
    (anchors, _) = numbers(findings, "anchor_average_precision")
    overall = numbers(findings, "mean_average_precision")[0]
    assert (overall.value, overall.images) == (anchors.value, 12)
    assert "only the anchors, 12 of 60" in overall.convention["frames"]
    subsets = {(one.about["subset"], one.about["k"]): one.images for one in numbers(findings, "pm_k_subset_precision")}
    assert subsets == {("without I", 0): 6, ("without P", 0): 6, ("without I", 2): 6, ("without P", 2): 6}


def test_of_frames_every_number_but_pm_k_is_that_of_the_anchors_alone() -> None:
    frames = scenes(60, seed=7)
    anchors = {key: frames[key] for key, offset in zip(frames, FRAMES["offset"], strict=True) if offset == 0}
    of_frames, of_anchors = (
        found(world(some, facts=facts, ignored=range(0, 3 * len(some), 3)), largest_k=2)  # the first object of each image
        for some, facts in ((frames, FRAMES), (anchors, {}))
    )
    told = [_numbers_in(one) for one in of_anchors if not isinstance(one, Gallery)]
    assert len({one[0] for one in told}) == 10
    beside = [_numbers_in(one) for one in of_frames if not isinstance(one, Gallery)]
    assert all(one in beside for one in told)


def _numbers_in(finding: Finding) -> tuple[Any, ...]:
    """What a finding says, without how it came about."""
    if isinstance(finding, Measurement):
        return finding.metric, finding.about, finding.value, finding.images, finding.ends
    assert isinstance(finding, Curve)
    return finding.name, finding.about, finding.x, finding.y, finding.images


def test_frames_that_people_rejected_are_never_the_worst() -> None:
    rejected = [place % 5 in (0, 3) for place in range(60)]
    verdicts = ["dissimilar" if gone else True for gone in rejected]
    findings = found(drawn(60, seed=7, **FRAMES, reviewed=verdicts), largest_k=2)
    objects, kept = drawn(60, seed=7, **FRAMES), np.flatnonzero(~np.array(rejected))
    assert objects.truths is not None
    offsets, groups = np.array(FRAMES["offset"])[kept], np.array(FRAMES["anchor"])[kept]
    matches = match(objects.detections, objects.truths)
    sweep = pm_k_average_precision_sweep(matches, offsets, groups, largest_k=2, images=kept)
    told = [one for one in numbers(findings, "pm_k_average_precision") if one.about["task"] == "detection"]
    assert [one.value for one in told] == pytest.approx(sweep[1:])
    assert told[0].convention["frames rejected in review"] == "24, left out"
    with_all = [one.value for one in numbers(found(objects, largest_k=2), "pm_k_average_precision")]
    assert told[-1].value > with_all[1]


def test_a_k_beyond_the_farthest_frame_is_told() -> None:
    near, far = (numbers(found(drawn(60, seed=7, **FRAMES), largest_k=k), "pm_k_precision_drop")[0] for k in (2, 3))
    assert "farthest frame" not in near.convention
    assert far.convention["farthest frame"].startswith("2 from its anchor")


def test_each_anchor_that_loses_is_shown_beside_its_worst_frame() -> None:
    objects = drawn(60, seed=7, **FRAMES)
    items = gallery(found(objects, largest_k=2), "worst_frames").items
    assert len(items) % 2 == 0
    for anchor, worst in zip(items[::2], items[1::2], strict=True):
        assert anchor.caption.startswith("+0: ")
        assert int(anchor.id[:3]) // 5 == int(worst.id[:3]) // 5
        assert worst.caption.startswith(("-", "+"))
    assert objects.truths is not None
    precision = image_average_precision(match(objects.detections, objects.truths))
    lost = [
        float(precision[int(anchor.id[:3])] - precision[int(worst.id[:3])])
        for anchor, worst in zip(items[::2], items[1::2], strict=True)
    ]
    of_all = np.sort(precision[2::5] - precision.reshape(-1, 5).min(axis=1))[::-1]
    assert lost == pytest.approx(of_all[: len(lost)])  # most first


@pytest.mark.parametrize("iou", [(), (0.5, 0.5), (1.5,), ("voc",)])
def test_overlaps_that_there_are_not_are_told_at_once(iou: Any) -> None:
    with pytest.raises(BadInput):
        DetectionStudy([ModelRef("net", "net")], PHOTOS, iou=iou)
