"""The same scores from pytorch-ood, where it is installed; it asks for torch and torchvision."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit

from ood.made_up import inside, outside, with_logits
from shiftproof.ood import ready
from shiftproof.ood.openmax import OpenMax, Weibull, fit_openmax
from shiftproof.ood.scores import gen
from shiftproof.types import Predictions

torch = pytest.importorskip("torch", reason="torch is not installed")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what it or torchvision warn of while they load is not ours
    peer = pytest.importorskip("pytorch_ood.detector", reason="pytorch-ood is not installed", exc_type=ImportError)

TRAINING = inside(1200)
HEAD = TRAINING.need_head()


def tensor(rows: NDArray[Any]) -> Any:
    return torch.from_numpy(np.ascontiguousarray(rows))


def head(features: Any) -> Any:
    return features.flatten(1) @ tensor(HEAD.weights).T + tensor(HEAD.bias)


def maps(features: Any) -> Any:
    return features[:, :, None, None]


def last_layer() -> Any:
    layer = torch.nn.Linear(*HEAD.weights.shape[::-1])
    layer.load_state_dict({"weight": tensor(HEAD.weights), "bias": tensor(HEAD.bias)})
    return layer


LEARNT = tensor(TRAINING.need_features()), tensor(TRAINING.labels[:, 0])
PEERS: dict[str, Callable[[Any, Any], Any]] = {
    "msp": lambda logits, _: peer.MaxSoftmax.score(logits),
    "max_logit": lambda logits, _: peer.MaxLogit.score(logits),
    "energy": lambda logits, _: peer.EnergyBased.score(logits),
    "entropy": lambda logits, _: peer.Entropy.score(logits),
    "gradnorm": lambda _, features: peer.GradNorm(last_layer(), lambda name: name == "weight").to("cpu").predict(features),
    "ash_b": lambda _, features: peer.ASH(None, head, variant="ash-b").predict_feature_maps(maps(features)),
    "ash_s": lambda _, features: peer.ASH(None, head, variant="ash-s").predict_feature_maps(maps(features)),
    "ash_p": lambda _, features: peer.ASH(None, head, variant="ash-p").predict_feature_maps(maps(features)),
    "scale": lambda _, features: peer.SCALE(None, head).predict_feature_maps(maps(features)),
    "react": lambda _, features: (
        peer.ReAct(None, head).fit_feature_maps(maps(LEARNT[0]), LEARNT[1]).predict_feature_maps(maps(features))
    ),
    "dice": lambda _, features: (
        peer.DICE(None, tensor(HEAD.weights), tensor(HEAD.bias), p=0.7).fit_features(*LEARNT).predict_features(features)
    ),
    "she": lambda _, features: peer.SHE(None, head).fit_features(*LEARNT).predict_features(features),
    "kl_matching": lambda logits, _: peer.KLMatching(None).fit_logits(tensor(TRAINING.need_logits())).predict_logits(logits),
}


@pytest.mark.parametrize("name", PEERS)
@pytest.mark.parametrize("predictions", [inside(60, seed=5), outside()], ids=["inside", "outside"])
def test_scores_are_those_of_pytorch_ood(name: str, predictions: Predictions) -> None:
    ours = ready(name, TRAINING, preset="pytorch-ood")(predictions)
    theirs = PEERS[name](tensor(predictions.need_logits()), tensor(predictions.need_features()))
    # its numbers are of single precision
    np.testing.assert_allclose(ours, theirs.detach().numpy(), rtol=2e-6, atol=2e-5)


def test_gen_is_that_of_pytorch_ood_where_no_probability_is_below_its_floor() -> None:
    """Its probabilities are never below 1e-7 or that near to 1, and it takes the mean where the authors take the sum."""
    logits = outside().need_logits()
    for largest in (3, 12):
        theirs = peer.GEN.score(tensor(logits), M=largest) * largest
        np.testing.assert_allclose(gen(with_logits(logits), largest=largest), theirs.numpy(), rtol=2e-5)


def test_openmax_is_that_of_pytorch_ood_once_every_class_is_in_its_batch() -> None:
    """Its distances are of classes that some image of the batch is predicted as; the others count as at distance 0."""
    numpy_openmax = pytest.importorskip("pytorch_ood.detector.openmax.numpy").OpenMax
    logits, labels = TRAINING.need_logits().astype(np.float64), TRAINING.labels[:, 0]
    theirs = numpy_openmax().fit(logits, labels)
    ours = fit_openmax(TRAINING, tail=25, distance="euclidean", mean_of="all")
    tails = [theirs.distributions[of_class] for of_class in range(len(HEAD.bias))]
    np.testing.assert_allclose(ours.nearest, [tail.min_val for tail in tails], rtol=1e-6)
    np.testing.assert_allclose(ours.tails.shape, [tail.c for tail in tails], rtol=1e-2)  # scipy stops earlier
    same_tails = OpenMax(
        means=np.array([theirs.centers[of_class] for of_class in range(len(HEAD.bias))]),
        nearest=np.array([tail.min_val for tail in tails]),
        tails=Weibull(np.array([tail.c for tail in tails]), np.array([tail.scale for tail in tails])),
        alpha=10,
        distance="euclidean",
    )
    asked = outside()
    one_of_each_class = inside(len(HEAD.bias))
    assert set(one_of_each_class.need_logits().argmax(axis=1)) == set(range(len(HEAD.bias)))
    batch = np.concatenate([asked.need_logits(), one_of_each_class.need_logits()]).astype(np.float64)
    told = theirs.predict(batch)[: len(asked), 0]
    np.testing.assert_allclose(expit(same_tails(asked)), told, atol=1e-13)
    np.testing.assert_allclose(expit(ours(asked)), told, atol=1e-3)
