"""ImageNet-C-bar and CIFAR-10-C-bar: published outputs, a slow version at every severity and odd sizes, what is drawn."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import shiftproof as sp
from corruptions import reference_c_bar as reference
from shiftproof.corruptions import c_bar, corruption_groups, corruption_of
from shiftproof.corruptions.editions import severity_parameters
from shiftproof.corruptions.kernels import lenses, overlays, spectra
from shiftproof.types import Image

PUBLISHED: dict[str, Any] = json.loads(Path(__file__).with_name("published_c_bar.json").read_text(encoding="utf-8"))
NAMES = corruption_groups()["c-bar"]


def drawn_from(random: np.random.RandomState, name: str, image: Image) -> dict[str, Any]:
    """What the published code draws for a picture of this size."""
    draws: dict[str, Any] = getattr(reference, f"{name}_draws")(random, *image.shape[:2])
    return draws


def blue_noise_sample(image: Image, strength: float, *, phases: Any) -> Image:
    return spectra.kept_above(image, spectra.noise_of(phases, *image.shape[:2], brown=False), 0.3 * strength - 2.5)


def brownish_noise(image: Image, strength: float, *, phases: Any) -> Image:
    result = np.empty_like(image)
    for channel in range(3):
        noise = spectra.noise_of(phases[channel], *image.shape[:2], brown=True)
        spectra.with_channel(image, noise, 6.4 * strength, channel, result)
    return result


def inverse_sparkles(image: Image, strength: float, *, centre: Any, normals: Any) -> Image:
    radius = min(image.shape[:2]) / 4
    return overlays.seen_through_star(image, centre, radius + 0.25 * radius * normals, 0.13 * strength)


def sparkles(image: Image, strength: float, *, centres: Any, normals: Any) -> Image:
    radius = 0.01 * strength * min(image.shape[:2])
    lengths = np.maximum(1.0, radius + 0.25 * radius * np.concatenate(normals))
    return overlays.under_stars(image, centres, lengths, np.cumsum([len(each) for each in normals]))


def lines(image: Image, strength: float, *, angle: float, variation: float, random: Any) -> Image:
    height, width = image.shape[:2]
    length, ends = min(height, width), []
    for _ in range(int(strength / 10 * length)):
        row, column, own = height * random.uniform(), width * random.uniform(), random.uniform()
        down, right = (length * part(angle + 2 * np.pi * variation * (own - 0.5)) for part in (np.cos, np.sin))
        ends.append([int(row - down), int(column - right), int(row + down), int(column + right)])
    return overlays.under_lines(image, np.array(ends, np.int64).reshape(-1, 4))


FAST: dict[str, Callable[..., Image]] = {
    "blue_noise_sample": blue_noise_sample,
    "brownish_noise": brownish_noise,
    "checkerboard_cutout": lambda image, strength, angle, side, draws: overlays.under_checkerboard(
        image, angle, side, draws < strength / 10
    ),
    "inverse_sparkles": inverse_sparkles,
    "sparkles": sparkles,
    "caustic_refraction": lambda image, strength, time, size: lenses.under_water(image, time, size, strength),
    "cocentric_sine_waves": lambda image, strength, **draws: overlays.with_rings(image, intensity=12.8 * strength, **draws),
    "perlin_noise": lambda image, strength, slopes, swaps: overlays.under_turbulence(image, slopes, swaps, 0.05 * strength),
    "plasma_noise": lambda image, strength, **draws: overlays.under_plasma(image, intensity=6.4 * strength, **draws),
    "single_frequency_greyscale": lambda image, strength, **draws: overlays.with_sine_wave(
        image, intensity=19.6 * strength, **draws
    ),
    "circular_motion_blur": lambda image, strength: lenses.turned(image, 1.5 * strength),
    "lines": lines,
    "pinch_and_twirl": lambda image, strength, turns: lenses.whirled(
        image, turns * (strength * np.pi / 20), 0.04 * strength + 0.1
    ),
    "ripple": lambda image, strength, wavelengths, phases: lenses.rippled(
        image, wavelengths, phases, 0.0025 * strength * min(image.shape[:2])
    ),
    "transverse_chromatic_abberation": lambda image, strength, order: lenses.with_colours_apart(
        image, np.array([1.0, 1 + 0.025 * strength, 1 + 0.05 * strength])[order]
    ),
}
"""Our kernels, given what the published code draws."""

ROUNDED = ("circular_motion_blur", "transverse_chromatic_abberation")
"""Splines, whose sums end on a whole or half level often enough that the order of additions is seen."""

SHAPES = ((32, 32), (37, 91), (83, 48), (33, 33), (64, 63))


def ramp(side: int) -> Image:
    """The picture that published outputs were made of."""
    y, x = np.mgrid[0:side, 0:side]
    channels = (3 * x + 2 * y) % 256, (x + 5 * y + 60) % 256, (4 * x + y * y // 8 + 120) % 256
    return np.stack(channels, axis=2).astype(np.uint8)


def photo(height: int, width: int, seed: int = 0) -> Image:
    """Waves, noise, and flat parts of black, white and grey; each time another copy of it."""
    return _photo_once(height, width, seed).copy()


@cache
def _photo_once(height: int, width: int, seed: int) -> Image:
    y, x = np.mgrid[0:height, 0:width]
    image = np.stack([127 + 120 * np.sin((y * speed + x / speed) / 9) for speed in (0.3, 0.7, 1.1)], axis=2)
    image[: height // 2] += np.random.default_rng(seed).normal(0, 40, (height // 2, width, 3))
    for number, grey in enumerate((0, 255, 128)):
        image[height // 2 : height // 2 + height // 4, number * width // 3 : number * width // 3 + width // 4] = grey
    picture: Image = np.clip(image, 0, 255).astype(np.uint8)
    return picture


def assert_same(name: str, ours: Image, published: Image) -> None:
    different = np.abs(ours.astype(int) - published)
    assert different.max() <= 1
    assert np.count_nonzero(different) <= (0.01 if name in ROUNDED else 1e-5) * different.size + 1


@pytest.mark.parametrize(("dataset", "edition"), [("imagenet-c-bar", "imagenet-224"), ("cifar-c-bar", "cifar-32")])
def test_every_strength_is_the_published_one(dataset: str, edition: str) -> None:
    published = PUBLISHED["strengths"][dataset]
    assert set(published) == set(sp.IMAGENET_C_BAR if dataset == "imagenet-c-bar" else sp.CIFAR_C_BAR)
    for name, strengths in published.items():
        assert [severity_parameters(name, severity, edition)["strength"] for severity in range(1, 6)] == strengths, name


@pytest.mark.parametrize(("side", "name"), [(side, name) for side, found in PUBLISHED["outputs"].items() for name in found])
def test_with_the_published_draws_comes_the_published_output(side: str, name: str) -> None:
    expected, image = PUBLISHED["outputs"][side][name], ramp(int(side))
    middle = int(side) // 2
    for make in (FAST[name], getattr(reference, name)):
        found = make(image, expected["strength"], **drawn_from(np.random.RandomState(0), name, image))
        for pixel, place in (("pixel_0_0", (0, 0)), ("pixel_5_7", (5, 7)), ("pixel_middle", (middle, middle + 3))):
            assert found[place].tolist() == expected[pixel]
        if name in ROUNDED:
            assert np.abs(found.sum(axis=(0, 1)) - expected["sum_rgb"]).max() <= 0.01 * found[..., 0].size
        else:
            assert hashlib.sha256(found.tobytes()).hexdigest().startswith(expected["sha256_start"])


@pytest.mark.parametrize("severity", range(1, 6))
@pytest.mark.parametrize("name", NAMES)
def test_ours_is_the_slow_version_at_every_severity_and_size(name: str, severity: int) -> None:
    cases = [("imagenet-224", (224, 224))] if severity in (1, 5) else []
    cases += [(edition, shape) for edition in ("imagenet-224", "cifar-32") for shape in SHAPES]
    for number, (edition, shape) in enumerate(cases):
        image = photo(*shape, seed=severity)
        strength = float(severity_parameters(name, severity, edition)["strength"])
        theirs, own = (drawn_from(np.random.RandomState([severity, number]), name, image) for _ in range(2))
        assert_same(name, FAST[name](image, strength, **own), getattr(reference, name)(image, strength, **theirs))


def arguments_of(
    monkeypatch: pytest.MonkeyPatch, module: Any, kernel: str, corruption: Callable[..., Image], times: int = 400
) -> list[tuple[Any, ...]]:
    """What a corruption calls its kernel with, once for each of so many generators."""
    called: list[tuple[Any, ...]] = []

    def caught(*arguments: Any, **named: Any) -> Any:
        called.append(arguments)
        return np.zeros(arguments[0].shape, np.uint8) if kernel != "noise_of" else np.zeros(arguments[1:3])

    monkeypatch.setattr(module, kernel, caught)
    image = np.zeros((40, 60, 3), np.uint8)
    for number in range(times):
        corruption(image, np.random.Generator(np.random.Philox(number)), strength=4.0)
    return called


def assert_uniform(values: Any, low: float, high: float) -> None:
    assert stats.kstest(np.ravel(values), stats.uniform(low, high - low).cdf).pvalue > 1e-3


def assert_even(values: Any, choices: range | list[float]) -> None:
    counts = [np.count_nonzero(np.ravel(values) == choice) for choice in choices]
    assert sum(counts) == np.size(values)
    assert stats.chisquare(counts).pvalue > 1e-3


def test_waves_and_plasma_are_drawn_as_published(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = arguments_of(monkeypatch, overlays, "with_rings", c_bar.cocentric_sine_waves)
    bounds = (0, 60), (0, 40), (0, 10), (0, 4), (0, 4)
    for place, ends in enumerate(bounds, start=1):
        assert_uniform([call[place] for call in calls], *ends)
    calls = arguments_of(monkeypatch, overlays, "under_plasma", c_bar.plasma_noise)
    for place, low, high in ((1, 0, 6 * np.pi), (3, 0.5, 1), (4, 3, 8)):
        assert_uniform([call[place] for call in calls], low, high)
    assert_even([call[2] for call in calls], range(4, 7))
    calls = arguments_of(monkeypatch, overlays, "with_sine_wave", c_bar.single_frequency_greyscale)
    faster = np.array([max(call[1:3], key=abs) for call in calls])
    slower = np.array([min(call[1:3], key=abs) for call in calls])
    assert_uniform(faster, -np.pi, np.pi)
    assert_uniform(slower / np.abs(faster), -1, 1)
    assert_even([abs(call[1]) > abs(call[2]) for call in calls], [True, False])
    assert_uniform([call[3] for call in calls], 0, 2 * np.pi)


def test_stars_are_drawn_as_published(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = arguments_of(monkeypatch, overlays, "under_stars", c_bar.sparkles)
    assert_uniform([call[1][:, 0] for call in calls], 0, 40)
    assert_uniform([call[1][:, 1] for call in calls], 0, 60)
    counts = np.diff([call[3] for call in calls], prepend=0, axis=1)
    assert counts.min() >= 50
    assert counts.max() <= 199
    assert_uniform(counts + np.random.default_rng(0).random(counts.shape), 50, 200)
    assert all(call[2].min() >= 1 for call in calls)
    calls = arguments_of(monkeypatch, overlays, "seen_through_star", c_bar.inverse_sparkles)
    assert_uniform([call[1][0] for call in calls], 10, 30)
    assert_uniform([call[1][1] for call in calls], 15, 45)
    assert_uniform([len(call[2]) + place % 1 for place, call in enumerate(calls)], 50, 200)
    lengths = np.concatenate([call[2] for call in calls])
    assert stats.kstest(lengths, stats.norm(10, 2.5).cdf).pvalue > 1e-3


def test_noise_is_drawn_as_published(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = arguments_of(monkeypatch, overlays, "under_turbulence", c_bar.perlin_noise, 40)
    assert_even([call[1] for call in calls], range(-256, 256))
    assert_even([call[2] for call in calls], range(256))
    for corruption in (c_bar.blue_noise_sample, c_bar.brownish_noise):
        calls = arguments_of(monkeypatch, spectra, "noise_of", corruption, 5)
        assert_uniform([call[0] for call in calls], 0, 2 * np.pi)
        assert len({call[0].tobytes() for call in calls}) == len(calls)


def test_squares_lines_and_lenses_are_drawn_as_published(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = arguments_of(monkeypatch, overlays, "under_checkerboard", c_bar.checkerboard_cutout)
    assert_uniform([call[1] for call in calls], 0, 2 * np.pi)
    assert_uniform([call[2] for call in calls], 4, 10)
    assert np.concatenate([call[3].ravel() for call in calls]).mean() == pytest.approx(0.4, abs=0.005)
    calls = arguments_of(monkeypatch, lenses, "under_water", c_bar.caustic_refraction)
    assert_uniform([call[1] for call in calls], 0.5, 2)
    assert_uniform([call[2] for call in calls], 30, 50)
    calls = arguments_of(monkeypatch, lenses, "rippled", c_bar.ripple)
    assert_uniform([call[1] for call in calls], 4, 12)
    assert_uniform([call[2] for call in calls], 0, 2 * np.pi)
    calls = arguments_of(monkeypatch, lenses, "whirled", c_bar.pinch_and_twirl)
    assert_even(np.sign([call[1] for call in calls]), [1.0, -1.0])
    calls = arguments_of(monkeypatch, lenses, "with_colours_apart", c_bar.transverse_chromatic_abberation)
    assert_even([call[1][0] for call in calls], [1.0, 1.1, 1.2])
    assert all(sorted(call[1]) == [1.0, 1.1, 1.2] for call in calls)
    calls = arguments_of(monkeypatch, overlays, "under_lines", c_bar.lines)
    ends = np.array([call[1] for call in calls])
    assert ends.shape == (400, 16, 4)
    middles = (ends[..., :2] + ends[..., 2:]) / 2
    assert (
        stats.kstest(
            middles[..., 0].ravel() + np.random.default_rng(0).uniform(-0.5, 0.5, 6400), stats.uniform(0, 40).cdf
        ).statistic
        < 0.03
    )
    reach = np.hypot(*(ends[..., 2:] - ends[..., :2]).reshape(-1, 2).T)
    assert np.abs(reach - 80).max() < 3


FIELDS = [(side, name) for side, found in PUBLISHED["flat_grey"].items() for name in found]


@pytest.mark.parametrize(("side", "name"), FIELDS)
def test_a_grey_picture_comes_out_with_the_published_mean_and_spread(side: str, name: str) -> None:
    image, edition = np.full((int(side), int(side), 3), 128, np.uint8), {"224": "imagenet-224", "32": "cifar-32"}[side]
    times = {"224": 12, "32": 100}[side] if corruption_of(name).random else 2  # and those two are the same
    for severity, expected in enumerate(PUBLISHED["flat_grey"][side][name], start=1):
        made = [sp.corrupt(image, name, severity, key=str(key), edition=edition) for key in range(times)]
        means = np.array([one.mean() for one in made])
        # a wave so long that it lightens or darkens the whole picture is rare, and all that a standard error comes from
        error = np.hypot(expected["standard_error"], means.std(ddof=1) / np.sqrt(times)) + 0.01
        assert means.mean() == pytest.approx(expected["mean"], abs=4 * error)
        spread = np.array([one.std() for one in made])
        assert spread.mean() == pytest.approx(expected["spread"], rel=0.01, abs=4 * spread.std() / np.sqrt(times) + 0.02)


@pytest.mark.parametrize("edition", ["imagenet-224", "cifar-32"])
def test_shares_and_spreads_are_those_of_the_formulas(edition: str) -> None:
    side = {"imagenet-224": 224, "cifar-32": 32}[edition]
    grey = np.full((side, side, 3), 100, np.uint8)
    times = 20 if side == 224 else 300

    def made(name: str, severity: int) -> Any:
        return np.array([sp.corrupt(grey, name, severity, key=str(key), edition=edition) for key in range(times)])

    for severity in (1, 3, 5):
        strength = {
            name: float(severity_parameters(name, severity, edition)["strength"])
            for name in ("blue_noise_sample", "checkerboard_cutout")
        }
        black = (made("blue_noise_sample", severity)[..., 0] == 0).mean()
        assert black == pytest.approx(
            stats.norm.cdf(0.3 * strength["blue_noise_sample"] - 2.5), rel=0.1 if side == 32 else 0.02
        )
        hidden = (made("checkerboard_cutout", severity)[..., 0] == 128).mean()
        assert hidden == pytest.approx(strength["checkerboard_cutout"] / 20, abs=0.03)


def test_a_field_has_the_published_spectrum_and_spread_one() -> None:
    rng = np.random.default_rng(0)
    for height, width in ((64, 64), (63, 64), (64, 63), (33, 47)):
        for brown in (False, True):
            noise = spectra.noise_of(
                rng.uniform(0, 2 * np.pi, spectra.phases_needed(height, width)), height, width, brown=brown
            )
            assert noise.std() == pytest.approx(1)
            power = np.abs(np.fft.fft2(noise))
            slow_part, fast_part = (
                power[1:4, 1:4].mean(),
                power[height // 2 - 3 : height // 2, width // 2 - 3 : width // 2].mean(),
            )
            assert (slow_part > 50 * fast_part) if brown else (fast_part > 5 * slow_part)


def test_perlin_noise_without_direction_is_flat_and_not_black() -> None:
    slopes, swaps = np.zeros((256, 2), np.int64), np.zeros(256, np.int64)
    image = np.full((40, 40, 3), 200, np.uint8)
    assert np.array_equal(overlays.under_turbulence(image, slopes, swaps, 0.5), np.full_like(image, 163))


def test_sines_and_angles_without_a_branch_are_those_of_the_library() -> None:
    rng = np.random.default_rng(0)
    angles = rng.uniform(-2000, 2000, 5000)
    assert max(abs(overlays.sine(angle) - np.sin(angle)) for angle in angles) < 1e-12
    assert max(abs(overlays.cosine(angle) - np.cos(angle)) for angle in angles) < 1e-12
    sides = [
        *rng.normal(0, 50, (5000, 2)),
        (0.0, 0.0),
        (0.0, 3.0),
        (0.0, -3.0),
        (2.0, 0.0),
        (-2.0, 0.0),
        (1.0, 1.0),
        (-1.0, -1.0),
    ]
    assert max(abs(overlays.angle_of(right, down) - np.arctan2(right, down)) for right, down in sides) < 1e-14


@pytest.mark.filterwarnings("ignore::shiftproof.corruptions.apply.SizeWarning")
@pytest.mark.parametrize("name", NAMES)
def test_a_long_strip_takes_no_gigabytes(name: str) -> None:
    assert sp.corrupt(np.full((1, 30_000, 3), 90, np.uint8), name, 3).shape == (1, 30_000, 3)


def test_imagenet_c_stays_the_fifteen() -> None:
    assert len(sp.IMAGENET_C) == 15
    assert len(sp.IMAGENET_C_BAR) == len(sp.CIFAR_C_BAR) == 10
    assert len({*sp.IMAGENET_C_BAR, *sp.CIFAR_C_BAR}) == len(NAMES) == 15
    assert not {*sp.IMAGENET_C} & {*NAMES}
