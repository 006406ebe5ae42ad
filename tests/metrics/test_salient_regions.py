from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import rankdata

from shiftproof.errors import BadInput
from shiftproof.metrics import pointing_game_hit, saliency_on_object, salient_region, salient_region_meets

RNG = np.random.default_rng(11)
HEAT = RNG.integers(0, 6, (40, 5, 7)).astype(float)  # with many ties
INSIDE = RNG.random((40, 5, 7)) < 0.3


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5, 1.0])
def test_the_hot_region_holds_all_places_with_fewer_than_the_share_above_them(share: float) -> None:
    for heat, region in zip(HEAT, salient_region(HEAT, share=share), strict=True):
        hotter = heat.size - rankdata(heat, method="max").reshape(heat.shape)
        assert np.array_equal(region, (hotter < share * heat.size) & (heat > 0))


def test_cold_places_are_no_hot_region_though_there_are_too_few_hot_ones() -> None:
    heat, beside = np.zeros((1, 10, 10)), np.ones((1, 10, 10), bool)
    heat[0, 4, 4:7], beside[0, 4, 4:7] = 1, False  # 3 of 100 places
    assert salient_region(heat, share=0.1).sum() == 3
    assert not salient_region_meets(heat, beside, share=0.1).any()


def test_heat_inside_and_outside_are_all_the_heat() -> None:
    both = saliency_on_object(HEAT, INSIDE) + saliency_on_object(HEAT, ~INSIDE)
    assert both == pytest.approx(np.ones(40))


def test_even_heat_lies_inside_as_much_as_the_object_fills() -> None:
    assert saliency_on_object(np.ones(HEAT.shape), INSIDE) == pytest.approx(INSIDE.mean(axis=(1, 2)))


def test_a_region_meets_the_object_wherever_its_hottest_point_does_and_a_larger_one_as_often_or_more() -> None:
    point = pointing_game_hit(HEAT, INSIDE)
    small, large = (salient_region_meets(HEAT, INSIDE, share=share) for share in (0.05, 0.4))
    assert (point <= small).all()
    assert (small <= large).all()
    assert point.sum() < large.sum()


def test_a_map_without_heat_has_no_share_inside() -> None:
    assert np.isnan(saliency_on_object(np.zeros((1, 2, 2)), np.ones((1, 2, 2), bool))).all()


def test_no_images_have_no_shares() -> None:
    nothing = np.zeros((0, 4, 4))
    assert saliency_on_object(nothing, nothing > 0).shape == salient_region_meets(nothing, nothing > 0).shape == (0,)


@pytest.mark.parametrize(
    ("heat", "inside", "message"),
    [
        (np.ones((2, 3, 3)), np.ones((2, 3, 4), bool), "expected \\(images, rows, columns\\)"),
        (-np.ones((1, 2, 2)), np.ones((1, 2, 2), bool), "nowhere be below 0"),
    ],
)
def test_maps_that_cannot_be_judged_are_refused(heat: np.ndarray, inside: np.ndarray, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        saliency_on_object(heat, inside)


def test_a_share_of_nothing_is_refused() -> None:
    with pytest.raises(BadInput, match="above 0 and at most 1"):
        salient_region(HEAT, share=0)
