"""What an AUROC is made of: identities, and the arithmetic of the published tables."""

from __future__ import annotations

import numpy as np
import pytest

from shiftproof.errors import BadInput
from shiftproof.metrics import DecomposedAuroc, auroc, decomposed_auroc, pooled_auroc
from shiftproof.reference import load_table

ACCURACY = 0.7613  # of the ResNet-50 behind the published parts
INSIDE, OUTSIDE = 50_000, 31_807  # validation images of ImageNet, images of ImageNet-OOD
PARTS = {row["method"]: row for row in load_table("imagenet_ood_decomposition")}


def published_auroc(goal: str, method: str) -> float:
    rows = load_table("imagenet_ood_resnet50_auroc")
    return next(float(row["imagenet_ood"]) for row in rows if (row["goal"], row["method"]) == (goal, method))


def published_parts(method: str) -> DecomposedAuroc:
    row = PARTS[method]
    return DecomposedAuroc(float(row["correct_id_vs_ood"]), float(row["incorrect_id_vs_ood"]), ACCURACY)


@pytest.mark.parametrize("ties", [False, True])
def test_the_parts_add_up_to_the_whole(ties: bool) -> None:
    generator = np.random.default_rng(41)
    for _ in range(50):
        inside, outside = generator.normal(size=83), generator.normal(0.5, 1, size=59)
        if ties:
            inside, outside = inside.round(), outside.round()
        correct = generator.random(83) < generator.random()
        assert decomposed_auroc(inside, correct, outside).whole == pytest.approx(auroc(inside, outside), abs=1e-12)


@pytest.mark.parametrize("right", [False, True])
def test_where_all_answers_are_alike_the_other_part_is_missing(right: bool) -> None:
    inside, outside = np.array([1.0, 3.0]), np.array([2.0, 4.0])
    parts = decomposed_auroc(inside, np.full(2, right), outside)
    assert parts.accuracy == right
    assert np.isnan(parts.wrong if right else parts.correct)
    assert parts.whole == auroc(inside, outside) == 0.75


def test_pooled_groups_are_weighed_by_their_images() -> None:
    generator = np.random.default_rng(42)
    right, wrong, outside = (generator.normal(mean, 1, size).round(1) for mean, size in ((0, 70), (0.4, 30), (1, 90)))
    pooled = pooled_auroc([auroc(right, wrong), auroc(right, outside)], [30, 90])
    assert pooled == pytest.approx(auroc(right, np.concatenate([wrong, outside])), abs=1e-12)


def test_the_published_parts_of_msp_add_up_to_its_published_auroc() -> None:
    whole = published_parts("MSP").whole
    assert round(whole, 1) == published_auroc("new-class", "MSP") == 79.2


@pytest.mark.parametrize(("method", "whole"), [("MSP", 79.21), ("Max-Logit", 80.45), ("Energy", 79.91)])
def test_published_parts_add_up_as_worked_by_hand(method: str, whole: float) -> None:
    # 0.7613 * 86.9 + 0.2387 * 54.7 and so on
    assert published_parts(method).whole == pytest.approx(whole, abs=0.005)


def test_the_published_failure_auroc_is_that_of_mistakes_and_new_classes_pooled() -> None:
    wrong = INSIDE - round(ACCURACY * INSIDE)
    parts = [float(PARTS["MSP"][column]) for column in ("correct_vs_incorrect_id", "correct_id_vs_ood")]
    pooled = pooled_auroc(parts, [wrong, OUTSIDE])
    assert wrong == 11_935
    assert pooled == pytest.approx(86.76, abs=0.005)
    assert round(pooled, 1) == published_auroc("failure", "MSP")


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(BadInput, match="each of 3 ID images, got bool"):
        decomposed_auroc(np.ones(3), np.ones(2, bool), np.ones(4))
    with pytest.raises(BadInput, match="each of 3 ID images, got int64"):
        decomposed_auroc(np.ones(3), np.array([0, 1, 1]), np.ones(4))
    with pytest.raises(BadInput, match="each part needs its number of images"):
        pooled_auroc([0.5, 0.6], [10])
    with pytest.raises(BadInput, match="each part needs its number of images"):
        pooled_auroc([], [])
