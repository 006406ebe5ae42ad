"""The arithmetic of ImageNet-A-Plus, worked by hand and on random boxes."""

from __future__ import annotations

import numpy as np
import pytest

from shiftproof.curation.crop_set import is_too_small, window_for_share
from shiftproof.errors import BadInput
from shiftproof.metrics import mean_share_by_class, object_share


def test_an_object_eight_times_smaller_than_its_class_is_still_taken_and_a_smaller_one_is_not() -> None:
    means = mean_share_by_class(np.array([0.5, 0.75, 0.25]), np.array([0, 0, 1]), classes=2)
    shares, labels = np.array([0.625, 0.625, 0.25]) / [8, 8.01, 4], np.array([0, 0, 1])
    assert is_too_small(shares, labels, means).tolist() == [False, True, False]
    assert is_too_small(shares, labels, means, times=2).tolist() == [True, True, True]


def test_the_object_fills_the_share_that_was_asked_for_and_the_window_lies_inside() -> None:
    rng = np.random.default_rng(6)
    whole = 0
    for _ in range(500):
        width, height = (float(side) for side in rng.integers(50, 500, 2))
        xs, ys = np.sort(rng.uniform(0, width, 2)), np.sort(rng.uniform(0, height, 2))
        box = (float(xs[0]), float(ys[0]), float(xs[1]), float(ys[1]))
        share = float(rng.uniform(0.01, 1))
        window = window_for_share(box, (width, height), share=share)
        assert min(window[:2]) >= 0
        assert window[2] <= width + 1e-9
        assert window[3] <= height + 1e-9
        assert window[0] <= box[0] + 1e-9
        assert window[1] <= box[1] + 1e-9
        assert window[2] >= box[2] - 1e-9
        assert window[3] >= box[3] - 1e-9
        size = np.array([[window[2] - window[0], window[3] - window[1]]])
        reached = float(object_share(np.array([box]), size)[0])
        if window == (0.0, 0.0, width, height):
            whole += 1
            assert reached >= share - 1e-9
        else:
            assert reached == pytest.approx(share)
    assert 0 < whole < 500


def test_a_window_as_wide_as_the_image_grows_in_height_instead() -> None:
    assert window_for_share((10, 45, 90, 55), (100, 100), share=0.16) == pytest.approx((0, 25, 100, 75))


def test_a_share_of_one_is_the_box_itself() -> None:
    assert window_for_share((3, 4, 10, 8), (20, 20), share=1) == (3, 4, 10, 8)


@pytest.mark.parametrize(
    ("box", "share", "message"),
    [
        ((0, 0, 5, 5), 0, "above 0 and at most 1"),
        ((0, 0, 25, 5), 0.5, "should lie inside the image of 20 x 20"),
        ((3, 3, 3, 9), 0.5, "and have an area"),
    ],
)
def test_what_has_no_window_is_refused(box: tuple[float, float, float, float], share: float, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        window_for_share(box, (20, 20), share=share)


def test_objects_of_classes_nobody_measured_are_refused() -> None:
    with pytest.raises(BadInput, match="class 3 is beyond the 2 classes"):
        is_too_small(np.array([0.1]), np.array([3]), np.array([0.5, 0.5]))
    with pytest.raises(BadInput, match="times should be above 0"):
        is_too_small(np.array([0.1]), np.array([0]), np.array([0.5]), times=0)
