"""Accuracy on the surest answers: bands only where an interval was measured."""

from __future__ import annotations

import pytest

from shiftproof.reports.response_rates import response_rates
from shiftproof.types import Curve


@pytest.mark.parametrize("measured", [True, False])
def test_a_band_is_drawn_only_where_an_interval_was_measured(measured: bool) -> None:
    low, high = ((0.7, 0.5), (0.9, 0.7)) if measured else (None, None)
    x, y = (0.5, 1.0), (0.8, 0.6)
    curve = Curve("response_rate_accuracy", {}, "share answered", "accuracy", x, y, 10, {}, low=low, high=high)
    marks = [layer["mark"]["type"] for layer in response_rates([curve], ["toy"], description="Accuracy.")["layer"]]
    assert ("area" in marks) == measured
    assert "line" in marks
