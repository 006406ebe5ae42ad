"""What contracts of all studies ask of a number, and the findings of a study by their kind."""

from __future__ import annotations

import math
from typing import Any

from shiftproof.catalog import METRICS
from shiftproof.metrics import metric_info
from shiftproof.types import Caution, Finding, Measurement, Skipped, Study


def check_number(found: Measurement) -> None:
    """It exists, lies within its interval, has a meaning, and an interval only where its coverage is simulated."""
    low, high = found.ends or (found.value, found.value)
    assert low <= found.value <= high
    assert math.isfinite(found.value)
    assert found.metric in METRICS
    assert found.ends is None or metric_info(found.metric).interval


def findings_of(study: Study, load: Any) -> list[Finding]:
    """What a study measures: numbers, curves and galleries."""
    return [found for found in study.measure(load) if not isinstance(found, (Skipped, Caution))]


def skipped_by(study: Study, load: Any) -> list[str]:
    """Why a study goes without something, each reason once."""
    return list(dict.fromkeys(found.reason for found in study.measure(load) if isinstance(found, Skipped)))


def cautions_of(study: Study, load: Any) -> list[str]:
    """What a study warns of, each once."""
    return list(dict.fromkeys(found.text for found in study.measure(load) if isinstance(found, Caution)))
