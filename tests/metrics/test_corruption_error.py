"""Corruption errors, worked by hand and again in exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from shiftproof.corruptions import IMAGENET_C, corruption_groups
from shiftproof.errors import BadInput
from shiftproof.metrics import (
    corruption_error,
    mean_corruption_error,
    relative_corruption_error,
    relative_mean_corruption_error,
)
from shiftproof.reference import load_table, source_of

ERRORS = [[0.2, 0.4], [0.3, 0.5], [0.1, 0.1]]
BASELINE = [[0.4, 0.4], [0.5, 0.5], [0.2, 0.3]]


def test_three_corruptions_at_two_severities_as_on_paper() -> None:
    # 0.6 / 0.8, 0.8 / 1.0 and 0.2 / 0.5; their mean is 1.95 / 3
    assert corruption_error(ERRORS, BASELINE) == pytest.approx([0.75, 0.8, 0.4])
    assert mean_corruption_error(ERRORS, BASELINE) == pytest.approx(0.65)
    # clean errors 0.1 and 0.3: 0.2 / 0.1, 0.3 / 0.2 and 0 / -0.05; their mean is 3.5 / 3
    assert relative_corruption_error(ERRORS, 0.1, BASELINE, 0.3) == pytest.approx([2, 1.5, 0])
    assert relative_mean_corruption_error(ERRORS, 0.1, BASELINE, 0.3) == pytest.approx(3.5 / 3)


def test_the_baseline_beside_itself_is_one() -> None:
    assert corruption_error(BASELINE, BASELINE) == pytest.approx([1, 1, 1])
    assert relative_mean_corruption_error(BASELINE, 0.1, BASELINE, 0.1) == pytest.approx(1)


def test_a_baseline_may_be_given_as_means_over_severities() -> None:
    means = np.mean(BASELINE, axis=1)
    assert corruption_error(ERRORS, means) == pytest.approx(corruption_error(ERRORS, BASELINE))
    assert relative_corruption_error(ERRORS, 0.1, means, 0.3) == pytest.approx([2, 1.5, 0])


@pytest.mark.parametrize("seed", range(5))
def test_random_tables_agree_with_exact_fractions(seed: int) -> None:
    generator = np.random.default_rng(seed)
    corruptions, severities, images = generator.integers(1, 7), generator.integers(1, 6), 500
    own, other = generator.integers(1, images, size=(2, corruptions, severities)).tolist()
    clean, other_clean = generator.integers(1, 20, size=2).tolist()
    ratios = [Fraction(sum(row), sum(base)) for row, base in zip(own, other, strict=True)]
    relative = [
        Fraction(sum(row) - len(row) * clean, sum(base) - len(base) * other_clean)
        for row, base in zip(own, other, strict=True)
        if sum(base) != len(base) * other_clean
    ]
    shares = np.array(own) / images, np.array(other) / images
    assert mean_corruption_error(*shares) == pytest.approx(float(sum(ratios) / len(ratios)), rel=1e-12)
    found = relative_mean_corruption_error(shares[0], clean / images, shares[1], other_clean / images)
    assert found == pytest.approx(float(sum(relative) / len(relative)), rel=1e-9)


@pytest.mark.parametrize(
    ("errors", "baseline", "words"),
    [
        ([0.1, 0.2], [0.1, 0.2], "corruptions, severities"),
        ([[0.1, 0.2]], [[0.1, 0.2, 0.3]], r"\(1, 2\)"),
        ([[0.1, 0.2]], [0.1, 0.2], r"\(1,\)"),
        ([[0.1], [0.2]], [[0.1], [0.0]], "corruption 1 .*the CE is undefined"),
        (np.empty((0, 5)), np.empty((0, 5)), "corruptions, severities"),
    ],
)
def test_what_cannot_be_divided_is_said(errors: object, baseline: object, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        mean_corruption_error(errors, baseline)  # type: ignore[arg-type]


def test_a_baseline_that_loses_nothing_cannot_be_divided_by() -> None:
    with pytest.raises(BadInput, match="loses no accuracy"):
        relative_corruption_error([[0.5, 0.5]], 0.1, [[0.25, 0.25]], 0.25)


def test_the_published_means_of_alexnet_are_those_of_its_severities() -> None:
    rows = {row["corruption"]: row for row in load_table("alexnet_corruption_errors")}
    assert list(rows) == ["clean", *IMAGENET_C, *corruption_groups()["extra"]]
    for name in IMAGENET_C:
        each = [float(rows[name][f"s{severity}"]) for severity in range(1, 6)]
        assert float(rows[name]["mean"]) == pytest.approx(np.mean(each), abs=1e-9)
    assert all(not rows[name]["s1"] for name in corruption_groups()["extra"])


def test_the_published_models_are_measured_in_multiples_of_alexnet() -> None:
    for table, columns in [("imagenet_c_models", ("mce", "relative_mce")), ("imagenet_p_models", ("mfr", "mt5d"))]:
        rows = {row["model"]: row for row in load_table(table)}
        assert [float(rows["AlexNet"][column]) for column in columns] == [100, 100]
        assert "Hendrycks" in source_of(table)
