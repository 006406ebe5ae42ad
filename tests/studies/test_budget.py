"""What a budget promises: nothing twice, nothing wasted, the full set's answer as often as claimed. All seeds are fixed."""

from __future__ import annotations

import dataclasses
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hard_images import Results, hard_images
from shiftproof.errors import BadInput
from shiftproof.metrics import budget as metrics_budget
from shiftproof.metrics.budget import Layout, LikelyWrong, SampledCells, fit_likely_wrong
from shiftproof.studies.corruption import budget as budgets
from shiftproof.studies.corruption.budget import Benchmark, BoundedCache, Progress, next_pairs, stored_pairs

RESULTS = hard_images(250)  # 5000 pairs


def benchmark_of(results: Results = RESULTS, **changes: Any) -> Benchmark:
    images = len(results.leads)
    given = {"clean_leads": results.clean_leads, **changes}
    return Benchmark([f"{image:04d}" for image in range(images)], results.layout, results.weights, **given)


def run(benchmark: Benchmark, leads: NDArray[np.floating] = RESULTS.leads, **limits: Any) -> Progress:
    """As a study would: choose, predict, choose again, until nothing is missing."""
    table = np.full(benchmark.shape, np.nan)
    while not (progress := next_pairs(benchmark, table, **limits)).done:
        assert np.isnan(table[progress.missing]).all()
        table[progress.missing] = leads[progress.missing]
    return progress


def pairs_of(progress: Progress) -> list[tuple[int, int]]:
    return [pair for one in progress.rounds for pair in zip(one.images.tolist(), one.cells.tolist(), strict=True)]


@pytest.mark.parametrize("budget", [5250, 5249, 20_000])
def test_the_full_budget_gives_the_full_answer_without_width(budget: int) -> None:
    estimate = run(benchmark_of(), budget=budget).estimate
    assert estimate.value == pytest.approx(RESULTS.answer, abs=1e-3 if budget == 5249 else 1e-12)
    assert (estimate.half_width == 0) == (budget != 5249)


def test_a_larger_budget_begins_with_the_choices_of_a_smaller_one() -> None:
    drawn = [set(pairs_of(run(benchmark_of(), budget=budget))) for budget in (400, 750, 1000, 1350, 2600, 5250)]
    assert [len(pairs) for pairs in drawn] == [150, 500, 750, 1100, 2350, 5000]
    assert all(smaller < larger for smaller, larger in pairwise(drawn))


def test_going_on_runs_only_what_is_new() -> None:
    benchmark = benchmark_of()
    table = run(benchmark, budget=1000).leads
    before = int((~np.isnan(table)).sum())
    while not (progress := next_pairs(benchmark, table, budget=1500)).done:
        table[progress.missing] = RESULTS.leads[progress.missing]
    assert (before, int((~np.isnan(table)).sum())) == (750, 1250)


def test_no_pair_is_drawn_twice() -> None:
    progress = run(benchmark_of(), budget=4000)
    pairs = pairs_of(progress)
    assert len(set(pairs)) == len(pairs) == 3750 == (~np.isnan(progress.leads)).sum()
    assert progress.passes == 4000


def test_the_first_round_uses_images_and_cells_evenly() -> None:
    results = hard_images(500)._replace(weights=np.full(20, 1 / 20))
    first = run(benchmark_of(results), results.leads, budget=1000).rounds[0]
    assert np.bincount(first.images, minlength=500).tolist() == [1] * 500
    assert np.bincount(first.cells, minlength=20).tolist() == [25] * 20


def test_later_rounds_go_where_the_doubt_is() -> None:
    progress = run(benchmark_of(), budget=1500)
    drawn = np.zeros(RESULTS.leads.shape, dtype=bool)
    for one in progress.rounds[1:]:
        drawn[one.images, one.cells] = True
    order = np.argsort(RESULTS.clean_leads)
    mild, severe = RESULTS.layout.severity == 0, RESULTS.layout.severity == 4
    easy, hard = drawn[order[-60:]][:, mild], drawn[order[:60]][:, severe]  # nearly all right, nearly all wrong
    assert easy.mean() < 0.6 * drawn.mean()
    assert hard.mean() < 0.6 * drawn.mean()


def test_the_order_of_the_images_does_not_matter() -> None:
    order = np.random.default_rng(0).permutation(250)
    benchmark = benchmark_of()
    turned = Benchmark(
        [benchmark.ids[place] for place in order],
        RESULTS.layout,
        RESULTS.weights,
        clean_leads=RESULTS.clean_leads[order],
    )
    first, second = run(benchmark, budget=1500), run(turned, RESULTS.leads[order], budget=1500)
    assert {(int(order[image]), cell) for image, cell in pairs_of(second)} == set(pairs_of(first))
    assert second.estimate == pytest.approx(first.estimate, abs=1e-9)


def test_stored_results_that_were_not_drawn_change_nothing() -> None:
    benchmark = benchmark_of()
    progress = run(benchmark, budget=1500)
    table = progress.leads.copy()
    table[:200][np.isnan(table[:200])] = -1.0  # as if a full run had stopped after 200 images, all wrong
    assert next_pairs(benchmark, table, budget=1500).estimate == progress.estimate


def test_another_seed_draws_other_pairs() -> None:
    first, second = (set(pairs_of(run(benchmark_of(seed=seed), budget=1000))) for seed in (0, 1))
    assert len(first & second) < 0.3 * len(first)


@pytest.fixture(scope="module")
def many() -> list[SampledCells]:
    """The cells of as many draws as there are seeds, 400, of 1,150 passes each."""
    return [run(benchmark_of(seed=seed), budget=1150).cells for seed in range(400)]


def test_the_answer_is_covered_as_often_as_claimed_and_unbiased(many: list[SampledCells]) -> None:
    found = [one.weighted(RESULTS.weights) for one in many]
    off = np.array([one.value - RESULTS.answer for one in found])
    covered = np.mean([one.low <= RESULTS.answer <= one.high for one in found])
    # 95 % of 400 draws, give or take 1.1 %
    assert 0.93 <= covered <= 0.97
    assert abs(off.mean()) < 3 * off.std() / np.sqrt(len(many))
    # as many pairs drawn plainly, without replacement
    plain = (RESULTS.wrong * RESULTS.weights * 20).std() * np.sqrt((1 - 900 / 5000) / 900)
    assert off.std() < 0.75 * plain


def test_each_cell_is_covered_too(many: list[SampledCells]) -> None:
    truth = RESULTS.wrong.mean(axis=0)
    covered = [[one.low <= error <= one.high for one, error in zip(cells.each(), truth, strict=True)] for cells in many[:60]]
    assert 0.92 <= np.mean(covered) <= 0.98


def test_a_precision_is_reached_and_covers_although_it_decides_when_to_stop() -> None:
    draws = 120
    found = [run(benchmark_of(seed=seed), precision=0.025) for seed in range(2000, 2000 + draws)]
    assert all(one.estimate.half_width <= 0.025 for one in found)
    assert np.mean([one.passes for one in found]) < 0.35 * 5250
    covered = np.mean([one.estimate.low <= RESULTS.answer <= one.estimate.high for one in found])
    assert 0.92 <= covered <= 0.98  # give or take 2 %


def test_a_precision_beyond_reach_ends_with_everything() -> None:
    progress = run(benchmark_of(), precision=1e-9)
    assert not np.isnan(progress.leads).any()
    assert progress.estimate.half_width == 0


def test_the_first_of_budget_and_precision_ends_it() -> None:
    assert run(benchmark_of(), precision=1e-9, budget=1000).passes == 1000
    assert run(benchmark_of(), precision=0.2, budget=5000).passes == 750


def test_what_is_stored_of_a_design_is_found_again() -> None:
    benchmark = benchmark_of()
    for budget in (400, 750, 1000, 1350, 5250):
        spent = run(benchmark, budget=budget)
        found = stored_pairs(benchmark, spent.leads)
        assert found is not None
        assert pairs_of(found) == pairs_of(spent)
    # results that nobody drew are of no use
    some = np.full(benchmark.shape, np.nan)
    some[:40] = RESULTS.leads[:40]
    assert stored_pairs(benchmark, some) is None
    with_others = run(benchmark, budget=1000).leads.copy()
    with_others[:40] = RESULTS.leads[:40]
    found = stored_pairs(benchmark, with_others)
    assert found is not None
    assert 700 <= found.pairs <= 800


@pytest.mark.parametrize("budget", [700, 1350, 2600])
def test_the_pairs_of_another_model_are_run_first_whatever_the_order_of_its_images(budget: int) -> None:
    first = run(benchmark_of(), budget=1350)
    order = np.random.default_rng(0).permutation(250)
    results = hard_images(250, seed=1)
    ids = [first.benchmark.ids[place] for place in order]
    second = Benchmark(ids, RESULTS.layout, RESULTS.weights, clean_leads=results.clean_leads[order], before=first)
    spent = run(second, results.leads[order], budget=budget)
    theirs = set(pairs_of(first if budget >= 1350 else run(benchmark_of(), budget=budget)))
    ours = {(int(order[image]), cell) for image, cell in pairs_of(spent)}
    assert len(ours) == budget - 250
    assert theirs <= ours
    assert spent.estimate.low <= results.wrong.mean(axis=0) @ RESULTS.weights <= spent.estimate.high
    assert (second.folds == first.benchmark.folds[order]).all()


def test_another_model_of_other_images_is_refused() -> None:
    with pytest.raises(BadInput, match="should have predictions of the same images"):
        Benchmark(["a"], RESULTS.layout, RESULTS.weights, before=run(benchmark_of(), budget=400))


def test_without_clean_answers_no_clean_pass_is_counted() -> None:
    progress = run(benchmark_of(clean_leads=None), budget=1300)
    assert progress.passes == 1300
    assert progress.estimate.low <= RESULTS.answer <= progress.estimate.high


@pytest.mark.parametrize("images", [1, 3, 7, 23])
def test_few_images_are_run_as_well(images: int) -> None:
    results = hard_images(images)
    estimate = run(benchmark_of(results), results.leads, budget=10_000).estimate
    assert estimate.value == pytest.approx(results.answer)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({}, "a budget, a precision or both"),
        ({"precision": 0.0}, "above 0"),
        ({"budget": 300}, "at least 350 passes"),
    ],
)
def test_limits_that_cannot_be_kept_are_refused(limits: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        next_pairs(benchmark_of(), np.full((250, 20), np.nan), **limits)


def test_what_does_not_fit_together_is_refused() -> None:
    with pytest.raises(BadInput, match=r"got shape \(2, 20\)"):
        next_pairs(benchmark_of(), np.full((2, 20), np.nan), budget=1000)
    with pytest.raises(BadInput, match="weights should be positive"):
        Benchmark(["a"], RESULTS.layout, np.zeros(20))
    with pytest.raises(BadInput, match="2 clean leads for 1 images"):
        Benchmark(["a"], RESULTS.layout, RESULTS.weights, clean_leads=np.ones(2))
    with pytest.raises(BadInput, match="should not repeat"):
        Benchmark(["a", "a"], RESULTS.layout, RESULTS.weights)


def recorded_fits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by one with every regression that is fitted."""
    fits: list[int] = []

    def fit(*given: Any) -> LikelyWrong:
        fits.append(1)
        return fit_likely_wrong(*given)

    monkeypatch.setattr(budgets, "fit_likely_wrong", fit)
    monkeypatch.setattr(metrics_budget, "fit_likely_wrong", fit)
    return fits


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("limits", [{"precision": 0.013}, {"precision": 0.015, "budget": 1500}])
def test_what_was_found_before_is_not_fitted_again_and_pairs_are_the_same(
    seed: int, limits: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    fits = recorded_fits(monkeypatch)
    counts, designs = [], []
    for cache in (BoundedCache(0), BoundedCache(10**7)):
        monkeypatch.setattr(budgets, "CACHE", cache)
        fits.clear()
        designs.append(run(benchmark_of(seed=seed), **limits))
        counts.append(len(fits))
    without, with_memory = designs
    assert pairs_of(without) == pairs_of(with_memory)
    assert all(
        np.array_equal(one.chance, other.chance) for one, other in zip(without.rounds, with_memory.rounds, strict=True)
    )
    assert without.estimate == with_memory.estimate
    assert counts[1] <= counts[0] / 2


def test_results_that_change_in_place_draw_as_if_they_had_always_been_so(monkeypatch: pytest.MonkeyPatch) -> None:
    benchmark = benchmark_of()
    before = run(benchmark, precision=0.012)
    table, changed, first = before.leads, RESULTS.leads.copy(), before.rounds[0]
    for results in (table, changed):
        results[first.images[:50], first.cells[:50]] *= -1
    while not (after := next_pairs(benchmark, table, precision=0.012)).done:
        table[after.missing] = changed[after.missing]
    half_width = after.half_width
    monkeypatch.setattr(budgets, "CACHE", BoundedCache(0))
    anew = run(benchmark_of(), changed, precision=0.012)
    assert pairs_of(after) == pairs_of(anew) != pairs_of(before)
    assert half_width == anew.half_width == anew.estimate.half_width


def test_benchmarks_that_draw_otherwise_differ_in_their_digest() -> None:
    before, leads, classes = run(benchmark_of(), budget=750), RESULTS.clean_leads, np.arange(250) % 7
    changes: list[dict[str, Any]] = [{}, {"seed": 1}, {"before": before, "seed": 1}, {"before": before, "seed": 2}]
    changes += [{"clean_leads": leads[::-1]}, {"clean_peaks": leads}, {"classes": classes}, {"clean_leads": None}]
    others = [RESULTS._replace(weights=RESULTS.weights[::-1]), RESULTS._replace(layout=Layout.of_grid(np.arange(4), 5))]
    digests = [benchmark_of(**one).digest for one in changes] + [benchmark_of(other).digest for other in others]
    assert len(set(digests)) == len(digests)
    assert benchmark_of().digest == digests[0]


def test_cells_that_became_whole_narrow_the_estimate_again() -> None:
    benchmark = benchmark_of()
    progress = run(benchmark, budget=1500)
    before = progress.half_width
    progress.leads[:, :5] = RESULTS.leads[:, :5]
    whole = dataclasses.replace(progress)
    assert whole.half_width == whole.estimate.half_width < before


def test_a_memory_drops_the_longest_unused_and_never_exceeds_its_size() -> None:
    cache, made = BoundedCache(30), []

    def value(name: bytes, size: int = 10) -> bytes:
        return cache.get_or_make(name, lambda: made.append(name) or name, size)  # type: ignore[func-returns-value]

    for name in (b"a", b"b", b"c", b"a", b"d", b"a", b"b"):  # d drops b, and b then c
        assert value(name) == name
        assert cache.taken <= 30
    assert made == [b"a", b"b", b"c", b"d", b"b"]
    value(b"large", 31)
    value(b"large", 31)
    assert made[5:] == [b"large", b"large"]
    value(b"a")
    assert len(made) == 7
