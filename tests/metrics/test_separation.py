"""AUROC, AUPR and false alarms against scikit-learn and a count of all pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn import metrics as sklearn_metrics

from shiftproof.errors import BadInput
from shiftproof.metrics import aupr, auroc, fpr_at_tpr, separation, share_discarded
from shiftproof.metrics.roc import score_counts

Scores = NDArray[Any]  # integers too
Sides = tuple[Scores, Scores]


def exactly(expected: Any) -> Any:
    return pytest.approx(expected, abs=1e-12, rel=0)


def cases() -> dict[str, Sides]:
    generator = np.random.default_rng(11)
    inside, outside = generator.normal(size=700), generator.normal(0.8, 2, size=300)
    neighbours = np.nextafter(1.0, [0, 2])  # differ in the last bit alone
    return {
        "float64": (inside, outside),
        "float32": (inside.astype(np.float32), outside.astype(np.float32)),
        "float16": (inside.astype(np.float16), outside.astype(np.float16)),
        "mixed": (inside.astype(np.float32), outside),
        "integers": (generator.integers(-3, 4, 500), generator.integers(-2, 5, 90)),
        "integers and floats": (generator.integers(-3, 4, 500), outside.round()),
        "unsigned": (generator.integers(0, 9, 60, dtype=np.uint8), generator.integers(3, 12, 80, dtype=np.uint8)),
        "heavy ties": (inside.round(), outside.round()),
        "small probabilities": (np.exp(-(inside**2) * 300), np.exp(-(outside**2) * 300)),
        "the last bit": (generator.choice(neighbours, 50), generator.choice([*neighbours, 1.0], 70)),
        "both zeros": (np.array([0.0, -0.0, -1.0]), np.array([-0.0, 0.0, 1.0])),
        "constant": (np.full(10, 0.3), np.full(4, 0.3)),
        "one each": (np.array([0.3]), np.array([0.5])),
        "one each, tied": (np.array([0.3]), np.array([0.3])),
        "one inside": (np.array([0.3]), outside),
        "one outside": (inside, np.array([0.7])),
        "perfect": (inside - 100, outside),
        "always wrong": (inside + 100, outside),
        "few outside": (generator.normal(size=1900), generator.normal(1, 1, size=100)),
    }


CASES = cases()


def by_sklearn(sides: Sides, tpr: float) -> NDArray[np.floating]:
    scores = np.concatenate(sides)
    outside = np.repeat([False, True], [len(side) for side in sides])
    numbers = [sklearn_metrics.roc_auc_score(outside, scores)]
    ends = [(outside, scores), (~outside, -scores.astype(float))]
    numbers += [sklearn_metrics.average_precision_score(*end) for end in ends]
    for end in ends:
        false_alarms, found, _ = sklearn_metrics.roc_curve(*end, drop_intermediate=False)
        numbers.append(false_alarms[np.argmax(found >= tpr)])
    return np.array(numbers)


def one_by_one(sides: Sides, tpr: float) -> list[float]:
    return [
        auroc(*sides),
        aupr(*sides),
        aupr(*sides, positive="in"),
        fpr_at_tpr(*sides, tpr=tpr),
        fpr_at_tpr(*sides, tpr=tpr, positive="in"),
    ]


@pytest.mark.parametrize("seed", range(5))
def test_a_score_turned_round_has_what_is_left_of_the_auroc(seed: int) -> None:
    generator = np.random.default_rng(seed)
    inside, outside = generator.normal(0, 4, 400).round(), generator.normal(2, 4, 150).round()  # mostly ties
    assert auroc(inside, outside) == exactly(1 - auroc(-inside, -outside))
    assert auroc(inside, outside) != pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("tpr", [0.95, 0.07, 1.0])
@pytest.mark.parametrize("case", CASES)
def test_all_numbers_are_those_of_scikit_learn(case: str, tpr: float) -> None:
    expected = by_sklearn(CASES[case], tpr)
    assert separation(*CASES[case], tpr=tpr) == exactly(expected)
    assert one_by_one(CASES[case], tpr) == exactly(expected)


@pytest.mark.parametrize("positive", ["out", "in"])
@pytest.mark.parametrize("case", CASES)
def test_the_trapezoid_area_is_that_of_scikit_learn(case: str, positive: Any) -> None:
    inside, outside = CASES[case]
    scores = np.concatenate([inside, outside]).astype(float) * (1 if positive == "out" else -1)
    wanted = np.repeat([positive == "in", positive == "out"], [len(inside), len(outside)])
    precision, recall, _ = sklearn_metrics.precision_recall_curve(wanted, scores)
    ours = aupr(inside, outside, positive=positive, area="trapezoid")
    assert ours == exactly(sklearn_metrics.auc(recall, precision))


def test_random_small_cases_are_those_of_scikit_learn() -> None:
    generator = np.random.default_rng(12)
    for _ in range(200):
        different, images, tpr = (
            generator.integers(1, 12),
            generator.integers(1, 30, size=2),
            generator.integers(1, 101) / 100,
        )
        sides = generator.random(images[0]) * different // 1, generator.random(images[1]) * different // 1
        expected = by_sklearn(sides, tpr)
        assert separation(*sides, tpr=tpr) == exactly(expected)
        assert one_by_one(sides, tpr) == exactly(expected)


def test_infinities_stand_at_the_ends_of_the_order() -> None:
    infinite = np.array([-np.inf, 0.0, 1.0, np.inf]), np.array([-np.inf, 2.0, np.inf, np.inf])
    finite = np.nan_to_num(infinite[0], posinf=9, neginf=-9), np.nan_to_num(infinite[1], posinf=9, neginf=-9)
    assert separation(*infinite) == separation(*finite)
    assert one_by_one(infinite, 0.5) == exactly(by_sklearn(finite, 0.5))


def test_auroc_is_the_share_of_pairs_won_and_of_ties_the_half() -> None:
    inside, outside = (side.round() for side in CASES["float64"])
    won, tied = outside[:, None] > inside, outside[:, None] == inside
    assert auroc(inside, outside) == exactly((won + tied / 2).mean())


@pytest.mark.parametrize("case", CASES)
def test_negated_and_exchanged_scores_mirror_the_numbers(case: str) -> None:
    inside, outside = (side.astype(float) for side in CASES[case])
    here, there, mirrored = separation(inside, outside), separation(-inside, -outside), separation(-outside, -inside)
    assert there.auroc == exactly(1 - here.auroc)
    expected = here.auroc, here.aupr_in, here.aupr_out, here.fpr_in, here.fpr
    assert mirrored == exactly(expected)


def test_order_of_images_and_any_rising_function_of_scores_do_not_matter() -> None:
    inside, outside = CASES["heavy ties"]
    shuffled = (np.random.default_rng(1).permutation(np.arctan(side)) for side in (inside, outside))
    assert separation(*shuffled) == separation(inside, outside)


def test_the_scores_given_are_left_as_they_are() -> None:
    inside, outside = (side.copy() for side in CASES["float32"])
    separation(inside, outside)
    one_by_one((inside, outside), 0.95)
    assert np.array_equal(inside, CASES["float32"][0])
    assert np.array_equal(outside, CASES["float32"][1])


def test_blind_scores_have_the_outside_share_as_aupr() -> None:
    # ImageNet-O: 10,000 images of the 200 classes and 2,000 from outside, chance is published as 16.67 %
    assert aupr(np.zeros(10_000), np.zeros(2_000)) == exactly(2_000 / 12_000)


@pytest.mark.parametrize("images", [20, 100, 7, 1000])
def test_a_share_that_a_count_of_images_meets_exactly_asks_for_no_more(images: int) -> None:
    scores = np.arange(images, dtype=float)
    for count in range(1, images + 1):
        # both sides have the same scores, so as many reach the threshold on either
        assert fpr_at_tpr(scores, scores, tpr=count / images) == count / images


def test_what_is_discarded_goes_by_an_outside_score_and_not_by_one_between_two() -> None:
    outside = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    # 75 % of five are four: 1.0 and above; an interpolated percentile would lie at 1.0 only by chance
    assert share_discarded(np.array([0.9, 1.0, 1.1, 5.0]), outside) == 0.75
    assert share_discarded(np.array([0.9, 1.0, 1.1, 5.0]), outside, rejected=0.81) == 1.0


def test_equal_scores_are_counted_together() -> None:
    inside: Scores = np.array([2, 1, 2], np.int8)
    counts = score_counts(inside, np.array([2.0, 3.5], np.float32))
    assert [column.tolist() for column in counts] == [[1.0, 2.0, 3.5], [1, 2, 0], [0, 1, 1]]


METRICS = [auroc, aupr, fpr_at_tpr, separation, share_discarded]


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    ("inside", "outside", "complaint"),
    [
        (np.array([]), np.ones(2), r"in-distribution scores should be \(images,\) of at least one image, got shape \(0,\)"),
        (np.ones(2), np.array([]), "out-of-distribution scores should be"),
        (np.ones(2), np.ones((2, 1)), r"out-of-distribution scores should be \(images,\).*got shape \(2, 1\)"),
        (np.array([np.nan, 1, np.nan]), np.ones(2), "2 of 3 in-distribution scores are nan"),
        (np.ones(3, np.float16), np.array([np.nan], np.float32), "1 of 1 out-of-distribution scores are nan"),
        (np.array(["a"]), np.ones(2), "in-distribution scores should be numbers"),
    ],
)
def test_what_cannot_be_put_in_order_is_refused(metric: Any, inside: Any, outside: Any, complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        metric(inside, outside)


@pytest.mark.parametrize("share", [0, -0.1, 1.01, 95, float("nan")])
def test_impossible_shares_are_refused(share: float) -> None:
    for call in (
        lambda: fpr_at_tpr(np.ones(2), np.ones(2), tpr=share),
        lambda: separation(np.ones(2), np.ones(2), tpr=share),
        lambda: share_discarded(np.ones(2), np.ones(2), rejected=share),
    ):
        with pytest.raises(BadInput, match="should lie above 0 and be at most 1"):
            call()


def test_unknown_options_are_refused_by_name() -> None:
    with pytest.raises(BadInput, match="positive should be 'out' or 'in', got 'id'"):
        aupr(np.ones(2), np.ones(2), positive="id")  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="positive should be 'out' or 'in', got 'id'"):
        fpr_at_tpr(np.ones(2), np.ones(2), positive="id")  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="area should be one of average-precision, trapezoid"):
        aupr(np.ones(2), np.ones(2), area="auc")  # type: ignore[arg-type]
