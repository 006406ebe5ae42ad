import pickle
import sys

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from shiftproof.errors import BadInput, ShiftproofError
from shiftproof.models.options import PRESETS, parse_preprocessing
from shiftproof.models.preprocessing import Channels, ImagePreprocessing, InputType, resized_to
from shiftproof.types import Preprocessing

SHAPES = [(375, 500), (500, 375), (256, 341), (333, 256), (256, 256), (224, 900), (1000, 300), (97, 61), (300, 257)]


def published_pixels(image: NDArray[np.uint8], resize: int, crop: int, interpolation: Image.Resampling) -> NDArray[np.uint8]:
    """Shorter side, then centre crop, one step after the other as the published pipelines do it."""
    picture = Image.fromarray(image)
    width, height = picture.size
    size = (resize, int(resize * height / width)) if width <= height else (int(resize * width / height), resize)
    picture = picture.resize(size, interpolation)
    left = round((size[0] - crop) / 2.0)
    top = round((size[1] - crop) / 2.0)
    return np.asarray(picture.crop((left, top, left + crop, top + crop)))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
def test_shorter_side_and_crop_are_the_published_pixels_to_the_bit(shape: tuple[int, int], interpolation: str) -> None:
    image = np.random.default_rng(1).integers(0, 256, (*shape, 3), dtype=np.uint8)
    ours = parse_preprocessing(f"bytes,interpolation={interpolation},dtype=uint8,layout=nhwc").from_image(image)
    assert np.array_equal(ours, published_pixels(image, 256, 224, Image.Resampling[interpolation.upper()]))


@pytest.mark.parametrize("crop", [223, 225, 232, 256])
def test_odd_margins_round_as_published(crop: int) -> None:
    image = np.random.default_rng(2).integers(0, 256, (375, 500, 3), dtype=np.uint8)
    ours = parse_preprocessing(f"bytes,resize=256,size={crop},dtype=uint8,layout=nhwc").from_image(image)
    assert np.array_equal(ours, published_pixels(image, 256, crop, Image.Resampling.BILINEAR))


def test_the_lite_rule_crops_a_share_of_the_shorter_side_and_then_resizes(photo: NDArray[np.uint8]) -> None:
    ours = PRESETS["lite"].from_image(photo)
    side = int(375 * 224 / 256)
    top, left = (375 - side + 1) // 2, (500 - side + 1) // 2
    cropped = Image.fromarray(photo).crop((left, top, left + side, top + side)).resize((224, 224), Image.Resampling.BICUBIC)
    expected = (np.asarray(cropped, np.float32) - 127) / 128
    assert np.allclose(ours, expected.transpose(2, 0, 1), atol=1e-6)


def test_normalisation_is_what_the_figures_say(photo: NDArray[np.uint8]) -> None:
    ours = PRESETS["imagenet"].from_image(photo)
    pixels = published_pixels(photo, 256, 224, Image.Resampling.BILINEAR).astype(np.float64) / 255
    expected = (pixels - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    assert ours.dtype == np.float32
    assert ours.flags.c_contiguous
    assert np.abs(np.subtract(ours, expected.transpose(2, 0, 1))).max() < 1e-6


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_layouts_and_half_precision_hold_the_same_numbers(photo: NDArray[np.uint8], layout: str) -> None:
    single = PRESETS["imagenet"].from_image(photo)
    other = parse_preprocessing(f"imagenet,layout={layout}").from_image(photo)
    half = parse_preprocessing(f"imagenet,layout={layout},dtype=float16").from_image(photo)
    assert half.dtype == np.float16
    assert np.array_equal(half, other.astype(np.float16))
    assert np.array_equal(other if layout == "nchw" else other.transpose(2, 0, 1), single)


def test_blue_comes_first_where_asked_and_the_mean_follows_the_models_order(photo: NDArray[np.uint8]) -> None:
    ours = PRESETS["caffe"].from_image(photo)
    pixels = published_pixels(photo, 256, 224, Image.Resampling.BILINEAR).astype(np.float64)
    assert np.allclose(ours[0], pixels[:, :, 2] - 104, atol=1e-4)
    assert np.allclose(ours[2], pixels[:, :, 0] - 123, atol=1e-4)


def test_minus_one_to_one_reaches_both_ends() -> None:
    image = np.array([[[0, 0, 0], [255, 255, 255]]], np.uint8)
    ours = parse_preprocessing("unit,range=-1..1,resize=none").from_image(image)
    assert (ours.min(), ours.max()) == (-1, 1)


def test_a_picture_is_resized_whole_and_never_cropped(photo: NDArray[np.uint8]) -> None:
    for preset in ("imagenet", "lite", "caffe"):
        preprocessing = parse_preprocessing(f"{preset},range=255,mean=0,std=1,channels=rgb,layout=nhwc")
        whole = Image.fromarray(photo).resize((224, 224), Image.Resampling[preprocessing.interpolation.upper()])
        assert np.array_equal(preprocessing.from_picture(photo), np.asarray(whole, np.float32))


def test_a_picture_of_the_right_size_keeps_its_pixels() -> None:
    picture = np.random.default_rng(3).integers(0, 256, (224, 224, 3), dtype=np.uint8)
    assert np.array_equal(parse_preprocessing("bytes,layout=nhwc").from_picture(picture), picture)


def test_no_resizing_takes_any_size() -> None:
    preprocessing = parse_preprocessing("imagenet,resize=none")
    assert preprocessing.from_image(np.zeros((17, 31, 3), np.uint8)).shape == (3, 17, 31)


def test_grey_models_get_one_channel(photo: NDArray[np.uint8]) -> None:
    ours = parse_preprocessing("bytes,channels=grey,resize=squash,size=28").from_image(photo)
    assert ours.shape == (1, 28, 28)


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_pickles_describes_itself_and_can_be_typed_again(preset: str) -> None:
    preprocessing = PRESETS[preset]
    assert isinstance(preprocessing.describe(), dict)
    assert parse_preprocessing(str(preprocessing)) == preprocessing
    assert pickle.loads(pickle.dumps(preprocessing)) == preprocessing
    checked: Preprocessing = preprocessing
    assert checked.decoder == "pillow"


@pytest.mark.parametrize("preset", PRESETS)
def test_bounds_hold_for_every_pixel(preset: str) -> None:
    preprocessing = parse_preprocessing(preset)
    ends = np.stack([np.zeros((300, 300, 3), np.uint8), np.full((300, 300, 3), 255, np.uint8)])
    values = np.stack([preprocessing.from_image(image) for image in ends])
    assert np.allclose((values.min(), values.max()), preprocessing.bounds, rtol=1e-5)


def test_input_is_left_alone_and_results_repeat(photo: NDArray[np.uint8]) -> None:
    before = photo.copy()
    first, again = (PRESETS["imagenet"].from_image(photo) for _ in range(2))
    assert np.array_equal(first, again)
    assert np.array_equal(photo, before)


def test_opencv_is_another_filter_of_the_same_picture(photo: NDArray[np.uint8]) -> None:
    pytest.importorskip("cv2", reason="opencv is not installed")
    ours = parse_preprocessing("bytes,engine=opencv,interpolation=box").from_image(photo)
    pillow = parse_preprocessing("bytes,interpolation=box").from_image(photo)
    assert ours.shape == pillow.shape
    assert 0 < np.abs(np.subtract(ours, pillow, dtype=np.float32)).mean() < 4


def test_a_new_size_keeps_the_part_of_the_image_that_is_seen() -> None:
    assert parse_preprocessing("imagenet,size=112").shorter == 128
    assert parse_preprocessing("imagenet", size=(112, 112)).shorter == 128
    assert parse_preprocessing("imagenet,resize=120", size=(112, 112)).shorter == 120
    assert resized_to(PRESETS["lite"], (240, 240)).share == PRESETS["lite"].share


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("imagnet", "did you mean imagenet"),
        ("imagenet,chanels=bgr", "did you mean channels"),
        ("imagenet,size=big", "for example size=224"),
        ("imagenet,size=224x224x3", "for example size=224"),
        ("imagenet,channels=gbr", "rgb, bgr, grey"),
        ("imagenet,mean=1/2", "one a channel"),
        ("imagenet,std=0", "divided by it"),
        ("imagenet,size=224,resize=200", "too small"),
        ("size=224,imagenet", "comes first"),
        ("imagenet,dtype=uint8", "range=255"),
        ("imagenet,engine=opencv,interpolation=hamming", "not hamming"),
        ("imagenet,resize=shortest", "squash"),
    ],
)
def test_a_slip_in_the_text_is_named(text: str, answer: str) -> None:
    with pytest.raises(ShiftproofError, match=answer):
        parse_preprocessing(text)


def test_a_size_needs_a_rule() -> None:
    with pytest.raises(BadInput, match="size=any"):
        ImagePreprocessing(size=None)


@pytest.mark.parametrize("engine", ["pillow", "opencv"])
@pytest.mark.parametrize("shape", [(60_000, 1), (1, 60_000), (40_000, 7)])
def test_a_very_long_strip_is_seen_in_its_middle(shape: tuple[int, int], engine: str) -> None:
    if engine == "opencv":
        pytest.importorskip("cv2", reason="opencv is not installed")
    strip = np.zeros((*shape, 3), np.uint8)
    middle = tuple(slice(side // 2 - 10, side // 2 + 10) if side > 20 else slice(None) for side in shape)
    strip[middle] = 255
    seen = parse_preprocessing(f"unit,engine={engine}").from_image(strip)
    assert seen.shape == (3, 224, 224)
    assert seen.min() == 1


@pytest.mark.parametrize("text", ["lite,size=300", "caffe,size=227", "squash,size=64x32", "size=any"])
def test_what_is_printed_can_be_typed_again(text: str) -> None:
    preprocessing = parse_preprocessing(text)
    assert parse_preprocessing(str(preprocessing)) == preprocessing


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("channels", ["rgb", "bgr", "grey"])
def test_inputs_are_the_same_to_the_bit_whether_opencv_is_loaded_or_not(
    channels: Channels, dtype: InputType, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("cv2", reason="opencv is not installed")
    image = np.random.default_rng(0).integers(0, 256, (61, 47, 3), dtype=np.uint8)
    preprocessing = ImagePreprocessing((40, 40), shorter=44, mean=(0.4,), std=(0.2,), channels=channels, dtype=dtype)
    views = [image, image[5:, 3:], image[::-1, ::-1], np.asfortranarray(image), image[:1, :1]]
    loaded = [preprocessing.from_image(view).tobytes() for view in views]
    monkeypatch.setitem(sys.modules, "cv2", None)
    assert [preprocessing.from_image(view).tobytes() for view in views] == loaded


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint16, np.int32])
def test_levels_that_are_not_bytes_are_the_same_whether_opencv_is_loaded_or_not(
    dtype: type[np.generic], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("cv2", reason="opencv is not installed")
    levels = np.random.default_rng(0).integers(0, 256, (61, 47, 3), dtype=np.uint8)
    preprocessing = ImagePreprocessing(None, "none")
    expected = preprocessing.from_image(levels)
    assert np.array_equal(preprocessing.from_image(levels.astype(dtype)), expected)
    monkeypatch.setitem(sys.modules, "cv2", None)
    assert np.array_equal(preprocessing.from_image(levels.astype(dtype)), expected)
