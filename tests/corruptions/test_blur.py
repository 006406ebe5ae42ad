"""The blurs against slow versions, the public package and published files, at every severity of every edition."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import skimage
from numpy.typing import NDArray
from PIL import Image as Pillow

import shiftproof as sp
from corruptions import reference_blur
from corruptions.agreement import RARE, assert_agrees, cases, drawn, psnr
from corruptions.peer import peer_corruption
from shiftproof.corruptions import blur
from shiftproof.corruptions.editions import edition_of, severity_parameters
from shiftproof.corruptions.kernels import blur as kernels
from shiftproof.corruptions.kernels import filters
from shiftproof.corruptions.kernels.jpeg import jpeg_round_trip
from shiftproof.types import Image


def chance(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("name", ["defocus_blur", "gaussian_blur", "zoom_blur"])
def test_a_blur_without_chance_is_the_slow_one_at_all_severities_of_all_editions(name: str) -> None:
    for parameters, image in cases(name):
        assert_agrees(getattr(blur, name)(image, chance(), **parameters), getattr(reference_blur, name)(image, **parameters))


def test_motion_blur_is_the_slow_one_in_the_direction_it_drew() -> None:
    for parameters, image in cases("motion_blur"):
        angle = chance(4).uniform(-45, 45)
        exact = reference_blur.motion_blur(image, angle=angle, **parameters)
        assert_agrees(blur.motion_blur(image, chance(4), **parameters), exact)


def test_glass_blur_is_the_slow_one_with_the_same_displacements() -> None:
    for parameters, image in cases("glass_blur", largest=64):
        sigma, reach, rounds = parameters["sigma"], parameters["reach"], parameters["rounds"]
        visited = max(image.shape[0] - 2 * reach, 0) * max(image.shape[1] - 2 * reach, 0)
        steps = kernels.displacements(chance(2), reach, rounds, visited)
        result = blur.glass_blur(image, chance(2), **parameters)
        assert np.array_equal(result, kernels.through_glass(image, sigma, reach, steps))
        assert_agrees(result, reference_blur.glass_blur(image, sigma, reach, steps))


def test_glass_blur_copies_and_does_not_swap() -> None:
    image = drawn(40, 50)
    steps = kernels.displacements(chance(), 2, 3, 36 * 46)
    result = kernels.through_glass(image, 0.05, 2, steps)
    assert_agrees(result, reference_blur.glass_blur(image, 0.05, 2, steps))
    swapped = reference_blur.glass_blur(image, 0.05, 2, steps, swap=True)
    assert (np.abs(result - swapped) > 2).mean() > 0.2
    # a swap keeps every colour as often as it was; copies lose some
    assert len(np.unique(result.reshape(-1, 3), axis=0)) < len(np.unique(swapped.reshape(-1, 3), axis=0))


def test_glass_blur_moves_one_pixel_by_hand() -> None:
    image = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
    # rows and columns 3 and 2 are visited, lower right first; the steps go right and down
    steps = np.array([[[-1, 0], [-1, -1], [0, -1], [0, -1]]], np.int8)
    result = kernels.through_glass(image, 0, 1, steps)
    expected = image.copy()
    expected[3, 3] = image[3, 2]
    expected[3, 2] = image[2, 1]
    expected[2, 3] = image[1, 3]
    expected[2, 2] = image[1, 2]
    assert np.array_equal(result, expected)


@pytest.mark.parametrize("reach", [1, 2, 3, 4, 5])
def test_displacements_are_even_up_to_the_upper_end_which_is_left_out_and_independent(reach: int) -> None:
    steps = kernels.displacements(chance(reach), reach, 4, 50_000).reshape(-1, 2).astype(int)
    values, count = np.arange(-reach, reach), len(steps)
    assert set(np.unique(steps)) == set(values)
    for side in (0, 1):
        counts = np.bincount(steps[:, side] + reach, minlength=2 * reach)
        expected = count / (2 * reach)
        # 5 standard deviations of 200,000 draws: a step drawn 2.5 % too often (reach 1: 1.2 %) would be seen
        assert np.abs(counts - expected).max() < 5 * np.sqrt(expected)
    unit = (steps + 0.5) / np.sqrt((values + 0.5).astype(float) @ (values + 0.5) / len(values))
    for lag in range(1, 9):
        assert np.abs((unit[lag:] * unit[:-lag]).mean(axis=0)).max() < 5 / np.sqrt(count)
        assert np.abs((unit[lag:, 0] * unit[:-lag, 1]).mean()) < 5 / np.sqrt(count)
    assert np.abs((unit[:, 0] * unit[:, 1]).mean()) < 5 / np.sqrt(count)


def test_directions_of_motion_are_even_between_45_degrees_up_and_down(monkeypatch: pytest.MonkeyPatch) -> None:
    angles: list[float] = []

    def noted(image: Image, radius: float, sigma: float, angle: float) -> Image:
        angles.append(angle)
        return image

    monkeypatch.setattr(filters, "motion", noted)
    rng = chance()
    for _ in range(2000):
        blur.motion_blur(drawn(4, 4), rng, radius=3, sigma=1)
    # Kolmogorov: beyond 1.95 / sqrt(n) in one of a thousand cases
    assert np.abs(np.sort(angles) - np.linspace(-45, 45, 2000)).max() / 90 < 1.95 / np.sqrt(2000)


@pytest.mark.parametrize(("radius", "softness", "gain"), [(3, 0.1, 1.0), (6, 0.5, 1.0), (8, 0.5, 1.0130), (10, 0.5, 1.0108)])
def test_wide_disks_brighten_by_1_percent_as_published(radius: float, softness: float, gain: float) -> None:
    assert kernels.published_kernel(radius, softness)[2].sum() == pytest.approx(gain, abs=5e-5)
    grey = np.full((60, 70, 3), 100, np.uint8)
    assert abs(int(blur.defocus_blur(grey, chance(), radius=radius, softness=softness)[30, 30, 0]) - 100 * gain) <= 1


@pytest.mark.parametrize(
    ("radius", "softness"), [(0.5, 3.0), (8.5, 0.7), (9.3, 2.0), (12, 0.01), (25, 1.5), (40, 2.5), (70, 0.5)]
)
def test_disks_of_any_radius_are_the_slow_ones(radius: float, softness: float) -> None:
    image = drawn(60, 81)
    assert_agrees(
        blur.defocus_blur(image, chance(), radius=radius, softness=softness),
        reference_blur.defocus_blur(image, radius, softness),
    )


def test_zoom_factors_keep_the_length_that_floats_give_them() -> None:
    lengths = [
        len(np.arange(1, *severity_parameters("zoom_blur", severity, "imagenet-224").values())) for severity in range(1, 6)
    ]
    assert lengths == [12, 16, 11, 13, 11]


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1), (3, 3), (16, 17), (40, 33)])
def test_added_zooms_are_the_sum_of_clipped_zooms_however_far_they_reach(shape: tuple[int, int]) -> None:
    image = drawn(*shape)
    for factors in ((1.0,), (1.1, 1.31), (1.0, 2.0, 3.7), (4.5,), tuple(np.arange(1, 1.26, 0.01).tolist())):
        expected = sum(filters.clipped_zoom(image.astype(np.float32), factor).astype(np.float64) for factor in factors)
        assert np.abs(kernels.added_zooms(image, factors) - expected).max() < 1e-2


PEERS = ("defocus_blur", "gaussian_blur", "motion_blur", "zoom_blur")


def with_channel_axis(image: NDArray[np.float64], sigma: float, multichannel: bool) -> NDArray[np.float64]:
    """Scikit-image's gaussian under the name its argument had when the package was written."""
    assert multichannel
    blurred: NDArray[np.float64] = skimage.filters.gaussian(image, sigma=sigma, channel_axis=2)  # type: ignore[no-untyped-call]
    return blurred


@pytest.mark.parametrize("severity", range(1, 6))
@pytest.mark.parametrize("name", PEERS)
def test_blurs_are_those_of_the_public_package(monkeypatch: pytest.MonkeyPatch, name: str, severity: int) -> None:
    theirs = peer_corruption(name)
    monkeypatch.setitem(theirs.__globals__, "gaussian", with_channel_axis)
    image = np.ascontiguousarray(skimage.data.astronaut()[::2, ::2][:224, :224])  # type: ignore[no-untyped-call]
    np.random.seed(severity)
    expected = theirs(image, severity)
    np.random.seed(severity)
    parameters: Any = severity_parameters(name, severity, "imagenet-224")
    if name == "motion_blur":
        result = filters.motion(image, parameters["radius"], parameters["sigma"], np.random.uniform(-45, 45))
    else:
        result = getattr(blur, name)(image, chance(), **parameters)
    # they zoom in single precision, so flat parts end just below their level; and they smear without ImageMagick's 16 bits
    lift, rare = {"zoom_blur": (3e-5, RARE), "motion_blur": (0.0, 0.01)}.get(name, (0.0, RARE))
    assert_agrees(result, expected.astype(np.float64) + lift, rare)


@pytest.mark.parametrize("severity", range(1, 6))
def test_glass_blur_is_that_of_the_public_package_given_its_draws(monkeypatch: pytest.MonkeyPatch, severity: int) -> None:
    theirs = peer_corruption("glass_blur")
    monkeypatch.setitem(theirs.__globals__, "gaussian", with_channel_axis)
    image = drawn(48, 64)
    parameters: Any = severity_parameters("glass_blur", severity, "imagenet-224")
    sigma, reach, rounds = parameters.values()
    np.random.seed(severity)
    expected = theirs(image, severity)
    np.random.seed(severity)
    # one call for all of them draws what their call for each pixel does
    steps = np.random.randint(-reach, reach, size=(rounds, (48 - 2 * reach) * (64 - 2 * reach), 2)).astype(np.int8)
    # they cut the first blur where whole numbers end just below themselves; the second one spreads that
    assert_agrees(kernels.through_glass(image, sigma, reach, steps), expected + 1e-6, rare=0.02)


def test_threads_do_not_disturb_each_other() -> None:
    images = [drawn(64, 64 + number, seed=number) for number in range(12)]
    names = ("defocus_blur", "glass_blur", "motion_blur", "zoom_blur", "gaussian_blur", "elastic_transform")
    work = [(name, number) for name in names for number in range(12)]

    def corrupted(job: tuple[str, int]) -> bytes:
        return sp.corrupt(images[job[1]], job[0], 4, key=str(job[1]), edition="tiny-64", scale_severity=True).tobytes()

    alone = [corrupted(job) for job in work]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(corrupted, work)) == alone


@pytest.mark.real
@pytest.mark.parametrize("name", ["defocus_blur", "gaussian_blur", "zoom_blur"])
def test_published_files_agree_as_far_as_jpeg_allows_and_with_no_other_severity_better(real_data: Path, name: str) -> None:
    folder = real_data / "imagenet-c-examples"
    clean = np.asarray(Pillow.open(folder / "clean.jpeg").convert("RGB"))
    photos = [
        edition_of("imagenet-224").picture(np.asarray(Pillow.open(path).convert("RGB")))
        for path in sorted((real_data / "ilsvrc-sample-1000").glob("*.jpg"))[::50]
    ]

    def saved(image: Image) -> Image:
        return jpeg_round_trip(image, 75)  # by their quantisation tables, the examples were saved so

    results = [saved(sp.corrupt(clean, name, severity)) for severity in range(1, 6)]
    for severity in range(1, 6):
        file = np.asarray(Pillow.open(folder / f"{name}_{severity}.jpeg").convert("RGB"))
        agreement = [psnr(result, file) for result in results]
        assert int(np.argmax(agreement)) == severity - 1
        if name != "defocus_blur":  # these examples come from another generator, whose gaussian window is cut off earlier
            continue
        # the clean example is a JPEG too: what that does to a picture under this corruption is measured on other photos
        pairs = [(sp.corrupt(photo, name, severity), sp.corrupt(saved(photo), name, severity)) for photo in photos]
        assert agreement[severity - 1] > min(psnr(saved(first), saved(second)) for first, second in pairs)


@pytest.mark.real
def test_some_direction_explains_the_published_motion_blurs_better_than_any_of_another_severity(real_data: Path) -> None:
    folder = real_data / "imagenet-c-examples"
    clean = np.asarray(Pillow.open(folder / "clean.jpeg").convert("RGB"))
    parameters = [severity_parameters("motion_blur", severity, "imagenet-224") for severity in range(1, 6)]
    for severity in range(1, 6):
        file = np.asarray(Pillow.open(folder / f"motion_blur_{severity}.jpeg").convert("RGB"))
        best = [
            max(psnr(filters.motion(clean, angle=angle, **strength), file) for angle in range(-45, 46, 2))
            for strength in parameters
        ]
        assert int(np.argmax(best)) == severity - 1
        assert best[severity - 1] > 33
