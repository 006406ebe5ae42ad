"""Detectors that read a further output of the model."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.special import log_softmax

from detectors.made_up import outside
from shiftproof.detectors.extra_outputs import confidence, rotation
from shiftproof.errors import NotKept
from shiftproof.types import Predictions


def with_extra(*rows: list[float]) -> Predictions:
    return dataclasses.replace(outside(len(rows)), extra=np.array(rows))


def test_confidence_is_turned_round() -> None:
    assert confidence(with_extra([0.9], [-2.0], [0.1])).tolist() == [-0.9, 2.0, -0.1]


def test_an_image_that_does_not_look_upright_is_foreign() -> None:
    rows = [[3.0, 0.0, 0.0, 0.0], [0.0, 3.0, 0.0, 0.0], [900.0, -900.0, 0.0, 0.0]]
    np.testing.assert_allclose(rotation(with_extra(*rows)), -log_softmax(rows, axis=1)[:, 0], rtol=1e-12, atol=1e-15)


def test_an_output_that_is_missing_or_another_is_named() -> None:
    with pytest.raises(NotKept, match="one number of a confidence branch, and no extra output of the model was named"):
        confidence(outside(2))
    with pytest.raises(NotKept, match="one number of a confidence branch, and the extra output has 4 numbers"):
        confidence(with_extra([1.0, 2.0, 3.0, 4.0]))
    with pytest.raises(NotKept, match="four logits of a rotation head, and the extra output has 1 numbers"):
        rotation(with_extra([1.0]))
