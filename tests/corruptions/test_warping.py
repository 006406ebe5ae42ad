"""Elastic transform against the slow version, the public package and identities, at every severity of every edition."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import cv2
import numpy as np
import pytest
import skimage
from numpy.typing import NDArray
from scipy import ndimage

from corruptions import reference_warping
from corruptions.agreement import assert_agrees, cases, drawn
from corruptions.peer import peer_corruption
from shiftproof.corruptions import digital
from shiftproof.corruptions.kernels import geometry as warping
from shiftproof.corruptions.kernels import smoothing
from shiftproof.corruptions.kernels.compiled import seed_of
from shiftproof.corruptions.kernels.fields import symmetric_draws

AVX2 = 11  # as OpenCV numbers it


def test_elastic_transform_is_the_slow_one_with_the_same_draws_at_all_severities_of_all_editions() -> None:
    for parameters, image in cases("elastic_transform"):
        height, width = image.shape[:2]
        rng = np.random.default_rng(7)
        moves = rng.uniform(-parameters["jitter"], parameters["jitter"], (3, 2))
        fields = symmetric_draws(seed_of(rng), 2 * height * width).reshape(2, height, width).astype(np.float64)
        exact = reference_warping.elastic_transform(image, parameters["amplitude"], parameters["sigma"], moves, fields)
        assert_agrees(digital.elastic_transform(image, np.random.default_rng(7), **parameters), exact)


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1), (3, 3), (40, 33), (33, 300)])
@pytest.mark.parametrize("sigma", [0, 0.96, 2.44, 6.4, 19.52, 170.8, 252])
def test_fields_are_smoothed_as_scipy_does_however_long_the_window(shape: tuple[int, int], sigma: float) -> None:
    field = np.random.default_rng(1).uniform(-1, 1, shape).astype(np.float32)
    expected = reference_warping.smooth_field(field.astype(np.float64), sigma) if sigma else field
    assert np.abs(smoothing.smooth_field(field, sigma) - expected).max() < 1e-6


@pytest.mark.parametrize(
    ("height", "width", "sigma"),
    [
        *((height, width, 19.52) for height, width in [(224, 224), (299, 299), (225, 160), (1200, 40), (37, 1300)]),
        *((height, width, 60.0) for height, width in [(225, 160), (600, 640), (1200, 40), (37, 1300)]),
        *((height, width, 170.8) for height, width in [(224, 224), (299, 299), (600, 640), (613, 701)]),
        *((height, width, 2.44) for height, width in [(58, 1301), (20, 1201)]),  # the window is much shorter than a side
        (1201, 3, 2.2875),
    ],
)
def test_transforms_find_the_pixels_of_products_with_the_same_draws(
    monkeypatch: pytest.MonkeyPatch, height: int, width: int, sigma: float
) -> None:
    image, moves = drawn(height, width), np.random.default_rng(2).uniform(-9, 9, (3, 2))
    draws = smoothing.Draws(np.uint64(height), height, width)
    assert smoothing.transforms(height, width, sigma)
    exact = [smoothing.smooth_field(field, sigma) * np.float32(488) for field in draws.fields()]
    fields = smoothing.smooth_fields(draws, sigma, 488)
    for field, other in zip(fields.rows(slice(0, height)), exact, strict=True):
        # what is allowed for is more than what is found, but not by an order of magnitude
        slack = fields.slack.least + fields.slack.relative * np.abs(other)
        assert 0.1 < (np.abs(field - other) / slack).max() < 0.7
    rows, columns = np.random.default_rng(3).integers(0, (height, width), (200, 2)).T
    for field, other in zip(smoothing.fields_at(draws, sigma, rows, columns), exact, strict=True):
        assert np.array_equal(field * np.float32(488), other[rows, columns])
    result = warping.elastic(image, moves, draws, sigma, 488)
    monkeypatch.setattr(smoothing, "transforms", lambda *_: False)
    assert np.array_equal(result, warping.elastic(image, moves, draws, sigma, 488))


@pytest.mark.skipif(not cv2.checkHardwareSupport(AVX2), reason="this processor has no AVX2")
def test_pixels_are_those_of_products_where_the_order_of_a_sum_depends_on_its_place() -> None:
    """As with the kernels of OpenBLAS for AVX2, which it can be told to use where it has better ones."""
    script = (
        "import numpy as np; from shiftproof.corruptions.kernels import smoothing\n"
        "for height, width in (299, 299), (75, 41), (33, 225):\n"
        "    draws = smoothing.Draws(np.uint64(7), height, width)\n"
        "    rows, columns = np.random.default_rng(3).integers(0, (height, width), (500, 2)).T\n"
        "    found = smoothing.fields_at(draws, 60.0, rows, columns)\n"
        "    for few, field in zip(found, draws.fields(), strict=True):\n"
        "        assert np.array_equal(few, smoothing.smooth_field(field, 60.0)[rows, columns])\n"
    )
    subprocess.run([sys.executable, "-c", script], env=os.environ | {"OPENBLAS_CORETYPE": "Haswell"}, check=True)


def test_both_fields_are_those_of_one_seed_drawn_one_by_one() -> None:
    draws = smoothing.Draws(np.uint64(3), 17, 23)
    one_by_one = symmetric_draws(np.uint64(3), 2 * 17 * 23).reshape(2, 17, 23)
    assert np.array_equal(draws.fields(), one_by_one)


def test_a_picture_in_strips_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    image, moves = drawn(90, 61), np.random.default_rng(2).uniform(-40, 40, (3, 2))
    draws = smoothing.Draws(np.uint64(5), 90, 61)
    for sigma, amplitude in ((2.44, 40), (19.52, 488), (3.0, 4000)):
        whole = warping.elastic(image, moves, draws, sigma, amplitude)
        for rows in (1, 7, 40):
            monkeypatch.setattr(warping, "PIXELS_AT_ONCE", rows * 61)
            assert np.array_equal(warping.elastic(image, moves, draws, sigma, amplitude), whole)
        monkeypatch.undo()


def test_a_field_of_whole_steps_takes_pixels_as_they_are_and_mirrors_beyond_the_border() -> None:
    image = drawn(6, 5)
    for right, down in ((0, 0), (1, 0), (-1, 2), (4, -5), (-12, 31), (100, -77)):
        steps = [np.full((6, 5), step, np.float32) for step in (right, down)]
        mirrored = np.pad(image, ((77, 77), (100, 100), (0, 0)), mode="symmetric")
        expected = mirrored[77 + down : 83 + down, 100 + right : 105 + right]
        assert np.array_equal(warping.displaced(image.astype(np.float32), *steps), expected)


def test_a_linear_picture_shows_the_displacements() -> None:
    down, right = np.mgrid[0:50, 0:60].astype(np.float32)
    ramps = np.stack([2 * right, 2 * down, right + down], axis=2)
    fields = np.random.default_rng(0).uniform(-3, 3, (2, 50, 60)).astype(np.float32)
    result = warping.displaced(ramps, *fields)[5:-5, 5:-5]
    exact = np.stack([2 * (right + fields[0]), 2 * (down + fields[1]), right + fields[0] + down + fields[1]], axis=2)[
        5:-5, 5:-5
    ]
    assert np.abs(result + 0.5 - exact).max() < 0.501


@pytest.mark.parametrize("shape", [(64, 64), (37, 91), (83, 48)])
def test_tilt_is_what_opencv_does_to_doubles_which_it_still_rounds_to_a_32nd_of_a_pixel(shape: tuple[int, int]) -> None:
    def warped(picture: NDArray[np.float64], affine: NDArray[np.float64]) -> NDArray[np.float64]:
        mirror = cv2.BORDER_REFLECT_101
        return np.asarray(
            cv2.warpAffine(picture, affine, shape[::-1], flags=cv2.INTER_LINEAR, borderMode=mirror), np.float64
        )

    ramp = np.tile(np.arange(shape[1], dtype=np.float64), (shape[0], 1))
    if warped(ramp, np.array([[1, 0, 0.01], [0, 1, 0]]))[5, 9] != 9:
        pytest.skip("this OpenCV rounds no places")
    image = drawn(*shape)
    for jitter in (1, 5, 40):
        moves = np.random.default_rng(jitter).uniform(-jitter, jitter, (3, 2))
        affine = reference_warping.affine_of(*shape, moves)
        assert np.abs(warping.tilt(image, moves) - warped(image.astype(np.float64), affine)).max() < 1e-4


def test_tilt_moves_its_three_points_to_where_it_is_told() -> None:
    down, right = np.mgrid[0:90, 0:120]
    moves = np.array([[3.0, -2.0], [1.5, 4.0], [-2.5, 0.5]])
    for point, move in zip([(60 + 30, 45 + 30), (60 + 30, 45 - 30), (60 - 30, 45 - 30)], moves, strict=True):
        light = 250 * np.exp(-((right - point[0]) ** 2 + (down - point[1]) ** 2) / 18)
        tilted = warping.tilt(np.stack([light] * 3, axis=2).astype(np.uint8), moves)[:, :, 0]
        found = ndimage.center_of_mass(tilted)[::-1]
        assert np.abs(np.array(found) - point - move).max() < 0.05


def test_without_moves_and_field_nothing_moves() -> None:
    image = drawn(45, 61)
    assert np.array_equal(digital.elastic_transform(image, np.random.default_rng(0), amplitude=0, sigma=0, jitter=0), image)
    assert np.array_equal(
        digital.elastic_transform(image, np.random.default_rng(0), amplitude=1e-9, sigma=3, jitter=0), image
    )


def test_the_fields_have_the_spread_and_reach_of_smoothed_uniform_draws() -> None:
    sigma, size = 2.44, 224
    fields = symmetric_draws(np.uint64(11), 20 * size * size).reshape(20, size, size)
    window = np.exp(-0.5 * (np.arange(-7, 8) / sigma) ** 2)
    window /= window.sum()
    inside = np.stack([smoothing.smooth_field(field, sigma)[10:-10, 10:-10] for field in fields])
    # uniform draws have variance 1/3; 20 fields hold some 10,000 independent patches, so 5 % would be seen at 5 sigmas
    assert inside.std() == pytest.approx(np.sqrt((window**2).sum() ** 2 / 3), rel=0.05)
    assert abs(inside.mean()) < 5 * inside.std() / np.sqrt(10_000)
    for lag in (1, 3, 5):
        expected = (window[lag:] * window[:-lag]).sum() / (window**2).sum()
        measured = (inside[:, :, lag:] * inside[:, :, :-lag]).mean() / inside.var()
        assert measured == pytest.approx(expected, abs=0.05)


@pytest.mark.parametrize("severity", range(1, 6))
def test_fields_and_sampling_are_those_of_the_public_package(monkeypatch: pytest.MonkeyPatch, severity: int) -> None:
    """It has no tilt and other parameters; what is left is the same."""
    theirs = peer_corruption("elastic_transform")
    image = np.ascontiguousarray(skimage.data.astronaut()[::4, ::4])  # type: ignore[no-untyped-call]
    np.random.seed(severity)
    expected = theirs(image, severity)
    np.random.seed(severity)
    most, amplitude = 128 * 0.005, 250 * (0.05, 0.065, 0.085, 0.1, 0.12)[severity - 1]
    fields = [np.random.uniform(-most, most, (128, 128)).astype(np.float32) for _ in range(2)]
    right, down = (smoothing.smooth_field(field, 1.28) * np.float32(amplitude) for field in fields)
    # they interpolate pixels of 0 to 1 in single precision
    assert_agrees(warping.displaced(image.astype(np.float32), right, down), expected.astype(np.float64) + 2e-5)


def test_the_number_of_threads_does_not_show() -> None:
    script = (
        "import numpy as np, sys; from shiftproof.corruptions import digital\n"
        "image = np.random.default_rng(0).integers(0, 256, (700, 520, 3), dtype=np.uint8)\n"
        "result = digital.elastic_transform(image, np.random.default_rng(1), amplitude=900, sigma=380.0, jitter=50)\n"
    )
    here: dict[str, Any] = {}
    exec(script, here)
    names = "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"
    here_asked = [os.environ[name] for name in reversed(names) if name in os.environ]  # OpenBLAS goes by its own one first
    alone = os.cpu_count() == 1 or here_asked[:1] == ["1"]
    there = subprocess.run(
        [sys.executable, "-c", script + "sys.stdout.buffer.write(result.tobytes())"],
        env=os.environ | dict.fromkeys(names, "2" if alone else "1"),
        capture_output=True,
        check=True,
    ).stdout
    assert there == here["result"].tobytes()
