"""Intervals of calibration errors, against simulated models whose true gap between confidence and accuracy is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special, stats

from shiftproof.metrics import (
    clopper_pearson,
    debiased_calibration_error,
    debiased_calibration_interval,
    expected_calibration_interval,
    overconfidence_interval,
    rms_calibration_error,
    rms_calibration_interval,
)
from shiftproof.metrics.calibration import _gaps_of, _noncentral_quantile

Drawn = tuple[NDArray[np.floating], NDArray[np.bool_], NDArray[np.integer]]
INTERVALS = (rms_calibration_interval, debiased_calibration_interval, expected_calibration_interval)


def drawn_model(images: int, gap: float, seed: int, copies: int = 1) -> Drawn:
    """Confidences between 0.5 and 1, right less often by just `gap`, and the photo of each image."""
    generator = np.random.default_rng(seed)
    confidence = generator.uniform(0.5, 1, images)
    correct = generator.random(images) < confidence - gap
    return np.repeat(confidence, copies), np.repeat(correct, copies), np.repeat(np.arange(images), copies)


def test_the_chance_of_a_noncentral_number_is_scipys() -> None:
    for degrees, centre in ((1.0, 0.5), (3.0, 10.0), (15.0, 0.0), (80.0, 400.0), (50.0, 5000.0)):
        values = (
            stats.ncx2.ppf([0.025, 0.3, 0.975], degrees, centre) if centre else stats.chi2.ppf([0.025, 0.3, 0.975], degrees)
        )
        ours = [stats.norm.cdf(_noncentral_quantile(value, degrees, centre)) for value in values]
        assert ours == pytest.approx([0.025, 0.3, 0.975], abs=0.001)


@pytest.mark.parametrize("interval", INTERVALS)
@pytest.mark.parametrize("gap", [0.0, 0.1])
def test_an_interval_holds_the_true_gap(interval: Any, gap: float) -> None:
    held = 0
    for seed in range(300):
        confidence, correct, _ = drawn_model(400, gap, seed)
        low, high = interval(confidence, correct)
        held += low <= gap + 1e-12 and gap <= high
    # 95 % comes out as 91.2 % or less once in two hundred times
    assert held >= 0.912 * 300


def test_a_calibrated_model_shows_an_error_and_an_interval_that_begins_at_0() -> None:
    confidence, correct, _ = drawn_model(400, 0.0, 1)
    found = rms_calibration_interval(confidence, correct) or (np.nan, np.nan)
    assert found[0] == 0
    assert rms_calibration_error(confidence, correct) > 0.01
    # a thousand bins of a handful of images: nearly all of the error is chance, and the interval lies below the number
    fine = rms_calibration_interval(confidence, correct, bin_size=4) or (np.nan, np.nan)
    assert fine[1] < rms_calibration_error(confidence, correct, bin_size=4)


def test_the_debiased_error_lies_in_its_interval() -> None:
    for seed in range(20):
        confidence, correct, _ = drawn_model(500, 0.15, seed)
        low, high = debiased_calibration_interval(confidence, correct) or (np.nan, np.nan)
        assert low < debiased_calibration_error(confidence, correct) < high


@pytest.mark.parametrize("interval", [*INTERVALS, overconfidence_interval])
def test_copies_of_an_image_tell_no_more_than_the_image(interval: Any) -> None:
    options = {"bin_size": 400} if interval is rms_calibration_interval else {}
    once = interval(*drawn_model(300, 0.1, 7)[:2], **({"bin_size": 100} if options else {}))
    confidence, correct, photos = drawn_model(300, 0.1, 7, copies=4)
    alone, again = interval(confidence, correct, **options), interval(confidence, correct, clusters=photos, **options)
    assert again == pytest.approx(once, abs=0.02)  # bins have a few answers added, which copies make less of
    assert again[1] - again[0] > 1.5 * (alone[1] - alone[0])


@pytest.mark.parametrize("interval", [*INTERVALS, overconfidence_interval])
def test_fewer_than_five_clusters_tell_nothing(interval: Any) -> None:
    confidence, correct, photos = drawn_model(100, 0.1, 3)
    assert interval(confidence, correct, clusters=photos % 4) is None
    assert interval(confidence, correct, clusters=photos % 5) is not None


def test_fewer_images_than_a_bin_still_have_an_interval() -> None:
    # one bin of 60 images: the gap of their means, 0.1, with its standard error
    confidence, correct = np.full(60, 0.8), np.arange(60) % 10 < 7
    low, high = rms_calibration_interval(confidence, correct) or (np.nan, np.nan)
    error = np.sqrt(0.7 * 0.3 / 60)
    assert low == 0
    assert high == pytest.approx(0.1 + stats.t.ppf(0.975, 59) * error, abs=0.01)


def test_all_right_answers_leave_overconfidence_as_open_as_accuracy() -> None:
    low, high = overconfidence_interval(np.full(26, 0.97), np.ones(26, dtype=bool)) or (np.nan, np.nan)
    # confidence that never varies is known only as well as 26 images know a share
    assert high >= 0.97 - clopper_pearson(26, 26)[0]
    assert low <= -0.03


@pytest.mark.parametrize("images", [26, 200])
def test_the_interval_of_overconfidence_holds_the_truth_of_nearly_perfect_models(images: int) -> None:
    held, truth = 0, float(np.mean(special.expit(4 + 1.2 * (z := stats.norm.ppf((np.arange(20000) + 0.5) / 20000)))))
    truth -= float(np.mean(special.expit(3.5 + z)))
    for seed in range(400):
        generator = np.random.default_rng(seed)
        easy = generator.normal(size=images)
        correct = generator.random(images) < special.expit(3.5 + easy)
        low, high = overconfidence_interval(special.expit(4 + 1.2 * easy), correct) or (np.nan, np.nan)
        held += low <= truth <= high
    # drawing again holds it 70 times in a hundred at 26 images, a quarter of which come out all right
    assert held >= 0.92 * 400


@pytest.mark.parametrize("clusters", [None, np.arange(12) // 2])
def test_no_calibration_error_is_more_than_one(clusters: Any) -> None:
    confidence, correct = np.array([0.0, 1.0] * 6), np.array([True, False] * 6)  # sure, and always wrong
    for interval in (rms_calibration_interval, debiased_calibration_interval, expected_calibration_interval):
        found = interval(confidence, correct, clusters=clusters)
        assert found is not None
        assert found[0] <= found[1] <= 1


@pytest.mark.parametrize(
    "interval", [rms_calibration_interval, debiased_calibration_interval, expected_calibration_interval]
)
def test_clusters_of_one_image_each_are_no_clusters(interval: Any) -> None:
    generator = np.random.default_rng(6)
    confidence = generator.uniform(0.3, 1, 400)
    correct = generator.random(400) < confidence**2
    alone, numbered = interval(confidence, correct), interval(confidence, correct, clusters=generator.permutation(400))
    assert numbered == pytest.approx(alone, rel=0.005)


def test_overconfidence_is_better_known_where_the_sure_answers_are_right() -> None:
    correct = np.arange(200) % 4 > 0
    confidence = np.where(correct, 0.9, 0.4) + np.linspace(-0.05, 0.05, 200)
    found = [overconfidence_interval(one, correct) for one in (confidence, np.roll(confidence, 1))]
    alike, otherwise = (high - low for low, high in found)  # type: ignore[misc]
    assert alike < 0.75 * otherwise


@pytest.mark.parametrize(("bins", "cases"), [(4, 30), (60, 12)])
def test_covariances_of_bins_need_no_table_of_all_bins_by_all_bins(bins: int, cases: int) -> None:
    """ImageNet-C as one set has 37,500 bins: their covariances would take 11 GB."""
    generator = np.random.default_rng(7)
    confidence, clusters = generator.uniform(0.3, 1, 1200), generator.integers(0, cases, 1200)
    correct = generator.random(1200) < generator.uniform(0.4, 1, cases)[clusters]
    found = _gaps_of(confidence, correct, np.arange(1200) % bins, clusters)
    assert found is not None
    assert found.common is not None
    table = np.diag(found.alone) + found.common @ found.common.T
    weighted = found.weights[:, None] * table
    assert found.variances == pytest.approx(np.diag(table))
    assert found.squares() == pytest.approx((weighted * weighted.T).sum())
    slopes = generator.normal(size=bins)
    assert found.variance_of(slopes) == pytest.approx(slopes @ table @ slopes)
