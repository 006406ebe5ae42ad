"""Losses of recipes against batches worked by hand, scipy and timm."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from numpy.typing import NDArray  # noqa: E402
from scipy.special import log_softmax, softmax  # noqa: E402
from torch import Tensor, nn  # noqa: E402

from shiftproof.training.networks import losses  # noqa: E402
from shiftproof.training.networks.losses import Step  # noqa: E402
from shiftproof.training.networks.modules import Network, residual_network  # noqa: E402


class Watched:
    """A network that gives fixed numbers, or those of a function, and remembers what it was shown."""

    def __init__(self, answer: Callable[[Tensor], dict[str, Tensor]]) -> None:
        self.answer = answer
        self.shown: list[Tensor] = []

    def __call__(self, images: Tensor) -> dict[str, Tensor]:
        self.shown.append(images)
        return self.answer(images)


def linear(images: Tensor) -> dict[str, Tensor]:
    """Two logits: the sum of the left half of a picture and that of the right half."""
    half = images.shape[-1] // 2
    return {"logits": torch.stack([images[..., :half].sum((1, 2, 3)), images[..., half:].sum((1, 2, 3))], dim=1)}


def fixed(**outputs: Any) -> Callable[[Tensor], dict[str, Tensor]]:
    made = {name: torch.tensor(values, dtype=torch.float32) for name, values in outputs.items()}
    return lambda images: made


def step_of(
    network: Callable[[Tensor], dict[str, Tensor]], images: Tensor, labels: list[int], classes: int = 2, **more: Any
) -> Step:
    targets = torch.eye(classes)[labels]
    return Step(network, images, targets, np.random.default_rng(0), **more)


def cross_entropies(logits: Any, targets: Any) -> NDArray[np.floating]:
    return np.asarray(-(np.asarray(targets) * log_softmax(np.asarray(logits, float), axis=1)).sum(axis=1))


def pictures(count: int, side: int = 4, seed: int = 0) -> Tensor:
    made: Tensor = torch.from_numpy(np.random.default_rng(seed).random((count, 3, side, side), np.float32))
    return made


def test_cross_entropy_with_smoothed_labels_is_that_of_the_smoothed_shares() -> None:
    logits = [[2.0, 0.0, -1.0], [0.5, 0.5, 3.0]]
    found = losses.cross_entropy(step_of(fixed(logits=logits), pictures(2), [0, 1], 3), smoothing=0.3)
    smoothed = [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1]]
    assert float(found) == pytest.approx(cross_entropies(logits, smoothed).mean(), rel=1e-6)


def test_mixup_mixes_pictures_and_labels_by_one_share() -> None:
    network, images = Watched(linear), pictures(4)
    found = losses.mixup(step_of(network, images, [0, 1, 0, 1]), alpha=0.7)
    rng = np.random.default_rng(0)
    share, others = rng.beta(0.7, 0.7), rng.permutation(4)
    mixed = share * images.numpy() + (1 - share) * images.numpy()[others]
    assert network.shown[0].numpy() == pytest.approx(mixed, abs=1e-6)
    targets = share * np.eye(2)[[0, 1, 0, 1]] + (1 - share) * np.eye(2)[[0, 1, 0, 1]][others]
    assert float(found) == pytest.approx(cross_entropies(linear(network.shown[0])["logits"], targets).mean(), rel=1e-5)


def test_mixup_is_that_of_timm() -> None:
    timm = pytest.importorskip("timm.data.mixup", reason="timm is not installed")
    images, labels = pictures(6), [0, 1, 2, 2, 1, 0]
    network = Watched(lambda shown: {"logits": shown.flatten(1)[:, :3]})
    # timm mixes each picture with its place from the end, so that is the order drawn here too
    flipped = dataclasses.replace(step_of(network, images, labels, 3), rng=Fixed(0.3, [5, 4, 3, 2, 1, 0]))  # type: ignore[arg-type]
    found = losses.mixup(flipped)
    target = timm.mixup_target(torch.tensor(labels), 3, lam=0.3, smoothing=0.0)
    mixed = images * 0.3 + images.flip(0) * 0.7
    assert torch.allclose(network.shown[0], mixed, atol=1e-6)
    soft = pytest.importorskip("timm.loss").SoftTargetCrossEntropy()
    assert float(found) == pytest.approx(float(soft(mixed.flatten(1)[:, :3], target)), rel=1e-5)


class Fixed:
    """A generator that draws what it is told."""

    def __init__(self, share: float, order: list[int]) -> None:
        self.share, self.order = share, order

    def beta(self, *_: float) -> float:
        return self.share

    def permutation(self, _: int) -> NDArray[np.intp]:
        return np.array(self.order)


@pytest.mark.parametrize("seed", range(20))
def test_cutmix_gives_the_other_picture_as_much_of_the_label_as_of_the_area(seed: int) -> None:
    images = torch.stack([torch.zeros(3, 9, 14), torch.ones(3, 9, 14)])
    network = Watched(lambda shown: {"logits": torch.zeros(2, 2, requires_grad=True)})
    captured: list[Tensor] = []
    step = dataclasses.replace(step_of(network, images, [0, 1]), rng=np.random.default_rng(seed))

    def entropy(logits: Tensor, targets: Tensor) -> Tensor:
        captured.append(targets)
        return logits.sum()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("torch.nn.functional.cross_entropy", entropy)
        losses.cutmix(step, probability=1.0)
    white = network.shown[0].mean(dim=(1, 2, 3))  # the share of white is that of the white picture's class
    assert torch.allclose(captured[0][:, 1], white, atol=1e-6)
    assert torch.allclose(captured[0].sum(dim=1), torch.ones(2))


def test_cutmix_leaves_batches_alone_as_often_as_it_says() -> None:
    images = torch.stack([torch.zeros(3, 8, 8), torch.ones(3, 8, 8)])
    changed = 0
    for seed in range(200):
        network = Watched(linear)
        losses.cutmix(
            dataclasses.replace(step_of(network, images, [0, 1]), rng=np.random.default_rng(seed)), probability=0.25
        )
        changed += network.shown[0] is not images
    assert 30 <= changed <= 70


def test_moments_are_exchanged_at_every_place() -> None:
    features = torch.randn(3, 8, 4, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    features = features * torch.tensor([1.0, 3.0, 0.5]).reshape(3, 1, 1, 1) + torch.tensor([0.0, 5.0, -2.0]).reshape(
        3, 1, 1, 1
    )
    order = torch.tensor([2, 0, 1])
    found = losses.exchanged_moments(features, order)
    assert torch.allclose(found.mean(dim=1), features[order].mean(dim=1))
    assert torch.allclose(found.std(dim=1), features[order].std(dim=1), rtol=1e-3)
    # what is left is each picture's own: the order of its channels
    assert torch.equal(found.argsort(dim=1), features.argsort(dim=1))


def test_moex_changes_the_first_layer_for_one_pass_and_shares_labels_as_it_says() -> None:
    body, width = residual_network(8)
    network = Network(body, nn.Linear(width, 2)).eval()
    images = pictures(4, 8)
    step = step_of(network, images, [0, 0, 1, 1], plain=network)
    found = losses.moex(step, share=0.75)
    rng = np.random.default_rng(0)
    rng.random()
    others = torch.from_numpy(rng.permutation(4))
    first = body[0](images)
    with torch.no_grad():
        features = body[1:](losses.exchanged_moments(first, others))
        logits = network.head(features).numpy()
    shares = 0.75 * step.targets + 0.25 * step.targets[others]
    assert float(found.detach()) == pytest.approx(cross_entropies(logits, shares).mean(), rel=1e-5)
    assert not body[0]._forward_hooks


def test_jensen_shannon_of_two_is_scipys_squared_distance() -> None:
    from scipy.spatial.distance import jensenshannon

    rng = np.random.default_rng(0)
    logits = rng.normal(size=(2, 5, 7))
    distances = jensenshannon(softmax(logits[0], axis=1), softmax(logits[1], axis=1), axis=1)
    found = losses.jensen_shannon([torch.log_softmax(torch.from_numpy(one), dim=1) for one in logits])
    assert float(found) == pytest.approx((distances**2).mean(), rel=1e-6)


def test_augmix_is_cross_entropy_and_twelve_times_the_divergence_of_three_answers() -> None:
    from scipy.stats import entropy

    rng = np.random.default_rng(1)
    logits = rng.normal(size=(6, 4)).astype(np.float32)
    step = step_of(fixed(logits=logits), pictures(2), [3, 0], 4, copies=(pictures(2, seed=1), pictures(2, seed=2)))
    shares = softmax(logits.reshape(3, 2, 4).astype(float), axis=2)
    divergence = np.mean([entropy(one, shares.mean(axis=0), axis=1) for one in shares])
    plain = cross_entropies(logits[:2], np.eye(4)[[3, 0]]).mean()
    assert float(losses.augmix(step)) == pytest.approx(plain + 12 * divergence, rel=1e-5)


def test_augmix_is_the_loss_of_timm() -> None:
    jsd = pytest.importorskip("timm.loss", reason="timm is not installed").JsdCrossEntropy(
        num_splits=3, alpha=12, smoothing=0.0
    )
    logits = np.random.default_rng(2).normal(size=(9, 5)).astype(np.float32)
    step = step_of(fixed(logits=logits), pictures(3), [1, 4, 0], 5, copies=(pictures(3), pictures(3)))
    theirs = jsd(torch.from_numpy(logits), torch.tensor([1, 4, 0] * 3))
    assert float(losses.augmix(step)) == pytest.approx(float(theirs), rel=1e-5)


BOUNDS = {
    "black": torch.tensor([-1.0, -2.0, -0.5]).reshape(3, 1, 1),
    "white": torch.tensor([1.0, 2.0, 0.5]).reshape(3, 1, 1),
}


def test_an_adversarial_step_stays_within_epsilon_and_between_black_and_white() -> None:
    network = Watched(linear)
    images = BOUNDS["black"] + (BOUNDS["white"] - BOUNDS["black"]) * pictures(8).round(decimals=1)
    step = step_of(network, images, [0, 1] * 4, plain=network, **BOUNDS)
    losses.adversarial(step, epsilon=8.0)
    moved = (network.shown[-1] - images).abs() / (BOUNDS["white"] - BOUNDS["black"])
    assert float(moved.max()) <= 8 / 255 + 1e-6
    assert bool((network.shown[-1] >= BOUNDS["black"] - 1e-6).all() and (network.shown[-1] <= BOUNDS["white"] + 1e-6).all())


def test_a_long_adversarial_step_goes_by_epsilon_against_the_label_everywhere() -> None:
    network = Watched(linear)
    images = torch.zeros(2, 3, 4, 4)  # grey, far from black and white
    losses.adversarial(step_of(network, images, [0, 1], plain=network, **BOUNDS), epsilon=25.5, stride=2.0)
    left = torch.where(torch.arange(4) < 2, -1.0, 1.0)
    expected = torch.stack([left, -left])[:, None, None, :] * (BOUNDS["white"] - BOUNDS["black"]) * 0.1
    assert torch.allclose(network.shown[-1], expected.expand_as(images), atol=1e-6)


def test_a_free_replay_moves_by_the_gradient_of_the_one_before() -> None:
    network = Watched(linear)
    step = step_of(network, torch.zeros(2, 3, 4, 4), [0, 1], plain=network, **BOUNDS)
    torch.autograd.backward(losses.adversarial(step, epsilon=8.0, replays=2))
    first = step.kept["noise"]
    gradient = first.grad
    assert gradient is not None
    losses.adversarial(dataclasses.replace(step, replay=1), epsilon=8.0, replays=2)
    most = (BOUNDS["white"] - BOUNDS["black"]) * 8 / 255
    expected = torch.clamp(first.detach() + most * gradient.sign(), -most, most)
    assert torch.allclose(network.shown[-1], expected, atol=1e-6)
    assert len(network.shown) == 2  # a pass each: the attack costs none of its own


def test_the_confidence_loss_is_that_of_devries_and_taylor_by_hand() -> None:
    # p = (.75, .25) and (.5, .5); c = 1/2 and 4/5; every picture hinted
    outputs = {"logits": [[np.log(3), 0.0], [0.0, 0.0]], "confidence": [[0.0], [np.log(4)]]}
    step = step_of(fixed(**outputs), pictures(2), [1, 0])
    found = losses.confidence_branch(step, hints=1.1)
    # c p + (1 - c) y of the true class: .5 * .25 + .5, .8 * .5 + .2
    expected = -(np.log(0.625) + np.log(0.6)) / 2 + 0.1 * -(np.log(0.5) + np.log(0.8)) / 2
    assert float(found) == pytest.approx(expected, rel=1e-5)
    # the price, 0.458, is above the budget of 0.3: it weighs more from now on
    assert float(step.kept["price weight"]) == pytest.approx(0.1 / 0.99)
    losses.confidence_branch(step, hints=1.1, budget=0.5)
    assert float(step.kept["price weight"]) == pytest.approx(0.1 / 0.99 / 1.01)


def test_pictures_without_a_hint_are_answered_by_the_network_alone() -> None:
    outputs = {"logits": [[np.log(3), 0.0]], "confidence": [[0.0]]}
    found = losses.confidence_branch(step_of(fixed(**outputs), pictures(1), [1]), hints=0.0, weight=0.0)
    assert float(found) == pytest.approx(-np.log(0.25), rel=1e-5)


def test_the_rotation_head_sees_four_rotations_counted_counterclockwise() -> None:
    answers = {"logits": np.zeros((8, 2)), "rotation": np.zeros((8, 4))}
    network, images = Watched(fixed(**answers)), pictures(2)
    found = losses.rotation_head(step_of(network, images, [0, 1]))
    shown = network.shown[0].numpy().reshape(4, 2, 3, 4, 4)
    for turns in range(4):
        assert np.array_equal(shown[turns], np.rot90(images.numpy(), turns, (2, 3)))
    assert float(found) == pytest.approx(np.log(2) + 0.5 * np.log(4), rel=1e-6)
    # a head that knows how far each was turned costs nothing more
    answers["rotation"] = 100.0 * np.eye(4)[[0, 0, 1, 1, 2, 2, 3, 3]]
    assert float(losses.rotation_head(step_of(fixed(**answers), images, [0, 1]))) == pytest.approx(np.log(2), rel=1e-6)


def test_outliers_are_exposed_by_the_cross_entropy_to_uniform() -> None:
    logits = np.array([[2.0, 0.0, 1.0], [0.0, 1.0, 0.0], [3.0, 0.0, 0.0], [1.0, 1.0, 1.0], [0.0, 2.0, 4.0]])
    step = step_of(fixed(logits=logits), pictures(2), [0, 2], 3, outliers=pictures(3))
    inside = cross_entropies(logits[:2], np.eye(3)[[0, 2]]).mean()
    outside = cross_entropies(logits[2:], np.full((3, 3), 1 / 3)).mean()
    assert float(losses.outlier_exposure(step, weight=0.5)) == pytest.approx(inside + 0.5 * outside, rel=1e-5)


def test_outliers_belong_to_the_reject_class() -> None:
    logits, reject = np.array([[2.0, 0.0], [0.0, 1.0], [3.0, 0.0]]), np.array([[0.5], [-1.0], [2.0]])
    step = step_of(fixed(logits=logits, reject=reject), pictures(2), [0, 1], outliers=pictures(1))
    expected = cross_entropies(np.hstack([logits, reject]), np.eye(3)).mean()
    assert float(losses.reject_class(step)) == pytest.approx(expected, rel=1e-5)
