"""Marks painted into images are looked for in the inputs, where the window says they are."""

import numpy as np
import pytest
from numpy.typing import NDArray

from shiftproof.models.options import parse_preprocessing
from shiftproof.models.preprocessing import ImagePreprocessing, letterbox

PLAIN = "bytes,layout=nhwc,channels=grey"
RULES = [
    f"{PLAIN},resize=256,size=224",
    f"{PLAIN},resize=200,size=120x180",
    f"{PLAIN},resize=crop,share=0.875,size=96",
    f"{PLAIN},resize=squash,size=100x160",
    f"{PLAIN},resize=letterbox,size=416,pad=corner",
    f"{PLAIN},resize=letterbox,size=416x320,pad=centre",
    f"{PLAIN},resize=letterbox,size=416,engine=opencv",
    f"{PLAIN},resize=none",
]
SHAPES = [(300, 400), (400, 300), (333, 501), (90, 70), (640, 640), (100, 9000)]
MARK = 255


def centre_of_mark(pixels: NDArray[np.generic], background: int) -> tuple[float, float]:
    """The middle of what is brighter than the background, in pixels from the top left corner."""
    weights = np.clip(pixels.astype(float) - background, 0, None)
    rows, columns = (np.arange(side) + 0.5 for side in weights.shape)
    return float((weights.sum(1) @ rows) / weights.sum()), float((weights.sum(0) @ columns) / weights.sum())


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("rule", RULES)
def test_a_mark_lies_in_the_input_where_the_window_says(rule: str, shape: tuple[int, int]) -> None:
    preprocessing = parse_preprocessing(rule)
    left, top, right, bottom = preprocessing.window(*shape)
    half = [max(4, min(side // 8, int(seen / 50))) for side, seen in zip(shape, (bottom - top, right - left), strict=True)]
    for share in (0.35, 0.6):
        row, column = (int(side * share) if side < 1000 else side // 2 + 5 for side in shape)
        image = np.full((*shape, 3), preprocessing.pad_colour, np.uint8)
        image[row - half[0] : row + half[0], column - half[1] : column + half[1]] = MARK
        shown = preprocessing.from_image(image)[:, :, 0]
        found = centre_of_mark(shown, preprocessing.pad_colour)
        height, width = shown.shape
        back = top + found[0] * (bottom - top) / height, left + found[1] * (right - left) / width
        # half a pixel of the coarser of the two grids
        slack = 0.5 * max(1, (bottom - top) / height, (right - left) / width)
        assert back == pytest.approx((row, column), abs=slack)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_letterbox_shows_all_of_the_image_and_fills_the_rest(shape: tuple[int, int]) -> None:
    for pad in ("corner", "centre"):
        preprocessing = parse_preprocessing(f"{PLAIN},resize=letterbox,size=320x416,pad={pad},pad_colour=9")
        left, top, right, bottom = preprocessing.window(*shape)
        assert min(left, top) <= 0
        assert right >= shape[1]
        assert bottom >= shape[0]
        shown = preprocessing.from_image(np.full((*shape, 3), 200, np.uint8))[:, :, 0]
        rows, columns = (shown == 200).any(axis=1), (shown == 200).any(axis=0)
        assert np.array_equal(shown, np.where(np.outer(rows, columns), 200, 9))
        assert rows.all() or columns.all()  # as large as it fits
        if pad == "corner":
            assert rows[0]
            assert columns[0]
        else:
            assert abs(np.flatnonzero(rows)[0] - (320 - 1 - np.flatnonzero(rows)[-1])) <= 1
            assert abs(np.flatnonzero(columns)[0] - (416 - 1 - np.flatnonzero(columns)[-1])) <= 1


def test_letterboxes_by_hand() -> None:
    # 375 x 500 into 416: scale 0.832, 312 rows; 104 are left over
    assert letterbox(375, 500, (416, 416), "corner").resized == (312, 416)
    assert letterbox(375, 500, (416, 416), "centre").corner == (-52, 0)
    # 333 x 500: 277.056 rows; of 139 left over the smaller half comes first
    assert letterbox(333, 500, (416, 416), "centre").corner == (-69, 0)
    # 334 x 500: 277.888 rows are cut to 277 in the corner and rounded to 278 in the middle
    assert letterbox(334, 500, (416, 416), "corner").resized == (277, 416)
    assert letterbox(334, 500, (416, 416), "centre").resized == (278, 416)


def test_a_picture_that_was_letterboxed_already_is_not_boxed_again() -> None:
    preprocessing = parse_preprocessing("yolox,size=320x416,engine=pillow")
    image = np.random.default_rng(0).integers(0, 256, (100, 333, 3), dtype=np.uint8)
    assert np.array_equal(preprocessing.from_picture(preprocessing.cut(image)), preprocessing.from_image(image))
    assert np.array_equal(preprocessing.from_picture(image), preprocessing.from_image(image))


def test_only_a_letterbox_speaks_of_its_padding() -> None:
    assert ImagePreprocessing(pad="corner", pad_colour=7).describe() == ImagePreprocessing().describe()
    assert parse_preprocessing("yolox").describe()["pad"] == "corner"
