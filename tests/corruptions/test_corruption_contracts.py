"""What every corruption of the catalog promises, whatever it does to a picture."""

from __future__ import annotations

import dataclasses
import inspect
from functools import cache
from itertools import chain
from typing import Any

import numpy as np
import pytest

import shiftproof as sp
from shiftproof import catalog
from shiftproof.corruptions import IMAGENET_C, corruption_groups, corruption_of
from shiftproof.corruptions.apply import SizeWarning, apply, to_rgb
from shiftproof.corruptions.editions import edition_of, severity_parameters
from shiftproof.errors import BadInput, ShiftproofError, UnknownName
from shiftproof.randomness import rng_for
from shiftproof.studies.corruption.cells import EVERY_SEVERITY, alexnet_errors
from shiftproof.types import Condition, Image

NAMES = tuple(catalog.CORRUPTIONS)
DRAWN_AT_RANDOM = tuple(name for name in NAMES if corruption_of(name).random)
SHAPES = ((1, 1), (1, 7), (7, 1), (2, 2), (3, 3), (5, 3), (33, 65), (31, 32), (65, 20))
any_size = pytest.mark.filterwarnings("ignore::shiftproof.corruptions.apply.SizeWarning")


def drawn(height: int, width: int) -> Image:
    """A picture with slopes, edges, flat parts, black, white and noise; each time another copy of it."""
    return drawn_once(height, width).copy()


@cache
def drawn_once(height: int, width: int) -> Image:
    down, right = np.mgrid[0:height, 0:width] / max(height, width)
    image = np.stack([255 * down, 255 * right, 127 * (1 + np.sin(9 * (down + right)))], axis=2)
    image[height // 4 : height // 2, width // 4 : width // 2] = (250, 30, 60)
    image[: height // 5] = 0
    image[:, : width // 6] = 255
    image[height * 3 // 4 :] += np.random.default_rng(6).normal(0, 25, image[height * 3 // 4 :].shape)
    picture: Image = np.clip(image, 0, 255).astype(np.uint8)
    return picture


@pytest.mark.parametrize("edition", catalog.EDITIONS)
@pytest.mark.parametrize("severity", range(1, 6))
@pytest.mark.parametrize("name", NAMES)
def test_a_corruption_keeps_shape_repeats_changes_pixels_and_leaves_its_input_alone(
    name: str, severity: int, edition: str
) -> None:
    size = edition_of(edition).size
    picture = drawn(size, size)
    before = picture.copy()
    first, again = (sp.corrupt(picture, name, severity, key="a.png", edition=edition) for _ in range(2))
    assert first.shape == picture.shape
    assert first.dtype == np.uint8
    assert first.flags.c_contiguous
    assert first.flags.writeable
    assert not np.shares_memory(first, picture)
    assert np.array_equal(first, again)
    assert np.array_equal(picture, before)
    # a draw may leave a picture alone, as a checkerboard none of whose squares is cut out
    others = (sp.corrupt(picture, name, severity, key=key, edition=edition) for key in ("b.png", "c.png", "d.png"))
    assert any(not np.array_equal(found, picture) for found in chain([first], others))


@any_size
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", NAMES)
def test_a_corruption_takes_pictures_of_any_size(name: str, shape: tuple[int, int]) -> None:
    picture = drawn(*shape)
    for severity in (1, 2, 3, 4, 5):
        for edition in ("imagenet-224", "tiny-64", "cifar-32"):
            for scale_severity in (False, True):
                changed = sp.corrupt(picture, name, severity, key="a.png", edition=edition, scale_severity=scale_severity)
                assert changed.shape == picture.shape
                assert changed.dtype == np.uint8
                assert not np.shares_memory(changed, picture)


@any_size
@pytest.mark.parametrize("name", NAMES)
def test_the_layout_of_the_memory_does_not_matter(name: str) -> None:
    wide = drawn(40, 96)
    every_other = wide[:, ::2]
    turned = np.asfortranarray(every_other)
    mirrored = np.ascontiguousarray(every_other[:, ::-1])[:, ::-1]
    locked = every_other.copy()
    locked.setflags(write=False)
    expected = sp.corrupt(np.ascontiguousarray(every_other), name, 3, key="a.png")
    for picture in (every_other, turned, mirrored, locked):
        assert np.array_equal(sp.corrupt(picture, name, 3, key="a.png"), expected)


@any_size
@pytest.mark.parametrize("name", NAMES)
def test_a_grey_image_is_corrupted_as_the_rgb_image_of_the_same_grey(name: str) -> None:
    grey = drawn(48, 48)[..., 1]
    expected = sp.corrupt(np.stack([grey] * 3, axis=2), name, 3, key="a.png")
    assert np.array_equal(sp.corrupt(grey, name, 3, key="a.png"), expected)
    assert np.array_equal(sp.corrupt(grey[..., None], name, 3, key="a.png"), expected)


@pytest.mark.parametrize("name", NAMES)
def test_chance_hangs_on_seed_key_severity_and_edition_and_on_nothing_else(name: str) -> None:
    picture = drawn(64, 64)

    def corrupted(**changes: Any) -> Image:
        return sp.corrupt(picture, name, **{"severity": 4, "key": "a.png", "seed": 0, "edition": "tiny-64", **changes})

    same = np.array_equal(corrupted(), corrupted(key="b.png")), np.array_equal(corrupted(), corrupted(seed=1))
    assert same == ((False, False) if name in DRAWN_AT_RANDOM else (True, True))
    np.random.seed(0)
    first = corrupted()
    np.random.seed(1)
    assert np.array_equal(corrupted(), first)


def test_draws_hang_on_the_seed_that_is_given_and_not_on_an_equal_one_before() -> None:
    def corrupted(seed: Any) -> bytes:
        return sp.corrupt(drawn(32, 32), "gaussian_noise", edition="cifar-32", seed=seed).tobytes()

    in_turn = [corrupted(seed) for seed in (0.0, -0.0, 1, True, 1.0)]
    assert len(set(in_turn)) == len(in_turn)
    assert corrupted(np.array(1)) == corrupted(np.int64(1)) == corrupted(1)


def test_a_corruption_that_draws_though_it_is_declared_not_to_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = dataclasses.replace(corruption_of("gaussian_noise"), random=False)
    monkeypatch.setattr("shiftproof.corruptions.apply.corruption_of", lambda _: entry)
    with pytest.raises(BadInput, match="without random=False"):
        sp.corrupt(drawn(32, 32), "gaussian_noise", edition="cifar-32")


def test_an_image_alone_or_among_others_in_any_order_gets_the_same_bytes() -> None:
    picture = drawn(32, 32)
    work = [(name, severity, key) for name in NAMES for severity in (1, 5) for key in ("a.png", "b.png")]
    alone = {each: sp.corrupt(picture, each[0], each[1], key=each[2], edition="cifar-32").tobytes() for each in work}
    rng = np.random.default_rng(3)
    for _ in range(2):
        for number in rng.permutation(len(work)):
            name, severity, key = work[number]
            again = sp.corrupt(picture, name, severity, key=key, edition="cifar-32").tobytes()
            assert again == alone[name, severity, key], (name, severity)


@pytest.mark.parametrize("name", NAMES)
def test_a_corruption_is_a_pure_function_of_picture_generator_and_its_parameters(name: str) -> None:
    function = corruption_of(name).function
    parameters = inspect.signature(function).parameters
    assert list(parameters)[:2] == ["image", "rng"]
    given = severity_parameters(name, 3, "imagenet-224")
    named = {key for key, parameter in parameters.items() if parameter.kind is inspect.Parameter.KEYWORD_ONLY}
    assert set(given) <= named
    assert all(parameters[extra].default is not inspect.Parameter.empty for extra in named - set(given))
    picture, condition = drawn(64, 64), Condition(name, 3, edition="tiny-64")
    by_hand = function(picture, rng_for("a.png", condition), **severity_parameters(name, 3, "tiny-64"))
    assert np.array_equal(by_hand, apply(condition, picture, key="a.png"))


def test_every_corruption_has_severity_parameters_a_title_and_a_group() -> None:
    assert sorted(name for group in corruption_groups().values() for name in group) == sorted(NAMES)
    assert {*IMAGENET_C, *corruption_groups()["extra"], *corruption_groups()["c-bar"]} == set(NAMES)
    columns = {edition_of(name).severities for name in catalog.EDITIONS}
    titles = [corruption_of(name).title for name in NAMES]
    assert len(set(titles)) == len(titles)
    for name in NAMES:
        severities = corruption_of(name).severities
        assert severities.rows or set(severities.editions) == columns
        assert len(severities) == 5


def test_jpeg85_saves_the_same_draw() -> None:
    from shiftproof.corruptions.kernels.jpeg import jpeg85

    picture = drawn(32, 32)
    raw = sp.corrupt(picture, "shot_noise", 3, key="a.png", edition="cifar-32")
    saved = sp.corrupt(picture, "shot_noise", 3, key="a.png", edition="cifar-32", output="jpeg85")
    assert np.array_equal(saved, jpeg85(raw))


@pytest.mark.parametrize("severity", [0, 6, -1, 2.5, "3", None])
def test_a_severity_that_is_none_is_refused(severity: Any) -> None:
    with pytest.raises(BadInput, match=r"severity should be"):
        sp.corrupt(drawn(224, 224), "fog", severity)


def test_a_severity_may_be_a_number_of_numpy() -> None:
    picture = drawn(224, 224)
    severity: Any = np.int64(2)
    assert np.array_equal(sp.corrupt(picture, "shot_noise", severity), sp.corrupt(picture, "shot_noise", 2))


def test_a_name_that_is_unknown_is_refused_with_the_nearest() -> None:
    picture = drawn(224, 224)
    with pytest.raises(UnknownName, match="did you mean gaussian_noise"):
        sp.corrupt(picture, "gausian_noise")
    with pytest.raises(UnknownName, match="no edition called"):
        sp.corrupt(picture, "fog", edition="imagenet-225")
    with pytest.raises(UnknownName, match="no output called"):
        sp.corrupt(picture, "contrast", output="jpeg")  # type: ignore[arg-type]
    with pytest.raises(UnknownName, match="no corruption called 'clean'"):
        sp.corrupt(picture, "clean")


@pytest.mark.parametrize(
    "image",
    [
        np.zeros((8, 8, 3), np.float32),
        np.zeros((8, 8, 3), np.int64),
        np.zeros((8, 8, 4), np.uint8),
        np.zeros((8, 8, 2), np.uint8),
        np.zeros((2, 8, 8, 3), np.uint8),
        np.zeros((0, 8, 3), np.uint8),
        np.zeros(8, np.uint8),
        [[0, 0], [0, 0]],
        "photo.png",
        None,
    ],
)
def test_what_is_no_image_is_refused_in_a_sentence(image: Any) -> None:
    with pytest.raises(ShiftproofError, match="an image should"):
        sp.corrupt(image, "contrast", 3)


def test_a_picture_of_another_size_than_the_editions_is_warned_about_unless_severities_are_scaled() -> None:
    picture = drawn(50, 70)
    with pytest.warns(SizeWarning, match="imagenet-224 is made for 224 x 224, this image is 70 x 50"):
        sp.corrupt(picture, "contrast", 3)
    sp.corrupt(picture, "contrast", 3, scale_severity=True)


def test_rgb_images_pass_as_they_are() -> None:
    picture = drawn(4, 4)
    assert to_rgb(picture) is picture


@pytest.mark.parametrize("name", IMAGENET_C)
def test_a_corruption_that_mce_is_the_mean_over_has_a_published_error_of_alexnet(name: str) -> None:
    errors = alexnet_errors([name], EVERY_SEVERITY).errors
    assert errors is not None
    assert np.isfinite(errors).all()
