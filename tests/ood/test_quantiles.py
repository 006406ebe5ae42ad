"""Quantiles counted bit by bit against numpy's, which sorts."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.ood.activations import quantile_of

GENERATOR = np.random.default_rng(0)
CASES = {
    "both signs": GENERATOR.normal(size=(300, 7)),
    "behind a relu": np.maximum(GENERATOR.normal(size=(300, 7)), 0),
    "very large and very small": GENERATOR.normal(size=(200, 5)) * 10.0 ** GENERATOR.integers(-40, 38, (200, 5)),
    "few values": GENERATOR.integers(-2, 3, (90, 3)),
    "minus zero": np.array([[-0.0, 0.0, -0.0, 1.0]]),
    "one number": np.array([[4.25]]),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.99, 1.0])
def test_it_is_the_quantile_that_numpy_finds_by_sorting(case: str, share: float) -> None:
    numbers: NDArray[np.floating] = CASES[case].astype(np.float32)
    found = quantile_of(lambda: np.array_split(numbers, 4), share)
    assert found == pytest.approx(float(np.quantile(numbers.astype(np.float64), share)), rel=1e-12, abs=1e-300)


def test_half_precision_is_exact_too() -> None:
    numbers = GENERATOR.normal(size=(50, 40)).astype(np.float16)
    assert quantile_of(lambda: [numbers], 0.9) == pytest.approx(float(np.quantile(numbers.astype(float), 0.9)), rel=1e-12)


def test_no_numbers_and_no_share_are_refused() -> None:
    with pytest.raises(BadInput, match="no numbers"):
        quantile_of(list, 0.5)
    with pytest.raises(BadInput, match="between 0 and 1"):
        quantile_of(lambda: [np.ones((1, 1))], 90)
