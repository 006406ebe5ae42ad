"""Intervals by drawing two samples again: against drawing images themselves, and against the truth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special, stats

from shiftproof.errors import BadInput
from shiftproof.metrics import (
    aupr,
    aupr_interval,
    auroc,
    auroc_interval,
    bootstrap_auroc_interval,
    clopper_pearson,
    discarded_interval,
    fpr_at_tpr,
    fpr_interval,
    share_discarded,
    two_sample,
    two_sample_bootstrap,
)
from shiftproof.metrics.roc import Side, counted_auroc, counted_average_precision, counted_fpr, counted_precision_area
from shiftproof.types import OODScores

Scores = NDArray[Any]


def two_sides(inside: int, outside: int, *, seed: int = 31) -> tuple[Scores, Scores]:
    generator = np.random.default_rng(seed)
    return generator.normal(size=inside).round(2), generator.normal(1.2, 1, size=outside).round(2)


def drawn_by_hand(metric: Any, inside: Scores, outside: Scores, drawings: int = 4000) -> NDArray[np.floating]:
    generator = np.random.default_rng(32)
    return np.array(
        [metric(generator.choice(inside, len(inside)), generator.choice(outside, len(outside))) for _ in range(drawings)]
    )


@pytest.mark.parametrize(
    ("interval", "metric"),
    [
        (bootstrap_auroc_interval, auroc),
        (discarded_interval, share_discarded),
    ],
)
def test_counts_drawn_again_give_the_bounds_of_images_drawn_again(interval: Any, metric: Any) -> None:
    sides = two_sides(150, 120)
    drawn = drawn_by_hand(metric, *sides)
    low, high = np.quantile(drawn, [0.025, 0.975])
    # a bound of 4000 drawings is known to about a twentieth of their spread; two such bounds, four times that
    assert interval(*sides, resamples=4000) == pytest.approx((low, high), abs=0.28 * drawn.std())


def test_drawings_keep_the_size_of_either_sample() -> None:
    sizes: list[tuple[int, int]] = []

    def spy(first: Scores, second: Scores) -> NDArray[np.floating]:
        sizes.extend(zip(first.sum(axis=1), second.sum(axis=1), strict=True))
        return counted_auroc(first, second)

    two_sample_bootstrap(*two_sides(37, 12), spy, resamples=50)
    assert sizes == [(37, 12)] * 50


def test_every_image_is_drawn_equally_often_on_average() -> None:
    drawn = np.zeros((2, 20), int)

    def spy(first: Scores, second: Scores) -> NDArray[np.floating]:
        drawn[:] += [first.sum(axis=0), second.sum(axis=0)]
        return counted_auroc(first, second)

    inside, outside = np.arange(12.0), np.arange(12.0, 20.0)
    two_sample_bootstrap(inside, outside, spy, resamples=10_000)
    # 10,000 on average, with a spread of less than 100
    assert drawn.ravel() == pytest.approx([10_000] * 12 + [0] * 20 + [10_000] * 8, abs=400)


def test_the_same_seed_draws_the_same() -> None:
    sides = two_sides(60, 60)
    whole = bootstrap_auroc_interval(*sides, seed=3)
    assert bootstrap_auroc_interval(*sides, seed=3) == whole
    assert bootstrap_auroc_interval(*sides, seed=4) != whole


def test_delong_and_drawing_again_agree_where_images_are_many() -> None:
    sides = two_sides(2000, 1500)
    # bounds of 4000 drawings are known to about a twentieth of a standard error, which is 0.007 here
    assert bootstrap_auroc_interval(*sides, resamples=4000) == pytest.approx(auroc_interval(*sides), abs=0.0015)


def test_the_interval_of_false_alarms_holds_the_truth_as_often_as_it_says() -> None:
    generator, rounds, held, at_threshold = np.random.default_rng(33), 300, 0, 0
    truth = stats.norm.sf(stats.norm.ppf(0.05) + 2)
    for _ in range(rounds):
        inside, outside = generator.normal(size=200), generator.normal(2, size=200)
        low, high = fpr_interval(inside, outside, resamples=400) or (np.nan, np.nan)
        held += low <= truth <= high
        low, high = clopper_pearson(round(fpr_at_tpr(inside, outside) * 200), 200)
        at_threshold += low <= truth <= high
    # of 95 % one sees 90.7 to 98.7 % but for about once in a thousand times
    assert 272 <= held <= 296
    # taking the threshold as given would promise far too much
    assert at_threshold < 240


def test_no_false_alarm_among_few_images_is_not_none_ever() -> None:
    inside, outside = np.arange(50.0), np.arange(100.0, 140.0)
    assert fpr_interval(inside, outside) == pytest.approx(clopper_pearson(0, 50))
    assert fpr_interval(inside, outside, positive="in") == pytest.approx(clopper_pearson(0, 40))
    assert discarded_interval(outside, inside) == pytest.approx(clopper_pearson(40, 40))
    # one of fifty, and where the threshold may lie changes nothing
    one = fpr_interval(np.append(inside[:-1], 999.0), outside) or (np.nan, np.nan)
    assert one == pytest.approx(clopper_pearson(1, 50), abs=0.01)


@pytest.mark.parametrize("sides", [(26, 26), (1000, 26), (26, 1000)])
@pytest.mark.parametrize("spread", [1.0, 2.0])
def test_few_images_that_set_the_threshold_leave_it_open(sides: tuple[int, int], spread: float) -> None:
    generator, rounds, held = np.random.default_rng(35), 300, 0
    truth = stats.norm.sf(2.5 + spread * stats.norm.ppf(0.05))
    for _ in range(rounds):
        scores = generator.normal(size=sides[0]), generator.normal(2.5, spread, size=sides[1])
        low, high = fpr_interval(*scores, resamples=400) or (np.nan, np.nan)
        held += low <= truth <= high
    # drawing again holds it 75 times in a hundred where 26 images set the threshold for 1000
    assert held >= 0.905 * rounds


def of_photos(seed: int, photos: int = 40) -> tuple[Scores, Scores, Scores, Scores]:
    """Scores of 1 to 20 versions of each photo, a third of their variance the photo's."""
    generator = np.random.default_rng(seed)
    sides = [np.repeat(np.arange(photos), generator.integers(1, 21, photos)) for _ in range(2)]
    scores = [
        generator.normal(scale=np.sqrt(1 / 3), size=photos)[side] + generator.normal(scale=np.sqrt(2 / 3), size=len(side))
        for side in sides
    ]
    return scores[0], scores[1] + 2.0, sides[0], sides[1] + photos


@pytest.mark.parametrize(
    ("interval", "truth"),
    [(fpr_interval, stats.norm.sf(2 + stats.norm.ppf(0.05))), (aupr_interval, None), (bootstrap_auroc_interval, None)],
)
def test_versions_of_one_photo_tell_less_than_as_many_photos(interval: Any, truth: float | None) -> None:
    more = {"resamples": 300} if interval is not aupr_interval else {}
    held, wider, rounds = 0, 0, 40 if truth is None else 300
    for seed in range(rounds):
        inside, outside, ours, theirs = of_photos(seed)
        low, high = interval(inside, outside, in_clusters=ours, out_clusters=theirs, **more)
        held += truth is not None and low <= truth <= high
        if seed < 40:
            alone = interval(inside, outside, **more)
            wider += high - low > 1.2 * (alone[1] - alone[0])
    assert wider >= 35
    if truth is not None:
        assert 0.91 <= held / rounds <= 0.99
    few = {"in_clusters": ours % 4, "out_clusters": theirs}
    assert interval(inside, outside, **few, **more) is None


def test_clusters_drawn_again_are_drawn_whole_and_for_both_sides_at_once() -> None:
    inside, outside = np.repeat(np.arange(10.0), 3), np.arange(10.0) + 0.5
    seen: list[tuple[Scores, Scores]] = []

    def spy(first: Scores, second: Scores) -> NDArray[np.floating]:
        seen.extend(zip(first, second, strict=True))
        return counted_auroc(first, second)

    groups = {"first_clusters": np.repeat(np.arange(10), 3), "second_clusters": np.arange(10)}
    two_sample_bootstrap(inside, outside, spy, **groups, resamples=30)  # type: ignore[arg-type]
    for first, second in seen:  # photo n has three versions at n and one at n and a half
        assert first[::2].tolist() == (3 * second[1::2]).tolist()
        assert second.sum() == 10


def test_the_interval_of_the_area_under_precision_and_recall_is_that_of_drawing_again() -> None:
    inside, outside = two_sides(600, 300)
    drawn = drawn_by_hand(aupr, inside, outside, drawings=1500)
    low, high = aupr_interval(inside, outside) or (np.nan, np.nan)
    # thirty blocks a side know a spread to 9 %; three times that, beside 2 % of Student's t
    assert (high - low) / (2 * 1.96 * drawn.std()) == pytest.approx(1.02, abs=0.28)
    assert low < aupr(inside, outside) < high
    turned = aupr_interval(-outside, -inside, positive="in") or (np.nan, np.nan)
    assert turned == pytest.approx((low, high), abs=0.1 * (high - low))


def test_perfect_precision_is_not_taken_for_perfect_on_other_images() -> None:
    low, high = aupr_interval(np.arange(30.0), np.arange(40.0, 70.0)) or (np.nan, np.nan)
    assert 0.85 < low < 0.9
    assert high == 1


def test_where_drawing_again_tells_nothing_there_is_no_interval() -> None:
    assert bootstrap_auroc_interval(np.arange(9.0), np.arange(9.0, 20.0)) is None
    assert bootstrap_auroc_interval(np.ones(9), np.ones(9)) is None
    assert bootstrap_auroc_interval(np.array([0.5]), np.linspace(0, 1, 9)) is None
    # the one image that sets the threshold could have been any
    assert fpr_interval(np.linspace(0, 1, 9), np.array([0.5])) == (0.0, 1.0)


def test_whole_numbers_without_a_sign_are_drawn_like_others() -> None:
    inside, outside = (np.round(10 * side + 50) for side in two_sides(80, 80))
    small: list[Scores] = [inside.astype(np.uint8), outside.astype(np.uint8)]
    assert fpr_interval(*small, positive="in") == fpr_interval(inside, outside, positive="in")


def test_infinite_scores_are_drawn_like_others() -> None:
    inside, outside = two_sides(80, 80)
    finite = np.where(inside > 1, 50.0, inside), np.where(outside > 2, 50.0, outside)
    infinite = [np.where(side == 50, np.inf, side) for side in finite]
    assert bootstrap_auroc_interval(*infinite) == bootstrap_auroc_interval(*finite)


def test_every_drawing_is_measured_as_its_images_would_be() -> None:
    inside, outside = two_sides(30, 20)
    seen: list[tuple[Scores, Scores]] = []

    def spy(first: Scores, second: Scores) -> NDArray[np.floating]:
        seen.extend(zip(first, second, strict=True))
        return counted_fpr(first, second, tpr=0.8)

    two_sample_bootstrap(inside, outside, spy, resamples=40)
    scores = np.unique(np.concatenate([inside, outside]))
    for first, second in seen:
        images = np.repeat(scores, first), np.repeat(scores, second)
        assert counted_fpr(first, second, tpr=0.8) == fpr_at_tpr(*images, tpr=0.8)
        assert counted_auroc(first, second) == auroc(*images)
        assert counted_average_precision(first, second) == pytest.approx(aupr(*images), abs=1e-12)
        assert counted_precision_area(first, second) == pytest.approx(aupr(*images, area="trapezoid"), abs=1e-12)


def test_bad_scores_and_levels_are_refused() -> None:
    with pytest.raises(BadInput, match="in-distribution scores are nan"):
        bootstrap_auroc_interval(np.array([1, np.nan]), np.ones(2))
    with pytest.raises(BadInput, match="at least one image"):
        fpr_interval(np.ones(3), np.array([]))
    with pytest.raises(BadInput, match="level should lie between 0 and 1"):
        bootstrap_auroc_interval(np.ones(3), np.ones(3), level=95)


def test_images_that_score_just_the_threshold_are_flagged_in_every_drawing() -> None:
    low, high = fpr_interval(np.zeros(100), np.zeros(80)) or (np.nan, np.nan)
    assert (low, high) == pytest.approx(clopper_pearson(100, 100))


@pytest.mark.parametrize("positive", ["out", "in"])
@pytest.mark.parametrize("tpr", [0.05, 0.5, 0.95, 1.0])
@pytest.mark.parametrize("digits", [None, 0])
def test_thresholds_are_drawn_alike_whether_few_scores_are_looked_up_or_all(
    positive: Side, tpr: float, digits: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = np.random.default_rng(8)
    for images in (2, 7, 500):
        inside, outside = generator.normal(size=images), generator.normal(1, size=images + 3)
        if digits is not None:
            inside, outside = inside.round(digits), outside.round(digits)
        found = fpr_interval(inside, outside, tpr=tpr, positive=positive)
        assert found == fpr_interval(
            inside, outside, tpr=tpr, positive=positive, in_clusters=np.arange(images), out_clusters=np.arange(images + 3)
        )
        with monkeypatch.context() as patched:
            patched.setattr(two_sample, "_drawn_fprs", drawn_from_all_scores)
            assert found == fpr_interval(inside, outside, tpr=tpr, positive=positive)


def drawn_from_all_scores(
    mistaken: OODScores, setting: OODScores, independent: list[float], tpr: float, resamples: int, seed: int
) -> NDArray[np.floating]:
    """As `_drawn_fprs`, with the shares that reach every score and not only those that a threshold may take."""
    generator, count = np.random.default_rng(seed), len(setting)
    below = generator.beta((1 - tpr) * independent[1] + 0.5, tpr * independent[1] + 0.5, size=resamples)
    heights = special.logit((len(mistaken) - np.searchsorted(mistaken, setting) + 0.5) / (len(mistaken) + 1))
    levels = np.arange(1, count + 1) / (count + 1)
    lowest = min(max(2, int(np.ceil(np.sqrt(count) / 2))), count - 1)
    step = max(float((heights[:lowest] - heights[lowest]).mean()), 0.0)
    fall = step * np.log(np.maximum(levels[0] / np.maximum(below, 1e-300), 1.0))
    shares = special.expit(np.interp(below, levels, heights) + fall)
    return np.asarray(generator.beta(*(np.clip([shares, 1 - shares], 1e-12, None) * (independent[0] + 1))))
