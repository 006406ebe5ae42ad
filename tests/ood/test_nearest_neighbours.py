"""The k-th nearest training image and the nearest row: exact, whatever the blocks, in memory or in a file."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from ood.made_up import InBlocks, inside, outside
from shiftproof.errors import BadInput
from shiftproof.ood import nearest_neighbours as kept_rows
from shiftproof.ood.nearest_neighbours import RowsInMemory, RowsOnDisk, fit_knn, nearest_rows, unit_length
from shiftproof.types import Features, Predictions


def with_features(predictions: Predictions, features: Features) -> Predictions:
    return dataclasses.replace(predictions, features=features)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_rows, "ROWS_AT_ONCE", 37)


@pytest.mark.parametrize("neighbours", [1, 5, 50, 240])
@pytest.mark.usefixtures("small_blocks")
def test_distances_are_those_of_scikit_learn(neighbours: int) -> None:
    peer = NearestNeighbors(n_neighbors=neighbours, algorithm="brute").fit(unit_length(inside().need_features()))
    distances, _ = peer.kneighbors(unit_length(outside().need_features()))
    np.testing.assert_allclose(fit_knn(inside(), neighbours=neighbours)(outside()), distances[:, -1], rtol=1e-6)


def test_the_second_nearest_worked_by_hand() -> None:
    training = with_features(inside(3), np.array([[2.0, 0.0], [0.0, 5.0], [-1.0, 0.0]]))
    asked = with_features(inside(1), np.array([[7.0, 0.0]]))
    assert fit_knn(training, neighbours=2)(asked) == pytest.approx(np.sqrt(2))


def test_only_the_directions_of_features_count() -> None:
    sizes = np.random.default_rng(3).uniform(0.01, 100, (300, 1))
    training = with_features(inside(), inside().need_features() * sizes[:240])
    asked = with_features(outside(), outside().need_features() * sizes[240:])
    np.testing.assert_allclose(fit_knn(training, neighbours=9)(asked), fit_knn(inside(), neighbours=9)(outside()), rtol=1e-5)


def test_a_row_of_zeros_is_one_away_from_every_direction() -> None:
    asked = with_features(inside(2), np.stack([np.zeros(48, np.float32), inside().need_features()[0]]))
    assert fit_knn(inside(), neighbours=3)(asked)[0] == pytest.approx(1, rel=1e-6)
    training = with_features(inside(), np.where(np.arange(240)[:, None] < 2, 0, inside().need_features()))
    assert fit_knn(training, neighbours=2)(asked)[0] == 0


def test_an_image_of_the_training_set_is_at_no_distance_from_itself() -> None:
    assert fit_knn(inside(), neighbours=1)(inside()).max() < 1e-7


def test_features_that_are_nearly_alike_keep_their_distances() -> None:
    # as of a network with random weights: all images in one direction, but for a thousandth
    common = np.random.default_rng(4).normal(size=48)
    training, asked = (with_features(one, common + 1e-3 * one.need_features()) for one in (inside(), outside()))
    rows, others = (unit_length(one.need_features()) for one in (training, asked))
    every = np.linalg.norm(others[:, None] - rows, axis=2)
    np.testing.assert_allclose(fit_knn(training, neighbours=9)(asked), np.sort(every, axis=1)[:, 8], rtol=1e-5)


@pytest.mark.parametrize("size", [1, 7, 100])
@pytest.mark.usefixtures("small_blocks")
def test_scores_do_not_depend_on_the_blocks_learnt_from(size: int) -> None:
    whole, in_blocks = (fit_knn(training, neighbours=9) for training in (inside(), InBlocks(inside(), size)))
    np.testing.assert_allclose(in_blocks(outside()), whole(outside()), rtol=1e-5)


@pytest.mark.usefixtures("small_blocks")
def test_references_in_a_file_give_the_same_answers() -> None:
    in_memory = fit_knn(InBlocks(inside(), 50), neighbours=9)
    in_file = fit_knn(InBlocks(inside(), 50), neighbours=9, gigabytes=0)
    assert isinstance(in_memory.references, RowsInMemory)
    assert isinstance(in_file.references, RowsOnDisk)
    assert np.array_equal(in_file(outside()), in_memory(outside()))
    assert len(in_file.references) == 240


def test_half_precision_takes_half_the_room_and_hardly_moves_a_score() -> None:
    half, whole = (fit_knn(inside(), neighbours=9, precision=precision) for precision in ("float16", "float32"))
    assert isinstance(half.references, RowsInMemory)
    assert half.references.rows.nbytes == 240 * 48 * 2
    np.testing.assert_allclose(half(outside()), whole(outside()), rtol=1e-3)


def test_with_fewer_images_than_neighbours_the_farthest_counts_and_is_told() -> None:
    fitted = fit_knn(inside(20))
    assert fitted.found() == {"neighbours": 20, "references": 20}
    assert np.array_equal(fitted(outside()), fit_knn(inside(20), neighbours=20)(outside()))


def test_a_neighbour_that_is_one_in_few_is_told() -> None:
    assert fit_knn(inside(), neighbours=2).notes == ()
    assert "neighbour 60 of 240 training images is one in 4" in fit_knn(inside(), neighbours=60).notes[0]


def test_the_nearest_neighbour_is_number_one() -> None:
    with pytest.raises(BadInput, match="number 1"):
        fit_knn(inside(), neighbours=0)


@pytest.mark.parametrize("normalised", [True, False])
@pytest.mark.parametrize("block", [1, 7, 4096])
def test_the_nearest_row_is_that_of_a_search_in_double_precision(normalised: bool, block: int) -> None:
    references, points = inside().need_features(), outside().need_features()
    places, distances = nearest_rows(points, references, normalised=normalised, block=block)
    rows, others = (unit_length(one) if normalised else one.astype(np.float64) for one in (references, points))
    every = np.linalg.norm(others[:, None] - rows, axis=2)
    assert np.array_equal(places, every.argmin(axis=1))
    np.testing.assert_allclose(distances, every.min(axis=1), rtol=1e-12)


@pytest.mark.parametrize("block", [3, 4096])
def test_of_equally_near_rows_the_first_counts_and_equal_rows_are_at_no_distance(block: int) -> None:
    references = np.concatenate([inside(30).need_features()] * 3)
    places, distances = nearest_rows(references, references, block=block)
    assert np.array_equal(places, np.tile(np.arange(30), 3))
    assert distances.max() == 0


def test_neighbours_that_single_precision_cannot_tell_apart_are_told_apart() -> None:
    generator = np.random.default_rng(6)
    point = generator.normal(size=48)
    direction = generator.normal(size=48)
    references = point + direction * np.array([1.0, 1 - 1e-10, 1 + 1e-10, 5.0])[:, None]
    places, _ = nearest_rows(point[None], references, normalised=False)
    assert places.tolist() == [1]


def test_among_no_rows_none_is_nearest() -> None:
    with pytest.raises(BadInput, match="nothing to search"):
        nearest_rows(np.ones((1, 2)), np.ones((0, 2)))
