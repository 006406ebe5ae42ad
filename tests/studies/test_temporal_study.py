from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, linregress, norm

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


def frames(mistakes: dict[str, list[int]] | None = None, **more: tuple[Fact, ...]) -> Predictions:
    """Answers to the frames above; or those that are wrong at these offsets, by anchor, and right elsewhere."""
    rows = [
        (anchor, offset, right if mistakes is None else offset not in mistakes.get(anchor, []))
        for anchor, frames in SETS.items()
        for offset, right in frames
    ]
    labels = np.array([LABEL_OF[anchor] for anchor, _, _ in rows])
    logits = np.full((len(rows), 3), 0.0)
    logits[np.arange(len(rows)), np.where([right for *_, right in rows], labels, 2)] = 2.0
    facts: dict[str, tuple[Fact, ...]] = {
        "anchor": tuple(f"{anchor}/0" for anchor, _, _ in rows),
        "offset": tuple(offset for _, offset, _ in rows),
        "frame_type": tuple(TYPE_OF[anchor] if offset == 0 else "P" for anchor, offset, _ in rows),
        **more,
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


def test_what_a_few_anchors_lose_is_never_known_for_sure() -> None:
    (drop,) = numbers(found(frames()), "pm_k_drop")
    # two of five are lost and none is won: 3 and 1 of 7 once an anchor is added to either side
    half = norm.ppf(0.975) * np.sqrt((4 / 7 - (2 / 7) ** 2) / 7)
    assert drop.interval == pytest.approx((2 / 7 - half, 2 / 7 + half))


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


def test_distances_at_which_there_is_no_frame_are_left_out_of_the_curve() -> None:
    study = TemporalStudy([MODEL], CLIPS, largest_k=5)
    (curve,) = (one for one in study.measure(lambda _: frames()) if getattr(one, "name", "") == "conditional_robustness")
    assert isinstance(curve, Curve)
    assert curve.x == (1, 2)


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


def test_all_models_are_asked_the_frames_that_most_of_them_get_wrong() -> None:
    other = ModelRef("other", "o")
    answers = {MODEL: frames(), other: frames({"a": [1], "b": [-1], "c": [1]})}
    study = TemporalStudy([MODEL, other], CLIPS, largest_k=2)
    findings = list(study.measure(lambda run: answers[run.model]))
    hardest = {one.about["model"]: (one.value, one.images) for one in numbers(findings, "hardest_frames_accuracy")}
    # a+1 (one fails), b-1 (both), the anchor of c (one on it, one farther away), d, which has no other, and e+2 (one)
    assert hardest == {"net": (2 / 5, 5), "other": (3 / 5, 5)}
    worst = {one.about["model"]: one.value for one in numbers(findings, "pm_k_accuracy") if one.about["k"] == 2}
    assert worst == {"net": 2 / 5, "other": 2 / 5}
    assert numbers(found(frames()), "hardest_frames_accuracy") == []


def test_the_same_frames_are_asked_though_one_model_could_not_read_some() -> None:
    other, whole = ModelRef("other", "o"), frames()
    fewer = whole.take(np.array([key not in ("b/-1", "e/0") for key in whole.ids]))
    answers = {MODEL: whole, other: fewer}
    findings = list(TemporalStudy([MODEL, other], CLIPS, largest_k=2).measure(lambda run: answers[run.model]))
    # without e, whose anchor one has no answer to, and without the frame of b on which both would fail: only c is wrong
    assert [(one.value, one.images) for one in numbers(findings, "hardest_frames_accuracy")] == [(3 / 4, 4)] * 2


def test_frames_that_people_rejected_are_left_out_and_their_effect_is_told() -> None:
    verdicts: dict[str, Fact] = {"b/-1": "dissimilar", "e/2": "blur-increase", "c/1": False, "d/0": None}
    findings = found(frames(reviewed=tuple(verdicts.get(key, True) for key in frames().ids)))
    assert numbers(findings, "pm_k_accuracy")[-1].value == 4 / 5  # all but c, whose anchor is wrong
    review = {(one.about["rejected"], one.about["k"]): one.value for one in numbers(findings, "pm_k_review_accuracy")}
    assert review == {("left out", 0): 4 / 5, ("left out", 2): 4 / 5, ("kept", 0): 4 / 5, ("kept", 2): 2 / 5}
    assert numbers(findings, "pm_k_accuracy")[0].convention["frames rejected in review"] == "2, left out"
    assert numbers(findings, "pm_k_review_accuracy")[-1].convention["frames rejected in review"] == "2, kept"


def test_a_k_beyond_the_farthest_frame_is_told() -> None:
    (reached,) = numbers(found(frames()), "pm_k_drop")
    assert "farthest frame" not in reached.convention
    (beyond,) = numbers(list(TemporalStudy([MODEL], CLIPS).measure(lambda _: frames())), "pm_k_drop")
    assert (beyond.about["k"], beyond.value) == (10, reached.value)
    assert beyond.convention["farthest frame"] == "2 from its anchor; a larger k has no more frames"


def test_without_rejected_frames_there_is_one_reading() -> None:
    assert numbers(found(frames()), "pm_k_review_accuracy") == []
    assert numbers(found(frames(reviewed=(True,) * len(frames()))), "pm_k_review_accuracy") == []


def test_distances_from_the_anchor_spread_over_all_pairs_reviewed_ones_and_mistakes() -> None:
    by_id: dict[str, Fact] = {"a/1": 0.5, "a/2": 0.5, "b/-1": 1.0, "b/1": 0.5, "c/1": 0.25, "e/2": 0.75}
    similar = {"a/1", "a/2", "b/1", "a/0"}  # anchors are no pairs
    ids = frames().ids
    told: tuple[Fact, ...] = tuple(0.0 if key.endswith("/0") else by_id.get(key) for key in ids)
    findings = found(frames(pixel_distance=told, reviewed=tuple(key in similar for key in ids)))
    spreads = {
        (one.about["pairs"], one.about.get("model")): list(zip(one.x, one.y, strict=True))
        for one in findings
        if isinstance(one, Curve) and one.name == "pixel_distances"
    }
    assert spreads[("all", None)] == [(0.25, 1 / 6), (0.5, 4 / 6), (0.75, 5 / 6), (1.0, 1.0)]
    assert spreads[("reviewed", None)] == [(0.5, 1.0)]
    # wrong around a right anchor: b-1 and e+2
    assert spreads[("mistakes", "net")] == [(0.75, 0.5), (1.0, 1.0)]
    assert len(spreads) == 3
