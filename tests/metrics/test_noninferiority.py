"""Tests at a bound: never wrong more often than they say, and in agreement with their intervals and with others' numbers."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from shiftproof.errors import BadInput
from shiftproof.metrics import clopper_pearson
from shiftproof.metrics.accuracy import PairedCounts
from shiftproof.metrics.intervals import normal_quantile
from shiftproof.metrics.noninferiority import (
    NUISANCE_RISK,
    NUISANCE_STEPS,
    UNKNOWN,
    ByInterval,
    OneSided,
    PairedShares,
    _score_limit,
    effective_pairs,
    score,
)


def exact(only_new: int, only_old: int, images: int) -> PairedShares:
    counts = PairedCounts(images - only_new - only_old, only_new, only_old, 0)
    return PairedShares(counts, counts)


def cells(images: int) -> list[tuple[int, int]]:
    return [(new, old) for new, old in itertools.product(range(images + 1), repeat=2) if new + old <= images]


@pytest.mark.parametrize("bound", [-0.05, -0.2])
def test_neither_error_exceeds_five_percent_at_the_bound_whatever_share_differs(bound: float) -> None:
    images = 12
    found = {cell: exact(*cell, images).p(bound) for cell in cells(images)}
    for differing in np.linspace(abs(bound), 1, 41):
        shares = [(differing + bound) / 2, (differing - bound) / 2]
        chances = {cell: _trinomial(cell, images, shares) for cell in found}
        passes = sum(chance for cell, chance in chances.items() if found[cell].above <= 0.05)
        fails = sum(chance for cell, chance in chances.items() if found[cell].below <= 0.05)
        assert max(passes, fails) <= 0.05
    # and it does reject: as many images that only one model has right leave no doubt
    assert found[images, 0].above < 0.01
    assert found[0, images].below < 0.01


def _trinomial(cell: tuple[int, int], images: int, shares: list[float]) -> float:
    held = [max(0.0, share) for share in (*shares, 1 - sum(shares))]  # rounding leaves some just below 0
    ways = math.comb(images, cell[0]) * math.comb(images - cell[0], cell[1])
    return ways * held[0] ** cell[0] * held[1] ** cell[1] * held[2] ** (images - sum(cell))


@pytest.mark.parametrize(("cell", "bound"), [((3, 1), -0.1), ((0, 2), -0.3), ((2, 2), 0.0), ((4, 1), 0.15)])
def test_a_p_value_is_the_sum_over_all_outcomes_at_least_as_extreme(cell: tuple[int, int], bound: float) -> None:
    """The same by brute force: every cell of the table, at every share of differing images that is searched."""
    images = 12
    low, high = clopper_pearson(sum(cell), images, level=1 - NUISANCE_RISK)
    every = cells(images)
    scores = np.array([float(score(np.array(new), np.array(old), images, bound)) for new, old in every])
    seen = scores[every.index(cell)]
    worst = 0.0
    for share in np.linspace(np.sqrt(max(low, abs(bound))), np.sqrt(high), NUISANCE_STEPS) ** 2:
        chances = np.array([_trinomial(one, images, [(share + bound) / 2, (share - bound) / 2]) for one in every])
        worst = max(worst, float(chances[scores >= seen - 1e-9].sum()))
    assert exact(*cell, images).p(bound).above == pytest.approx(min(1, worst + NUISANCE_RISK), abs=1e-9)


def test_the_score_is_that_of_published_limits() -> None:
    """Airway hyper-responsiveness of 21 children, 1 and 7 of them on one side alone (Fagerland et al., 2014)."""
    reach = normal_quantile(0.975)
    assert _score_limit(1, 7, 21, reach) == pytest.approx(-0.517, abs=0.0005)
    assert -_score_limit(7, 1, 21, reach) == pytest.approx(-0.026, abs=0.0005)


@pytest.mark.parametrize("cell", [(0, 0), (5, 5), (2, 9), (30, 0)])
@pytest.mark.parametrize("level", [0.9, 0.99])
def test_an_interval_ends_where_its_tests_turn(cell: tuple[int, int], level: float) -> None:
    found = exact(*cell, 60)
    low, high = found.interval(level)
    tail = (1 - level) / 2
    assert low < (cell[0] - cell[1]) / 60 < high
    assert found.p(low - 1e-4).above <= tail < found.p(low + 1e-4).above
    assert found.p(high + 1e-4).below <= tail < found.p(high - 1e-4).below


def test_both_models_are_treated_alike() -> None:
    one, other = exact(9, 4, 100), exact(4, 9, 100)
    assert one.p(-0.03) == OneSided(*reversed(other.p(0.03)))
    assert one.interval(0.9) == pytest.approx([-end for end in reversed(other.interval(0.9))], abs=2e-6)


def test_beyond_every_difference_all_is_certain() -> None:
    assert exact(3, 4, 10).p(-1.0).above == 0
    assert exact(3, 4, 10).p(1.0).above == 1


def test_images_that_are_copies_tell_no_more_than_their_originals() -> None:
    generator = np.random.default_rng(0)
    new, old = generator.random(200) < 0.8, generator.random(200) < 0.7
    clusters = np.repeat(np.arange(200), 5)
    assert effective_pairs(new.repeat(5), old.repeat(5), clusters) == pytest.approx(200, rel=0.02)
    copies = PairedShares.of(new.repeat(5), old.repeat(5), clusters=clusters)
    alone = PairedShares.of(new, old)
    assert copies.interval(0.9) == pytest.approx(alone.interval(0.9), abs=0.012)
    # rounded against either side: never narrower than the originals
    assert copies.interval(0.9)[0] <= alone.interval(0.9)[0] + 1e-3


def test_one_image_a_cluster_is_no_clustering() -> None:
    new, old = np.arange(30) % 3 > 0, np.arange(30) % 4 > 0
    assert PairedShares.of(new, old, clusters=np.arange(30)) == PairedShares.of(new, old)


def test_clusters_that_all_agree_count_as_one_image_each() -> None:
    same = np.ones(300, bool)
    found = PairedShares.of(same, same, clusters=np.repeat(np.arange(100), 3))
    assert found.least == PairedCounts(100, 0, 0, 0)


def test_a_test_by_an_interval_is_the_binomial_one() -> None:
    found = ByInterval(lambda level: clopper_pearson(45, 60, level=level))
    for bound in (0.6, 0.7, 0.8, 0.9):
        p = found.p(bound)
        for seen, side in ((p.above, "greater"), (p.below, "less")):
            wanted = stats.binomtest(45, 60, bound, alternative=side).pvalue
            assert seen == pytest.approx(wanted, rel=1e-4) if wanted < 0.49 else seen > 0.4


def test_of_too_few_clusters_nothing_is_said() -> None:
    assert ByInterval(lambda _: None).p(0.5) == UNKNOWN


def test_counts_below_zero_are_refused() -> None:
    with pytest.raises(BadInput, match="cannot be negative"):
        score(np.array(-1), np.array(0), 10, -0.1)
