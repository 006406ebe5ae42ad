"""Low-rank adaptation: nothing at first, products of thin matrices then, and a network of the usual form at the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shiftproof as sp
from shiftproof.errors import BadInput
from training.small_jobs import SmallJobs

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning_fabric", reason="lightning-fabric is not installed")

from shiftproof.training.networks.engine import train_network  # noqa: E402
from shiftproof.training.networks.lora import merged, with_lora  # noqa: E402
from shiftproof.training.networks.modules import Network, open_network, to_weights  # noqa: E402
from shiftproof.training.recipe import chosen_recipes  # noqa: E402
from shiftproof.types import Classes  # noqa: E402

IMAGES = torch.from_numpy(np.random.default_rng(0).normal(size=(4, 3, 12, 12)).astype(np.float32))


def network() -> Network:
    return open_network("scratch:resnet-8", Classes(("a", "b", "c"))).network.eval()


def changed(*, rank: int = 2, alpha: float = 4.0) -> Network:
    """A network whose products are no longer zero."""
    found = with_lora(network(), 3, rank=rank, alpha=alpha)
    with torch.no_grad():
        for name, parameter in found.named_parameters():
            if name.endswith(".up"):
                parameter.copy_(torch.from_numpy(np.random.default_rng(1).normal(size=parameter.shape)))
    return found


def test_it_begins_as_the_network_that_it_was() -> None:
    plain, low = network(), with_lora(network(), 3, rank=2, alpha=4.0)
    with torch.no_grad():
        assert torch.equal(plain(IMAGES)["logits"], low(IMAGES)["logits"])
        assert torch.equal(plain(IMAGES)["logits"], merged(changed(alpha=0.0))(IMAGES)["logits"])
    assert to_weights(merged(low)).keys() == to_weights(plain).keys()


def test_products_and_the_head_are_all_that_trains() -> None:
    trains = {name for name, parameter in changed().named_parameters() if parameter.requires_grad}
    assert {name.rpartition(".")[2] for name in trains if name.startswith("body")} == {"up", "down"}
    assert {name for name in trains if name.startswith("head")} == {"head.weight", "head.bias"}


def test_merged_weights_are_the_old_ones_and_a_product_of_low_rank() -> None:
    low, plain = changed(rank=2, alpha=4.0), network()
    one = merged(low)
    with torch.no_grad():
        assert torch.allclose(low(IMAGES)["logits"], one(IMAGES)["logits"], atol=1e-5)
    assert any(name.endswith(".up") for name, _ in low.named_parameters()), "merging leaves the original as it was"
    before, after = to_weights(plain), to_weights(one)
    name = "body.3.conv1.weight"
    part: Any = dict(low.named_modules())["body.3.conv1"].parametrizations["weight"][0]
    product = (part.up @ part.down).detach().numpy() * 2  # alpha 4 over rank 2
    assert np.allclose(after[name] - before[name], product.reshape(before[name].shape), atol=1e-5)
    assert np.linalg.matrix_rank((after[name] - before[name]).reshape(len(before[name]), -1), tol=1e-3) == 2


def test_a_training_moves_products_and_head_and_keeps_batch_norms(small_jobs: SmallJobs) -> None:
    trained = train_network(small_jobs("lora:2", network="normed"))
    moved = {name for name in trained.end if not np.array_equal(trained.start[name], trained.end[name])}
    assert moved == {"body.first.weight", "body.second.weight", "head.weight", "head.bias"}
    difference = trained.end["body.second.weight"] - trained.start["body.second.weight"]
    assert np.linalg.matrix_rank(difference.reshape(8, -1), tol=1e-4) <= 2
    assert trained.score(trained.end) == trained.curves[-1].validation_accuracy


def test_what_comes_out_opens_as_any_model(tmp_path: Path, small_jobs: SmallJobs) -> None:
    pytest.importorskip("onnx", reason="onnx is not installed")
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    options = sp.TrainOptions(recipe="lora+ema", level="network", epochs=1, batch_size=5, learning_rate=0.1)
    settings = sp.ModelSettings(preprocess="squash,size=12")
    spec = f"torch:{small_jobs.networks}:normed"
    sp.train(spec, small_jobs.training, tmp_path / "low", options=options, model_options=settings, store=tmp_path / "runs")
    plain = sp.load_model(str(tmp_path / "low"))
    torchs = sp.load_model(str(tmp_path / "low"), adapt="bn-adapt?source=inf", trust=True)
    inputs = IMAGES.numpy()
    assert np.allclose(plain(inputs).scores, torchs(inputs).scores, atol=1e-4)
    with pytest.raises(BadInput, match="say --trust"):
        sp.load_model(str(tmp_path / "low"), adapt="bn-adapt")


def test_settings_that_cannot_be_are_told() -> None:
    with pytest.raises(BadInput, match="lora: rank should be 1 at least"):
        chosen_recipes("lora:0")
