"""The drift test: fair bets, exact ranks, false alarms as seldom as promised, and drift that is noticed."""

from __future__ import annotations

import numpy as np
import pytest

from shiftproof.errors import BadInput
from shiftproof.metrics.sequential import BETS, DriftTest, likely_start, stakes


def test_every_bet_is_fair_and_loses_no_more_than_its_stake() -> None:
    middle = (np.arange(200_000) + 0.5) / 200_000
    multiples = stakes(middle)
    assert multiples.shape == (200_000, BETS)
    assert np.abs(multiples.mean(axis=0) - 1).max() < 1e-7
    assert stakes(np.linspace(0, 1, 10_001)).min() >= 0


def test_a_rank_is_the_share_of_earlier_scores_below_with_ties_broken_by_the_coin() -> None:
    test = DriftTest(np.array([1.0, 2.0, 2.0, 3.0]))
    # of five scores with its own: one below, two equal and itself, so from 1/5 to 4/5 by the coin
    assert test.add([2.0], [0.0]) == [pytest.approx(1 / 5)]
    assert test.add([2.0], [1.0]) == [pytest.approx(5 / 6)]
    assert test.add([9.0], [0.5]) == [pytest.approx(6.5 / 7)]


def test_the_evidence_is_the_mean_of_all_bets_begun_at_every_image() -> None:
    """By hand, as a sum over starts: a share 1 / (s (s + 1)) of the capital bets from image s on, the rest waits."""
    generator = np.random.default_rng(3)
    test = DriftTest(generator.normal(size=20))
    test.add(generator.normal(0.5, size=12), generator.random(12))
    multiples = stakes(np.array(test.ranks))
    for images in range(1, 13):
        begun = [
            np.prod(multiples[start - 1 : images], axis=0).mean() / (start * (start + 1)) for start in range(1, images + 1)
        ]
        assert test.history[images - 1] == pytest.approx(sum(begun) + 1 / (images + 1), rel=1e-12)


def test_in_pieces_or_at_once_the_evidence_is_the_same() -> None:
    generator = np.random.default_rng(4)
    reference, scores, coins = generator.normal(size=50), generator.normal(size=90), generator.random(90)
    whole, pieces = DriftTest(reference), DriftTest(reference)
    whole.add(scores, coins)
    for start in range(0, 90, 7):
        pieces.add(scores[start : start + 7], coins[start : start + 7])
    assert pieces.history == whole.history
    assert pieces.ranks == whole.ranks


def test_false_alarms_are_as_seldom_as_promised() -> None:
    """Of 200 fixed streams without drift, ties among their scores; benchmarks/drift_alarms.py has 10,000."""
    generator = np.random.default_rng(5)
    alarms = 0
    for _ in range(200):
        test = DriftTest(generator.normal(size=40).round(1))
        test.add(generator.normal(size=120).round(1), generator.random(120))
        alarms += test.alarm_at(20) is not None
    assert alarms <= 200 * 0.05


@pytest.mark.parametrize(("shift", "latest"), [(3.0, 30), (1.0, 100), (-1.0, 100)])
def test_drift_in_either_direction_is_noticed_and_dated(shift: float, latest: int) -> None:
    generator = np.random.default_rng(6)
    test = DriftTest(generator.normal(size=500))
    test.add(generator.normal(size=400), generator.random(400))
    assert test.alarm_at(100) is None
    test.add(generator.normal(shift, size=latest), generator.random(latest))
    alarm = test.alarm_at(100)
    assert alarm is not None
    assert 400 < alarm <= 400 + latest
    assert abs(likely_start(test.ranks[:alarm]) - 401) < 40


def test_evidence_beyond_all_doubt_stays_a_number() -> None:
    test = DriftTest(np.zeros(10_000))
    test.add(np.arange(1.0, 3001.0), np.full(3000, 0.5))
    assert np.isfinite(test.evidence)
    assert test.evidence > 1e100


@pytest.mark.parametrize("reference", [[], [1.0, np.nan], [np.inf]])
def test_a_reference_that_is_none_is_refused(reference: list[float]) -> None:
    with pytest.raises(BadInput, match="reference scores"):
        DriftTest(np.array(reference))
