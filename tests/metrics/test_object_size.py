"""Shares of images that objects fill, and scale factors, worked by hand."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics import (
    accuracy_by_scale,
    compare_shares,
    covering_boxes,
    mean_share_by_class,
    object_share,
    pooled_accuracy,
    scale_factor,
)
from shiftproof.metrics.objects import SCALE_FACTORS
from shiftproof.reference import load_table


def square(side: float) -> list[float]:
    return [10, 20, 10 + side, 20 + side]


def test_the_share_of_an_object_is_its_box_over_its_image() -> None:
    boxes = np.array([[0, 0, 10, 10], [5, 5, 5, 9], [8, 0, 4, 4]], float)
    sizes = np.array([[10, 10], [20, 20], [8, 8]])
    assert object_share(boxes, sizes).tolist() == [1, 0, 0], "whole, without width, inside out"


def test_the_share_of_an_object_counts_its_pixels() -> None:
    rng = np.random.default_rng(0)
    for left, top, width, height in rng.integers(1, 12, (20, 4)):
        mask = np.zeros((30, 40), bool)
        mask[top : top + height, left : left + width] = True
        boxes = np.array([[left, top, left + width, top + height]])
        assert object_share(boxes, np.array([[40, 30]]))[0] == pytest.approx(mask.mean())


def test_one_box_over_all_instances_holds_every_one_of_them() -> None:
    rng = np.random.default_rng(1)
    corners = rng.uniform(0, 50, (40, 2))
    boxes = np.hstack([corners, corners + rng.uniform(1, 20, (40, 2))])
    groups = rng.integers(0, 5, 40)
    covering = covering_boxes(boxes, groups)
    for group in range(5):
        own = boxes[groups == group]
        assert covering[group].tolist() == [*own[:, :2].min(axis=0), *own[:, 2:].max(axis=0)]


def test_two_objects_in_opposite_corners_fill_the_whole_image_together() -> None:
    boxes = np.array([[0, 0, 1, 1], [9, 9, 10, 10]], float)
    sizes = np.array([[10, 10], [10, 10]])
    assert object_share(boxes, sizes).sum() == pytest.approx(0.02)
    assert object_share(covering_boxes(boxes, np.zeros(2, int)), sizes[:1]).tolist() == [1]


def test_mean_shares_of_classes_are_those_of_their_objects() -> None:
    shares, labels = np.array([0.1, 0.3, 0.5, 0.7]), np.array([1, 1, 3, 3])
    assert mean_share_by_class(shares, labels, classes=5) == pytest.approx([np.nan, 0.2, np.nan, 0.6, np.nan], nan_ok=True)
    with pytest.raises(BadInput, match="class 3 is beyond the 3 classes"):
        mean_share_by_class(shares, labels, classes=3)


def test_a_set_overlaps_with_itself_wholly_and_with_a_strange_one_not_at_all() -> None:
    small, large = np.linspace(0, 0.4, 50), np.linspace(0.6, 1, 70)
    assert compare_shares(small, small).overlap == pytest.approx(1)
    assert compare_shares(small, large).overlap == 0
    assert compare_shares(small, large).second.sum() == pytest.approx(1)
    assert compare_shares(small, large, bins=5).edges == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1])


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [([], [0.5], "one of them has no objects"), ([0.5], [1.5], "between 0 and 1, got 0.5 to 1.5")],
)
def test_shares_that_cannot_be_compared_are_told(first: list[float], second: list[float], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        compare_shares(np.array(first), np.array(second))


@pytest.mark.parametrize("image_sizes", [np.array([10, 10]), np.array([[10, 0]])])
def test_a_share_of_no_image_is_refused(image_sizes: np.ndarray[tuple[int, ...], np.dtype[np.int_]]) -> None:
    with pytest.raises(BadInput, match="width and"):
        object_share(np.array([[0, 0, 1, 1]]), image_sizes)


def test_the_papers_object_of_107_by_73_has_a_scale_factor_of_one_half() -> None:
    """Section 5 of Li et al. (2021): in an image scaled to 224 x 224; it is shown at 112 x 112."""
    factors = scale_factor(np.array([[30, 40, 137, 113]]))
    assert factors.tolist() == [1 / 2]
    table = accuracy_by_scale(np.array([True]), factors)
    assert table.input_sizes[table.tally.total.tolist().index(1)] == 112


@pytest.mark.parametrize(
    ("side", "factor"),
    [
        *[(500, 1), (224, 1), (112.1, 1), (112, 1 / 2), (56.1, 1 / 2), (56, 1 / 4), (28.1, 1 / 4), (28, 1 / 8)],
        *[(14.1, 1 / 8), (14, 1 / 16), (7.1, 1 / 16), (7, 1 / 16), (0, 1 / 16)],
    ],
)
def test_a_bin_of_scale_factors_holds_its_upper_edge_and_the_last_all_below(side: float, factor: float) -> None:
    assert scale_factor(np.array([square(side)])).tolist() == [factor]


def test_the_bins_are_those_of_the_papers_sum_but_for_their_shared_edges() -> None:
    """SF = sum over k of 2^-k 1(2^(-k-1) <= max(w, h)/224 <= 2^-k), taken literally away from the edges."""
    sides = np.random.default_rng(2).uniform(7.01, 224, 500)
    published = sum(2.0**-k * ((2.0 ** (-k - 1) <= sides / 224) & (sides / 224 <= 2.0**-k)) for k in range(5))
    assert scale_factor(np.array([square(side) for side in sides])).tolist() == np.asarray(published).tolist()


def test_the_larger_share_of_a_side_decides_the_factor_whatever_the_shape_of_the_image() -> None:
    assert scale_factor(np.array([[0, 0, 3, 120], [0, 0, 120, 3]])).tolist() == [1, 1]
    assert scale_factor(np.array([square(112)]), side=448).tolist() == [1 / 4]
    # scaled to 224 x 224, 100 x 90 of 500 x 300 is 44.8 x 67.2, and 300 x 20 of 800 x 40 is 84 x 112
    boxes = np.array([[0, 0, 100, 90], [7, 9, 307, 29]])
    assert scale_factor(boxes, sizes=np.array([[500, 300], [800, 40]])).tolist() == [1 / 2, 1 / 2]


def test_a_box_of_exactly_half_the_image_is_that_wherever_it_lies() -> None:
    lefts = np.random.default_rng(0).uniform(0, 100, 200)
    boxes = np.stack([lefts, lefts, lefts + 112, lefts + 1], axis=1)
    assert set(scale_factor(boxes).tolist()) == {1 / 2}


def test_closed_bins_would_count_an_object_at_an_edge_twice_and_ours_count_it_once() -> None:
    sides = np.array([224, 112, 56, 28, 14, 8, 100, 30.0])
    closed = sum(((high / 2 <= sides / 224) & (sides / 224 <= high)).sum() for high in SCALE_FACTORS)
    table = accuracy_by_scale(np.ones(8, bool), scale_factor(np.array([square(side) for side in sides])))
    assert closed == len(sides) + 4
    assert table.tally.total.tolist() == [1, 2, 2, 1, 2]


def test_the_published_totals_pool_over_images_and_not_over_rows() -> None:
    """Table 4 of Li et al. (2021): 16.94 and 27.03, where the plain means of its rows are 12.77 and 23.34."""
    *rows, total = load_table("imagenet_a_crop_scale_factors")
    images = np.array([int(row["images"]) for row in rows])
    assert [row["scale_factor"] for row in rows] == ["1", "1/2", "1/4", "1/8", "1/16"]
    assert (images.sum(), int(total["images"])) == (7373, 7373)
    for column, pooled, plain in (("accuracy_at_sf_x_224", 16.94, 12.77), ("accuracy_at_sf_x_448", 27.03, 23.34)):
        accuracies = np.array([float(row[column]) for row in rows])
        # each row is a whole number of images, and so is their sum
        right = np.round(accuracies * images / 100)
        assert (right / images * 100).round(2).tolist() == accuracies.tolist()
        factors, correct = np.repeat(SCALE_FACTORS, images), np.zeros(images.sum(), bool)
        for start, count in zip(np.cumsum(images) - images, right.astype(int), strict=True):
            correct[start : start + count] = True
        table = accuracy_by_scale(correct, factors)
        assert round(100 * table.overall, 2) == float(total[column]) == pooled
        assert round(100 * pooled_accuracy(table.tally.accuracy, images), 2) == pooled
        assert round(float(accuracies.mean()), 2) == plain


def test_a_table_by_scale_has_the_input_size_of_each_bin_and_the_whole_accuracy() -> None:
    rng = np.random.default_rng(3)
    boxes = np.array([square(side) for side in rng.uniform(1, 400, 300)])
    correct = rng.random(300) < 0.3
    table = accuracy_by_scale(correct, scale_factor(boxes))
    assert table.input_sizes == (224, 112, 56, 28, 14)
    assert table.overall == pytest.approx(correct.mean())
    assert pooled_accuracy(table.tally.accuracy, table.tally.total) == pytest.approx(correct.mean())


def test_an_empty_table_has_no_accuracy() -> None:
    assert np.isnan(accuracy_by_scale(np.zeros(0, bool), np.zeros(0)).overall)
    with pytest.raises(BadInput, match="no objects"):
        pooled_accuracy(np.array([np.nan]), np.array([0]))


@pytest.mark.parametrize("factors", [[0.3], [1 / 32], [1.0, 0.5]])
def test_factors_that_are_none_are_refused(factors: list[float]) -> None:
    with pytest.raises(BadInput, match="scale factor of 1, 1/2"):
        accuracy_by_scale(np.ones(1, bool), np.array(factors))


@pytest.mark.parametrize("sizes", [np.array([100, 100]), np.array([[100, 0]])])
def test_a_scale_factor_needs_the_size_of_every_image(sizes: NDArray[np.integer]) -> None:
    with pytest.raises(BadInput, match="a width and height above 0 for each of 1 boxes"):
        scale_factor(np.array([[0, 0, 9, 9]]), sizes=sizes)
