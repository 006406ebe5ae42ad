"""What contracts of all studies ask of a number."""

from __future__ import annotations

import math

from shiftproof.metrics import MEANINGS
from shiftproof.types import Measurement


def check_number(found: Measurement) -> None:
    """It exists, lies within its interval and has a meaning."""
    low, high = found.interval or (found.value, found.value)
    assert low <= found.value <= high
    assert math.isfinite(found.value)
    assert found.metric in MEANINGS
