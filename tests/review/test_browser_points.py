"""Extreme points, by keys and by pointer: the box that is kept is the one that was drawn."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from review.browsing import Reviewing
from shiftproof.curation.project import Item
from shiftproof.metrics import scale_factor
from shiftproof.review.validation import box_of
from shiftproof.studies.objects.scales import factor_name

pytestmark = pytest.mark.real

SitDown = Callable[..., Reviewing]
STEP, LEAP = 0.005, 10  # of the longer side, by an arrow key; times that with Shift


def steps(reviewing: Reviewing) -> tuple[float, float]:
    """How far one press of an arrow key goes across and down, in shares of the picture that is there."""
    reviewing.item()
    width, height = reviewing.page.evaluate(
        "() => [image.naturalWidth, image.naturalHeight]".replace("image", "stage.querySelector('img')")
    )
    return STEP * max(width, height) / width, STEP * max(width, height) / height


def go(reviewing: Reviewing, *ways: tuple[str, int]) -> None:
    """Presses arrow keys so many times each."""
    for key, times in ways:
        for _ in range(times):
            reviewing.page.keyboard.press(key)


def draw(reviewing: Reviewing) -> None:
    """Four points with the keyboard alone: to the left of the middle, then above that, then right, then below."""
    for way in (("Shift+ArrowLeft", 2), ("Shift+ArrowUp", 3), ("Shift+ArrowRight", 5), ("Shift+ArrowDown", 4)):
        go(reviewing, way)
        reviewing.page.keyboard.press("Space")


def test_a_box_is_drawn_and_kept_by_keys_alone(sit_down: SitDown) -> None:
    ada = sit_down("extreme-points", count=2)
    ada.begin()
    across, down = steps(ada)
    item = ada.item()
    draw(ada)
    assert ada.said() == "Point 4 of 4."
    assert ada.is_seen(".marks .box.whole")
    go(ada, ("ArrowDown", 3))  # with all four set, the last one is moved
    ada.page.keyboard.press("Enter")
    expected = (0.5 - 2 * LEAP * across, 0.5 - 3 * LEAP * down, 0.5 + 3 * LEAP * across, 0.5 + (LEAP + 3) * down)
    assert box_of(ada.answers()[item]) == pytest.approx(expected)


def test_in_training_the_right_box_is_drawn_beside_ones_own(sit_down: SitDown) -> None:
    points = [[0.5, 0.1], [0.1, 0.5], [0.5, 0.2], [0.2, 0.5]]  # far from what is drawn below
    known = Item("known", ("0.png",), "bird", role="training", answer={"choice": "box", "points": points})
    ada = sit_down("extreme-points", count=2, items=(known, Item("asked", ("1.png",), "bird")))
    ada.begin()
    assert ada.item() == "known"
    draw(ada)
    ada.page.keyboard.press("Enter")
    ada.page.locator("#interlude").wait_for()
    (right,) = ada.page.locator(".marks .other").all()
    assert right.inner_text() == "Right"
    assert right.evaluate("box => [box.style.left, box.style.top, box.style.width]") == ["10%", "10%", "40%"]
    assert "Not quite" in ada.go_on()
    assert "The training is over" in ada.go_on()
    assert ada.item() == "asked"
    assert ada.page.locator(".marks .other").count() == 0


def test_a_point_that_is_dropped_can_be_set_again_a_little_beside(sit_down: SitDown) -> None:
    ada = sit_down("extreme-points", count=2)
    ada.begin()
    across, _ = steps(ada)
    item = ada.item()
    draw(ada)
    ada.page.keyboard.press("Backspace")
    assert ada.page.locator(".told").inner_text() == "3 of 4 points are set."
    go(ada, ("ArrowRight", 1))
    ada.page.keyboard.press("Enter")  # sets the point that is missing
    ada.page.keyboard.press("Enter")  # and keeps the box
    assert ada.answers()[item]["points"][3][0] == pytest.approx(0.5 + (3 * LEAP + 1) * across)


def test_a_box_that_is_taken_back_is_still_there_to_be_mended(sit_down: SitDown) -> None:
    ada = sit_down("extreme-points", count=2)
    ada.begin()
    _, down = steps(ada)
    item = ada.item()
    draw(ada)
    ada.press("Enter")
    first = ada.answers()[item]["points"]
    ada.press("z")
    assert ada.item() == item
    go(ada, ("ArrowDown", 2))
    ada.press("Enter")
    again = ada.answers()[item]["points"]
    assert again[:3] == first[:3]
    assert again[3] == pytest.approx([first[3][0], first[3][1] + 2 * down])


def test_a_key_that_is_held_moves_the_crosshair_and_sets_no_points(sit_down: SitDown) -> None:
    ada = sit_down("extreme-points", count=2)
    ada.begin()
    ada.item()
    place = "() => document.querySelector('.line.down').style.left"
    before = float(ada.page.evaluate(place).rstrip("%"))
    for _ in range(6):
        ada.page.keyboard.down("ArrowRight")  # all but the first are repeats
    ada.page.keyboard.up("ArrowRight")
    across, _ = steps(ada)
    assert float(ada.page.evaluate(place).rstrip("%")) == pytest.approx(before + 600 * across)
    for _ in range(4):
        ada.page.keyboard.down("Space")
    ada.page.keyboard.up("Space")
    assert ada.page.locator(".dot").count() == 1


@pytest.mark.parametrize("closer", [0, 3])
def test_a_click_sets_a_point_where_it_is_and_arrows_nudge_it(sit_down: SitDown, closer: int) -> None:
    ada = sit_down("extreme-points", count=2)
    ada.begin()
    across, _ = steps(ada)
    item = ada.item()
    for _ in range(closer):
        ada.page.keyboard.press("+")
    scale = 1.5**closer
    for x, y in ((0.45, 0.5), (0.55, 0.5), (0.5, 0.45), (0.5, 0.55)):
        picture = ada.page.locator("#stage img").bounding_box()
        assert picture is not None
        ada.page.mouse.click(picture["x"] + x * picture["width"], picture["y"] + y * picture["height"])
        go(ada, ("ArrowRight", 2))
    ada.page.keyboard.press("Enter")
    near = 1 / 400  # browsers put pointers on whole pixels
    for (x, y), wanted in zip(ada.answers()[item]["points"], (0.45, 0.55, 0.5, 0.5), strict=True):
        assert x == pytest.approx(wanted + 2 * across / scale, abs=near)
        assert 0.4 < y < 0.6


def test_points_without_an_area_between_them_are_no_box(sit_down: SitDown) -> None:
    ada = sit_down("extreme-points", count=2)
    ada.begin()
    ada.press("Space", "Space", "Space", "Space", "Enter")
    assert ada.said() == "A box needs an area: drop a point with Backspace."
    assert ada.votes() == []


def test_a_picture_without_a_box_may_have_its_reason(sit_down: SitDown) -> None:
    ada = sit_down("extreme-points", count=2)
    ada.begin()
    seen = ada.press("d")
    ada.press("3")
    ada.press("d")
    assert ada.answers()[seen[0]] == {"choice": "delete", "reasons": ["label wrong"]}


def test_the_page_tells_the_same_scale_factors_as_the_studies(sit_down: SitDown) -> None:
    ada = sit_down("extreme-points", count=2)
    ada.begin()
    ada.item()
    rng = np.random.default_rng(6)
    corners = rng.uniform(size=(400, 2, 2)) ** rng.integers(1, 4, (400, 1, 1))
    corners[:200, 1] = corners[:200, 0] + rng.choice([1, 1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 107 / 224, 0.01], (200, 1))
    boxes = np.concatenate([corners.min(axis=1), corners.max(axis=1)], axis=1)
    told = ada.page.evaluate(
        """async (boxes) => {
          const { factorName, scaleFactor } = await import("/static/boxes.js");
          const named = ([left, top, right, bottom]) => ({ left, top, right, bottom });
          return boxes.map((box) => factorName(scaleFactor(named(box))));
        }""",
        boxes.tolist(),
    )
    expected = [factor_name(factor) for factor in scale_factor(boxes, side=1)]
    assert told == expected
    assert len(set(expected)) == 5
