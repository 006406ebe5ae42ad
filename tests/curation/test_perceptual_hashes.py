"""Hashes that copies share and other pictures do not, and the search for near ones beside one that compares all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from blotches import blotches, cut_a_little, darker, mirrored, saved_badly, shrunk
from shiftproof.curation.duplicates import (
    MOST_BITS,
    features_like_earlier,
    features_like_others,
    hashes_like_earlier,
    hashes_like_others,
)
from shiftproof.curation.perceptual_hashes import PLAIN, Hashes, differing_bits, near_hashes, perceptual_hash
from shiftproof.datasets import open_dataset
from shiftproof.datasets.image_list import decoded
from shiftproof.errors import BadInput
from shiftproof.types import Image

COPIES = [shrunk, saved_badly, darker, cut_a_little]


def hashes_of(*images: Image) -> Hashes:
    return np.array([perceptual_hash(image) for image in images])


@pytest.mark.parametrize("copied", COPIES)
def test_a_copy_keeps_its_hash_but_for_a_few_bits(copied: Callable[[Image], Image]) -> None:
    pictures = [blotches(seed) for seed in range(20)]
    apart = differing_bits(hashes_of(*pictures), hashes_of(*map(copied, pictures)))
    assert apart.max() <= MOST_BITS


def test_other_pictures_differ_in_half_of_the_bits() -> None:
    hashes = hashes_of(*(blotches(seed) for seed in range(40)))
    rows, columns = np.triu_indices(len(hashes), 1)
    apart = differing_bits(hashes[rows], hashes[columns])
    assert apart.min() > MOST_BITS
    assert apart.mean() == pytest.approx(32, abs=2)


def test_a_mirror_image_is_another_picture_to_a_hash() -> None:
    assert differing_bits(hashes_of(blotches(1)), hashes_of(mirrored(blotches(1))))[0] > MOST_BITS


@pytest.mark.parametrize("shape", [(1, 1), (1, 500), (3, 7), (700, 40)])
def test_any_size_has_a_hash_and_one_colour_has_the_plain_one(shape: tuple[int, int]) -> None:
    assert perceptual_hash(np.full((*shape, 3), 77, np.uint8)) == PLAIN


def some_hashes(count: int, seed: int) -> Hashes:
    """Random hashes, half of them near others: a few bits of an earlier one flipped."""
    generator = np.random.default_rng(seed)
    hashes = generator.integers(1, 2**64, count, dtype=np.uint64)
    for place in range(count // 2, count):
        flipped = generator.choice(64, generator.integers(0, 20), replace=False)
        hashes[place] = hashes[place - count // 2] ^ np.uint64(sum(1 << int(bit) for bit in flipped))
    return hashes


@pytest.mark.parametrize("bits", [0, 1, 3, 4, 8, 11, 13])
def test_near_hashes_are_all_pairs_that_a_full_comparison_finds(bits: int) -> None:
    hashes, others = some_hashes(400, 1), some_hashes(400, 1)[::2]
    apart = np.bitwise_count(hashes[:, None] ^ hashes)
    for found, wanted in zip(near_hashes(hashes, bits=bits), np.nonzero(np.triu(apart <= bits, 1)), strict=True):
        np.testing.assert_array_equal(found, wanted)
    apart = np.bitwise_count(hashes[:, None] ^ others)
    for found, wanted in zip(near_hashes(hashes, others, bits=bits), np.nonzero(apart <= bits), strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("bits", [-1, 32])
def test_half_of_the_bits_are_not_near(bits: int) -> None:
    with pytest.raises(BadInput, match="fewer than 32 bits differ"):
        near_hashes(some_hashes(4, 0), bits=bits)


def test_nothing_is_near_nothing() -> None:
    none = np.empty(0, np.uint64)
    for rows in (
        *near_hashes(none, bits=8),
        *near_hashes(some_hashes(4, 0), none, bits=8),
        *hashes_like_earlier(none, bits=8),
    ):
        assert len(rows) == 0


def test_who_looks_like_one_that_went_stays_unless_it_looks_like_one_that_stays() -> None:
    # 1 is 2 bits from 0, and 2 is 2 bits from 1 but 4 from 0
    chain = np.array([0b110000, 0b110011, 0b111111], np.uint64)
    alike = hashes_like_earlier(chain, bits=2)
    assert (alike.rows.tolist(), alike.places.tolist(), alike.distances.tolist()) == ([1], [0], [2])


def test_equal_hashes_go_with_the_first_of_them() -> None:
    alike = hashes_like_earlier(np.array([9, 1 << 50, 9, 8, 9], np.uint64), bits=1)
    assert (alike.rows.tolist(), alike.places.tolist(), alike.distances.tolist()) == ([2, 3, 4], [0, 0, 0], [0, 1, 0])


def test_plain_pictures_look_like_nothing() -> None:
    plain = np.array([PLAIN, PLAIN, 2**32 - 1], np.uint64)
    assert hashes_like_earlier(plain, bits=2).rows.tolist() == []
    assert hashes_like_others(plain, plain[:1], bits=0).rows.tolist() == []


def test_features_are_compared_by_direction_across_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shiftproof.curation.duplicates.ROWS_AT_ONCE", 3)
    rows = np.random.default_rng(0).normal(size=(20, 8))
    rows[11] = 3 * rows[2] + 1e-3
    rows[17] = 0.5 * rows[11]
    alike = features_like_earlier(rows, most=0.01)
    assert (alike.rows.tolist(), alike.places.tolist()) == ([11, 17], [2, 2])
    cosine = 1 - rows[2] @ rows[11] / np.linalg.norm(rows[2]) / np.linalg.norm(rows[11])
    assert alike.distances.tolist() == pytest.approx([cosine] * 2, abs=1e-6)
    others = features_like_others(rows[[11, 5]], rows[:4], most=0.01)
    assert (others.rows.tolist(), others.places.tolist()) == ([0], [2])


@pytest.mark.real
def test_copies_of_real_photos_are_nearer_than_any_two_photos(real_data: Path) -> None:
    images = open_dataset(real_data / "ilsvrc-sample-1000")
    some = [decoded(images.source(sample)) for sample in images.samples[::10]]
    photos = [image for image in some if not isinstance(image, str)]
    hashes = hashes_of(*photos)
    rows, columns = np.triu_indices(len(photos), 1)
    assert differing_bits(hashes[rows], hashes[columns]).min() > MOST_BITS
    for copied in COPIES:
        near = differing_bits(hashes, hashes_of(*map(copied, photos))) <= MOST_BITS
        assert near.mean() >= (0.9 if copied is cut_a_little else 1), copied.__name__
