"""Agreement of people, against the worked examples of those who proposed the measures."""

from __future__ import annotations

import numpy as np
import pytest

from shiftproof.errors import BadInput
from shiftproof.metrics.agreement import Ratings, confusions_with_others, fleiss_kappa, krippendorff_alpha, percent_agreement

FLEISS = [
    [0, 0, 0, 0, 14],
    [0, 2, 6, 4, 2],
    [0, 0, 3, 5, 6],
    [0, 3, 9, 2, 0],
    [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0],
    [3, 2, 6, 3, 0],
    [2, 5, 3, 2, 2],
    [6, 5, 2, 1, 0],
    [0, 2, 2, 3, 7],
]
"""Ten patients, fourteen psychiatrists, five diagnoses: the table everybody works kappa on, which gives 0.210."""

KRIPPENDORFF = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, 0, 0, 0],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, 0, 3],
    [0, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 0],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, 0],
]
"""Four observers, twelve units, five values, 0 for none: example C of Krippendorff (2011), alpha of nominal data 0.743."""


def ratings_of(counts: list[list[int]]) -> Ratings:
    return np.array([np.repeat(np.arange(len(row)), row) for row in counts])


def test_kappa_of_the_published_example() -> None:
    assert fleiss_kappa(ratings_of(FLEISS)) == pytest.approx(0.210, abs=5e-4)


def test_alpha_of_the_published_example() -> None:
    assert krippendorff_alpha(np.array(KRIPPENDORFF).T - 1) == pytest.approx(0.743, abs=5e-4)


def test_order_of_people_and_names_of_answers_do_not_matter() -> None:
    ratings = np.array(KRIPPENDORFF).T - 1
    generator = np.random.default_rng(4)
    shuffled = np.array([generator.permutation(row) for row in ratings])
    renamed = np.where(shuffled >= 0, np.array([3, 1, 4, 0, 2])[shuffled], -1)
    assert krippendorff_alpha(renamed) == pytest.approx(krippendorff_alpha(ratings))
    assert percent_agreement(renamed) == pytest.approx(percent_agreement(ratings))


def test_perfect_agreement_is_one_and_random_answers_are_near_none() -> None:
    same = np.repeat(np.arange(6)[:, None] % 3, 4, axis=1)
    assert percent_agreement(same) == fleiss_kappa(same) == krippendorff_alpha(same) == 1
    chance = np.random.default_rng(0).integers(0, 3, (4000, 3))
    assert abs(fleiss_kappa(chance)) < 0.03
    assert abs(krippendorff_alpha(chance)) < 0.03


def test_alpha_and_kappa_differ_only_by_what_chance_draws_without_putting_back() -> None:
    ratings = ratings_of(FLEISS)
    answers, kappa = ratings.size, fleiss_kappa(ratings)
    assert krippendorff_alpha(ratings) == pytest.approx(1 - (1 - kappa) * (answers - 1) / answers)


def test_what_cannot_be_told_is_nan_or_refused() -> None:
    alone = np.array([[0, -1], [-1, 1]])
    assert np.isnan(percent_agreement(alone))
    assert np.isnan(krippendorff_alpha(alone))
    assert np.isnan(fleiss_kappa(np.zeros((3, 2), int)))
    with pytest.raises(BadInput, match="as many to each"):
        fleiss_kappa(np.array([[0, 0], [0, -1]]))
    with pytest.raises(BadInput, match="items, reviewers"):
        percent_agreement(np.zeros(3, int))


def test_confusion_counts_only_what_both_judged() -> None:
    ratings = np.array([[0, 0], [0, 2], [2, 2], [-1, 1], [1, -1]])
    first, second = confusions_with_others(ratings, 3)
    assert first.tolist() == [[1, 0, 1], [0, 0, 0], [0, 0, 1]]
    assert second.tolist() == first.T.tolist()


def test_confusions_are_those_of_every_pair_of_people() -> None:
    ratings = np.random.default_rng(0).integers(-1, 4, (40, 5))
    for person, found in enumerate(confusions_with_others(ratings, 4)):
        expected = np.zeros((4, 4), int)
        for row in ratings:
            for other in set(range(5)) - {person}:
                if row[person] >= 0 and row[other] >= 0:
                    expected[row[person], row[other]] += 1
        assert found.tolist() == expected.tolist()
