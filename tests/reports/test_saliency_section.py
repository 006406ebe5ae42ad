"""Heat drawn over photos, and the section that shows it."""

from __future__ import annotations

import base64
import io
import re
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image as Pillow

from shiftproof.reports.build import build_report
from shiftproof.reports.page import Page
from shiftproof.reports.parts import Chart, Pictures, Table
from shiftproof.reports.pictures import COLOURS, UNSEEN, colours_of, with_heat
from shiftproof.studies.saliency import BY_CHANCE, PREDICTED, TRUE
from shiftproof.studies.saliency.section import draw_saliency, saliency_headlines
from shiftproof.types import DatasetRef, DrawnBox, DrawnHeat, Gallery, GalleryItem, Interval, Measurement, Results

NARROW = "\u202f"
PHOTOS = DatasetRef("photos", "0")
ABOUT = {"model": "net", "dataset": "photos"}
CORNER = DrawnHeat(((1.0, 0.0), (0.0, 0.0)), (0.25, 0.0, 0.75, 1.0))


def lightness(colour: Any) -> float:
    """L* of CIELAB, of an sRGB colour in bytes."""
    share = np.asarray(colour, float) / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    luminance = float(linear @ np.array([0.2126, 0.7152, 0.0722]))
    return 116 * np.cbrt(luminance) - 16 if luminance > 0.008856 else 903.3 * luminance


def test_warmer_colours_are_lighter_by_about_as_much_each_time() -> None:
    steps = np.diff([lightness(colour) for colour in COLOURS])
    assert steps.min() > 10
    assert steps.max() < 1.7 * steps.min()


def test_the_ends_of_the_scale_are_its_first_and_last_colour() -> None:
    assert np.array_equal(colours_of(np.array([0.0, 1.0])), [COLOURS[0], COLOURS[-1]])


@pytest.fixture
def over_grey() -> NDArray[np.uint8]:
    return with_heat(np.full((100, 200, 3), 100, np.uint8), CORNER)


def test_what_the_model_does_not_see_is_dark_and_without_colour(over_grey: NDArray[np.uint8]) -> None:
    assert np.array_equal(over_grey[:, :50], np.full((100, 50, 3), 100 * UNSEEN))
    assert np.array_equal(over_grey[:, 150:], np.full((100, 50, 3), 100 * UNSEEN))


def test_the_hot_corner_is_warm_and_the_others_are_cold(over_grey: NDArray[np.uint8]) -> None:
    hot, *cold = (over_grey[row, column].astype(int) for row, column in ((2, 52), (2, -53), (-3, 52), (-3, -53)))
    assert hot[0] > hot[2] + 80
    assert all(one[2] > one[0] and lightness(one) < lightness(hot) - 30 for one in cold)


def test_padding_of_a_letterbox_is_not_drawn() -> None:
    heat = DrawnHeat(((1.0, 1.0), (0.0, 0.0)), (0.0, -0.5, 1.0, 1.5))  # the upper half of the input is above the image
    drawn = with_heat(np.full((100, 200, 3), 100, np.uint8), heat)
    assert drawn.shape == (100, 200, 3)
    assert lightness(drawn[0, 100]) > lightness(drawn[-1, 100])
    assert lightness(drawn[0, 100]) < lightness(with_heat(np.full((100, 200, 3), 100, np.uint8), CORNER)[2, 52])


def results(*, boxed: bool = True) -> Results:
    """A mistake and a right answer, as the study tells them."""
    box = (DrawnBox((0.5, 0.0, 0.75, 1.0), "truth"),) if boxed else ()
    items = [
        GalleryItem("a.png", "labelled cat", boxes=box),
        GalleryItem("a.png", "for the predicted class, eel 60 %, off the object", boxes=box, heat=CORNER),
        GalleryItem("a.png", "for the true class, cat", boxes=box, heat=CORNER),
    ]
    told = {BY_CHANCE: "50 %"}
    values = {"pointing_game_miss_rate": 0.5, "salient_region_miss_rate": 0.25, "saliency_on_object": 0.4}
    numbers = [
        Measurement(metric, value, {**ABOUT, "predictions": which, "map": of}, 12, told, Interval(value / 2, 1.0))
        for metric, value in values.items()
        for which, of in (("misclassified", PREDICTED), ("misclassified", TRUE), ("correct", PREDICTED))
    ]
    gallery = Gallery(
        "saliency_misclassified",
        {**ABOUT, "predictions": "misclassified", "saliency_method": "occlusion by hand"},
        PHOTOS,
        "Saliency maps of misclassified images",
        tuple(items),
    )
    return Results((*(numbers if boxed else ()), gallery))


def open_grey(_set: DatasetRef, _key: str) -> NDArray[np.uint8]:
    return np.full((100, 200, 3), 100, np.uint8)


def test_the_section_has_the_numbers_and_each_photo_beside_its_two_maps() -> None:
    found = results()
    section = draw_saliency(found.shown, Page(found, open_grey))
    chart, table, pictures = section.parts
    assert list(section.main) == [chart]
    assert isinstance(chart, Chart)
    assert isinstance(table, Table)
    assert isinstance(pictures, Pictures)
    assert {row["label"] for row in chart.spec["data"]["values"]} == {
        "misclassified, map of the predicted class",
        "misclassified, map of the true class",
        "correct",
    }
    assert "Spread evenly, 50 % of the saliency of misclassified images would lie on the object." in table.note.replace(
        NARROW, " "
    )
    assert pictures.abreast == 3
    assert "Occlusion by hand. Dark edges" in pictures.note
    assert all(picture.boxes for picture in pictures.pictures)


def test_only_the_maps_are_coloured() -> None:
    found = results()
    pictures = draw_saliency(found.shown, Page(found, open_grey)).parts[-1]
    assert isinstance(pictures, Pictures)
    photo, answer, _ = (
        np.asarray(Pillow.open(io.BytesIO(base64.b64decode(one.address.partition(",")[2])))).astype(int)
        for one in pictures.pictures
    )
    assert np.ptp(photo, axis=2).max() <= 3
    assert np.ptp(answer, axis=2).max() > 80


def test_the_summary_says_how_often_saliency_misses_the_object() -> None:
    (sentence,) = saliency_headlines(Page(results()))
    assert sentence.replace(NARROW, " ") == (
        "About 25 of 100 misclassified images have their salient region off the object (95 % CI 12.5 to 100.0 %, 12 images)."
    )


@pytest.mark.parametrize("boxed", [True, False])
def test_the_report_holds_the_maps_and_stands_three_abreast(boxed: bool) -> None:
    page = build_report(results(boxed=boxed), open_image=open_grey)
    shown = re.search(r'<ul class="gallery together boxed (look-\d+)">', page)
    assert shown is not None, "whole pictures: a crop would hide heat"
    assert f".{shown[1]}{{--abreast:3}}" in page
    assert page.count("data:image/webp;base64,") == 2, "the photo and its two maps, which are the same"
    assert page.count("data-same=") == 1
    assert "for the true class, cat" in page
