"""Leads agree with what is counted as right, and are worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from shiftproof.errors import BadInput
from shiftproof.metrics import is_correct
from shiftproof.metrics.budget import right_class_leads


def test_leads_are_worked_by_hand() -> None:
    classes = np.array([[4, 2, 9]] * 5)
    scores = np.array([[3.0, 1.0, 0.5]] * 5)
    labels = np.array([[4, -1], [2, -1], [7, -1], [4, 2], [2, 9]])
    # ahead by 2; behind by 2; not among them; the best other is 9; the better of two wrong ones
    assert right_class_leads(labels, classes, scores).tolist() == [2.0, -2.0, -2.5, 2.5, -2.0]


def test_the_sign_is_that_of_right_and_wrong_even_in_ties() -> None:
    rng = np.random.default_rng(0)
    logits = rng.integers(4, size=(500, 8)).astype(float)
    classes = np.argsort(-logits, axis=1, kind="stable")[:, :5]
    labels = np.column_stack([rng.integers(8, size=500), rng.integers(-1, 8, size=500)])
    leads = right_class_leads(labels, classes, np.take_along_axis(logits, classes, axis=1))
    assert np.array_equal(leads >= 0, is_correct(labels, classes))
    assert 0.1 < (leads == 0).mean() < 0.5


def test_what_does_not_fit_together_is_refused() -> None:
    with pytest.raises(BadInput, match="do not fit"):
        right_class_leads(np.array([[1]]), np.array([[1, 2]]), np.array([[1.0]]))
