"""Two detectors as one."""

from __future__ import annotations

import numpy as np
import pytest

from ood.made_up import InBlocks, inside, outside, with_logits
from shiftproof.errors import BadInput, NotKept, UnknownName
from shiftproof.ood import fit_ensemble, needs_training, ready
from shiftproof.ood.scores import energy, msp
from shiftproof.types import OODScores, Predictions

TRAINING = inside(200)


def test_an_ensemble_is_the_mean_of_scores_in_standard_deviations_of_training_images() -> None:
    expected = np.mean(
        [(score(outside()) - score(TRAINING).mean()) / score(TRAINING).std() for score in (msp, energy)], axis=0
    )
    np.testing.assert_allclose(ready("msp+energy", InBlocks(TRAINING, 33))(outside()), expected)


def test_the_units_of_the_members_do_not_matter() -> None:
    def in_other_units(predictions: Predictions) -> OODScores:
        return 1000 * energy(predictions) - 5

    plain = fit_ensemble(TRAINING, {"msp": msp, "energy": energy})
    other = fit_ensemble(TRAINING, {"msp": msp, "energy": in_other_units})
    np.testing.assert_allclose(other(outside()), plain(outside()))


def test_members_keep_their_parameters_and_presets_and_all_are_printed() -> None:
    detector = ready("energy+openmax", TRAINING, preset="openood", parameters={"energy.temperature": 2.0})
    assert detector.parameters["energy.temperature"] == 2.0
    assert detector.parameters["openmax.alpha"] == 3
    assert detector.parameters["openmax.classes without images"] == 0
    assert detector.convention()["parameters"].startswith("energy.temperature 2, openmax.tail 20")


def test_an_ensemble_learns_and_says_so() -> None:
    assert needs_training("msp+energy")
    with pytest.raises(NotKept, match="it learns from training images"):
        ready("msp+energy")


def test_a_member_that_does_not_exist_or_stands_twice_is_refused() -> None:
    with pytest.raises(UnknownName, match="did you mean energy"):
        ready("msp+energie", TRAINING)
    with pytest.raises(UnknownName, match="no detector in msp\\+energy called 'vim'"):
        ready("msp+energy", TRAINING, parameters={"vim.dimension": 3})
    with pytest.raises(BadInput, match="two or more different detectors"):
        ready("msp+msp", TRAINING)


def test_a_member_that_says_the_same_of_all_has_no_scale() -> None:
    with pytest.raises(NotKept, match="msp gives every training image the same score"):
        ready("msp+energy", with_logits(np.array([[1.0, 0.0], [2.0, 1.0]])))


def test_what_is_to_know_of_a_member_is_told_with_its_name() -> None:
    alone = ready("mahalanobis", TRAINING, parameters={"tolerance": 0.9})
    together = ready("msp+mahalanobis", TRAINING, parameters={"mahalanobis.tolerance": 0.9})
    assert alone.notes
    assert together.notes == tuple(f"mahalanobis: {note}" for note in alone.notes)
