"""The noises have the published laws, level by level, and every sample is drawn alone.

Seeds are fixed, so nothing here fails by chance. What the chi-square tests would notice is worked out and asserted:
`test_the_chi_square_tests_have_power`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image as Pillow
from scipy import stats

import shiftproof as sp
from corruptions import reference_noise
from corruptions.peer import peer_corruption
from corruptions.reference_noise import Law
from shiftproof.corruptions import corruption_of, noise
from shiftproof.corruptions.kernels import noise as tables
from shiftproof.corruptions.kernels.compiled import BLOCK, fill_with_random_bits
from shiftproof.corruptions.kernels.jpeg import jpeg_round_trip
from shiftproof.types import Image

NOISES = ("gaussian_noise", "shot_noise", "speckle_noise", "impulse_noise")
TABLES = {"gaussian_noise": tables.gaussian_table, "shot_noise": tables.shot_table, "speckle_noise": tables.speckle_table}
SEQUENCE_PARAMETERS = {  # of ImageNet-P, all editions
    "gaussian_noise": (0.02, 0.025, 0.03, 0.035, 0.05, 0.055, 0.06, 0.075, 0.085),
    "shot_noise": (125, 200, 300, 400, 700, 7.5),
    "speckle_noise": (0.05, 0.07, 0.11),
    "impulse_noise": (),
}
LEVELS = (0, 1, 2, 17, 100, 128, 201, 254, 255)
DRAWS = 300_000
ALARM = 1e-4  # p-values below this are a finding


def figures(name: str) -> list[float]:
    published = {float(figure) for column in corruption_of(name).severities.editions.values() for (figure,) in column}
    return sorted(published | set(SEQUENCE_PARAMETERS[name]))


def law_of(name: str, level: int, strength: float) -> Law:
    law: Law = getattr(reference_noise, name.replace("noise", "law"))(level, strength)
    return law


def ours(name: str, image: Image, seed: int, strength: float) -> Image:
    result: Image = getattr(noise, name)(
        image, np.random.default_rng(seed), **{corruption_of(name).severities.names[0]: strength}
    )
    return result


def pooled(law: Law, draws: int) -> tuple[NDArray[np.float64], Callable[[NDArray[np.float64]], NDArray[np.float64]]]:
    """Expected counts with neighbours put together until each bin expects 10, and the function that pools others alike."""
    bins = np.minimum((np.cumsum(law) * draws / 10).astype(int), int(draws / 10) - 1)
    _, bins = np.unique(bins, return_inverse=True)
    counts = np.bincount(bins, law * draws).astype(np.float64)
    small = counts < 10
    bins = np.where(small[bins], np.argmax(counts), bins)

    def pool(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.bincount(bins, values, minlength=len(counts)).astype(np.float64)[~small]

    return pool(law * draws), pool


def chi_square_p(image: Image, law: Law) -> float:
    """How likely counts as far from the law as these are; 0 where an impossible level came up."""
    counts = np.bincount(image.reshape(-1), minlength=256).astype(float)
    if counts[law == 0].any():
        return 0.0
    expected, pool = pooled(law, image.size)
    if len(expected) == 1:
        return 1.0
    return float(stats.chi2.sf(((pool(counts) - expected) ** 2 / expected).sum(), len(expected) - 1))


def power(law: Law, other: Law, draws: int) -> float:
    """Chance that the test above finds out that samples follow the other law."""
    expected, pool = pooled(law, draws)
    distance = ((pool(other * draws) - expected) ** 2 / expected).sum()
    return float(stats.ncx2.sf(stats.chi2.isf(ALARM, len(expected) - 1), len(expected) - 1, distance))


@pytest.mark.parametrize("name", TABLES)
def test_the_tables_hold_the_published_law_to_the_last_bit_but_one(name: str) -> None:
    for strength in figures(name):
        words = TABLES[name](strength).reshape(256, 256)
        own, other = (words >> 8) / 2**24, words & 255
        columns = np.broadcast_to(np.arange(256), (256, 256))
        whole = other == columns
        laws = np.where(whole, 1, own) / 256
        np.add.at(laws, (np.arange(256)[:, None], other), np.where(whole, 0, 1 - own) / 256)
        wanted = np.array([law_of(name, level, strength) for level in range(256)])
        # each of up to 256 columns gives a level its rest, rounded to 2^-32; one rounding is 2^-33
        assert np.abs(laws - wanted).max() < 256 * 2**-33, strength


@pytest.mark.parametrize("severity", [1, 3, 5])
@pytest.mark.parametrize("name", NOISES)
def test_each_level_is_drawn_from_its_law(name: str, severity: int) -> None:
    for edition in ("imagenet-224", "cifar-32"):
        strength = float(corruption_of(name).severities.editions[edition][severity - 1][0])
        for level in LEVELS:
            flat = np.full((DRAWS // 300, 100, 3), level, np.uint8)
            assert chi_square_p(ours(name, flat, 1000 + level, strength), law_of(name, level, strength)) > ALARM, level


@pytest.mark.parametrize("name", NOISES)
def test_the_published_lines_and_the_public_package_have_that_law_too(name: str) -> None:
    strength = float(corruption_of(name).severities.editions["imagenet-224"][2][0])
    peer = peer_corruption(name)
    np.random.seed(4)
    for level in (0, 17, 128, 254):
        flat = np.full((200, 200, 3), level, np.uint8)
        published = getattr(reference_noise, name)(flat, np.random.default_rng(level), strength)
        assert chi_square_p(published, law_of(name, level, strength)) > ALARM
        assert chi_square_p(peer(Pillow.fromarray(flat), 3).astype(np.uint8), law_of(name, level, strength)) > ALARM


def test_the_chi_square_tests_have_power() -> None:
    for level in (100, 128, 201):
        gaussian = law_of("gaussian_noise", level, 0.18)
        assert power(gaussian, law_of("gaussian_noise", level, 0.18 * 1.02), DRAWS) > 0.99
        # the law of the next level, which is a mean off by one
        assert power(law_of("gaussian_noise", level, 0.08), law_of("gaussian_noise", level + 1, 0.08), DRAWS) > 0.99
    for level in (100, 128, 201):
        for name, strength in (("speckle_noise", 0.35), ("shot_noise", 60.0), ("shot_noise", 12.0)):
            assert power(law_of(name, level, strength), law_of(name, level, strength * 1.02), DRAWS) > 0.99
    # half salt and half pepper: 52 to 48 would be seen nearly always, as would 5 % too many of them
    fair, biased = law_of("impulse_noise", 100, 0.27), law_of("impulse_noise", 100, 0.27)
    biased[[0, 255]] = 0.27 * 0.52, 0.27 * 0.48
    assert power(fair, biased, DRAWS) > 0.99
    assert power(law_of("impulse_noise", 100, 0.09), law_of("impulse_noise", 100, 0.0945), DRAWS) > 0.99
    # results rounded instead of cut are half a level off
    edges = (np.arange(1, 256) - 0.5 - 128) / (255 * 0.08)
    rounded = np.diff(stats.norm.cdf(edges), prepend=0, append=1)
    assert power(law_of("gaussian_noise", 128, 0.08), rounded, DRAWS) > 0.99


@pytest.mark.parametrize("name", NOISES)
def test_neighbours_and_channels_and_halves_of_a_random_word_are_independent(name: str) -> None:
    strength = float(corruption_of(name).severities.editions["imagenet-224"][4][0])
    drawn = ours(name, np.full((400, 400, 3), 120, np.uint8), 8, strength).astype(float)
    drawn -= drawn.mean()
    flat, bound = (
        drawn.reshape(-1),
        4.5 / np.sqrt(drawn.size),
    )  # a chance of 1 in 100,000 each; a correlation of 0.01 stands out
    for apart in (1, 2, 3, 1200, 1203, BLOCK // 2, BLOCK // 2 + 1, BLOCK, BLOCK + 1):
        assert abs((flat[apart:] * flat[:-apart]).mean() / flat.var()) < bound, apart
    spectrum = np.abs(np.fft.rfft(flat)[1:]) ** 2 / flat.var() / flat.size
    # of so many exponential variables the largest is above 2 log n with a chance of 1 / n
    assert spectrum.max() < 2 * np.log(spectrum.size)
    # beyond correlation: which quarter a sample falls into says nothing about the next
    for apart in (1, 3, BLOCK // 2):
        quarter = np.searchsorted(np.quantile(flat, (0.25, 0.5, 0.75)), flat)
        table = np.bincount(4 * quarter[apart:] + quarter[:-apart], minlength=16).reshape(4, 4)
        table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
        assert table.shape[0] > 1
        assert stats.chi2_contingency(table).pvalue > ALARM


@pytest.mark.parametrize("name", NOISES)
def test_images_of_other_names_get_other_noise(name: str) -> None:
    flat = np.full((224, 224, 3), 120, np.uint8)
    drawn = [sp.corrupt(flat, name, 5, key=f"{number}.png").astype(float) for number in range(6)]
    flats = np.array([image.reshape(-1) - image.mean() for image in drawn])
    correlations = np.corrcoef(flats)[np.triu_indices(6, 1)]
    assert np.abs(correlations).max() < 4.5 / np.sqrt(flat.size)


def test_random_bits_are_those_of_the_published_generator() -> None:
    bits = np.empty(BLOCK, np.uint32)
    fill_with_random_bits(bits, np.uint64(1234567), 0)
    words = bits[: BLOCK // 2].astype(np.uint64) | bits[BLOCK // 2 :].astype(np.uint64) << np.uint64(32)
    # the generator steps before it answers, so its first answer is our word 1
    assert words[1:4].tolist() == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def test_a_second_block_goes_on_where_the_first_ended() -> None:
    small, large = np.empty(64, np.uint32), np.empty(128, np.uint32)
    fill_with_random_bits(large, np.uint64(9), 0)
    words = [large[32 * part : 32 * (part + 1)] for part in range(4)]
    for block in range(2):
        fill_with_random_bits(small, np.uint64(9), block)
        assert np.array_equal(small, np.concatenate([words[block], words[2 + block]]))


def test_all_tables_of_a_benchmark_stay_in_memory_and_the_memory_is_bounded() -> None:
    for name, table in TABLES.items():
        assert len(figures(name)) <= table.cache_parameters()["maxsize"]
        assert table(figures(name)[0]).nbytes * table.cache_parameters()["maxsize"] <= 16 * 2**20


@pytest.mark.real
@pytest.mark.parametrize("name", NOISES)
def test_noise_is_as_strong_as_in_the_published_files(real_data: Path, name: str) -> None:
    folder = real_data / "imagenet-c-examples"
    clean = np.asarray(Pillow.open(folder / "clean.jpeg").convert("RGB"))
    for severity in range(1, 6):
        theirs = np.asarray(Pillow.open(folder / f"{name}_{severity}.jpeg").convert("RGB")).astype(float)
        # by their quantisation tables, these examples were saved with quality 75
        drawn = jpeg_round_trip(sp.corrupt(clean, name, severity, key="example"), 75).astype(float)
        assert (drawn - clean).std() == pytest.approx((theirs - clean).std(), rel=0.02), severity
