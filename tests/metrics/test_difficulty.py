"""How hard images are for people, worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from shiftproof.errors import BadInput
from shiftproof.metrics.accuracy import subsets_of, two_by_two


def test_the_published_test_of_two_people_comes_out() -> None:
    """ImageNet-A-Plus: of 600 images 384 right by both, 93 and 76 by one alone, 47 by neither: 79.5 and 76.7 %."""
    first = np.repeat([1, 1, 0, 0], [384, 93, 76, 47])
    second = np.repeat([1, 0, 1, 0], [384, 93, 76, 47])
    assert two_by_two(first, second).tolist() == [[384, 93], [76, 47]]
    assert np.bincount(subsets_of(np.column_stack([first, second]))).tolist() == [384, 169, 47]
    assert (first.mean(), round(second.mean(), 3)) == (0.795, 0.767)


def test_answers_that_are_missing_count_for_nothing() -> None:
    assert two_by_two(np.array([1, -1, 0]), np.array([-1, 1, 1])).tolist() == [[0, 0], [1, 0]]
    assert subsets_of(np.array([[-1, 0, 1], [-1, 0, 0], [1, -1, -1], [-1, -1, -1]])).tolist() == [1, 2, 0, -1]


def test_other_shapes_are_refused() -> None:
    with pytest.raises(BadInput, match="two participants"):
        two_by_two(np.array([1, 0]), np.array([1]))
    with pytest.raises(BadInput, match="images, participants"):
        subsets_of(np.array([1, 0]))
