from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, linregress

from shiftproof.metrics.top5 import to_top5
from shiftproof.reference import load_table
from shiftproof.studies.temporal import TemporalStudy
from shiftproof.types import Classes, Curve, Fact, Finding, Gallery, ImageSetRef, Measurement, ModelRef, Predictions

MODEL, CLIPS = ModelRef("net", "m"), ImageSetRef("clips", "clips")
CLASSES = Classes(("cat", "dog", "eel"))

# by anchor: offset, right or not; worked by hand below
SETS = {
    "a": [(-2, True), (-1, True), (0, True), (1, True), (2, True)],
    "b": [(-2, True), (-1, False), (0, True), (1, True), (2, True)],
    "c": [(-2, True), (0, False), (1, True)],
    "d": [(0, True)],
    "e": [(0, True), (1, True), (2, False)],
}
LABEL_OF = {"a": 0, "b": 0, "c": 1, "d": 1, "e": 1}
TYPE_OF = {"a": "I", "b": "P", "c": "P", "d": "B", "e": "B"}


def frames() -> Predictions:
    rows = [(anchor, offset, right) for anchor, frames in SETS.items() for offset, right in frames]
    labels = np.array([LABEL_OF[anchor] for anchor, _, _ in rows])
    logits = np.full((len(rows), 3), 0.0)
    logits[np.arange(len(rows)), np.where([right for *_, right in rows], labels, 2)] = 2.0
    facts: dict[str, tuple[Fact, ...]] = {
        "anchor": tuple(f"{anchor}/0" for anchor, _, _ in rows),
        "offset": tuple(offset for _, offset, _ in rows),
        "frame_type": tuple(TYPE_OF[anchor] if offset == 0 else "P" for anchor, offset, _ in rows),
    }
    ids = tuple(f"{anchor}/{offset}" for anchor, offset, _ in rows)
    return Predictions(ids, labels[:, None], "logits", to_top5(logits, "logits"), CLASSES, facts=facts)


def found(answers: Predictions, **choices: object) -> list[Finding]:
    return list(TemporalStudy([MODEL], CLIPS, largest_k=2, **choices).measure(lambda _: answers))  # type: ignore[arg-type]


def numbers(findings: list[Finding], metric: str) -> list[Measurement]:
    return [one for one in findings if isinstance(one, Measurement) and one.metric == metric]


def test_accuracy_falls_from_the_anchors_to_the_worst_frame_around_them() -> None:
    findings = found(frames())
    (anchor,) = numbers(findings, "anchor_accuracy")
    assert (anchor.value, anchor.images) == (4 / 5, 5)  # all but c
    near, far = numbers(findings, "pm_k_accuracy")
    assert (near.about["k"], near.value) == (1, 3 / 5)  # a, d and e
    assert (far.about["k"], far.value) == (2, 2 / 5)  # a and d
    (drop,) = numbers(findings, "pm_k_drop")
    assert drop.value == pytest.approx(2 / 5)
    (curve,) = (one for one in findings if isinstance(one, Curve) and one.name == "pm_k_curve")
    assert (curve.x, curve.y, curve.counts) == ((0, 1, 2), (0.8, 0.6, 0.4), (5, 5, 5))


def test_intervals_are_exact() -> None:
    (anchor,) = numbers(found(frames()), "anchor_accuracy")
    assert anchor.interval is not None
    low, high = anchor.interval
    assert binom.sf(3, 5, low) == pytest.approx(0.025)  # four of five or more
    assert binom.cdf(4, 5, high) == pytest.approx(0.025)


def test_equation_1_asks_the_neighbours_alone() -> None:
    near, far = numbers(found(frames(), include_anchor=False), "pm_k_accuracy")
    assert (near.value, near.images) == (3 / 4, 4)  # a, c and e right, b wrong; d has no neighbour
    assert (far.value, far.images) == (2 / 4, 4)
    assert near.convention["anchor"] == "does not count: Eq. 1"


def test_frames_right_exactly_so_far_away_are_counted_where_the_anchor_is_right() -> None:
    (curve,) = (one for one in found(frames()) if isinstance(one, Curve) and one.name == "conditional_robustness")
    # one away: a twice, b once of two, e once; two away: a twice, b twice, e none of one
    assert (curve.y, curve.counts) == ((4 / 5, 4 / 5), (5, 5))


def test_errors_are_told_by_offset() -> None:
    (curve,) = (one for one in found(frames()) if isinstance(one, Curve) and one.name == "offset_errors")
    assert list(zip(curve.x, curve.y, strict=True)) == [(-2, 0), (-1, 1 / 2), (0, 1 / 5), (1, 0), (2, 1 / 3)]


def test_classes_and_kinds_of_frames_are_told_apart_by_the_anchor() -> None:
    findings = found(frames())
    by_class = {one.about["class"]: (one.value, one.images) for one in numbers(findings, "pm_k_class_accuracy")}
    assert by_class == {"cat": (1 / 2, 2), "dog": (1 / 3, 3)}
    subsets = {(one.about["subset"], one.about["k"]): one.value for one in numbers(findings, "pm_k_subset_accuracy")}
    assert subsets == {
        ("without I", 0): 3 / 4, ("without P", 0): 1.0, ("without B", 0): 2 / 3,
        ("without I", 2): 1 / 4, ("without P", 2): 2 / 3, ("without B", 2): 1 / 3,
    }  # fmt: skip


def test_the_line_through_published_models_is_that_of_least_squares() -> None:
    linear, probit = numbers(found(frames()), "effective_robustness")
    rows = load_table("imagenet_vid_robust_models")
    line = linregress([float(row["original"]) for row in rows], [float(row["perturbed"]) for row in rows])
    assert linear.about["axes"] == "linear"
    assert 100 * linear.value == pytest.approx(40 - (line.slope * 80 + line.intercept))
    assert probit.about["axes"] == "probit"
    assert linear.interval is not None
    assert linear.interval[0] < linear.value < linear.interval[1]


def test_frames_whose_anchor_was_not_read_are_left_out_and_told() -> None:
    whole = frames()
    without = whole.take(np.array([key != "b/0" for key in whole.ids]))
    (anchor,) = numbers(found(without), "anchor_accuracy")
    assert anchor.images == 4
    assert anchor.convention["frames without their anchor"] == "4, left out"


def test_the_strip_shows_the_set_whose_answer_changes_most_in_order_of_time() -> None:
    strips = [one for one in found(frames(), shown=1) if isinstance(one, Gallery)]
    assert [item.id for item in strips[0].items] == ["b/-2", "b/-1", "b/0", "b/1", "b/2"]
    assert strips[0].items[1].caption == "-1: eel 79 % (wrong)"
    assert len(strips) == 1


def test_a_set_without_anchors_is_left_out_with_a_sentence() -> None:
    plain = frames()
    plain = Predictions(plain.ids, plain.labels, "logits", plain.top5, CLASSES)
    study = TemporalStudy([MODEL], CLIPS)
    assert list(study.measure(lambda _: plain)) == []
    (told,) = study.skipped(lambda _: plain)
    assert "no anchor with a label was read" in told
