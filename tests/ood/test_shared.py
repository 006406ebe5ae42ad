"""Training images that several detectors share: the same scores, and nothing learnt or read twice."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from ood.made_up import InBlocks, inside, outside
from shiftproof.ood import class_means, ready, vim
from shiftproof.ood.shared import SharedPredictions, SharedTraining
from shiftproof.types import Head

FITTED = ("mahalanobis", "relative_mahalanobis", "residual", "vim", "knn", "she", "kl_matching", "react", "dice")


class Counted(InBlocks):
    """Training images that count how often they were walked over."""

    walks = 0

    def blocks(self):  # type: ignore[no-untyped-def]
        type(self).walks += 1
        return super().blocks()


@pytest.mark.parametrize("preset", ["authors", "openood"])  # whose residual and ViM differ in dimension
def test_detectors_that_share_their_training_images_score_as_each_alone(preset: str) -> None:
    shared = SharedTraining(InBlocks(inside(), 50))
    for name in FITTED:
        alone = ready(name, InBlocks(inside(), 50), preset=preset)
        together = ready(name, shared, preset=preset)
        assert np.array_equal(together(outside()), alone(outside()))
        assert together.parameters == alone.parameters


def test_what_two_detectors_learn_alike_is_learnt_once(monkeypatch: pytest.MonkeyPatch) -> None:
    heads: list[Head] = []
    origin_of = vim.origin_of

    def counting(head: Head, tolerance: float | None) -> vim.Origin:
        heads.append(head)
        return origin_of(head, tolerance)

    monkeypatch.setattr(vim, "origin_of", counting)
    shared = SharedTraining(inside())
    for name in ("vim", "residual"):
        ready(name, shared)
    assert len(heads) == 1
    assert class_means.overall_moments_of(shared) is class_means.overall_moments_of(shared)
    ready("residual", shared, parameters={"tolerance": 1e-3})
    assert len(heads) == 2  # another tolerance is another origin


def test_few_training_images_are_read_once_and_many_at_every_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    few = SharedTraining(Counted(inside(), 50))
    read = [tuple(image for block in few.blocks() for image in block.ids) for _ in range(3)]
    assert read[0] == read[1] == read[2] == inside().ids
    assert Counted.walks == 1
    monkeypatch.setattr("shiftproof.ood.shared.MOST_BYTES", 1000)
    many = SharedTraining(Counted(inside(), 50))
    assert [sum(map(len, many.blocks())) for _ in range(2)] == [len(inside())] * 2
    assert Counted.walks == 3


def test_a_walk_that_is_left_early_does_not_stand_for_all_images() -> None:
    shared = SharedTraining(InBlocks(inside(), 50))
    next(shared.blocks())
    assert sum(map(len, shared.blocks())) == len(inside())


def test_two_walks_at_a_time_read_every_image_once() -> None:
    shared = SharedTraining(InBlocks(inside(), 50))
    assert {sum(map(len, shared.blocks())) for _ in shared.blocks()} == {len(inside())}
    assert sum(map(len, shared.blocks())) == len(inside())


def test_fitted_detectors_do_not_keep_the_training_images() -> None:
    shared = SharedTraining(InBlocks(inside(), 50))
    gone = weakref.ref(shared)
    kept = [ready(name, shared) for name in FITTED]
    del shared
    gc.collect()
    assert kept
    assert gone() is None


def test_nothing_of_shared_predictions_is_taken_for_that_of_some_of_them() -> None:
    shared, rows = SharedPredictions.of(outside()), np.array([3, 1])
    for name in ("msp", "entropy", "residual", "mahalanobis"):
        detector = ready(name, inside())
        every = detector(shared)
        assert np.array_equal(detector(shared.take(rows)), detector(outside().take(rows)))
        assert np.array_equal(detector(shared), every)
