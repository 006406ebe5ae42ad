"""Intervals of shares and drops over anchors of clips."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import beta, t

from shiftproof.metrics import clopper_pearson, difference_interval, paired_counts
from shiftproof.studies import by_clip

SIZES = [1, 2, 3, 5, 9, 4]
RIGHT = [1, 0, 3, 4, 9, 2]
CLIPS = np.repeat(np.arange(len(SIZES)), SIZES)


def first_ones(counts: list[int], sizes: list[int]) -> NDArray[np.bool_]:
    return np.concatenate([np.arange(size) < count for count, size in zip(counts, sizes, strict=True)])


def interval(right: NDArray[np.bool_], clips: NDArray[np.intp]) -> tuple[float, float] | None:
    return by_clip.share("anchor_accuracy", right, clips, {}, {}).interval


def lost(before: NDArray[np.bool_], after: NDArray[np.bool_], clips: NDArray[np.intp]) -> tuple[float, float] | None:
    return by_clip.drop("pm_k_drop", before, after, clips, {}, {}).interval


def left_out_one_at_a_time(values: list[float], sizes: list[float]) -> tuple[float, float]:
    """The mean, and the variance that it has by the jackknife over clips, by plain loops."""
    mean, without = sum(values) / sum(sizes), []
    for place in range(len(sizes)):
        kept = [other for other in range(len(sizes)) if other != place]
        without.append(sum(values[other] for other in kept) / sum(sizes[other] for other in kept))
    clips = len(sizes)
    return mean, (clips - 1) / clips * sum((one - mean) ** 2 for one in without)


def test_the_share_is_known_as_well_as_from_fewer_anchors_that_are_independent() -> None:
    made_up = 0.3 * 24 / 6
    mean, variance = left_out_one_at_a_time([*RIGHT, made_up, 0], [*SIZES, made_up, made_up])
    design_effect = variance / (mean * (1 - mean) / (24 + 2 * made_up))
    share, anchors = 19 / 24, 24 / design_effect * (t.ppf(0.975, 23) / t.ppf(0.975, 5)) ** 2
    assert anchors < 10
    expected = (
        beta.ppf(0.025, anchors * share, anchors * (1 - share) + 1),
        beta.ppf(0.975, anchors * share + 1, anchors * (1 - share)),
    )
    assert interval(first_ones(RIGHT, SIZES), CLIPS) == pytest.approx(expected)


def test_the_drop_has_the_variance_of_leaving_out_one_clip_at_a_time() -> None:
    before, after = first_ones(RIGHT, SIZES), first_ones([0, 1, 2, 4, 5, 0], SIZES)
    made_up = 0.3 * 24 / 6
    mean, variance = left_out_one_at_a_time([1, -1, 1, 0, 4, 2, made_up, -made_up], [*SIZES, made_up, made_up])
    half = t.ppf(0.975, 5) * variance**0.5
    assert lost(before, after, CLIPS) == pytest.approx((mean - half, mean + half))


def test_where_each_anchor_has_a_clip_of_its_own_the_intervals_are_those_of_images() -> None:
    before, after, own = np.arange(40) < 30, np.arange(40) < 22, np.arange(40)
    assert interval(before, own) == clopper_pearson(30, 40)
    assert lost(before, after, own) == difference_interval(paired_counts(before, after))


def test_the_more_anchors_of_a_clip_agree_the_less_they_add() -> None:
    alone = np.arange(40) % 4 > 0
    copied = interval(np.repeat(alone, 10), np.repeat(np.arange(40), 10))
    independent = interval(np.tile(alone, 10), np.repeat(np.arange(40), 10))
    assert copied == pytest.approx(clopper_pearson(30, 40), abs=0.015)
    assert independent == pytest.approx(clopper_pearson(300, 400), abs=0.015)


@pytest.mark.parametrize("right", [True, False])
def test_few_clips_that_all_agree_leave_much_open(right: bool) -> None:
    found = interval(np.full(100, right), np.repeat(np.arange(5), 20))
    assert found is not None
    assert max(found) - min(found) > clopper_pearson(5, 5)[1] - clopper_pearson(5, 5)[0] - 0.2


@pytest.mark.parametrize("clips", [1, 4])
def test_below_five_clips_there_is_no_interval(clips: int) -> None:
    one = by_clip.share("anchor_accuracy", np.arange(20) % 2 == 0, np.arange(20) % clips, {}, {})
    assert (one.interval, one.convention) == (None, {"interval": by_clip.TOO_FEW})
    assert lost(np.arange(20) % 2 == 0, np.zeros(20, bool), np.arange(20) % clips) is None


def share_covers(rng: np.random.Generator, sizes: NDArray[np.intp], truth: float) -> bool:
    # a third of the variance is shared by the anchors of a clip
    rates = rng.beta(2 * truth, 2 * (1 - truth), len(sizes))
    clips = np.repeat(np.arange(len(sizes)), sizes)
    found = interval(rng.random(len(clips)) < rates[clips], clips)
    return found is not None and found[0] <= truth <= found[1]


def drop_covers(rng: np.random.Generator, sizes: NDArray[np.intp], truth: float) -> bool:
    rates = rng.beta(2 * truth, 2 * (1 - truth), len(sizes))
    clips = np.repeat(np.arange(len(sizes)), sizes)
    found = lost(np.ones(len(clips), bool), rng.random(len(clips)) >= rates[clips], clips)
    return found is not None and found[0] <= truth <= found[1]


@pytest.mark.parametrize("covers", [share_covers, drop_covers])
@pytest.mark.parametrize("truth", [0.1, 0.5])
@pytest.mark.parametrize(("clips", "anchors"), [(5, 20), (26, 10), (100, 10)])
def test_intervals_hold_the_truth_where_anchors_of_a_clip_are_alike(
    covers: Callable[[np.random.Generator, NDArray[np.intp], float], bool], truth: float, clips: int, anchors: int
) -> None:
    rng = np.random.default_rng(clips)
    held = sum(covers(rng, np.full(clips, anchors), truth) for _ in range(600))
    assert held >= 0.92 * 600  # 95 % less three standard errors
